// SPDX-License-Identifier: Apache-2.0
#include "run/config.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/source_path.h"

namespace rudderfish {
namespace {

namespace fs = std::filesystem;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kLive = R"(rudderfish: config/v1
cluster: {kubeconfig: kube.conf, context: prod, staleness: 1min}
scope:
  namespaces: [shop, data]
  pods: {matchLabels: {team: a}}
applications: [a.yaml, b.yaml]
decisions:
  migration:
    mode: off
    policy: greedy
    baseline: stay
    objective: {step_penalty_ms: 3, max_steps: 12}
    budgets: {moves_per_plan: 4, pod_cooldown: 90s, benefit_factor: 2.5}
    interval: 500ms
    rest: 5min
journal: {path: data/j.db, retention: 30d, size: 64Mi}
server: {listen: "127.0.0.1:9090", socket: run/r.sock}
)";

std::string Replaced(std::string_view what, std::string_view by) {
  std::string text(kLive);
  const size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

std::string Refusal(const std::string& text) {
  const Result<Config> config = ParseConfig(text, "/etc/r/c.yaml");
  EXPECT_FALSE(config);
  return config ? "" : config.error().message;
}

TEST(Config, HoldsWhatTheFileSays) {
  const Config config = ParseConfig(kLive, "/etc/r/c.yaml").value();
  EXPECT_EQ(config.cluster.kubeconfig, "/etc/r/kube.conf");
  EXPECT_EQ(config.cluster.context, "prod");
  EXPECT_FALSE(config.cluster.is_simulated());
  EXPECT_THAT(config.scope.namespaces, ElementsAre("shop", "data"));
  EXPECT_TRUE(config.scope.pods.Matches({{"team", "a"}}));
  EXPECT_THAT(config.applications, ElementsAre("/etc/r/a.yaml", "/etc/r/b.yaml"));
  EXPECT_EQ(config.migration->policy, "greedy");
  EXPECT_EQ(config.migration->baseline, "stay");
  EXPECT_EQ(config.migration->mode, Mode::kOff);
  EXPECT_EQ(config.migration->objective->step_penalty_ms, 3);
  EXPECT_EQ(config.migration->budgets.moves_per_plan, 4);
  EXPECT_EQ(config.migration->budgets.pod_cooldown, seconds(90));
  EXPECT_EQ(config.migration->budgets.benefit_factor, 2.5);
  EXPECT_EQ(config.journal.path, "/etc/r/data/j.db");
  EXPECT_EQ(config.journal.retention, hours(720));
  EXPECT_EQ(config.journal.size_bytes, 64 << 20);
  EXPECT_EQ(config.server.listen, "127.0.0.1:9090");
  EXPECT_EQ(config.server.socket, "/etc/r/run/r.sock");
  EXPECT_EQ(config.migration->interval, milliseconds(500));
  EXPECT_EQ(config.migration->rest, minutes(5));
  EXPECT_EQ(config.staleness, minutes(1));
}

TEST(Config, WhatIsNotSaidHasItsDefault) {
  const Config config =
      ParseConfig("rudderfish: config/v1\napplications: [a.yaml]\ndecisions: {migration: {}}\n",
                  "/etc/r/c.yaml")
          .value();
  EXPECT_EQ(config.migration->mode, Mode::kShadow);
  EXPECT_EQ(config.journal.path, "/etc/r/rudderfish.db");
  EXPECT_EQ(config.server.socket, "/etc/r/rudderfish.sock");
  EXPECT_EQ(config.server.listen, "");
  EXPECT_FALSE(config.migration->objective.has_value());
  EXPECT_EQ(config.migration->budgets.benefit_factor, 1.0);
  EXPECT_TRUE(config.signals.IsNull());
}

TEST(Config, MistakesAreNamedWithTheirPlace) {
  EXPECT_THAT(Refusal(Replaced("baseline", "basline")), HasSubstr("did you mean `baseline`"));
  EXPECT_THAT(Refusal(Replaced("policy: greedy", "policy: gredy")),
              AllOf(HasSubstr("`decisions.migration.policy`"), HasSubstr("did you mean `greedy`")));
  EXPECT_THAT(Refusal(Replaced("baseline: stay", "baseline: lookahead:widht=4")),
              AllOf(HasSubstr("`decisions.migration.baseline`"), HasSubstr("`width`")));
  EXPECT_THAT(Refusal(Replaced("mode:", "moed:")), HasSubstr("did you mean `mode`"));
  EXPECT_THAT(Refusal(Replaced("90s", "90")),
              HasSubstr("`decisions.migration.budgets.pod_cooldown`"));
  EXPECT_THAT(Refusal(Replaced("30d", "20000d")), HasSubstr("`journal.retention`"));
  EXPECT_THAT(Refusal(Replaced("64Mi", "64")), HasSubstr("at least 1Mi"));
  EXPECT_THAT(Refusal(Replaced("127.0.0.1:9090", "everywhere")), HasSubstr("IP:PORT"));
  EXPECT_THAT(Refusal(Replaced("[a.yaml, b.yaml]", "[]")),
              HasSubstr("c.yaml:6:15: `applications`: expected 1 to 100 files"));
  EXPECT_THAT(Refusal(Replaced("applications:", "application:")),
              HasSubstr("missing key `applications`; is `application` meant to be that? (1 to"));
  EXPECT_THAT(Refusal(Replaced("config/v1", "config/v2")), HasSubstr("expected config/v1"));
  EXPECT_THAT(Refusal(Replaced("run/r.sock", std::string(200, 'x'))), HasSubstr("107"));
  EXPECT_THAT(Refusal(Replaced("max_steps", "max_step")), HasSubstr("max_steps"));
  EXPECT_THAT(Refusal(Replaced("decisions:", "decision:")), HasSubstr("`decisions`"));
  EXPECT_THAT(Refusal(Replaced("  migration:", "  scaling:")),
              AllOf(HasSubstr("c.yaml:8:3: "), HasSubstr("`scaling`"),
                    HasSubstr("the kinds of decision are placement, migration")));
  EXPECT_THAT(Refusal("rudderfish: config/v1\ndecisions: {}\n"),
              HasSubstr("c.yaml:2:12: `decisions`: name at least one kind of decision"));
}

TEST(Config, SimulatedClusterIsItsOwnApplication) {
  const std::string simulated =
      "rudderfish: config/v1\ncluster: {scenario: s.yaml, drift: 20s}\n"
      "decisions: {migration: {}}\n";
  const Config config = ParseConfig(simulated, "c.yaml").value();
  EXPECT_TRUE(config.cluster.is_simulated());
  EXPECT_EQ(config.cluster.scenario, "s.yaml");
  EXPECT_EQ(config.cluster.drift, seconds(20));
  EXPECT_THAT(Refusal(simulated + "applications: [a.yaml]\n"), HasSubstr("its own application"));
  EXPECT_THAT(Refusal("rudderfish: config/v1\ncluster: {scenario: s.yaml, context: a}\n"),
              HasSubstr("`context`"));
}

TEST(Config, SeveralInstancesAgreeByALease) {
  const std::string base =
      "rudderfish: config/v1\napplications: [a.yaml]\ndecisions: {migration: {}}\n";
  const Config config =
      ParseConfig(base + "leader_election: {lease: ops/rudder, duration: 4s}\n", "c").value();
  EXPECT_EQ(config.leader_election.lease_namespace, "ops");
  EXPECT_EQ(config.leader_election.lease_name, "rudder");
  EXPECT_EQ(config.leader_election.duration, seconds(4));
  EXPECT_FALSE(ParseConfig(base, "c").value().leader_election.is_on());
  EXPECT_THAT(Refusal(base + "leader_election: {duration: 4s}\n"), HasSubstr("`lease`"));
  EXPECT_THAT(Refusal(base + "leader_election: {lease: rudder}\n"), HasSubstr("NAMESPACE/NAME"));
  EXPECT_THAT(Refusal(base + "leader_election: {lease: a/b, duration: 1s}\n"), HasSubstr("2000ms"));
  EXPECT_THAT(Refusal(base + "leader_election: {lease: a/b, duration: 1h}\n"), HasSubstr("10min"));
  const std::string simulated = "rudderfish: config/v1\ncluster: {scenario: s.yaml}\n";
  EXPECT_THAT(Refusal(simulated + "decisions: {migration: {}}\nleader_election: {lease: a/b}\n"),
              HasSubstr("no Lease"));
}

TEST(Config, MigrationHasAllModesAndSaysHowItMoves) {
  const std::string base = "rudderfish: config/v1\napplications: [a.yaml]\n";
  const MigrationConfig migration =
      *ParseConfig(base +
                       "decisions: {migration: {mode: canary, canary: 0.5, budgets: "
                       "{return_cooldown: 2h, moves_per_hour: {application: 6, node: 2}, windows: "
                       "[{schedule: 0 22 * * 1-5, duration: 8h}]}, moves: {settle: 3s, timeout: "
                       "1min, at_once: 2}, correction: apply}}\n",
                   "c")
           ->migration;
  EXPECT_EQ(migration.mode, Mode::kCanary);
  EXPECT_EQ(migration.canary, 0.5);
  EXPECT_EQ(migration.correction, Correction::kApply);
  EXPECT_EQ(migration.budgets.return_cooldown, std::chrono::hours(2));
  EXPECT_EQ(migration.budgets.moves_per_hour, (HourlyMoves{.application = 6, .node = 2}));
  ASSERT_EQ(migration.windows.size(), 1U);
  EXPECT_EQ(migration.windows[0].duration, std::chrono::hours(8));
  EXPECT_EQ(migration.moves.move.settle, std::chrono::seconds(3));
  EXPECT_EQ(migration.moves.limit, std::chrono::minutes(1));
  EXPECT_EQ(migration.moves.at_once, 2);
  EXPECT_THAT(Refusal(base + "decisions: {migration: {mode: advice}}\n"),
              HasSubstr("did you mean `advise`"));
  const std::string windows = base + "decisions: {migration: {budgets: {windows: [";
  EXPECT_THAT(Refusal(windows + "{schedule: 0 25 * * *, duration: 1h}]}}}\n"),
              HasSubstr("the hour `25`"));
  EXPECT_THAT(Refusal(windows + "{schedule: '@daily', duration: 8d}]}}}\n"), HasSubstr("168h"));
  EXPECT_THAT(Refusal(windows + "{schedule: '@daily'}]}}}\n"), HasSubstr("duration"));
  EXPECT_THAT(Refusal(base + "decisions: {migration: {moves: {timeout: 1s}}}\n"),
              HasSubstr("c.yaml:3:42: `decisions.migration.moves.timeout`: expected from 10000ms"));
}

TEST(Config, StalenessBelowWhatWatchesProveIsRefusedOfALiveCluster) {
  const auto config = [](std::string_view cluster, std::string_view more) {
    return fmt::format(
        "rudderfish: config/v1\ncluster: {{{}, staleness: 1s}}\n{}"
        "decisions: {{migration: {{}}}}\n",
        cluster, more);
  };
  EXPECT_THAT(Refusal(config("context: a", "applications: [a.yaml]\n")),
              HasSubstr("`cluster.staleness`: expected from 2000ms"));
  EXPECT_TRUE(ParseConfig(config("scenario: s.yaml", ""), "c").has_value());
}

TEST(Config, WhoseChoicesCountAsEvidenceIsAListOfOthers) {
  const std::string base = "rudderfish: config/v1\n";
  EXPECT_THAT(ParseConfig(base + "decisions: {placement: {}}\n", "c")->placement->compare,
              ::testing::ElementsAre("default-scheduler"));
  EXPECT_THAT(
      ParseConfig(base + "decisions: {placement: {compare: [a, b]}}\n", "c")->placement->compare,
      ::testing::ElementsAre("a", "b"));
  EXPECT_THAT(Refusal(base + "decisions: {placement: {compare: []}}\n"),
              HasSubstr("c.yaml:2:34: `decisions.placement.compare`: must not be empty"));
  EXPECT_THAT(Refusal(base + "decisions: {placement: {compare: default-scheduler}}\n"),
              HasSubstr("`decisions.placement.compare`: expected a list"));
  EXPECT_THAT(Refusal(base + "decisions: {placement: {compare: [a, \"\"]}}\n"),
              HasSubstr("`decisions.placement.compare[1]`: expected the name of a scheduler"));
  EXPECT_THAT(Refusal(base + "decisions: {placement: {compare: [{a: b}]}}\n"),
              HasSubstr("`decisions.placement.compare[0]`"));
  for (const char* named : {"compare: [rudderfish]", "compare: [a, us], scheduler_name: us"}) {
    EXPECT_THAT(Refusal(fmt::format("{}decisions: {{placement: {{{}}}}}\n", base, named)),
                HasSubstr("that is our own name"));
  }
}

TEST(Config, PodsArePlacedInSeveralClusters) {
  const std::string base = "rudderfish: config/v1\n";
  const auto with = [&](const char* clusters) {
    return fmt::format("{}decisions: {{placement: {{clusters: {}}}}}\n", base, clusters);
  };
  const std::vector<NamedCluster> clusters =
      ParseConfig(with("{us: {kubeconfig: k.yaml, context: us}, asia-1: {context: asia}}"),
                  "etc/c.yaml")
          ->placement->clusters;
  ASSERT_EQ(clusters.size(), 2u);
  EXPECT_EQ(clusters[0].name, "us");
  EXPECT_EQ(clusters[0].where.kubeconfig, "etc/k.yaml");
  EXPECT_EQ(clusters[1].where.context, "asia");
  EXPECT_TRUE(clusters[1].where.kubeconfig.empty());
  EXPECT_THAT(Refusal(with("{}")), HasSubstr("must not be empty: name a cluster"));
  EXPECT_THAT(Refusal(with("{us: {}}")), HasSubstr("expected `kubeconfig` or `context`"));
  EXPECT_THAT(Refusal(with("{US/1: {context: us}}")), HasSubstr("is no name of a cluster"));
  EXPECT_THAT(Refusal(with("{us: {context: us, mode: canary}}")), HasSubstr("mode"));
  const auto restart = [&](const char* before, const char* after) {
    return WhatNeedsARestart(ParseConfig(with(before), "c").value(),
                             ParseConfig(with(after), "c").value());
  };
  EXPECT_EQ(restart("{us: {context: us}}", "{us: {context: us}}"), "");
  EXPECT_EQ(restart("{us: {context: us}}", "{us: {context: eu}}"),
            "decisions.placement (all but `mode`)");
}

TEST(Config, OneProcessPlacesAndMovesPods) {
  const std::string base = "rudderfish: config/v1\n";
  const Config both = ParseConfig(base +
                                      "applications: [a.yaml]\nextender: {}\n"
                                      "decisions: {placement: {}, migration: {policy: stay}}\n",
                                  "c")
                          .value();
  EXPECT_TRUE(both.placement && both.migration && both.extender);
  const Config config =
      ParseConfig(base +
                      "decisions: {placement: {scheduler_name: ours, policy: least-allocated, "
                      "settle: 10s}}\n"
                      "extender: {listen: \"[::1]:80\", timeout: 50ms, hard_limits: {cpu: 0.8}}\n",
                  "c")
          .value();
  EXPECT_EQ(config.placement->scheduler_name, "ours");
  EXPECT_EQ(config.placement->mode, Mode::kShadow);
  EXPECT_EQ(config.placement->settle, seconds(10));
  EXPECT_EQ(config.placement->choice.objective, std::nullopt);
  EXPECT_EQ(config.extender->timeout, std::chrono::milliseconds(50));
  EXPECT_EQ(config.extender->limits.cpu, 0.8);
  EXPECT_TRUE(config.applications.empty());
  for (const char* unread : {"scope: {namespaces: [a]}", "applications: [a.yaml]", "signals: {}"}) {
    EXPECT_THAT(Refusal(fmt::format("{}decisions: {{placement: {{}}}}\n{}\n", base, unread)),
                AllOf(HasSubstr("c.yaml:3:"), HasSubstr("only `decisions.migration` reads")))
        << unread;
  }
  EXPECT_EQ(ParseConfig(base + "decisions: {placement: {budgets: {bindings: 3}}}\n", "c")
                ->placement->bindings_max,
            3);
  EXPECT_THAT(Refusal(base + "decisions: {placement: {mode: enforced}}\n"), HasSubstr("enforce"));
  for (const char* off : {"off", "'off'", "false"}) {  // Tools of YAML 1.1 write off as false.
    const std::string text = base + "decisions: {placement: {mode: " + off + "}}\n";
    EXPECT_EQ(ParseConfig(text, "c")->placement->mode, Mode::kOff) << off;
  }
  EXPECT_THAT(Refusal(base + "decisions: {placement: {mode: true}}\n"), HasSubstr("shadow"));
  EXPECT_THAT(Refusal(base + "decisions: {placement: {objective: cost}}\n"),
              HasSubstr("c.yaml:2:36: `decisions.placement.objective`: the objective is cost"));
  EXPECT_THAT(Refusal(base + "decisions: {placement: {objective: balanse}}\n"),
              HasSubstr("balance"));
  EXPECT_THAT(Refusal("rudderfish: config/v1\napplications: [a.yaml]\n"
                      "decisions: {migration: {correction: on}}\n"),
              HasSubstr("c.yaml:3:37: `decisions.migration.correction`: expected show or apply"));
  EXPECT_THAT(Refusal(base + "decisions: {placement: {canary: 1}}\n"),
              HasSubstr("decisions.placement.canary"));
  EXPECT_THAT(Refusal(base + "decisions: {placement: {settle: 100ms}}\n"),
              HasSubstr("c.yaml:2:33: `decisions.placement.settle`: expected from 1s to 1h"));
  EXPECT_THAT(Refusal(base + "decisions: {placement: {scheduler_name: default-scheduler}}\n"),
              HasSubstr("race for every pod"));
  EXPECT_THAT(Refusal(base + "decisions: {placement: {policy: kube-defalt}}\n"),
              HasSubstr("did you mean `kube-default`"));
  EXPECT_THAT(Refusal(base + "decisions: {placement: {policy: lookahead:depht=4}}\n"),
              HasSubstr("c.yaml:2:33: `decisions.placement.policy`"));
  EXPECT_TRUE(ParseConfig(base + "decisions: {placement: {policy: lookahead}}\n", "c").has_value());
  EXPECT_THAT(Refusal(base + "extender: {policy: lookahead}\n"),
              HasSubstr("c.yaml:2:20: `extender.policy`: policy `lookahead`: "
                        "kube-scheduler asks an extender about one pod at a time"));
  for (const char* address : {"here", "127.0.0.1:99999", "unix:/run/extender.sock"}) {
    EXPECT_THAT(Refusal(fmt::format("{}extender: {{listen: \"{}\"}}\n", base, address)),
                HasSubstr("c.yaml:2:20: `extender.listen`: expected IP:PORT"));
  }
  EXPECT_THAT(Refusal(base + "extender: {timeout: 1min}\n"), HasSubstr("10ms to 5s"));
  EXPECT_THAT(Refusal(base + "extender: {tls: {certificate: a, key: b}}\n"),
              HasSubstr("`client_ca`"));
  EXPECT_THAT(Refusal(base + "cluster: {scenario: s.yaml}\ndecisions: {placement: {}}\n"),
              HasSubstr("no pending pods"));
}

// Promotions go by what was seen of placement's choices.
TEST(Config, AnExtenderBesidePlacementChoosesAsThatDoes) {
  const std::string base = "rudderfish: config/v1\n";
  const auto extender_of = [&](const std::string& text) {
    return ParseConfig(base + text, "f/c").value().extender->choice;
  };
  EXPECT_EQ(extender_of("extender: {}\n").policy, "most-allocated");
  const PolicyChoice choice = extender_of(
      "extender: {}\ndecisions: {placement: {policy: greedy, objective: utilisation}}\n");
  EXPECT_EQ(choice.policy, "greedy");
  EXPECT_EQ(choice.objective, Objective::Of(ObjectiveTerm::kUtilisation));
  EXPECT_EQ(
      extender_of("decisions: {placement: {policy: greedy}}\nextender: {policy: greedy}\n").policy,
      "greedy");
  EXPECT_EQ(extender_of("decisions: {placement: {policy: runs/a}}\nextender: {}\n").policy,
            "f/runs/a");
  for (const char* other : {"{policy: most-allocated}", "{policy: greedy, objective: utilisation}",
                            "{strangeness_max: 2}"}) {
    EXPECT_THAT(
        Refusal(base + "decisions: {placement: {policy: greedy}}\nextender: " + other + "\n"),
        HasSubstr(
            "c.yaml:3:11: `extender`: with `decisions.placement`, the extender uses its policy"))
        << other;
  }
  EXPECT_THAT(Refusal(base + "decisions: {placement: {policy: lookahead}}\nextender: {}\n"),
              HasSubstr("c.yaml:2:33: `decisions.placement.policy`: policy `lookahead`: "
                        "kube-scheduler asks"));
}

TEST(Config, AnExtendersCertificatesAreLookedAtBeforeTheyAreNeeded) {
  ExtenderConfig config;
  EXPECT_TRUE(CheckTls(config));
  config.tls = ServerTlsFiles{"/nowhere/tls.crt", "/nowhere/tls.key", "/nowhere/ca.crt"};
  EXPECT_EQ(CheckTls(config).error().message,
            "`extender.tls`: /nowhere/tls.crt: expected a certificate in PEM: No such file or "
            "directory");
}

TEST(Config, WhatCannotChangeWhileItRunsIsNamed) {
  const Config before = ParseConfig(kLive, "c.yaml").value();
  const auto changed = [&](std::string_view what, std::string_view by) {
    return WhatNeedsARestart(before, ParseConfig(Replaced(what, by), "c.yaml").value());
  };
  EXPECT_EQ(WhatNeedsARestart(before, before), "");
  EXPECT_EQ(changed("policy: greedy", "policy: stay"), "");
  EXPECT_EQ(changed("prod", "test"), "cluster");
  EXPECT_EQ(changed("64Mi", "65Mi"), "journal");
  EXPECT_EQ(changed("r.sock", "s.sock"), "server");
  const auto placing = [](const char* section) {
    return ParseConfig(
               fmt::format("rudderfish: config/v1\ndecisions: {{placement: {}}}\n", section), "c")
        .value();
  };
  const Config shadow = placing("{mode: shadow}");
  EXPECT_EQ(WhatNeedsARestart(shadow, placing("{mode: enforce}")), "") << "a mode can change";
  EXPECT_EQ(WhatNeedsARestart(shadow, placing("{mode: enforce, canary: 0.5}")),
            "decisions.placement (all but `mode`)");
}

TEST(Config, EveryShippedExampleIsOne) {
  int count = 0;
  for (const auto& entry : fs::recursive_directory_iterator(SourcePath("examples"))) {
    if (entry.path().filename() != "rudderfish.yaml") continue;
    ++count;
    const Result<Config> config = LoadConfig(entry.path());
    EXPECT_TRUE(config) << config.error().message;
  }
  EXPECT_GE(count, 2);
}

}  // namespace
}  // namespace rudderfish
