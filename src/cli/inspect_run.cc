// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text_table.h"
#include "base/units.h"
#include "cli/inspection.h"
#include "cli/output.h"
#include "learn/run_folder.h"
#include "learn/run_tables.h"
#include "model/scaling_objective.h"
#include "policy/neural_routing.h"
#include "policy/neural_scaling.h"
#include "scenario/load.h"
#include "scenario/scenario.h"

namespace rudderfish {
namespace {

using Align = TextTable::Align;

constexpr size_t kPointsShown = 10;

// A run of one seed, as its files tell.
struct RunSummary {
  RunPaths paths;
  RunConfig config;
  std::vector<std::string> scenarios;
  bool has_objective = false;  // Not of moving pods: figures are objectives, not ms.
  std::string goal;            // Of scaling;
  std::string verdict;         // once it is trained.
  int64_t iterations = 0, env_steps = 0;
  double seconds = 0;
  std::vector<CurvePoint> curve;

  const CurvePoint* best() const {
    const auto found = std::min_element(
        curve.begin(), curve.end(),
        [](const auto& a, const auto& b) { return a.mean_return > b.mean_return; });
    return found == curve.end() ? nullptr : &*found;
  }
};

Result<RunSummary> Summarize(const RunPaths& paths) {
  RunSummary run{.paths = paths};
  TRY_ASSIGN(run.config, ReadRunConfig(paths));
  TRY_ASSIGN(const std::vector<TrainScenario> scenarios, ReadRunScenarios(paths));
  for (const TrainScenario& scenario : scenarios) run.scenarios.push_back(scenario.scenario->name);
  run.has_objective = run.config.options.scaling || run.config.options.routing ||
                      scenarios[0].scenario->places_pods();
  if (run.config.options.scaling) {
    const Scenario& scenario = *scenarios[0].scenario;
    const ScalingTraining& scaling = *run.config.options.scaling;
    run.goal = scaling.preset ? fmt::format("the reward of {}", ScalingPresetName(*scaling.preset))
                              : GoalText(scenario.load->objective, scenario.load->limit,
                                         *scenario.patterns[0], scaling.violations_max);
  }
  const TrainOptions& options = run.config.options;
  if ((options.scaling || options.routing) && std::filesystem::exists(paths.best())) {
    const Result<std::string> verdict =
        options.routing ? RoutingVerdictOf(paths.best()) : VerdictOfRun(paths.best());
    run.verdict = verdict ? *verdict : verdict.error().message;
  }
  TRY_ASSIGN(const std::vector<MetricsRow> metrics, ReadMetrics(paths.metrics()));
  if (!metrics.empty()) {
    run.iterations = metrics.back().iteration;
    run.env_steps = metrics.back().env_steps;
  }
  TRY_ASSIGN(const std::vector<TimingRow> timing, ReadTiming(paths.timing()));
  if (!timing.empty()) run.seconds = timing.back().seconds;
  TRY_ASSIGN(run.curve, ReadLearningCurve(paths));
  return run;
}

std::string Span(double seconds) {
  return FormatDuration(std::chrono::milliseconds(std::llround(seconds * 1000)));
}

std::string LengthText(const TrainOptions& options) {
  return options.by_steps() ? fmt::format("for {} steps", Grouped(options.steps))
                            : fmt::format("for {}", Span(options.seconds));
}

std::string Joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// About as far from each other in logarithm: learning is fast at first.
std::vector<size_t> PointsToShow(size_t count) {
  std::vector<size_t> shown;
  for (size_t i = 0; i < kPointsShown; ++i) {
    const double share = static_cast<double>(i) / (kPointsShown - 1);
    const auto at =
        static_cast<size_t>(std::lround(std::pow(static_cast<double>(count), share))) - 1;
    if (at < count && (shown.empty() || at > shown.back())) shown.push_back(at);
  }
  return shown;
}

std::string FigureText(const RunSummary& run, double value) {
  return run.has_objective ? fmt::format("{:.5f}", value) : fmt::format("{:.1f}", value);
}

std::string CurveTable(const RunSummary& run) {
  TextTable table({{"STEPS", Align::kRight},
                   {"TIME", Align::kRight},
                   {run.has_objective ? "OBJECTIVE" : "LATENCY ms", Align::kRight},
                   {run.config.options.routing   ? "CHANGES"
                    : run.config.options.scaling ? "DECISIONS"
                    : run.has_objective          ? "PODS"
                                                 : "MOVES",
                    Align::kRight},
                   {"RETURN", Align::kRight}},
                  2);
  for (const size_t i : PointsToShow(run.curve.size())) {
    const CurvePoint& point = run.curve[i];
    table.Row({Grouped(point.env_steps),
               std::isnan(point.seconds) ? "-" : fmt::format("{:.1f} s", point.seconds),
               FigureText(run, point.final_ms), fmt::format("{:.1f}", point.moves),
               fmt::format("{:.3f}", point.mean_return)});
  }
  return table.Text();
}

std::string AsText(const RunSummary& run) {
  const TrainOptions& options = run.config.options;
  std::string text = fmt::format(
      "{}: training by {} {}, seed {}\n\n"
      "  scenario   {}\n"
      "  network    hidden {}, {} of message passing, encoder {}\n"
      "  so far     {}, {} steps, {}\n",
      run.paths.folder.string(), AlgorithmName(options.algorithm), LengthText(options),
      options.seed, Joined(run.scenarios), options.hidden, Counted(options.rounds, "round"),
      nn::EncoderName(options.encoder), Counted(run.iterations, "iteration"),
      Grouped(run.env_steps), Span(run.seconds));
  if (!run.config.provenance.command.empty()) {
    text += fmt::format("  made by    {} ({})\n", run.config.provenance.command,
                        run.config.provenance.version);
  }
  if (options.scaling) {
    text +=
        fmt::format("  scaling    {}; {}{}{}\n",
                    options.scaling->loads.empty() ? "all loads" : Joined(options.scaling->loads),
                    run.goal, run.verdict.empty() ? "" : "\n  ", run.verdict);
  }
  const CurvePoint* best = run.best();
  if (best == nullptr) return text + "  not evaluated yet\n";
  text += fmt::format("  best       {} after {} steps, where the return is highest\n",
                      run.has_objective ? fmt::format("objective {:.5f}", best->final_ms)
                                        : fmt::format("{:.1f} ms", best->final_ms),
                      Grouped(best->env_steps));
  if (run.has_objective) return text + "\nObjective on validation episodes:\n" + CurveTable(run);
  return text + fmt::format("\nLatency after the plan, on {} validation starts:\n{}",
                            options.validation_starts * static_cast<int>(run.scenarios.size()),
                            CurveTable(run));
}

OrderedJson NumberOrNull(double value) {
  return std::isfinite(value) ? OrderedJson(value) : OrderedJson(nullptr);
}

OrderedJson AsJson(const RunSummary& run) {
  const TrainOptions& options = run.config.options;
  OrderedJson json{{"folder", run.paths.folder.string()},
                   {"algorithm", AlgorithmName(options.algorithm)},
                   {"seed", options.seed},
                   {"scenarios", run.scenarios},
                   {"network",
                    {{"hidden", options.hidden},
                     {"rounds", options.rounds},
                     {"encoder", nn::EncoderName(options.encoder)}}},
                   {"iterations", run.iterations},
                   {"env_steps", run.env_steps},
                   {"seconds", run.seconds},
                   {"version", run.config.provenance.version},
                   {"command", run.config.provenance.command}};
  if (options.scaling) {
    json["scaling"] = {{"violations_max", options.scaling->violations_max},
                       {"goal", run.goal},
                       {"loads", options.scaling->loads},
                       {"verdict", run.verdict}};
  }
  const CurvePoint* best = run.best();
  json["best_final_ms"] = best == nullptr ? OrderedJson(nullptr) : OrderedJson(best->final_ms);
  OrderedJson& curve = json["curve"] = OrderedJson::array();
  for (const CurvePoint& point : run.curve) {
    curve.push_back({{"env_steps", point.env_steps},
                     {"seconds", NumberOrNull(point.seconds)},
                     {"final_ms", point.final_ms},
                     {"return", point.mean_return},
                     {"moves", point.moves}});
  }
  return json;
}

std::string SeedsText(const std::filesystem::path& folder, const std::vector<RunSummary>& runs) {
  const TrainOptions& options = runs[0].config.options;
  std::string text = fmt::format("{}: training by {} {}, {} seeds, on {}\n\n", folder.string(),
                                 AlgorithmName(options.algorithm), LengthText(options), runs.size(),
                                 Joined(runs[0].scenarios));
  TextTable table({{"SEED", Align::kRight},
                   {"FOLDER"},
                   {"ITERATIONS", Align::kRight},
                   {"STEPS", Align::kRight},
                   {"TIME", Align::kRight},
                   {runs[0].has_objective ? "BEST" : "BEST ms", Align::kRight}},
                  2);
  for (const RunSummary& run : runs) {
    const CurvePoint* best = run.best();
    table.Row({fmt::format("{}", run.config.options.seed), run.paths.folder.string(),
               Grouped(run.iterations), Grouped(run.env_steps), Span(run.seconds),
               best == nullptr ? "-" : FigureText(run, best->final_ms)});
  }
  return text + table.Text();
}

}  // namespace

Result<std::string> InspectRun(const std::filesystem::path& folder, OutputFormat format) {
  const int seeds = SeedFolders(folder);
  std::vector<RunSummary> runs;
  for (int number = 1; number <= std::max(1, seeds); ++number) {
    TRY_ASSIGN(RunSummary run,
               Summarize(seeds > 0 ? RunPaths{folder}.seed(number) : RunPaths{folder}));
    runs.push_back(std::move(run));
  }
  if (format != OutputFormat::kJson) return seeds > 0 ? SeedsText(folder, runs) : AsText(runs[0]);
  OrderedJson json{{"kind", "run"}, {"folder", folder.string()}};
  OrderedJson& list = json["seeds"] = OrderedJson::array();
  for (const RunSummary& run : runs) list.push_back(AsJson(run));
  return json.dump(1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace rudderfish
