// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/files.h"
#include "base/json.h"
#include "cli/commands.h"
#include "cli/files.h"
#include "cli/terminal.h"
#include "evaluation/comparison.h"
#include "evaluation/experiment.h"
#include "learn/run_folder.h"
#include "learn/run_tables.h"
#include "report/report_figures.h"
#include "report/scaling_figures.h"
#include "report/svg_file.h"

namespace rudderfish {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFigures[] = {"cdf",      "learning", "pareto",
                                         "timeline", "replicas", "calls"};
enum FigureKind { kCdf, kLearning, kPareto, kTimeline, kReplicas, kCalls };

struct Drawing {
  std::string title, explanation, svg;
};

// What was asked for.
struct PlotRequest {
  FigureKind figure = kCdf;
  std::optional<std::string> load, cell;
};

tl::unexpected<Error> OtherFigure(const fs::path& path, std::string_view what, FigureKind figure,
                                  std::string_view gives) {
  return Invalid("{}: {} gives the figure{} {}, not {}", path.string(), what,
                 gives.find(',') == gives.npos ? "" : "s", gives, kFigures[figure]);
}

// As often as there are colours.
constexpr int kMostCurves = 8;

// How a run learned, over its seeds.
Result<LearningCurve> CurveOf(const fs::path& folder, std::string name) {
  LearningCurve curve{.name = std::move(name)};
  TRY_ASSIGN(curve.runs, ReadLearningCurves(folder));
  std::erase_if(curve.runs, [](const auto& run) { return run.size() < 2; });
  if (curve.runs.empty()) {
    return Fail(ErrorCode::kFailedPrecondition,
                "{}: was evaluated less than twice while it trained; train it longer",
                folder.string());
  }
  return curve;
}

// Of a run: how it learned.
Result<Drawing> DrawRun(const fs::path& folder, const PlotRequest& request) {
  if (request.figure != kLearning)
    return OtherFigure(folder, "a run of training", request.figure, "learning");
  const std::string name = fs::absolute(folder).lexically_normal().filename().string();
  TRY_ASSIGN(LearningCurve curve, CurveOf(folder, name.empty() ? "run" : name));
  const RunPaths paths = SeedFolders(folder) > 0 ? RunPaths{folder}.seed(1) : RunPaths{folder};
  TRY_ASSIGN(const RunConfig config, ReadRunConfig(paths));
  TRY_ASSIGN(const std::vector<TrainScenario> scenarios, ReadRunScenarios(paths));
  const bool objective = config.options.scaling || scenarios[0].scenario->places_pods();
  const size_t runs = curve.runs.size();
  return Drawing{"Learning curve",
                 runs > 1 ? fmt::format("Line: mean over {} training seeds; band: from the lowest "
                                        "to the highest. Lower is better.",
                                        runs)
                          : std::string("Lower is better."),
                 LearningFigure({std::move(curve)}, {"s0"},
                                objective ? "objective on validation episodes"
                                          : "mean final latency on validation starts (ms)")};
}

// Position of the load that was asked for; of the only one, if there is one.
Result<int> LoadAskedFor(const ScalingSummary& summary, const PlotRequest& request,
                         const fs::path& path) {
  std::vector<std::string_view> names;
  for (const ScalingLoadSummary& load : summary.loads) names.push_back(load.load);
  if (request.load) return OfOption("load", ChoiceOf(*request.load, names));
  if (names.size() == 1) return 0;
  return Invalid("{}: has the loads {}: choose one with --load", path.string(),
                 fmt::join(names, ", "));
}

// One load of a scaling evaluation.
Result<Drawing> DrawLoad(const ScalingSummary& summary, int position, const fs::path& path,
                         FigureKind figure) {
  const ScalingLoadSummary& load = summary.loads[position];
  const std::string where = fmt::format("{} under {}, {} episode{}.", summary.scenario, load.load,
                                        summary.episodes, summary.episodes == 1 ? "" : "s");
  if (figure == kCdf) {
    if (std::all_of(load.policies.begin(), load.policies.end(),
                    [](const auto& policy) { return policy.latency_ms.empty(); }))
      return Invalid("{}: no request was answered under {}", path.string(), load.load);
    return Drawing{"How long answers take", where, LatencyFigure(summary, position)};
  }
  if (figure == kPareto)
    return Drawing{"Cost against violations", where, ParetoFigure(summary, position)};
  if (figure == kCalls)
    return Drawing{"Call graph with load", where, CallGraphFigure(summary, load.requests_per_s)};
  if (load.policies.back().timeline.empty()) {
    return Invalid("{}: has no timeline of {}; `evaluate -o json` writes one", path.string(),
                   load.load);
  }
  const std::string episode =
      fmt::format("{} under {}, episode {}.", summary.scenario, load.load, load.episode_shown);
  if (figure == kTimeline)
    return Drawing{"One episode", episode, TimelineFigure(summary, position)};
  return Drawing{"Replicas of every workload", episode, ReplicasFigure(summary, position)};
}

Result<Drawing> DrawScaling(const ScalingSummary& summary, const fs::path& path,
                            const PlotRequest& request) {
  if (request.figure == kLearning) {
    return OtherFigure(path, "a scaling evaluation", request.figure,
                       "cdf, pareto, timeline, replicas, calls");
  }
  if (request.figure == kCalls && !request.load && summary.loads.size() > 1) {
    return Drawing{"Call graph with load",
                   fmt::format("{} at {:.1f} requests per second, the mean of its loads.",
                               summary.scenario, summary.requests_per_s()),
                   CallGraphFigure(summary, summary.requests_per_s())};
  }
  TRY_ASSIGN(const int position, LoadAskedFor(summary, request, path));
  return DrawLoad(summary, position, path, request.figure);
}

std::string KindInWords(const JsonReader& kind) {
  return kind.AsString().value_or("") == "routing_evaluation" ? "routing" : "placement";
}

// What `evaluate -o json` wrote.
Result<Drawing> DrawEvaluation(const fs::path& path, const PlotRequest& request) {
  TRY_ASSIGN(const std::string text, ReadFile(path));
  TRY_ASSIGN(const Json json, ParseJson(text, path.string()));
  const JsonReader root(json, path.string());
  TRY_ASSIGN(const std::optional<JsonReader> kind, root.Find("kind"));
  if (kind) {
    return Invalid(
        "{}: `plot` draws no evaluation of {}; `evaluate --report FILE.html` does, and an "
        "experiment does in report.html of each cell",
        path.string(), KindInWords(*kind));
  }
  TRY_ASSIGN(const std::optional<JsonReader> task, root.Find("task"));
  if (task) {
    TRY_ASSIGN(const ScalingSummary summary, ScalingSummaryOf(json, path.string()));
    return DrawScaling(summary, path, request);
  }
  TRY_ASSIGN(const Evaluation evaluation, EvaluationOf(json, path.string()));
  if (request.load)
    return Invalid("--load: {} is an evaluation of migration, which has no loads", path.string());
  if (request.figure != kCdf)
    return OtherFigure(path, "an evaluation of migration", request.figure, "cdf");
  const Comparison comparison = Compare(evaluation);
  return Drawing{"How low they end, and how often",
                 fmt::format("{}, {} starts. Further left is better.", evaluation.scenario,
                             evaluation.start_count()),
                 DistributionFigure(evaluation, ReportPolicies(evaluation, comparison))};
}

// Over its figure before training, so that curves of several cells can be compared.
void MakeRelative(LearningCurve* curve) {
  double first = 0;
  for (const std::vector<CurvePoint>& run : curve->runs)
    first += run.front().final_ms / static_cast<double>(curve->runs.size());
  for (std::vector<CurvePoint>& run : curve->runs) {
    for (CurvePoint& point : run) point.final_ms = first > 0 ? point.final_ms / first : 1;
  }
}

// Whether a folder of training is of the cell, or of a place where the cell's policy was learned:
// multicloud-16.spot and multicloud-16.spot+route are of the cell multicloud-16.spot.home.
bool IsTrainingOf(const std::string& name, const std::string& cell) {
  const std::string of = name.substr(0, name.find('+'));
  return cell == of || cell.starts_with(of + ".");
}

// "online-boutique." before the names of all cells: there is little room for names.
void LeaveOutWhatIsCommon(std::vector<LearningCurve>* curves) {
  const std::string& first = curves->front().name;
  size_t common = curves->size() < 2 ? 0 : first.size();
  for (const LearningCurve& curve : *curves) {
    const auto [end, other] =
        std::mismatch(first.begin(), first.begin() + common, curve.name.begin(), curve.name.end());
    common = static_cast<size_t>(end - first.begin());
  }
  const size_t dot = common == 0 ? first.npos : first.rfind('.', common - 1);
  if (dot == first.npos) return;
  for (LearningCurve& curve : *curves) curve.name.erase(0, dot + 1);
}

std::vector<std::string> FoldersIn(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failed)) {
    if (entry.is_directory(failed)) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Of an experiment: how its networks learned, or those of one cell. Where several recipes are
// trained for a cell, each has a folder within that of the cell.
Result<Drawing> DrawTraining(const fs::path& folder, const std::optional<std::string>& cell) {
  std::vector<LearningCurve> curves;
  std::vector<std::string> series;
  const auto add = [&](const fs::path& run, const std::string& name) -> Result<void> {
    TRY_ASSIGN(LearningCurve curve, CurveOf(run, name));
    series.push_back(fmt::format("s{}", curves.size()));
    curves.push_back(std::move(curve));
    return {};
  };
  for (const std::string& name : FoldersIn(folder / "trained")) {
    if (cell && !IsTrainingOf(name, *cell)) continue;
    if (HasRun(folder / "trained" / name)) {
      TRY(add(folder / "trained" / name, name));
      continue;
    }
    for (const std::string& recipe : FoldersIn(folder / "trained" / name)) {
      const fs::path run = folder / "trained" / name / recipe;
      if (HasRun(run)) TRY(add(run, fmt::format("{} {}", name, recipe)));
    }
  }
  if (curves.empty()) {
    return Invalid("{}: nothing was trained within this experiment; name a run folder",
                   folder.string());
  }
  if (curves.size() > kMostCurves) {
    return Invalid("{}: {} policies were trained, and {} can be told apart; choose a cell (--cell)",
                   folder.string(), curves.size(), kMostCurves);
  }
  for (LearningCurve& curve : curves) MakeRelative(&curve);
  LeaveOutWhatIsCommon(&curves);
  return Drawing{
      "Learning curves",
      "Lines: means over the training seeds; bands: from the lowest to the highest. Lower "
      "is better; 1 is what each began with.",
      LearningFigure(curves, series, "objective over that before training")};
}

// Of an experiment: one of its cells.
Result<Drawing> DrawExperiment(const fs::path& folder, const PlotRequest& request) {
  std::vector<std::string> cells;
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder / "cells", failed)) {
    if (fs::exists(entry.path() / "evaluation.json", failed) &&
        !entry.path().filename().string().ends_with("+part"))
      cells.push_back(entry.path().filename().string());
  }
  std::sort(cells.begin(), cells.end());
  if (cells.empty()) {
    return Fail(ErrorCode::kFailedPrecondition,
                "{}: no cell of this experiment is done yet; go on with --resume", folder.string());
  }
  const std::vector<std::string_view> known(cells.begin(), cells.end());
  int cell = 0;
  if (request.cell) {
    TRY_ASSIGN(cell, OfOption("cell", ChoiceOf(*request.cell, known)));
  }
  if (request.figure == kLearning) {
    return DrawTraining(folder, request.cell ? std::optional(cells[cell]) : std::nullopt);
  }
  if (request.cell) {
    return DrawEvaluation(folder / "cells" / cells[cell] / "evaluation.json", request);
  }
  if (cells.size() > 1) {
    return Invalid("{}: has the cells {}: choose one with --cell", folder.string(),
                   fmt::join(cells, ", "));
  }
  return DrawEvaluation(folder / "cells" / cells[0] / "evaluation.json", request);
}

