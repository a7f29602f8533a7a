// SPDX-License-Identifier: Apache-2.0
#include "cloud/split_guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace rudderfish {
namespace {

constexpr double kSame = 1e-9;  // Shares that differ by less are equal.

// Shares of the healthy regions alone, to sum to 1; equal ones where they had none.
std::vector<double> OfHealthy(const Split& split, const std::vector<RegionHealth>& health) {
  double sum = 0, healthy = 0;
  for (size_t i = 0; i < split.size(); ++i) {
    if (!health[i].is_healthy) continue;
    sum += split[i].share;
    ++healthy;
  }
  std::vector<double> shares(split.size(), 0.0);
  for (size_t i = 0; i < split.size(); ++i) {
    if (!health[i].is_healthy) continue;
    shares[i] = sum > kSame ? split[i].share / sum : 1 / healthy;
  }
  return shares;
}

// Raises healthy regions to the floor; what that takes, the others give by what they have above it.
void RaiseToFloor(const std::vector<RegionHealth>& health, double floor,
                  std::vector<double>* shares) {
  double missing = 0, above = 0;
  for (size_t i = 0; i < shares->size(); ++i) {
    if (!health[i].is_healthy) continue;
    missing += std::max(0.0, floor - (*shares)[i]);
    above += std::max(0.0, (*shares)[i] - floor);
  }
  if (missing <= kSame) return;
  for (size_t i = 0; i < shares->size(); ++i) {
    double& share = (*shares)[i];
    if (!health[i].is_healthy) continue;
    share = share <= floor ? floor : floor + (share - floor) * (1 - missing / above);
  }
}

}  // namespace

SplitReview ReviewSplit(const Split& standing, const Split& wanted,
                        const std::vector<RegionHealth>& health, Duration signals_age,
                        const SplitLimits& limits) {
  CHECK_EQ(health.size(), wanted.size());
  CHECK(standing.empty() || standing.size() == wanted.size());
  CHECK(limits.floor * static_cast<double>(wanted.size()) <= 1 + kSame);
  CHECK_GT(limits.step, 0);
  SplitReview review;
  if (signals_age > limits.signals_max_age) {
    review.split = standing;
    review.is_frozen = true;
    review.reasons.push_back(
        fmt::format("signals are {:.0f} s old, more than {:.0f} s: the last good split is kept",
                    std::chrono::duration<double>(signals_age).count(),
                    std::chrono::duration<double>(limits.signals_max_age).count()));
    return review;
  }
  for (const RegionHealth& region : health) {
    if (!region.is_healthy)
      review.reasons.push_back(fmt::format("{} gets no requests: {}", region.region, region.why));
  }
  if (review.reasons.size() == wanted.size()) {
    review.split = standing;
    review.is_frozen = true;
    review.reasons.emplace_back("no region is healthy: the last good split is kept");
    return review;
  }

  std::vector<double> target = OfHealthy(wanted, health);
  const std::vector<double> before_floor = target;
  RaiseToFloor(health, limits.floor, &target);
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (target[i] > before_floor[i] + kSame) {
      review.reasons.push_back(
          fmt::format("{} keeps {:.4g} % for probing", wanted[i].region, limits.floor * 100));
    }
  }

  review.split = wanted;
  // What a region that fell away had moves at once; what is left to do is done in steps.
  const std::vector<double> from = standing.empty() ? target : OfHealthy(standing, health);
  double largest = 0;
  for (size_t i = 0; i < target.size(); ++i)
    largest = std::max(largest, std::abs(target[i] - from[i]));
  const double part = largest > limits.step + kSame ? limits.step / largest : 1;
  for (size_t i = 0; i < target.size(); ++i)
    review.split[i].share = part < 1 ? from[i] + part * (target[i] - from[i]) : target[i];
  if (part < 1) {
    review.reasons.push_back(
        fmt::format("a share changes by at most {:.4g} points in one step, not by {:.4g}",
                    limits.step * 100, largest * 100));
  }
  return review;
}

}  // namespace rudderfish
