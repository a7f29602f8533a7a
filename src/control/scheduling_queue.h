// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/clock.h"
#include "model/scheduling_rules.h"

// Pods that wait for a decision, as kube-scheduler's queue keeps them. A pod is active (next by
// priority, then by the time at which it came or the last attempt on it ended, as PrioritySort has
// it, whatever woke it since), backs off after an attempt that came to nothing (1 s, doubling to 10
// s), or sleeps until something happens that may help it: each sleeper says by which rules it was
// refused, and an event wakes those whom it may concern, when their back-off is over. Sleepers that
// nothing wakes are tried again after five minutes. One thread.

namespace rudderfish {

// A set of Rejections.
using RejectionMask = uint32_t;
constexpr RejectionMask MaskOf(Rejection rejection) {
  return RejectionMask{1} << static_cast<int>(rejection);
}

// Of a pod that was refused for want of any node.
inline constexpr RejectionMask kNoNode = MaskOf(Rejection::kNone);

// Which rejections an event may end.
inline constexpr RejectionMask kMayEndByNode = ~MaskOf(Rejection::kPod);
inline constexpr RejectionMask kMayEndByPlacing =
    MaskOf(Rejection::kAffinity) | MaskOf(Rejection::kSpread);
inline constexpr RejectionMask kMayEndByLeaving =
    MaskOf(Rejection::kHostPort) | MaskOf(Rejection::kResources) | MaskOf(Rejection::kClaimInUse) |
    MaskOf(Rejection::kSpread) | MaskOf(Rejection::kAffinity) | MaskOf(Rejection::kAntiAffinity) |
    MaskOf(Rejection::kExistingAntiAffinity) | MaskOf(Rejection::kVolumeLimit) |
    MaskOf(Rejection::kUnreadPod) | MaskOf(Rejection::kUnknownVolumes);
inline constexpr RejectionMask kMayEndByDetaching = MaskOf(Rejection::kVolumeLimit);
// What is attached for a pod is new to others there no more.
inline constexpr RejectionMask kMayEndByAttaching =
    kMayEndByPlacing | MaskOf(Rejection::kVolumeLimit);
inline RejectionMask MayEndByPlacing(const PodClass& pod) {
  return pod.attached.empty() ? kMayEndByPlacing : kMayEndByAttaching;
}

struct SchedulingQueueOptions {
  Duration back_off_first = std::chrono::seconds(1);
  Duration back_off_last = std::chrono::seconds(10);
  Duration sleep_limit = std::chrono::minutes(5);
};

class SchedulingQueue {
 public:
  explicit SchedulingQueue(SchedulingQueueOptions options = {}) : options_(options) {}

  // Active at once. A pod that waits already becomes active, too, its attempts forgotten, as it has
  // changed; its turn is when it was.
  void Add(const std::string& key, int64_t priority);
  void Remove(const std::string& key);
  bool Has(const std::string& key) const { return pods_.contains(key); }

  // Tells of those that Pop would return next, in their order, until `more` says no.
  void TellNext(const std::function<bool(const std::string& key)>& more) const;

  // The next one, in hand until it is added, put to sleep, backed off or removed.
  std::optional<std::string> Pop();

  void Sleep(const std::string& key, RejectionMask refused_by, Instant now);
  void BackOff(const std::string& key, Instant now);

  void Wake(RejectionMask may_end, Instant now);
  // Those of the sleepers for whom `helps` says so. Of the others it may add to what refuses them.
  void WakeIf(const std::function<bool(const std::string& key, RejectionMask* refused_by)>& helps,
              Instant now);

  // Those whose time has come become active.
  void Advance(Instant now);
  std::optional<Instant> NextDue() const;

  int attempts(const std::string& key) const;
  size_t active() const { return active_.size(); }
  size_t backing_off() const { return backing_off_.size(); }
  size_t asleep() const { return asleep_.size(); }

 private:
  enum class Phase : uint8_t { kActive, kBackingOff, kAsleep, kInHand };
  struct Pod {
    int64_t priority = 0;
    uint64_t order = 0;  // Of when it came, or the last attempt ended.
    int attempts = 0;
    Phase phase = Phase::kActive;
    RejectionMask refused_by = 0;
    Instant ready_at;  // When its back-off ends.
    Instant due;       // As it stands in backing_off_ or asleep_.
  };
  using Due = std::pair<Instant, std::string>;

  void Activate(const std::string& key, Pod* pod);
  void TakeOut(const std::string& key, const Pod& pod);
  Instant ReadyAt(const Pod& pod, Instant now) const;

  SchedulingQueueOptions options_;
  std::unordered_map<std::string, Pod> pods_;
  std::set<std::tuple<int64_t, uint64_t, std::string>> active_;  // Priority negated, order.
  std::set<Due> backing_off_, asleep_;
  uint64_t next_order_ = 0;
};

}  // namespace rudderfish
