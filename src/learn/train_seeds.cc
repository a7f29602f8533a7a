// SPDX-License-Identifier: Apache-2.0
#include "base/check.h"
#include "learn/trainer.h"

namespace rudderfish {
namespace {

// Each seed begins with that of its number, where it begins with a folder of seeds.
Result<void> CheckBeginnings(const std::filesystem::path& from, int seeds) {
  const int there = from.empty() ? 0 : SeedFolders(from);
  if (there == 0 || there >= seeds) return {};
  return Invalid("--from: {} has {} seed{}, too few for --seeds {}: name one of them for all",
                 from.string(), there, there == 1 ? "" : "s", seeds);
}

}  // namespace

Result<TrainJob> TrainJob::ToResume(const std::filesystem::path& folder) {
  TrainJob job{.folder = folder, .resume = Resume::kYes};
  const RunPaths paths = SeedFolders(folder) > 0 ? RunPaths{folder}.seed(1) : RunPaths{folder};
  if (!HasRun(folder)) {
    return Fail(ErrorCode::kNotFound, "{}: no run to resume: there is no config.yaml in it",
                folder.string());
  }
  TRY_ASSIGN(RunConfig config, ReadRunConfig(paths));
  job.options = config.options;
  job.provenance = std::move(config.provenance);
  TRY_ASSIGN(job.scenarios, ReadRunScenarios(paths));
  return job;
}

Result<std::vector<TrainSummary>> TrainSeeds(const TrainJob& job, int seeds,
                                             const std::atomic<bool>* stop,
                                             const TrainCallback& progress) {
  CHECK_GE(seeds, 1);
  const RunPaths paths{job.folder};
  FolderLock lock;
  if (HasRun(job.folder)) {
    TRY_ASSIGN(lock, FolderLock::Take(job.folder));
  }
  if (HasRun(job.folder) && (job.resume == Resume::kNo || SeedFolders(job.folder) == 0)) {
    return Fail(ErrorCode::kFailedPrecondition, "{}: there is {} already; {}", job.folder.string(),
                SeedFolders(job.folder) == 0 ? "a run of one seed" : "a run",
                job.resume == Resume::kNo ? "go on with it by --resume, or name another folder"
                                          : "resume it without --seeds");
  }
  TRY(CheckBeginnings(job.options.from, seeds));
  TrainJob shared = job;
  if (shared.worlds == nullptr && seeds > 1) {
    TRY_ASSIGN(shared.worlds, Trainer::WorldsFor(job));
  }
  std::vector<TrainSummary> summaries;
  std::string table =
      "seed,folder,iterations,env_steps,seconds,best_iteration,best_final_ms,best_objective_ms\n";
  for (int number = 1; number <= seeds; ++number) {
    TrainJob one = shared;
    one.options.seed = job.options.seed + number - 1;
    one.folder = paths.seed(number).folder;
    one.number = number;
    one.resume = HasRun(one.folder) ? Resume::kYes : Resume::kNo;
    if (number > 1) one.start.reset();
    TRY_ASSIGN(const std::unique_ptr<Trainer> trainer, Trainer::Open(std::move(one)));
    if (lock == FolderLock()) {
      TRY_ASSIGN(lock, FolderLock::Take(job.folder));  // It is there by now.
    }
    TRY_ASSIGN(const TrainSummary summary, trainer->Run(stop, [&](const TrainProgress& report) {
      if (!progress) return;
      TrainProgress numbered = report;
      numbered.seed_number = number;
      numbered.seed_count = seeds;
      progress(numbered);
    }));
    summaries.push_back(summary);
    table += fmt::format("{},{},{},{},{:.1f},{},{:.6g},{:.6g}\n", summary.seed,
                         paths.seed(number).folder.filename().string(), summary.iterations,
                         summary.env_steps, summary.seconds, summary.best_iteration,
                         summary.best_final_ms, summary.best_objective_ms);
    TRY(WriteFileAtomically(paths.summary(), table));
    if (summary.ending == TrainEnding::kStopped) break;
  }
  return summaries;
}

}  // namespace rudderfish
