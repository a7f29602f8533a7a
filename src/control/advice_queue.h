// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "control/scheduling_tables.h"

// Pods that wait for another scheduler and are to be advised of a node. Those that no node takes
// are kept by class, and come again once one does: of a few classes at a time, as many may wait.
// One thread.

namespace rudderfish {

class AdviceQueue {
 public:
  using Shape = std::shared_ptr<const PodClass>;

  void Add(const std::string& key);  // Once, however often.
  std::optional<std::string> Pop();

  void NoteNowhere(const std::string& key, const Shape& shape);

  // Adds those that a node takes now; forgets those for which `waits` says no.
  void LookAgain(SchedulingTables* tables,
                 const std::function<bool(const std::string& key, const Shape& shape)>& waits);
  void Clear();

 private:
  std::deque<std::string> queue_;
  std::unordered_set<std::string> queued_;
  std::map<Shape, std::set<std::string>> nowhere_;
  std::vector<Shape> to_look_at_;  // Of nowhere_, in this round.
  int64_t looked_at_ = -1;         // SchedulingTables::changes() when the round began.
  Feasibility feasibility_;
};

}  // namespace rudderfish
