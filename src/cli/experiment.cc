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
#include "cli/files.h"
#include "cli/judged_world.h"
#include "cli/output.h"
#include "cli/policy_list.h"
#include "cli/terminal.h"
#include "evaluation/carbon_front.h"
#include "evaluation/pairs.h"
#include "evaluation/published.h"
#include "learn/run_folder.h"
#include "report/report_experiment.h"

namespace rudderfish {
namespace {

namespace fs = std::filesystem;

// What the command line and the files that it names come to.
struct Plan {
  Experiment experiment;
  std::vector<fs::path> scenarios;  // Where they are.
  ExperimentInputs inputs;

  const JudgedWorld& world() const { return JudgedWorldOf(experiment.task); }
  PlannedCell Planned(const ExperimentCell& cell, const fs::path& folder) const {
    return {&experiment, cell, scenarios[cell.scenario], folder};
  }
};

struct ResultPaths {
  fs::path folder;
  fs::path provenance() const { return folder / "provenance.json"; }
  fs::path cell(const std::string& name) const { return folder / "cells" / name; }
  fs::path metrics() const { return folder / "metrics.csv"; }
  fs::path report() const { return folder / "report.json"; }
  fs::path page() const { return folder / "report.html"; }
};

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
  TRY_ASSIGN(const std::vector<ListedPolicy> given, WithSeeds(plan.experiment.Given()));
  std::vector<fs::path> files;
  for (const fs::path& scenario : plan.experiment.scenarios) {
    TRY_ASSIGN(fs::path path, ShippedFile(scenario));
    for (const ExperimentVariant& variant : plan.experiment.variants) {
      TRY_ASSIGN(const std::vector<fs::path> read, ScenarioFiles(path, variant.changes));
      files.insert(files.end(), read.begin(), read.end());
    }
    plan.scenarios.push_back(std::move(path));
  }
  for (const ListedPolicy& policy : given) {
    for (fs::path& path : FilesOf(policy)) files.push_back(std::move(path));
  }
  std::ranges::sort(files);
  files.erase(std::unique(files.begin(), files.end()), files.end());
  for (const fs::path& path : files) {
    TRY_ASSIGN(const std::string content, ReadFile(path));
    plan.inputs.files.emplace_back(path.string(), Sha256Hex(content));
  }
  return plan;
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

// One cell, filed as a whole or not at all.
Result<void> RunCell(const Plan& plan, const ExperimentCell& cell, const ResultPaths& paths,
                     const CellRun& run) {
  const fs::path folder = paths.cell(cell.name + "+part");
  std::error_code failed;
  fs::remove_all(folder, failed);  // Of a run that was killed.
  TRY(MakeDirectories(folder));
  TRY_ASSIGN(const CellResult result, plan.world().run_cell(plan.Planned(cell, paths.folder), run));
  TRY(WriteFileAtomically(folder / "episodes.csv", result.judgement.csv()));
  TRY(WriteFileAtomically(folder / "evaluation.json", result.judgement.json()));
  TRY(WriteFileAtomically(folder / "comparisons.json", result.pairs));
  for (const auto& [name, content] : result.others)
    TRY(WriteFileAtomically(folder / name, content));
  TRY(result.judgement.write_report(
      {.command = run.session.command_line, .version = std::string(ProgramVersion())},
      folder / "report.html"));
  fs::rename(folder, paths.cell(cell.name), failed);
  if (failed) {
    return Fail(ErrorCode::kUnavailable, "{}: {}", paths.cell(cell.name).string(),
                failed.message());
  }
  return {};
}

// What stands before the rows of a cell.
CellColumns ColumnsOf(const Plan& plan, const ExperimentCell& cell, const ResultPaths& paths) {
  const PlannedCell planned = plan.Planned(cell, paths.folder);
  CellColumns columns = plan.world().columns != nullptr
                            ? plan.world().columns(planned)
                            : CellColumns{{"variant", planned.variant().name}};
  columns.insert(columns.begin(), {"file", planned.scenario.stem().string()});
  return columns;
}

// All rows of all cells.
Result<std::string> MetricsCsv(const Plan& plan, const std::vector<ExperimentCell>& cells,
                               const ResultPaths& paths) {
  std::string csv;
  for (const ExperimentCell& cell : cells) {
    TRY_ASSIGN(const std::string rows, ReadFile(paths.cell(cell.name) / "episodes.csv"));
    const size_t header = rows.find('\n') + 1;
    std::string names, before;
    for (const auto& [name, value] : ColumnsOf(plan, cell, paths)) {
      names += fmt::format("{},", name);
      before += value + ",";
    }
    if (csv.empty()) csv = names + rows.substr(0, header);
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
Result<OrderedJson> ReadQuotes(const std::vector<ExperimentCell>& cells, const ResultPaths& paths) {
  OrderedJson all = OrderedJson::array();
  for (const ExperimentCell& cell : cells) {
    const fs::path path = paths.cell(cell.name) / kPublishedFile;
    const Result<std::string> text = ReadFile(path);
    if (!text && text.error().code == ErrorCode::kNotFound) continue;
    if (!text) return tl::unexpected(text.error());
    TRY_ASSIGN(const OrderedJson quotes, ParseOrderedJson(*text, path.string()));
    for (const OrderedJson& quote : quotes) all.push_back(quote);
  }
  return all;
}

// What is said of all cells together.
struct Beside {
  OrderedJson quotes;  // As ReadQuotes,
  OrderedJson fronts;  // and CarbonFronts.
};

std::string PageOf(const Plan& plan, const std::vector<ExperimentCell>& cells,
                   const std::vector<OrderedJson>& pairs, const Beside& beside,
                   const Session& session) {
  std::vector<ReportedCell> reported;
  for (size_t i = 0; i < cells.size(); ++i)
    reported.push_back(
        {cells[i].name, fmt::format("cells/{}/report.html", cells[i].name), &pairs[i]});
  return ExperimentPage(
      plan.experiment.name, reported, beside.fronts, beside.quotes,
      {.command = session.command_line, .version = std::string(ProgramVersion())});
}

OrderedJson ReportJson(const Plan& plan, const std::vector<OrderedJson>& all,
                       const Beside& beside) {
  OrderedJson comparisons = OrderedJson::array();
  for (const OrderedJson& pairs : all) {
    for (const OrderedJson& pair : pairs) comparisons.push_back(pair);
  }
  OrderedJson report{{"schema_version", 1},
                     {"experiment", plan.experiment.name},
                     {"seed", plan.experiment.seed},
                     {"comparisons", comparisons}};
  if (!beside.fronts.empty()) report["fronts"] = beside.fronts;
  if (!beside.quotes.empty()) report["published"] = WithoutClock(beside.quotes);
  return report;
}

std::string TableOf(const OrderedJson& report) {
  std::string text = PairsTable(report["comparisons"]);
  if (!report.contains("fronts")) return text;
  for (const OrderedJson& front : report["fronts"]) {
    text +=
        fmt::format("\nCost against carbon, {}, {}:\n\n{}", front["scenario"].get<std::string>(),
                    front["place"].get<std::string>(), FrontTable(front));
  }
  return text;
}

Result<void> RunCells(const Plan& plan, const std::vector<ExperimentCell>& cells,
                      const ResultPaths& paths, const Session& session, ThreadPool* pool) {
  Progress progress("experiment", session.verbosity);
  for (size_t i = 0; i < cells.size(); ++i) {
    std::error_code ignored;
    if (fs::exists(paths.cell(cells[i].name), ignored)) continue;
    const ReportProgress report = [&](double fraction, std::string_view text) {
      progress.Update((static_cast<double>(i) + fraction) / static_cast<double>(cells.size()),
                      fmt::format("{}: {}", cells[i].name, text));
    };
    Result<void> done =
        RunCell(plan, cells[i], paths, {.session = session, .pool = pool, .progress = report});
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
  const ResultPaths paths{folder};
  // All cells before the first is evaluated: a mistake in the last one costs no hours.
  for (const ExperimentCell& cell : cells)
    TRY(plan.world().check_cell(plan.Planned(cell, paths.folder)));
  TRY(OpenFolder(paths, plan, arguments));
  TRY_ASSIGN(const FolderLock lock, FolderLock::Take(paths.folder));
  ThreadPool pool(threads);
  TRY(RunCells(plan, cells, paths, session, &pool));
  TRY_ASSIGN(const std::string metrics, MetricsCsv(plan, cells, paths));
  TRY(WriteFileAtomically(paths.metrics(), metrics));
  TRY_ASSIGN(const std::vector<OrderedJson> pairs, ReadPairs(cells, paths));
  Beside beside;
  TRY_ASSIGN(beside.quotes, ReadQuotes(cells, paths));
  TRY_ASSIGN(beside.fronts, CarbonFronts(plan.experiment, cells, paths.folder / "cells"));
  const OrderedJson report = ReportJson(plan, pairs, beside);
  TRY(WriteFileAtomically(paths.report(), report.dump(1) + "\n"));
  TRY(WriteFileAtomically(paths.page(), PageOf(plan, cells, pairs, beside, session)));
  TRY(Print(format == OutputFormat::kJson ? report.dump(1) + "\n" : TableOf(report)));
  Say(session, "Wrote {}, {} and {}; a page for each of {} cells below {}",
      paths.metrics().string(), paths.report().string(), paths.page().string(), cells.size(),
      (paths.folder / "cells").string());
  return ExitStatus::kDone;
}

}  // namespace

CommandSpec ExperimentCommand() {
  return {
      .name = "experiment",
      .summary = "Compare policies over several scenarios and variants",
      .operands = {{.name = "EXPERIMENT"}},
      .options = {{"-d,--dir", "FOLDER", "folder for the results"},
                  {"--resume", "",
                   "continue an interrupted experiment; refused if an input file has changed"},
                  {"--set", "KEY=VALUE[,...]", "override values of the experiment file"},
                  {"--threads", "N",
                   "number of threads; does not change the results (default: all cores)"},
                  {"-o,--output", "table|json",
                   "output format (default: table); json is report.json"}},
      .details =
          "An experiment is a YAML file. It lists `scenarios`, `policies` (as for `evaluate`, the "
          "candidate last), `episodes` and `seed` of the held-out episodes, and `variants`; each "
          "variant is a map of values to change in every scenario. Every scenario is evaluated in "
          "every variant, with the same episodes for all policies. The candidate is compared with "
          "each other policy.\nWith `task: scale` it compares scaling policies under each of the "
          "`loads`. The policies `calibrated`, `calibrated-mpc` and `calibrated-static` are the "
          "autoscaler, the predictive controller and the constant replicas that `calibrate: "
          "{episodes: N}` finds. `trained` stands for the networks of `train: {steps: N, seeds: "
          "K}`. `violations` limits the share of late requests for all of them.\nWith `task: "
          "place` it compares placement policies for each of the `objectives`. `trained` "
          "stands for the networks of `train: {steps: N, seeds: K, algorithm: ppo}`; `trained-dqn` "
          "and `trained-es` use another algorithm. `published` shows results of earlier "
          "publications next to ours.\nWith `task: route` it compares routing policies under "
          "each of the `region_variants` at each of the `places` (lists of regions). "
          "`calibrated-NAME` is what `calibrate` finds for the policy NAME at the first place, "
          "and `trained` what `train` learns there (docs/experiments.md).\nThe folder contains "
          "metrics.csv (one row per episode), report.json (one entry per comparison), "
          "report.html, provenance.json (digests of all input files), and a page, the episodes "
          "and the evaluation of each cell. The same files and seed give the same bytes in "
          "metrics.csv and report.json, for any "
          "number of threads and after any interruption.",
      .examples =
          {"experiment experiments/distance-to-cloud.yaml -d results/distance-to-cloud",
           "experiment experiments/distance-to-cloud.yaml -d results/distance-to-cloud --resume",
           "experiment experiments/distance-to-cloud.yaml -d results/few --set episodes=20",
           "experiment experiments/scaling-six-loads.yaml -d results/six",
           "experiment experiments/placing-drs.yaml -d results/drs",
           "experiment experiments/multicloud-two-tiers.yaml -d results/mc"},
      .run = RunExperiment};
}

}  // namespace rudderfish
