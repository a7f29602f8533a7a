// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "control/placement_actuator.h"
#include "control/pod_refusals.h"
#include "control/scheduling_queue.h"

// The pods that wait for a Scheduler: what it knows of each, when its turn is (SchedulingQueue),
// and why it waits, of which people are told whenever that was found. One thread.

namespace rudderfish {

struct WaitingPod {
  PodIdentity id;
  std::shared_ptr<const PodClass> shape;
  Instant since;
  std::string told;                // Why it waits, as it was said last,
  std::string refusal;             // and that without what is said of preemption.
  std::string kinds;               // Of the reasons in it, as they were written last.
  std::vector<std::string> given;  // Nodes that a Binding was sent for.
  bool is_opted_out = false;
  std::string nominated;  // By its status; empty: no node.
};

class WaitingPods {
 public:
  // The actuator outlives it.
  WaitingPods(SchedulingQueueOptions options, PlacementActuator* actuator)
      : queue_(options), actuator_(actuator) {}

  // It waits, or has changed. One whose Binding is under way has no turn until that has come to
  // nothing. True: it was not known.
  enum class Turn { kNow, kAfterBinding };
  bool Put(const std::string& key, const ObservedPod& pod, Turn turn, Instant now);
  void End(const std::string& key);  // Whatever became of it.

  // It goes on waiting: no node takes it. True: for other reasons than before; not that as pods
  // come and go other nodes, or other pods, are in the way.
  bool Refuse(const std::string& key, const PodRefusal& refusal, Instant now);
  // Its Binding came to nothing. It has its turn at once if it was not refused.
  void TryAgain(const std::string& key, const std::string& refusal, Instant now);

  WaitingPod* Find(const std::string& key);  // Null: it does not wait.
  const WaitingPod& at(const std::string& key) const { return pods_.at(key); }
  SchedulingQueue& queue() { return queue_; }
  const SchedulingQueue& queue() const { return queue_; }

 private:
  SchedulingQueue queue_;
  PlacementActuator* actuator_;
  std::unordered_map<std::string, WaitingPod> pods_;
};

}  // namespace rudderfish
