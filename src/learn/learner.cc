// SPDX-License-Identifier: Apache-2.0
#include "learn/learner.h"

#include <algorithm>

#include "base/check.h"
#include "nn/checkpoint.h"

namespace rudderfish {
namespace {

constexpr uint64_t kWeightStream = uint64_t{3}
                                   << 40;  // Of the seed; see kChoiceStream in rollout.cc.

constexpr std::string_view kGainFeature = "gain_relative";

void SetGainPrior(const FeatureTable& features, float weight, nn::CandidateNet* net) {
  const std::span<float> skip = net->tensor("logit.skip");
  for (size_t i = 0; i < features.candidate.size(); ++i) {
    if (features.candidate[i].name == kGainFeature) skip[i] = weight;
  }
}

// A policy that places pods begins as the mix of scores that did best on training seeds, and as
// nothing else.
void SetReferencePrior(const PlacementMix& mix, float weight, nn::CandidateNet* net) {
  const std::span<float> skip = net->tensor("logit.skip");
  for (int s = 0; s < kPlacementScores; ++s)
    skip[s] = weight * static_cast<float>(mix[s]);  // The first features are the scores.
  for (float& one : net->tensor("logit.weight")) one = 0;
}

// A policy that scales begins as one that trusts what the Model predicts.
constexpr std::string_view kRegretFeature = "regret";

void SetRegretPrior(float weight, nn::CandidateNet* net) {
  const std::span<float> skip = net->tensor("logit.skip");
  const std::vector<FeatureDescription>& features = ScalingTask::Features().candidate;
  for (size_t i = 0; i < features.size(); ++i) {
    if (features[i].name == kRegretFeature) skip[i] = -weight;
  }
  for (float& one : net->tensor("logit.weight")) one = 0;
}

// PPO and A2C: they differ in how often and how far they follow what they have seen.
PpoOptions OnPolicyOptions(const TrainOptions& options) {
  return options.algorithm == Algorithm::kA2c
             ? Ppo::ActorCritic(options.ppo, options.rollout.envs * options.rollout.steps)
             : options.ppo;
}

class OnPolicyLearner final : public Learner {
 public:
  OnPolicyLearner(const TrainOptions& options, std::span<const TrainingWorld> worlds)
      : net_(MakeNet(options, worlds[0].widths())),
        envs_(worlds, options.seed, options.rollout, net_.shape().memory()),
        ppo_(OnPolicyOptions(options), options.seed, &net_) {
    if (worlds[0].preset() || worlds[0].scales_by_preset()) return;  // From nothing, as they did.
    if (worlds[0].places()) {
      SetReferencePrior(worlds[0].placement->reference, options.ppo.gain_prior, &net_);
    } else if (worlds[0].scales()) {
      SetRegretPrior(options.ppo.gain_prior, &net_);
    } else {
      SetGainPrior(worlds[0].task->features(), options.ppo.gain_prior, &net_);
    }
  }

  IterationFigures Iterate(uint64_t iteration, double progress, ThreadPool* pool) override {
    const Instant start = clock_.Now();
    envs_.Collect(net_, iteration, pool);
    const Instant collected = clock_.Now();
    const PpoMetrics metrics = ppo_.Update(&envs_, iteration, progress, pool);
    return {.episodes = envs_.totals(),
            .env_steps = steps_per_iteration(),
            .policy_loss = metrics.policy_loss,
            .value_loss = metrics.value_loss,
            .entropy = metrics.entropy,
            .approx_kl = metrics.approx_kl,
            .clip_fraction = ppo_.options().surrogate == Surrogate::kClipped
                                 ? metrics.clip_fraction
                                 : IterationFigures::kNone,
            .explained_variance = metrics.explained_variance,
            .gradient_norm = metrics.gradient_norm,
            .learning_rate = metrics.learning_rate,
            .collecting = collected - start};
  }

