// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/policy_list.h"
#include "cluster/task_kind.h"
#include "evaluation/experiment.h"
#include "learn/trainer.h"
#include "report/report.h"
#include "scenario/scenario.h"

// `evaluate`, `simulate` and `experiment` do the same for every kind of decision. A kind
// contributes one JudgedWorld: how policies play its episodes, and how the result is told.

namespace rudderfish {

// What policies did in the same held-out episodes.
struct Judgement {
  int episodes = 0;       // That all policies have played: fewer than `asked` if it was stopped.
  int asked = 0;          // Episodes.
  bool is_better = true;  // The candidate. True if there is no baseline.
  std::function<std::string()> table, json, csv;
  std::function<Result<void>(const ReportOptions&, const std::filesystem::path&)> write_report;
};

// `fraction` of the work that is done, in [0, 1].
using ReportProgress = std::function<void(double fraction, std::string_view text)>;

struct EvaluationRequest {
  const Arguments& arguments;
  const Session& session;
  std::string path;
  Scenario scenario;
  std::vector<ListedPolicy> policies;
  uint64_t seed = 1;
  bool has_json = false, has_report = false;  // Which of them will be made.
  ReportProgress progress;
  ThreadPool* pool = nullptr;
  const std::atomic<bool>* stop = nullptr;  // Becomes true: no further episode begins.
};

struct SimulationRequest {
  const Arguments& arguments;
  const Session& session;
  std::string path;
  Scenario scenario;
  OnePolicy policy;
  uint64_t seed = 1;
  int64_t episode = 0;
  std::optional<int64_t> alternatives;  // To show of a decision. None: the world's default.
  OutputFormat format = OutputFormat::kTable;
};

// Where a cell of an experiment finds its input, and leaves what it finds.
struct PlannedCell {
  const Experiment* experiment = nullptr;
  ExperimentCell cell;
  std::filesystem::path scenario;
  std::filesystem::path folder;  // Of all results.

  const ExperimentVariant& variant() const { return experiment->variants[cell.variant]; }
};

struct CellRun {
  const Session& session;
  ThreadPool* pool = nullptr;
  ReportProgress progress;
};

struct CellResult {
  Judgement judgement;
  std::string pairs;                                        // PairsOf, as JSON.
  std::vector<std::pair<std::string, std::string>> others;  // More files: name, content.
};

// One of the other files: what earlier works have published, as QuotesOf; ends up in the report.
inline constexpr std::string_view kPublishedFile = "published.json";

// (name, value): columns of metrics.csv that tell the cells of one scenario file apart.
using CellColumns = std::vector<std::pair<std::string_view, std::string>>;

struct JudgedWorld {
  std::string_view policies;  // An example of what `evaluate` takes,
  std::string_view policy;    // and `simulate`.
  Result<Judgement> (*evaluate)(const EvaluationRequest& request);
  Result<ExitStatus> (*simulate)(const SimulationRequest& request);
  // Finds what is wrong before anything is computed.
  Result<void> (*check_cell)(const PlannedCell& cell);
  Result<CellResult> (*run_cell)(const PlannedCell& cell, const CellRun& run);
  CellColumns (*columns)(const PlannedCell& cell);  // nullptr: {{"variant", its name}}.
};

const JudgedWorld& JudgedWorldOf(TaskKind task);

// kInvalidArgument if an option of `evaluate` or `simulate` is given that `task` does not have.
Result<void> CheckOptionsSuit(const Arguments& arguments, TaskKind task);

// The value of --episodes.
Result<int> EpisodesOf(const Arguments& arguments, int by_default);

// `text` begins with `what` for a part of the work that begins at `from` and takes `share` of it.
ReportProgress PartOf(const ReportProgress& whole, double from, double share, std::string what);

// The file that stands for a policy of an experiment, if the experiment itself finds it.
using FoundFile = std::function<std::optional<std::filesystem::path>(const PolicySpec& policy)>;
Result<std::vector<ListedPolicy>> PoliciesOf(const Experiment& experiment, const FoundFile& found);

// Trains networks from `seeds` seeds within an experiment, or goes on with an interrupted training.
Result<void> TrainWithin(TrainJob job, int seeds, const CellRun& run,
                         const ReportProgress& progress);

}  // namespace rudderfish
