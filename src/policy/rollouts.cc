// SPDX-License-Identifier: Apache-2.0
#include "policy/rollouts.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/rng.h"
#include "policy/greedy.h"
#include "policy/plan.h"

namespace rudderfish {
namespace {

// One way the inner policy might go from here.
struct Rollout {
  std::unique_ptr<Evaluator> model;
  std::unique_ptr<Memory> memory;
  ActionSpace space;
  Plan plan;
};

class BestOfMemory final : public PlanMemory {
 public:
  BestOfMemory(const Policy& inner, int samples, uint64_t seed)
      : inner_(inner), rollouts_(samples + 1), rng_(seed) {
    for (size_t i = 0; i < rollouts_.size(); ++i) rollouts_[i].memory = inner.NewMemory(seed + i);
    answers_.resize(rollouts_.size());
  }

  void PlanAnew(const Ask& ask, Answer* answer) {
    RollOutGreedily(ask.model, *ask.task, ask.question, &greedy_, &greedy_plan_);
    RollOut(ask);
    best_ = &greedy_plan_;
    for (Rollout& rollout : rollouts_) {
      AppraisePlan(ask.model, *ask.task, ask.question, &rollout.plan);
      if (rollout.plan.cost_ms < best_->cost_ms) best_ = &rollout.plan;
    }
    Adopt(*best_, ask, answer);
  }

 private:
  // The first rollout takes the likeliest answers, the others draw.
  void RollOut(const Ask& ask) {
    live_.clear();
    for (size_t i = 0; i < rollouts_.size(); ++i) {
      Rollout& rollout = rollouts_[i];
      if (rollout.model == nullptr) rollout.model = std::make_unique<Evaluator>(*ask.model);
      *rollout.model = *ask.model;
      rollout.memory->Restart();
      rollout.plan.moves.clear();
      rollout.plan.moves.reserve(kPlanMovesReserved);
      live_.push_back(i);
    }
    for (Question here = ask.question; here.step < ask.task->max_steps() && !live_.empty();
         ++here.step) {
      asks_.clear();
      for (size_t i : live_) {
        Rollout& rollout = rollouts_[i];
        ask.task->Space(rollout.model.get(), here, &rollout.space);
        asks_.push_back(
            {rollout.model.get(), ask.task, here, &rollout.space, rollout.memory.get()});
      }
      inner_.Decide(asks_, {answers_.data(), asks_.size()});
      size_t kept = 0;
      for (size_t at = 0; at < live_.size(); ++at) {
        Rollout& rollout = rollouts_[live_[at]];
        const int choice = live_[at] == 0 ? answers_[at].choice : Draw(answers_[at].scores);
        if (choice == kStop) continue;
        const Move& move = rollout.space.candidates[choice].move;
        rollout.plan.moves.push_back(move);
        rollout.model->CommitForGood(move);
        live_[kept++] = live_[at];
      }
      live_.resize(kept);
    }
  }

  // An alternative with the probability whose logarithm is its score; the last one is stop.
  int Draw(const std::vector<float>& scores) {
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

  const Policy& inner_;
  std::vector<Rollout> rollouts_;
  Rng rng_;
  std::vector<size_t> live_;
  std::vector<Ask> asks_;
  std::vector<Answer> answers_;
  GreedyRollout greedy_;
  Plan greedy_plan_;
  const Plan* best_ = nullptr;
};

}  // namespace

BestOfPolicy::BestOfPolicy(std::string name, std::shared_ptr<const Policy> inner,
                           RolloutOptions options)
    : name_(std::move(name)), inner_(std::move(inner)), options_(options) {
  CHECK_GE(options_.samples, 0);
}

std::unique_ptr<Memory> BestOfPolicy::NewMemory(uint64_t seed) const {
  return std::make_unique<BestOfMemory>(*inner_, options_.samples, seed);
}

void BestOfPolicy::Decide(std::span<Ask> asks, std::span<Answer> answers) const {
  CHECK_EQ(asks.size(), answers.size());
  for (size_t i = 0; i < asks.size(); ++i) {
    auto* memory = static_cast<BestOfMemory*>(asks[i].memory);
    if (!memory->Follow(asks[i], &answers[i])) memory->PlanAnew(asks[i], &answers[i]);
  }
}

}  // namespace rudderfish
