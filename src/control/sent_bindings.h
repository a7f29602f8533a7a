// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "cluster/scheduling_observer.h"

// Bindings that were sent, and of which the cluster has not shown yet what became of them. Each
// pod keeps the room that it was given for as long as it has one here: no time alone ends that, but
// a word of the API server's or of the watch's. Which word leads where: control/scheduler.h.
//
// One thread. Pointers are valid until that Binding is erased.

namespace rudderfish {

enum class BindingStage : uint8_t {
  kSent,     // Its answer is awaited.
  kUnclear,  // There was none: it may be done. When it is due it is sent again.
  kAsked,    // The API server is asked where the pod is,
  kToAsk,    // or will be when that is due.
  kSettled,  // The pod has that node. Should the watch not show it until it is due, it is asked.
};
inline constexpr size_t kBindingStages = 5;

struct SentBinding {
  PodIdentity id;
  std::string node;
  int64_t row = 0;  // Of the journal; tells one decision about a pod from the next.
  Instant decided_at;
  BindingStage stage = BindingStage::kSent;
  Instant due;
  bool was_unclear = false;  // Once at least.
  std::string refusal;       // What the API server said no with; empty: it did not.
  bool is_ended = false;     // It is known what came of the decision.
};

class SentBindings {
 public:
  void Begin(const std::string& key, SentBinding binding);
  SentBinding* Find(const std::string& key);  // Null: none.
  void Enter(SentBinding* binding, BindingStage stage, Instant due = Instant());
  void Erase(const std::string& key);

  // Those that something is to be done about.
  std::vector<std::string> Due(Instant now) const;

  size_t count(BindingStage stage) const { return counts_[static_cast<size_t>(stage)]; }
  // Of which nothing was heard.
  size_t unanswered() const { return count(BindingStage::kSent) + count(BindingStage::kUnclear); }
  size_t size() const { return bindings_.size(); }
  bool empty() const { return bindings_.empty(); }

 private:
  size_t& CountOf(BindingStage stage) { return counts_[static_cast<size_t>(stage)]; }

  std::unordered_map<std::string, SentBinding> bindings_;
  std::array<size_t, kBindingStages> counts_{};
};

}  // namespace rudderfish
