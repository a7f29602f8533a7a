// SPDX-License-Identifier: Apache-2.0
#include "policy/kube_default.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "model/kube_scores.h"
#include "model/topology_spread.h"
#include "policy/greedy.h"

namespace rudderfish {
namespace {

constexpr int64_t kMaxSkew = 3;  // Of the default constraint by host name.
constexpr int64_t kSpreadWeight = 2;
constexpr Resources kAssumedRequests{.cpu_millis = 100, .memory_bytes = 200 * 1024 * 1024};

int64_t MostScore(int64_t requested, int64_t capacity) {
  if (capacity == 0) return 0;
  return std::min(requested, capacity) * 100 / capacity;
}

// Scores of one pod's alternatives, its own node among them.
class PodScores {
 public:
  PodScores(NodeScoring scoring, const Evaluator& model, WorkloadId workload, NodeId own)
      : scoring_(scoring),
        state_(model.state()),
        placement_(model.placement()),
        workload_(workload),
        own_(own) {
    if (scoring != NodeScoring::kKubeDefault) return;
    int feasible = 0;
    for (NodeId node = 0; node < placement_.node_count(); ++node) feasible += Feasible(node);
    pod_weight_ = SpreadWeight(feasible);
    for (NodeId node = 0; node < placement_.node_count(); ++node) {
      if (!Feasible(node)) continue;
      const int64_t count = SpreadCount(node);
      count_min_ = std::min(count_min_, count);
      count_max_ = std::max(count_max_, count);
    }
  }

  int64_t Of(NodeId node) const {
    const Resources& allocatable = state_.nodes.allocatable[node];
    const Resources& requests = placement_.requests(workload_);
    Resources used = allocatable - placement_.free(node);
    if (node == own_) used -= requests;
    Resources assumed = requests;  // Kubernetes decides resource by resource.
    if (assumed.cpu_millis == 0) assumed.cpu_millis = kAssumedRequests.cpu_millis;
    if (assumed.memory_bytes == 0) assumed.memory_bytes = kAssumedRequests.memory_bytes;
    switch (scoring_) {
      case NodeScoring::kLeastAllocated:
        return LeastAllocatedOf(used + assumed, allocatable);
      case NodeScoring::kMostAllocated:
        return MostAllocatedScore(used + assumed, allocatable);
      case NodeScoring::kKubeDefault:
        break;
    }
    const bool best_effort = requests == Resources{};
    return LeastAllocatedOf(used + assumed, allocatable) +
           (best_effort ? 0 : BalancedAllocationOf(used, used + requests, allocatable)) +
           kSpreadWeight * SpreadScore(SpreadCount(node), count_min_, count_max_);
  }

 private:
  bool Feasible(NodeId node) const {
    if (node == own_) return true;
    return state_.catalog->layers[state_.kind_of(node).layer].accepts_moves &&
           placement_.Fits(workload_, node);
  }
  int64_t SpreadCount(NodeId node) const {
    const int pods = placement_.on_node(workload_, node) - (node == own_);
    return std::llround(SpreadSum(pods, pod_weight_, kMaxSkew));
  }

  NodeScoring scoring_;
  const State& state_;
  const Placement& placement_;
  WorkloadId workload_;
  NodeId own_;
  double pod_weight_ = 0;
  int64_t count_min_ = std::numeric_limits<int64_t>::max();
  int64_t count_max_ = 0;
};

}  // namespace

int64_t MostAllocatedScore(const Resources& requested, const Resources& allocatable) {
  return (MostScore(requested.cpu_millis, allocatable.cpu_millis) +
          MostScore(requested.memory_bytes, allocatable.memory_bytes)) /
         2;
}

std::string_view NodeScorePolicy::name() const {
  switch (scoring_) {
    case NodeScoring::kLeastAllocated:
      return "least-allocated";
    case NodeScoring::kMostAllocated:
      return "most-allocated";
    case NodeScoring::kKubeDefault:
      break;
  }
  return "kube-default";
}

std::unique_ptr<Memory> NodeScorePolicy::NewMemory(uint64_t) const {
  return std::make_unique<Memory>();
}

void ChooseByScores(NodeScoring scoring, const Ask& ask, NodeId from, Answer* answer) {
  const ActionSpace& space = *ask.space;
  const State& state = ask.model->state();
  answer->choice = kStop;
  answer->value = 0;
  answer->scores.clear();
  int64_t best = 0;
  for (int c = 0; c < space.count(); ++c) {
    const Move& move = space.candidates[c].move;
    if (from != kNone && move.from != from) {
      answer->scores.push_back(0);
      continue;
    }
    const PodScores scores(scoring, *ask.model, move.workload, move.from);
    const int64_t gain = scores.Of(move.to) - scores.Of(move.from);
    answer->scores.push_back(static_cast<float>(gain));
    if (gain <= 0 || gain < best) continue;
    if (gain > best ||
        ComesFirst(state, state.pods.node, move, space.candidates[answer->choice].move))
      answer->choice = c;
    best = gain;
  }
  answer->scores.push_back(0);
}

void NodeScorePolicy::Decide(std::span<Ask> asks, std::span<Answer> answers) const {
  CHECK_EQ(asks.size(), answers.size());
  for (size_t i = 0; i < asks.size(); ++i) ChooseByScores(scoring_, asks[i], kNone, &answers[i]);
}

}  // namespace rudderfish
