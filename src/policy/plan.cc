// SPDX-License-Identifier: Apache-2.0
#include "policy/plan.h"

#include <bit>

#include "base/check.h"
#include "task/migration.h"

namespace rudderfish {
namespace {

uint64_t Mix(uint64_t key, uint64_t value) {
  key = (key ^ value) * 0x9E3779B97F4A7C15ull;
  return key ^ (key >> 32);
}

void Exchange(NodeId a, NodeId b, NodeId* node) {
  if (*node == a) {
    *node = b;
  } else if (*node == b) {
    *node = a;
  }
}

// Puts an equal alternative in place of a planned move, the one that shares most nodes with it.
bool Substitute(const Placement& placement, const ActionSpace& space, size_t at, Plan* plan) {
  const Move planned = plan->moves[at];
  const Move* found = nullptr;
  const auto shared = [&](const Move& m) {
    return (m.from == planned.from) + (m.to == planned.to);
  };
  for (const Candidate& candidate : space.candidates) {
    const Move& move = candidate.move;
    if (move.workload != planned.workload ||
        placement.kind(move.from) != placement.kind(planned.from) ||
        placement.kind(move.to) != placement.kind(planned.to)) {
      continue;
    }
    if (found == nullptr || shared(move) > shared(*found)) found = &move;
  }
  if (found == nullptr) return false;
  for (size_t i = at + 1; i < plan->moves.size(); ++i) {
    for (NodeId* node : {&plan->moves[i].from, &plan->moves[i].to}) {
      Exchange(planned.from, found->from, node);
      Exchange(planned.to, found->to, node);
    }
  }
  plan->moves[at] = *found;
  return true;
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

void FitPlan(Evaluator* model, const Task& task, const Question& question, ActionSpace* scratch,
             Plan* plan) {
  size_t made = 0;
  for (Question here = question; made < plan->moves.size(); ++made, ++here.step) {
    if (!MoveAllowed(model->state(), model->placement(), plan->moves[made])) break;
    task.Space(model, here, scratch);
    if (FindCandidate(*scratch, plan->moves[made]) == kStop &&
        !Substitute(model->placement(), *scratch, made, plan))
      break;
    model->Commit(plan->moves[made]);
  }
  plan->moves.resize(made);
  for (; made > 0; --made) model->Undo();
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
  const int moves = static_cast<int>(plan_.moves.size());
  if (!following_ || step < 0 || step > moves || Fingerprint(*ask.model) != fingerprints_[step])
    return false;
  answer->scores.clear();
  answer->value = costs_ms_[step] - costs_ms_.back();
  answer->choice = step == moves ? kStop : FindCandidate(*ask.space, plan_.moves[step]);
  return step == moves || answer->choice != kStop;
}

void PlanMemory::Adopt(const Plan& plan, const Ask& ask, Answer* answer) {
  Evaluator* model = ask.model;
  plan_ = plan;
  following_ = true;
  first_step_ = ask.question.step;
  fingerprints_.clear();
  costs_ms_.clear();
  double steps_ms = 0;
  Question here = ask.question;
  for (size_t made = 0;; ++made, ++here.step) {
    fingerprints_.push_back(Fingerprint(*model));
    costs_ms_.push_back(model->Now().latency_ms + steps_ms);
    if (made == plan_.moves.size()) break;
    steps_ms += ask.task->StepCost(here);
    model->Commit(plan_.moves[made]);
  }
  for (size_t made = plan_.moves.size(); made > 0; --made) model->Undo();
  CHECK(Follow(ask, answer));
}

}  // namespace rudderfish
