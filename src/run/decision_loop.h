// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "control/mode_ladder.h"
#include "run/run_metrics.h"
#include "run/switch_request.h"

// One kind of decision as a Host runs it, beside others in the same process: what it watches and
// decides. What all kinds share (API client, Lease, switches, journal, status) is the Host's. One
// thread, the Host's.

namespace rudderfish {

class DecisionLoop {
 public:
  virtual ~DecisionLoop() = default;

  // Its name, and the mode that it has reached.
  virtual SwitchedKind Kind() const = 0;

  // All that it needs of the cluster has been seen, and it begins. Before it nothing else is asked.
  virtual Result<void> Begin() = 0;

  // What has come from the cluster has been told. Does not wait.
  virtual void Poll() = 0;

  // One slice of work, if it is due: the other kinds wait for it, so it decides once, not all that
  // is due. True: more may be done at once.
  virtual bool Turn() = 0;
  virtual std::chrono::milliseconds UntilDue() const = 0;

  // The mode, a switch or the leadership may have changed.
  virtual void FollowMode() = 0;

  // By which it is promoted and demoted; null: it has no mode (an extender alone).
  virtual ModeLadder* ladder() const = 0;

  // What it did was worse than it should be, and it is back in shadow: tells people.
  virtual void TellCanaryEnded(const std::string& /*why*/) {}

  // What is wrong with what is seen of the cluster, or with writing the journal; empty: nothing.
  virtual std::string ClusterTrouble() const = 0;
  virtual std::string JournalTrouble() const = 0;

  // Adds the Events that it sends.
  virtual void Count(ClusterCounts* counts) const = 0;

  // Shows its metrics. A few times a second.
  virtual void Report() = 0;
  // Its own part of `status`, next to the modes that each kind has.
  virtual OrderedJson Status() const = 0;
  virtual std::string Describe() const = 0;  // What it does, in a few words.

  // Before the end: whether something is under way whose end belongs in the journal; that no
  // action may begin any more; whether something is still to be told to people.
  virtual bool IsActing() const { return false; }
  virtual void EndActing() {}
  virtual bool IsTelling() const { return false; }
};

}  // namespace rudderfish
