// SPDX-License-Identifier: Apache-2.0
#include "learn/scaling_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "policy/registry.h"
#include "sim/scaling_evaluation.h"
#include "sim/scaling_run.h"

namespace rudderfish {
namespace {

constexpr uint64_t kValidationKey = 0x76616C6964617465;  // The letters "validate".
constexpr int kPrices = 13;                              // On the Model,
constexpr int kFewTries = 5, kTries = 8;             // and on requests, at most; on few, in all.
constexpr int kFewShare = 4, kFewest = 16;           // Of the episodes; of these at least.
constexpr double kAimed = 0.96, kNearEnough = 0.92;  // Of what is allowed.
constexpr int kFinalists = 3;                        // Of autoscalers.
// Of the peak, that there may always be to be pods for; the first is none. One that is hardly
// cheaper than none is not worth being bound to this load's rates.
constexpr double kMinimumShares[] = {0, 0.6, 0.75, 0.85, 0.92, 0.98, 1.05};
constexpr double kWorthMinimum = 0.997;
// Prices, beyond those of training. At very low ones a network asks for hardly more than there are
// to be pods for anyway: nearly constant replicas.
constexpr double kBelowRange = 1.5, kBelowRangeWithMinimum = 12, kBeyondRange = 1.5;
constexpr double kSameFactor = 0.01, kNearFactor = 0.1;
constexpr double kLeastShare = 1e-5;  // Of violations: fewer are none.

ScalingRecord ScalingRecordOf(const ScalingEvaluation& evaluation, int policy) {
  const ScalingSums sums = SumsOf(evaluation, policy);
  return {sums.core_hours, sums.violation_share, sums.violation_error};
}

// What makes one policy better than another.
struct ScalingGoal {
  double allowed = 0;  // Share of late requests; where they have no weight.
  double price = 0;    // Their weight over that of cost; 0: none.
  double mean_core_hours =
      1;  // Of what the mean of the load needs, of an episode, summed over loads.

  double Total(const ScalingRecord& record) const {
    return record.core_hours / mean_core_hours + price * record.violation_share;
  }
  bool IsBetter(const ScalingRecord& one, const ScalingRecord& other) const {
    return price > 0 ? Total(one) < Total(other) : one.IsBetterThan(other, allowed);
  }
};

// Validation episodes, and what runs on them.
class ScalingTrials {
 public:
  ScalingTrials(const ScalingWorld& world, int episodes, uint64_t seed, ThreadPool* pool)
      : world_(world), episodes_(episodes), seed_(seed), pool_(pool) {}

  int episodes() const { return episodes_; }
  int few() const { return std::max(std::min(kFewest, episodes_), episodes_ / kFewShare); }

  // On the first `episodes` of them.
  std::vector<ScalingRecord> Run(const std::vector<NamedScalingPolicy>& policies,
                                 ScalingGround ground, int episodes) const {
    const ScalingEvaluation evaluation =
        EvaluateScaling(*world_.scenario, EpisodeUse::kLearning, world_.loads, policies, episodes,
                        seed_, pool_, {}, ground);
    std::vector<ScalingRecord> records;
    for (size_t p = 0; p < policies.size(); ++p)
      records.push_back(ScalingRecordOf(evaluation, static_cast<int>(p)));
    return records;
  }

  // As ScalingGoal has it.
  double MeanCoreHours() const {
    const Load& load = *world_.scenario->load;
    const CapacityLadder& ladder = world_.task->ladder();
    const double duration_s = static_cast<double>(load.duration.count()) / 1e9;
    double sum = 0;
    for (const int position : world_.loads) {
      for (int i = 0; i < episodes_; ++i) {
        const ScalingEpisodeDraw episode =
            DrawScalingEpisode(load, EpisodeUse::kLearning, position, seed_, i);
        sum += ladder.cores(ladder.RungFor(episode.curve->MeanOf(0, duration_s))) / episodes_;
      }
    }
    return sum * duration_s / 3600;
  }

