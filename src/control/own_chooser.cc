// SPDX-License-Identifier: Apache-2.0
#include "control/own_chooser.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace rudderfish {
namespace {

// A node that was nominated for the pod is taken wherever it is feasible, as kube-scheduler does:
// somebody made or kept room for the pod there. kNone: no such node.
NodeId NominatedOf(const WaitingPod& waiting, const SchedulingRules& rules,
                   const Feasibility& feasibility) {
  if (waiting.nominated.empty()) return kNone;
  const NodeId node = rules.nodes().Find(waiting.nominated);
  return node != kNone && feasibility.IsFeasible(node) ? node : kNone;
}

}  // namespace

OwnChooser::OwnChooser(const Options& options, const Clock* clock,
                       std::unique_ptr<NodeScorer> scorer, ChoiceCounts* counts)
    : options_(options),
      clock_(clock),
      scorer_(std::move(scorer)),
      baseline_(NodeScorerNamed("kube-default").value()),
      counts_(counts),
      rng_(options.seed) {}

ChoiceGroup OwnChooser::GroupOf(const WaitingPod& waiting) {
  if (share_ <= 0 || waiting.is_opted_out) return ChoiceGroup::kNone;
  if (share_ >= 1) {
    const Instant now = clock_->Now();
    if (now - told_since_ >= std::chrono::seconds(1)) {
      told_since_ = now;
      told_ = 0;
    }
    return ++told_ <= options_.enforced_told ? ChoiceGroup::kEnforced : ChoiceGroup::kNone;
  }
  return IsInShare(waiting.id.uid, share_) ? ChoiceGroup::kCanary : ChoiceGroup::kControl;
}

// Those that are decided about next. What is not modelled of one is not known to take any room.
void OwnChooser::LookAtQueue(int pods, const WaitingPods& waiting, SchedulingRules* rules) {
  behind_.clear();
  if (pods <= 1) return;
  waiting.queue().TellNext([&](const std::string& key) {
    const std::shared_ptr<const PodClass>& shape = waiting.at(key).shape;
    if (!shape->unmodelled.empty()) return true;
    looked_at_.push_back(rules->Register(shape));
    behind_.push_back(shape);
    return looked_at_.size() < static_cast<size_t>(pods);
  });
}

// The best; among equals any, so that many schedulers do not all take the first.
NodeId OwnChooser::Choose(const WaitingPod& waiting, PodClassId pod, const WaitingPods& others,
                          const Feasibility& feasibility, SchedulingRules* tables,
                          PlacementRow* row) {
  const SchedulingRules& rules = *tables;
  const NodeId nominated = NominatedOf(waiting, rules, feasibility);
  const ChoiceGroup group = nominated != kNone ? ChoiceGroup::kNone : GroupOf(waiting);
  const bool is_policys =
      group == ChoiceGroup::kCanary || (share_ >= 1 && !waiting.is_opted_out && nominated == kNone);
  NodeScorer* scorer = is_policys ? scorer_.get() : baseline_.get();
  looked_at_.assign(1, pod);
  // The choice that is reported is compared with the policy's, also where it is another's.
  LookAtQueue(std::max(scorer->queue_looked_at(),
                       group == ChoiceGroup::kControl ? scorer_->queue_looked_at() : 1),
              others, tables);
  scorer->ScoreFirst(rules, looked_at_, feasibility, &scores_);
  row->policy = scorer->scored_by();
  if (is_policys) {
    ++counts_->by_policy;
    if (scorer->stepped_back() != StepBack::kNone) {
      ++counts_->stepped_back[static_cast<size_t>(scorer->stepped_back())];
      row->reason = scorer->WhySteppedBack();
    }
  }
  NodeId chosen = kNone;
  uint32_t equals = 0;
  const auto kept = static_cast<size_t>(options_.alternatives_kept);
  std::vector<std::pair<double, NodeId>> best;
  for (NodeId n = 0; n < rules.nodes().size(); ++n) {
    if (!feasibility.IsFeasible(n)) continue;
    const double score = scores_[n];
    if (chosen == kNone || score > scores_[chosen]) {
      chosen = n;
      equals = 1;
    } else if (score == scores_[chosen] && rng_.Below(++equals) == 0) {
      chosen = n;
    }
    if (best.size() == kept && score <= best.back().first) continue;
    if (best.size() == kept) best.pop_back();
    const auto at = std::find_if(best.begin(), best.end(),
                                 [&](const auto& other) { return other.first < score; });
    best.insert(at, {score, n});
  }
  CHECK_NE(chosen, kNone);
  if (nominated != kNone) {
    chosen = nominated;
    row->reason = fmt::format("its status.nominatedNodeName names {}", waiting.nominated);
  }
  row->best.emplace_back(rules.nodes().node(chosen).name, scores_[chosen]);
  for (const auto& [score, n] : best) {
    if (n != chosen && row->best.size() < kept)
      row->best.emplace_back(rules.nodes().node(n).name, score);
  }
  if (on_choice_ && group != ChoiceGroup::kNone) {
    untold_.Add({.key = waiting.id.Key(),
                 .node = row->best.front().first,
                 .id = waiting.id,
                 .shape = waiting.shape,
                 .behind = behind_,
                 .waited_ms = row->waited_ms,
                 .group = group});
  }
  return chosen;
}

}  // namespace rudderfish
