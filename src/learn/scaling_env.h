// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/rng.h"
#include "base/thread_pool.h"
#include "learn/environment.h"
#include "model/load_laws.h"
#include "model/load_model.h"
#include "scenario/scenario.h"
#include "sim/scaling_run.h"
#include "task/scaling.h"

// Training to scale an application: the LoadModel under the loads of a scenario, a question an
// interval, metrics one interval old and with the noise of counting.
//
//   cost       core-hours, over those of the rung that serves the load's mean; + price * late
//              requests, over the mean of all; + what changes weigh (ScalingObjective; a quarter of
//              an interval of every pod that comes or goes, if nothing else is said)
//   reward     less of the cost of an interval than a twin world had, in which a simple rule
//              (ScalingRule) decides under the same load; divided by 1 + price / 20, so that no
//              price drowns the others, and by what sums of it spread
//   shaping    requests that wait beyond what pods work on count when they begin to wait, not when
//              they are late: a potential, which changes what is earned when and not what is best
//              (A. Ng, D. Harada, S. Russell, "Policy invariance under reward transformations",
//              ICML 1999)
//
// Each episode draws a price and shows it to the network; which price keeps the limit is
// found afterwards (learn/scaling_choice.h). It is drawn from where it matters: at the lowest, what
// the Model advises makes several times as many requests late as is wanted, at the highest a
// fraction of that. Where a load leaps, so that what is advised is late too often at any price, it
// is drawn from around what one late request less costs where replicas never change. Where late
// requests have a weight, that is the price.
//
// Episodes begin with pods that fit, as they do wherever policies are judged (EpisodeStart). The
// first one of an environment begins somewhere in it, the intervals before scaled by the rule.

namespace rudderfish {

// What environments of one scenario share. Immutable.
struct ScalingWorld {
  std::shared_ptr<const Scenario> scenario;
  std::vector<int> loads;  // Positions in Load::loads.
  std::shared_ptr<const ServedApplication> application;
  std::shared_ptr<const LoadLaws> laws;
  std::shared_ptr<const ScalingTask> task;
  std::shared_ptr<const EpisodeStart> start;
  ScalingRule rule;   // The best simple rule on training seeds.
  int decisions = 0;  // Of an episode.
  double price_low = kLeastPrice, price_high = kMostPrice;
  double reward_spread = 1;  // Of discounted sums of rewards.

  const ScalingObjective& objective() const { return scenario->load->objective; }
  double PriceAt(double share) const { return price_low * std::pow(price_high / price_low, share); }

  static constexpr double kLeastPrice = 0.5, kMostPrice = 500;
  static constexpr double kMiddlePrice = 20;
  static constexpr double kPriceScale = 20;  // Of rewards; see above.

  // `late_max`: the share of late or failed requests that is wanted. The same for any number of
  // threads. kFailedPrecondition if the scenario has no load, an episode of it no decision, or,
  // where late requests have no weight, the limit cannot be met (learn/scaling_limit.h).
  static Result<ScalingWorld> Make(std::shared_ptr<const Scenario> scenario, std::vector<int> loads,
                                   double late_max, ThreadPool* pool,
                                   ScalingRows rows = ScalingRows::kRungs);

 private:
  void ChooseRule(ThreadPool* pool);
  double PriceOfConstant(double late_max, ThreadPool* pool) const;
  void ChoosePrices(double late_max, ThreadPool* pool);
  // What the Model advises at a price, on some episodes.
  struct PriceTrial {
    double late = 0;     // Share of requests.
    double squares = 0;  // Of discounted sums of rewards, on average.
  };
  std::vector<PriceTrial> TryPrices(const std::vector<double>& prices, ThreadPool* pool) const;
};

// Which load, drawn how, at which price.
struct ScalingEpisode {
  int load = 0;  // Position in Load::loads.
  uint64_t seed = 0;
  double price = ScalingWorld::kMiddlePrice;
};

// What an interval came to.
struct ScalingInterval {
  double cost = 0, late = 0, churn = 0, waiting = 0;  // As in the reward, before prices.

  double Total(double price) const { return cost + churn + price * late; }
};

class ScalingEnv final : public Environment {
 public:
  ScalingEnv(const ScalingWorld& world, uint64_t seed, uint64_t id, int max_steps);

  using Environment::Reset;
  void Reset(uint64_t episode) override;
  void ResetTo(const ScalingEpisode& episode);
  StepResult Step(int choice) override;
  int candidate_count() const override { return space_.count(); }
  void Encode(GraphBatch* batch) override { world_->task->Encode(history_, space_, batch); }
  double Discount() const override { return kDiscount; }
  EpisodeFigures figures() const override;
  const EnvCursor& cursor() const override { return cursor_; }
  Result<void> Restore(const EnvCursor& cursor) override;

  // The candidate that the Model advises at the episode's price.
  int AdvisedChoice() const;
  // The candidate that the rule takes.
  int RuleChoice() const { return RuleChoice(world_->rule); }
  int RuleChoice(const ScalingRule& rule) const {
    return ScalingTask::ChoiceOf(rule, history_, space_);
  }
  const ScalingSpace& space() const { return space_; }
  const ScalingHistory& history() const { return history_; }
  const LoadModel& model() const { return own_.model; }
  const ScalingInterval& sums() const { return own_sums_; }  // Of the episode so far.

  static constexpr double kDiscount = 0.97;

 private:
  // An application under load.
  struct Side {
    explicit Side(const ScalingWorld& world);

    LoadModel model;
    std::vector<int> replicas;  // [workload]
    LoadOutcome before;         // What was counted up to the last interval.
    double waiting = 0;         // As ScalingInterval.
  };

  void Begin(const ScalingEpisode& episode, double begin_share);
  double Decide(int choice);
  double DecideTwin();
  double Scale(Side* side);
  double FindPieces();
  ScalingInterval Advance(Side* side);
  void Look();
  void NextInterval(double own_churn, double twin_churn, ScalingInterval* own,
                    ScalingInterval* twin);

  const ScalingWorld* world_;
  uint64_t seed_, id_;
  int max_steps_;
  std::vector<double> calls_;  // [workload] Of one request.
  Side own_, twin_;
  ScalingHistory history_;  // Of the own side. Both see the same rates; of the twin, besides:
  ScalingSpace space_;
  std::vector<int> ready_;                     // [workload]
  int twin_rung_ = 0, twin_since_change_ = 0;  // That it asks for; intervals.
  Rng noise_{0};
  RateCurve curve_;
  static constexpr int kMostPieces = 16;
  int pieces_ = 1;  // Of the interval, each of a steady rate.
  double piece_rates_[kMostPieces] = {};
  double price_ = 1, mean_per_s_ = 1, mean_cores_ = 1;
  double last_rate_ = 0, shown_rate_ = 0;  // Of the last interval, and of the one before.
  int intervals_ = 0;                      // That have passed.
  int steps_ = 0;
  ScalingInterval own_sums_, twin_sums_;
  EnvCursor cursor_;
};

}  // namespace rudderfish
