// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "cluster/scheduling_observer.h"
#include "control/placement_actuator.h"
#include "control/placement_journal.h"

// Bindings under way, from the first sending until the watch shows the pod: they are sent, and sent
// again while their outcome is unclear; the API server is asked where it must be. Each pod
// keeps the room that it was given for as long as it has one here: no time alone ends that, but a
// word of the API server's or of the watch's. Which word leads where: control/scheduler.h.
//
// One thread. Pointers are valid until that Binding is at its end.

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
  bool is_ended = false;     // The outcome of the decision is known.
};

struct BindingCounts {
  int64_t bound = 0;  // As the API server answered.
  int64_t conflicts = 0, unclear = 0, refused = 0, gone = 0;
  int64_t unconfirmed = 0;      // Times that the watch did not show a binding in time.
  int64_t bound_elsewhere = 0;  // Our pods that somebody else gave a node.
};

// What is heard of one that did not come out as it was meant.
enum class BindingNews {
  kNotBound,   // It is at its end; `what` it was refused with, empty: it was not refused.
  kGone,       // It is at its end, and so is the pod, or soon.
  kElsewhere,  // The pod is on the node `what`, and the Binding says so now.
};

class SentBindings {
 public:
  struct Limits {
    Duration confirmation, repeat, unclear;  // As SchedulerOptions has them.
  };
  using OnNews =
      std::function<void(const std::string& key, BindingNews news, const std::string& what)>;

  // All outlive it. `leads` is asked right before one is sent; `counts` and `ends` are told the
  // outcomes of decisions.
  SentBindings(const Limits& limits, const Clock* clock, PlacementActuator* actuator,
               std::function<bool()> leads, BindingCounts* counts, std::vector<PlacementEnd>* ends,
               OnNews on_news);

  // Sends it.
  void Begin(const std::string& key, SentBinding binding);

  // Does what is due.
  void Look(Instant now);

  // The watch shows a pod of that name on a node: there is nothing more to wait for. True: that pod
  // had a Binding here.
  bool Show(const std::string& key, const PodIdentity& pod, const std::string& node);

  // It is not waited for any more, as the cluster does not show it. False: there is none.
  bool Drop(const std::string& key);

  const SentBinding* Find(const std::string& key) const;  // Null: none.
  // Of which nothing was heard.
  size_t unanswered() const { return count(BindingStage::kSent) + count(BindingStage::kUnclear); }
  size_t size() const { return bindings_.size(); }

 private:
  size_t count(BindingStage stage) const { return counts_[static_cast<size_t>(stage)]; }
  SentBinding* FindIn(const std::string& key, int64_t row, BindingStage stage);
  void Enter(SentBinding* binding, BindingStage stage, Instant due = Instant());
  void Erase(const std::string& key);
  void Send(const std::string& key, SentBinding* binding);
  void Answered(const std::string& key, int64_t row, BindingOutcome outcome,
                const std::string& why);
  void Ask(const std::string& key, SentBinding* binding);
  void Found(const std::string& key, int64_t row, const Result<PodStanding>& pod);
  void NotBound(const std::string& key, SentBinding* binding);
  void IsOn(const std::string& key, SentBinding* binding, const std::string& node);
  void End(SentBinding* binding, Fate fate, const std::string& failure = "");

  Limits limits_;
  const Clock* clock_;
  PlacementActuator* actuator_;
  std::function<bool()> leads_;
  BindingCounts* told_;
  std::vector<PlacementEnd>* ends_;
  OnNews on_news_;
  std::unordered_map<std::string, SentBinding> bindings_;
  std::array<size_t, kBindingStages> counts_{};
  Instant looked_at_;
};

}  // namespace rudderfish
