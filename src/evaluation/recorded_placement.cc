// SPDX-License-Identifier: Apache-2.0
#include "evaluation/recorded_placement.h"

#include <algorithm>
#include <vector>

#include "sim/lifecycle.h"

namespace rudderfish {
namespace {

// A State that follows a record.
class Follower {
 public:
  Follower(const Scenario& scenario, uint64_t seed, const State& start,
           const BindingObserver& observer)
      : scenario_(scenario),
        observer_(observer),
        pods_(PodsOfEpisode(scenario, seed)),
        laws_(PlacementLawsOf(scenario)),
        state_(start),
        id_of_(pods_.size(), kNone) {
    totals_.Reset(state_, laws_);
  }

  Result<void> Take(const RecordedChange& change) {
    TRY(Pass(change.at));
    if (change.pod < 0 || change.pod >= static_cast<int64_t>(pods_.size()))
      return Invalid("pod {}: the episode has {}", change.pod, pods_.size());
    switch (change.kind) {
      case RecordedChange::Kind::kArrived:
        return Arrive(change.pod);
      case RecordedChange::Kind::kBound:
        return Bind(change.pod, change.node);
      case RecordedChange::Kind::kLeft:
        return Leave(change.pod);
    }
    return {};
  }

  Result<LifecycleMetrics> Finish(SimTime end) {
    TRY(Pass(end));
    metrics_.end = end;
    for (const PodId pod : id_of_) {
      if (pod != kNone && state_.pods.node[pod] == kNone) ++metrics_.never_bound;
    }
    return metrics_;
  }

 private:
  Result<void> Pass(SimTime to) {
    if (to < state_.at)
      return Invalid("time runs backwards, from {} ns to {} ns", state_.at.count(), to.count());
    if (metrics_.first_arrival != kNever) {
      const Objective* objective = scenario_.objective ? &*scenario_.objective : nullptr;
      metrics_.Pass(to - state_.at, totals_.Now(), waiting_, objective);
    }
    state_.at = to;
    return {};
  }

  Result<void> Arrive(int64_t pod) {
    if (id_of_[pod] != kNone) return Invalid("pod {} arrives twice", pod);
    metrics_.first_arrival = std::min(metrics_.first_arrival, state_.at);
    ++metrics_.arrived;
    ++waiting_;
    id_of_[pod] = AddPod(pods_[pod].pod.workload, &state_);
    number_of_.push_back(pod);
    since_.push_back(state_.at);
    return {};
  }

  Result<void> Bind(int64_t pod, NodeId node) {
    const PodId id = id_of_[pod];
    if (id == kNone || state_.pods.node[id] != kNone)
      return Invalid("pod {} is bound and does not wait", pod);
    if (node < 0 || node >= state_.nodes.size())
      return Invalid("pod {} is bound to node {}: there are {}", pod, node, state_.nodes.size());
    const WorkloadId workload = state_.pods.workload[id];
    if (!HasRoom(state_, workload, node))
      return Invalid("pod {} is bound to {}, which has no room for it", pod,
                     NodeName(state_, node));
    if (observer_) observer_({state_, totals_, workload}, node);
    BindPod(id, node, &state_);
    totals_.Placed(workload, node);
    --waiting_;
    ++metrics_.bindings;
    metrics_.waiting.Add(state_.at - since_[id]);
    return {};
  }

  Result<void> Leave(int64_t pod) {
    const PodId id = id_of_[pod];
    if (id == kNone) return Invalid("pod {} leaves and is not there", pod);
    const NodeId node = state_.pods.node[id];
    const WorkloadId workload = state_.pods.workload[id];
    RemovePod(id, &state_);
    id_of_[pod] = kNone;
    number_of_[id] = number_of_.back();
    since_[id] = since_.back();
    number_of_.pop_back();
    since_.pop_back();
    if (id < state_.pods.size()) id_of_[number_of_[id]] = id;
    if (node == kNone) {
      --waiting_;
      ++metrics_.never_bound;
    } else {
      totals_.Removed(workload, node);
      ++metrics_.completed;
    }
    return {};
  }

  const Scenario& scenario_;
  const BindingObserver& observer_;
  std::vector<EpisodePod> pods_;
  PlacementLaws laws_;
  State state_;
  ClusterTotals totals_;
  LifecycleMetrics metrics_;
  int64_t waiting_ = 0;
  std::vector<PodId> id_of_;        // [pod of the episode]
  std::vector<int64_t> number_of_;  // [pod of the State]
  std::vector<SimTime> since_;      // [pod of the State] When it came.
};

}  // namespace

Result<LifecycleMetrics> MeasureRecorded(const std::shared_ptr<const Scenario>& scenario,
                                         uint64_t seed, std::span<const RecordedChange> record,
                                         SimTime end, const BindingObserver& observer) {
  Lifecycle start(scenario);
  TRY(start.Start(seed));
  if (start.state().pods.size() > 0)
    return Invalid("{}: has pods that are there from the start", scenario->name);
  Follower follower(*scenario, seed, start.state(), observer);
  for (const RecordedChange& change : record) TRY(follower.Take(change));
  return follower.Finish(end);
}

}  // namespace rudderfish
