// SPDX-License-Identifier: Apache-2.0
#include "scenario/load_parser.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"
#include "scenario/scenario.h"

namespace rudderfish {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kShopHead = R"(rudderfish: scenario/v1
name: shop
layers: {cluster: {}}
latency: {cluster: {cluster: 0.1ms}}
node_types:
  slow: {layer: cluster, cpu_type: slow, bandwidth: 1Gbit}
  fast: {layer: cluster, cpu_type: fast, bandwidth: 1Gbit}
nodes:
  - {type: slow, count: 3, cpu: 8, memory: 32Gi}
  - {type: fast, count: 1, cpu: 8, memory: 32Gi}
workloads:
  client: {requests: {cpu: 100m, memory: 64Mi}, replicas: 1}
  web: {requests: {cpu: 100m, memory: 64Mi}, replicas: 1 to 3, execution: {slow: 10ms, fast: 6ms}}
  db: {requests: {cpu: 200m, memory: 64Mi}, replicas: 2, execution: 2ms}
patterns:
  shop:
    page: {client: client, rate: 3, qos: 100ms, calls: [{web: {calls: [db, db]}}]}
    ping: {client: client, rate: 1, qos: 50ms, calls: [web]}
)";

constexpr std::string_view kShopLoad = R"(load:
  duration: 30m
  network: 0.25ms
  timeout: 2s
  retries: 1
  retry_delay: 500ms
  sessions: {requests: 12.5, think: 7s}
  quota: {cpu: 4500m, pods: 12}
  cool_down: 45s
  pods:
    web: {replicas: 2 to 8, slots: 4, scv: 0.5, queue: 100, balance: {least-requests: 3},
          start_delay: 10s to 30s, image_pull: 20s to 40s,
          readiness: {initial_delay: 5s, period: 10s}}
    db: {replicas: 1 to 4, scv: 0, balance: round-robin, discipline: ps}
  loads:
    steady: {steady: {rate: 20}}
    day: {diurnal: {low: 10, high: 50, period: 30m}}
    ramp: {ramp: {low: 10, high: 50, begin: 5m, end: 20m}}
    bursts: {bursty: {low: 10, high: 80, every: {exponential: 5m}, lasts: 30s to 90s}}
    flash: {flash: {low: 10, high: 90, at: 5m to 20m, rise: 20s, hold: 3m, fall: 1m}}
    stages: {staged: {rate_per_user: 0.6, users: 70}}
    replay: {replay: {format: azure-llm, file: none.csv, bin: 30s, rate: 30, time_warp: 0.5,
                      part: [0, 0.5], held_out: 0.25}}
)";

Result<Scenario> ShopWith(std::string_view load) {
  return ParseScenario(std::string(kShopHead) + std::string(load), "shop.yaml");
}

TEST(LoadParser, MakesAnApplicationOfCallsAndPods) {
  const Result<Scenario> scenario = ShopWith(kShopLoad);
  ASSERT_TRUE(scenario.has_value()) << scenario.error().message;
  const ServedApplication application = ApplicationOf(*scenario, 0);
  const ServedWorkload& web = application.workloads[1];
  EXPECT_EQ(web.slots, 4);
  EXPECT_EQ(web.replicas, 2);  // The scenario's one is below the bounds.
  EXPECT_EQ(web.replicas_max, 8);
  EXPECT_EQ(web.choices, 3);
  EXPECT_EQ(web.discipline, Discipline::kInLine);
  EXPECT_EQ(application.workloads[2].discipline, Discipline::kShared);
  EXPECT_EQ(web.start_high_s, 30);
  EXPECT_EQ(web.image_nodes, 4);  // All of its layer.
  EXPECT_EQ(web.pull_low_s, 20);
  EXPECT_EQ(web.pull_high_s, 40);
  EXPECT_EQ(web.probe_delay_s, 5);
  EXPECT_EQ(web.probe_period_s, 10);
  EXPECT_EQ(application.workloads[2].image_nodes, 0);
  EXPECT_EQ(web.service.shape, ServiceLaw::Shape::kLogNormal);
  EXPECT_EQ(application.workloads[2].service.shape, ServiceLaw::Shape::kConstant);
  EXPECT_FALSE(application.workloads[0].scaled);
  EXPECT_EQ(application.network_ms, .25);
  EXPECT_EQ(application.limits,
            (ScalingLimits{.cpu_millis_max = 4500, .pods_max = 12, .cool_down_s = 45}));
  // Three slow nodes and a fast one; two calls of db for a page, which is 3 of 4 requests.
  EXPECT_NEAR(application.DemandS()[1], .009, 1e-12);
  EXPECT_NEAR(application.DemandS()[2], .003, 1e-12);
  EXPECT_NEAR(application.CapacityPerS({0, 2, 1}), 1 / .003, 1e-6);
  EXPECT_NEAR(application.CallsPerRequest()[2], 1.5, 1e-12);
}

