// SPDX-License-Identifier: Apache-2.0
#include "policy/walks.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "policy/neural.h"
#include "task/migration.h"

namespace rudderfish {
namespace {

// A plan at hand is given up for one that wins more by so much: hysteresis.
constexpr double kBetterByMs = 0.5;

class WalkMemory final : public PlanMemory {
 public:
  WalkMemory(const Policy& stepper, const WalkOptions& options, uint64_t seed)
      : walks_(stepper, options, seed), beside_greedy_(options.beside_greedy) {}

  void Decide(const Ask& ask, Answer* answer) {
    if (!Follow(ask, answer)) return Adopt(BestPlan(ask), ask, answer);
    // In a large world a walk is dear: the plan is carried out as it is.
    if (!ComesNew(ask) || !ask.space->exhaustive) return;
    const Plan& fresh = BestPlan(ask);
    if (ask.model->Now().latency_ms - fresh.cost_ms > answer->value + kBetterByMs)
      Replace(fresh, ask, answer);
  }

 private:
  const Plan& BestPlan(const Ask& ask) {
    const Plan* best = nullptr;
    if (beside_greedy_) {
      RollOutGreedily(ask.model, *ask.task, ask.question, &greedy_, &greedy_plan_);
      best = &greedy_plan_;
    }
    for (const Plan& plan : walks_.PlanFrom(ask)) {
      if (best == nullptr || plan.cost_ms < best->cost_ms) best = &plan;
    }
    return *best;
  }

