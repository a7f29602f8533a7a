// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/log.h"
#include "control/scheduler.h"

// What becomes of a Scheduler's Bindings, from the first sending until the watch shows the pod.

namespace rudderfish {
namespace {

constexpr Duration kBetweenLooks = std::chrono::milliseconds(100);
constexpr size_t kAskedMax = 16;  // At a time, of those whose time has come.

}  // namespace

void Scheduler::LookAtBindings(Instant now) {
  if (now < bindings_looked_at_ + kBetweenLooks) return;
  bindings_looked_at_ = now;
  for (const std::string& key : bindings_.Due(now)) {
    const SentBinding& binding = *bindings_.Find(key);
    // Of one that was long held back, or unanswered, the state has passed that it was decided on.
    const bool is_to_send = binding.stage == BindingStage::kUnclear &&
                            now < binding.decided_at + options_.unclear_limit;
    if (is_to_send) {
      Send(key);
    } else if (bindings_.count(BindingStage::kAsked) < kAskedMax) {
      counts_.unconfirmed += binding.stage == BindingStage::kSettled ? 1 : 0;
      Ask(key);
    }
  }
}

void Scheduler::Send(const std::string& key) {
  SentBinding& binding = *bindings_.Find(key);
  if (!leads_()) {  // Whoever does sees in the cluster what came of it.
    bindings_.Enter(&binding, BindingStage::kUnclear, clock_->Now() + options_.repeat);
    return;
  }
  bindings_.Enter(&binding, BindingStage::kSent);
  if (const auto waiting = waiting_.find(key); waiting != waiting_.end()) {
    std::vector<std::string>& sent = waiting->second.sent_to;
    if (sent.empty() || sent.back() != binding.node) sent.push_back(binding.node);
  }
  actuator_->Bind(binding.id, binding.node,
                  [this, key, row = binding.row](BindingOutcome outcome, const std::string& why) {
                    Answered(key, row, outcome, why);
                  });
}

void Scheduler::Answered(const std::string& key, int64_t row, BindingOutcome outcome,
                         const std::string& why) {
  SentBinding* binding = bindings_.Find(key);
  // The cluster may have shown it already.
  if (binding == nullptr || binding->row != row || binding->stage != BindingStage::kSent) return;
  const Instant now = clock_->Now();
  switch (outcome) {
    case BindingOutcome::kBound:
      Placed(binding);
      bindings_.Enter(binding, BindingStage::kSettled, now + options_.confirmation_limit);
      return;
    case BindingOutcome::kUnclear:
      ++counts_.unclear;
      binding->was_unclear = true;
      bindings_.Enter(binding, BindingStage::kUnclear, now + options_.repeat);
      return;
    case BindingOutcome::kConflict:
      ++counts_.conflicts;
      break;
    case BindingOutcome::kRefused:
      ++counts_.refused;
      break;
    case BindingOutcome::kGone:
      break;
  }
  binding->refusal = why;
  // Who was refused is not bound, unless an earlier sending did it that was not heard of.
  if (outcome == BindingOutcome::kRefused && !binding->was_unclear) return NotBound(key);
  Ask(key);
}

void Scheduler::Ask(const std::string& key) {
  SentBinding* binding = bindings_.Find(key);
  bindings_.Enter(binding, BindingStage::kAsked);
  actuator_->LookUp(binding->id, [this, key, row = binding->row](const Result<PodStanding>& pod) {
    Found(key, row, pod);
  });
}

void Scheduler::Found(const std::string& key, int64_t row, const Result<PodStanding>& pod) {
  SentBinding* binding = bindings_.Find(key);
  if (binding == nullptr || binding->row != row || binding->stage != BindingStage::kAsked) return;
  const Instant now = clock_->Now();
  if (!pod) {
    LogDebug("it is not known where {} is: {}", key, pod.error().message);
    bindings_.Enter(binding, BindingStage::kToAsk, now + options_.repeat);
    return;
  }
  if (!pod->is_there || (pod->node.empty() && pod->is_terminating)) {
    counts_.gone += pod->is_there ? 0 : 1;
    End(binding, Fate::kFailed, pod->is_there ? "it is to end" : "it is gone");
    return Forget(key);
  }
  if (pod->node.empty()) return NotBound(key);
  if (pod->node == binding->node) {
    Placed(binding);
  } else {
    BoundElsewhere(binding, pod->node);
  }
  bindings_.Enter(binding, BindingStage::kSettled, now + options_.confirmation_limit);
}

// It is decided anew: at once if nobody has said no.
void Scheduler::NotBound(const std::string& key) {
  SentBinding* binding = bindings_.Find(key);
  const std::string why = binding->refusal;
  End(binding, Fate::kFailed, why.empty() ? "it was not done" : why);
  Unassume(key);
  const auto at = waiting_.find(key);
  if (at == waiting_.end()) return;
  Waiting& waiting = at->second;
  if (why.empty()) return queue_.Add(key, waiting.shape->priority);
  queue_.BackOff(key, clock_->Now());
  actuator_->TellWaiting(waiting.id, why);
  waiting.told = why;
  waiting.refusal.clear();
  waiting.kinds.clear();
}

// The room that it takes is that of another node.
void Scheduler::BoundElsewhere(SentBinding* binding, const std::string& node) {
  ++counts_.bound_elsewhere;
  End(binding, Fate::kFailed, fmt::format("it has been bound to {}", node));
  binding->node = node;
  const std::string key = binding->id.Key();
  const std::optional<SchedulingTables::Taken> taken = tables_.Take(key);
  if (!taken) return;
  tables_.Place(key, taken->shape, node, taken->life);
  NoteOtherHold(taken->node);
  NoteOtherHold(node);
  to_look_at_.insert(node);
}

// There is nothing to decide about it any more.
void Scheduler::Forget(const std::string& key) {
  Unassume(key);
  EndWaiting(key);
}

// A binding is not waited for any more. Its room is free unless the cluster has said that it is
// taken.
void Scheduler::Unassume(const std::string& key) {
  SentBinding* binding = bindings_.Find(key);
  if (binding == nullptr) return;
  End(binding, Fate::kFailed, "the cluster does not show it");
  bindings_.Erase(key);
  Free(key);
}

void Scheduler::End(SentBinding* binding, Fate fate, const std::string& failure) {
  if (std::exchange(binding->is_ended, true)) return;
  ends_.push_back({binding->row, fate, failure});
}

void Scheduler::Placed(SentBinding* binding) {
  if (binding->is_ended) return;
  ++counts_.bound;
  actuator_->TellPlaced(binding->id, binding->node);
  End(binding, Fate::kDone);
}

}  // namespace rudderfish
