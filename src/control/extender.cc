// SPDX-License-Identifier: Apache-2.0
#include "control/extender.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace rudderfish {
namespace {

// Empty: it is not.
std::string WhyTooFar(const LatencyLimits& limits, const std::optional<double>& user_ms) {
  if (!limits.has_hard() || (user_ms && *user_ms <= limits.hard_ms)) return "";
  const std::string far = user_ms ? fmt::format("{:g} ms", *user_ms) : "not known how far";
  return fmt::format("{} from the users, the pod's hard limit is {:g} ms", far, limits.hard_ms);
}

}  // namespace

Extender::Grades Extender::Prioritize(const std::shared_ptr<const PodClass>& pod,
                                      const std::vector<std::string_view>& nodes) {
  Grades grades{std::vector<int>(nodes.size(), 0), ""};
  if (!pod->unmodelled.empty()) {
    grades.abstained = fmt::format("the pod {}", fmt::join(pod->unmodelled, "; "));
    return grades;
  }
  SchedulingRules& rules = tables_->Rules();
  const PodClassId id = rules.Register(pod);
  rules.Filter(id, &feasibility_);
  const int by_rules = feasibility_.feasible;
  rules.LimitLatency(id, &feasibility_);
  const bool some_are_too_far = feasibility_.feasible < by_rules;
  scorer_->Score(rules, id, feasibility_, &scores_);
  grades.stepped_back = scorer_->stepped_back();
  ranked_.clear();
  for (size_t i = 0; i < nodes.size(); ++i) {
    const NodeId node = rules.nodes().Find(nodes[i]);
    // What we take for full, kube-scheduler may know to be free since: it is the worst then.
    if (node != kNone && feasibility_.IsFeasible(node))
      ranked_.push_back({scores_[node], static_cast<int>(i)});
  }
  if (ranked_.empty()) {
    grades.abstained = "none of the nodes is known";
    return grades;
  }
  const auto [worst, best] =
      std::minmax_element(ranked_.begin(), ranked_.end(),
                          [](const Ranked& a, const Ranked& b) { return a.score < b.score; });
  const double least = worst->score, range = best->score - worst->score;
  if (range <= 0 && !some_are_too_far) {
    grades.abstained = "all nodes are alike";
    return grades;
  }
  const int lowest = some_are_too_far ? 1 : 0;
  const auto by_place = [&](double score) {
    const double share = range > 0 ? (score - least) / range : 1;
    return lowest + static_cast<int>(std::lround(share * (kGradeMax - lowest)));
  };
  const size_t named = std::min<size_t>(kNamedMax, ranked_.size());
  std::partial_sort(ranked_.begin(), ranked_.begin() + named, ranked_.end(),
                    [](const Ranked& a, const Ranked& b) {
                      return a.score != b.score ? a.score > b.score : a.asked < b.asked;
                    });
  size_t better = 0;  // So many are.
  for (size_t i = 0; i < ranked_.size(); ++i) {
    if (i < named && ranked_[i].score < ranked_[better].score) better = i;
    const int by_rank = i < named ? std::max(lowest, kGradeMax - static_cast<int>(better)) : lowest;
    grades.of[ranked_[i].asked] = std::min(by_place(ranked_[i].score), by_rank);
  }
  return grades;
}

std::vector<std::string> Extender::Filter(const PodClass& pod,
                                          const std::vector<std::string_view>& nodes) {
  std::vector<std::string> reasons(nodes.size());
  if (!limits_.any()) return reasons;
  const NodeTable& table = tables_->Rules().nodes();
  const auto exceeds = [&](int row, NodeId node, int64_t amount, double limit) {
    const auto all = static_cast<double>(table.allocatable(row)[node]);
    const auto held = static_cast<double>(table.allocatable(row)[node] - table.free(row)[node]);
    return limit < 1 && held + static_cast<double>(amount) > all * limit;
  };
  const Resources& asked = pod.amounts.requests;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const NodeId node = table.Find(nodes[i]);
    if (node == kNone) continue;
    if (exceeds(NodeTable::kCpu, node, asked.cpu_millis, limits_.cpu)) {
      reasons[i] = fmt::format("over the hard limit of {:g} of cpu", limits_.cpu);
    } else if (exceeds(NodeTable::kMemory, node, asked.memory_bytes, limits_.memory)) {
      reasons[i] = fmt::format("over the hard limit of {:g} of memory", limits_.memory);
    } else if (limits_.latency) {
      reasons[i] = WhyTooFar(pod.latency_limits, table.node(node).user_ms);
    }
  }
  return reasons;
}

}  // namespace rudderfish
