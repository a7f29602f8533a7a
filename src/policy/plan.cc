// SPDX-License-Identifier: Apache-2.0
#include "policy/plan.h"

#include <bit>
#include <utility>

#include "base/check.h"
#include "task/migration.h"

namespace rudderfish {
namespace {

uint64_t Mix(uint64_t key, uint64_t value) {
  key = (key ^ value) * 0x9E3779B97F4A7C15ull;
  return key ^ (key >> 32);
}

}  // namespace

double StepCosts(const Task& task, const Question& question, int count) {
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += task.StepCost({question.step + i});
  return sum;
}

void AppraisePlan(Evaluator* model, const Task& task, const Question& question, Plan* plan) {
  double steps_ms = 0;
  int made = 0, best = 0;
  plan->latency_ms = plan->cost_ms = model->Now().latency_ms;
  for (const Move& move : plan->moves) {
    const Question here{question.step + made};
    if (here.step >= task.max_steps()) break;
    if (!MoveAllowed(model->state(), model->placement(), move)) break;
    steps_ms += task.StepCost(here);
    model->Commit(move);
    ++made;
    const double latency_ms = model->Now().latency_ms;
    if (latency_ms + steps_ms >= plan->cost_ms) continue;
    best = made;
    plan->latency_ms = latency_ms;
    plan->cost_ms = latency_ms + steps_ms;
  }
  for (; made > 0; --made) model->Undo();
  plan->moves.resize(best);
}

uint64_t Fingerprint(const Evaluator& model) {
  const Placement& placement = model.placement();
  uint64_t key = std::bit_cast<uint64_t>(model.Now().latency_ms);
  for (NodeId node = 0; node < placement.node_count(); ++node) {
    key = Mix(key, placement.free(node).cpu_millis);
    key = Mix(key, placement.free(node).memory_bytes);
  }
  for (WorkloadId w = 0; w < placement.workload_count(); ++w) {
    for (NodeId node = 0; node < placement.node_count(); ++node) {
      const uint64_t here = placement.on_node(w, node);
      if (here > 0) key = Mix(key, here << 56 ^ static_cast<uint64_t>(w) << 32 ^ node);
    }
  }
  return key;
}

bool PlanMemory::Follow(const Ask& ask, Answer* answer) {
  const int step = ask.question.step - first_step_;
  if (!following_ || step < 0 || step > static_cast<int>(plan_.moves.size())) return false;
  if (Fingerprint(*ask.model) != fingerprints_[step]) return false;
  answer->scores.clear();
  answer->value = Value(step);
  answer->choice = kStop;
  if (step == static_cast<int>(plan_.moves.size())) return complete_;
  answer->choice = FindCandidate(*ask.space, plan_.moves[step]);
  if (answer->choice != kStop) return true;
  if (!Substitute(ask, step)) return false;
  answer->choice = FindCandidate(*ask.space, plan_.moves[step]);
  answer->value = Value(step);
  return true;
}

bool PlanMemory::Adopt(const Plan& plan, const Ask& ask, Answer* answer) {
  plan_ = plan;
  following_ = true;
  complete_ = true;
  first_step_ = ask.question.step;
  fingerprints_.clear();
  costs_.clear();
  Record(ask, 0);
  following_ = Follow(ask, answer);
  return following_;
}

// In a large world a question lists representatives only. Another node of the same kind does the same for latency:
// takes such a candidate in place of the planned move, and exchanges the two nodes in what follows.
bool PlanMemory::Substitute(const Ask& ask, int step) {
  const Placement& placement = ask.model->placement();
  const Move planned = plan_.moves[step];
  const Move* found = nullptr;
  for (const Candidate& candidate : ask.space->candidates) {
    const Move& move = candidate.move;
    if (move.workload != planned.workload || placement.kind(move.from) != placement.kind(planned.from) ||
        placement.kind(move.to) != placement.kind(planned.to)) {
      continue;
    }
    const auto shared = [&](const Move& m) { return (m.from == planned.from) + (m.to == planned.to); };
    if (found == nullptr || shared(move) > shared(*found)) found = &move;
  }
  if (found == nullptr) return false;
  const auto exchange = [](NodeId a, NodeId b, NodeId* node) {
    if (*node == a) {
      *node = b;
    } else if (*node == b) {
      *node = a;
    }
  };
  for (size_t i = step + 1; i < plan_.moves.size(); ++i) {
    for (NodeId* node : {&plan_.moves[i].from, &plan_.moves[i].to}) {
      exchange(planned.from, found->from, node);
      exchange(planned.to, found->to, node);
    }
  }
  plan_.moves[step] = *found;
  Record(ask, step);
  return true;
}

// Notes what the placement will look like before each move from `step` on, and cuts the plan where it cannot go on.
void PlanMemory::Record(const Ask& ask, int step) {
  Evaluator* model = ask.model;
  fingerprints_.resize(step);
  costs_.resize(step);
  int made = 0;
  for (;;) {
    fingerprints_.push_back(Fingerprint(*model));
    costs_.push_back(model->Now().latency_ms + StepCosts(*ask.task, {first_step_}, step + made));
    if (step + made == static_cast<int>(plan_.moves.size())) break;
    const Move& move = plan_.moves[step + made];
    if (move.from == move.to || !MoveAllowed(model->state(), model->placement(), move)) {
      plan_.moves.resize(step + made);
      complete_ = false;
      break;
    }
    model->Commit(move);
    ++made;
  }
  for (; made > 0; --made) model->Undo();
}

}  // namespace rudderfish