 private:
  const ScalingWorld& world_;
  int episodes_;
  uint64_t seed_;
  ThreadPool* pool_;
};

struct NamedRecord {
  std::string policy;
  ScalingRecord record;
};

// Sorts by what they come to. What is allowed: the limit, or LimitAmong them all.
double Judge(const ScalingTrials& trials, ScalingGround ground, ScalingGoal goal,
             std::vector<NamedRecord>* rules) {
  std::vector<NamedScalingPolicy> policies;
  for (const NamedRecord& rule : *rules) {
    Result<std::unique_ptr<ScalingPolicy>> policy = MakeScalingPolicy(rule.policy);
    CHECK(policy.has_value());  // They are ours.
    policies.push_back({rule.policy, {std::move(*policy)}});
  }
  const std::vector<ScalingRecord> records = trials.Run(policies, ground, trials.episodes());
  for (size_t i = 0; i < records.size(); ++i) (*rules)[i].record = records[i];
  goal.allowed = LimitAmong(records, goal.allowed);
  std::stable_sort(rules->begin(), rules->end(), [&](const NamedRecord& a, const NamedRecord& b) {
    return goal.IsBetter(a.record, b.record);
  });
  return goal.allowed;
}

// Who is to be beaten, and what share of late requests is allowed for that.
struct RuleToBeat {
  NamedRecord rule;
  double allowed = 0;  // Above the limit where no rule keeps it.
};

RuleToBeat BestAutoscaler(const ScalingTrials& trials, const ScalingGoal& goal) {
  std::vector<NamedRecord> rules;
  for (const char* down : {"0s", "60s", "300s"}) {
    for (const char* metric : {"hpa:cpu=40", "hpa:cpu=50", "hpa:cpu=60", "hpa:cpu=70",
                               "keda:share=0.4", "keda:share=0.55", "keda:share=0.7"})
      rules.push_back({fmt::format("{},down={}", metric, down), {}});
  }
  Judge(trials, ScalingGround::kModel, goal, &rules);
  rules.resize(kFinalists);
  const double allowed = Judge(trials, ScalingGround::kRequests, goal, &rules);
  return {rules[0], allowed > goal.allowed
                        ? allowed
                        : AllowedAgainst(rules[0].record.violation_share, goal.allowed)};
}

// A rival is the best within a limit, which is another one than the best by weight.
RuleToBeat WhoIsToBeBeaten(const ScalingTrials& trials, const ScalingGoal& goal,
                           const std::optional<ScalingRival>& rival) {
  if (!rival || goal.price > 0) return BestAutoscaler(trials, goal);
  return {{rival->policy, rival->record},
          rival->allowed > 0 ? rival->allowed
                             : AllowedAgainst(rival->record.violation_share, goal.allowed)};
}

// How the violations of a network fall with the price, and what that costs, as the Model has it.
class PriceCurve {
 public:
  PriceCurve(const ScalingWorld& world, const std::shared_ptr<const nn::CandidateNet>& net,
             double violations_max, double least_share, const ScalingTrials& trials, int episodes) {
    std::vector<NamedScalingPolicy> policies;
    const double below = least_share > 0 ? kBelowRangeWithMinimum : kBelowRange;
    const double low = world.price_low / below, high = world.price_high * kBeyondRange;
    for (int i = 0; i < kPrices; ++i) {
      prices_.push_back(low * std::pow(high / low, i / (kPrices - 1.0)));
      policies.push_back(
          {fmt::format("price {:.3g}", prices_.back()),
           {std::make_shared<NeuralScaling>(net, violations_max, prices_.back(), least_share)}});
    }
    double least = 1;
    for (const ScalingRecord& record : trials.Run(policies, ScalingGround::kModel, episodes)) {
      least = std::min(least, std::max(record.violation_share, kLeastShare));
      shares_.push_back(least);
      costs_.push_back(record.core_hours);
    }
  }

  // The lowest price at which no more are expected; the highest if there is none.
  double PriceFor(double share) const {
    for (size_t i = 0; i < prices_.size(); ++i) {
      if (shares_[i] > share) continue;
      if (i == 0 || shares_[i] >= shares_[i - 1]) return prices_[i];
      const double along = std::log(shares_[i - 1] / share) / std::log(shares_[i - 1] / shares_[i]);
      return prices_[i - 1] * std::pow(prices_[i] / prices_[i - 1], along);
    }
    return prices_.back();
  }

  double ShareAt(double price) const {
    const auto [i, along] = PlaceOf(price);
    return shares_[i - 1] * std::pow(shares_[i] / shares_[i - 1], along);
  }

