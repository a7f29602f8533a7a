// SPDX-License-Identifier: Apache-2.0
#include "control/node_scorer.h"

#include <fmt/format.h>

#include <array>

#include "base/suggest.h"
#include "model/kube_scores.h"

namespace rudderfish {
namespace {

constexpr std::array<std::string_view, 4> kScorers = {"kube-default", "least-allocated",
                                                      "most-allocated", "round-robin"};

class KubeDefaultScorer final : public NodeScorer {
 public:
  std::string_view name() const override { return kScorers[0]; }

  void Score(const SchedulingRules& rules, PodClassId pod, const Feasibility& feasibility,
             std::vector<double>* scores) override {
    ScoreAsKube(rules, pod, feasibility, &scores_);
    scores->assign(scores_.total.begin(), scores_.total.end());
  }

 private:
  KubeScores scores_;
};

// The mean of the free shares of CPU and memory with the pod there.
class AllocationScorer final : public NodeScorer {
 public:
  AllocationScorer(std::string_view name, double sign) : name_(name), sign_(sign) {}

  std::string_view name() const override { return name_; }

  void Score(const SchedulingRules& rules, PodClassId pod, const Feasibility& feasibility,
             std::vector<double>* scores) override {
    const NodeTable& nodes = rules.nodes();
    const Resources& asked = rules.compiled(pod).pod->amounts.requests;
    scores->assign(static_cast<size_t>(nodes.size()), 0);
    const auto share = [&](int row, NodeId n, int64_t amount) {
      const auto all = static_cast<double>(nodes.allocatable(row)[n]);
      return all > 0 ? static_cast<double>(nodes.free(row)[n] - amount) / all : 0;
    };
    for (NodeId n = 0; n < nodes.size(); ++n) {
      if (!feasibility.IsFeasible(n)) continue;
      (*scores)[n] = sign_ * (share(NodeTable::kCpu, n, asked.cpu_millis) +
                              share(NodeTable::kMemory, n, asked.memory_bytes));
    }
  }

 private:
  std::string_view name_;
  double sign_;
};

// The next in turn that may take the pod, then those after it.
class RoundRobinScorer final : public NodeScorer {
 public:
  std::string_view name() const override { return kScorers[3]; }

  void Score(const SchedulingRules& rules, PodClassId /*pod*/, const Feasibility& feasibility,
             std::vector<double>* scores) override {
    const int count = rules.nodes().size();
    scores->assign(static_cast<size_t>(count), -count);
    if (feasibility.feasible == 0) return;
    const int start = next_ % count;  // There may be fewer than before.
    int turns = 0;
    for (int i = 0; i < count; ++i) {
      const NodeId node = (start + i) % count;
      if (!feasibility.IsFeasible(node)) continue;
      if (turns == 0) next_ = (node + 1) % count;
      (*scores)[node] = -turns++;
    }
  }

 private:
  NodeId next_ = 0;
};

}  // namespace

Result<std::unique_ptr<NodeScorer>> NodeScorerNamed(std::string_view name) {
  if (name == kScorers[0]) return std::make_unique<KubeDefaultScorer>();
  if (name == kScorers[1]) return std::make_unique<AllocationScorer>(kScorers[1], 1);
  if (name == kScorers[2]) return std::make_unique<AllocationScorer>(kScorers[2], -1);
  if (name == kScorers[3]) return std::make_unique<RoundRobinScorer>();
  return Invalid("unknown policy of placement `{}`{}; there are {}", name,
                 DidYouMean(name, {kScorers.begin(), kScorers.end()}), fmt::join(kScorers, ", "));
}

}  // namespace rudderfish
