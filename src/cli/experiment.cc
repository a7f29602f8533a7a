// SPDX-License-Identifier: Apache-2.0
#include "evaluation/experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "base/files.h"
#include "base/sha256.h"
#include "base/thread_pool.h"
#include "base/version.h"
#include "base/yaml.h"
#include "cli/commands.h"
#include "cli/experiment_placement.h"
#include "cli/experiment_scaling.h"
#include "cli/files.h"
#include "cli/policy_spec.h"
#include "cli/scaling_options.h"
#include "cli/terminal.h"
#include "evaluation/comparison.h"
#include "evaluation/placement_comparison.h"
#include "evaluation/problem.h"
#include "evaluation/published.h"
#include "evaluation/report.h"
#include "evaluation/report_experiment.h"
#include "evaluation/scaling_comparison.h"
#include "learn/run_folder.h"
#include "sim/world.h"

namespace rudderfish {
namespace {

namespace fs = std::filesystem;

// What the command line and the files that it names come to.
struct Plan {
  Experiment experiment;
  std::vector<PolicySpec> policies;  // That are given; not of scaling.
  std::vector<fs::path> scenarios;   // Where they are.
  ExperimentInputs inputs;
};

struct ResultPaths {
  fs::path folder;
  fs::path provenance() const { return folder / "provenance.json"; }
  fs::path cell(const std::string& name) const { return folder / "cells" / name; }
  fs::path metrics() const { return folder / "metrics.csv"; }
  fs::path report() const { return folder / "report.json"; }
  fs::path page() const { return folder / "report.html"; }
};

// The files a policy is read from: a checkpoint, or the one that a run thinks its best.
std::vector<fs::path> FilesOf(const PolicySpec& spec) {
  std::vector<fs::path> files;
  for (const std::string& member : spec.members) {
    const fs::path path = member.substr(member.rfind('+') + 1);
    std::error_code ignored;
    if (fs::is_directory(path, ignored)) {
      files.push_back(RunPaths{path}.best());
    } else if (fs::is_regular_file(path, ignored)) {
      files.push_back(path);
    }
  }
  return files;
}

Result<Plan> MakePlan(const Arguments& arguments) {
  const fs::path file = arguments.operands()[0];
  TRY_ASSIGN(const std::vector<YamlChange> changes, ChangesOf(arguments, "episodes=50"));
  TRY_ASSIGN(const std::string text, ReadFile(file));
  TRY_ASSIGN(YamlNode root, ParseYaml(text, file.string()));
  Plan plan{.inputs = {.version = std::string(ProgramVersion()), .experiment = text}};
  for (const YamlChange& change : changes) {
    TRY_ASSIGN(root, ChangeYaml(root, change));
    plan.inputs.experiment += fmt::format("# --set {}={}\n", change.path, change.value);
  }
  const Quoting quoting = changes.empty() ? Quoting::kAll : Quoting::kWhatIsThere;
  TRY_ASSIGN(plan.experiment, ParseExperiment(root, quoting));
  plan.inputs.seed = plan.experiment.seed;
  const std::string given = plan.experiment.scaling     ? std::string()
                            : plan.experiment.placement ? GivenPlacementPolicies(plan.experiment)
                                                        : plan.experiment.PolicyList();
  if (!given.empty()) {
    TRY_ASSIGN(plan.policies, ParsePolicySpecs(given));
  }
  std::vector<fs::path> files;
  for (const fs::path& scenario : plan.experiment.scenarios) {
    TRY_ASSIGN(fs::path path, ShippedFile(scenario));
    for (const ExperimentVariant& variant : plan.experiment.variants) {
      TRY_ASSIGN(const std::vector<fs::path> read, ScenarioFiles(path, variant.changes));
      files.insert(files.end(), read.begin(), read.end());
    }
    plan.scenarios.push_back(std::move(path));
  }
  for (const PolicySpec& spec : plan.policies) {
    for (fs::path& path : FilesOf(spec)) files.push_back(std::move(path));
  }
  if (plan.experiment.scaling) {
    for (fs::path& path : ScalingFilesOf(plan.experiment.policies))
      files.push_back(std::move(path));
  }
  std::ranges::sort(files);
  files.erase(std::unique(files.begin(), files.end()), files.end());
  for (const fs::path& path : files) {
    TRY_ASSIGN(const std::string content, ReadFile(path));
    plan.inputs.files.emplace_back(path.string(), Sha256Hex(content));
  }
  return plan;
}

// Every cell is opened before the first is evaluated: a mistake in the last one costs no hours.
Result<std::vector<Problem>> OpenCells(const Plan& plan, const std::vector<ExperimentCell>& cells) {
  std::vector<Problem> problems;
  for (const ExperimentCell& cell : cells) {
    if (plan.experiment.scaling) {
      TRY(CheckScalingCell({&plan.experiment, cell, plan.scenarios[cell.scenario], {}}));
      continue;
    }
    if (plan.experiment.placement) {
      TRY(CheckPlacementCell({&plan.experiment, cell, plan.scenarios[cell.scenario], {}}));
      continue;
    }
    const fs::path& path = plan.scenarios[cell.scenario];
    TRY_ASSIGN(Scenario scenario,
               LoadScenario(path, plan.experiment.variants[cell.variant].changes));
    TRY(CheckMovesPods(scenario, path.string()));
    TRY_ASSIGN(Problem problem, Problem::Of(std::make_shared<const Scenario>(std::move(scenario))));
    for (const PolicySpec& spec : plan.policies) TRY(MakePolicyGroup(spec, *problem.task));
    problems.push_back(std::move(problem));
  }
  return problems;
}

// A folder of results of the same experiment, made if it is not there.
Result<void> OpenFolder(const ResultPaths& paths, const Plan& plan, const Arguments& arguments) {
  const Result<std::string> known = ReadFile(paths.provenance());
  if (known.has_value()) {
    if (!arguments.Has("resume")) {
      return Invalid("{}: has results; go on with --resume, or name another folder",
                     paths.folder.string());
    }
    TRY_ASSIGN(const Json then, ParseJson(*known, paths.provenance().string()));
    TRY_ASSIGN(const std::string difference,
               DifferenceOf(plan.inputs, then, paths.provenance().string()));
    if (difference.empty()) return {};
    return Fail(ErrorCode::kFailedPrecondition,
                "{}: cannot go on: {}; name another folder, or undo that", paths.folder.string(),
                difference);
  }
  if (known.error().code != ErrorCode::kNotFound) return tl::unexpected(known.error());
  if (arguments.Has("resume")) {
    return Invalid("--resume: there is no experiment in {}", paths.folder.string());
  }
  TRY(MakeDirectories(paths.folder / "cells"));
  return WriteFileAtomically(paths.provenance(), InputsJson(plan.inputs).dump(1) + "\n");
}

// Evaluates one cell into a folder.
Result<void> RunMigrationCell(const Plan& plan, const ExperimentCell& cell, const Problem& problem,
                              const fs::path& folder, const Session& session,
                              EvaluationOptions options, ThreadPool* pool) {
  std::vector<PolicyGroup> groups;
  for (const PolicySpec& spec : plan.policies) {
    TRY_ASSIGN(PolicyGroup group, MakePolicyGroup(spec, *problem.task));
    groups.push_back(std::move(group));
  }
  TRY_ASSIGN(const std::vector<StartState> starts,
             DrawStarts(World(problem.scenario), options.seed, plan.experiment.episodes));
  options.scenario = problem.scenario->name;
  const Evaluation evaluation = Evaluate(problem.law, *problem.task, starts, groups, options, pool);
  const Comparison comparison = Compare(evaluation);
  TRY(WriteFileAtomically(folder / "episodes.csv", EpisodesCsv(evaluation)));
  TRY(WriteFileAtomically(folder / "evaluation.json", EvaluationJson(evaluation, comparison)));
  const OrderedJson pairs = PairsOf(evaluation, plan.scenarios[cell.scenario].stem().string(),
                                    plan.experiment.variants[cell.variant].name);
  TRY(WriteFileAtomically(folder / "comparisons.json", pairs.dump(1) + "\n"));
  return WriteReport(evaluation, comparison, starts,
                     {.command = session.command_line, .version = std::string(ProgramVersion())},
                     folder / "report.html");
}

using Said = std::function<void(double, std::string_view)>;

// One cell, filed as a whole or not at all. `problem`: of migration.
Result<void> RunCell(const Plan& plan, const ExperimentCell& cell, const Problem* problem,
                     const ResultPaths& paths, const Session& session, const Said& progress,
                     ThreadPool* pool) {
  const fs::path folder = paths.cell(cell.name + "+part");
  std::error_code failed;
  fs::remove_all(folder, failed);  // Of a run that was killed.
  TRY(MakeDirectories(folder));
  if (plan.experiment.scaling) {
    TRY(RunScalingCell({&plan.experiment, cell, plan.scenarios[cell.scenario], paths.folder},
                       folder, session, pool, progress));
  } else if (plan.experiment.placement) {
    TRY(RunPlacementCell({&plan.experiment, cell, plan.scenarios[cell.scenario], paths.folder},
                         folder, session, pool, progress));
  } else {
    TRY(RunMigrationCell(plan, cell, *problem, folder, session,
                         {.seed = plan.experiment.seed, .progress = progress}, pool));
  }
  fs::rename(folder, paths.cell(cell.name), failed);
  if (failed) {
    return Fail(ErrorCode::kUnavailable, "{}: {}", paths.cell(cell.name).string(),
                failed.message());
  }
  return {};
}

// All rows of all cells, with the cell's scenario file, objective (of placement) and variant before
// each.
Result<std::string> MetricsCsv(const Plan& plan, const std::vector<ExperimentCell>& cells,
                               const ResultPaths& paths) {
  std::string csv;
  for (const ExperimentCell& cell : cells) {
    TRY_ASSIGN(const std::string rows, ReadFile(paths.cell(cell.name) / "episodes.csv"));
    const size_t header = rows.find('\n') + 1;
    const auto& placement = plan.experiment.placement;
    const bool named = placement && !placement->objectives.empty();
    if (csv.empty())
      csv =
          fmt::format("file,{}variant,{}", named ? "objective_name," : "", rows.substr(0, header));
    const std::string before =
        fmt::format("{},{}{},", plan.scenarios[cell.scenario].stem().string(),
                    named ? placement->objectives[cell.objective].name + "," : std::string(),
                    plan.experiment.variants[cell.variant].name);
    for (size_t at = header; at < rows.size();) {
      const size_t end = std::min(rows.find('\n', at), rows.size() - 1) + 1;
      csv += before + rows.substr(at, end - at);
      at = end;
    }
  }
  return csv;
}

// Of every cell.
Result<std::vector<OrderedJson>> ReadPairs(const std::vector<ExperimentCell>& cells,
                                           const ResultPaths& paths) {
  std::vector<OrderedJson> all;
  for (const ExperimentCell& cell : cells) {
    const fs::path path = paths.cell(cell.name) / "comparisons.json";
    TRY_ASSIGN(const std::string text, ReadFile(path));
    TRY_ASSIGN(OrderedJson pairs, ParseOrderedJson(text, path.string()));
    all.push_back(std::move(pairs));
  }
  return all;
}

// What is quoted in all cells; nothing where nothing is.
Result<OrderedJson> ReadQuotes(const Plan& plan, const std::vector<ExperimentCell>& cells,
                               const ResultPaths& paths) {
  OrderedJson all = OrderedJson::array();
  if (!plan.experiment.placement || plan.experiment.placement->published.empty()) return all;
  for (const ExperimentCell& cell : cells) {
    const fs::path path = paths.cell(cell.name) / "published.json";
    TRY_ASSIGN(const std::string text, ReadFile(path));
    TRY_ASSIGN(const OrderedJson quotes, ParseOrderedJson(text, path.string()));
    for (const OrderedJson& quote : quotes) all.push_back(quote);
  }
  return all;
}

std::string PageOf(const Plan& plan, const std::vector<ExperimentCell>& cells,
                   const std::vector<OrderedJson>& pairs, const OrderedJson& quotes,
                   const Session& session) {
  std::vector<ReportedCell> reported;
  for (size_t i = 0; i < cells.size(); ++i)
    reported.push_back(
        {cells[i].name, fmt::format("cells/{}/report.html", cells[i].name), &pairs[i]});
  return ExperimentPage(
      plan.experiment.name, reported, quotes,
      {.command = session.command_line, .version = std::string(ProgramVersion())});
}

OrderedJson ReportJson(const Plan& plan, const std::vector<OrderedJson>& all,
                       const OrderedJson& quotes) {
  OrderedJson comparisons = OrderedJson::array();
  for (const OrderedJson& pairs : all) {
    for (const OrderedJson& pair : pairs) comparisons.push_back(pair);
  }
  OrderedJson report{{"schema_version", 1},
                     {"experiment", plan.experiment.name},
                     {"seed", plan.experiment.seed},
                     {"comparisons", comparisons}};
  if (!quotes.empty()) report["published"] = WithoutClock(quotes);
  return report;
}

Result<void> RunCells(const Plan& plan, const std::vector<ExperimentCell>& cells,
                      const std::vector<Problem>& problems, const ResultPaths& paths,
                      const Session& session, ThreadPool* pool) {
  Progress progress("experiment", session.verbosity);
  for (size_t i = 0; i < cells.size(); ++i) {
    std::error_code ignored;
    if (fs::exists(paths.cell(cells[i].name), ignored)) continue;
    const Said say = [&](double fraction, std::string_view text) {
      progress.Update((static_cast<double>(i) + fraction) / static_cast<double>(cells.size()),
                      fmt::format("{}: {}", cells[i].name, text));
    };
    const Problem* problem = problems.empty() ? nullptr : &problems[i];
    Result<void> done = RunCell(plan, cells[i], problem, paths, session, say, pool);
    if (done) continue;
    if (done.error().code == ErrorCode::kUnavailable)  // As of a full disk.
      done.error().message += "; what is done is kept: --resume goes on from there";
    return done;
  }
  return {};
}

Result<ExitStatus> RunExperiment(const Arguments& arguments, const Session& session) {
  TRY_ASSIGN(const OutputFormat format, OutputFormatOf(arguments));
  TRY_ASSIGN(const int threads, ThreadsOf(arguments));
  TRY_ASSIGN(const std::string folder, arguments.RequiredText("dir", "the folder for the results"));
  TRY_ASSIGN(const Plan plan, MakePlan(arguments));
  const std::vector<ExperimentCell> cells = CellsOf(plan.experiment);
  TRY_ASSIGN(const std::vector<Problem> problems, OpenCells(plan, cells));
  const ResultPaths paths{folder};
  TRY(OpenFolder(paths, plan, arguments));
  TRY_ASSIGN(const FolderLock lock, FolderLock::Take(paths.folder));
  ThreadPool pool(threads);
  TRY(RunCells(plan, cells, problems, paths, session, &pool));
  TRY_ASSIGN(const std::string metrics, MetricsCsv(plan, cells, paths));
  TRY(WriteFileAtomically(paths.metrics(), metrics));
  TRY_ASSIGN(const std::vector<OrderedJson> pairs, ReadPairs(cells, paths));
  TRY_ASSIGN(const OrderedJson quotes, ReadQuotes(plan, cells, paths));
  const OrderedJson report = ReportJson(plan, pairs, quotes);
  TRY(WriteFileAtomically(paths.report(), report.dump(1) + "\n"));
  TRY(WriteFileAtomically(paths.page(), PageOf(plan, cells, pairs, quotes, session)));
  TRY(Print(format == OutputFormat::kJson ? report.dump(1) + "\n"
            : plan.experiment.scaling     ? ScalingPairsTable(report["comparisons"])
            : plan.experiment.placement   ? PlacementPairsTable(report["comparisons"])
                                          : PairsTable(report["comparisons"])));
  Say(session, "Wrote {}, {} and {}; a page for each of {} cells below {}",
      paths.metrics().string(), paths.report().string(), paths.page().string(), cells.size(),
      (paths.folder / "cells").string());
  return ExitStatus::kDone;
}

}  // namespace

CommandSpec ExperimentCommand() {
  return {
      .name = "experiment",
      .summary = "compare policies over scenarios and their variants, resumably",
      .operands = {{.name = "EXPERIMENT"}},
      .options = {{"-d,--dir", "FOLDER", "where the results go"},
                  {"--resume", "", "go on where it was stopped; refused if anything has changed"},
                  {"--set", "KEY=VALUE[,...]", "values of the experiment's file to change"},
                  {"--threads", "N", "all cores by default; results do not depend on it"},
                  {"-o,--output", "table|json", "a table by default; json is report.json"}},
      .details =
          "An experiment is a YAML file: `scenarios`, `policies` as evaluate takes them, the "
          "candidate last, `episodes` and `seed` of the held-out starts, and `variants`, each a "
          "map of the values it changes in every scenario. All scenarios in all variants are "
          "evaluated, each from the same starts for every policy, and the candidate is compared "
          "with each other policy.\n"
          "With `task: scaling` it compares under every one of `loads` what scales the workloads; "
          "the policies `calibrated`, `calibrated-mpc` and `calibrated-static` are the autoscaler, "
          "the look-ahead and the constant replicas that `calibrate: {episodes: N}` finds, "
          "`trained` the networks of `train: {steps: N, seeds: K}`, and `violations` the share of "
          "late requests for both.\n"
          "With `task: placement` it compares, for every one of `objectives`, what places the pods "
          "that come; `trained` is the networks of `train: {steps: N, seeds: K, algorithm: ppo}`, "
          "`trained-dqn` and `trained-es` those of another algorithm. `published` quotes what "
          "earlier works found beside ours (docs/experiments.md).\n"
          "The folder holds metrics.csv, a row an episode; report.json, an entry a comparison; "
          "report.html, all of them as a page; provenance.json, with the digests of all files that "
          "were read; and of each cell its page, its episodes and its evaluation as JSON. Same "
          "files and seed, same bytes in metrics.csv and report.json, whatever the number of "
          "threads and however often it was stopped.",
      .examples =
          {"experiment experiments/distance-to-cloud.yaml -d results/distance-to-cloud",
           "experiment experiments/distance-to-cloud.yaml -d results/distance-to-cloud --resume",
           "experiment experiments/distance-to-cloud.yaml -d results/few --set episodes=20",
           "experiment experiments/scaling-six-loads.yaml -d results/six",
           "experiment experiments/placing-drs.yaml -d results/drs"},
      .run = RunExperiment};
}

}  // namespace rudderfish
