// SPDX-License-Identifier: Apache-2.0
#include "policy/neural_scaling.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"
#include "task/scaling.h"
#include "tests/support/count_allocations.h"

namespace rudderfish {
namespace {

struct SeenBy {
  ScalingRows rows = ScalingRows::kRungs;
  nn::Encoder encoder = nn::Encoder::kRelational;
  nn::Recurrence recurrence = nn::Recurrence::kNone;
};

std::shared_ptr<const nn::CandidateNet> FreshScalingNet(const SeenBy& seen) {
  auto net =
      std::make_shared<nn::CandidateNet>(nn::NetShape{.widths = ScalingTask::Widths(seen.rows),
                                                      .hidden = 16,
                                                      .rounds = 1,
                                                      .encoder = seen.encoder,
                                                      .recurrence = seen.recurrence});
  Rng rng(7);
  net->Initialize(&rng);
  return net;
}

class NeuralScalingTest : public ::testing::TestWithParam<SeenBy> {};

INSTANTIATE_TEST_SUITE_P(
    Networks, NeuralScalingTest,
    ::testing::Values(SeenBy{}, SeenBy{ScalingRows::kCallGraph, nn::Encoder::kRelational},
                      SeenBy{ScalingRows::kCallGraph, nn::Encoder::kGcn},
                      SeenBy{ScalingRows::kCallGraph, nn::Encoder::kGatv2},
                      SeenBy{ScalingRows::kCallGraph, nn::Encoder::kDeepSets},
                      SeenBy{ScalingRows::kCallGraph, nn::Encoder::kMlp},
                      SeenBy{.recurrence = nn::Recurrence::kGated}),
    [](const auto& info) {
      return std::string(info.param.rows == ScalingRows::kRungs ? "rungs" : "graph") + "_" +
             std::string(nn::EncoderName(info.param.encoder)) +
             (info.param.recurrence == nn::Recurrence::kGated ? "_gru" : "");
    });

TEST_P(NeuralScalingTest, StaysWithinBoundsHoldsWithoutSamplesAndAllocatesNothing) {
  const ServedApplication application = SingleStation(
      {.name = "web", .slots = 2, .replicas = 3, .replicas_min = 2, .replicas_max = 6}, 100);
  const NeuralScaling policy(FreshScalingNet(GetParam()), 0.01, 20);
  const std::unique_ptr<ScalingMemory> memory = policy.NewMemory(application);
  std::vector<int> replicas = {0, 3};
  Rng rng(3);
  for (int i = 0; i < 60; ++i) {
    const std::vector<HpaPod> pods(replicas[1], HpaPod{});
    const std::vector<WorkloadSight> seen = {
        {}, {.replicas = replicas[1], .calls_per_s = rng.Uniform(1, 200), .pods = pods}};
    const int before = replicas[1];
    const long allocations = allocation_count;
    policy.Decide({.at_ns = i * int64_t{15'000'000'000},
                   .window_ns = 15'000'000'000,
                   .has_samples = i > 0,
                   .application = &application,
                   .workloads = seen},
                  memory.get(), replicas);
    if (i == 0) {
      EXPECT_EQ(replicas[1], before);
    }
    if (i > 40) {  // By then it has seen its largest question.
      EXPECT_EQ(allocation_count, allocations);
    }
    EXPECT_EQ(replicas[0], 0);
    EXPECT_GE(replicas[1], 2);
    EXPECT_LE(replicas[1], 6);
  }
}

TEST(NeuralScaling, HasPodsForItsLeastRateHoweverFewRequestsCome) {
  const ServedApplication application = SingleStation(
      {.name = "web", .slots = 2, .replicas = 3, .replicas_min = 1, .replicas_max = 30}, 100);
  const CapacityLadder ladder(std::make_shared<const ServedApplication>(application), 0.01);
  const double share = 150 / ApplicationSize::Of(ladder).serves_per_s;
  const int least = ladder.Replicas(ladder.RungFor(150))[1];
  ASSERT_GT(least, 8);
  const auto fewest_under = [&](double least_share, double calls_per_s) {
    const NeuralScaling policy(FreshScalingNet({}), 0.01, 5, least_share);
    const std::unique_ptr<ScalingMemory> memory = policy.NewMemory(application);
    std::vector<int> replicas = {0, 2};
    int fewest = 30;
    for (int i = 0; i < 40; ++i) {
      const std::vector<HpaPod> pods(replicas[1], HpaPod{});
      const std::vector<WorkloadSight> seen = {
          {}, {.replicas = replicas[1], .calls_per_s = calls_per_s, .pods = pods}};
      policy.Decide({.at_ns = i * int64_t{15'000'000'000},
                     .window_ns = 15'000'000'000,
                     .has_samples = i > 0,
                     .application = &application,
                     .workloads = seen},
                    memory.get(), replicas);
      if (i > 0) fewest = std::min(fewest, replicas[1]);
    }
    return fewest;
  };
  EXPECT_LT(fewest_under(0, 20), least);
  EXPECT_GE(fewest_under(share, 20), least);
  EXPECT_GE(fewest_under(share, 300), least);
}

TEST(NeuralScaling, RulesOfOneApplicationBecomeThoseOfAnother) {
  // Serves four times as much, of requests that take half as much.
  const ApplicationSize from{100, 20}, to{400, 40};
  EXPECT_EQ(RuleFor("hpa:cpu=50,min-rate=93.5,down=60s", from, to),
            "hpa:cpu=50,min-rate=374,down=60s");
  EXPECT_EQ(RuleFor("hpa:cpu=50,min-rate=93.5,down=60s", from, from),
            "hpa:cpu=50,min-rate=93.5,down=60s");
  EXPECT_EQ(RuleFor("keda:share=0.4", from, to), "keda:share=0.4");
  EXPECT_EQ(RuleFor("static:rate=80", from, to), "static:rate=320");
  EXPECT_EQ(RuleFor("hpa:rate=80", from, to), "hpa:rate=80");  // Of a pod.
  EXPECT_EQ(RuleFor("mpc:horizon=90s,price=3", from, to), "mpc:horizon=90s,price=1.5");
  EXPECT_EQ(RuleFor("hold", from, to), "hold");
}

TEST(NeuralScaling, SizeIsWhatBoundsAndQuotaAllow) {
  ServedApplication application = SingleStation(
      {.name = "web", .slots = 2, .replicas = 3, .replicas_min = 1, .replicas_max = 30}, 100);
  const auto size = [](const ServedApplication& of) {
    return ApplicationSize::Of(CapacityLadder(std::make_shared<const ServedApplication>(of), 0.01));
  };
  const ApplicationSize all = size(application);
  EXPECT_EQ(all.cores, 30);
  EXPECT_GT(all.serves_per_s, 0.7 * 30 * 2 / 0.1);
  application.limits.pods_max = 10;
  EXPECT_EQ(size(application).cores, 10);
  EXPECT_LT(size(application).serves_per_s, all.serves_per_s / 2);
}

TEST(NeuralScaling, BeginsEveryEpisodeWithNothingRemembered) {
  const ServedApplication application = SingleStation(
      {.name = "web", .slots = 2, .replicas = 3, .replicas_min = 1, .replicas_max = 30}, 100);
  auto net =
      std::make_shared<nn::CandidateNet>(*FreshScalingNet({.recurrence = nn::Recurrence::kGated}));
  for (const char* name : {"logit.weight", "score.context", "memory.input"}) {
    for (float& weight : net->tensor(name)) weight *= 20;
  }
  const NeuralScaling policy(net, 0.01, 20);
  // So many pods asked for at each of twelve decisions.
  const auto answers = [&](ScalingMemory* memory) {
    std::vector<int> asked;
    Rng rng(3);
    for (int i = 0; i < 12; ++i) {
      std::vector<int> replicas = {0, 3};
      const std::vector<HpaPod> pods(3, HpaPod{});
      const std::vector<WorkloadSight> seen = {
          {}, {.replicas = 3, .calls_per_s = rng.Uniform(10, 60), .pods = pods}};
      policy.Decide({.at_ns = i * int64_t{15'000'000'000},
                     .window_ns = 15'000'000'000,
                     .has_samples = true,
                     .application = &application,
                     .workloads = seen},
                    memory, replicas);
      asked.push_back(replicas[1]);
    }
    return asked;
  };
  const std::unique_ptr<ScalingMemory> first = policy.NewMemory(application);
  const std::unique_ptr<ScalingMemory> second = policy.NewMemory(application);
  const std::vector<int> fresh = answers(first.get());
  EXPECT_EQ(answers(second.get()), fresh);
  EXPECT_NE(*std::max_element(fresh.begin(), fresh.end()), 3);  // It does decide something.
}

}  // namespace
}  // namespace rudderfish
