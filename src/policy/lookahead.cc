// SPDX-License-Identifier: Apache-2.0
#include "policy/lookahead.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"
#include "policy/greedy.h"

namespace rudderfish {
namespace {

struct LookaheadMemory final : PlanMemory {
  LookaheadMemory() {
    for (Plan* plan : {&best, &rival}) plan->moves.reserve(kPlanMovesReserved);
  }

  Beam beam;
  std::optional<Walks> walks;
  GreedyRollout greedy;
  Plan best, rival;
};

// Takes the plan if it is better than the best so far.
void Compete(const Plan& plan, const Ask& ask, LookaheadMemory* memory) {
  memory->rival = plan;
  // Of a large world's question any allowed move is an answer; of others, what is listed.
  if (ask.space->exhaustive)
    FitPlan(ask.model, *ask.task, ask.question, &memory->greedy.space, &memory->rival);
  AppraisePlan(ask.model, *ask.task, ask.question, &memory->rival);
  if (memory->rival.cost_ms < memory->best.cost_ms) std::swap(memory->best, memory->rival);
}

}  // namespace

LookaheadPolicy::LookaheadPolicy(std::string name, LookaheadOptions options)
    : name_(std::move(name)), options_(std::move(options)) {
  CHECK_GT(options_.budget.width, 0);
}

std::unique_ptr<Memory> LookaheadPolicy::NewMemory(uint64_t seed) const {
  auto memory = std::make_unique<LookaheadMemory>();
  if (options_.stepper != nullptr) memory->walks.emplace(*options_.stepper, options_.walks, seed);
  return memory;
}

void LookaheadPolicy::Decide(std::span<Ask> asks, std::span<Answer> answers) const {
  CHECK_EQ(asks.size(), answers.size());
  for (size_t i = 0; i < asks.size(); ++i) {
    const Ask& ask = asks[i];
    auto* memory = static_cast<LookaheadMemory*>(ask.memory);
    if (memory->Follow(ask, &answers[i])) continue;

    SearchBudget budget = options_.budget;
    const bool timed = budget.time.count() > 0;
    const Instant start = timed ? options_.clock->Now() : Instant();
    RollOutGreedily(ask.model, *ask.task, ask.question, &memory->greedy, &memory->best);
    if (memory->walks.has_value()) {
      for (const Plan& plan : memory->walks->PlanFrom(ask)) Compete(plan, ask, memory);
    }
    if (timed) budget.time = std::max(Duration(1), budget.time - (options_.clock->Now() - start));
    memory->beam.Search(*ask.model, *ask.task, ask.question, budget, *options_.clock, memory->best);
    for (const Plan& plan : memory->beam.plans()) Compete(plan, ask, memory);
    memory->Adopt(memory->best, ask, &answers[i]);
  }
}

const Plan& LookaheadPolicy::PlanOf(const Memory& memory) {
  return static_cast<const PlanMemory&>(memory).plan();
}

}  // namespace rudderfish
