// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/scheduling_rules.h"

// What a scheduler asks once it knows which nodes may take a pod: how good each is. The extender
// grades by it, the own scheduler takes the best. An implementation keeps working space: one
// thread.

namespace rudderfish {

// Why kube-default's scores stand in place of a policy's own.
enum class StepBack {
  kNone,
  kOutside,  // Of the nodes that may take the pod, it knows the type of none.
  kUnlike,   // The question is too unlike those that it was trained on.
};
inline constexpr std::array<std::string_view, 3> kStepBackNames = {"none", "outside", "unlike"};

class NodeScorer {
 public:
  virtual ~NodeScorer() = default;

  virtual std::string_view name() const = 0;

  // Fills (*scores)[node] for feasible nodes, larger is better; the others' do not matter.
  // REQUIRES: `feasibility` is what rules.Filter said of this class, with nothing changed since.
  virtual void Score(const SchedulingRules& rules, PodClassId pod, const Feasibility& feasibility,
                     std::vector<double>* scores) = 0;

  // How many pods of the queue it looks at, the one that is asked about among them.
  virtual int queue_looked_at() const { return 1; }
  // Score of the first, with those in mind that wait behind it, in the order in which they will be
  // asked about.
  virtual void ScoreFirst(const SchedulingRules& rules, std::span<const PodClassId> queue,
                          const Feasibility& feasibility, std::vector<double>* scores) {
    Score(rules, queue[0], feasibility, scores);
  }

  // Of the last Score: whether it stepped back, and why in words.
  virtual StepBack stepped_back() const { return StepBack::kNone; }
  virtual std::string WhySteppedBack() const { return ""; }

  // Whose scores the last ones are.
  std::string_view scored_by() const {
    return stepped_back() == StepBack::kNone ? name() : "kube-default";
  }
};

// kube-default (the scores of kube-scheduler's default profile), least-allocated, most-allocated,
// round-robin (nodes in turn, one on with each question); the nearest of them in the message.
// Others: control/live_policy.h.
Result<std::unique_ptr<NodeScorer>> NodeScorerNamed(std::string_view name);

}  // namespace rudderfish
