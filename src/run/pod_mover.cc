// SPDX-License-Identifier: Apache-2.0
#include "run/pod_mover.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>
#include <vector>

namespace rudderfish {

Result<void> PodMover::Plan(const std::string& object_namespace, const std::string& name,
                            const std::string& target, Duration limit) {
  TRY_ASSIGN(pod_, api_.FindPod(object_namespace, name));
  TRY_ASSIGN(move_, api_.Plan(pod_, target, UnixNow(), limit));
  TRY_ASSIGN(const std::vector<kube::MoveApi::LeftPin> left, api_.LeftPins());
  for (const kube::MoveApi::LeftPin& pin : left) {
    if (pin.replica_set_uid != move_.replica_set_uid) continue;
    return Fail(ErrorCode::kFailedPrecondition,
                "move {} has left a line for {} in the ConfigMap of moves; remove it with "
                "`rudderfish moves abort {}`",
                pin.move_id, move_.workload, pin.move_id);
  }
  TRY_ASSIGN(planned_, api_.Look(pod_.id, std::nullopt, target));
  if (!planned_.pod) return Fail(ErrorCode::kConflict, "pod {} was replaced", pod_.id.Key());
  pod_ = *planned_.pod;
  const std::vector<std::string> reasons = WhyNotMovable(planned_, target);
  if (reasons.empty()) return {};
  return Fail(ErrorCode::kFailedPrecondition, "pod {} cannot be moved: {}", pod_.id.Key(),
              fmt::join(reasons, "; "));
}

Result<void> PodMover::Begin(std::string_view by) {
  move_.by = by;
  return api_.Begin(planned_, move_);
}

void PodMover::TakeOver(const kube::MoveApi::Listed& listed) {
  pod_ = {.id = listed.pod, .node = listed.node};
  move_ = *listed.move;
}

Result<MoveAction> PodMover::Step(const std::function<bool()>& may_write) {
  TRY_ASSIGN(const MoveView view, api_.Look(pod_.id, move_, move_.target));
  if (view.pod) pod_ = *view.pod;
  if (view.move) move_ = *view.move;
  if (view.replacement) replacement_ = view.replacement->id.name;
  MoveAction action = NextMoveAction(move_, view, options_, UnixNow(), &memory_);
  const bool can_undo = view.pod && view.move && !view.pod->is_terminating && !memory_.has_evicted;
  if (!abort_.empty() && can_undo && move_.aborting.empty())
    action = {.write = MoveWrite::kAbort, .step = MoveStep::kAbort, .why = abort_};
  if (action.write == MoveWrite::kNone) return action;
  if (may_write && !may_write()) return MoveAction{.step = action.step, .why = "held back"};
  const Result<void> written = Write(action, view);
  if (!written && action.write == MoveWrite::kEvict &&
      written.error().code == ErrorCode::kFailedPrecondition) {
    action.why = written.error().message;  // Asked again until the deadline.
    return action;
  }
  // What has changed since it was looked at is looked at again.
  if (!written && written.error().code != ErrorCode::kConflict)
    return tl::unexpected(written.error());
  if (!written) action.why = "the cluster has changed; looking again";
  return action;
}

Result<void> PodMover::Write(const MoveAction& action, const MoveView& view) {
  switch (action.write) {
    case MoveWrite::kPin:
      return api_.Pin(move_);
    case MoveWrite::kUnpin:
      return api_.Unpin(move_);
    case MoveWrite::kDetach:
    case MoveWrite::kDrain:
      return api_.TakeLabels(view, action.remove, action.step, &move_);
    case MoveWrite::kEvict: {
      TRY(api_.Evict(view));
      memory_.has_evicted = true;
      return {};
    }
    case MoveWrite::kAbort:
      return api_.NoteAbort(view, action.why, &move_);
    case MoveWrite::kRestore:
      return api_.Restore(view, move_);
    case MoveWrite::kNone:
      break;
  }
  return {};
}

}  // namespace rudderfish
