// SPDX-License-Identifier: Apache-2.0
#include "run/split_trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/log.h"
#include "base/units.h"
#include "base/wall_time.h"

namespace rudderfish {
namespace {

// A change is taken back if requests are slower than predicted by this, relative, and than before.
constexpr double kSlowerThanPredicted = 0.5;
constexpr double kSlowerThanBefore = 1.1;
constexpr int kSettlesHeld = 10;     // Times `settle`, for which such a route is left alone.
constexpr int kSettlesPatience = 3;  // Until a change goes unmeasured.
constexpr double kMsPerS = 1000;
constexpr int kRowsRecalled = 200;  // Of a route: an hour at the usual interval.

// Whether the split that was set is the one that was read last: somebody else may have changed it.
bool StillStands(const SplitChange& change, const RouteConfig& route, const RouteNow& seen) {
  if (seen.standing == nullptr) return true;  // It is not known to have changed.
  const Split now = SplitOf(*seen.standing, route.backends);
  const Split& set = change.after;
  const double smallest = 1.5 / static_cast<double>(seen.weight_sum);
  return std::equal(now.begin(), now.end(), set.begin(), set.end(),
                    [&](const RegionShare& a, const RegionShare& b) {
                      return a.region == b.region && std::abs(a.share - b.share) <= smallest;
                    });
}

}  // namespace

void SplitTrial::Recall(const JournalReader& reader, const std::string& route, Instant now,
                        Duration settle) {
  const Result<std::vector<StoredRouting>> rows =
      reader.Routings({.limit = kRowsRecalled, .application = route});
  if (!rows) {
    LogWarning("route {}: what was set last is not known: {}", route, rows.error().message);
    return;
  }
  const auto newest = std::find_if(rows->rbegin(), rows->rend(), [](const StoredRouting& one) {
    return one.row.fate == Fate::kDone || one.row.fate == Fate::kUnknown;
  });
  if (newest == rows->rend()) return;
  const RoutingDecision& row = newest->row;
  const auto ago = std::chrono::milliseconds(std::max<int64_t>(0, UnixNow() - newest->written_at));
  if (row.takes_back) Hold(now - ago, settle);
  if (row.measured_ms || ago > kSettlesPatience * settle) return;
  SplitChange change{.row = newest->number,
                     .at = now - ago,
                     .before = {},
                     .after = {},
                     .measured_ms = row.measured_now_ms,
                     .predicted_ms = row.predicted_ms};
  for (const RoutedRegion& region : row.regions) {
    change.before.push_back({region.region, region.now});
    change.after.push_back({region.region, region.allowed});
  }
  change_ = std::move(change);
}

void SplitTrial::Begin(SplitChange change) {
  setting_ = std::move(change);
  change_.reset();
}

std::optional<int64_t> SplitTrial::End(std::optional<Instant> set_at) {
  if (!setting_) return std::nullopt;
  SplitChange change = *std::exchange(setting_, std::nullopt);
  const int64_t row = change.row;
  if (set_at) {
    change.at = *set_at;
    change_ = std::move(change);
  }
  return row;
}

std::optional<SplitTrial::Outcome> SplitTrial::Measure(const RouteConfig& route,
                                                       const RouteNow& seen,
                                                       const std::optional<SignalValue>& latency,
                                                       Instant now, Duration settle) {
  if (!change_) return std::nullopt;
  const bool is_settled = latency && latency->at >= change_->at + settle;
  // What is measured of one that was changed is of another split.
  if (!StillStands(*change_, route, seen) ||
      (!is_settled && now > change_->at + kSettlesPatience * settle))
    change_.reset();
  if (!change_ || !is_settled) return std::nullopt;
  Outcome outcome{.change = *std::exchange(change_, std::nullopt),
                  .measured_ms = kMsPerS * latency->value};
  const SplitChange& change = outcome.change;
  outcome.is_slower = change.predicted_ms > 0 && change.measured_ms &&
                      outcome.measured_ms > (1 + kSlowerThanPredicted) * change.predicted_ms &&
                      outcome.measured_ms > kSlowerThanBefore * *change.measured_ms;
  return outcome;
}

void SplitTrial::Hold(Instant now, Duration settle) { held_until_ = now + kSettlesHeld * settle; }

std::string SplitTrial::WhyHeld(Instant now) const {
  if (now < held_until_)
    return fmt::format("the last change was taken back; the route is left alone for {} more",
                       FormatDuration(std::chrono::ceil<std::chrono::seconds>(held_until_ - now)));
  if (change_) return "the last change has not been measured yet";
  return "";
}

std::optional<RouteChoice> TakeBack(const RoutingPlan& plan, const RouteConfig& route,
                                    const RouteNow& seen, const SplitTrial::Outcome& outcome) {
  const StandingWeights& standing = *seen.standing;
  const SplitChange& change = outcome.change;
  SplitLimits limits = plan.config.limits;
  limits.step = 1;
  Result<SplitPlan> back =
      PlanSplit(standing, change.before, route.backends, seen.weight_sum, {}, limits);
  if (!back || !back->changes || back->review.is_frozen) return std::nullopt;
  RouteChoice choice{.decision = {.route = route.name,
                                  .target = standing.target,
                                  .policy = plan.policy_name,
                                  .baseline = plan.baseline_name,
                                  .objective = plan.objective,
                                  .takes_back = true,
                                  .verdict = {.allowed = true, .reason = ""}},
                     .plan = *std::move(back)};
  choice.decision.reasons.push_back(
      fmt::format("the last change is taken back: response time was {:.1f} ms, predicted were "
                  "{:.1f} ms, and {:.1f} ms were measured before it",
                  outcome.measured_ms, change.predicted_ms, change.measured_ms.value_or(0)));
  for (size_t i = 0; i < choice.plan.standing.size(); ++i) {
    choice.decision.regions.push_back({.region = choice.plan.standing[i].region,
                                       .now = choice.plan.standing[i].share,
                                       .wanted = change.before[i].share,
                                       .allowed = choice.plan.review.split[i].share,
                                       .is_healthy = standing.backends[i].is_healthy,
                                       .one_more = {}});
  }
  return choice;
}

}  // namespace rudderfish
