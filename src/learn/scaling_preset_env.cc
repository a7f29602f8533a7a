// SPDX-License-Identifier: Apache-2.0
#include "learn/scaling_preset_env.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace rudderfish {
namespace {

constexpr int kLoadEpisodeBits = 32;  // Of an episode's number; above them, its load's.
constexpr double kSteadyS = 5;        // In which a load counts as steady.
constexpr int kIntervalsBefore = 2;   // The first decision: before, there are no samples.
constexpr double kP95 = 0.95;

double IntervalS(const Load& load) { return static_cast<double>(load.interval.count()) / 1e9; }

}  // namespace

Result<ScalingPresetWorld> ScalingPresetWorld::Make(std::shared_ptr<const Scenario> scenario,
                                                    std::vector<int> loads, ScalingPreset preset) {
  if (scenario->load == nullptr) {
    return Fail(ErrorCode::kFailedPrecondition,
                "{}: has no `load`: say what requests come, and how pods serve them",
                scenario->name);
  }
  const Load& load = *scenario->load;
  ScalingPresetWorld made{.scenario = scenario, .loads = std::move(loads)};
  made.application = std::make_shared<const ServedApplication>(ApplicationOf(*scenario, 0));
  made.laws = std::make_shared<const LoadLaws>(made.application);
  made.task = std::make_shared<const ScalingPresetTask>(preset, *made.application, scenario->name);
  made.start = std::make_shared<const EpisodeStart>(made.application);
  // As an evaluation decides: at the end of each interval but the last, once there are samples.
  made.decisions = static_cast<int>((load.duration.count() - 1) / load.interval.count()) - 1;
  if (made.decisions > 0) return made;
  return Fail(ErrorCode::kFailedPrecondition,
              "{}: an episode of {:g} s has too few intervals of {:g} s to learn from",
              scenario->name, static_cast<double>(load.duration.count()) / 1e9, IntervalS(load));
}

ScalingPresetEnv::ScalingPresetEnv(const ScalingPresetWorld& world, uint64_t seed, uint64_t id,
                                   int max_steps)
    : world_(&world),
      seed_(seed),
      id_(id),
      max_steps_(max_steps),
      model_(world.laws, {.responses = LoadModelOptions::Responses::kNotKept}),
      limits_(*world.application),
      reward_(world.task->application(), GoalOf(world.task->preset())),
      shares_(world.application->EndpointShares()),
      replicas_(world.application->workloads.size()),
      ready_(replicas_.size()),
      asked_(replicas_.size()) {
  for (Sample* sample : {&last_, &shown_}) {
    sample->calls_per_s.resize(replicas_.size());
    sample->busy_slots.resize(replicas_.size());
  }
  cursor_.moves.reserve(static_cast<size_t>(world.decisions));
}

void ScalingPresetEnv::ResetTo(int load, uint64_t seed) {
  curve_ = DrawCurve(*world_->scenario->load, EpisodeUse::kLearning, load, seed);
  noise_ = Rng(seed, 1);
  model_.Start(world_->start->ReplicasFor(curve_));
  limits_ = LimitKeeper(*world_->application);
  before_ = {};
  latency_ms_ = 0;
  intervals_ = 0;
  for (Sample* sample : {&last_, &shown_}) {
    std::fill(sample->calls_per_s.begin(), sample->calls_per_s.end(), 0.0);
    std::fill(sample->busy_slots.begin(), sample->busy_slots.end(), 0.0);
  }
  cursor_.moves.clear();
  for (int i = 0; i < kIntervalsBefore; ++i) NextInterval();
  is_running_ = true;
  BeginEpisode();
}

void ScalingPresetEnv::BeginEpisode() {
  steps_ = 0;
  rewards_ = 0;
  reward_.Reset(sight_.readings, p95_ms_);
}

void ScalingPresetEnv::StartLoad(uint64_t number) {
  Rng rng(seed_, id_, number);
  // In turn, so that every load is met equally often.
  const int load = world_->loads[(id_ + number) % world_->loads.size()];
  ResetTo(load, rng.Next64());
  cursor_.episode = number << kLoadEpisodeBits;
}

void ScalingPresetEnv::Reset(uint64_t episode) {
  const bool follows = is_running_ && episode == cursor_.episode + 1;
  if (follows && is_over()) return StartLoad((episode >> kLoadEpisodeBits) + 1);
  if (!follows) StartLoad(episode >> kLoadEpisodeBits);
  cursor_.episode = episode;
  BeginEpisode();
}

