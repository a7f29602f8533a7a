// SPDX-License-Identifier: Apache-2.0
#include "control/own_choice.h"

#include <cstdint>
#include <optional>

namespace rudderfish {
namespace {

void TellOne(const UntoldChoices::Choice& choice, SchedulingTables* tables,
             const std::function<void(const OwnChoice&)>& callback) {
  SchedulingRules& rules = tables->Rules();
  const PodClassId pod = rules.Register(choice.shape);
  std::vector<PodClassId> queue = {pod};
  for (const auto& shape : choice.behind) queue.push_back(rules.Register(shape));
  Feasibility feasibility;
  rules.Filter(pod, &feasibility);
  rules.LimitLatency(pod, &feasibility);
  const NodeId node = rules.nodes().Find(choice.node);
  if (node == kNone || !feasibility.IsFeasible(node)) return;  // The cluster has changed.
  callback({.pod = &choice.id,
            .shape = &choice.shape,
            .waited_ms = choice.waited_ms,
            .rules = &rules,
            .queue = queue,
            .feasibility = &feasibility,
            .node = node,
            .group = choice.group});
}

}  // namespace

void UntoldChoices::Clear() {
  placed_keys_.clear();
  choices_.clear();
}

void UntoldChoices::Tell(SchedulingTables* tables,
                         const std::function<void(const OwnChoice&)>& callback) {
  if (choices_.empty()) return;
  std::vector<std::optional<SchedulingTables::Taken>> taken;
  for (const std::string& key : placed_keys_) taken.push_back(tables->Take(key));
  auto choice = choices_.begin();
  for (size_t i = 0; i < placed_keys_.size(); ++i) {
    const bool is_told = choice != choices_.end() && choice->key == placed_keys_[i];
    if (is_told && taken[i] && taken[i]->node == choice->node) TellOne(*choice, tables, callback);
    if (is_told) ++choice;
    if (taken[i]) tables->PutBack(placed_keys_[i], *taken[i]);
  }
  Clear();
}

bool IsInShare(std::string_view uid, double share) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char letter : uid) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  hash ^= hash >> 33;
  hash *= 0xff51afd7ed558ccd;
  hash ^= hash >> 33;
  return static_cast<double>(hash >> 11) * 0x1p-53 < share;
}

}  // namespace rudderfish
