// SPDX-License-Identifier: Apache-2.0
#include "control/queue_scorer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>
#include <vector>

#include "base/check.h"

namespace rudderfish {
namespace {

class QueueScorer final : public NodeScorer {
 public:
  QueueScorer(std::string name, const Objective& objective, const QueueLookaheadOptions& options,
              std::unique_ptr<LiveCluster> cluster)
      : name_(std::move(name)),
        depth_(options.depth),
        task_(objective),
        search_(task_, options),
        cluster_(std::move(cluster)),
        baseline_(NodeScorerNamed("kube-default").value()) {}

  std::string_view name() const override { return name_; }
  int queue_looked_at() const override { return depth_; }

  void Score(const SchedulingRules& rules, PodClassId pod, const Feasibility& feasibility,
             std::vector<double>* scores) override {
    ScoreFirst(rules, {&pod, 1}, feasibility, scores);
  }

  void ScoreFirst(const SchedulingRules& rules, std::span<const PodClassId> queue,
                  const Feasibility& feasibility, std::vector<double>* scores) override {
    stepped_back_ = StepBack::kNone;
    queue = queue.first(std::min(queue.size(), static_cast<size_t>(depth_)));
    cluster_->Read(rules.nodes());
    SeeClasses(rules, queue, feasibility);
    const PlacementQuestion question =
        cluster_->AskQueue(std::span(amounts_).first(classes_), std::span(order_));
    task_.Space(question, allowed_[0], &space_);
    if (space_.candidates.empty()) {
      stepped_back_ = StepBack::kOutside;
      return baseline_->Score(rules, queue[0], feasibility, scores);
    }
    // Nodes that are no candidate come last.
    double best = -std::numeric_limits<double>::infinity(), worst = -best;
    for (const PlacementCandidate& one : space_.candidates) {
      best = std::max(best, -one.cost);
      worst = std::min(worst, -one.cost);
    }
    scores->assign(space_.candidate_of.size(), worst - 1);
    for (size_t n = 0; n < space_.candidate_of.size(); ++n) {
      const int32_t candidate = space_.candidate_of[n];
      if (candidate != kNone) (*scores)[n] = -space_.candidates[candidate].cost;
    }
    if (queue.size() == 1) return;
    const NodeId node = search_(question, std::span(allowed_).first(classes_));
    CHECK_NE(node, kNone);  // There are candidates.
    (*scores)[node] = best + 1;
  }

  StepBack stepped_back() const override { return stepped_back_; }

  std::string WhySteppedBack() const override {
    if (stepped_back_ == StepBack::kNone) return "";
    return fmt::format("{} counts none of the nodes that may take the pod", name_);
  }

 private:
  // Pods of one class are one workload: plans that swap them are the same plan.
  void SeeClasses(const SchedulingRules& rules, std::span<const PodClassId> queue,
                  const Feasibility& feasibility) {
    classes_ = 0;
    order_.clear();
    for (const PodClassId pod : queue) {
      const auto end = class_of_.begin() + static_cast<ptrdiff_t>(classes_);
      const auto at = std::find(class_of_.begin(), end, pod);
      order_.push_back(static_cast<WorkloadId>(at - class_of_.begin()));
      if (at != end) continue;
      class_of_[classes_] = pod;
      amounts_[classes_] = &rules.compiled(pod).pod->amounts;
      const Feasibility* of = &feasibility;
      if (classes_ > 0) {
        rules.Filter(pod, &behind_);
        rules.LimitLatency(pod, &behind_);
        of = &behind_;
      }
      std::vector<uint8_t>& allowed = allowed_[classes_++];
      allowed.resize(of->rejection.size());
      for (size_t n = 0; n < allowed.size(); ++n)
        allowed[n] = of->IsFeasible(static_cast<NodeId>(n)) ? 1 : 0;
    }
  }

  static constexpr size_t kMost = QueueLookaheadOptions::kDepthMax;

  std::string name_;
  int depth_;
  PlacementTask task_;
  QueueLookahead search_;
  std::unique_ptr<LiveCluster> cluster_;
  std::unique_ptr<NodeScorer> baseline_;
  // Of the queue: classes that differ, in the order in which they come first.
  size_t classes_ = 0;
  std::array<PodClassId, kMost> class_of_{};
  std::array<const PodAmounts*, kMost> amounts_{};
  std::array<std::vector<uint8_t>, kMost> allowed_;  // [node]
  std::vector<WorkloadId> order_;                    // [of the queue] Which of them.
  Feasibility behind_;
  PlacementSpace space_;
  StepBack stepped_back_ = StepBack::kNone;
};

}  // namespace

std::unique_ptr<NodeScorer> MakeQueueScorer(std::string name, const Objective& objective,
                                            const QueueLookaheadOptions& options,
                                            std::unique_ptr<LiveCluster> cluster) {
  return std::make_unique<QueueScorer>(std::move(name), objective, options, std::move(cluster));
}

}  // namespace rudderfish
