// SPDX-License-Identifier: Apache-2.0
#include "cloud/split_guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "cloud/split.h"

namespace rudderfish {
namespace {

constexpr double kTiny = 1e-12;

// Nothing where the region is not healthy, and sums to 1. REQUIRES: one of them is healthy.
std::vector<double> OverHealthy(std::span<const double> shares,
                                std::span<const RegionState> states) {
  std::vector<double> left(shares.begin(), shares.end());
  for (size_t i = 0; i < left.size(); ++i) {
    if (states[i] != RegionState::kHealthy) left[i] = 0;
  }
  const double sum = std::accumulate(left.begin(), left.end(), 0.0);
  const auto healthy = std::count(states.begin(), states.end(), RegionState::kHealthy);
  for (size_t i = 0; i < left.size(); ++i) {
    if (sum > kTiny) {
      left[i] /= sum;
    } else if (states[i] == RegionState::kHealthy) {
      left[i] = 1.0 / static_cast<double>(healthy);
    }
  }
  return left;
}

// At least `floor` in each healthy region, taken from what the others have above it.
void KeepFloor(double floor, std::span<const RegionState> states, std::vector<double>* shares) {
  double missing = 0, above = 0;
  for (size_t i = 0; i < shares->size(); ++i) {
    if (states[i] != RegionState::kHealthy) continue;
    missing += std::max(0.0, floor - (*shares)[i]);
    above += std::max(0.0, (*shares)[i] - floor);
  }
  if (missing <= 0) return;
  CHECK(above >= missing - kTiny);
  for (size_t i = 0; i < shares->size(); ++i) {
    if (states[i] != RegionState::kHealthy) continue;
    double& share = (*shares)[i];
    share = share <= floor ? floor : share - (share - floor) * missing / above;
  }
}

std::string WhyNothing(const std::string& region, RegionState state) {
  return state == RegionState::kUnseen
             ? fmt::format("{} gets nothing: its health is not known", region)
             : fmt::format("{} gets nothing: it is not healthy", region);
}

}  // namespace

GuardedSplit GuardSplit(const SplitQuestion& question, const SplitLimits& limits) {
  const size_t count = question.regions.size();
  CHECK(count > 0 && question.now.size() == count && question.wanted.size() == count &&
        question.states.size() == count);
  CHECK(limits.floor * static_cast<double>(count) <= 1);
  GuardedSplit guarded{.shares = {question.now.begin(), question.now.end()}};
  if (question.age > limits.stale_after) {
    guarded.held = true;
    guarded.notes.push_back(
        fmt::format("the split stays: what is known of the regions is {} s old; at most {} s",
                    std::chrono::duration_cast<std::chrono::seconds>(question.age).count(),
                    std::chrono::duration_cast<std::chrono::seconds>(limits.stale_after).count()));
    return guarded;
  }
  const bool any = std::any_of(question.states.begin(), question.states.end(),
                               [](RegionState one) { return one == RegionState::kHealthy; });
  if (!any) {
    guarded.held = true;
    guarded.notes.emplace_back("the split stays: no region is known to be healthy");
    return guarded;
  }
  for (size_t i = 0; i < count; ++i) {
    if (question.states[i] == RegionState::kHealthy) continue;
    if (question.wanted[i] > 0 || question.now[i] > 0)
      guarded.notes.push_back(WhyNothing(question.regions[i], question.states[i]));
  }
  const std::vector<double> now = OverHealthy(question.now, question.states);
  std::vector<double> goal = OverHealthy(question.wanted, question.states);
  for (size_t i = 0; i < count; ++i) {
    if (question.states[i] == RegionState::kHealthy && goal[i] < limits.floor - kTiny) {
      guarded.notes.push_back(fmt::format("{} keeps {}, the least that a healthy region has",
                                          question.regions[i], ShareText(limits.floor)));
    }
  }
  KeepFloor(limits.floor, question.states, &goal);
  double largest = 0;
  for (size_t i = 0; i < count; ++i) largest = std::max(largest, std::abs(goal[i] - now[i]));
  const double part = largest > limits.change_max ? limits.change_max / largest : 1;
  if (part < 1) {
    guarded.notes.push_back(fmt::format("a step changes a region by at most {}; {} more are wanted",
                                        ShareText(limits.change_max),
                                        ShareText(largest - limits.change_max)));
  }
  for (size_t i = 0; i < count; ++i) guarded.shares[i] = now[i] + part * (goal[i] - now[i]);
  return guarded;
}

}  // namespace rudderfish