  int64_t steps_per_iteration() const override {
    return static_cast<int64_t>(envs_.options().envs) * envs_.options().steps;
  }
  const nn::CandidateNet& net() const override { return net_; }
  Result<void> BeginWith(const nn::SafetensorsFile& file) override {
    return nn::LoadNet(file, &net_);
  }

  void Save(nn::SafetensorsFile* file) const override {
    nn::AddNet(net_, file);
    SaveAdam(ppo_.adam(), file);
    SaveCursors(envs_.Cursors(), file);
    if (net_.shape().memory() == 0) return;
    file->Add("env.memory", {envs_.options().envs, net_.shape().memory()},
              std::span<const float>(envs_.Memory()));
  }

  Result<void> Restore(const nn::SafetensorsFile& file, ThreadPool* pool) override {
    TRY(nn::LoadNet(file, &net_));
    TRY(RestoreAdam(file, &ppo_.adam()));
    TRY_ASSIGN(const std::vector<EnvCursor> cursors, RestoreCursors(file, envs_.options().envs));
    if (const int width = net_.shape().memory(); width > 0) {
      std::vector<float> memory(static_cast<size_t>(envs_.options().envs) * width);
      TRY(file.CopyTo("env.memory", {envs_.options().envs, width}, std::span(memory)));
      envs_.RestoreMemory(memory);
    }
    return envs_.Restore(cursors, pool);
  }

  std::vector<nn::Workspace*> Workspaces() override {
    std::vector<nn::Workspace*> all;
    envs_.AddWorkspaces(&all);
    ppo_.AddWorkspaces(&all);
    return all;
  }

 private:
  SystemClock clock_;
  nn::CandidateNet net_;
  VectorEnv envs_;
  Ppo ppo_;
};

class DqnLearner final : public Learner {
 public:
  DqnLearner(const TrainOptions& options, std::span<const TrainingWorld> worlds)
      : net_(MakeNet(options, worlds[0].widths())),
        dqn_(options.dqn, worlds, options.seed, &net_) {}

  IterationFigures Iterate(uint64_t iteration, double progress, ThreadPool* pool) override {
    const Instant start = clock_.Now();
    dqn_.Collect(iteration, progress, pool);
    const Instant collected = clock_.Now();
    const DqnMetrics metrics = dqn_.Update(iteration, progress, pool);
    return {.episodes = dqn_.replay().totals(),
            .env_steps = steps_per_iteration(),
            .value_loss = metrics.loss,
            .gradient_norm = metrics.gradient_norm,
            .learning_rate = metrics.learning_rate,
            .mean_q = metrics.mean_q,
            .epsilon = metrics.epsilon,
            .collecting = collected - start};
  }

  int64_t steps_per_iteration() const override { return dqn_.replay().page_samples(); }
  const nn::CandidateNet& net() const override { return net_; }
  Result<void> BeginWith(const nn::SafetensorsFile& file) override {
    TRY(nn::LoadNet(file, &net_));
    return nn::LoadNet(file, &dqn_.target());
  }

  // The questions in memory are not written: they are asked again, from the cursors where the
  // oldest page began.
  void Save(nn::SafetensorsFile* file) const override {
    nn::AddNet(net_, file);
    nn::AddNet(dqn_.target(), file, kTargetPrefix);
    SaveAdam(dqn_.adam(), file);
    SaveCursors(dqn_.replay().OldestCursors(), file);
    const std::vector<int32_t> choices = dqn_.replay().Choices();
    const int64_t page = dqn_.replay().page_samples();
    file->Add("replay.choices", {static_cast<int64_t>(choices.size()) / page, page},
              std::span<const int32_t>(choices));
    const int64_t pages_max = dqn_.replay().pages_max();
    file->Add("replay.pages_max", {}, std::span(&pages_max, 1));
  }

