// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "policy/policy.h"
#include "task/migration.h"

// Policies at work in tests, without an environment around them.

namespace rudderfish::testing {

struct Played {
  std::vector<Move> moves;
  double start_ms = 0;
  double final_ms = 0;
  double steps_ms = 0;   // Cost of the steps taken.
  bool stopped = false;  // By the policy, not by the cap.
  State end;

  double cost_ms() const { return final_ms + steps_ms; }
};

// One plan from `state` to its end or to the task's cap.
inline Played Play(const Policy& policy, const Task& task, const LatencyLaw& law, State state,
                   Memory* memory) {
  Evaluator model(law);
  model.Reset(state);
  ActionSpace space;
  Answer answer;
  Decision decision;
  Played played{.start_ms = model.Now().latency_ms};
  memory->Restart();
  for (Question question; question.step < task.max_steps(); ++question.step) {
    task.Space(&model, question, &space);
    Ask ask{&model, &task, question, &space, memory};
    policy.Decide({&ask, 1}, {&answer, 1});
    task.Decode(state, space, answer.choice, &decision);
    if (decision.empty()) {
      played.stopped = true;
      break;
    }
    played.steps_ms += task.StepCost(question);
    for (const Action& action : decision) {
      const Migrate& migrate = std::get<Migrate>(action);
      played.moves.push_back(model.ToMove(action));
      model.Commit(action);
      MovePod(migrate.pod, migrate.to, &state);
    }
  }
  played.final_ms = model.Now().latency_ms;
  played.end = std::move(state);
  return played;
}

inline Played Play(const Policy& policy, const Task& task, const LatencyLaw& law,
                   const State& state, uint64_t seed = 1) {
  const std::unique_ptr<Memory> memory = policy.NewMemory(seed);
  return Play(policy, task, law, state, memory.get());
}

// Stands in for a learned policy: log-probabilities by the one-step gain, the sharper the lower the
// temperature.
class SoftmaxPolicy final : public Policy {
 public:
  explicit SoftmaxPolicy(double temperature_ms) : temperature_ms_(temperature_ms) {}

  std::string_view name() const override { return "softmax"; }
  std::unique_ptr<Memory> NewMemory(uint64_t) const override { return std::make_unique<Memory>(); }
  void Decide(std::span<Ask> asks, std::span<Answer> answers) const override {
    for (size_t i = 0; i < asks.size(); ++i) {
      std::vector<float>& scores = answers[i].scores;
      scores.clear();
      for (const Candidate& candidate : asks[i].space->candidates) {
        scores.push_back(static_cast<float>(candidate.gain_ms / temperature_ms_));
      }
      scores.push_back(
          static_cast<float>(asks[i].task->StepCost(asks[i].question) / temperature_ms_));
      const auto best = std::max_element(scores.begin(), scores.end());
      double sum = 0;
      for (float score : scores) sum += std::exp(static_cast<double>(score - *best));
      answers[i].choice =
          best + 1 == scores.end() ? kStop : static_cast<int>(best - scores.begin());
      const float shift = *best + static_cast<float>(std::log(sum));
      for (float& score : scores) score -= shift;
    }
  }

 private:
  double temperature_ms_;
};

}  // namespace rudderfish::testing
