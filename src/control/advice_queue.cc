// SPDX-License-Identifier: Apache-2.0
#include "control/advice_queue.h"

#include <utility>

namespace rudderfish {
namespace {

constexpr int kClassesAtATime = 16;

}  // namespace

void AdviceQueue::Add(const std::string& key) {
  if (queued_.insert(key).second) queue_.push_back(key);
}

std::optional<std::string> AdviceQueue::Pop() {
  if (queue_.empty()) return std::nullopt;
  std::string key = std::move(queue_.front());
  queue_.pop_front();
  queued_.erase(key);
  return key;
}

void AdviceQueue::NoteNowhere(const std::string& key, const Shape& shape) {
  nowhere_[shape].insert(key);
}

void AdviceQueue::LookAgain(
    SchedulingTables* tables,
    const std::function<bool(const std::string& key, const Shape& shape)>& waits) {
  if (nowhere_.empty()) return;
  if (to_look_at_.empty() && std::exchange(looked_at_, tables->changes()) != tables->changes()) {
    for (const auto& [shape, keys] : nowhere_) to_look_at_.push_back(shape);
  }
  SchedulingRules& rules = tables->Rules();
  for (int i = 0; i < kClassesAtATime && !to_look_at_.empty(); ++i) {
    const Shape shape = std::move(to_look_at_.back());
    to_look_at_.pop_back();
    const auto at = nowhere_.find(shape);
    if (at == nowhere_.end()) continue;
    std::erase_if(at->second, [&](const std::string& key) { return !waits(key, shape); });
    bool is_taken = at->second.empty();
    if (!is_taken) {
      const PodClassId pod = rules.Register(shape);
      rules.Filter(pod, &feasibility_);
      rules.LimitLatency(pod, &feasibility_);
      is_taken = feasibility_.feasible > 0;
    }
    if (!is_taken) continue;
    for (const std::string& key : at->second) Add(key);
    nowhere_.erase(at);
  }
}

void AdviceQueue::Clear() { *this = {}; }

}  // namespace rudderfish