  double CostAt(double price) const {
    const auto [i, along] = PlaceOf(price);
    return costs_[i - 1] + along * (costs_[i] - costs_[i - 1]);
  }

 private:
  // Which price is the next above, and how far from the one below that is.
  std::pair<size_t, double> PlaceOf(double price) const {
    size_t i = 1;
    while (i + 1 < prices_.size() && prices_[i] < price) ++i;
    const double along = std::log(price / prices_[i - 1]) / std::log(prices_[i] / prices_[i - 1]);
    return {i, std::clamp(along, 0.0, 1.0)};
  }

  std::vector<double> prices_, shares_, costs_;  // Prices rise, shares never do.
};

// Curves for all minima, on few episodes; and on all where they are asked for.
class Frontier {
 public:
  Frontier(const ScalingWorld& world, std::shared_ptr<const nn::CandidateNet> net,
           double violations_max, double peak_share, const ScalingTrials& trials)
      : world_(world),
        net_(std::move(net)),
        violations_max_(violations_max),
        trials_(trials),
        whole_(std::size(kMinimumShares)) {
    for (const double share : kMinimumShares) {
      minima_.push_back(share * peak_share);
      few_.emplace_back(world_, net_, violations_max_, minima_.back(), trials_, trials_.few());
    }
  }

  // The minimum with which no more violations than these cost least; with which they are fewest.
  // `off`: with each minimum, violations over those that the Model expects.
  size_t BestFor(double share, const std::vector<double>& off) const {
    const auto record = [&](size_t i) {
      const double price = few_[i].PriceFor(share / off[i]);
      return ScalingRecord{few_[i].CostAt(price) / (i > 0 ? kWorthMinimum : 1),
                           off[i] * few_[i].ShareAt(price)};
    };
    size_t best = 0;
    for (size_t i = 1; i < few_.size(); ++i) {
      if (record(i).IsBetterThan(record(best), share * (1 + 1e-9))) best = i;
    }
    return best;
  }
  size_t size() const { return few_.size(); }

  double minimum(size_t i) const { return minima_[i]; }
  const PriceCurve& few(size_t i) const { return few_[i]; }
  const PriceCurve& whole(size_t i) {
    if (!whole_[i])
      whole_[i].emplace(world_, net_, violations_max_, minima_[i], trials_, trials_.episodes());
    return *whole_[i];
  }

 private:
  const ScalingWorld& world_;
  std::shared_ptr<const nn::CandidateNet> net_;
  double violations_max_;
  const ScalingTrials& trials_;
  std::vector<double> minima_;  // Of what all pods serve.
  std::vector<PriceCurve> few_;
  std::vector<std::optional<PriceCurve>> whole_;
};

// At the one price there is: which minimum is best on the Model, and whether that beats the rule on
// requests.
void ChooseMinimum(const ScalingTrials& trials, const ScalingGoal& goal,
                   const std::shared_ptr<const nn::CandidateNet>& net, double late_max,
                   double peak_share, ScalingVerdict* verdict) {
  std::vector<NamedScalingPolicy> policies;
  for (const double share : kMinimumShares) {
    policies.push_back(
        {fmt::format("minimum {}", share),
         {std::make_shared<NeuralScaling>(net, late_max, goal.price, share * peak_share)}});
  }
  const std::vector<ScalingRecord> records =
      trials.Run(policies, ScalingGround::kModel, trials.few());
  size_t best = 0;
  double least = goal.Total(records[0]) * kWorthMinimum;
  for (size_t i = 1; i < records.size(); ++i) {
    if (goal.Total(records[i]) >= least) continue;
    least = goal.Total(records[i]);
    best = i;
  }
  verdict->price = goal.price;
  verdict->least_share = kMinimumShares[best] * peak_share;
  verdict->learned = trials.Run({policies[best]}, ScalingGround::kRequests, trials.episodes())[0];
  verdict->steps_back = !goal.IsBetter(verdict->learned, verdict->of_rule);
}

// With which price and minimum the network has no more violations than are allowed at the least
// cost. What was run, and found of how far the Model is off, is kept for another search.
class PriceSearch {
 public:
  PriceSearch(const ScalingTrials& trials, std::shared_ptr<const nn::CandidateNet> net,
              double violations_max, Frontier* frontier)
      : trials_(trials),
        net_(std::move(net)),
        violations_max_(violations_max),
        frontier_(*frontier),
        off_(frontier->size(), 1.0) {}

