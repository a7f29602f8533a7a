// SPDX-License-Identifier: Apache-2.0
#include "cloud/vm_moves.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/one_line.h"

namespace rudderfish {
namespace {

constexpr std::string_view kToConfirm = "VERIFY_RESIZE";

bool IsSafeToLeave(const Vm& vm) { return vm.status == "ACTIVE" || vm.status == "SHUTOFF"; }

}  // namespace

Result<std::string> ToConfirmFrom(OpenStackVms* cloud, const Vm& vm) {
  if (vm.status != kToConfirm) return std::string();
  TRY_ASSIGN(const OpenStackVms::Migration last, cloud->LastMigration(vm));
  return last.type == "migration" ? last.from : std::string();
}

VmMovePlan VmMoves::Plan(const std::vector<Vm>& vms) const {
  VmMovePlan plan;
  std::vector<VmMoveStep> moves;
  for (const VmMoveGoal& goal : goals_) {
    const auto vm =
        std::find_if(vms.begin(), vms.end(), [&](const Vm& one) { return one.id == goal.vm_id; });
    if (vm == vms.end() || vm->IsGoing()) {
      ++plan.moved;  // It is not there any more.
      continue;
    }
    const bool has_left = vm->host != goal.from;
    const auto tries = tries_.find(vm->id);
    const int tried = tries == tries_.end() ? 0 : tries->second;
    if (!vm->task.empty() || vm->status == "RESIZE" || vm->status == "MIGRATING") {
      ++plan.moving;
    } else if (has_left && vm->status == kToConfirm) {
      ++plan.moving;
      plan.steps.push_back({.vm_id = vm->id,
                            .vm = vm->name,
                            .from = goal.from,
                            .is_confirmation = true,
                            .request = ConfirmRequest(*vm)});
    } else if (has_left) {
      ++plan.moved;
    } else if (!IsSafeToLeave(*vm)) {
      plan.given_up.push_back(fmt::format("{}: its status is {}{}", vm->name, vm->status,
                                          vm->fault.empty() ? "" : ": " + OneLine(vm->fault, 200)));
    } else if (tried >= limits_.tries) {
      const auto why = refusals_.find(vm->id);
      plan.given_up.push_back(fmt::format("{}: it is still on {} after {} tries{}", vm->name,
                                          goal.from, tried,
                                          why == refusals_.end() ? "" : ": " + why->second));
    } else {
      const bool is_cold = goal.is_cold || vm->status == "SHUTOFF";
      moves.push_back({.vm_id = vm->id,
                       .vm = vm->name,
                       .from = goal.from,
                       .request = is_cold ? ColdMigrateRequest(*vm, goal.to)
                                          : LiveMigrateRequest(*vm, goal.to)});
    }
  }
  for (VmMoveStep& move : moves) {
    if (plan.moving < limits_.at_once) {
      ++plan.moving;
      plan.steps.push_back(std::move(move));
    } else {
      ++plan.waiting;
    }
  }
  return plan;
}

Result<VmMovePlan> VmMoves::Look(OpenStackVms* cloud) {
  TRY_ASSIGN(const std::vector<Vm> vms, cloud->List());
  return Plan(vms);
}

Result<void> VmMoves::Carry(OpenStackVms* cloud, const VmMovePlan& plan) {
  for (const VmMoveStep& step : plan.steps) {
    if (!step.is_confirmation) ++tries_[step.vm_id];
    const Result<void> sent = cloud->Send(step.request);
    if (sent) continue;
    if (sent.error().code == ErrorCode::kFailedPrecondition)  // No right to do so.
      return tl::unexpected(sent.error());
    refusals_[step.vm_id] = sent.error().message;
  }
  return {};
}

}  // namespace rudderfish
