// SPDX-License-Identifier: Apache-2.0
#include "policy/plan.h"

#include <algorithm>
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

// The move's place among the candidates. In a large world a question lists representatives only: an
// allowed move that is none of them is added.
int PlaceOf(const Move& move, const Ask& ask) {
  ActionSpace& space = *ask.space;
  const int listed = FindCandidate(space, move);
  const Placement& placement = ask.model->placement();
  if (listed != kStop || space.exhaustive || !MoveAllowed(ask.model->state(), placement, move))
    return listed;
  const auto index = [](std::span<const MoveEnds::End> all, std::span<const MoveEnds::End> own,
                        int row) {
    const auto found = std::find_if(own.begin(), own.end(),
                                    [&](const MoveEnds::End& end) { return end.row == row; });
    CHECK(found != own.end());
    return static_cast<int32_t>(own.data() - all.data() + (found - own.begin()));
  };
  const MoveEnds& ends = space.ends;
  space.candidates.push_back(
      {.move = move,
       .pods = placement.movable_on_node(move.workload, move.from),
       .gain_ms = ask.model->Gains().Gain(move.workload, placement.kind(move.from),
                                          placement.kind(move.to)),
       .source = index(ends.hosts(), ends.hosts(move.workload), ends.row(move.from)),
       .target = index(ends.targets(), ends.targets(move.workload), ends.row(move.to))});
  return space.count() - 1;
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
  answer->choice = step == moves ? kStop : PlaceOf(plan_.moves[step], ask);
  return step == moves || answer->choice != kStop;
}

void PlanMemory::Adopt(const Plan& plan, const Ask& ask, Answer* answer) {
  following_ = true;
  first_step_ = ask.question.step;
  last_new_ = 0;
  plan_.moves.clear();
  fingerprints_.clear();
  costs_ms_.clear();
  Append(plan, ask, 0);
  CHECK(Follow(ask, answer));
}

void PlanMemory::Resume(std::span<const Move> moves, const Ask& ask) {
  if (moves.empty() || PlaceOf(moves.front(), ask) == kStop) return;
  Plan rest;
  rest.moves.assign(moves.begin(), moves.end());
  AppraisePlan(ask.model, *ask.task, ask.question, &rest);
  if (rest.moves.size() != moves.size()) return;
  Answer ignored;
  Adopt(rest, ask, &ignored);
}

std::span<const Move> PlanMemory::RestAfter(const Question& question) const {
  const int made = question.step - first_step_ + 1;
  if (!following_ || made < 0 || made > static_cast<int>(plan_.moves.size())) return {};
  return std::span(plan_.moves).subspan(static_cast<size_t>(made));
}

bool PlanMemory::ComesNew(const Ask& ask) {
  const int step = ask.question.step - first_step_;
  const bool comes_new = step > last_new_;
  last_new_ = std::max(last_new_, step);
  return comes_new;
}

void PlanMemory::Replace(const Plan& plan, const Ask& ask, Answer* answer) {
  const auto step = static_cast<size_t>(ask.question.step - first_step_);
  const double steps_ms = costs_ms_[step] - ask.model->Now().latency_ms;
  plan_.moves.resize(step);
  fingerprints_.resize(step);
  costs_ms_.resize(step);
  Append(plan, ask, steps_ms);
  CHECK(Follow(ask, answer));
}

// What the plan leads through, from the question on, of which the steps before cost `steps_ms`.
void PlanMemory::Append(const Plan& plan, const Ask& ask, double steps_ms) {
  Evaluator* model = ask.model;
  plan_.latency_ms = plan.latency_ms;
  plan_.cost_ms = steps_ms + plan.cost_ms;
  plan_.moves.insert(plan_.moves.end(), plan.moves.begin(), plan.moves.end());
  Question here = ask.question;
  for (size_t made = 0;; ++made, ++here.step) {
    fingerprints_.push_back(Fingerprint(*model));
    costs_ms_.push_back(model->Now().latency_ms + steps_ms);
    if (made == plan.moves.size()) break;
    steps_ms += ask.task->StepCost(here);
    model->Commit(plan.moves[made]);
  }
  for (size_t made = plan.moves.size(); made > 0; --made) model->Undo();
}

}  // namespace rudderfish
