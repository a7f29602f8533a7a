// SPDX-License-Identifier: Apache-2.0
#include "learn/validation.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/rng.h"
#include "nn/softmax.h"
#include "policy/neural_placement.h"
#include "sim/placement_run.h"

namespace rudderfish {
namespace {

constexpr uint64_t kValidationStream = uint64_t{1} << 44;  // Of the seed, a stream a start.
constexpr double kValidationPrices[] = {0.5, 0.2, 0.8};    // Places in the range.

// To the end of the episode, which only the number of steps ends.
void PlayMostLikely(const nn::CandidateNet& net, Environment* env) {
  nn::Workspace workspace(nn::Workspace::Keep::kNothing);
  GraphBatch question{.widths = net.shape().widths};
  std::vector<float> logits, memory(net.shape().memory());
  for (StepResult result; !result.truncated;) {
    question.Clear();
    env->Encode(&question);
    logits.resize(static_cast<size_t>(env->candidate_count()));
    float stop = 0, value = 0;
    net.Forward(question, 0, 1, &workspace, logits, std::span(&stop, 1), std::span(&value, 1),
                memory);
    result = env->Step(
        static_cast<int>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
  }
}

}  // namespace

Result<Validation> Validation::Draw(std::span<const TrainingWorld> worlds, uint64_t seed,
                                    int starts) {
  Validation validation;
  validation.worlds_.assign(worlds.begin(), worlds.end());
  validation.routing_episodes_ = starts;
  validation.seed_ = seed;
  for (size_t w = 0; w < worlds.size(); ++w) {
    for (int i = 0; worlds[w].places() && i < std::min(starts, kPlacementEpisodes); ++i) {
      const Rng rng(seed, kValidationStream + validation.placements_.size());
      const PlacementWorld* world = worlds[w].placement;
      auto lifecycle = std::make_unique<Lifecycle>(world->scenario);
      const uint64_t drawable = world->DrawableSeed(rng, lifecycle.get());
      validation.placements_.push_back({world, drawable, std::move(lifecycle), {}});
    }
    if (worlds[w].scales() || worlds[w].scales_by_preset())
      validation.DrawScalings(worlds[w], seed, starts);
    if (worlds[w].routes()) validation.routings_.push_back(worlds[w].routing);
    for (int i = 0; worlds[w].moves() && i < starts; ++i) {
      if (i % kLanes == 0) {
        validation.groups_.push_back({.world = static_cast<int>(w),
                                      .first = static_cast<int>(validation.starts_.size()),
                                      .count = std::min(kLanes, starts - i)});
      }
      Rng rng(seed, kValidationStream + validation.starts_.size());
      TRY(worlds[w].world->Draw(&rng, &validation.starts_.emplace_back()));
    }
  }
  validation.figures_.resize(validation.starts_.size());
  return validation;
}

// Every load at every price, as far as there are episodes.
void Validation::DrawScalings(const TrainingWorld& world, uint64_t seed, int starts) {
  const std::vector<int>& all = world.scales() ? world.scaling->loads : world.scaling_preset->loads;
  const auto loads = static_cast<int>(all.size());
  for (int i = 0; i < std::max(starts, loads); ++i) {
    Rng rng(seed, kValidationStream + scalings_.size());
    ScaledEpisode one{.world = world.scaling, .preset = world.scaling_preset};
    one.episode = {.load = all[i % loads], .seed = rng.Next64()};
    if (world.scales()) {
      one.episode.price =
          world.scaling->PriceAt(kValidationPrices[i / loads % std::size(kValidationPrices)]);
    }
    scalings_.push_back(one);
  }
}

ValidationFigures Validation::RunScalings(const nn::CandidateNet& net, ThreadPool* pool) {
  pool->ParallelFor(static_cast<int>(scalings_.size()), [&](int index, int) {
    ScaledEpisode& one = scalings_[index];
    if (one.preset != nullptr) {
      ScalingPresetEnv env(*one.preset, 0, 0, one.preset->decisions);
      env.ResetTo(one.episode.load, one.episode.seed);
      PlayMostLikely(net, &env);
      const EpisodeFigures figures = env.figures();
      one.figures = {figures.final, figures.final, -figures.final, figures.moves};
      return;
    }
    ScalingEnv env(*one.world, 0, 0, one.world->decisions);
    env.ResetTo(one.episode);
    PlayMostLikely(net, &env);
    const EpisodeFigures figures = env.figures();
    const double scale = 1 + one.episode.price / ScalingWorld::kPriceScale;
    one.figures = {.final_ms = figures.final / scale,
                   .objective_ms = figures.final / scale,
                   .mean_return = (figures.initial - figures.final) / scale,
                   .moves = figures.moves};
  });
  ValidationFigures mean;
  const auto n = static_cast<double>(scalings_.size());
  for (const ScaledEpisode& one : scalings_) {
    mean.final_ms += one.figures.final_ms / n;
    mean.objective_ms += one.figures.objective_ms / n;
    mean.mean_return += one.figures.mean_return / n;
    mean.moves += one.figures.moves / n;
  }
  return mean;
}

ValidationFigures Validation::RunRoutings(const nn::CandidateNet& net, ThreadPool* pool) const {
  const RoutingValidation mean =
      ValidateRouting(routings_, ChoiceWeightsOf(net), routing_episodes_, seed_, pool);
  return {.final_ms = mean.objective,
          .objective_ms = mean.objective,
          .mean_return = -mean.objective,
          .moves = mean.changes};
}

ValidationFigures Validation::RunPlacements(const nn::CandidateNet& net, ThreadPool* pool) {
  const auto shared = std::make_shared<const nn::CandidateNet>(net);
  pool->ParallelFor(static_cast<int>(placements_.size()), [&](int index, int) {
    PlacementEpisode& episode = placements_[index];
    PlacementTask task = episode.world->task;
    std::optional<PresetJudge> judge;
    if (task.preset()) {
      judge.emplace(*task.preset());
      task = PlacementTask(task.objective(), task.preset(), LatencyFilter::kLearned);
    }
    NeuralPlacement learned(task, shared);
    double rewards = 0;
    const auto choose = [&](const PlacementQuestion& question) {
      const int choice = learned.Choose(question);
      if (choice < 0) return kNone;
      const NodeId node = learned.space().candidates[choice].node;
      if (judge) rewards += judge->Judge(question, learned.space(), node).reward;
      return node;
    };
    const Result<LifecycleMetrics> metrics =
        RunPlacement(choose, episode.seed, episode.lifecycle.get());
    CHECK(metrics.has_value());  // Draw has started it.
    episode.figures.final_ms = episode.figures.objective_ms =
        PlacementCost(*metrics, episode.world->scenario->node_count());
    episode.figures.moves = static_cast<double>(metrics->bindings);
    if (judge) episode.figures.objective_ms = -rewards / std::max(1.0, episode.figures.moves);
  });
  ValidationFigures mean;
  const auto n = static_cast<double>(placements_.size());
  for (const PlacementEpisode& one : placements_) {
    mean.final_ms += one.figures.final_ms / n;
    mean.objective_ms += one.figures.objective_ms / n;
    mean.mean_return -= one.figures.objective_ms / n;
    mean.moves += one.figures.moves / n;
  }
  return mean;
}

ValidationFigures Validation::Run(const nn::CandidateNet& net, ThreadPool* pool) {
  if (!placements_.empty()) return RunPlacements(net, pool);
  if (!scalings_.empty()) return RunScalings(net, pool);
  if (!routings_.empty()) return RunRoutings(net, pool);
  while (static_cast<int>(crews_.size()) < pool->size()) {
    Crew& crew = crews_.emplace_back();
    crew.workspace = std::make_unique<nn::Workspace>(nn::Workspace::Keep::kNothing);
    crew.questions.widths = net.shape().widths;
    crew.envs.resize(worlds_.size());
    for (size_t w = 0; w < worlds_.size(); ++w) {
      const TrainingWorld& at = worlds_[w];
      for (int lane = 0; lane < kLanes; ++lane) {
        crew.envs[w].push_back(
            std::make_unique<Env>(*at.world, *at.task, at.law, 0, 0, at.task->max_steps()));
      }
    }
  }
  pool->ParallelFor(static_cast<int>(groups_.size()),
                    [&](int index, int worker) { RunGroup(net, groups_[index], &crews_[worker]); });
  ValidationFigures mean;
  for (const ValidationFigures& one : figures_) {
    mean.final_ms += one.final_ms;
    mean.objective_ms += one.objective_ms;
    mean.mean_return += one.mean_return;
    mean.moves += one.moves;
  }
  const auto n = static_cast<double>(figures_.size());
  return {mean.final_ms / n, mean.objective_ms / n, mean.mean_return / n, mean.moves / n};
}

void Validation::RunGroup(const nn::CandidateNet& net, const Group& group, Crew* crew) {
  const auto& envs = crew->envs[group.world];
  crew->active.clear();
  for (int lane = 0; lane < group.count; ++lane) {
    envs[lane]->ResetTo(starts_[group.first + lane]);
    figures_[group.first + lane] = {};
    crew->active.push_back(lane);
  }
  while (!crew->active.empty()) {
    const size_t count = crew->active.size();
    crew->questions.Clear();
    for (int lane : crew->active) envs[lane]->Encode(&crew->questions);
    const size_t candidates = crew->questions.ends.size();
    crew->logits.resize(std::max(crew->logits.size(), candidates));
    crew->stop.resize(std::max(crew->stop.size(), count));
    crew->value.resize(crew->stop.size());
    net.Forward(crew->questions, 0, static_cast<int>(count), crew->workspace.get(),
                std::span(crew->logits.data(), candidates), std::span(crew->stop.data(), count),
                std::span(crew->value.data(), count));
    size_t going_on = 0;
    for (size_t i = 0; i < count; ++i) {
      const int lane = crew->active[i];
      Env& env = *envs[lane];
      const int n = crew->questions.candidate_count(static_cast<int>(i));
      const std::span<const float> logits(crew->logits.data() + crew->questions.candidate_begin[i],
                                          n);
      const int best = nn::ArgmaxOrStop(logits, crew->stop[i]);
      ValidationFigures& figures = figures_[group.first + lane];
      const StepResult result = env.Step(best == n ? kStop : best);
      figures.mean_return += result.reward;
      if (!result.terminated && !result.truncated) {
        crew->active[going_on++] = lane;
        continue;
      }
      figures.final_ms = env.walk().best_latency_ms();
      figures.objective_ms = env.walk().best_objective_ms();
      figures.moves = env.walk().best_displaced();
    }
    crew->active.resize(going_on);
  }
}

}  // namespace rudderfish
