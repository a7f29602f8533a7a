// SPDX-License-Identifier: Apache-2.0
#include "run/routing_round.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "task/split_prediction.h"

namespace rudderfish {
namespace {

constexpr double kMsOfSecond = 1000;
constexpr double kSmallestShare = 1e-6;

// Regions that get requests and should not.
bool MustDrain(const StandingWeights& standing) {
  return std::any_of(standing.backends.begin(), standing.backends.end(),
                     [](const StandingBackend& one) {
                       return one.weight > 0 && (!one.is_healthy || one.is_closed);
                     });
}

// It was read, and is not switched off by weights that are all 0.
bool IsOn(const RouteNow& route) {
  return route.standing != nullptr &&
         std::any_of(route.standing->backends.begin(), route.standing->backends.end(),
                     [](const StandingBackend& one) { return one.weight > 0; });
}

bool AnyHealthy(const StandingWeights& standing) {
  return std::any_of(standing.backends.begin(), standing.backends.end(),
                     [](const StandingBackend& one) { return one.is_healthy && !one.is_closed; });
}

}  // namespace

RoutingRound::RoutingRound(const RoutingPlan* plan, int service)
    : plan_(plan),
      service_(service),
      view_(plan->laws[static_cast<size_t>(service)],
            {.name = plan->ServiceName(service), .pods_of_node = plan->PodsOfNode(service)},
            plan->config.interval, plan->config.limits.signals_max_age),
      standing_(plan->world->network->rtt_s.size(), 0.0),
      backends_(static_cast<size_t>(plan->world->network->size())) {
  policy_.policy = plan->policy.get();
  const std::shared_ptr<const RegionLaws>& laws = plan->laws[static_cast<size_t>(service)];
  policy_.memory = plan->policy->NewMemory(laws);
  if (plan->baseline == nullptr) return;
  baseline_.policy = plan->baseline.get();
  baseline_.memory = plan->baseline->NewMemory(laws);
}

bool RoutingRound::IsMine(size_t route) const {
  return plan_->ServiceOf(plan_->config.routes[route]) == service_;
}

// Takes over the shares of one route, and what it shows of regions.
std::string RoutingRound::TakeStanding(const RouteConfig& route, const StandingWeights& standing) {
  const RegionNetwork& network = *plan_->world->network;
  const Split split = SplitOf(standing, route.backends);
  std::vector<double> row(static_cast<size_t>(network.size()), 0.0);
  for (size_t i = 0; i < split.size(); ++i) {
    const int region = plan_->RegionOf(split[i].region);
    if (region < 0)
      return fmt::format("{}: its backend {} is no region; name it under `backends`", route.name,
                         standing.backends[i].name);
    row[static_cast<size_t>(region)] = split[i].share;
    RegionBackendSight& seen = backends_[static_cast<size_t>(region)];
    seen.is_healthy = seen.is_healthy && standing.backends[i].is_healthy;
    if (!seen.ready) seen.ready = standing.backends[i].ready;
  }
  const int origin = route.origin.empty() ? -1 : plan_->RegionOf(route.origin);
  for (int from = 0; from < network.size(); ++from) {
    if (origin >= 0 && from != origin) continue;
    std::copy(row.begin(), row.end(),
              standing_.begin() + static_cast<std::ptrdiff_t>(network.At(from, 0)));
  }
  return "";
}

std::string RoutingRound::Look(const Signals& signals, std::span<const RouteNow> routes,
                               std::span<const std::optional<RegionPods>> pods, Instant now,
                               UnixMillis wall) {
  problem_ = TakeRoutes(routes);
  if (problem_.empty()) {
    for (size_t r = 0; r < pods.size(); ++r) backends_[r].pods = pods[r];
    problem_ = view_.Look(signals, backends_, standing_, now, wall);
  }
  return problem_;
}

std::string RoutingRound::TakeRoutes(std::span<const RouteNow> routes) {
  const RegionNetwork& network = *plan_->world->network;
  std::fill(standing_.begin(), standing_.end(), 0.0);
  for (int r = 0; r < network.size(); ++r) standing_[network.At(r, r)] = 1;
  std::fill(backends_.begin(), backends_.end(), RegionBackendSight());
  bool is_any_on = false;
  for (size_t i = 0; i < routes.size(); ++i) {
    if (!IsMine(i) || !IsOn(routes[i]))
      continue;  // As far as is known its requests are served at home.
    if (std::string why = TakeStanding(plan_->config.routes[i], *routes[i].standing); !why.empty())
      return why;
    is_any_on = true;
  }
  return is_any_on ? "" : "no route was read that serves requests";
}

RoutingQuestion RoutingRound::Ahead() const {
  RoutingQuestion question = view_.question();
  question.interval_s = std::max(question.interval_s, plan_->world->interval_s);
  return question;
}

void RoutingRound::Ask(Asked* asked) {
  const RoutingQuestion question = view_.question();
  asked->shares = standing_;
  asked->nodes.clear();
  for (const RegionSight& seen : question.regions) {
    for (int price = 0; price < kNodePrices; ++price) asked->nodes.push_back(seen.nodes(price));
  }
  asked->policy->Decide(question, asked->memory.get(),
                        {.shares = asked->shares, .nodes = asked->nodes});
}

Split RoutingRound::WantedOn(const RouteConfig& route, const std::vector<double>& shares) const {
  const RegionNetwork& network = *plan_->world->network;
  const int origin = route.origin.empty() ? -1 : plan_->RegionOf(route.origin);
  Split split;
  double all = 0;
  for (int to = 0; to < network.size(); ++to) {
    double sum = 0;
    for (int from = 0; from < network.size(); ++from) {
      if (origin >= 0 && from != origin) continue;
      // Without any demand all origins count alike.
      const double demand =
          std::max(view_.sights()[static_cast<size_t>(from)].demand_per_s, kSmallestShare);
      sum += (origin >= 0 ? 1 : demand) * shares[network.At(from, to)];
    }
    split.push_back({network.regions[static_cast<size_t>(to)].name, sum});
    all += sum;
  }
  for (RegionShare& one : split) one.share /= all;
  return split;
}

std::vector<double> RoutingRound::With(const RouteConfig& route, const Split& split) const {
  const RegionNetwork& network = *plan_->world->network;
  const int origin = route.origin.empty() ? -1 : plan_->RegionOf(route.origin);
  std::vector<double> shares = standing_;
  for (const RegionShare& one : split) {
    const int to = plan_->RegionOf(one.region);
    for (int from = 0; from < network.size(); ++from) {
      if (origin < 0 || from == origin) shares[network.At(from, to)] = one.share;
    }
  }
  return shares;
}

Result<SplitPlan> RoutingRound::PlanOf(const RouteConfig& route, const RouteNow& now,
                                       const Split& wanted) const {
  return PlanSplit(*now.standing, wanted, route.backends, now.weight_sum, view_.signals_age(),
                   plan_->config.limits);
}

std::vector<RouteChoice> RoutingRound::Decide(std::span<const RouteNow> routes) {
  if (!problem_.empty()) return DecideBlind(routes);
  Ask(&policy_);
  if (baseline_.policy != nullptr) Ask(&baseline_);
  std::vector<RouteChoice> choices;
  for (size_t i = 0; i < routes.size(); ++i) {
    if (IsMine(i) && IsOn(routes[i]) && routes[i].is_current)
      choices.push_back(Choose(plan_->config.routes[i], routes[i]));
  }
  return choices;
}

RouteChoice RoutingRound::Choose(const RouteConfig& route, const RouteNow& now) {
  RouteChoice choice;
  RoutingDecision& decision = choice.decision;
  decision.route = route.name;
  decision.target = now.standing->target;
  decision.policy = plan_->policy_name;
  decision.baseline = plan_->baseline_name;
  decision.objective = plan_->objective;
  const Split wanted = WantedOn(route, policy_.shares);
  Result<SplitPlan> plan = PlanOf(route, now, wanted);
  if (!plan) {
    decision.verdict = {.allowed = false, .reason = plan.error().message};
    return choice;
  }
  choice.plan = *std::move(plan);
  decision.reasons = choice.plan.review.reasons;
  const int origin = route.origin.empty() ? -1 : plan_->RegionOf(route.origin);
  const RoutingQuestion question = Ahead();
  for (size_t i = 0; i < choice.plan.standing.size(); ++i) {
    RoutedRegion region{.region = choice.plan.standing[i].region,
                        .now = choice.plan.standing[i].share,
                        .allowed = choice.plan.review.split[i].share,
                        .is_healthy = now.standing->backends[i].is_healthy,
                        .one_more = {}};
    const int to = plan_->RegionOf(region.region);
    region.wanted = wanted[static_cast<size_t>(to)].share;
    // Of a route of all origins, one request more of the region itself.
    const SplitPrediction more = PredictOneMore(question, standing_, origin < 0 ? to : origin, to);
    region.one_more.assign(more.parts.begin(), more.parts.end());
    decision.regions.push_back(std::move(region));
  }
  Judge(route, now, &choice);
  return choice;
}

void RoutingRound::Judge(const RouteConfig& route, const RouteNow& now, RouteChoice* choice) const {
  RoutingDecision& decision = choice->decision;
  const RoutingQuestion question = Ahead();
  const int origin = route.origin.empty() ? -1 : plan_->RegionOf(route.origin);
  const std::vector<double> after = With(route, choice->plan.review.split);
  const double cost_now = PredictSplit(question, standing_, -1).objective();
  const double cost_after = PredictSplit(question, after, -1).objective();
  decision.gain = cost_now - cost_after;
  decision.predicted_now_ms = kMsOfSecond * PredictSplit(question, standing_, origin).response_s;
  decision.predicted_ms = kMsOfSecond * PredictSplit(question, after, origin).response_s;
  if (const auto latency = view_.Latency(origin))
    decision.measured_now_ms = kMsOfSecond * latency->value;
  for (int from = 0; from < plan_->world->network->size(); ++from) {
    if (origin < 0 || from == origin)
      decision.demand_per_s += view_.sights()[static_cast<size_t>(from)].demand_per_s;
  }
  if (baseline_.policy != nullptr) {
    const Result<SplitPlan> others = PlanOf(route, now, WantedOn(route, baseline_.shares));
    if (others) {
      for (size_t i = 0; i < decision.regions.size(); ++i)
        decision.regions[i].baseline = others->review.split[i].share;
      decision.gain_over_baseline =
          PredictSplit(question, With(route, others->review.split), -1).objective() - cost_after;
    }
  }
  const double gain_min = plan_->config.gain_min;
  decision.verdict = {.allowed = true, .reason = ""};
  if (choice->plan.review.is_frozen) {
    decision.verdict = {.allowed = false, .reason = choice->plan.review.reasons.back()};
  } else if (!choice->plan.changes || MustDrain(*now.standing)) {
    return;  // Nothing is to be done, or it is to be done at once.
  } else if (!now.why_held.empty()) {
    decision.verdict = {.allowed = false, .reason = now.why_held};
  } else if (decision.gain < gain_min * cost_now) {
    decision.verdict = {
        .allowed = false,
        .reason = fmt::format("it gains {:.2g} % of what a request costs, less than the {:g} % "
                              "for which a split is changed",
                              100 * decision.gain / cost_now, 100 * gain_min)};
  }
}

std::vector<RouteChoice> RoutingRound::DecideBlind(std::span<const RouteNow> routes) const {
  std::vector<RouteChoice> choices;
  for (size_t i = 0; i < routes.size(); ++i) {
    const RouteConfig& route = plan_->config.routes[i];
    const StandingWeights* standing = routes[i].standing;
    if (!IsMine(i) || standing == nullptr || !routes[i].is_current) continue;
    if (!MustDrain(*standing) || !AnyHealthy(*standing)) continue;
    const Split now = SplitOf(*standing, route.backends);
    Result<SplitPlan> plan =
        PlanSplit(*standing, now, route.backends, routes[i].weight_sum, {}, plan_->config.limits);
    if (!plan || !plan->changes) continue;
    RouteChoice choice{.decision = {.route = route.name,
                                    .target = standing->target,
                                    .policy = plan_->policy_name,
                                    .baseline = plan_->baseline_name,
                                    .objective = plan_->objective,
                                    .reasons = plan->review.reasons,
                                    .verdict = {.allowed = true, .reason = ""}},
                       .plan = *std::move(plan)};
    choice.decision.reasons.push_back("nothing else is decided: " + problem_);
    for (size_t r = 0; r < now.size(); ++r) {
      choice.decision.regions.push_back({.region = now[r].region,
                                         .now = now[r].share,
                                         .wanted = now[r].share,
                                         .allowed = choice.plan.review.split[r].share,
                                         .is_healthy = standing->backends[r].is_healthy,
                                         .one_more = {}});
    }
    choices.push_back(std::move(choice));
  }
  return choices;
}

}  // namespace rudderfish
