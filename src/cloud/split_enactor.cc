// SPDX-License-Identifier: Apache-2.0
#include "cloud/split_enactor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/one_line.h"

namespace rudderfish {
namespace {

std::string BackendOf(std::string_view region, const std::vector<RegionBackend>& map) {
  for (const RegionBackend& one : map) {
    if (one.region == region) return one.backend;
  }
  return std::string(region);
}

std::string RegionOf(std::string_view backend, const std::vector<RegionBackend>& map) {
  for (const RegionBackend& one : map) {
    if (one.backend == backend) return one.region;
  }
  return std::string(backend);
}

std::string BackendNames(const StandingWeights& standing) {
  std::string names;
  for (const StandingBackend& one : standing.backends)
    names += (names.empty() ? "" : ", ") + OneLine(one.name, 100);
  return names;
}

// The shares in the order of the backends, each of which must have one.
Result<Split> InOrderOfBackends(const StandingWeights& standing, const Split& wanted,
                                const std::vector<RegionBackend>& map) {
  for (const RegionShare& one : wanted) {
    const std::string backend = BackendOf(one.region, map);
    const auto count =
        std::count_if(standing.backends.begin(), standing.backends.end(),
                      [&](const StandingBackend& other) { return other.name == backend; });
    if (count == 0) {
      return Fail(ErrorCode::kNotFound, "{}: region `{}` has no backend `{}`; its backends are: {}",
                  standing.target, OneLine(one.region), OneLine(backend), BackendNames(standing));
    }
    if (count > 1) {
      return Invalid("{}: {} backends are called `{}`; a region needs one of its own",
                     standing.target, count, OneLine(backend));
    }
  }
  Split ordered;
  for (const StandingBackend& backend : standing.backends) {
    const auto found = std::find_if(wanted.begin(), wanted.end(), [&](const RegionShare& one) {
      return BackendOf(one.region, map) == backend.name;
    });
    if (found == wanted.end()) {
      return Invalid("{}: backend `{}` has no share; give its region one, 0 included",
                     standing.target, OneLine(backend.name));
    }
    for (const RegionShare& other : ordered) {
      if (other.region == found->region)
        return Invalid("{}: region `{}` has two backends", standing.target, found->region);
    }
    ordered.push_back(*found);
  }
  if (ordered.size() != wanted.size())
    return Invalid("{}: two regions have the same backend", standing.target);
  return ordered;
}

}  // namespace

Result<std::vector<RegionBackend>> ParseRegionBackends(std::string_view text) {
  std::vector<RegionBackend> map;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    begin = end + 1;
    const size_t equals = part.find('=');
    if (equals == 0 || equals == std::string_view::npos || equals + 1 == part.size()) {
      return Invalid("`{}`: expected REGION=BACKEND, as in eu=shop-eu,us=shop-us", OneLine(part));
    }
    RegionBackend one{std::string(part.substr(0, equals)), std::string(part.substr(equals + 1))};
    for (const RegionBackend& other : map) {
      if (other.region == one.region || other.backend == one.backend)
        return Invalid("`{}`: a region and its backend are named once", OneLine(part));
    }
    map.push_back(std::move(one));
  }
  return map;
}

Split SplitOf(const StandingWeights& standing, const std::vector<RegionBackend>& map) {
  double sum = 0;
  for (const StandingBackend& one : standing.backends) sum += static_cast<double>(one.weight);
  Split split;
  if (sum <= 0) return split;
  for (const StandingBackend& one : standing.backends)
    split.push_back({RegionOf(one.name, map), static_cast<double>(one.weight) / sum});
  return split;
}

void TellHealth(const std::vector<std::string>& healthy, const std::vector<RegionBackend>& map,
                StandingWeights* standing) {
  for (StandingBackend& one : standing->backends) {
    if (one.is_health_seen) continue;
    one.is_healthy =
        std::find(healthy.begin(), healthy.end(), RegionOf(one.name, map)) != healthy.end();
    if (one.is_healthy) one.health = "said to be healthy";
  }
}

Result<SplitPlan> PlanSplit(const StandingWeights& standing, const Split& wanted,
                            const std::vector<RegionBackend>& map, int64_t weight_sum,
                            Duration signals_age, const SplitLimits& limits) {
  TRY_ASSIGN(const Split ordered, InOrderOfBackends(standing, wanted, map));
  if (limits.floor * static_cast<double>(ordered.size()) > 1) {
    return Invalid("a floor of {:.4g} % is more than {} regions can have together",
                   limits.floor * 100, ordered.size());
  }
  std::vector<RegionHealth> health;
  for (size_t i = 0; i < ordered.size(); ++i) {
    const StandingBackend& one = standing.backends[i];
    health.push_back({ordered[i].region, one.is_healthy && !one.is_closed,
                      one.is_closed ? "these requests may not be served there" : one.health});
  }
  SplitPlan plan;
  plan.standing = SplitOf(standing, map);
  for (size_t i = 0; i < plan.standing.size(); ++i) plan.standing[i].region = ordered[i].region;
  plan.review = ReviewSplit(plan.standing, ordered, health, signals_age, limits);
  if (plan.review.split.empty()) {  // Nothing stood that could be kept.
    for (const StandingBackend& one : standing.backends) plan.weights.push_back(one.weight);
    return plan;
  }
  std::vector<double> shares;
  for (const RegionShare& one : plan.review.split) shares.push_back(one.share);
  plan.weights = Quantise(shares, weight_sum);
  plan.changes = plan.standing.empty();
  for (size_t i = 0; i < plan.standing.size(); ++i) {
    const double weight = static_cast<double>(plan.weights[i]);
    plan.changes |=
        std::abs(plan.standing[i].share * static_cast<double>(weight_sum) - weight) >= 1;
  }
  return plan;
}

Result<StandingWeights> EnactSplit(SplitEnactor* enactor, const SplitPlan& plan) {
  const Result<void> sent = enactor->Send(plan.weights);
  if (!sent && sent.error().code != ErrorCode::kUnavailable &&
      sent.error().code != ErrorCode::kDeadlineExceeded)
    return tl::unexpected(sent.error());
  Result<StandingWeights> read = enactor->Read();
  if (!read) return sent ? read : tl::unexpected(sent.error());
  bool stands = read->backends.size() == plan.weights.size();
  for (size_t i = 0; stands && i < plan.weights.size(); ++i)
    stands = read->backends[i].weight == plan.weights[i];
  if (stands) return read;
  if (!sent) return tl::unexpected(sent.error());
  return Fail(ErrorCode::kConflict,
              "{}: other weights stand than those that were sent: {}; see what else sets them",
              read->target, SplitText(SplitOf(*read, {})));
}

}  // namespace rudderfish
