// SPDX-License-Identifier: Apache-2.0
#include "policy/greedy.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

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

namespace {

// So few are tried at once: bounding them is not worth it.
constexpr size_t kFew = 4;
// Among gains this near the largest the order of actions decides, each step of a chain by kTieMs.
constexpr double kChainMs = 1000 * kTieMs;

// Lists whose gain by kind is near enough the largest to be the best.
void ListHopes(const Evaluator& model, const ActionSpace& space, double cost_ms,
               GreedyScratch* scratch) {
  double best_by_kind = cost_ms;
  for (const Candidate& candidate : space.candidates)
    best_by_kind = std::max<double>(best_by_kind, candidate.gain_ms);
  const double bar_ms = best_by_kind - 2 * KindErrorMs(model);
  scratch->hopes.clear();
  for (int i = 0; i < space.count(); ++i) {
    const double gain_ms = space.candidates[i].gain_ms;
    if (gain_ms >= bar_ms) scratch->hopes.push_back({i, {gain_ms, gain_ms}});
  }
}

// Where nothing bounds gains (calls in parallel, by how replies are distributed) all are tried if
// they are few, else those that promise most in the mean.
constexpr std::ptrdiff_t kFewUnbounded = 512, kMostUnbounded = 32;

void KeepTheMostPromising(const ActionSpace& space, std::vector<GreedyScratch::Hope>* hopes) {
  const auto bounded = std::partition(
      hopes->begin(), hopes->end(), [](const auto& hope) { return std::isinf(hope.gain.most_ms); });
  if (bounded - hopes->begin() <= kFewUnbounded) return;
  const auto promises_more = [&](const GreedyScratch::Hope& a, const GreedyScratch::Hope& b) {
    const double first = space.candidates[a.candidate].gain_ms;
    const double second = space.candidates[b.candidate].gain_ms;
    return first != second ? first > second : a.candidate < b.candidate;
  };
  const auto last = hopes->begin() + kMostUnbounded;
  std::nth_element(hopes->begin(), last, bounded, promises_more);
  hopes->erase(last, bounded);
}

// Bounds each of them, and puts the most promising first.
void BoundHopes(const Evaluator& model, const ActionSpace& space, GreedyScratch* scratch) {
  scratch->bounds.Reset(model);
  for (GreedyScratch::Hope& hope : scratch->hopes) {
    const Candidate& candidate = space.candidates[hope.candidate];
    hope.gain = scratch->bounds.Of(candidate.move, candidate.gain_ms);
  }
  KeepTheMostPromising(space, &scratch->hopes);
  std::sort(scratch->hopes.begin(), scratch->hopes.end(),
            [](const GreedyScratch::Hope& a, const GreedyScratch::Hope& b) {
              return a.gain.most_ms != b.gain.most_ms ? a.gain.most_ms > b.gain.most_ms
                                                      : a.candidate < b.candidate;
            });
}

// Tries all that may be the best; these then stand first, in the order of candidates.
void TryHopes(Evaluator* model, const ActionSpace& space, double cost_ms, GreedyScratch* scratch) {
  const double now_ms = model->Now().latency_ms;
  auto& hopes = scratch->hopes;
  const bool bounded = hopes.size() > kFew;
  double largest = cost_ms;  // What gains less is not worth making.
  if (bounded) BoundHopes(*model, space, scratch);
  for (scratch->tried = 0; scratch->tried < hopes.size(); ++scratch->tried) {
    GreedyScratch::Hope& hope = hopes[scratch->tried];
    if (bounded && hope.gain.most_ms < largest - kChainMs) break;
    const double gain_ms = now_ms - model->Try(space.candidates[hope.candidate].move).latency_ms;
    hope.gain = {gain_ms, gain_ms};
    largest = std::max(largest, gain_ms);
  }
  if (!bounded) return;
  std::sort(hopes.begin(), hopes.begin() + static_cast<std::ptrdiff_t>(scratch->tried),
            [](const GreedyScratch::Hope& a, const GreedyScratch::Hope& b) {
              return a.candidate < b.candidate;
            });
}

void WriteScores(const ActionSpace& space, double cost_ms, const GreedyScratch& scratch,
                 std::vector<float>* scores) {
  scores->clear();
  for (const Candidate& candidate : space.candidates) scores->push_back(candidate.gain_ms);
  for (const GreedyScratch::Hope& hope : scratch.hopes) {
    (*scores)[hope.candidate] = static_cast<float>((hope.gain.least_ms + hope.gain.most_ms) / 2);
  }
  scores->push_back(static_cast<float>(cost_ms));
}

}  // namespace

GreedyStep ChooseGreedily(Evaluator* model, const Task& task, const Question& question,
                          const ActionSpace& space, std::span<const NodeId> pod_nodes,
                          GreedyScratch* scratch, std::vector<float>* scores) {
  const double cost_ms = task.StepCost(question);
  ListHopes(*model, space, cost_ms, scratch);
  TryHopes(model, space, cost_ms, scratch);
  GreedyStep best;
  double largest = -1e300;
  for (size_t i = 0; i < scratch->tried; ++i) {
    const int choice = scratch->hopes[i].candidate;
    const double gain_ms = scratch->hopes[i].gain.most_ms;
    if (gain_ms < largest - kTieMs) continue;
    const bool tie = best.choice != kStop && gain_ms <= largest + kTieMs;
    if (!tie || ComesFirst(model->state(), pod_nodes, space.candidates[choice].move,
                           space.candidates[best.choice].move)) {
      best = {choice, gain_ms};
    }
    largest = std::max(largest, gain_ms);
  }
  if (scores != nullptr) WriteScores(space, cost_ms, *scratch, scores);
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
    const GreedyStep step =
        ChooseGreedily(model, task, here, scratch->space, scratch->pod_nodes, &scratch->choosing);
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

namespace {

struct GreedyMemory final : Memory {
  GreedyScratch scratch;
};

}  // namespace

std::unique_ptr<Memory> GreedyPolicy::NewMemory(uint64_t) const {
  return std::make_unique<GreedyMemory>();
}

void GreedyPolicy::Decide(std::span<Ask> asks, std::span<Answer> answers) const {
  CHECK_EQ(asks.size(), answers.size());
  for (size_t i = 0; i < asks.size(); ++i) {
    const Ask& ask = asks[i];
    const GreedyStep step =
        ChooseGreedily(ask.model, *ask.task, ask.question, *ask.space, ask.model->state().pods.node,
                       &static_cast<GreedyMemory*>(ask.memory)->scratch, &answers[i].scores);
    answers[i].choice = step.choice;
    answers[i].value = step.choice == kStop ? 0 : step.gain_ms - ask.task->StepCost(ask.question);
  }
}

}  // namespace rudderfish
