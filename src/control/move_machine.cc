// SPDX-License-Identifier: Apache-2.0
#include "control/move_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace rudderfish {
namespace {

constexpr std::string_view kHashLabel = "pod-template-hash";

bool Selects(const Labels& selector, const Labels& labels) {
  return std::all_of(selector.begin(), selector.end(), [&](const auto& wanted) {
    const std::string* value = FindLabel(labels, wanted.first);
    return value != nullptr && *value == wanted.second;
  });
}

bool Holds(const std::vector<std::string>& uids, const std::string& uid) {
  return std::find(uids.begin(), uids.end(), uid) != uids.end();
}

bool IsDetached(const PodMove& move) { return !move.removed.empty(); }

MoveAction Wait(MoveStep step, std::string why) { return {.step = step, .why = std::move(why)}; }

MoveAction Over(MoveStep step, MoveOutcome outcome, std::string why) {
  return {.step = step, .why = std::move(why), .remove = {}, .outcome = outcome};
}

// The pod is gone: what is left of the move is the ConfigMap's line.
MoveAction AfterThePod(const PodMove& move, const MoveView& view) {
  if (view.pin == move.Pin())
    return {.write = MoveWrite::kUnpin, .step = move.step, .why = "cleaning up"};
  const bool is_moved = view.replacement && view.replacement->serves() && IsDetached(move);
  if (is_moved && move.aborting.empty())
    return Over(MoveStep::kEvict, MoveOutcome::kMoved,
                fmt::format("{} serves on {}", view.replacement->id.name, view.replacement->node));
  return Over(move.step, MoveOutcome::kEnded, "the pod was ended by others");
}

// Only the node removes a pod that is being deleted. Where the node has died the pod stays in the
// API for as long as the Node does, and nothing waits for that.
MoveAction WhileThePodEnds(const PodMove& move, const MoveView& view, const MoveOptions& options,
                           UnixMillis now, MoveMemory* memory) {
  if (view.pin == move.Pin())
    return {.write = MoveWrite::kUnpin, .step = move.step, .why = "the pod is ending"};
  if (!memory->ending_since) memory->ending_since = now;
  const Duration limit = std::chrono::seconds(view.pod->grace_s) + options.silent_node_limit;
  if (std::chrono::milliseconds(now - *memory->ending_since) < limit)
    return Wait(MoveStep::kEvict, "until the pod has ended");
  const std::string silent =
      fmt::format("{} does not confirm that {} has ended", view.pod->node, view.pod->id.name);
  const bool is_moved = view.replacement && view.replacement->serves() && IsDetached(move);
  if (!is_moved || !move.aborting.empty())
    return Over(MoveStep::kEvict, MoveOutcome::kEnded, "the pod was ended by others; " + silent);
  return Over(MoveStep::kEvict, MoveOutcome::kMoved,
              fmt::format("{} serves on {}; {}", view.replacement->id.name, view.replacement->node,
                          silent));
}

MoveAction Undo(const PodMove& move, const MoveView& view, const std::string& why) {
  if (move.aborting.empty())
    return {.write = MoveWrite::kAbort, .step = MoveStep::kAbort, .why = why};
  if (view.pin == move.Pin())
    return {.write = MoveWrite::kUnpin, .step = MoveStep::kAbort, .why = why};
  return {.write = MoveWrite::kRestore, .step = MoveStep::kAbort, .why = move.aborting};
}

// Why a move that has begun cannot go on whatever its step; empty: it can.
std::string WhyUndo(const PodMove& move, const MoveView& view, const MoveOptions& options,
                    UnixMillis now) {
  if (!move.aborting.empty()) return move.aborting;
  if (!view.has_replica_set) return fmt::format("ReplicaSet {} is being deleted", move.replica_set);
  if (view.wanted == 0) return fmt::format("ReplicaSet {} was scaled to 0", move.replica_set);
  if (now > move.deadline)
    return fmt::format("the deadline passed at step {}", StepName(move.step));
  const bool serves = view.replacement && view.replacement->serves();
  if (!serves && !view.target_trouble.empty())
    return fmt::format("{} {}", move.target, view.target_trouble);
  if (!view.replacement) return "";
  const MovedPod& pod = *view.replacement;
  if (pod.is_terminating || pod.has_ended)
    return fmt::format("the replacement {} has ended", pod.id.name);
  if (!pod.node.empty() && pod.node != move.target)
    return fmt::format("the replacement {} was put on {}", pod.id.name, pod.node);
  const auto limit =
      std::chrono::duration_cast<std::chrono::milliseconds>(options.unschedulable_limit).count();
  if (pod.node.empty() && !pod.unschedulable.empty() && now > move.begun + limit)
    return fmt::format("the replacement does not fit: {}", pod.unschedulable);
  return "";
}

MoveAction BeforeTheReplacement(const PodMove& move, const MoveView& view) {
  if (!IsDetached(move)) {
    if (!view.can_pin) return Undo(move, view, "the ConfigMap rudderfish-moves was deleted");
    if (view.pin.empty())
      return {.write = MoveWrite::kPin,
              .step = MoveStep::kIntend,
              .why = "sending the next pod to the target"};
    if (view.pin != move.Pin())
      return Wait(MoveStep::kIntend, "another pod of this ReplicaSet is being moved");
    const std::string key = DetachKey(view);
    if (key.empty()) return Undo(move, view, "no label detaches the pod from its ReplicaSet alone");
    return {.write = MoveWrite::kDetach,
            .step = MoveStep::kDetach,
            .why = "detaching",
            .remove = {key}};
  }
  if (static_cast<int64_t>(view.replicas.size()) >= view.wanted) {
    return Undo(move, view,
                "no replacement was sent to the target: the admission policy rudderfish-moves did "
                "not change it, or others took the ConfigMap's line away");
  }
  return Wait(MoveStep::kPlace, "the ReplicaSet has not created the replacement yet");
}

// What is awaited until the replacement serves; empty: it does.
std::string NotServingYet(const MoveView& view) {
  const MovedPod& pod = *view.replacement;
  if (!pod.is_ready) {
    return fmt::format("{} is not Ready{}", pod.id.name,
                       pod.failing.empty() ? "" : ": " + pod.failing);
  }
  for (const MoveView::Service& service : view.services) {
    if (!Holds(service.ready, pod.id.uid))
      return fmt::format("{} is not among the endpoints of Service {}", pod.id.name, service.name);
  }
  if (view.ready < view.wanted)
    return fmt::format("{} of {} pods of the ReplicaSet are ready", view.ready, view.wanted);
  return "";
}

// A key of each selector that the pod still fits.
std::vector<std::string> KeysToDrain(const MoveView& view) {
  Labels left = view.pod->labels;
  std::vector<std::string> keys;
  for (const MoveView::Service& service : view.services) {
    if (!Selects(service.selector, left)) continue;
    keys.push_back(service.selector[0].first);
    std::erase_if(left, [&](const auto& label) { return label.first == keys.back(); });
  }
  return keys;
}

MoveAction Drain(const MoveView& view, const MoveOptions& options, UnixMillis now,
                 MoveMemory* memory) {
  const std::vector<std::string> keys = KeysToDrain(view);
  if (!keys.empty()) {
    // Without the labels the pod may leave its PodDisruptionBudgets, so that they are asked first.
    for (const MoveView::Budget& budget : view.budgets) {
      if (!budget.is_current || budget.allowed < 1)
        return Wait(MoveStep::kServe,
                    fmt::format("PodDisruptionBudget {} allows no disruption", budget.name));
    }
    return {
        .write = MoveWrite::kDrain, .step = MoveStep::kDrain, .why = "draining", .remove = keys};
  }
  for (const MoveView::Service& service : view.services) {
    if (!Holds(service.endpoints, view.pod->id.uid)) continue;
    memory->out_since.reset();
    return Wait(MoveStep::kDrain,
                fmt::format("the pod is still an endpoint of Service {}", service.name));
  }
  if (!memory->out_since) memory->out_since = now;
  const auto settle = std::chrono::duration_cast<std::chrono::milliseconds>(options.settle).count();
  if (!view.services.empty() && now - *memory->out_since < settle)
    return Wait(MoveStep::kDrain, "until proxies have followed");
  return {.write = MoveWrite::kEvict,
          .step = MoveStep::kEvict,
          .why = fmt::format("evicting from {}", view.pod->node)};
}

}  // namespace

