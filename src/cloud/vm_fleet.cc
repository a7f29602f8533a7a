// SPDX-License-Identifier: Apache-2.0
#include "cloud/vm_fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/one_line.h"

namespace rudderfish {
namespace {

bool HasFailed(const Vm& vm) { return vm.status == "ERROR"; }

// The lower, the more useful.
auto UseOf(const Vm& vm) {
  const int state = vm.IsReady() ? 0 : HasFailed(vm) ? 2 : 1;
  return std::tuple(state, vm.created, vm.id);
}

// The next step of its end; nothing: it is being shut down, or somebody does something else to it.
std::optional<VmFleetStep> EndOf(const Vm& vm, std::string why) {
  const bool runs = vm.status == "ACTIVE" && vm.task.empty();
  if (!runs && vm.status != "SHUTOFF" && vm.status != "BUILD" && !HasFailed(vm)) return {};
  return VmFleetStep{.kind = runs ? VmFleetStep::Kind::kStop : VmFleetStep::Kind::kDelete,
                     .slot = vm.slot,
                     .vm = vm.name,
                     .why = std::move(why),
                     .request = runs ? StopRequest(vm) : DeleteRequest(vm)};
}

VmFleetStep Starting(const Vm& vm) {
  return {.kind = VmFleetStep::Kind::kStart,
          .slot = vm.slot,
          .vm = vm.name,
          .why = "",
          .request = StartRequest(vm)};
}

}  // namespace

Result<void> CheckFleetName(std::string_view name) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  const bool fits =
      !name.empty() && name.size() <= 50 && is_letter(name.front()) && is_letter(name.back()) &&
      std::all_of(name.begin(), name.end(), [&](char c) { return is_letter(c) || c == '-'; });
  if (fits) return {};
  return Invalid("`{}`: expected at most 50 lower-case letters, digits and dashes",
                 OneLine(name, 80));
}

VmFleetStep VmFleet::Creation(int slot) const {
  const std::string name = fmt::format("{}-{}", spec_.name, slot);
  return {.kind = VmFleetStep::Kind::kCreate,
          .slot = slot,
          .vm = name,
          .why = "",
          .request = CreateRequest({.name = name,
                                    .fleet = spec_.name,
                                    .slot = slot,
                                    .image_id = spec_.image_id,
                                    .flavor_id = spec_.flavor.id,
                                    .network = spec_.network,
                                    .zone = spec_.zone,
                                    .host = spec_.host})};
}

void VmFleet::NoteFailure(int slot, Instant now) {
  Failure& failure = failures_[slot];
  const auto wait = std::min(limits_.retry_last, limits_.retry_first * (1 << failure.times));
  failure.times = std::min(failure.times + 1, 16);
  failure.next = now + wait;
}

void VmFleet::Learn(const std::map<int, std::vector<const Vm*>>& slots, Instant now) {
  std::erase_if(asked_, [&](const auto& asked) {
    return slots.contains(asked.first) || now - asked.second >= limits_.listed_within;
  });
  for (const auto& [slot, vms] : slots) {
    if (vms[0]->IsReady()) failures_.erase(slot);
  }
}