Result<Drawing> DrawFrom(const fs::path& path, const PlotRequest& request) {
  std::error_code ignored;
  const bool folder = fs::is_directory(path, ignored);
  const bool experiment = folder && fs::is_directory(path / "cells", ignored);
  if (request.cell && !experiment)
    return Invalid("--cell: {} is no folder of an experiment", path.string());
  if (experiment) return DrawExperiment(path, request);
  if (!folder) return DrawEvaluation(path, request);
  if (request.load) return Invalid("--load: {} is a folder of training", path.string());
  if (HasRun(path)) return DrawRun(path, request);
  return Fail(
      ErrorCode::kNotFound,
      "{}: holds neither a run of `train` (config.yaml) nor results of `experiment` (cells)",
      path.string());
}

Result<ExitStatus> RunPlot(const Arguments& arguments, const Session& session) {
  PlotRequest request{.load = arguments.Text("load"), .cell = arguments.Text("cell")};
  TRY_ASSIGN(const std::string figure,
             arguments.RequiredText("figure", fmt::format("one of {}", fmt::join(kFigures, ", "))));
  TRY_ASSIGN(const int choice, OfOption("figure", ChoiceOf(figure, kFigures)));
  request.figure = static_cast<FigureKind>(choice);
  TRY_ASSIGN(const std::string output,
             arguments.RequiredText("output", "the file to write, such as cdf.svg; - is stdout"));
  if (output != "-") TRY(CheckCanWrite(output));
  TRY_ASSIGN(const Drawing drawing, DrawFrom(arguments.operands()[0], request));
  const std::string svg = SvgFile(drawing.title, drawing.explanation, drawing.svg);
  if (output == "-") {
    TRY(Print(svg));
    return ExitStatus::kDone;
  }
  TRY(WriteFileAtomically(output, svg));
  Say(session, "Wrote {}", output);
  return ExitStatus::kDone;
}

}  // namespace

CommandSpec PlotCommand() {
  return {.name = "plot",
          .summary = "Draw one figure of results as an SVG file",
          .operands = {{.name = "RESULTS"}},
          .options = {{"--figure", "cdf|learning|pareto|timeline|replicas|calls", "figure to draw"},
                      {"--load", "NAME", "load to draw, if the evaluation has several"},
                      {"--cell", "NAME", "cell to draw, if the experiment has several"},
                      {"-o,--output", "FILE.svg", "file to write; - is stdout"}},
          .details =
              "RESULTS is the output of `evaluate -o json`, the folder of an experiment, or a run "
              "folder.\nFigures of scaling: cdf (response times), pareto (cost against violations, "
              "with hypervolume), timeline and replicas (one episode), calls (the call graph with "
              "call rates). Figure of migration: cdf (final latencies). Figure of a run, or of all "
              "runs that an experiment trained: learning, with bands over seeds.",
          .examples = {"plot results/distance --figure cdf --cell continuum-7x21.near -o near.svg",
                       "plot evaluation.json --figure timeline --load ramp -o ramp.svg",
                       "plot runs/a --figure learning -o learning.svg"},
          .run = RunPlot};
}

}  // namespace rudderfish
