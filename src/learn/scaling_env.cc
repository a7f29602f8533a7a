// SPDX-License-Identifier: Apache-2.0
#include "learn/scaling_env.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "learn/scaling_limit.h"
#include "policy/lookahead_scaling.h"
#include "sim/scaling_evaluation.h"

namespace rudderfish {
namespace {

constexpr double kLatestBegin = 0.8;              // Of an episode.
constexpr int kLongAgo = 1000;                    // Intervals.
constexpr double kPieceS = 5, kFlatShare = 0.04;  // In which a load counts as steady.
// The range of prices: so many times the limit of late requests at its ends.
constexpr double kMostLate = 3, kLeastLate = 0.3;
// Where the Model's advice never comes near the limit: around the price of replicas that never
// change.
constexpr double kBelowConstant = 2, kAboveConstant = 30;
constexpr uint64_t kTrialKey = 0x7363616C65747279;  // Of episodes by which rules are chosen.

double SecondsOf(SimTime time) { return static_cast<double>(time.count()) / 1e9; }

void Add(const ScalingInterval& one, ScalingInterval* sums) {
  sums->cost += one.cost;
  sums->late += one.late;
  sums->churn += one.churn;
}

}  // namespace

ScalingEnv::Side::Side(const ScalingWorld& world)
    : model(world.laws, {.responses = LoadModelOptions::Responses::kNotKept}),
      replicas(world.application->workloads.size()) {}

ScalingEnv::ScalingEnv(const ScalingWorld& world, uint64_t seed, uint64_t id, int max_steps)
    : world_(&world),
      seed_(seed),
      id_(id),
      max_steps_(max_steps),
      calls_(world.application->CallsPerRequest()),
      own_(world),
      twin_(world),
      history_(world.task->NewHistory()),
      ready_(world.application->workloads.size()) {
  cursor_.moves.reserve(static_cast<size_t>(std::min(max_steps, world.decisions)) + 1);
}

void ScalingEnv::Reset(uint64_t episode) {
  Rng rng(seed_, id_, episode);
  const std::vector<int>& loads = world_->loads;
  // In turn, so that every load is met equally often.
  const int load = loads[(id_ + episode) % loads.size()];
  const uint64_t key = rng.Next64();
  const double price = world_->PriceAt(rng.Uniform());
  Begin({load, key, price}, episode == 0 ? kLatestBegin * rng.Uniform() : 0);
  cursor_.episode = episode;
}

void ScalingEnv::ResetTo(const ScalingEpisode& episode) { Begin(episode, 0); }

void ScalingEnv::Begin(const ScalingEpisode& episode, double begin_share) {
  const Load& load = *world_->scenario->load;
  curve_ = DrawCurve(load, EpisodeUse::kLearning, episode.load, episode.seed);
  noise_ = Rng(episode.seed, 1);
  price_ = episode.price;
  mean_per_s_ = std::max(0.1, curve_.MeanOf(0, SecondsOf(load.duration)));
  const CapacityLadder& ladder = world_->task->ladder();
  mean_cores_ = ladder.cores(ladder.RungFor(mean_per_s_));
  cursor_.moves.clear();
  steps_ = intervals_ = 0;
  last_rate_ = shown_rate_ = 0;
  for (Side* side : {&own_, &twin_}) {
    side->model.Start(world_->start->ReplicasFor(curve_));
    side->before = {};
    side->waiting = 0;
  }
  history_.Start();
  twin_since_change_ = kLongAgo;
  ScalingInterval own_last, twin_last;
  // The first decision has no samples yet, so nothing changes.
  for (int i = 0; i < 2; ++i) NextInterval(0, 0, &own_last, &twin_last);
  const int before = static_cast<int>(begin_share * world_->decisions);
  for (int i = 0; i < before; ++i) {
    const double own = Decide(RuleChoice()), twin = DecideTwin();
    NextInterval(own, twin, &own_last, &twin_last);
  }
  own_.waiting = own_last.waiting;
  twin_.waiting = twin_last.waiting;
  own_sums_ = twin_sums_ = {};
}

double ScalingEnv::Decide(int choice) {
  world_->task->Decode(space_, choice, own_.replicas);
  history_.Decided(history_.rung_asked(), space_.candidates[choice].rung);
  return Scale(&own_);
}

double ScalingEnv::DecideTwin() {
  const int rung =
      world_->task->RungOf(world_->rule, history_, space_, twin_rung_, twin_since_change_);
  if (rung == twin_rung_) return 0;
  world_->task->DecodeRung(rung, twin_.replicas);
  twin_since_change_ = 0;
  return Scale(&twin_);
}

// To the replicas that are asked for; what pods that come or go cost.
double ScalingEnv::Scale(Side* side) {
  double cores = 0;
  for (size_t w = 0; w < side->replicas.size(); ++w) {
    const ServedWorkload& workload = world_->application->workloads[w];
    if (!workload.scaled) continue;
    const auto id = static_cast<WorkloadId>(w);
    const int change = side->replicas[w] - side->model.replicas(id);
    if (change == 0) continue;
    cores += std::abs(change) * static_cast<double>(workload.cpu_millis) / 1000;
    side->model.SetReplicas(id, side->replicas[w]);
  }
  return world_->objective().change_price() * cores / mean_cores_;
}

// Of an interval in which the rate hardly changes one piece is enough. Gives the mean of all.
double ScalingEnv::FindPieces() {
  const double interval_s = world_->task->interval_s();
  const double from_s = intervals_ * interval_s;
  pieces_ = std::clamp(static_cast<int>(std::ceil(interval_s / kPieceS)), 1, kMostPieces);
  double mean_per_s = 0;
  for (int i = 0; i < pieces_; ++i) {
    piece_rates_[i] =
        curve_.MeanOf(from_s + i * interval_s / pieces_, from_s + (i + 1) * interval_s / pieces_);
    mean_per_s += piece_rates_[i] / pieces_;
  }
  bool is_flat = true;
  for (int i = 0; i < pieces_; ++i)
    is_flat = is_flat && std::abs(piece_rates_[i] - mean_per_s) <= kFlatShare * mean_per_s;
  if (is_flat) {
    pieces_ = 1;
    piece_rates_[0] = mean_per_s;
  }
  return mean_per_s;
}

ScalingInterval ScalingEnv::Advance(Side* side) {
  const double interval_s = world_->task->interval_s();
  for (int i = 0; i < pieces_; ++i) side->model.Advance(interval_s / pieces_, piece_rates_[i]);
  const LoadOutcome& now = side->model.outcome();
  const double requests = mean_per_s_ * interval_s;
  ScalingInterval interval{
      .cost = (now.core_s - side->before.core_s) / (mean_cores_ * interval_s),
      .late = (now.late + now.failed - side->before.late - side->before.failed) / requests};
  side->before = now;
  for (size_t w = 0; w < calls_.size(); ++w) {
    const ServedWorkload& workload = world_->application->workloads[w];
    if (!workload.scaled || calls_[w] <= 0) continue;
    const auto id = static_cast<WorkloadId>(w);
    const double waiting = side->model.backlog(id) - workload.slots * side->model.ready(id);
    interval.waiting = std::max(interval.waiting, waiting / (calls_[w] * requests));
  }
  return interval;
}

void ScalingEnv::Look() {
  for (size_t w = 0; w < ready_.size(); ++w) {
    const auto id = static_cast<WorkloadId>(w);
    if (!world_->application->workloads[w].scaled) continue;
    own_.replicas[w] = own_.model.replicas(id);
    ready_[w] = own_.model.ready(id);
    twin_.replicas[w] = twin_.model.replicas(id);
  }
  history_.Observe({.has_samples = intervals_ >= 2,
                    .requests_per_s = shown_rate_,
                    .replicas = own_.replicas,
                    .ready = ready_});
  ++twin_since_change_;
  twin_rung_ = world_->task->ladder().RungWithin(twin_.replicas);
  if (history_.has_samples()) world_->task->Space(history_, price_, &space_);
}

void ScalingEnv::NextInterval(double own_churn, double twin_churn, ScalingInterval* own,
                              ScalingInterval* twin) {
  const double interval_s = world_->task->interval_s();
  const double count = FindPieces() * interval_s;
  shown_rate_ = last_rate_;
  last_rate_ = std::max(0.0, count + std::sqrt(count) * noise_.Normal()) / interval_s;
  *own = Advance(&own_);
  *twin = Advance(&twin_);
  own->churn = own_churn;
  twin->churn = twin_churn;
  ++intervals_;
  Look();
}

StepResult ScalingEnv::Step(int choice) {
  CHECK(choice >= 0 && choice < space_.count());
  cursor_.moves.push_back({0, kNone, choice});
  const double own_churn = Decide(choice), twin_churn = DecideTwin();
  ScalingInterval own, twin;
  NextInterval(own_churn, twin_churn, &own, &twin);
  Add(own, &own_sums_);
  Add(twin, &twin_sums_);
  ++steps_;
  const auto shaped = [&](const ScalingInterval& one, Side* side) {
    const double potential = price_ * (side->waiting - kDiscount * one.waiting);
    side->waiting = one.waiting;
    return potential - one.Total(price_);
  };
  const double own_reward = shaped(own, &own_), twin_reward = shaped(twin, &twin_);
  StepResult result{.reward = (own_reward - twin_reward) / world_->reward_spread /
                              (1 + price_ / ScalingWorld::kPriceScale)};
  result.truncated = intervals_ > world_->decisions || steps_ >= max_steps_;
  return result;
}

int ScalingEnv::AdvisedChoice() const {
  const auto& all = space_.candidates;
  const auto best = std::min_element(
      all.begin(), all.end(), [](const auto& a, const auto& b) { return a.regret < b.regret; });
  return static_cast<int>(best - all.begin());
}

EpisodeFigures ScalingEnv::figures() const {
  const double n = std::max(1, steps_);
  return {
      .initial = twin_sums_.Total(price_) / n, .final = own_sums_.Total(price_) / n, .moves = n};
}

Result<void> ScalingEnv::Restore(const EnvCursor& cursor) {
  Reset(cursor.episode);
  const std::vector<Move> moves = cursor.moves;
  for (const Move& move : moves) {
    if (move.to < 0 || move.to >= candidate_count() || Step(move.to).truncated) {
      return Fail(ErrorCode::kCorruption,
                  "environment {}, episode {}: decision {} (candidate {}) cannot be repeated", id_,
                  cursor.episode, steps_, move.to);
    }
  }
  return {};
}

Result<ScalingWorld> ScalingWorld::Make(std::shared_ptr<const Scenario> scenario,
                                        std::vector<int> loads, double late_max, ThreadPool* pool,
                                        ScalingRows rows) {
  if (scenario->load == nullptr) {
    return Fail(ErrorCode::kFailedPrecondition,
                "{}: has no `load`: say what requests come, and how pods serve them",
                scenario->name);
  }
  const Load& load = *scenario->load;
  ScalingWorld made{.scenario = scenario, .loads = std::move(loads)};
  made.application = std::make_shared<const ServedApplication>(ApplicationOf(*scenario, 0));
  made.laws = std::make_shared<const LoadLaws>(made.application);
  const double interval_s = SecondsOf(load.interval);
  made.decisions = static_cast<int>((load.duration.count() - 1) / load.interval.count());
  if (made.decisions < 4) {
    return Fail(ErrorCode::kFailedPrecondition,
                "{}: an episode of {:g} s has too few intervals of {:g} s to learn from",
                scenario->name, SecondsOf(load.duration), interval_s);
  }
  made.task = std::make_shared<const ScalingTask>(
      std::make_shared<const CapacityLadder>(made.application, late_max), interval_s, rows);
  if (!made.objective().late)
    TRY(CheckLimitCanBeMet(*scenario, made.loads, late_max, made.task->ladder(), made.laws));
  made.start = std::make_shared<const EpisodeStart>(made.application);
  made.ChooseRule(pool);
  made.ChoosePrices(late_max, pool);
  return made;
}

void ScalingWorld::ChooseRule(ThreadPool* pool) {
  std::vector<ScalingRule> rules;
  for (const int window_s : {0, 300, 600}) {
    for (const double headroom : {0.9, 1.0, 1.15, 1.4}) rules.push_back({headroom, window_s});
  }
  const int per_rule = static_cast<int>(loads.size());
  const double price = objective().late ? objective().late_price() : kMiddlePrice;
  std::vector<double> totals(rules.size() * per_rule);
  pool->ParallelFor(static_cast<int>(totals.size()), [&](int index, int) {
    ScalingEnv env(*this, 0, 0, decisions);
    const int load = index % per_rule;
    env.ResetTo({loads[load], Rng(scenario->seed, kTrialKey, load).Next64(), price});
    while (!env.Step(env.RuleChoice(rules[index / per_rule])).truncated) {
    }
    totals[index] = env.sums().Total(price);
  });
  double least = std::numeric_limits<double>::infinity();
  for (size_t r = 0; r < rules.size(); ++r) {
    double total = 0;
    for (int l = 0; l < per_rule; ++l) total += totals[r * per_rule + l];
    if (total < least) rule = rules[r];
    least = std::min(least, total);
  }
}

// Of constant replicas, one size after the other: what fewer late requests cost where they are as
// many as is wanted; 0 where that is with none of them.
double ScalingWorld::PriceOfConstant(double late_max, ThreadPool* pool) const {
  constexpr int kSizes = 16, kEpisodes = 8;
  constexpr double kLeastShare = 0.45, kStep = 1.08;  // Of the peak.
  constexpr double kLeastLateShare = 1e-3;            // Of the limit: fewer are none.
  const Load& load = *scenario->load;
  const double peak_per_s = PeakPerS(*scenario, loads, kEpisodes, scenario->seed);
  const int per_size = kEpisodes * static_cast<int>(loads.size());
  struct Trial {
    double cost = 0, late = 0;
  };
  std::vector<Trial> trials(static_cast<size_t>(kSizes) * per_size);
  pool->ParallelFor(static_cast<int>(trials.size()), [&](int index, int) {
    const int size = index / per_size, episode = index % per_size;
    const int position = loads[episode % loads.size()];
    const RateCurve curve = DrawCurve(load, EpisodeUse::kLearning, position,
                                      Rng(scenario->seed, kTrialKey, episode).Next64());
    const double hours = SecondsOf(load.duration) / 3600;
    const double mean_per_s = std::max(0.1, curve.MeanOf(0, SecondsOf(load.duration)));
    const CapacityLadder& ladder = task->ladder();
    const StaticScalingPolicy constant(
        late_max, std::max(0.1, peak_per_s * kLeastShare * std::pow(kStep, size)));
    LoadModel model(laws, {.responses = LoadModelOptions::Responses::kNotKept});
    const ScalingFigures figures = RunScalingOnModel(constant, load, curve, 1, *start, &model);
    trials[index] = {figures.core_hours / (hours * ladder.cores(ladder.RungFor(mean_per_s))),
                     figures.violation_share()};
  });
  Trial before;
  for (int size = 0; size < kSizes; ++size) {
    Trial now;
    for (int e = 0; e < per_size; ++e) {
      const Trial& trial = trials[static_cast<size_t>(size) * per_size + e];
      now.cost += trial.cost / per_size;
      now.late += trial.late / per_size;
    }
    // Two sizes may be the same replicas. From one to the next late requests fall many times over,
    // and with the cost about exponentially.
    if (size > 0 && now.late <= late_max && now.late < before.late)
      return std::max(0.0, now.cost - before.cost) /
             (late_max * std::log(before.late / std::max(now.late, kLeastLateShare * late_max)));
    if (now.late <= late_max) return 0;
    if (size == 0 || now.late < before.late) before = now;
  }
  return 0;
}

std::vector<ScalingWorld::PriceTrial> ScalingWorld::TryPrices(const std::vector<double>& prices,
                                                              ThreadPool* pool) const {
  constexpr int kEpisodes = 6;
  const int per_price = kEpisodes * static_cast<int>(loads.size());
  std::vector<PriceTrial> trials(prices.size() * per_price);
  pool->ParallelFor(static_cast<int>(trials.size()), [&](int index, int) {
    const int episode = index % per_price, price = index / per_price;
    ScalingEnv env(*this, 0, 0, decisions);
    env.ResetTo({loads[episode % loads.size()], Rng(scenario->seed, kTrialKey, episode).Next64(),
                 prices[price]});
    std::vector<double> rewards;
    for (StepResult result; !result.truncated; rewards.push_back(result.reward))
      result = env.Step(env.AdvisedChoice());
    PriceTrial& trial = trials[index];
    trial.late = env.sums().late / static_cast<double>(rewards.size());
    double sum = 0;
    for (size_t i = rewards.size(); i-- > 0;) {
      sum = rewards[i] + ScalingEnv::kDiscount * sum;
      trial.squares += sum * sum / static_cast<double>(rewards.size());
    }
  });
  std::vector<PriceTrial> means(prices.size());
  for (size_t i = 0; i < prices.size(); ++i) {
    for (int e = 0; e < per_price; ++e) {
      const PriceTrial& trial = trials[i * per_price + e];
      means[i].late += trial.late / per_price;
      means[i].squares += trial.squares / per_price;
    }
  }
  return means;
}

// What the Model advises is tried at prices from the lowest to the highest; or at the one there is.
void ScalingWorld::ChoosePrices(double late_max, ThreadPool* pool) {
  constexpr int kPrices = 11, kFewestSteps = 3;
  if (objective().late) {
    price_low = price_high = objective().late_price();
    reward_spread = std::max(1e-3, std::sqrt(TryPrices({price_low}, pool)[0].squares));
    return;
  }
  std::vector<double> prices(kPrices);
  for (int i = 0; i < kPrices; ++i) prices[i] = PriceAt(i / (kPrices - 1.0));
  const std::vector<PriceTrial> trials = TryPrices(prices, pool);
  int low = 0, high = kPrices - 1;
  for (int i = 0; i < kPrices; ++i) {
    if (trials[i].late > kMostLate * late_max) low = i;
    if (trials[i].late < kLeastLate * late_max) high = std::min(high, i);
  }
  const double late = trials.back().late;  // At the highest price.
  low = std::min(low, kPrices - 1 - kFewestSteps);
  high = std::max(high, low + kFewestSteps);
  double from = PriceAt(low / (kPrices - 1.0)), upto = PriceAt(high / (kPrices - 1.0));
  // At the highest price the advice is still late too often: the load leaps, and what is advised
  // tells nothing of what serves it.
  const double constant = late > late_max ? PriceOfConstant(late_max, pool) : 0;
  if (constant > 0) {
    from = std::clamp(constant / kBelowConstant, kLeastPrice, kMostPrice / 10);
    upto = std::clamp(constant * kAboveConstant, 4 * from, kMostPrice);
    const auto step_of = [](double price) {
      const double share = std::log(price / kLeastPrice) / std::log(kMostPrice / kLeastPrice);
      return static_cast<int>(std::lround(share * (kPrices - 1)));
    };
    low = step_of(from);
    high = step_of(upto);
  }
  double sum = 0;
  for (int i = low; i <= high; ++i) sum += trials[i].squares / (high - low + 1);
  price_low = from;
  price_high = upto;
  reward_spread = std::max(1e-3, std::sqrt(sum));
}

}  // namespace rudderfish