StepResult ScalingPresetEnv::Step(int choice) {
  CHECK(choice >= 0 && choice < candidate_count() && !is_over());
  asked_ = replicas_;
  const GymHpaBound bound = world_->task->Apply(world_->task->move(choice), asked_);
  limits_.Mend(intervals_ * IntervalS(*world_->scenario->load), replicas_, asked_);
  for (size_t w = 0; w < asked_.size(); ++w) {
    if (asked_[w] != replicas_[w]) model_.SetReplicas(static_cast<WorkloadId>(w), asked_[w]);
  }
  cursor_.moves.push_back({kNone, kNone, choice});
  NextInterval();
  const double reward = reward_.Of(sight_.readings, p95_ms_, bound);
  ++steps_;
  rewards_ += reward;
  return {.reward = reward, .truncated = is_over() || steps_ >= max_steps_};
}

bool ScalingPresetEnv::is_over() const {
  return intervals_ >= world_->decisions + kIntervalsBefore;
}

void ScalingPresetEnv::NextInterval() {
  const double interval_s = IntervalS(*world_->scenario->load), from_s = intervals_ * interval_s;
  const int pieces = std::max(1, static_cast<int>(std::ceil(interval_s / kSteadyS)));
  std::swap(last_, shown_);
  std::fill(last_.calls_per_s.begin(), last_.calls_per_s.end(), 0.0);
  std::fill(last_.busy_slots.begin(), last_.busy_slots.end(), 0.0);
  double requests = 0;
  for (int i = 0; i < pieces; ++i) {
    const double piece_s = interval_s / pieces;
    const double rate = curve_.MeanOf(from_s + i * piece_s, from_s + (i + 1) * piece_s);
    requests += rate * piece_s;
    model_.Advance(piece_s, rate);
    for (size_t w = 0; w < replicas_.size(); ++w) {
      last_.calls_per_s[w] += model_.calls_per_s(static_cast<WorkloadId>(w)) / pieces;
      last_.busy_slots[w] += model_.busy_slots(static_cast<WorkloadId>(w)) / pieces;
    }
  }
  ++intervals_;
  // As if requests had been counted. What pods use is what they use.
  const double counted = std::max(0.0, requests + std::sqrt(requests) * noise_.Normal());
  for (size_t w = 0; requests > 0 && w < replicas_.size(); ++w)
    last_.calls_per_s[w] *= counted / requests;
  const LoadOutcome passed = model_.outcome() - before_;
  before_ = model_.outcome();
  if (passed.requests > 0) latency_ms_ = passed.mean_s() * 1000;
  if (GoalOf(world_->task->preset()) == GymHpaGoal::kSloDistance) p95_ms_ = ResponseP95Ms();
  Look();
}

void ScalingPresetEnv::Look() {
  for (size_t w = 0; w < replicas_.size(); ++w) {
    const auto id = static_cast<WorkloadId>(w);
    if (!world_->application->workloads[w].scaled) continue;
    replicas_[w] = model_.replicas(id);
    ready_[w] = model_.ready(id);
  }
  world_->task->Look({replicas_, ready_, shown_.calls_per_s, shown_.busy_slots}, &sight_);
  for (GymHpaReading& reading : sight_.readings) reading.latency_ms = latency_ms_;
}

// Of the mix of endpoints, by halving.
double ScalingPresetEnv::ResponseP95Ms() const {
  constexpr int kHalvings = 24;
  const auto below = [&](double s) {
    double share = 0;
    for (size_t e = 0; e < shares_.size(); ++e) share += shares_[e] * model_.response(e).Below(s);
    return share;
  };
  double high = 1e-3;
  for (size_t e = 0; e < shares_.size(); ++e) high = std::max(high, model_.response(e).mean);
  while (below(high) < kP95) high *= 2;
  double low = 0;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (below(middle) < kP95 ? low : high) = middle;
  }
  return high * 1000;
}

EpisodeFigures ScalingPresetEnv::figures() const {
  const double n = std::max(1, steps_);
  return {.initial = 0, .final = -rewards_ / n, .moves = static_cast<double>(steps_)};
}

Result<void> ScalingPresetEnv::Restore(const EnvCursor& cursor) {
  is_running_ = false;
  Reset(cursor.episode >> kLoadEpisodeBits << kLoadEpisodeBits);
  const std::vector<Move> moves = cursor.moves;
  for (const Move& move : moves) {
    if (is_over() || move.to < 0 || move.to >= candidate_count()) {
      return Fail(ErrorCode::kCorruption,
                  "environment {}, load {}: decision {} (action {}) cannot be repeated", id_,
                  cursor.episode >> kLoadEpisodeBits, intervals_, move.to);
    }
    if (Step(move.to).truncated && !is_over()) Reset();
  }
  cursor_.episode = cursor.episode;
  return {};
}

}  // namespace rudderfish