MoveAction NextMoveAction(const PodMove& move, const MoveView& view, const MoveOptions& options,
                          UnixMillis now, MoveMemory* memory) {
  if (!view.pod) return AfterThePod(move, view);
  if (view.pod->is_terminating) return WhileThePodEnds(move, view, options, now, memory);
  if (!view.move) {
    if (view.pin == move.Pin())
      return {.write = MoveWrite::kUnpin, .step = move.step, .why = "cleaning up"};
    return Over(MoveStep::kAbort,
                move.aborting.empty() ? MoveOutcome::kEnded : MoveOutcome::kAborted,
                move.aborting.empty() ? "others have taken the annotation away" : move.aborting);
  }
  // Detached, it has no controller that would delete it.
  if (view.pod->has_ended && IsDetached(move)) {
    if (view.pin == move.Pin())
      return {.write = MoveWrite::kUnpin, .step = move.step, .why = "the pod has ended"};
    return {.write = MoveWrite::kEvict, .step = MoveStep::kEvict, .why = "deleting the ended pod"};
  }
  if (view.pod->has_ended) return Undo(move, view, "the pod has ended");
  if (memory->has_evicted) return Wait(MoveStep::kEvict, "until the pod has ended");
  if (const std::string why = WhyUndo(move, view, options, now); !why.empty())
    return Undo(move, view, why);
  if (!view.replacement) {
    // Where it served already, the pod is needed again.
    if (move.step >= MoveStep::kDrain) return Undo(move, view, "the replacement is gone");
    return BeforeTheReplacement(move, view);
  }
  // Any other pod that the ReplicaSet creates goes where kube-scheduler puts it.
  if (view.pin == move.Pin())
    return {
        .write = MoveWrite::kUnpin, .step = MoveStep::kPlace, .why = "the replacement is there"};
  if (view.replacement->node.empty()) {
    return Wait(MoveStep::kPlace, view.replacement->unschedulable.empty()
                                      ? "the replacement has no node yet"
                                      : view.replacement->unschedulable);
  }
  if (const std::string why = NotServingYet(view); !why.empty()) {
    if (move.step >= MoveStep::kDrain)
      return Undo(move, view, fmt::format("the replacement no longer serves: {}", why));
    return Wait(MoveStep::kServe, why);
  }
  return Drain(view, options, now, memory);
}

