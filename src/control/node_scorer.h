// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/scheduling_rules.h"

// What a scheduler asks once it knows which nodes may take a pod: how good each is. The extender
// grades by it, the own scheduler takes the best. An implementation keeps working space: one
// thread.

namespace rudderfish {

class NodeScorer {
 public:
  virtual ~NodeScorer() = default;

  virtual std::string_view name() const = 0;

  // Fills (*scores)[node] for feasible nodes, larger is better; the others' do not matter.
  // REQUIRES: `feasibility` is what rules.Filter said of this class, with nothing changed since.
  virtual void Score(const SchedulingRules& rules, PodClassId pod, const Feasibility& feasibility,
                     std::vector<double>* scores) = 0;
};

// kube-default (the scores of kube-scheduler's default profile), least-allocated, most-allocated;
// the nearest of them in the message.
Result<std::unique_ptr<NodeScorer>> NodeScorerNamed(std::string_view name);

}  // namespace rudderfish
