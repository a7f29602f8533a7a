// SPDX-License-Identifier: Apache-2.0
#include "policy/lookahead_placement.h"

#include <algorithm>

#include "base/check.h"

namespace rudderfish {
namespace {

constexpr int kDoublesExpected = 4;  // Times the width: of so many the best that differ are kept.

// Of one pod of the workload on the node; a plan's is the sum.
uint64_t HashOf(WorkloadId workload, NodeId node) {
  uint64_t hash =
      (static_cast<uint64_t>(static_cast<uint32_t>(workload)) << 32) | static_cast<uint32_t>(node);
  hash = (hash ^ (hash >> 33)) * 0xFF51AFD7ED558CCDULL;
  hash = (hash ^ (hash >> 33)) * 0xC4CEB9FE1A85EC53ULL;
  return hash ^ (hash >> 33);
}

// The first of the cheapest; -1 without candidates.
int CheapestOf(const PlacementSpace& space) {
  int best = -1;
  for (int i = 0; i < space.count(); ++i) {
    if (best < 0 || space.candidates[i].cost < space.candidates[best].cost) best = i;
  }
  return best;
}

constexpr int kNodesAnEvaluation = 16;

}  // namespace

QueueLookahead::QueueLookahead(const PlacementTask& task, const QueueLookaheadOptions& options)
    : task_(task), options_(options) {
  CHECK(options.depth >= 1 && options.depth <= QueueLookaheadOptions::kDepthMax);
  CHECK_GE(options.width, 1);
}

// How many plans may be kept while so many pods are still to be placed; 0: not even one.
int QueueLookahead::WidthFor(int pods_left, int candidates) const {
  const int64_t each = static_cast<int64_t>(pods_left) * std::max(1, candidates);
  return static_cast<int>(
      std::min<int64_t>(options_.width, (options_.evaluations - evaluations_) / each));
}

NodeId QueueLookahead::operator()(const PlacementQuestion& question,
                                  std::span<const std::vector<uint8_t>> allowed) {
  const auto where = [&](WorkloadId workload) {
    return allowed.empty() ? std::span<const uint8_t>() : std::span(allowed[workload]);
  };
  task_.Space(question, where(question.workload), &space_);
  evaluations_ = space_.count();
  const int cheapest = CheapestOf(space_);
  if (cheapest < 0) return kNone;
  const NodeId greedy = space_.candidates[cheapest].node;
  int depth = std::min<int>(options_.depth, 1 + static_cast<int>(question.next.size()));
  SeeWhere(allowed);
  const int candidates = EvaluationsOf(space_);
  while (depth > 1 && WidthFor(depth - 1, candidates) < 1) --depth;
  if (depth == 1 || (space_.count() == 1 && ways_.size() <= 1)) return greedy;
  Begin(question);
  plans_.assign(1, Plan{});
  longer_.clear();
  Lengthen(0, 0);
  for (int pods = 1;; ++pods) {
    KeepBest(pods < depth ? std::max(1, WidthFor(depth - pods, candidates)) : 1, pods);
    if (pods == depth) return plans_[0].nodes[0];
    longer_.clear();
    for (int plan = 0; plan < static_cast<int>(plans_.size()); ++plan) {
      if (evaluations_ >= options_.evaluations) return plans_[0].nodes[0];
      Follow(plans_[plan], pods);
      const WorkloadId workload = state_.pods.workload[pods_[pods]];
      task_.Space({state_, totals_, workload}, where(workload), &space_);
      evaluations_ += EvaluationsOf(space_);
      Lengthen(plan, pods);
      TakeBack(plans_[plan], pods);
    }
  }
}

int QueueLookahead::EvaluationsOf(const PlacementSpace& space) const {
  return std::max(space.count(), static_cast<int>(way_of_.size()) / kNodesAnEvaluation);
}

void QueueLookahead::SeeWhere(std::span<const std::vector<uint8_t>> allowed) {
  CHECK_LE(allowed.size(), size_t{32});
  ways_.clear();
  way_of_.clear();
  for (size_t node = 0; !allowed.empty() && node < allowed[0].size(); ++node) {
    uint32_t way = 0;
    for (size_t w = 0; w < allowed.size(); ++w) way |= uint32_t{allowed[w][node]} << w;
    const auto at = std::find(ways_.begin(), ways_.end(), way);
    way_of_.push_back(static_cast<uint32_t>(at - ways_.begin()));
    if (at == ways_.end()) ways_.push_back(way);
  }
}

// The queue's pods stand behind all others, none of them bound.
void QueueLookahead::Begin(const PlacementQuestion& question) {
  state_ = question.state;
  totals_.CopyFor(state_, question.totals);
  pods_.clear();
  pods_.push_back(AddPod(question.workload, &state_));
  for (const WorkloadId workload : question.next) pods_.push_back(AddPod(workload, &state_));
}

void QueueLookahead::Follow(const Plan& plan, int pods) {
  for (int i = 0; i < pods; ++i) {
    if (plan.nodes[i] == kNone) continue;
    BindPod(pods_[i], plan.nodes[i], &state_);
    totals_.Placed(state_.pods.workload[pods_[i]], plan.nodes[i]);
  }
}

void QueueLookahead::TakeBack(const Plan& plan, int pods) {
  for (int i = pods; i-- > 0;) {
    if (plan.nodes[i] == kNone) continue;
    UnbindPod(pods_[i], &state_);
    totals_.Removed(state_.pods.workload[pods_[i]], plan.nodes[i]);
  }
}

// With the pod that comes after so many, on each candidate of space_.
void QueueLookahead::Lengthen(int plan, int pods) {
  const Plan& from = plans_[plan];
  const double waiting_cost = 1.0 / std::max(1, space_.now.ready_nodes);
  const auto add = [&](NodeId node, double objective, int waiting) {
    const uint64_t more = node == kNone ? 0 : HashOf(state_.pods.workload[pods_[pods]], node);
    longer_.push_back(
        {plan, node, objective + waiting * waiting_cost, waiting, from.who_is_where + more});
  };
  is_tried_.assign(space_.candidates.size() * ways_.size(), 0);
  for (size_t node = 0; node < way_of_.size(); ++node) {
    const int32_t candidate = space_.candidate_of[node];
    if (candidate == kNone) continue;
    uint8_t& is_tried = is_tried_[candidate * ways_.size() + way_of_[node]];
    if (is_tried == 0)
      add(static_cast<NodeId>(node), space_.candidates[candidate].cost, from.waiting);
    is_tried = 1;
  }
  for (const PlacementCandidate& one : space_.candidates) {
    if (way_of_.empty()) add(one.node, one.cost, from.waiting);
  }
  if (space_.candidates.empty()) add(kNone, space_.cost_now, from.waiting + 1);
}

// Of longer_ the best that differ become plans_. They have `pods` pods.
void QueueLookahead::KeepBest(int width, int pods) {
  const auto is_before = [](const Longer& a, const Longer& b) {
    if (a.cost != b.cost) return a.cost < b.cost;
    return a.plan != b.plan ? a.plan < b.plan : a.node < b.node;
  };
  const size_t looked_at = std::min(longer_.size(), static_cast<size_t>(width) * kDoublesExpected);
  std::partial_sort(longer_.begin(), longer_.begin() + static_cast<ptrdiff_t>(looked_at),
                    longer_.end(), is_before);
  kept_.clear();
  for (size_t i = 0; i < looked_at && static_cast<int>(kept_.size()) < width; ++i) {
    const Longer& one = longer_[i];
    const bool is_known = std::any_of(kept_.begin(), kept_.end(), [&](const Plan& plan) {
      return plan.who_is_where == one.who_is_where && plan.waiting == one.waiting;
    });
    if (is_known) continue;
    Plan& plan = kept_.emplace_back(plans_[one.plan]);
    plan.nodes[pods - 1] = one.node;
    plan.cost = one.cost;
    plan.waiting = one.waiting;
    plan.who_is_where = one.who_is_where;
  }
  std::swap(plans_, kept_);
}

}  // namespace rudderfish
