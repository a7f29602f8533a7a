// SPDX-License-Identifier: Apache-2.0
#include "evaluation/placement_foresight.h"

#include <algorithm>
#include <chrono>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "evaluation/placement_bound.h"
#include "sim/episode_pods.h"
#include "sim/lifecycle.h"
#include "sim/placement_run.h"

namespace rudderfish {
namespace {

struct ForeseenPod {
  SimTime comes{0}, leaves{0};
  Resources requests;
};

// When it is bound as it comes. One that leaves at once is there while others of that time are
// placed.
SimTime LeavesAt(const EpisodePod& pod, SimTime until) {
  SimTime leaves = std::min(pod.pod.deleted_at, until);
  if (pod.pod.lifetime != kNever)
    leaves = std::min(leaves, pod.pod.at + pod.start_delay + pod.pod.lifetime);
  return std::max(leaves, pod.pod.at + SimTime(1));
}

std::vector<ForeseenPod> Foresee(const Scenario& scenario, uint64_t seed) {
  std::vector<ForeseenPod> pods;
  for (const EpisodePod& pod : PodsOfEpisode(scenario, seed)) {
    pods.push_back({pod.pod.at, LeavesAt(pod, scenario.arrivals->until),
                    scenario.catalog->workloads[pod.pod.workload].requests});
  }
  return pods;
}

double Seconds(SimTime time) { return std::chrono::duration<double>(time).count(); }

class BeamSearch {
 public:
  BeamSearch(const State& start, std::vector<ForeseenPod> pods);

  // [pod] Empty if none was found.
  std::vector<NodeId> BestPlan();

 private:
  // Where a plan puts a pod, and which of the plans kept of the pod before it goes on from.
  struct Step {
    int32_t before = 0;
    NodeId node = kNone;
  };
  struct Plan {
    double cost = 0;   // Until the next pod comes; in seconds, as it is the integral over time.
    uint64_t key = 0;  // Of where those pods are that are there then.
    Step step;

    bool operator<(const Plan& other) const {
      return std::tie(cost, step.before, step.node) <
             std::tie(other.cost, other.step.before, other.step.node);
    }
  };

  size_t nodes() const { return room_.size(); }
  void SeeWhoLeaves(size_t pod);
  void SeeWhere(size_t pod, int32_t before);
  void Extend(size_t pod, int32_t before);
  void Try(size_t pod, int32_t before, NodeId node);
  void Keep(size_t pod);
  NodeId NodeOf(size_t pod, size_t placed, int32_t plan) const;
  double ImbalanceOfNow() const;

  std::vector<ForeseenPod> pods_;
  std::vector<Resources> room_;              // [node] Allocatable.
  std::vector<std::vector<uint64_t>> keys_;  // [pod][node] Of a plan: those of its pods, by xor.
  size_t width_ = 0;

  std::vector<int32_t> order_;            // Pods as they leave;
  size_t leave_from_ = 0, leave_to_ = 0;  // those who do before the next comes.
  SimTime next_{0};                       // When that is.

