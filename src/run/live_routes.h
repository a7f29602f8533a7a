// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cloud/xds_server.h"
#include "cluster/signals.h"
#include "run/route_driver.h"
#include "run/routing_plan.h"
#include "run/routing_round.h"

// The routes of a configuration on their data paths: all of them are read together, in rounds, and
// each is known as it was read last, with what signals say of regions. Decides nothing. One thread.

namespace rudderfish {

struct LiveRoute {
  std::optional<StandingWeights> standing;  // As it was read last.
  Instant read_at;
  std::string trouble;      // Why it could not be read or set; empty: it could.
  bool is_awaited = false;  // In this round.
};

class LiveRoutes {
 public:
  // Both outlive it. There are no routes before Open.
  LiveRoutes(const RoutingPlan* plan, const Clock* clock) : plan_(plan), clock_(clock) {}

  // Begins with the routes of the plan, or goes on with others once it has become another. Waits
  // for the requests that are being sent. `xds`: that paths use; null: none does.
  void Open(std::vector<RouteDriver::Route> paths, std::unique_ptr<XdsServer> xds);

  // Clients of xDS are told what is set. Where that cannot be, it is tried again.
  void Serve();
  // They go to who leads now, and until then by what they were told last.
  void HangUp();

  // Begins a round: reads all routes on which no split is being set.
  void Read();
  // Whether the round was read. A data path that does not answer is left out of it.
  bool IsRead() const;

  struct SetEnd {
    size_t route = 0;
    Instant at;
    std::string failure;  // Empty: the split stands.
  };
  // Takes over what was read, until a split that was to be set; nothing: that was all.
  std::optional<SetEnd> Take();

  // Regions whose health data paths do not show are as healthy as signals say.
  void FollowHealth(const Signals& signals);

  const LiveRoute& route(size_t route) const { return routes_[route]; }
  RouteNow Now(size_t route) const;  // Held by nothing.

  RouteDriver& driver() { return *driver_; }
  const RouteDriver& driver() const { return *driver_; }
  const XdsServer& xds() const { return *xds_; }  // REQUIRES: a route uses it.

  std::string Trouble() const;  // Of one of them; empty: none has any.

 private:
  const RoutingConfig& config() const { return plan_->config; }
  void Close(const RouteConfig& named, StandingWeights* standing) const;
  void TellEmptyRegions(const Signals& signals, size_t route);

  const RoutingPlan* plan_;
  const Clock* clock_;
  std::unique_ptr<XdsServer> xds_;
  std::string xds_trouble_;              // Why it does not listen; empty: it does, or need not.
  Instant xds_due_;                      // When that is tried again.
  std::unique_ptr<RouteDriver> driver_;  // Its routes use xds_.
  std::vector<LiveRoute> routes_;
  Instant reading_since_;
};

}  // namespace rudderfish
