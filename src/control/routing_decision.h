// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/wall_time.h"
#include "control/journal.h"

// What was decided about the split of requests on one route, and why: one row a route and decision.
// The Model predicts what stands, what was chosen and what a baseline would have chosen under the
// same demand; what is measured later is held against it. Not thread safe.

namespace rudderfish {

// One region of a route, as it was decided about.
struct RoutedRegion {
  std::string region;
  double now = 0, wanted = 0, allowed = 0, baseline = 0;  // Shares, 0 to 1.
  bool is_healthy = true;
  // One request more there, in units of the objective, by part (SplitPartName): why it gets what it
  // gets. Infinite, which JSON writes as null: it serves none.
  std::vector<double> one_more;
};

// Of a decision about how many VMs or pods a region has, instead of regions and their shares.
struct RoutedCapacity {
  std::string unit;  // VM, pod
  int now = 0, wanted = 0, allowed = 0;
};

struct RoutingDecision {
  std::string route;   // As the configuration names it; "capacity/REGION" about VMs or pods.
  std::string target;  // "httproute shop/web, rule 0".
  std::string mode;
  std::string policy, baseline;  // What chose, and what it is compared with; empty: none.
  std::string objective;
  std::vector<RoutedRegion> regions;
  std::optional<RoutedCapacity> capacity;
  std::vector<std::string> reasons;  // Why not all that was wanted is allowed.
  bool takes_back = false;           // It undoes the change before, which made requests slower.
  // By how much the objective of a request is predicted to fall, in units: what is allowed against
  // what stands, and against what the baseline would do under the same guard.
  double gain = 0;
  std::optional<double> gain_over_baseline;
  // Mean response time: predicted for what stands and for what is allowed, and measured now.
  double predicted_now_ms = 0, predicted_ms = 0;
  std::optional<double> measured_now_ms;
  double demand_per_s = 0;  // Of the route.
  std::string request;      // The exact request; empty: nothing changes.
  Verdict verdict;          // Of the guard.

  Fate fate = Fate::kInFlight;  // kStayed: what is allowed stands already. kRecorded: in shadow.
  std::string failure;
  std::optional<double> measured_ms;  // Mean response time after it was done.
};

// The outcome of one: its fields of the same names, unless they are empty.
struct RoutingEnd {
  std::optional<Fate> fate;
  std::string failure;
  std::optional<double> measured_ms;
};

class RoutingJournal {
 public:
  virtual ~RoutingJournal() = default;

  // Returns the row's number; numbers grow. An error means that the row is not there, and that what
  // it says must not be done.
  virtual Result<int64_t> AppendRouting(const RoutingDecision& decision) = 0;
  virtual Result<void> ConcludeRouting(int64_t number, const RoutingEnd& end) = 0;
};

}  // namespace rudderfish