VmFleetPlan VmFleet::Plan(const std::vector<Vm>& vms, int wanted, std::optional<int64_t> room) {
  VmFleetPlan plan;
  std::map<int, std::vector<const Vm*>> slots;
  for (const Vm& vm : vms) {
    if (vm.fleet != spec_.name) continue;
    if (vm.IsGoing())
      ++plan.going;
    else
      slots[vm.slot].push_back(&vm);
  }
  for (auto& [slot, own] : slots) {
    std::sort(own.begin(), own.end(),
              [](const Vm* a, const Vm* b) { return UseOf(*a) < UseOf(*b); });
  }
  Learn(slots, clock_->Now());
  int left = limits_.steps_per_turn;
  const auto add = [&](std::optional<VmFleetStep> step) {
    if (step && left-- > 0) plan.steps.push_back(*std::move(step));
  };
  std::vector<const Vm*> kept;  // One of each slot, by slot.
  int missing = wanted;
  for (const auto& [slot, own] : slots) {
    for (size_t i = 1; i < own.size(); ++i) {
      ++plan.doubled;
      add(EndOf(*own[i], fmt::format("slot {} has another VM", slot)));
    }
    const Vm& best = *own[0];
    // One that has run may run still, as after a migration that failed: a person must look at it.
    if (!HasFailed(best) || best.has_run) {
      kept.push_back(&best);
      continue;
    }
    ++plan.failed;
    --missing;  // Its slot is filled once it is gone, and no other in its place.
    if (!best.fault.empty()) last_fault_ = best.fault;
    std::optional<VmFleetStep> end = EndOf(best, "failed");
    end->is_failed = true;
    add(std::move(end));
  }
  for (; static_cast<int>(kept.size()) > wanted; kept.pop_back()) {
    ++plan.going;
    add(EndOf(*kept.back(), "not needed"));
  }
  for (const Vm* vm : kept) {
    ++(vm->IsReady() ? plan.ready : HasFailed(*vm) ? plan.failed : plan.starting);
    if (HasFailed(*vm)) {
      last_fault_ = fmt::format("{} has run and is in ERROR; see to it by hand{}", vm->name,
                                vm->fault.empty() ? "" : ": " + vm->fault);
    }
    if (vm->status == "SHUTOFF" && vm->task.empty()) add(Starting(*vm));
  }
  Fill(slots, missing - static_cast<int>(kept.size()), room, left, &plan);
  if (plan.failed > 0 || !failures_.empty()) plan.last_fault = last_fault_;
  return plan;
}

void VmFleet::Fill(const std::map<int, std::vector<const Vm*>>& slots, int missing,
                   std::optional<int64_t> room, int steps, VmFleetPlan* plan) const {
  int64_t left = room.value_or(limits_.vms_max);
  for (int slot = 1; slot <= limits_.vms_max && missing > 0; ++slot) {
    if (slots.contains(slot)) continue;
    --missing;
    const auto failure = failures_.find(slot);
    const bool waits = asked_.contains(slot) ||
                       (failure != failures_.end() && clock_->Now() < failure->second.next);
    if (waits)
      ++plan->waits;
    else if (left-- <= 0)
      ++plan->without_room;
    else if (steps-- > 0)
      plan->steps.push_back(Creation(slot));
  }
}

Result<VmFleetPlan> VmFleet::Look(OpenStackVms* cloud, int wanted) {
  TRY_ASSIGN(std::vector<Vm> vms, cloud->List());
  const auto failed = std::find_if(vms.begin(), vms.end(), [&](const Vm& vm) {
    return vm.fleet == spec_.name && vm.status == "ERROR" && vm.fault.empty();
  });
  if (failed != vms.end()) {
    if (Result<Vm> one = cloud->Get(*failed)) *failed = *std::move(one);
  }
  VmFleetPlan plan = Plan(vms, wanted, {});
  const bool creates =
      std::any_of(plan.steps.begin(), plan.steps.end(),
                  [](const VmFleetStep& step) { return step.kind == VmFleetStep::Kind::kCreate; });
  if (!creates) return plan;
  TRY_ASSIGN(const auto hosts, cloud->Room(spec_.flavor.needs, spec_.zone));
  if (!hosts) return plan;
  int64_t room = 0;
  for (const VmRoom& host : *hosts) {
    if (spec_.host.empty() || host.host == spec_.host) room += host.vms;
  }
  return Plan(vms, wanted, room);
}

Result<void> VmFleet::Carry(OpenStackVms* cloud, const VmFleetPlan& plan) {
  for (const VmFleetStep& step : plan.steps) {
    const bool creates = step.kind == VmFleetStep::Kind::kCreate;
    if (step.is_failed) NoteFailure(step.slot, clock_->Now());
    if (creates) asked_[step.slot] = clock_->Now();
    const Result<void> sent = cloud->Send(step.request);
    if (sent) continue;
    const ErrorCode code = sent.error().code;
    const bool is_lost = code == ErrorCode::kUnavailable || code == ErrorCode::kDeadlineExceeded;
    if (creates && !is_lost) asked_.erase(step.slot);  // Refused.
    // The next turn sees what has become of it.
    if (is_lost || (!creates && code == ErrorCode::kConflict)) continue;
    return tl::unexpected(sent.error());
  }
  return {};
}

}  // namespace rudderfish
