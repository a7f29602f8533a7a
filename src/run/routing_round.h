// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "cloud/split_enactor.h"
#include "control/routing_decision.h"
#include "run/region_view.h"
#include "run/routing_plan.h"

// Decisions about all routes of a service at once: the policy says where requests of each region
// go, the guard what of it may be done on each route now, and the Model what both are worth.
// Remembers what the policies remember, touches nothing. One thread.

namespace rudderfish {

// A route as it stands; `why_held` says why it is not to be changed, unless a region that gets
// requests is not healthy.
struct RouteNow {
  const StandingWeights* standing = nullptr;
  int64_t weight_sum = 0;  // What the weights of its splits sum to.
  bool is_current = true;  // Read in this round, and not being set; else it is not decided about.
  std::string why_held;
};

struct RouteChoice {
  RoutingDecision decision;  // Its verdict says whether the plan may be carried out.
  SplitPlan plan;
};

class RoutingRound {
 public:
  // Of the routes of one service. `plan` outlives it.
  RoutingRound(const RoutingPlan* plan, int service);

  // Looks at regions and routes. Returns why nothing can be decided; empty: all can.
  // `pods` [region]: that its capacity shows; empty: none does.
  std::string Look(const Signals& signals, std::span<const RouteNow> routes,
                   std::span<const std::optional<RegionPods>> pods, Instant now, UnixMillis wall);

  // One choice for each route of its service that is current. Where nothing can be decided, regions
  // that are not healthy get no requests any more, and nothing else changes. `routes` are those
  // that Look has seen, all of the configuration.
  std::vector<RouteChoice> Decide(std::span<const RouteNow> routes);

  const std::string& problem() const { return problem_; }  // As Look returned it last.
  const RegionView& view() const { return view_; }
  std::span<const int> nodes() const { return policy_.nodes; }  // [region][price] Wanted.

 private:
  struct Asked {  // A policy, and what it answered last.
    const RoutingPolicy* policy = nullptr;
    std::unique_ptr<RoutingMemory> memory;
    std::vector<double> shares;  // [origin][target]
    std::vector<int> nodes;      // [region][price]
  };

  bool IsMine(size_t route) const;
  std::vector<RouteChoice> DecideBlind(std::span<const RouteNow> routes) const;
  std::string TakeRoutes(std::span<const RouteNow> routes);
  void Ask(Asked* asked);
  // What predictions are about: the scenario's interval, as queues take their time.
  RoutingQuestion Ahead() const;
  std::string TakeStanding(const RouteConfig& route, const StandingWeights& standing);
  Split WantedOn(const RouteConfig& route, const std::vector<double>& shares) const;
  // `standing_` with the shares of a route replaced.
  std::vector<double> With(const RouteConfig& route, const Split& split) const;
  // Of what a policy wants on a route, what may be done now.
  Result<SplitPlan> PlanOf(const RouteConfig& route, const RouteNow& now,
                           const Split& wanted) const;
  RouteChoice Choose(const RouteConfig& route, const RouteNow& now);
  void Judge(const RouteConfig& route, const RouteNow& now, RouteChoice* choice) const;

  const RoutingPlan* plan_;
  int service_;
  RegionView view_;
  std::string problem_;
  std::vector<double> standing_;              // [origin][target]
  std::vector<RegionBackendSight> backends_;  // [region]
  Asked policy_, baseline_;
};

}  // namespace rudderfish
