// SPDX-License-Identifier: Apache-2.0
#include "learn/scaling_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "evaluation/scaling_run.h"

namespace rudderfish {
namespace {

constexpr uint64_t kValidationKey = 0x76616C6964617465;  // The letters "validate".
constexpr int kPrices = 9;
constexpr int kFinalists = 2;

struct Contestant {
  std::string name;
  std::shared_ptr<const ScalingPolicy> policy;
  double price = 0;  // Of a network.
  ScalingRecord record;
};

std::vector<Contestant> Networks(const std::shared_ptr<const nn::CandidateNet>& net,
                                 double violations_max) {
  std::vector<Contestant> all;
  for (int i = 0; i < kPrices; ++i) {
    const double price =
        ScalingWorld::kLeastPrice * std::pow(ScalingWorld::kMostPrice / ScalingWorld::kLeastPrice,
                                             static_cast<double>(i) / (kPrices - 1));
    all.push_back({fmt::format("price {:.3g}", price),
                   std::make_shared<NeuralScaling>(net, violations_max, price),
                   price,
                   {}});
  }
  return all;
}

std::vector<Contestant> Autoscalers() {
  std::vector<Contestant> all;
  for (const char* down : {"0s", "60s", "300s"}) {
    for (const char* metric : {"hpa:cpu=40", "hpa:cpu=50", "hpa:cpu=60", "hpa:cpu=70",
                               "keda:share=0.4", "keda:share=0.55", "keda:share=0.7"}) {
      std::string spec = fmt::format("{}:down={}", metric, down);
      Result<std::unique_ptr<ScalingPolicy>> policy = MakeScalingPolicy(spec);
      CHECK(policy.has_value());
      all.push_back({std::move(spec), std::move(*policy), 0, {}});
    }
  }
  return all;
}

// Sorts by what they come to.
void Run(const ScalingWorld& world, double violations_max, int episodes, uint64_t seed,
         ThreadPool* pool, std::vector<Contestant>* contestants) {
  std::vector<NamedScalingPolicy> policies;
  for (const Contestant& one : *contestants) policies.push_back({one.name, one.policy});
  const ScalingEvaluation evaluation = EvaluateScaling(*world.scenario, world.loads, policies,
                                                       episodes, seed ^ kValidationKey, pool, {});
  for (size_t p = 0; p < policies.size(); ++p) {
    ScalingRecord& record = (*contestants)[p].record = {};
    int64_t requests = 0, violations = 0;
    for (size_t load = 0; load < world.loads.size(); ++load) {
      for (int i = 0; i < episodes; ++i) {
        const ScalingFigures& figures =
            evaluation.at(static_cast<int>(load), static_cast<int>(p), i);
        record.core_hours += figures.core_hours / episodes;
        requests += figures.requests;
        violations += figures.violations;
      }
    }
    if (requests > 0)
      record.violation_share = static_cast<double>(violations) / static_cast<double>(requests);
  }
  std::stable_sort(contestants->begin(), contestants->end(),
                   [&](const Contestant& a, const Contestant& b) {
                     return a.record.IsBetterThan(b.record, violations_max);
                   });
}

Contestant BestOf(std::vector<Contestant> contestants, const ScalingWorld& world,
                  double violations_max, int episodes, uint64_t seed, ThreadPool* pool) {
  Run(world, violations_max, episodes / 4, seed, pool, &contestants);
  contestants.resize(std::min<size_t>(contestants.size(), kFinalists));
  Run(world, violations_max, episodes, seed, pool, &contestants);
  return contestants[0];
}

}  // namespace

ScalingVerdict ChooseScaling(const ScalingWorld& world,
                             const std::shared_ptr<const nn::CandidateNet>& net,
                             double violations_max, int episodes, uint64_t seed, ThreadPool* pool) {
  CHECK(episodes >= 4);
  const Contestant learned =
      BestOf(Networks(net, violations_max), world, violations_max, episodes, seed, pool);
  const Contestant rule = BestOf(Autoscalers(), world, violations_max, episodes, seed, pool);
  return {.price = learned.price,
          .learned = learned.record,
          .rule = rule.name,
          .of_rule = rule.record,
          .episodes = episodes,
          .steps_back = !learned.record.IsBetterThan(rule.record, violations_max)};
}

}  // namespace rudderfish