  std::vector<Plan> kept_, tried_;
  std::vector<Resources> used_;           // [kept plan][node]
  std::vector<std::vector<Step>> steps_;  // [pod][plan kept then]
  std::vector<Resources> now_;            // [node] Of the plan that is tried.
  std::vector<NodeId> leave_;             // From where; likewise.
};

BeamSearch::BeamSearch(const State& start, std::vector<ForeseenPod> pods)
    : pods_(std::move(pods)), room_(start.nodes.allocatable) {
  const auto count = static_cast<int64_t>(pods_.size());
  width_ = static_cast<size_t>(
      std::clamp(kPlansInAll / std::max<int64_t>(count, 1), kFewestPlans, kMostPlans));
  for (int32_t pod = 0; pod < count; ++pod) {
    if (pods_[pod].leaves != kNever) order_.push_back(pod);
    Rng rng(0, static_cast<uint64_t>(pod));
    auto& keys = keys_.emplace_back();
    for (size_t node = 0; node < nodes(); ++node) keys.push_back(rng.Next64());
  }
  std::stable_sort(order_.begin(), order_.end(),
                   [&](int32_t a, int32_t b) { return pods_[a].leaves < pods_[b].leaves; });
  kept_.emplace_back();
  for (size_t node = 0; node < nodes(); ++node)
    used_.push_back(room_[node] - start.nodes.free[node]);
}

std::vector<NodeId> BeamSearch::BestPlan() {
  for (size_t pod = 0; pod < pods_.size(); ++pod) {
    SeeWhoLeaves(pod);
    tried_.clear();
    for (size_t plan = 0; plan < kept_.size(); ++plan) Extend(pod, static_cast<int32_t>(plan));
    if (tried_.empty()) return {};
    Keep(pod);
  }
  std::vector<NodeId> nodes(pods_.size());
  int32_t plan = 0;  // The cheapest is the first.
  for (size_t pod = pods_.size(); pod-- > 0; plan = steps_[pod][plan].before)
    nodes[pod] = steps_[pod][plan].node;
  return nodes;
}

void BeamSearch::SeeWhoLeaves(size_t pod) {
  next_ = pod + 1 < pods_.size() ? pods_[pod + 1].comes : kNever;
  leave_from_ = leave_to_;
  while (leave_to_ < order_.size() && pods_[order_[leave_to_]].leaves <= next_) ++leave_to_;
}

void BeamSearch::SeeWhere(size_t pod, int32_t before) {
  leave_.clear();
  for (size_t i = leave_from_; i < leave_to_; ++i)
    leave_.push_back(NodeOf(static_cast<size_t>(order_[i]), pod, before));
}

void BeamSearch::Extend(size_t pod, int32_t before) {
  SeeWhere(pod, before);
  for (NodeId node = 0; node < static_cast<NodeId>(nodes()); ++node) {
    const Resources& used = used_[static_cast<size_t>(before) * nodes() + node];
    if ((room_[node] - used).Fits(pods_[pod].requests)) Try(pod, before, node);
  }
}

// kNone of the one that is placed now, `placed`: each plan puts it elsewhere.
NodeId BeamSearch::NodeOf(size_t pod, size_t placed, int32_t plan) const {
  if (pod == placed) return kNone;
  for (size_t i = placed - 1; i > pod; --i) plan = steps_[i][plan].before;
  return steps_[pod][plan].node;
}

void BeamSearch::Try(size_t pod, int32_t before, NodeId node) {
  const auto used = used_.begin() + static_cast<ptrdiff_t>(before * nodes());
  now_.assign(used, used + static_cast<ptrdiff_t>(nodes()));
  now_[node] += pods_[pod].requests;
  Plan plan{.cost = kept_[before].cost,
            .key = kept_[before].key ^ keys_[pod][node],
            .step = {before, node}};
  SimTime at = pods_[pod].comes;
  const auto pass = [&](SimTime to) {
    if (to > at) plan.cost += Seconds(to - at) * ImbalanceOfNow();
    at = to;
  };
  for (size_t i = leave_from_; i < leave_to_; ++i) {
    const auto leaving = static_cast<size_t>(order_[i]);
    const NodeId from = leaving == pod ? node : leave_[i - leave_from_];
    pass(pods_[leaving].leaves);
    now_[from] -= pods_[leaving].requests;
    plan.key ^= keys_[leaving][from];
  }
  if (next_ != kNever) pass(next_);
  tried_.push_back(plan);
}

double BeamSearch::ImbalanceOfNow() const {
  Imbalance imbalance;
  for (size_t node = 0; node < nodes(); ++node) imbalance.Add(now_[node], room_[node]);
  return imbalance.Of(static_cast<int>(nodes()));
}

// The cheapest of those tried, one of each key.
void BeamSearch::Keep(size_t pod) {
  std::sort(tried_.begin(), tried_.end());
  std::unordered_set<uint64_t> seen;
  std::vector<Plan> kept;
  std::vector<Resources> used;
  std::vector<Step> steps;
  for (const Plan& plan : tried_) {
    if (kept.size() == width_) break;
    if (!seen.insert(plan.key).second) continue;
    const auto [before, node] = plan.step;
    const size_t first = used.size();
    for (size_t n = 0; n < nodes(); ++n) used.push_back(used_[before * nodes() + n]);
    used[first + node] += pods_[pod].requests;
    SeeWhere(pod, before);
    for (size_t i = leave_from_; i < leave_to_; ++i) {
      const auto leaving = static_cast<size_t>(order_[i]);
      const NodeId from = leaving == pod ? node : leave_[i - leave_from_];
      used[first + from] -= pods_[leaving].requests;
    }
    kept.push_back(plan);
    steps.push_back(plan.step);
  }
  kept_ = std::move(kept);
  used_ = std::move(used);
  steps_.push_back(std::move(steps));
}

}  // namespace

Result<std::optional<double>> BestForeseenBalance(std::shared_ptr<const Scenario> scenario,
                                                  uint64_t seed) {
  Lifecycle lifecycle(scenario, Lifecycle::Measured::kAllButFragmentation);
  TRY(lifecycle.Start(seed));
  const std::vector<NodeId> nodes =
      BeamSearch(lifecycle.state(), Foresee(*scenario, seed)).BestPlan();
  size_t next = 0;
  const auto as_planned = [&](const PlacementQuestion&) { return nodes[next++]; };
  if (nodes.empty()) return std::optional<double>();
  TRY_ASSIGN(const LifecycleMetrics metrics, RunPlacement(as_planned, seed, &lifecycle));
  return std::optional(metrics.MeanOverTime(metrics.objective_s));
}

}  // namespace rudderfish