  // The best of all that was run on all episodes.
  void Run(double allowed, ScalingVerdict* verdict) {
    const double aimed = kAimed * allowed;
    size_t least = 0;
    bool is_first = true, on_few = trials_.few() < trials_.episodes();
    for (int i = 0; i < kTries; ++i) {
      if (i >= kFewTries) on_few = false;
      if (is_first) least = frontier_.BestFor(aimed, off_);
      const double before = off_[least], share = Try(least, aimed, on_few);
      const double moved = std::abs(std::log(off_[least] / before));
      if (on_few) {
        on_few = moved >= kNearFactor || frontier_.BestFor(aimed, off_) != least;
        continue;
      }
      is_first = false;
      if (share <= allowed && share >= kNearEnough * allowed) break;
      if (moved < kSameFactor) break;
    }
    const Tried* best = &tried_[0];
    for (const Tried& one : tried_) {
      if (one.record.IsBetterThan(best->record, allowed)) best = &one;
    }
    verdict->price = best->price;
    verdict->least_share = best->least_share;
    verdict->learned = best->record;
  }

 private:
  struct Tried {
    double price = 0, least_share = 0;
    ScalingRecord record;
  };

  // Its share of violations, at the price at which so many are expected.
  double Try(size_t least, double aimed, bool on_few) {
    const PriceCurve& curve = on_few ? frontier_.few(least) : frontier_.whole(least);
    const double price = curve.PriceFor(aimed / off_[least]);
    const double least_share = frontier_.minimum(least);
    const ScalingRecord record = trials_.Run(
        {{"learned", {std::make_shared<NeuralScaling>(net_, violations_max_, price, least_share)}}},
        ScalingGround::kRequests, on_few ? trials_.few() : trials_.episodes())[0];
    const double share = std::max(record.violation_share, kLeastShare);
    off_[least] = std::clamp(share / curve.ShareAt(price), 0.2, 20.0);
    if (!on_few) tried_.push_back({price, least_share, record});
    return share;
  }

  const ScalingTrials& trials_;
  std::shared_ptr<const nn::CandidateNet> net_;
  double violations_max_;
  Frontier& frontier_;
  // Violations over those that the Model expects: as it says, until something was run.
  std::vector<double> off_;
  std::vector<Tried> tried_;
};

}  // namespace

ScalingVerdict ChooseScaling(const ScalingWorld& world,
                             const std::shared_ptr<const nn::CandidateNet>& net,
                             const ScalingChoiceOptions& options, ThreadPool* pool) {
  CHECK(options.episodes >= 4);
  const std::optional<ScalingRival>& rival = options.rival;
  const ScalingTrials trials(world, rival ? rival->episodes : options.episodes,
                             rival ? CalibrationSeed(rival->seed) : options.seed ^ kValidationKey,
                             pool);
  const double limit = options.violations_max;
  ScalingGoal goal{.allowed = limit};
  if (world.objective().late) {
    goal.price = world.objective().late_price();
    goal.mean_core_hours = trials.MeanCoreHours();
  }
  const auto [rule, allowed] = WhoIsToBeBeaten(trials, goal, rival);
  ScalingVerdict verdict{.size = ApplicationSize::Of(world.task->ladder()),
                         .rule = rule.policy,
                         .of_rule = rule.record,
                         .episodes = rival ? rival->episodes : options.episodes};
  const double peak_share = PeakPerS(*world.scenario, world.loads, trials.episodes(),
                                     rival ? rival->seed : options.seed) /
                            verdict.size.serves_per_s;
  if (goal.price > 0) {
    ChooseMinimum(trials, goal, net, limit, peak_share, &verdict);
    return verdict;
  }
  Frontier frontier(world, net, limit, peak_share, trials);
  PriceSearch search(trials, net, limit, &frontier);
  double within = std::min(limit, allowed);
  search.Run(within, &verdict);
  if (allowed > limit && verdict.learned.violation_share > limit) {
    within = verdict.allowed = allowed;
    search.Run(within, &verdict);
  }
  verdict.steps_back = !verdict.learned.IsBetterThan(rule.record, within);
  return verdict;
}

}  // namespace rudderfish
