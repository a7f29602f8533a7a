// SPDX-License-Identifier: Apache-2.0
#include "control/sent_bindings.h"

#include <fmt/format.h>

#include <utility>

#include "base/log.h"

namespace rudderfish {
namespace {

constexpr Duration kBetweenLooks = std::chrono::milliseconds(100);
constexpr size_t kAskedMax = 16;  // At a time, of those whose time has come.

}  // namespace

SentBindings::SentBindings(const Limits& limits, const Clock* clock, PlacementActuator* actuator,
                           std::function<bool()> leads, BindingCounts* counts,
                           std::vector<PlacementEnd>* ends, OnNews on_news)
    : limits_(limits),
      clock_(clock),
      actuator_(actuator),
      leads_(std::move(leads)),
      told_(counts),
      ends_(ends),
      on_news_(std::move(on_news)) {}

void SentBindings::Begin(const std::string& key, SentBinding binding) {
  Erase(key);
  ++counts_[static_cast<size_t>(binding.stage)];
  Send(key, &bindings_.emplace(key, std::move(binding)).first->second);
}

void SentBindings::Look(Instant now) {
  if (now < looked_at_ + kBetweenLooks) return;
  looked_at_ = now;
  std::vector<std::string> due;
  for (const auto& [key, binding] : bindings_) {
    const bool is_awaited =
        binding.stage == BindingStage::kSent || binding.stage == BindingStage::kAsked;
    if (!is_awaited && binding.due <= now) due.push_back(key);
  }
  for (const std::string& key : due) {
    SentBinding& binding = bindings_.at(key);
    // Of one that was long held back, or unanswered, the state has passed that it was decided on.
    if (binding.stage == BindingStage::kUnclear && now < binding.decided_at + limits_.unclear) {
      Send(key, &binding);
    } else if (count(BindingStage::kAsked) < kAskedMax) {
      told_->unconfirmed += binding.stage == BindingStage::kSettled ? 1 : 0;
      Ask(key, &binding);
    }
  }
}

bool SentBindings::Show(const std::string& key, const PodIdentity& pod, const std::string& node) {
  const auto at = bindings_.find(key);
  if (at == bindings_.end()) return false;
  SentBinding& binding = at->second;
  const bool is_ours = binding.id == pod;
  if (is_ours) IsOn(key, &binding, node);
  End(&binding, Fate::kFailed, "another pod has its name");
  Erase(key);
  return is_ours;
}

bool SentBindings::Drop(const std::string& key) {
  const auto at = bindings_.find(key);
  if (at == bindings_.end()) return false;
  End(&at->second, Fate::kFailed, "the cluster does not show it");
  Erase(key);
  return true;
}

const SentBinding* SentBindings::Find(const std::string& key) const {
  const auto at = bindings_.find(key);
  return at == bindings_.end() ? nullptr : &at->second;
}

// Null: the cluster has shown it already.
SentBinding* SentBindings::FindIn(const std::string& key, int64_t row, BindingStage stage) {
  const auto at = bindings_.find(key);
  const bool is_it = at != bindings_.end() && at->second.row == row && at->second.stage == stage;
  return is_it ? &at->second : nullptr;
}

void SentBindings::Enter(SentBinding* binding, BindingStage stage, Instant due) {
  --counts_[static_cast<size_t>(binding->stage)];
  ++counts_[static_cast<size_t>(stage)];
  binding->stage = stage;
  binding->due = due;
}

void SentBindings::Erase(const std::string& key) {
  const auto at = bindings_.find(key);
  if (at == bindings_.end()) return;
  --counts_[static_cast<size_t>(at->second.stage)];
  bindings_.erase(at);
}

void SentBindings::Send(const std::string& key, SentBinding* binding) {
  if (!leads_()) {  // The leader sees the outcome in the cluster.
    Enter(binding, BindingStage::kUnclear, clock_->Now() + limits_.repeat);
    return;
  }
  Enter(binding, BindingStage::kSent);
  actuator_->Bind(binding->id, binding->node,
                  [this, key, row = binding->row](BindingOutcome outcome, const std::string& why) {
                    Answered(key, row, outcome, why);
                  });
}

void SentBindings::Answered(const std::string& key, int64_t row, BindingOutcome outcome,
                            const std::string& why) {
  SentBinding* binding = FindIn(key, row, BindingStage::kSent);
  if (binding == nullptr) return;
  const Instant now = clock_->Now();
  switch (outcome) {
    case BindingOutcome::kBound:
      IsOn(key, binding, binding->node);
      Enter(binding, BindingStage::kSettled, now + limits_.confirmation);
      return;
    case BindingOutcome::kUnclear:
      ++told_->unclear;
      binding->was_unclear = true;
      Enter(binding, BindingStage::kUnclear, now + limits_.repeat);
      return;
    case BindingOutcome::kConflict:
      ++told_->conflicts;
      break;
    case BindingOutcome::kRefused:
      ++told_->refused;
      break;
    case BindingOutcome::kGone:
      break;
  }
  binding->refusal = why;
  // Who was refused is not bound, unless an earlier sending did it that was not heard of.
  if (outcome == BindingOutcome::kRefused && !binding->was_unclear) return NotBound(key, binding);
  Ask(key, binding);
}

void SentBindings::Ask(const std::string& key, SentBinding* binding) {
  Enter(binding, BindingStage::kAsked);
  actuator_->LookUp(binding->id, [this, key, row = binding->row](const Result<PodStanding>& pod) {
    Found(key, row, pod);
  });
}

void SentBindings::Found(const std::string& key, int64_t row, const Result<PodStanding>& pod) {
  SentBinding* binding = FindIn(key, row, BindingStage::kAsked);
  if (binding == nullptr) return;
  const Instant now = clock_->Now();
  if (!pod) {
    LogDebug("it is not known where {} is: {}", key, pod.error().message);
    Enter(binding, BindingStage::kToAsk, now + limits_.repeat);
    return;
  }
  if (!pod->is_there || (pod->node.empty() && pod->is_terminating)) {
    told_->gone += pod->is_there ? 0 : 1;
    End(binding, Fate::kFailed, pod->is_there ? "it is to end" : "it is gone");
    Erase(key);
    return on_news_(key, BindingNews::kGone, "");
  }
  if (pod->node.empty()) return NotBound(key, binding);
  IsOn(key, binding, pod->node);
  Enter(binding, BindingStage::kSettled, now + limits_.confirmation);
}

// It is decided again.
void SentBindings::NotBound(const std::string& key, SentBinding* binding) {
  const std::string why = binding->refusal;
  End(binding, Fate::kFailed, why.empty() ? "it was not done" : why);
  Erase(key);
  on_news_(key, BindingNews::kNotBound, why);
}

void SentBindings::IsOn(const std::string& key, SentBinding* binding, const std::string& node) {
  if (binding->node != node) {
    ++told_->bound_elsewhere;
    End(binding, Fate::kFailed, fmt::format("it has been bound to {}", node));
    binding->node = node;
    on_news_(key, BindingNews::kElsewhere, node);
  } else if (!binding->is_ended) {
    ++told_->bound;
    actuator_->TellPlaced(binding->id, node);
    End(binding, Fate::kDone);
  }
}

void SentBindings::End(SentBinding* binding, Fate fate, const std::string& failure) {
  if (std::exchange(binding->is_ended, true)) return;
  ends_->push_back({binding->row, fate, failure});
}

}  // namespace rudderfish
