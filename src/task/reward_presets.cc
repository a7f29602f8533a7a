// SPDX-License-Identifier: Apache-2.0
#include "task/reward_presets.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/check.h"
#include "base/suggest.h"

namespace rudderfish::presets {
namespace {

int FirstMost(std::span<const double> values) {
  return static_cast<int>(std::max_element(values.begin(), values.end()) - values.begin());
}

int FirstLeast(std::span<const double> values) {
  return static_cast<int>(std::min_element(values.begin(), values.end()) - values.begin());
}

void CheckChoice(std::span<const double> values, int choice) {
  CHECK_GE(choice, 0);
  CHECK_LT(choice, static_cast<int>(values.size()));
}

double Mean(std::span<const DrsRow> nodes, int metric) {
  double sum = 0;
  for (const DrsRow& node : nodes) sum += node[metric];
  return sum / static_cast<double>(nodes.size());
}

double StandardDeviation(std::span<const DrsRow> nodes, int metric) {
  const double mean = Mean(nodes, metric);
  double squares = 0;
  for (const DrsRow& node : nodes) squares += (node[metric] - mean) * (node[metric] - mean);
  return std::sqrt(squares / static_cast<double>(nodes.size()));
}

constexpr DqnSettings kDqns[] = {
    {.name = "thesis",
     .total_steps = 2000,
     .learning_rate = 2.5e-3,
     .buffer = 10'000,
     .batch = 128,
     .learning_starts = 300,
     .train_frequency = 10,
     .gamma = 0.99,
     .target_copy_steps = 500,
     .epsilon_start = 1,
     .epsilon_end = 0.05,
     .exploration_fraction = 0.3,
     .hidden = {120, 84}},
    {.name = "drs",
     .total_steps = 0,  // Learns for as long as it runs.
     .learning_rate = 0.01,
     .buffer = 100,
     .batch = 32,
     .learning_starts = 100,
     .train_frequency = 1,
     .gamma = 0.9,
     .target_copy_steps = 100,
     .epsilon_start = 0.1,  // Its EPSILON of 0.9 is the share of greedy choices.
     .epsilon_end = 0.1,
     .exploration_fraction = 0,
     .hidden = {50, 0}},
};

}  // namespace

Reward EnergyEfficient(std::span<const double> pods, int choice, double threshold) {
  CheckChoice(pods, choice);
  const int fullest = FirstMost(pods);
  const bool right = choice == fullest || pods[fullest] <= 0;
  if (!right) return {0, true};
  const auto unused =
      std::count_if(pods.begin(), pods.end(), [&](double count) { return count < threshold; });
  return {std::trunc(static_cast<double>(unused) / static_cast<double>(pods.size()) * 10), false};
}

Reward LoadBalancing(std::span<const double> pods, int choice) {
  CheckChoice(pods, choice);
  const bool worst = choice == FirstMost(pods);
  if (choice == FirstLeast(pods)) return {10, worst};
  return {worst ? -1.0 : 0.0, worst};
}

Reward LeastConnections(std::span<const double> connections, int choice) {
  CheckChoice(connections, choice);
  const double most = connections[FirstMost(connections)];
  const double least = connections[FirstLeast(connections)];
  return {most > 0 ? 1 - least / most : 0, choice != FirstLeast(connections)};
}

Reward EnergyAndLatency(const EnergyLatency& rule, std::span<const double> pods,
                        double chosen_latency_ms, const LatencyLimits& limits) {
  CHECK_GT(rule.nodes, 0);
  const auto on = static_cast<double>(std::count_if(
      pods.begin(), pods.end(), [&](double count) { return count > rule.threshold; }));
  const double all = std::accumulate(pods.begin(), pods.end(), 0.0);
  const double r1 = (rule.nodes - on) / rule.nodes;
  const double r2 = on > 0 ? all / on / kPodsOfAFullWorker : 0;
  const bool limited = std::isfinite(limits.soft_ms) && std::isfinite(limits.hard_ms);
  if (!limited || chosen_latency_ms > limits.hard_ms) return {r1 + r2, true};
  return {r1 + r2 + (chosen_latency_ms > limits.soft_ms ? 0.5 : 1), false};
}

DrsRow Normalised(const DrsUsage& usage) {
  constexpr double kCpuFactor = 4, kNetworkKbPerS = 40, kDiskKbPerS = 10240;
  DrsRow row = {usage.cpu * kCpuFactor,
                usage.memory,
                usage.received / kNetworkKbPerS * 100,
                usage.sent / kNetworkKbPerS * 100,
                usage.read / kDiskKbPerS * 100,
                usage.written / kDiskKbPerS * 100};
  for (double& value : row) value = std::min(std::round(value * 100) / 100, 100.0);
  return row;
}

DrsRow DrsProfileOf(std::string_view pod_name) {
  const auto contains = [&](std::string_view word) {
    return pod_name.find(word) != std::string_view::npos;
  };
  if (contains("video")) return {100, 23, 11.25, 2.49, 0, 1.54};
  if (contains("net")) return {54, 46.2, 80.04, 71.4, 0, 1.58};
  if (contains("disk")) return {100, 22.96, 12.6, 2.73, 0, 86.26};
  return {};
}

double DrsCodeReward(std::span<const DrsRow> nodes) {
  CHECK(!nodes.empty());
  double sum = 0;
  for (int metric = 0; metric < kDrsMetrics; ++metric) sum += StandardDeviation(nodes, metric);
  return -sum;
}

double DrsPaperReward(std::span<const DrsRow> nodes, const DrsPaperWeights& weights) {
  CHECK(!nodes.empty());
  double utilisation = 0, imbalance = 0;
  for (int metric = 0; metric < kDrsMetrics; ++metric) {
    utilisation += Mean(nodes, metric) / 100 / kDrsMetrics;
    imbalance += weights.weight[metric] * StandardDeviation(nodes, metric) / 100;
  }
  return weights.alpha * utilisation - weights.beta * imbalance;
}

Result<DqnSettings> DqnSettingsNamed(std::string_view name) {
  std::vector<std::string_view> names;
  for (const DqnSettings& settings : kDqns) {
    if (settings.name == name) return settings;
    names.push_back(settings.name);
  }
  return Invalid("no DQN preset is called \"{}\"{} (there are {})", name, DidYouMean(name, names),
                 fmt::join(names, ", "));
}

}  // namespace rudderfish::presets