  Result<void> Restore(const nn::SafetensorsFile& file, ThreadPool* pool) override {
    TRY(nn::LoadNet(file, &net_));
    TRY(nn::LoadNet(file, &dqn_.target(), kTargetPrefix));
    TRY(RestoreAdam(file, &dqn_.adam()));
    TRY_ASSIGN(const std::vector<EnvCursor> cursors,
               RestoreCursors(file, dqn_.replay().options().envs));
    TRY_ASSIGN(const std::vector<int32_t> choices, file.Values<int32_t>("replay.choices"));
    int64_t pages_max = 0;
    TRY(file.CopyTo("replay.pages_max", {}, std::span(&pages_max, 1)));
    return dqn_.replay().Refill(cursors, choices, pages_max, pool);
  }

  std::vector<nn::Workspace*> Workspaces() override {
    std::vector<nn::Workspace*> all;
    dqn_.AddWorkspaces(&all);
    return all;
  }

 private:
  static constexpr std::string_view kTargetPrefix = "target.";

  SystemClock clock_;
  nn::CandidateNet net_;
  Dqn dqn_;
};

class EvolutionLearner final : public Learner {
 public:
  EvolutionLearner(const TrainOptions& options, std::span<const TrainingWorld> worlds)
      : net_(MakeNet(options, worlds[0].widths())),
        evolution_(options.es, worlds, options.seed, &net_) {}

  IterationFigures Iterate(uint64_t iteration, double progress, ThreadPool* pool) override {
    const Instant start = clock_.Now();
    const EvolutionMetrics metrics = evolution_.Iterate(iteration, progress, pool);
    const auto episodes = static_cast<double>(metrics.episodes);
    return {.episodes = {.episodes = metrics.episodes,
                         .initial = metrics.cost * episodes,
                         .final = metrics.cost * episodes,
                         .moves = metrics.decisions * episodes},
            .env_steps = metrics.tried,
            .value_loss = metrics.rms,
            .gradient_norm = metrics.gradient_norm,
            .learning_rate = metrics.learning_rate,
            .collecting = clock_.Now() - start};
  }

  int64_t steps_per_iteration() const override { return evolution_.steps_per_iteration(); }
  const nn::CandidateNet& net() const override { return net_; }
  Result<void> BeginWith(const nn::SafetensorsFile& file) override {
    return Fail(ErrorCode::kFailedPrecondition,
                "{}: algorithm es begins with a mix of scores, not with a network",
                file.source_name());
  }

  void Save(nn::SafetensorsFile* file) const override {
    nn::AddNet(net_, file);
    SaveAdam(evolution_.adam(), file);
    const std::span<const float> weights = evolution_.weights();
    file->Add(std::string(kWeights), {static_cast<int64_t>(weights.size())}, weights);
  }

  Result<void> Restore(const nn::SafetensorsFile& file, ThreadPool* /*pool*/) override {
    std::vector<float> weights(evolution_.weights().size());
    TRY(nn::LoadNet(file, &net_));
    TRY(RestoreAdam(file, &evolution_.adam()));
    TRY(file.CopyTo(kWeights, {static_cast<int64_t>(weights.size())}, std::span(weights)));
    evolution_.SetWeights(weights);
    return {};
  }

  std::vector<nn::Workspace*> Workspaces() override { return {}; }

 private:
  static constexpr std::string_view kWeights = "es.weights";

