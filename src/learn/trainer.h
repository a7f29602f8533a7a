// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "base/result.h"
#include "base/thread_pool.h"
#include "learn/learner.h"
#include "learn/run_folder.h"
#include "learn/run_tables.h"
#include "learn/tensorboard.h"
#include "learn/training_worlds.h"
#include "learn/validation.h"
#include "learn/world_checkpoint.h"

// A run of training from its options to its folder: iterations of a learner, evaluated now and
// then, saved every few seconds and at the end. A run by steps that was stopped anywhere, even by
// kill -9, and resumed writes the same metrics.csv and checkpoints, byte for byte, as one never
// stopped. Saving is atomic: whatever happens, the last good checkpoint is whole.
//
//   last.safetensors  net.*, adam.*, env.*; of DQN target.* and replay.*; run.* (counters)
//   best.safetensors  net.* alone
//   metadata of both  task, preset, features, objective (policy/neural.h), version, algorithm,
//                     seed, scenario, scenario_sha256, iteration, env_steps
//
// The clock decides when a run by seconds ends and when checkpoints are written, nothing else.
// One thread at a time; it starts its own.

namespace rudderfish {

enum class Resume { kNo, kYes };

struct TrainJob {
  std::vector<TrainScenario> scenarios;  // Several: environments are split among them.
  TrainOptions options;
  std::filesystem::path folder;
  Resume resume = Resume::kNo;
  int number = 1;  // Of several seeds: which of those in `options.from` this one begins with.
  Provenance provenance;
  std::optional<Instant>
      start;  // Of the process: training by the clock ends `seconds` after it. Absent: now.
  const Clock* clock = nullptr;                  // nullptr: the system's.
  std::shared_ptr<const TrainingWorlds> worlds;  // nullptr: made of the scenarios.

  // What goes on with the run in a folder as it was configured, provenance included: set the
  // version of the program that is to do it. Options may then be changed as Trainer allows.
  static Result<TrainJob> ToResume(const std::filesystem::path& folder);
};

struct TrainProgress {
  int seed_number = 1;  // From 1, of seed_count.
  int seed_count = 1;
  double fraction = 0;  // Of the run.
  int64_t iteration = 0;
  int64_t env_steps = 0;
  double env_steps_per_second = 0;
  double final_ms_mean = kNoFigure;             // Of the episodes that ended in the iteration.
  std::optional<ValidationFigures> validation;  // Newest.
};

enum class TrainEnding { kFinished, kStopped, kWasFinished };

struct TrainSummary {
  uint64_t seed = 0;
  TrainEnding ending = TrainEnding::kFinished;
  int64_t iterations = 0;
  int64_t env_steps = 0;
  double seconds = 0;  // As TimingRow::seconds.
  std::optional<ValidationFigures> last;
  int64_t best_iteration = 0;  // If best_final_ms is no number: never evaluated.
  double best_final_ms = kNoFigure;
  double best_objective_ms = kNoFigure;
};

using TrainCallback = std::function<void(const TrainProgress&)>;

class Trainer {
 public:
  // Makes the folder, or restores what is in it. Refused: a folder with a run, unless it is to be
  // resumed; one in which another trainer is at work; a run of other scenarios, options or version.
  // An interrupted run may be given more or less time or steps.
  static Result<std::unique_ptr<Trainer>> Open(TrainJob job);

  // What the job's environments play in; several runs may share it (TrainJob::worlds).
  static Result<std::shared_ptr<const TrainingWorlds>> WorldsFor(const TrainJob& job);

  // Once. Trains to the end of the run, or until `stop` is set; then, too, all is saved. An error
  // (a full disk, weights that are no numbers any more) leaves the last checkpoint as it was.
  Result<TrainSummary> Run(const std::atomic<bool>* stop = nullptr,
                           const TrainCallback& progress = {});

 private:
  Trainer(TrainJob job, std::shared_ptr<const TrainingWorlds> worlds);

  Result<void> Prepare();
  Result<void> BeginWith(const std::filesystem::path& run);
  Result<void> Enter();
  Result<void> OpenTables(int64_t metrics_bytes);
  Result<int64_t> RestoreRun();
  Result<void> CheckSameRun(const RunConfig& config) const;
  Result<void> Iterate(const TrainCallback& progress);
  Result<void> Evaluate(MetricsRow* row);
  Result<void> Record(const IterationFigures& figures, const MetricsRow& row,
                      const TimingRow& timing);
  Result<void> CheckFinite(const IterationFigures& figures) const;
  Result<void> SaveLast();
  Result<void> SaveBest();
  Result<void> WriteBest(const nn::CandidateNet& net);
  Result<void> Judge();
  std::string ObjectiveFigure(double value) const;
  Result<void> Note(const std::string& line);
  tl::unexpected<Error> NoteFailure(Error error);
  void Describe(nn::SafetensorsFile* file) const;

  double Elapsed() const;
  double Fraction() const;
  bool IsOver() const;

  TrainJob job_;
  RunPaths paths_;
  FolderLock lock_;
  SystemClock system_clock_;
  const Clock* clock_;
  ThreadPool pool_;
  std::shared_ptr<const TrainingWorlds> worlds_;
  std::optional<Validation> validation_;
  std::unique_ptr<Learner> learner_;
  std::optional<MetricsTable> metrics_;
  std::optional<TimingTable> timing_;
  std::optional<EventFile> events_;
  std::optional<AppendFile> log_;

  TrainSummary summary_;
  Verdicts verdicts_;  // At the end.
  bool over_ = false;
  double earlier_seconds_ = 0;  // Of the run's earlier processes.
  double iteration_seconds_ = 0;
  double closing_seconds_ = 0;  // What the last evaluation and saving are expected to take.
  Instant saved_at_{};
  int64_t saved_iteration_ = -1;
};

// Runs of options.seed, options.seed + 1 ..., one after another, each with its own time, into
// seed-1/, seed-2/ ... of the folder, and summary.csv. Ends early when stopped. Resume::kYes goes
// on with the seed that was interrupted.
Result<std::vector<TrainSummary>> TrainSeeds(const TrainJob& job, int seeds,
                                             const std::atomic<bool>* stop = nullptr,
                                             const TrainCallback& progress = {});

}  // namespace rudderfish
