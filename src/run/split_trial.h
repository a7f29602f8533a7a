// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "cloud/split.h"
#include "cluster/signals.h"
#include "control/journal_reader.h"
#include "run/routing_config.h"
#include "run/routing_round.h"

// What becomes of the splits that are set on one route: each is measured once it has settled, no
// other is set before, and one that made requests slower than predicted is taken back, after which
// the route is left alone for a while. `settle` is the configuration's. Acts upon nothing. One
// thread.

namespace rudderfish {

// A split that is being set, or was and is to be measured.
struct SplitChange {
  int64_t row = 0;  // In the journal.
  Instant at;
  Split before, after;                // That stood before it, and that was set.
  std::optional<double> measured_ms;  // Before it.
  double predicted_ms = 0;            // 0: nothing was predicted.
};

class SplitTrial {
 public:
  // What an earlier process has set on the route is measured, or left alone, as if it were ours.
  void Recall(const JournalReader& reader, const std::string& route, Instant now, Duration settle);

  // It is being set. What was set before is not measured any more.
  void Begin(SplitChange change);

  // It has been, at that time, or could not be. Returns its row; nothing: none was being set.
  std::optional<int64_t> End(std::optional<Instant> set_at);

  struct Outcome {
    SplitChange change;
    double measured_ms = 0;
    bool is_slower = false;  // Than predicted, and than before.
  };
  // The outcome of the split that was set, once, as soon as it can be said; what is not measured in
  // time, or does not stand any more, is forgotten. `latency`: of the requests of the route.
  std::optional<Outcome> Measure(const RouteConfig& route, const RouteNow& seen,
                                 const std::optional<SignalValue>& latency, Instant now,
                                 Duration settle);

  // The split is taken back.
  void Hold(Instant now, Duration settle);

  // Why the route is not to be changed; empty: it may be.
  std::string WhyHeld(Instant now) const;

 private:
  std::optional<SplitChange> setting_;  // Under way.
  std::optional<SplitChange> change_;   // Set, and not measured yet.
  Instant held_until_;                  // After a change that was taken back.
};

// To the split before, in one step; regions that are not healthy still get nothing. Nothing: it
// cannot be, or it stands. REQUIRES: the route was read.
std::optional<RouteChoice> TakeBack(const RoutingPlan& plan, const RouteConfig& route,
                                    const RouteNow& seen, const SplitTrial::Outcome& outcome);

}  // namespace rudderfish