TEST(LoadParser, ReadsBackWhatItWrites) {
  const Result<Scenario> scenario = ShopWith(kShopLoad);
  ASSERT_TRUE(scenario.has_value()) << scenario.error().message;
  const std::string text = ToYaml(*scenario);
  const Result<Scenario> again = ParseScenario(text, "again.yaml");
  ASSERT_TRUE(again.has_value()) << again.error().message << "\n" << text;
  EXPECT_EQ(ToYaml(*again), text);
  EXPECT_EQ(again->load->pods, scenario->load->pods);
  EXPECT_EQ(again->load->limits, scenario->load->limits);
  EXPECT_EQ(again->load->sessions, (SessionLaw{12.5, SimTime(7'000'000'000)}));
  ASSERT_EQ(again->load->loads.size(), 7U);
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(
        DrawCurve(again->load->loads[i].traffic, EpisodeUse::kLearning, again->load->duration, 5),
        DrawCurve(scenario->load->loads[i].traffic, EpisodeUse::kLearning, scenario->load->duration,
                  5))
        << scenario->load->loads[i].name;
  }
  EXPECT_EQ(again->load->loads[6].traffic.upto, .5);
  EXPECT_EQ(again->load->loads[6].traffic.scale_per_s, 30);
  EXPECT_EQ(again->load->loads[6].traffic.held_out, .25);
}

TEST(LoadParser, ReadsWhatScalingIsToMakeSmallAndToKeep) {
  const auto with = [](std::string_view goal) {
    std::string text(kShopLoad);
    text.insert(text.find("  pods:"), goal);
    return ShopWith(text);
  };
  const Result<Scenario> limited =
      with("  objective: {changes: 0.1}\n  limit: {p95: 80.5ms, endpoint: ping}\n");
  ASSERT_TRUE(limited.has_value()) << limited.error().message;
  EXPECT_DOUBLE_EQ(LateMaxOf(*limited), .05 / 4);
  const auto calls = ApplicationOf(*limited, 0).calls;
  EXPECT_EQ(calls->endpoints[0].qos_ms, kNoTargetMs);
  EXPECT_EQ(calls->endpoints[1].qos_ms, 80.5);
  EXPECT_EQ(limited->patterns[0]->endpoints[0].qos_ms, 100);
  const Result<Scenario> weighted = with("  objective: {cost: 2, late: 30}\n");
  ASSERT_TRUE(weighted.has_value()) << weighted.error().message;
  EXPECT_EQ(ApplicationOf(*weighted, 0).calls, weighted->patterns[0]);
  for (const Scenario* scenario : {&*limited, &*weighted}) {
    const Result<Scenario> again = ParseScenario(ToYaml(*scenario), "again.yaml");
    ASSERT_TRUE(again.has_value()) << again.error().message;
    EXPECT_EQ(again->load->objective, scenario->load->objective);
    EXPECT_EQ(again->load->limit, scenario->load->limit);
  }
  EXPECT_EQ(LateMaxOf(*weighted), .01);
  const Result<Scenario> both = with("  objective: {late: 30}\n  limit: {late: 1%}\n");
  ASSERT_FALSE(both.has_value());
  EXPECT_THAT(both.error().message, HasSubstr("`load.limit`: late requests have a weight"));
}

TEST(LoadParser, NamesTheNearestOfWhatItDoesNotKnow) {
  const auto refusal = [](std::string_view load) {
    const Result<Scenario> scenario = ShopWith(load);
    return scenario ? std::string("accepted") : scenario.error().message;
  };
  EXPECT_EQ(
      refusal("load: {pods: {web: {replicas: 1}}, loads: {a: {diurnla: {}}}}\n"),
      "shop.yaml:19:57: `load.loads.a.diurnla`: no shape of load is called \"diurnla\"; there "
      "are steady, diurnal, ramp, bursty, flash, staged, replay; did you mean `diurnal`?");
  EXPECT_NE(refusal("load: {pods: {wep: {replicas: 1}}, loads: {}}\n").find("did you mean `web`?"),
            std::string::npos);
  EXPECT_NE(refusal("load: {pods: {web: {replica: 1}}, loads: {}}\n").find("`replicas`"),
            std::string::npos);
  EXPECT_NE(refusal("load: {pods: {web: {replicas: 1, balance: rounds-robin}}, loads: {}}\n")
                .find("did you mean `round-robin`?"),
            std::string::npos);
  const auto of_web = [&](std::string_view keys) {
    return refusal(
        fmt::format("load: {{pods: {{web: {{replicas: 1, {}}}}}, loads: {{}}}}\n", keys));
  };
  EXPECT_THAT(of_web("image_pull: {exponential: 5s}"), HasSubstr("a range such as 10s to 30s"));
  EXPECT_THAT(of_web("readiness: {period: 5s, initial_dealy: 5s}"),
              HasSubstr("did you mean `initial_delay`?"));
  EXPECT_THAT(of_web("readiness: {initial_delay: 5s}"), HasSubstr("`period`"));
  EXPECT_THAT(
      of_web("discipline: psi"),
      HasSubstr("19:46: `load.pods.web.discipline`: expected fcfs or ps; did you mean `ps`?"));
  EXPECT_NE(refusal("load: {pods: {}, loads: {a: {steady: {rate: -1}}}}\n").find("from 0 to"),
            std::string::npos);
  EXPECT_NE(refusal("load: {pods: {}, loads: {}}\n").find("expected 1 to 100 loads"),
            std::string::npos);
  EXPECT_NE(refusal("load: {pods: {}, quota: {pod: 3}, loads: {}}\n").find("`pods`"),
            std::string::npos);
  EXPECT_NE(refusal("load: {pods: {}, quota: {cpu: many}, loads: {}}\n").find("quota.cpu"),
            std::string::npos);
  EXPECT_NE(refusal("load: {pods: {}, duration: 10, loads: {}}\n").find("duration"),
            std::string::npos);
  const auto sessions = [&](std::string_view fields) {
    return refusal("load: {pods: {}, sessions: {" + std::string(fields) + "}, loads: {}}\n");
  };
  EXPECT_NE(sessions("requests: 0.5, think: 1s").find("`load.sessions.requests`: expected"),
            std::string::npos);
  EXPECT_NE(sessions("requests: 5, think: 0s").find("a time from 0.001s"), std::string::npos);
  EXPECT_NE(sessions("requests: 5").find("`think`"), std::string::npos);
  EXPECT_NE(sessions("requests: 5, thnik: 1s").find("think"), std::string::npos);
}

TEST(LoadParser, RefusesALoadWithoutRequestsAndAQuotaThatIsExceededFromTheStart) {
  const auto refusal = [](std::string_view head, std::string_view quota) {
    const std::string load = fmt::format(
        "load: {{quota: {}, pods: {{web: {{replicas: 2 to 8}}, db: {{replicas: 1 to 4}}}}, "
        "loads: {{a: {{steady: {{rate: 20}}}}}}}}\n",
        quota);
    const Result<Scenario> scenario = ParseScenario(std::string(head) + load, "shop.yaml");
    return scenario ? std::string("accepted") : scenario.error().message;
  };
  EXPECT_EQ(refusal(kShopHead, "{pods: 3}"), "accepted");
  EXPECT_THAT(refusal(kShopHead, "{pods: 2}"),
              HasSubstr("`load`: the fewest pods that `replicas` allow, 3 of 0.4 cores, are beyond "
                        "`quota`"));
  EXPECT_EQ(refusal(kShopHead, "{cpu: 400m}"), "accepted");
  EXPECT_THAT(refusal(kShopHead, "{cpu: 399m}"), HasSubstr("are beyond `quota`"));
  std::string idle(kShopHead);
  for (const std::string_view rate : {"rate: 3", "rate: 1"})
    idle.replace(idle.find(rate), rate.size(), "rate: 0");
  EXPECT_THAT(
      refusal(idle, "{pods: 3}"),
      HasSubstr(
          "`load`: there are no requests: every endpoint of the pattern shop has a rate of 0"));
}

TEST(LoadParser, RefusesMoreUsersThanCanBeSimulated) {
  const auto refusal = [](std::string_view sessions, std::string_view shape) {
    const Result<Scenario> scenario = ShopWith(
        fmt::format("load: {{pods: {{}}, sessions: {}, loads: {{a: {}}}}}\n", sessions, shape));
    return scenario ? std::string("accepted") : scenario.error().message;
  };
  const std::string_view kDay = "{requests: 10, think: 86400s}";
  EXPECT_THAT(refusal(kDay, "{steady: {rate: 200}}"),
              HasSubstr("`load.loads.a`: under `sessions`, 1.56e+07 users of the load a"));
  EXPECT_THAT(refusal(kDay, "{staged: {rate_per_user: 2, users: 100}}"),
              HasSubstr("1.56e+07 users"));
  EXPECT_THAT(refusal(kDay, "{diurnal: {low: 1, high: 200, period: 1h}}"),
              HasSubstr("1.56e+07 users"));
  EXPECT_EQ(refusal(kDay, "{steady: {rate: 100}}"), "accepted");
  EXPECT_EQ(refusal("{requests: 1, think: 86400s}", "{steady: {rate: 200}}"), "accepted");
}

TEST(LoadParser, NamesTheTraceThatIsNotThere) {
  Load load;
  load.loads.push_back(
      {"r", {.shape = Traffic::Shape::kReplay, .file = "none.csv", .format = "azure-llm"}});
  const Result<void> read = ReadRequestTraces("nowhere", &load);
  ASSERT_FALSE(read.has_value());
  EXPECT_NE(read.error().message.find("nowhere/none.csv"), std::string::npos);
}

TEST(LoadParser, RefusesATraceThatLeavesNothingToBeJudgedBy) {
  const std::filesystem::path folder = ::testing::TempDir();
  ASSERT_TRUE(WriteFileAtomically(folder / "one-bin.csv",
                                  "TIMESTAMP,ContextTokens,GeneratedTokens\n"
                                  "2023-11-16 18:17:03.9,4808,10\n2023-11-16 18:18:03.9,1,1\n")
                  .has_value());
  Load load;
  load.loads.push_back({"r",
                        {.shape = Traffic::Shape::kReplay,
                         .file = "one-bin.csv",
                         .format = "azure-llm",
                         .bin = SimTime(60'000'000'000)}});
  const Result<void> read = ReadRequestTraces(folder, &load);
  ASSERT_FALSE(read.has_value());
  EXPECT_NE(read.error().message.find("the load r replays one bin of 60s of it"), std::string::npos)
      << read.error().message;
  load.loads[0].traffic.bin = SimTime(20'000'000'000);
  EXPECT_TRUE(ReadRequestTraces(folder, &load).has_value());
}

TEST(LoadParser, ATraceMayBeCompressed) {
  // gzip of four rows at 00:00:00.5, 00:01:00, 00:01:01 and 00:02:02.
  constexpr char kBytes[] =
      "\037\213\010\000\000\000\000\000\002\003\013\361\364\165\015\016\161\364"
      "\015\320\161\316\317\053\111\255\050\011\311\317\116\315\053\326\161\117"
      "\315\113\055\112\054\111\115\201\360\271\214\014\214\114\164\015\114\165"
      "\015\015\024\014\014\254\300\110\317\124\033\114\353\230\130\030\130\350"
      "\030\032\240\253\061\004\312\101\125\030\352\030\142\221\065\304\055\153"
      "\004\104\110\262\000\120\300\276\226\246\000\000\000";
  const std::filesystem::path folder = ::testing::TempDir();
  const std::string_view bytes(kBytes, sizeof(kBytes) - 1);
  ASSERT_TRUE(WriteFileAtomically(folder / "trace.csv.gz", bytes).has_value());
  Load load;
  load.loads.push_back({"r",
                        {.shape = Traffic::Shape::kReplay,
                         .file = "trace.csv.gz",
                         .format = "azure-llm",
                         .bin = SimTime(60'000'000'000)}});
  const Result<void> read = ReadRequestTraces(folder, &load);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(load.loads[0].traffic.trace->counts, (std::vector<double>{2, 1}));
}

}  // namespace
}  // namespace rudderfish
