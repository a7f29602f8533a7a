// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "control/scheduling_queue.h"
#include "model/scheduling_rules.h"

// Why no node takes the pods of a class, kept until something happens that may end it: of a
// thousand equal pods that fit nowhere, the rules are asked about one. One thread.

namespace rudderfish {

struct PodRefusal {
  std::string message;     // kube-scheduler's words.
  std::string kinds;       // The reasons in it, whatever the numbers of nodes.
  std::string preemption;  // What it might do by preempting, to follow that; empty: nothing.
  RejectionMask refused_by = 0;
};

class PodRefusals {
 public:
  // Something has happened that may end any refusal, or one by what depends on placed pods.
  void NoteFreed() { ++freed_; }
  void NotePlaced() { ++placed_; }

  // As it was found; nullptr: the rules are to be asked. `generation`: of the class's id.
  const PodRefusal* Find(PodClassId pod, int64_t generation);

  // Keeps why. REQUIRES: `feasibility` is what `rules` says now, and no node is feasible.
  // `scheduler`: who it is that does not preempt.
  const PodRefusal& Keep(const SchedulingRules& rules, PodClassId pod,
                         const Feasibility& feasibility, const std::string& scheduler);

 private:
  struct Kept {
    PodRefusal refusal;
    uint64_t freed = 0, placed = 0;  // When it was found.
  };

  std::unordered_map<PodClassId, Kept> kept_;
  int64_t generation_ = 0;
  uint64_t freed_ = 0, placed_ = 0;
};

}  // namespace rudderfish
