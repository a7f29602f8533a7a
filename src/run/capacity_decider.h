// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "control/mode.h"
#include "run/capacity.h"
#include "run/routing_plan.h"
#include "run/routing_round.h"
#include "run/routing_rows.h"

// Decides how many VMs or pods there are to be in regions. What a policy wants of nodes is decided
// by the routing that it goes with; here it is bounded, written to the journal, and aimed at. One
// thread.

namespace rudderfish {

class CapacityDecider {
 public:
  // All outlive it. Looks at nothing before Open.
  CapacityDecider(const RoutingPlan* plan, const Clock* clock, RoutingRows* rows)
      : plan_(plan), clock_(clock), rows_(rows) {}

  // Begins, or goes on once the plan has become another. Waits for the requests that are being
  // sent.
  void Open();

  // Pods of a service by region, as VMs and Deployments show them; empty: no region has any.
  // Nothing of a region: it was not looked at of late.
  std::vector<std::optional<RegionPods>> PodsOf(int service) const;

  // `rounds` [service] have looked and decided. Acts in enforce, for the next two intervals.
  void Decide(Mode mode, std::span<const RoutingRound> rounds);

  // From now on fleets are only looked at.
  void DropAims();

  // Why a fleet could not be looked at or changed; empty: all could.
  std::string Trouble() const;
  OrderedJson Status() const;

 private:
  struct Fleet {                                 // What was decided about it last.
    Instant since;                               // When it was first decided about,
    std::deque<std::pair<Instant, int>> wanted;  // and what was wanted within `settle`.
    std::optional<int64_t> row;                  // In the journal, not concluded yet.
    int aim = 0;
    bool has_aim = false;
    Mode mode = Mode::kOff;  // That it was decided in.
  };

  const RoutingConfig& config() const { return plan_->config; }
  bool IsFresh(const CapacityDriver::Standing& standing) const;
  std::optional<int> WantedOf(const CapacityConfig& named,
                              std::span<const RoutingRound> rounds) const;
  int WantedLately(int wanted, int now, Fleet* fleet) const;
  void DecideFleet(size_t index, const CapacitySight& sight, Mode mode,
                   std::span<const RoutingRound> rounds);

  const RoutingPlan* plan_;
  const Clock* clock_;
  RoutingRows* rows_;
  std::unique_ptr<CapacityDriver> driver_;  // Null: no region has one.
  std::vector<Fleet> fleets_;               // As in the configuration.
};

}  // namespace rudderfish
