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
  std::vector<NodeId> known(nodes.size(), kNone);
  double least = 0, most = 0;
  bool is_first = true;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const NodeId node = rules.nodes().Find(nodes[i]);
    // What we take for full, kube-scheduler may know to be free since: it is the worst then.
    if (node == kNone || !feasibility_.IsFeasible(node)) continue;
    known[i] = node;
    least = is_first ? scores_[node] : std::min(least, scores_[node]);
    most = is_first ? scores_[node] : std::max(most, scores_[node]);
    is_first = false;
  }
  if (is_first || (most <= least && !some_are_too_far)) {
    grades.abstained = is_first ? "none of the nodes is known" : "all nodes are alike";
    return grades;
  }
  const int lowest = some_are_too_far ? 1 : 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (known[i] == kNone) continue;
    const double share = most > least ? (scores_[known[i]] - least) / (most - least) : 1;
    grades.of[i] = lowest + static_cast<int>(std::lround(share * (kGradeMax - lowest)));
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