std::string DetachKey(const MoveView& view) {
  const auto is_of_a_service = [&](const std::string& key) {
    return std::any_of(view.services.begin(), view.services.end(), [&](const auto& service) {
      return FindLabel(service.selector, key) != nullptr;
    });
  };
  std::string hash(kHashLabel);
  if (FindLabel(view.replica_set_selector, hash) != nullptr && !is_of_a_service(hash)) return hash;
  for (const auto& [key, value] : view.replica_set_selector) {
    if (!is_of_a_service(key)) return key;
  }
  return "";
}

std::vector<std::string> WhyNotMovable(const MoveView& view, const std::string& target) {
  std::vector<std::string> reasons = view.obstacles;
  const MovedPod& pod = *view.pod;
  if (pod.has_ended) reasons.emplace_back("has ended");
  if (pod.is_terminating) reasons.emplace_back("is being deleted");
  if (!pod.is_ready && !pod.has_ended && !pod.is_terminating) reasons.emplace_back("is not Ready");
  if (view.move) reasons.push_back(fmt::format("is being moved already: {}", view.move->id));
  if (pod.node == target) reasons.push_back(fmt::format("runs on {} already", target));
  if (!view.target_trouble.empty())
    reasons.push_back(fmt::format("{} {}", target, view.target_trouble));
  if (!view.can_pin)
    reasons.emplace_back(
        "the ConfigMap rudderfish/rudderfish-moves is not found; apply deploy/moves first");
  if (!view.pin.empty())
    reasons.push_back(fmt::format("another pod of its ReplicaSet is being moved: {}", view.pin));
  if (!view.has_replica_set) return reasons;
  if (view.wanted == 0) reasons.emplace_back("its ReplicaSet is scaled to 0");
  if (static_cast<int64_t>(view.replicas.size()) != view.wanted || view.ready < view.wanted) {
    reasons.push_back(
        fmt::format("its ReplicaSet has {} of {} pods ready", view.ready, view.wanted));
  }
  if (DetachKey(view).empty())
    reasons.emplace_back(
        "Services select every label that its ReplicaSet selects, so that it cannot be detached "
        "while it serves");
  for (const MoveView::Budget& budget : view.budgets) {
    if (!budget.is_current)
      reasons.push_back(fmt::format("PodDisruptionBudget {} is not up to date", budget.name));
  }
  if (view.budgets.size() > 1)
    reasons.emplace_back("several PodDisruptionBudgets select it, which the eviction API refuses");
  return reasons;
}

}  // namespace rudderfish
