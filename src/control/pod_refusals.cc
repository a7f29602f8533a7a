// SPDX-License-Identifier: Apache-2.0
#include "control/pod_refusals.h"

#include <utility>

#include "model/preemption.h"

namespace rudderfish {

const PodRefusal* PodRefusals::Find(PodClassId pod, int64_t generation) {
  if (generation_ != generation) kept_.clear();
  generation_ = generation;
  const auto at = kept_.find(pod);
  if (at == kept_.end() || at->second.freed != freed_) return nullptr;
  const bool may_be_helped = (at->second.refusal.refused_by & kMayEndByAttaching) != 0;
  return may_be_helped && at->second.placed != placed_ ? nullptr : &at->second.refusal;
}

const PodRefusal& PodRefusals::Keep(const SchedulingRules& rules, PodClassId pod,
                                    const Feasibility& feasibility, const std::string& scheduler) {
  RejectionMask refused_by = feasibility.rejection.empty() ? kNoNode : 0;
  for (const Rejection rejection : feasibility.rejection) refused_by |= MaskOf(rejection);
  std::string message = rules.Message(pod, feasibility);
  std::string kinds;
  for (const auto& [reason, nodes] : rules.CountReasons(pod, feasibility)) kinds += reason + "\n";
  if (kinds.empty()) kinds = message;
  Kept& kept = kept_[pod];
  kept = {{std::move(message), std::move(kinds), PreemptionText(rules, pod, feasibility, scheduler),
           refused_by},
          freed_,
          placed_};
  return kept.refusal;
}

}  // namespace rudderfish