  SystemClock clock_;
  nn::CandidateNet net_;
  Evolution evolution_;
};

}  // namespace

Result<void> CheckCanLearn(const TrainOptions& options, const TrainingWorld& world) {
  const bool evolves = options.algorithm == Algorithm::kEvolution;
  if (world.routes() && !evolves) {
    return Fail(ErrorCode::kFailedPrecondition,
                "algorithm {}: is not available for scenarios of regions; use es",
                AlgorithmName(options.algorithm));
  }
  if (!evolves || world.has_players()) return {};
  return Fail(ErrorCode::kFailedPrecondition,
              "algorithm es: is only available for placement scenarios and scenarios of regions; "
              "this is a migration scenario");
}

std::unique_ptr<Learner> MakeLearner(const TrainOptions& options,
                                     std::span<const TrainingWorld> worlds) {
  CHECK(!worlds.empty());
  if (options.algorithm == Algorithm::kDqn) return std::make_unique<DqnLearner>(options, worlds);
  if (options.algorithm == Algorithm::kEvolution)
    return std::make_unique<EvolutionLearner>(options, worlds);
  return std::make_unique<OnPolicyLearner>(options, worlds);
}

nn::CandidateNet MakeNet(const TrainOptions& options, const GraphWidths& widths) {
  nn::CandidateNet net({.widths = widths,
                        .hidden = options.hidden,
                        .rounds = options.rounds,
                        .encoder = options.encoder,
                        .recurrence = options.algorithm == Algorithm::kRecurrentPpo
                                          ? nn::Recurrence::kGated
                                          : nn::Recurrence::kNone});
  Rng rng(options.seed, kWeightStream);
  net.Initialize(&rng);
  return net;
}

void SaveAdam(const nn::Adam& adam, nn::SafetensorsFile* file) {
  const int64_t steps = adam.steps(), n = static_cast<int64_t>(adam.first_moment().size());
  file->Add("adam.steps", {}, std::span(&steps, 1));
  file->Add("adam.first_moment", {n}, adam.first_moment());
  file->Add("adam.second_moment", {n}, adam.second_moment());
}

Result<void> RestoreAdam(const nn::SafetensorsFile& file, nn::Adam* adam) {
  int64_t steps = 0;
  std::vector<float> first(adam->first_moment().size()), second(first.size());
  const int64_t n = static_cast<int64_t>(first.size());
  TRY(file.CopyTo("adam.steps", {}, std::span(&steps, 1)));
  TRY(file.CopyTo("adam.first_moment", {n}, std::span(first)));
  TRY(file.CopyTo("adam.second_moment", {n}, std::span(second)));
  if (steps < 0)
    return Fail(ErrorCode::kCorruption, "{}: adam.steps is {}", file.source_name(), steps);
  adam->Restore(steps, first, second);
  return {};
}

void SaveCursors(std::span<const EnvCursor> cursors, nn::SafetensorsFile* file) {
  std::vector<uint64_t> episodes;
  std::vector<int32_t> begin{0}, moves;
  for (const EnvCursor& cursor : cursors) {
    episodes.push_back(cursor.episode);
    for (const Move& move : cursor.moves)
      moves.insert(moves.end(), {move.workload, move.from, move.to});
    begin.push_back(static_cast<int32_t>(moves.size() / 3));
  }
  const auto count = static_cast<int64_t>(cursors.size());
  file->Add("env.episode", {count}, std::span<const uint64_t>(episodes));
  file->Add("env.move_begin", {count + 1}, std::span<const int32_t>(begin));
  file->Add("env.moves", {static_cast<int64_t>(moves.size() / 3), 3},
            std::span<const int32_t>(moves));
}

Result<std::vector<EnvCursor>> RestoreCursors(const nn::SafetensorsFile& file, int envs) {
  std::vector<uint64_t> episodes(envs);
  std::vector<int32_t> begin(envs + 1);
  TRY(file.CopyTo("env.episode", {envs}, std::span(episodes)));
  TRY(file.CopyTo("env.move_begin", {envs + 1}, std::span(begin)));
  TRY_ASSIGN(const std::vector<int32_t> moves, file.Values<int32_t>("env.moves"));
  if (begin[0] != 0 || !std::is_sorted(begin.begin(), begin.end()) ||
      static_cast<size_t>(begin[envs]) * 3 != moves.size()) {
    return Fail(ErrorCode::kCorruption, "{}: env.move_begin does not fit env.moves",
                file.source_name());
  }
  std::vector<EnvCursor> cursors(envs);
  for (int i = 0; i < envs; ++i) {
    cursors[i].episode = episodes[i];
    for (int32_t m = begin[i]; m < begin[i + 1]; ++m) {
      cursors[i].moves.push_back({moves[3 * m], moves[3 * m + 1], moves[3 * m + 2]});
    }
  }
  return cursors;
}

}  // namespace rudderfish
