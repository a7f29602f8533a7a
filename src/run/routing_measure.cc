// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/log.h"
#include "base/units.h"
#include "run/host.h"
#include "run/routing_loop.h"

// What becomes of a split that a RoutingLoop has set: it is measured, and taken back if requests
// are slower.

namespace rudderfish {
namespace {

// A change is taken back if requests are slower than predicted by this, relative, and than before.
constexpr double kSlowerThanPredicted = 0.5;
constexpr double kSlowerThanBefore = 1.1;
constexpr int kSettlesHeld = 10;     // Times `settle`, for which such a route is left alone.
constexpr int kSettlesPatience = 3;  // Until a change goes unmeasured.
constexpr double kMsPerS = 1000;
constexpr int kRowsRecalled = 200;  // Of a route: an hour at the usual interval.

}  // namespace

// What an earlier process has set is measured, or left alone, as if it were ours.
void RoutingLoop::Recall() {
  const Result<JournalReader> reader = JournalReader::Open(host_->journal()->path());
  if (!reader) return;  // A journal that is closed knows of no rows.
  for (Route& route : routes_) {
    const Result<std::vector<StoredRouting>> rows =
        reader->Routings({.limit = kRowsRecalled, .application = route.name});
    if (!rows) {
      LogWarning("route {}: what was set last is not known: {}", route.name, rows.error().message);
      continue;
    }
    const auto newest = std::find_if(rows->rbegin(), rows->rend(), [](const StoredRouting& one) {
      return one.row.fate == Fate::kDone || one.row.fate == Fate::kUnknown;
    });
    if (newest != rows->rend()) RecallRoute(*newest, &route);
  }
}

void RoutingLoop::RecallRoute(const StoredRouting& newest, Route* route) const {
  const auto ago = std::chrono::milliseconds(std::max<int64_t>(0, UnixNow() - newest.written_at));
  const Instant at = clock_->Now() - ago;
  if (newest.row.takes_back) route->held_until = at + kSettlesHeld * config().settle;
  if (newest.row.measured_ms || ago > kSettlesPatience * config().settle) return;
  Change change{.row = newest.number,
                .at = at,
                .before = {},
                .after = {},
                .measured_ms = newest.row.measured_now_ms,
                .predicted_ms = newest.row.predicted_ms};
  for (const RoutedRegion& region : newest.row.regions) {
    change.before.push_back({region.region, region.now});
    change.after.push_back({region.region, region.allowed});
  }
  route->change = std::move(change);
}

void RoutingLoop::Measure(const Service& service) {
  for (size_t i = 0; i < routes_.size(); ++i) {
    const auto own = static_cast<size_t>(plan_.ServiceOf(config().routes[i]));
    if (routes_[i].change && &services_[own] == &service) MeasureOne(i, service.round->view());
  }
}

void RoutingLoop::MeasureOne(size_t route, const RegionView& view) {
  Route& one = routes_[route];
  const std::string& origin = config().routes[route].origin;
  if (!StillStands(route)) {  // What is measured from now on is of another split.
    one.change.reset();
    return;
  }
  const auto latency = view.Latency(origin.empty() ? -1 : plan_.RegionOf(origin));
  const bool is_settled = latency && latency->at >= one.change->at + config().settle;
  if (!is_settled) {
    if (clock_->Now() > one.change->at + kSettlesPatience * config().settle) one.change.reset();
    return;
  }
  const Change change = *std::exchange(one.change, std::nullopt);
  const double measured_ms = kMsPerS * latency->value;
  Conclude(change.row, {.fate = std::nullopt, .failure = "", .measured_ms = measured_ms});
  const bool is_slower = change.predicted_ms > 0 && change.measured_ms &&
                         measured_ms > (1 + kSlowerThanPredicted) * change.predicted_ms &&
                         measured_ms > kSlowerThanBefore * *change.measured_ms;
  if (is_slower && ActsOn(route)) TakeBack(route, change, measured_ms);
}

// Whether the split that was set is the one that was read last: somebody else may have changed it.
bool RoutingLoop::StillStands(size_t route) const {
  const Route& one = routes_[route];
  if (!one.standing) return true;  // It is not known to have changed.
  const Split now = SplitOf(*one.standing, config().routes[route].backends);
  const Split& set = one.change->after;
  const double smallest = 1.5 / static_cast<double>(driver_->weight_sum(route));
  return std::equal(now.begin(), now.end(), set.begin(), set.end(),
                    [&](const RegionShare& a, const RegionShare& b) {
                      return a.region == b.region && std::abs(a.share - b.share) <= smallest;
                    });
}

// To the split before, in one step; regions that are not healthy still get nothing.
void RoutingLoop::TakeBack(size_t route, const Change& change, double measured_ms) {
  Route& one = routes_[route];
  one.held_until = clock_->Now() + kSettlesHeld * config().settle;
  if (!one.standing || driver_->is_busy(route)) return;
  SplitLimits limits = config().limits;
  limits.step = 1;
  Result<SplitPlan> plan = PlanSplit(*one.standing, change.before, config().routes[route].backends,
                                     driver_->weight_sum(route), {}, limits);
  if (!plan || !plan->changes || plan->review.is_frozen) return;
  RouteChoice choice{.decision = {.route = config().routes[route].name,
                                  .target = one.standing->target,
                                  .policy = plan_.policy_name,
                                  .baseline = plan_.baseline_name,
                                  .objective = plan_.objective,
                                  .takes_back = true,
                                  .verdict = {.allowed = true, .reason = ""}},
                     .plan = *std::move(plan)};
  choice.decision.reasons.push_back(
      fmt::format("the last change is taken back: response time was {:.1f} ms, predicted were "
                  "{:.1f} ms, and {:.1f} ms were measured before it",
                  measured_ms, change.predicted_ms, change.measured_ms.value_or(0)));
  for (size_t i = 0; i < choice.plan.standing.size(); ++i) {
    choice.decision.regions.push_back({.region = choice.plan.standing[i].region,
                                       .now = choice.plan.standing[i].share,
                                       .wanted = change.before[i].share,
                                       .allowed = choice.plan.review.split[i].share,
                                       .is_healthy = one.standing->backends[i].is_healthy,
                                       .one_more = {}});
  }
  CarryOut(route, std::move(choice));
}

}  // namespace rudderfish
