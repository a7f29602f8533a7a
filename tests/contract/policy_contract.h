// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "policy/policy.h"
#include "task/migration.h"
#include "tests/support/count_allocations.h"
#include "tests/support/play.h"
#include "tests/support/small_world.h"

// What every policy keeps, whatever it is: run CheckPolicy on each. Include it in one file of a
// test binary only, for it counts allocations.

namespace rudderfish::testing {

struct PolicyTraits {
  bool allocates = false;  // Even once it has seen the largest question.
  bool stops = true;       // Before the cap, from every state.
};

// A question with all that an Ask points to.
struct Situation {
  Situation(const Policy& policy, const Task& task, const LatencyLaw& law, const State& state,
            uint64_t seed)
      : model(law), memory(policy.NewMemory(seed)) {
    model.Reset(state);
    task.Space(&model, {}, &space);
    ask = {&model, &task, {}, &space, memory.get()};
  }

  Evaluator model;
  ActionSpace space;
  std::unique_ptr<Memory> memory;
  Ask ask;
};

inline std::vector<std::unique_ptr<Situation>> Situations(const Policy& policy, const Task& task,
                                                          const LatencyLaw& law,
                                                          const std::vector<State>& states,
                                                          uint64_t seed) {
  std::vector<std::unique_ptr<Situation>> situations;
  for (const State& state : states) {
    situations.push_back(std::make_unique<Situation>(policy, task, law, state, seed++));
  }
  return situations;
}

inline std::vector<Answer> DecideAll(const Policy& policy,
                                     const std::vector<std::unique_ptr<Situation>>& situations) {
  std::vector<Ask> asks;
  for (const auto& situation : situations) asks.push_back(situation->ask);
  std::vector<Answer> answers(asks.size());
  policy.Decide(asks, answers);
  return answers;
}

inline void ExpectSameAnswer(const Answer& a, const Answer& b) {
  EXPECT_EQ(a.choice, b.choice);
  EXPECT_EQ(a.value, b.value);
  EXPECT_EQ(a.scores, b.scores);
}

// Answers are allowed alternatives, and the model is left as it was found.
inline void CheckAnswers(const Policy& policy, const Task& task, const LatencyLaw& law,
                         const std::vector<State>& states) {
  for (const auto& situation : Situations(policy, task, law, states, 1)) {
    Evaluator& model = situation->model;
    const Placement placement = model.placement();
    const Terms terms = model.Now();
    Answer answer{.choice = 12345};
    policy.Decide({&situation->ask, 1}, {&answer, 1});
    ASSERT_GE(answer.choice, kStop);
    ASSERT_LT(answer.choice, situation->space.count());
    if (answer.choice != kStop) {
      EXPECT_TRUE(
          MoveAllowed(model.state(), placement, situation->space.candidates[answer.choice].move));
    }
    const int scores = static_cast<int>(answer.scores.size());
    EXPECT_TRUE(scores == 0 || scores == situation->space.count() + 1) << scores;
    EXPECT_TRUE(model.placement() == placement);
    for (int i = 0; i < Terms::kCount; ++i)
      EXPECT_EQ(TermValue(model.Now(), i), TermValue(terms, i));
  }
}

// The order of asks, and which of them come together, do not matter; nor does what the memory was
// used for before.
inline void CheckIndependence(const Policy& policy, const Task& task, const LatencyLaw& law,
                              const std::vector<State>& states) {
  const std::vector<Answer> answers = DecideAll(policy, Situations(policy, task, law, states, 1));
  const std::vector<Answer> again = DecideAll(policy, Situations(policy, task, law, states, 1));
  for (size_t i = 0; i < states.size(); ++i) ExpectSameAnswer(answers[i], again[i]);

  auto backwards = Situations(policy, task, law, states, 1);
  std::reverse(backwards.begin(), backwards.end());
  const std::vector<Answer> reversed = DecideAll(policy, backwards);
  for (size_t i = 0; i < states.size(); ++i)
    ExpectSameAnswer(answers[i], reversed[states.size() - 1 - i]);
}

// Whole plans: the same seed leads the same way, in a memory that has been used before too.
inline void CheckPlans(const Policy& policy, const Task& task, const LatencyLaw& law,
                       const std::vector<State>& states, PolicyTraits traits) {
  const std::unique_ptr<Memory> first = policy.NewMemory(7), second = policy.NewMemory(7);
  for (const State& state : states) {
    const Played played = Play(policy, task, law, state, first.get());
    EXPECT_LE(static_cast<int>(played.moves.size()), task.max_steps());
    EXPECT_EQ(played.moves, Play(policy, task, law, state, second.get()).moves);
    EXPECT_TRUE(played.stopped || !traits.stops);
    // No pod goes where one of its workload came from, so that no placement is seen twice.
    std::set<std::pair<WorkloadId, NodeId>> left;
    for (const Move& move : played.moves) {
      EXPECT_FALSE(left.contains({move.workload, move.to})) << policy.name();
      left.insert({move.workload, move.from});
    }
  }
}

// However far ahead it looks.
inline void CheckHeldPodsStay(const Policy& policy, const Task& task, const LatencyLaw& law,
                              const std::vector<State>& states) {
  Rng rng(3);
  std::vector<State> some_held;
  for (const State& state : states) some_held.push_back(WithPodsHeld(state, &rng));
  CheckAnswers(policy, task, law, some_held);
  for (const State& state : some_held) {
    const Played played = Play(policy, task, law, state);
    for (PodId pod = 0; pod < state.pods.size(); ++pod) {
      if (!state.pods.is_held(pod)) continue;
      EXPECT_EQ(played.end.pods.node[pod], state.pods.node[pod]);
    }
  }
}

// Of one catalog's states, as a scenario draws them.
inline void CheckAllocations(const Policy& policy, const Task& task, const LatencyLaw& law,
                             const std::vector<State>& states) {
  std::vector<State> alike;
  for (const State& state : states) {
    if (state.catalog->workload_count() == states[0].catalog->workload_count())
      alike.push_back(state);
  }
  const auto situations = Situations(policy, task, law, alike, 1);
  Answer answer;
  const std::unique_ptr<Memory> memory = policy.NewMemory(1);
  long allocations = 0;
  for (int round = 0; round < 10; ++round) {  // All but the last warm up.
    const long before = allocation_count;
    for (const auto& situation : situations) {
      memory->Restart();
      Ask ask = situation->ask;
      ask.memory = memory.get();
      policy.Decide({&ask, 1}, {&answer, 1});
    }
    allocations = allocation_count - before;
  }
  EXPECT_EQ(allocations, 0);
}

inline void CheckPolicy(const Policy& policy, const Task& task, const LatencyLaw& law,
                        const std::vector<State>& states, PolicyTraits traits = {}) {
  SCOPED_TRACE(std::string(policy.name()) + ", " + std::string(law.name));
  CheckAnswers(policy, task, law, states);
  CheckIndependence(policy, task, law, states);
  CheckPlans(policy, task, law, states, traits);
  CheckHeldPodsStay(policy, task, law, states);
  if (!traits.allocates) CheckAllocations(policy, task, law, states);
}

}  // namespace rudderfish::testing
