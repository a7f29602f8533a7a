// SPDX-License-Identifier: Apache-2.0
#include "policy/greedy.h"

#include <algorithm>

#include "base/check.h"
#include "model/kind_evaluator.h"

namespace rudderfish {

PodId LowestPod(const State& state, std::span<const NodeId> pod_nodes, const Move& move) {
  PodId pod = 0;
  while (pod < state.pods.size() &&
         (pod_nodes[pod] != move.from || state.pods.workload[pod] != move.workload ||
          state.pods.is_held(pod)))
    ++pod;
  return pod;
}

bool ComesFirst(const State& state, std::span<const NodeId> pod_nodes, const Move& a,
                const Move& b) {
  if (a.to != b.to) return a.to < b.to;
  return LowestPod(state, pod_nodes, a) < LowestPod(state, pod_nodes, b);
}

GreedyStep ChooseGreedily(Evaluator* model, const Task& task, const Question& question,
                          const ActionSpace& space, std::span<const NodeId> pod_nodes,
                          std::vector<float>* scores) {
  const double cost_ms = task.StepCost(question);
  const double margin_ms = 2 * KindErrorMs(*model);
  double best_by_kind = cost_ms;
  for (const Candidate& candidate : space.candidates)
    best_by_kind = std::max<double>(best_by_kind, candidate.gain_ms);
  if (scores != nullptr) scores->clear();

  GreedyStep best;
  const double now_ms = model->Now().latency_ms;
  double largest = -1e300;
  for (int i = 0; i < space.count(); ++i) {
    const Candidate& candidate = space.candidates[i];
    double gain_ms = candidate.gain_ms;
    const bool hopeful = gain_ms >= best_by_kind - margin_ms;
    if (hopeful) gain_ms = now_ms - model->Try(candidate.move).latency_ms;
    if (scores != nullptr) scores->push_back(static_cast<float>(gain_ms));
    if (!hopeful || gain_ms < largest - kTieMs) continue;
    const bool tie = best.choice != kStop && gain_ms <= largest + kTieMs;
    if (!tie ||
        ComesFirst(model->state(), pod_nodes, candidate.move, space.candidates[best.choice].move)) {
      best = {i, gain_ms};
    }
    largest = std::max(largest, gain_ms);
  }
  if (scores != nullptr) scores->push_back(static_cast<float>(cost_ms));
  if (best.gain_ms <= cost_ms) best.choice = kStop;
  return best;
}

void RollOutGreedily(Evaluator* model, const Task& task, const Question& question,
                     GreedyRollout* scratch, Plan* plan) {
  const State& state = model->state();
  scratch->pod_nodes.assign(state.pods.node.begin(), state.pods.node.end());
  plan->moves.clear();
  int made = 0;
  for (; question.step + made < task.max_steps(); ++made) {
    const Question here{question.step + made};
    task.Space(model, here, &scratch->space);
    const GreedyStep step = ChooseGreedily(model, task, here, scratch->space, scratch->pod_nodes);
    if (step.choice == kStop) break;
    const Move& move = scratch->space.candidates[step.choice].move;
    const PodId pod = LowestPod(state, scratch->pod_nodes, move);
    if (pod < state.pods.size()) scratch->pod_nodes[pod] = move.to;
    plan->moves.push_back(move);
    model->Commit(move);
  }
  for (; made > 0; --made) model->Undo();
  AppraisePlan(model, task, question, plan);
}

std::unique_ptr<Memory> GreedyPolicy::NewMemory(uint64_t) const {
  return std::make_unique<Memory>();
}

void GreedyPolicy::Decide(std::span<Ask> asks, std::span<Answer> answers) const {
  CHECK_EQ(asks.size(), answers.size());
  for (size_t i = 0; i < asks.size(); ++i) {
    const Ask& ask = asks[i];
    const GreedyStep step = ChooseGreedily(ask.model, *ask.task, ask.question, *ask.space,
                                           ask.model->state().pods.node, &answers[i].scores);
    answers[i].choice = step.choice;
    answers[i].value = step.choice == kStop ? 0 : step.gain_ms - ask.task->StepCost(ask.question);
  }
}

}  // namespace rudderfish
