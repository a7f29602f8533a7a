// SPDX-License-Identifier: Apache-2.0
#include "policy/descheduler.h"

#include <algorithm>

#include "base/check.h"
#include "policy/kube_default.h"

namespace rudderfish {
namespace {

// Requests of the pods on a node, in percent of what is allocatable.
struct UseOfNode {
  double cpu = 0, memory = 0;

  double Sum() const { return cpu + memory; }
  bool IsBelow(double percent) const { return cpu < percent && memory < percent; }
  bool IsAbove(double percent) const { return cpu > percent || memory > percent; }
};

double Percent(int64_t used, int64_t allocatable) {
  return allocatable == 0 ? 0
                          : 100.0 * static_cast<double>(used) / static_cast<double>(allocatable);
}

UseOfNode UseOf(const Evaluator& model, NodeId node) {
  const Resources& allocatable = model.state().nodes.allocatable[node];
  const Resources used = allocatable - model.placement().free(node);
  return {.cpu = Percent(used.cpu_millis, allocatable.cpu_millis),
          .memory = Percent(used.memory_bytes, allocatable.memory_bytes)};
}

bool AnyIsUnderutilized(const Evaluator& model, double low) {
  const State& state = model.state();
  for (NodeId node = 0; node < model.placement().node_count(); ++node) {
    const bool counts = state.catalog->layers[state.kind_of(node).layer].accepts_moves;
    if (counts && UseOf(model, node).IsBelow(low)) return true;
  }
  return false;
}

}  // namespace

std::unique_ptr<Memory> DeschedulerPolicy::NewMemory(uint64_t) const {
  return std::make_unique<Memory>();
}

void DeschedulerPolicy::Decide(std::span<Ask> asks, std::span<Answer> answers) const {
  CHECK_EQ(asks.size(), answers.size());
  for (size_t i = 0; i < asks.size(); ++i) {
    const Ask& ask = asks[i];
    Answer& answer = answers[i];
    answer.choice = kStop;
    answer.value = 0;
    answer.scores.assign(static_cast<size_t>(ask.space->count()) + 1, 0);
    if (!AnyIsUnderutilized(*ask.model, thresholds_.low)) continue;
    // From the most used node down, until one has a pod that kube-scheduler would put elsewhere.
    double below = 1e300;
    while (answer.choice == kStop) {
      NodeId fullest = kNone;
      double most = -1;
      for (const Candidate& candidate : ask.space->candidates) {
        const UseOfNode use = UseOf(*ask.model, candidate.move.from);
        if (!use.IsAbove(thresholds_.high) || use.Sum() >= below) continue;
        if (use.Sum() > most) {
          most = use.Sum();
          fullest = candidate.move.from;
        }
      }
      if (fullest == kNone) break;
      below = most;
      ChooseByScores(NodeScoring::kKubeDefault, ask, fullest, &answer);
    }
  }
}

}  // namespace rudderfish
