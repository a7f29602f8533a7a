// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "evaluation/scaling_summary.h"
#include "policy/registry.h"
#include "sim/scaling_evaluation.h"
#include "tests/support/shop_text.h"

// A small application, and what three scaling policies make of it under two loads.

namespace rudderfish::testing {

inline const std::string kSmallScaling = ShopText({
    .workloads = R"(  web: {requests: {cpu: 500m, memory: 64Mi}, replicas: 2, execution: 40ms}
  db: {requests: {cpu: 1, memory: 128Mi}, replicas: 2, execution: 12ms})",
    .endpoints =
        R"(    page: {client: client, rate: 3, qos: 300ms, calls: [{web: {calls: [db, db]}}]}
    raw: {client: client, rate: 1, qos: 100ms, calls: [db]})",
    .pods =
        R"(    web: {replicas: 1 to 10, scv: 0.5, start_delay: 10s to 20s, balance: least-requests}
    db: {replicas: 1 to 10, scv: 0.5, start_delay: 10s to 20s, balance: least-requests})",
    .loads = R"(    steady: {steady: {rate: 8}}
    ramp: {ramp: {low: 10, high: 120, begin: 1m, end: 8m}})",
});

inline const Scenario& SmallScalingScenario() {
  static const auto* scenario = new Scenario(ParseScenario(kSmallScaling, "shop.yaml").value());
  return *scenario;
}

inline const std::vector<NamedScalingPolicy>& SmallScalingPolicies() {
  static const auto* policies = [] {
    auto* all = new std::vector<NamedScalingPolicy>;
    for (const char* name : {"hold", "autopilot", "hpa:cpu=60"})
      all->push_back({name, {MakeScalingPolicy(name).value()}});
    return all;
  }();
  return *policies;
}

inline const ScalingEvaluation& SmallScalingEvaluation() {
  static const auto* evaluation = [] {
    ThreadPool pool(2);
    return new ScalingEvaluation(EvaluateScaling(SmallScalingScenario(), EpisodeUse::kEvaluation,
                                                 {0, 1}, SmallScalingPolicies(), 4, 1, &pool, {}));
  }();
  return *evaluation;
}

inline const ScalingSummary& SmallScalingSummary() {
  static const auto* summary = [] {
    auto* made = new ScalingSummary(Summarize(SmallScalingEvaluation(), SmallScalingScenario()));
    ThreadPool pool(2);
    RecordTimelines(SmallScalingScenario(), {0, 1}, SmallScalingPolicies(), &pool, made);
    return made;
  }();
  return *summary;
}

}  // namespace rudderfish::testing