  Walks walks_;
  bool beside_greedy_;
  GreedyRollout greedy_;
  Plan greedy_plan_;
};

}  // namespace

Walks::Walks(const Policy& stepper, const WalkOptions& options, uint64_t seed)
    : stepper_(stepper),
      directed_(options.directed),
      walks_(1 + options.directed + options.samples),
      plans_(walks_.size()),
      rng_(seed) {
  CHECK_GE(options.samples, 0);
  CHECK_GE(options.directed, 0);
  for (size_t i = 0; i < walks_.size(); ++i) walks_[i].memory = stepper.NewMemory(seed + i);
  for (Plan& plan : plans_) plan.moves.reserve(kPlanMovesReserved);
  answers_.resize(walks_.size());
}

std::span<const Plan> Walks::PlanFrom(const Ask& ask) {
  Begin(ask);
  while (!live_.empty()) Step(ask);
  for (size_t i = 0; i < walks_.size(); ++i) {
    const Walk& walk = walks_[i].walk;
    if (walks_[i].idle) {
      plans_[i].moves.clear();
    } else {
      const auto way = walk.moves().first(static_cast<size_t>(walk.best_steps()));
      order_.Order(ask.model, way, *ask.space, &plans_[i]);
    }
    // The shortest way may begin with a move that the question does not list.
    const std::vector<Move>& moves = plans_[i].moves;
    if (ask.space->exhaustive && !moves.empty() &&
        FindCandidate(*ask.space, moves.front()) == kStop)
      FitPlan(ask.model, *ask.task, ask.question, &walks_[i].space, &plans_[i]);
    AppraisePlan(ask.model, *ask.task, ask.question, &plans_[i]);
  }
  return plans_;
}

void Walks::Begin(const Ask& ask) {
  live_.clear();
  // In a large world one walk is dear enough.
  const int targets = ask.space->exhaustive ? ListTargets(ask) : 0;
  for (size_t i = 0; i < walks_.size(); ++i) {
    One& one = walks_[i];
    const int rank = i <= static_cast<size_t>(directed_) ? static_cast<int>(i) - 1 : kNone;
    one.idle = rank >= targets;  // It would be the first walk once more.
    if (one.idle) continue;
    if (one.model == nullptr) one.model = std::make_unique<Evaluator>(*ask.model);
    *one.model = *ask.model;
    one.model->ImagineMoves();
    one.memory->Restart();
    one.walk.Begin(*one.model, *ask.task, ask.question);
    if (rank >= 0) Direct(ask, targets_.layers(rank), &one);
    if (one.walk.steps() < one.walk.steps_max()) live_.push_back(i);
  }
}

// How many there are.
int Walks::ListTargets(const Ask& ask) {
  if (directed_ == 0) return 0;
  step_costs_ms_.assign(1, 0);
  for (Question here = ask.question; here.step < ask.task->max_steps(); ++here.step)
    step_costs_ms_.push_back(step_costs_ms_.back() + ask.task->StepCost(here));
  cursor_.Reset(*ask.model);
  targets_.List(*ask.model->state().catalog, ask.model->calls(), step_costs_ms_,
                cursor_.by_kind().LatencyMs(), &cursor_);
  return targets_.count();
}

// Brings the workloads to their layers, as far as there is room.
void Walks::Direct(const Ask& ask, std::span<const LayerId> layers, One* one) {
  const auto& kinds = ask.model->state().catalog->kinds;
  const Placement& placement = one->model->placement();
  const auto layer = [&](NodeId node) { return kinds[placement.kind(node)].layer; };
  while (one->walk.steps() < one->walk.steps_max()) {
    ask.task->Space(one->model.get(), one->walk.question(), &one->space);
    const Candidate* best = nullptr;
    for (const Candidate& candidate : one->space.candidates) {
      const LayerId target = layers[candidate.move.workload];
      if (target == kNone || layer(candidate.move.from) == target ||
          layer(candidate.move.to) != target)
        continue;
      if (best == nullptr || candidate.gain_ms > best->gain_ms) best = &candidate;
    }
    if (best == nullptr) return;
    one->model->CommitForGood(best->move);
    one->walk.Note(*one->model, best->move);
  }
}

// One step of every walk; those that end are no longer among the live ones.
void Walks::Step(const Ask& ask) {
  asks_.clear();
  for (const size_t i : live_) {
    One& one = walks_[i];
    const Question here = one.walk.question();
    ask.task->Space(one.model.get(), here, &one.space);
    asks_.push_back({one.model.get(), ask.task, here, &one.space, one.memory.get()});
  }
  stepper_.Decide(asks_, {answers_.data(), asks_.size()});
  size_t kept = 0;
  for (size_t at = 0; at < live_.size(); ++at) {
    One& one = walks_[live_[at]];
    const bool draws = live_[at] > static_cast<size_t>(directed_);
    const int choice = draws ? Draw(answers_[at].scores) : answers_[at].choice;
    if (choice == kStop) continue;
    const Move move = one.space.candidates[choice].move;
    one.model->CommitForGood(move);
    one.walk.Note(*one.model, move);
    if (one.walk.steps() < one.walk.steps_max()) live_[kept++] = live_[at];
  }
  live_.resize(kept);
}

// An alternative with the probability whose logarithm is its score; the last one is stop.
int Walks::Draw(const std::vector<float>& scores) {
  CHECK(!scores.empty());
  const float largest = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (float score : scores) sum += std::exp(static_cast<double>(score - largest));
  double drawn = rng_.Uniform() * sum;
  for (size_t i = 0; i + 1 < scores.size(); ++i) {
    drawn -= std::exp(static_cast<double>(scores[i] - largest));
    if (drawn < 0) return static_cast<int>(i);
  }
  return kStop;
}

WalkPolicy::WalkPolicy(std::string name, std::shared_ptr<const Policy> stepper, WalkOptions options)
    : name_(std::move(name)), stepper_(std::move(stepper)), options_(options) {}

std::unique_ptr<Memory> WalkPolicy::NewMemory(uint64_t seed) const {
  return std::make_unique<WalkMemory>(*stepper_, options_, seed);
}

void WalkPolicy::Decide(std::span<Ask> asks, std::span<Answer> answers) const {
  CHECK_EQ(asks.size(), answers.size());
  for (size_t i = 0; i < asks.size(); ++i) {
    static_cast<WalkMemory*>(asks[i].memory)->Decide(asks[i], &answers[i]);
  }
}

Result<std::unique_ptr<Policy>> LoadWalkPolicy(const std::filesystem::path& path,
                                               const Task& task) {
  TRY_ASSIGN(std::shared_ptr<const Policy> stepper, LoadNeuralPolicy(path, task));
  return std::make_unique<WalkPolicy>(path.string(), std::move(stepper));
}

}  // namespace rudderfish
