// SPDX-License-Identifier: Apache-2.0
#include "learn/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "nn/checkpoint.h"
#include "policy/checkpoint.h"
#include "policy/neural.h"

namespace rudderfish {
namespace {

constexpr double kFirstGuessSeconds =
    0.05;  // Of evaluating and saving, before either has been done.

Result<double> Scalar(const nn::SafetensorsFile& file, std::string_view name) {
  double value = 0;
  TRY(file.CopyTo(name, {}, std::span(&value, 1)));
  return value;
}

Result<int64_t> Count(const nn::SafetensorsFile& file, std::string_view name) {
  int64_t value = 0;
  TRY(file.CopyTo(name, {}, std::span(&value, 1)));
  if (value < 0)
    return Fail(ErrorCode::kCorruption, "{}: {} is {}", file.source_name(), name, value);
  return value;
}

template <class Number>
void AddScalar(std::string name, Number value, nn::SafetensorsFile* file) {
  file->Add(std::move(name), {}, std::span<const Number>(&value, 1));
}

std::string Joined(const std::vector<TrainScenario>& scenarios,
                   std::string (*text)(const TrainScenario&)) {
  std::string joined;
  for (const TrainScenario& scenario : scenarios)
    joined += (joined.empty() ? "" : ",") + text(scenario);
  return joined;
}

std::vector<std::shared_ptr<const Scenario>> ScenariosOf(const TrainJob& job) {
  std::vector<std::shared_ptr<const Scenario>> scenarios;
  for (const TrainScenario& one : job.scenarios) scenarios.push_back(one.scenario);
  return scenarios;
}

std::string Trimmed(const std::string& line) {
  return line.substr(std::min(line.size(), line.find_first_not_of(' ')));
}

Result<void> CheckIsNew(const std::filesystem::path& folder) {
  if (!HasRun(folder)) return {};
  return Fail(ErrorCode::kFailedPrecondition,
              "{}: there is a run already; go on with it by --resume, or name another folder",
              folder.string());
}

}  // namespace

Result<std::shared_ptr<const TrainingWorlds>> Trainer::WorldsFor(const TrainJob& job) {
  TRY_ASSIGN(TrainingWorlds worlds,
             TrainingWorlds::Make(ScenariosOf(job), job.options.enlarge_every, job.options.threads,
                                  job.options.scaling, job.options.preset, job.options.routing));
  return std::make_shared<const TrainingWorlds>(std::move(worlds));
}

Trainer::Trainer(TrainJob job, std::shared_ptr<const TrainingWorlds> worlds)
    : job_(std::move(job)),
      paths_{job_.folder},
      clock_(job_.clock != nullptr ? job_.clock : &system_clock_),
      pool_(job_.options.threads),
      worlds_(std::move(worlds)),
      closing_seconds_(kFirstGuessSeconds) {
  if (!job_.start) job_.start = clock_->Now();
  summary_.seed = job_.options.seed;
}

Result<std::unique_ptr<Trainer>> Trainer::Open(TrainJob job) {
  CHECK(!job.scenarios.empty());
  TRY(CheckTrainOptions(job.options));
  if (HasRun(job.folder))
    TRY(FolderLock::Take(job.folder));  // How to resume is no news to a run at work.
  if (job.resume == Resume::kNo) TRY(CheckIsNew(job.folder));
  if (!HasRun(job.folder) && job.resume == Resume::kYes) {
    return Fail(ErrorCode::kNotFound, "{}: no run to resume: there is no config.yaml in it",
                job.folder.string());
  }
  std::shared_ptr<const TrainingWorlds> worlds = job.worlds;
  if (worlds == nullptr) {
    TRY_ASSIGN(worlds, WorldsFor(job));
  }
  std::unique_ptr<Trainer> trainer(new Trainer(std::move(job), std::move(worlds)));
  TRY(trainer->Prepare());
  return trainer;
}

Result<void> Trainer::Prepare() {
  TRY(CheckCanLearn(job_.options, worlds_->first()));
  TRY_ASSIGN(validation_, Validation::Draw(worlds_->originals(), job_.options.seed,
                                           job_.options.validation_starts));
  learner_ = MakeLearner(job_.options, worlds_->list());
  std::error_code ignored;
  if (!job_.options.from.empty() && !std::filesystem::exists(paths_.last(), ignored))
    TRY(BeginWith(job_.options.from));
  TRY(Enter());
  int64_t metrics_bytes = 0;
  if (job_.resume == Resume::kYes) {
    TRY_ASSIGN(metrics_bytes, RestoreRun());
  } else {
    TRY(WriteRunFolder(paths_, job_.options, job_.provenance, job_.scenarios));
  }
  TRY(OpenTables(metrics_bytes));
  over_ = IsOver();
  if (over_ && !job_.options.only_judges()) return {};
  TRY(Note(fmt::format(
      "{} training with seed {} on {}, {} threads, kernels {}",
      summary_.iterations > 0 ? fmt::format("after iteration {}:", summary_.iterations) : "new:",
      job_.options.seed,
      Joined(job_.scenarios, [](const TrainScenario& s) { return s.scenario->name; }),
      job_.options.threads, learner_->net().kernels().name)));
  saved_iteration_ = summary_.iterations;
  // What placing and scaling begin with is worth keeping; with a checkpoint, it was judged before.
  if (!worlds_->first().moves() && metrics_bytes == 0) {
    MetricsRow beginning;
    TRY(Evaluate(&beginning));
    TRY(metrics_->Append(beginning));
  }
  return job_.resume == Resume::kYes ? Result<void>() : SaveLast();
}

Result<void> Trainer::BeginWith(const std::filesystem::path& run) {
  const bool are_seeds = SeedFolders(run) > 0;
  TRY_ASSIGN(const nn::SafetensorsFile file,
             OpenCheckpoint(are_seeds ? RunPaths{run}.seed(job_.number).folder : run));
  TRY(CheckIsOfWorld(file, worlds_->first()));
  return learner_->BeginWith(file);
}

// From here on no other process works in the folder.
Result<void> Trainer::Enter() {
  TRY(MakeDirectories(paths_.folder));
  TRY_ASSIGN(lock_, FolderLock::Take(paths_.folder));
  return job_.resume == Resume::kNo ? CheckIsNew(paths_.folder) : Result<void>();
}

Result<void> Trainer::OpenTables(int64_t metrics_bytes) {
  TRY_ASSIGN(metrics_, MetricsTable::Open(paths_.metrics(), metrics_bytes));
  TRY_ASSIGN(const int64_t timing_bytes, TimingBytesUpTo(paths_.timing(), summary_.iterations));
  TRY_ASSIGN(timing_,
             TimingTable::Open(paths_.timing(), summary_.iterations > 0 ? timing_bytes : 0));
  TRY_ASSIGN(log_, AppendFile::Open(paths_.log()));
  if (IsOver() && !job_.options.only_judges()) return {};
  TRY_ASSIGN(events_, EventFile::Create(paths_.folder));
  TRY_ASSIGN(const std::string config, ReadFile(paths_.config()));
  return events_->Text("config", "```\n" + config + "```\n");
}

Result<void> Trainer::CheckSameRun(const RunConfig& config) const {
  const auto refuse = [&](const std::string& before, const std::string& now) {
    return Fail(ErrorCode::kFailedPrecondition,
                "{}: this run has `{}`, not `{}`; resume it as it was, or start another",
                paths_.folder.string(), before, now);
  };
  if (config.options.by_steps() != job_.options.by_steps()) {
    const auto name = [](const TrainOptions& o) {
      return o.by_steps() ? "an end by steps" : "an end by time";
    };
    return refuse(name(config.options), name(job_.options));
  }
  const std::vector<std::string> before = FixedOptions(config.options),
                                 now = FixedOptions(job_.options);
  for (size_t i = 0; i < std::min(before.size(), now.size()); ++i) {
    if (before[i] != now[i]) return refuse(Trimmed(before[i]), Trimmed(now[i]));
  }
  CHECK_EQ(before.size(), now.size());
  if (config.provenance.version != job_.provenance.version) {
    return refuse("version: " + config.provenance.version, "version: " + job_.provenance.version);
  }
  std::vector<std::string> digests;
  for (const TrainScenario& scenario : job_.scenarios) digests.push_back(scenario.Digest());
  if (digests != config.scenario_digests) {
    return Fail(
        ErrorCode::kFailedPrecondition,
        "{}: made with other scenarios or traces than those given (its own are in the folder)",
        paths_.folder.string());
  }
  return {};
}

// How much of metrics.csv belongs to the checkpoint; 0: there is none yet, and the run starts over.
Result<int64_t> Trainer::RestoreRun() {
  TRY_ASSIGN(const RunConfig config, ReadRunConfig(paths_));
  TRY(CheckSameRun(config));
  if (config.options.steps != job_.options.steps ||
      config.options.seconds != job_.options.seconds) {
    TRY(WriteRunFolder(paths_, job_.options, config.provenance, job_.scenarios));
  }
  const Result<nn::SafetensorsFile> read = nn::SafetensorsFile::Read(paths_.last());
  if (!read && read.error().code == ErrorCode::kNotFound) return 0;
  TRY_ASSIGN(const nn::SafetensorsFile file, read);
  TRY(CheckIsOfWorld(file, worlds_->first()));
  TRY_ASSIGN(summary_.iterations, Count(file, "run.iteration"));
  TRY_ASSIGN(summary_.env_steps, Count(file, "run.env_steps"));
  TRY_ASSIGN(summary_.best_iteration, Count(file, "run.best_iteration"));
  TRY_ASSIGN(summary_.best_final_ms, Scalar(file, "run.best_final_ms"));
  TRY_ASSIGN(summary_.best_objective_ms, Scalar(file, "run.best_objective_ms"));
  if (!job_.options.by_steps()) {
    TRY_ASSIGN(earlier_seconds_, Scalar(file, "run.seconds"));
  }
  TRY(learner_->Restore(file, &pool_));
  return Count(file, "run.metrics_bytes");
}

double Trainer::Elapsed() const { return earlier_seconds_ + Seconds(clock_->Now() - *job_.start); }

double Trainer::Fraction() const {
  const TrainOptions& options = job_.options;
  const double done = options.by_steps() ? static_cast<double>(summary_.env_steps) /
                                               static_cast<double>(options.steps)
                                         : Elapsed() / options.seconds;
  return std::min(1.0, done);
}

// By the clock a run is over when one iteration more would end too late.
bool Trainer::IsOver() const {
  if (summary_.iterations == 0) return job_.options.only_judges();
  if (job_.options.by_steps()) return summary_.env_steps >= job_.options.steps;
  if (iteration_seconds_ == 0) return earlier_seconds_ >= job_.options.seconds;
  return Elapsed() + iteration_seconds_ + closing_seconds_ > job_.options.seconds;
}

Result<TrainSummary> Trainer::Run(const std::atomic<bool>* stop, const TrainCallback& progress) {
  if (over_ && !job_.options.only_judges()) {
    summary_.ending = TrainEnding::kWasFinished;
    summary_.seconds = earlier_seconds_;
    if (IsJudged(worlds_->first())) {  // If it was ended before that.
      TRY_ASSIGN(const std::string verdict, VerdictOf(worlds_->first(), paths_.best()));
      if (verdict.empty()) TRY(Judge());
    }
    return summary_;
  }
  saved_at_ = clock_->Now();
  while (!over_) {
    if (stop != nullptr && stop->load(std::memory_order_relaxed)) {
      summary_.ending = TrainEnding::kStopped;
      break;
    }
    if (Result<void> result = Iterate(progress); !result)
      return NoteFailure(std::move(result).error());
  }
  summary_.seconds = Elapsed();
  const bool stopped = summary_.ending == TrainEnding::kStopped;
  // What is left of the time was too little for an iteration: the run has had it all.
  if (!stopped && !job_.options.by_steps())
    earlier_seconds_ += std::max(0.0, job_.options.seconds - summary_.seconds);
  if (Result<void> result = SaveLast(); !result) return NoteFailure(std::move(result).error());
  if (IsJudged(worlds_->first()) && !stopped) {
    if (Result<void> result = Judge(); !result) return NoteFailure(std::move(result).error());
  }
  TRY(Note(fmt::format("{} after iteration {}, {} steps, {:.1f} s{}",
                       stopped ? "stopped" : "finished", summary_.iterations, summary_.env_steps,
                       summary_.seconds, stopped ? "; train --resume goes on from here" : "")));
  TRY(log_->Flush());
  return summary_;
}

Result<void> Trainer::Iterate(const TrainCallback& progress) {
  const Instant start = clock_->Now();
  const double fraction = Fraction();
  const IterationFigures figures = learner_->Iterate(summary_.iterations + 1, fraction, &pool_);
  const Instant learned = clock_->Now();
  ++summary_.iterations;
  summary_.env_steps += figures.env_steps;
  TRY(CheckFinite(figures));
  iteration_seconds_ = std::max(1e-9, Seconds(learned - start));
  over_ = IsOver();

  MetricsRow row{.iteration = summary_.iterations, .env_steps = summary_.env_steps};
  const int64_t every = job_.options.evaluate_every;
  const int64_t steps_before = summary_.env_steps - figures.env_steps;
  if (over_ || summary_.env_steps / every > steps_before / every) TRY(Evaluate(&row));
  const TimingRow timing{
      .iteration = summary_.iterations,
      .env_steps = summary_.env_steps,
      .seconds = Elapsed(),
      .env_steps_per_second = static_cast<double>(figures.env_steps) / iteration_seconds_,
      .collect_seconds = Seconds(figures.collecting),
      .update_seconds = Seconds(learned - start - figures.collecting),
      .evaluate_seconds = Seconds(clock_->Now() - learned)};
  TRY(Record(figures, row, timing));
  if (Seconds(clock_->Now() - saved_at_) >= job_.options.save_every_seconds && !over_)
    TRY(SaveLast());
  if (progress) {
    TrainProgress report{.fraction = Fraction(),
                         .iteration = summary_.iterations,
                         .env_steps = summary_.env_steps,
                         .env_steps_per_second = timing.env_steps_per_second,
                         .validation = summary_.last};
    const EpisodeTotals& episodes = figures.episodes;
    if (episodes.episodes > 0)
      report.final_ms_mean = episodes.final / static_cast<double>(episodes.episodes);
    progress(report);
  }
  return {};
}

Result<void> Trainer::Evaluate(MetricsRow* row) {
  const Instant start = clock_->Now();
  const ValidationFigures figures = validation_->Run(learner_->net(), &pool_);
  row->eval_final_ms = figures.final_ms;
  row->eval_return = figures.mean_return;
  row->eval_moves = figures.moves;
  summary_.last = figures;
  if (std::isnan(summary_.best_objective_ms) || figures.objective_ms < summary_.best_objective_ms) {
    summary_.best_iteration = summary_.iterations;
    summary_.best_final_ms = figures.final_ms;
    summary_.best_objective_ms = figures.objective_ms;
    TRY(SaveBest());
  }
  closing_seconds_ = 2 * Seconds(clock_->Now() - start);
  return {};
}

Result<void> Trainer::CheckFinite(const IterationFigures& figures) const {
  const auto weights = learner_->net().parameters();
  const bool whole =
      std::all_of(weights.begin(), weights.end(), [](float w) { return std::isfinite(w); });
  if (whole && std::isfinite(figures.value_loss) && std::isfinite(figures.gradient_norm)) return {};
  return Fail(ErrorCode::kCancelled,
              "{}: training went astray in iteration {}: value loss {}, gradient norm {}, weights "
              "{}; {} of iteration {} "
              "is the last good checkpoint; a lower learning rate may help",
              paths_.folder.string(), summary_.iterations, figures.value_loss,
              figures.gradient_norm, whole ? "finite" : "not finite",
              paths_.last().filename().string(), saved_iteration_);
}

Result<void> Trainer::Record(const IterationFigures& figures, const MetricsRow& evaluated,
                             const TimingRow& timing) {
  MetricsRow row = evaluated;
  const EpisodeTotals& episodes = figures.episodes;
  row.episodes = episodes.episodes;
  if (const auto n = static_cast<double>(episodes.episodes); n > 0) {
    row.return_mean = episodes.rewards / n;
    row.final_ms_mean = episodes.final / n;
    row.moves_mean = episodes.moves / n;
  }
  row.policy_loss = figures.policy_loss;
  row.value_loss = figures.value_loss;
  row.entropy = figures.entropy;
  row.approx_kl = figures.approx_kl;
  row.clip_fraction = figures.clip_fraction;
  row.explained_variance = figures.explained_variance;
  row.grad_norm = figures.gradient_norm;
  row.learning_rate = figures.learning_rate;
  TRY(metrics_->Append(row));
  TRY(timing_->Append(timing));
  const bool moves = worlds_->first().moves();  // Other tasks end in an objective.
  const ScalarPoint points[] = {
      {"charts/episodic_return", row.return_mean},
      {"charts/episodic_length", row.moves_mean},
      {moves ? "charts/final_ms" : "charts/objective", row.final_ms_mean},
      {"charts/learning_rate", row.learning_rate},
      {"charts/epsilon", figures.epsilon},
      {"charts/SPS", static_cast<double>(summary_.env_steps) / std::max(1e-9, timing.seconds)},
      {"losses/policy_loss", row.policy_loss},
      {job_.options.algorithm == Algorithm::kDqn ? "losses/td_loss" : "losses/value_loss",
       row.value_loss},
      {"losses/q_values", figures.mean_q},
      {"losses/entropy", row.entropy},
      {"losses/approx_kl", row.approx_kl},
      {"losses/clipfrac", row.clip_fraction},
      {"losses/explained_variance", row.explained_variance},
      {"losses/grad_norm", row.grad_norm},
      {moves ? "validation/final_ms" : "validation/objective", row.eval_final_ms},
      {"validation/return", row.eval_return},
      {moves ? "validation/moves" : "validation/decisions", row.eval_moves},
  };
  return events_->Scalars(summary_.env_steps, points);
}

void Trainer::Describe(nn::SafetensorsFile* file) const {
  DescribeWorlds(*worlds_, job_.options, verdicts_, file);
  file->SetMetadata("version", job_.provenance.version);
  file->SetMetadata("algorithm", std::string(AlgorithmName(job_.options.algorithm)));
  file->SetMetadata("encoder", std::string(nn::EncoderName(job_.options.encoder)));
  file->SetMetadata("seed", std::to_string(job_.options.seed));
  file->SetMetadata(
      "scenario", Joined(job_.scenarios, [](const TrainScenario& s) { return s.scenario->name; }));
  file->SetMetadata("scenario_sha256",
                    Joined(job_.scenarios, [](const TrainScenario& s) { return s.Digest(); }));
  file->SetMetadata("iteration", std::to_string(summary_.iterations));
  file->SetMetadata("env_steps", std::to_string(summary_.env_steps));
}

// Tables first: a checkpoint never refers to rows that are not in the file.
Result<void> Trainer::SaveLast() {
  TRY(metrics_->Flush());
  TRY(timing_->Flush());
  TRY(events_->Flush());
  nn::SafetensorsFile file;
  Describe(&file);
  learner_->Save(&file);
  AddScalar<int64_t>("run.iteration", summary_.iterations, &file);
  AddScalar<int64_t>("run.env_steps", summary_.env_steps, &file);
  AddScalar<int64_t>("run.metrics_bytes", metrics_->size(), &file);
  AddScalar<int64_t>("run.best_iteration", summary_.best_iteration, &file);
  AddScalar<double>("run.best_final_ms", summary_.best_final_ms, &file);
  AddScalar<double>("run.best_objective_ms", summary_.best_objective_ms, &file);
  if (!job_.options.by_steps()) AddScalar<double>("run.seconds", Elapsed(), &file);
  TRY(file.Write(paths_.last()));
  saved_at_ = clock_->Now();
  saved_iteration_ = summary_.iterations;
  return {};
}

Result<void> Trainer::WriteBest(const nn::CandidateNet& net) {
  nn::SafetensorsFile file;
  Describe(&file);
  file.SetMetadata("validation_final_ms", ObjectiveFigure(summary_.best_final_ms));
  nn::AddNet(net, &file);
  return file.Write(paths_.best());
}

// Finds whether the best network is to decide at all; of scaling, the price at which it does best.
Result<void> Trainer::Judge() {
  TRY_ASSIGN(const nn::SafetensorsFile file, nn::SafetensorsFile::Read(paths_.best()));
  auto net = std::make_shared<nn::CandidateNet>(learner_->net());
  TRY(nn::LoadNet(file, net.get()));
  verdicts_ = JudgeWorlds(*worlds_, job_.options, net, &pool_);
  TRY(WriteBest(*net));
  TRY_ASSIGN(const std::string verdict, VerdictOf(worlds_->first(), paths_.best()));
  return Note(verdict);
}

Result<void> Trainer::SaveBest() {
  TRY(WriteBest(learner_->net()));
  return Note(fmt::format("best so far: {} after iteration {}, {} steps",
                          worlds_->first().moves()
                              ? fmt::format("{:.2f} ms", summary_.best_final_ms)
                              : ObjectiveFigure(summary_.best_final_ms),
                          summary_.iterations, summary_.env_steps));
}

std::string Trainer::ObjectiveFigure(double value) const {
  return worlds_->first().moves() ? fmt::format("{:.3f}", value) : fmt::format("{:.6f}", value);
}

Result<void> Trainer::Note(const std::string& line) {
  TRY(log_->Append(fmt::format("{:9.2f} s  {}\n", Elapsed(), line)));
  return log_->Flush();
}

// Whatever can still be written is; the error is the first one's.
tl::unexpected<Error> Trainer::NoteFailure(Error error) {
  const Result<void> ignored[] = {Note("failed: " + error.message), metrics_->Flush(),
                                  timing_->Flush(), events_->Flush()};
  static_cast<void>(ignored);
  return tl::unexpected(std::move(error));
}

}  // namespace rudderfish
