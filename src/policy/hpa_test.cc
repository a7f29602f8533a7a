// SPDX-License-Identifier: Apache-2.0
#include "policy/hpa.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "base/check.h"
#include "base/files.h"
#include "base/json.h"
#include "tests/support/source_path.h"

namespace rudderfish {
namespace {

constexpr int64_t kHpaSecondNs = 1'000'000'000;
constexpr int64_t kSampleWindowNs = 30 * kHpaSecondNs;  // Of tests/golden/hpa.

std::optional<int64_t> IfAny(int64_t value) {
  return value < 0 ? std::nullopt : std::optional<int64_t>(value);
}

std::optional<HpaRules> RulesFrom(const Json& json, const char* key) {
  if (!json.contains(key)) return std::nullopt;
  const Json& from = json[key];
  HpaRules rules{.stabilization_s = from["window"]};
  const std::string select = from["select"];
  rules.select = select == "Max"   ? HpaRules::Select::kMax
                 : select == "Min" ? HpaRules::Select::kMin
                                   : HpaRules::Select::kDisabled;
  if (from["tolerance"] >= 0) rules.tolerance = from["tolerance"].get<double>() / 1000;
  for (const Json& one : from["policies"]) {
    rules.limits.push_back(
        {one["type"] == "Pods" ? HpaLimit::Kind::kPods : HpaLimit::Kind::kPercent, one["value"],
         one["period"]});
  }
  return rules;
}

HpaSpec SpecFrom(const Json& json) {
  HpaSpec spec{.replicas_min = json["min"], .replicas_max = json["max"]};
  for (const Json& one : json["metrics"]) {
    const std::string type = one["type"];
    spec.metrics.push_back({type == "cpu"    ? HpaMetric::Source::kCpu
                            : type == "rate" ? HpaMetric::Source::kPods
                                             : HpaMetric::Source::kExternal,
                            one["target"]});
  }
  if (const auto up = RulesFrom(json, "up")) spec.behavior = {*up, *RulesFrom(json, "down")};
  return spec;
}

std::vector<HpaPod> PodsFrom(const Json& json) {
  std::vector<HpaPod> pods;
  for (const Json& one : json) {
    const std::string phase = one["phase"];
    pods.push_back({.phase = phase == "Pending"   ? HpaPod::Phase::kPending
                             : phase == "Running" ? HpaPod::Phase::kRunning
                                                  : HpaPod::Phase::kGone,
                    .ready = one["ready"],
                    .started_ns = one["started"].get<int64_t>() * kHpaSecondNs,
                    .transition_ns = one["transition"].get<int64_t>() * kHpaSecondNs,
                    .cpu_millis = IfAny(one["cpu"]),
                    .value_millis = IfAny(one["rate"])});
  }
  return pods;
}

// tests/golden/hpa/run.sh writes this file with Kubernetes' own controller.
TEST(Hpa, DecidesAsKubernetesController) {
  const Result<std::string> text = ReadFile(SourcePath("tests/golden/hpa/decisions.jsonl"));
  ASSERT_TRUE(text.has_value());
  int decisions = 0, changes = 0, cases = 0;
  for (size_t begin = 0; begin < text->size();) {
    const size_t end = text->find('\n', begin);
    const Result<Json> json = ParseJson(text->substr(begin, end - begin), "decisions.jsonl");
    ASSERT_TRUE(json.has_value());
    begin = end + 1;
    ++cases;
    const HpaSpec spec = SpecFrom(*json);
    HpaMemory memory;
    for (const Json& step : (*json)["steps"]) {
      const std::vector<HpaPod> pods = PodsFrom(step["pods"]);
      HpaSight sight{.at_ns = step["at"].get<int64_t>() * kHpaSecondNs,
                     .replicas = step["replicas"],
                     .request_millis = (*json)["request"],
                     .cpu_window_ns = kSampleWindowNs,
                     .external_value = IfAny(step["external"]),
                     .pods = pods};
      if (step["cpu_at"] >= 0) sight.cpu_at_ns = step["cpu_at"].get<int64_t>() * kHpaSecondNs;
      EXPECT_EQ(HpaReplicas(spec, sight, &memory), step["desired"].get<int>())
          << "case " << cases << " at " << step["at"];
      ++decisions;
      changes += step["desired"] != step["replicas"] ? 1 : 0;
    }
  }
  EXPECT_GE(decisions, 300);
  EXPECT_GE(changes, 50);
}

HpaSight SightOf(int64_t at_s, int replicas, const std::vector<HpaPod>& pods) {
  return {.at_ns = at_s * kHpaSecondNs,
          .replicas = replicas,
          .cpu_at_ns = at_s * kHpaSecondNs,
          .pods = pods};
}

std::vector<HpaPod> EqualPods(int count, int64_t cpu_millis) {
  return std::vector<HpaPod>(count, HpaPod{.started_ns = -1000 * kHpaSecondNs,
                                           .transition_ns = -900 * kHpaSecondNs,
                                           .cpu_millis = cpu_millis});
}

TEST(Hpa, FollowsItsTargetWithinTheToleranceOfTenPercent) {
  const HpaSpec spec{.replicas_max = 100, .metrics = {{HpaMetric::Source::kCpu, 50}}};
  HpaMemory memory;
  EXPECT_EQ(HpaReplicas(spec, SightOf(0, 4, EqualPods(4, 550)), &memory), 4);
  EXPECT_EQ(HpaReplicas(spec, SightOf(15, 4, EqualPods(4, 560)), &memory), 5);
  EXPECT_EQ(HpaReplicas(spec, SightOf(30, 4, EqualPods(4, 1500)), &memory), 8);  // At most twice.
}

TEST(Hpa, GoesDownToTheMostOfItsWindow) {
  const HpaSpec spec{.metrics = {{HpaMetric::Source::kCpu, 50}}, .behavior = HpaBehavior()};
  HpaMemory memory;
  EXPECT_EQ(HpaReplicas(spec, SightOf(0, 8, EqualPods(8, 500)), &memory), 8);
  for (int at_s = 15; at_s < 300; at_s += 15)
    EXPECT_EQ(HpaReplicas(spec, SightOf(at_s, 8, EqualPods(8, 100)), &memory), 8) << at_s;
  EXPECT_EQ(HpaReplicas(spec, SightOf(300, 8, EqualPods(8, 100)), &memory), 2);
}

TEST(Hpa, HoldsWithoutSamples) {
  const HpaSpec spec{.metrics = {{HpaMetric::Source::kCpu, 50}}};
  HpaMemory memory;
  std::vector<HpaPod> pods = EqualPods(3, 900);
  for (HpaPod& pod : pods) pod.cpu_millis.reset();
  EXPECT_EQ(HpaReplicas(spec, SightOf(0, 3, pods), &memory), 3);
}

}  // namespace
}  // namespace rudderfish
