// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "base/files.h"
#include "base/log.h"
#include "base/suggest.h"
#include "base/text_table.h"
#include "cli/files.h"
#include "cli/judged_worlds.h"
#include "cli/scaling_options.h"
#include "cli/stop_signals.h"
#include "cli/terminal.h"
#include "evaluation/calibration.h"
#include "evaluation/pairs.h"
#include "evaluation/scaling_comparison.h"
#include "evaluation/scaling_summary.h"
#include "learn/scaling_limit.h"
#include "learn/trainer.h"
#include "nn/encoder.h"
#include "report/report_scaling.h"
#include "sim/scaling_evaluation.h"

// Judging the scaling of workloads. Within an experiment, a cell is one load of one scenario in one
// variant. For each, the autoscaler is calibrated and networks are trained, if the experiment asks
// for that. Each of these steps is kept, and resumed after an interruption. A network steps back to
// the best of what the experiment calibrates.

namespace rudderfish {
namespace {

constexpr int kScalingEpisodes = 20;
constexpr std::string_view kGrounds[] = {"requests", "model"};  // As ScalingGround.

// Shares of a cell's progress.
constexpr double kCalibratedShare = 0.25, kTrainedShare = 0.6;

std::string ScalingTable(const ScalingSummary& summary) {
  using Align = TextTable::Align;
  std::string text;
  for (const ScalingLoadSummary& load : summary.loads) {
    text += fmt::format("{}{}, {}: {}{}\n\n", text.empty() ? "" : "\n", summary.scenario, load.load,
                        Counted(summary.episodes, "episode"),
                        load.is_replay() ? "; " + HeldOutText(load) : "");
    std::vector<TextTable::Column> columns = {
        {"policy", Align::kLeft},      {"pod-hours", Align::kRight},  {"core-hours", Align::kRight},
        {"node-hours", Align::kRight}, {"violations", Align::kRight}, {"of budget", Align::kRight},
        {"p95", Align::kRight},        {"changes", Align::kRight}};
    if (summary.draws_power()) columns.push_back({"energy", Align::kRight});
    TextTable table(columns, 2);
    for (const ScalingPolicySummary& means : load.policies) {
      std::vector<std::string> cells = {
          means.seeds > 1 ? fmt::format("{} ({} seeds)", means.name, means.seeds) : means.name,
          fmt::format("{:.2f}", means.pod_hours),
          fmt::format("{:.3f}", means.core_hours),
          fmt::format("{:.2f}", means.node_hours),
          fmt::format("{:.2f} %", 100 * means.violation_share),
          fmt::format("{:.0f} %", 100 * summary.BudgetOf(means)),
          std::isinf(means.p95_ms) ? "no answer" : fmt::format("{:.1f} ms", means.p95_ms),
          fmt::format("{:.1f}", means.changes)};
      if (summary.draws_power()) cells.push_back(fmt::format("{:.0f} Wh", means.energy_wh));
      table.Row(cells);
    }
    text += table.Text();
    const std::string verdict = ScalingVerdictText(load);
    if (!verdict.empty()) text += fmt::format("\n{}\n", verdict);
  }
  return text;
}

struct JudgedScaling {
  ScalingEvaluation evaluation;
  ScalingSummary summary;
};

Judgement JudgementOf(std::shared_ptr<const JudgedScaling> judged, int asked) {
  return {.episodes = judged->evaluation.episodes,
          .asked = asked,
          .is_better = judged->summary.better_everywhere(),
          .table = [judged] { return ScalingTable(judged->summary); },
          .json = [judged] { return ScalingSummaryText(judged->summary); },
          .csv = [judged] { return ScalingCsv(judged->evaluation); },
          .write_report =
              [judged](const ReportOptions& options, const std::filesystem::path& path) {
                return WriteScalingReport(judged->summary, options, path);
              }};
}

const std::string& LoadOf(const PlannedCell& cell) {
  return cell.experiment->scaling->loads[cell.cell.load];
}

std::filesystem::path CalibrationOf(const PlannedCell& cell, CalibratedKind kind) {
  // As in the enum; no cell has such an ending in its name.
  constexpr const char* kEndings[] = {".yaml", "+mpc.yaml", "+static.yaml"};
  return cell.folder / "calibrated" / (cell.cell.name + kEndings[static_cast<int>(kind)]);
}

std::filesystem::path ScalingRunOf(const PlannedCell& cell) {
  return cell.folder / "trained" / cell.cell.name;
}

// What an experiment calls what it calibrates; autoscalers first.
struct CalibratedWord {
  std::string_view word;
  CalibratedKind kind;
};
constexpr CalibratedWord kCalibratedWords[] = {
    {ScalingExperiment::kCalibrated, CalibratedKind::kHpa},
    {ScalingExperiment::kCalibratedStatic, CalibratedKind::kStatic},
    {ScalingExperiment::kCalibratedMpc, CalibratedKind::kMpc}};

std::string_view KindName(CalibratedKind kind) { return kCalibratedKinds[static_cast<int>(kind)]; }

const CalibratedWord* CalibratedWordOf(std::string_view what) {
  const auto* const at = std::find_if(std::begin(kCalibratedWords), std::end(kCalibratedWords),
                                      [&](const CalibratedWord& one) { return one.word == what; });
  return at == std::end(kCalibratedWords) ? nullptr : at;
}

// What the parts of a cell took.
class PartsClock {
 public:
  // Since the last part.
  void Lap(std::string_view part) {
    const Instant now = clock_.Now();
    text_ += fmt::format("{},{:.1f}\n", part, std::chrono::duration<double>(now - last_).count());
    last_ = now;
  }
  const std::string& text() const { return text_; }

 private:
  SystemClock clock_;
  Instant last_ = clock_.Now();
  std::string text_ = "part,seconds\n";
};

std::optional<std::filesystem::path> FoundForScaling(const PlannedCell& cell,
                                                     const PolicySpec& policy) {
  if (const CalibratedWord* found = CalibratedWordOf(policy.path()))
    return CalibrationOf(cell, found->kind);
  if (policy.path() == ScalingExperiment::kTrained) return ScalingRunOf(cell);
  return std::nullopt;
}

Result<int> LoadIn(const Scenario& scenario, const PlannedCell& cell) {
  std::vector<std::string_view> known;
  for (const NamedTraffic& named : scenario.load->loads) known.push_back(named.name);
  Result<int> position = ChoiceOf(LoadOf(cell), known);
  if (!position)
    return Invalid("{}: `loads`: {}", cell.scenario.string(), position.error().message);
  return position;
}

double LimitOf(const PlannedCell& cell, const Scenario& scenario) {
  return cell.experiment->scaling->violations_max.value_or(LateMaxOf(scenario));
}

Result<Calibration> Calibrate(const PlannedCell& cell, CalibratedKind kind,
                              const Scenario& scenario, int load, ThreadPool* pool,
                              const ReportProgress& progress) {
  const std::filesystem::path file = CalibrationOf(cell, kind);
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) {
    TRY(MakeDirectories(file.parent_path()));
    const ScalingExperiment& scaling = *cell.experiment->scaling;
    const CalibrationOptions options{.violations_max = LimitOf(cell, scenario),
                                     .episodes = scaling.calibration_episodes,
                                     .model_share = ModelShareOf(kind),
                                     .progress = progress};
    const double peak_per_s = PeakPerS(scenario, {load}, options.episodes, options.seed);
    Calibration calibration =
        CalibrateScaling(scenario, {load}, GridOf(kind, peak_per_s), options, pool);
    TRY_ASSIGN(calibration.sha256, DigestOfScenario(cell.scenario));
    TRY(WriteFileAtomically(file, CalibrationYaml(calibration)));
  }
  return ReadCalibration(file, cell.scenario);
}

Result<void> Train(const PlannedCell& cell, std::span<const Calibration> calibrations,
                   const CellRun& run, const ReportProgress& progress) {
  const ScalingExperiment& scaling = *cell.experiment->scaling;
  TrainJob job{.folder = ScalingRunOf(cell)};
  TRY_ASSIGN(TrainScenario scenario, TrainScenario::Open(cell.scenario));
  job.scenarios.push_back(std::move(scenario));
  UseScalingDefaults(&job.options);
  job.options.scaling = ScalingTraining{.violations_max = LimitOf(cell, *job.scenarios[0].scenario),
                                        .loads = {LoadOf(cell)},
                                        .rival = RivalOf(calibrations)};
  const std::string unkept =
      UnkeptLimitText(*job.options.scaling->rival, job.options.scaling->violations_max);
  if (!unkept.empty() && !job.scenarios[0].scenario->load->objective.late)
    LogWarning("{}: {}", cell.cell.name, unkept);
  TRY_ASSIGN(job.options.algorithm, AlgorithmNamed(scaling.algorithm));
  if (job.options.algorithm == Algorithm::kA2c) UseA2cDefaults(&job.options);
  if (!scaling.encoder.empty()) {
    TRY_ASSIGN(job.options.encoder, nn::EncoderNamed(scaling.encoder));
    job.options.scaling->rows = ScalingRows::kCallGraph;
  }
  job.options.steps = scaling.train_steps;
  return TrainWithin(std::move(job), scaling.train_seeds, run, progress);
}

Result<void> CheckCalibrations(const PlannedCell& cell) {
  if (cell.variant().changes.empty()) return {};
  for (const NamedPolicySpec& one : cell.experiment->policies) {
    if (!IsCalibrated(one.policy)) continue;
    return Invalid(
        "{}: was calibrated for {} as it is, and the variant {} changes that; name `calibrated`, "
        "`calibrated-mpc` or `calibrated-static` instead",
        one.policy.bare_path, cell.scenario.string(), cell.variant().name);
  }
  return {};
}

}  // namespace

Result<Judgement> EvaluateScalingPolicies(const EvaluationRequest& request) {
  const Scenario& scenario = request.scenario;
  TRY(CheckIsServed(scenario, request.path));
  TRY_ASSIGN(const int episodes, EpisodesOf(request.arguments, kScalingEpisodes));
  TRY_ASSIGN(const ScalingPolicies policies,
             OfOption("policy", ScalingPoliciesOf(request.policies, request.path)));
  for (const std::string& note : policies.notes) Say(request.session, "{}", note);
  TRY_ASSIGN(const std::vector<int> loads, LoadsOf(request.arguments, *scenario.load));
  for (const std::string& note : UncalibratedNotes(policies, *scenario.load, loads))
    LogWarning("{}", note);
  TRY_ASSIGN(const int ground, request.arguments.Choice("on", kGrounds, 0));
  auto judged = std::make_shared<JudgedScaling>();
  judged->evaluation = EvaluateScaling(
      scenario, EpisodeUse::kEvaluation, loads, policies.list, episodes, request.seed, request.pool,
      [&](double fraction) { request.progress(fraction, ""); }, static_cast<ScalingGround>(ground),
      0, request.stop);
  if (judged->evaluation.episodes == 0) return StoppedTooEarly();
  judged->summary = Summarize(judged->evaluation, scenario);
  if (request.has_report || request.has_json)
    RecordTimelines(scenario, loads, policies.list, request.pool, &judged->summary);
  return JudgementOf(std::move(judged), episodes);
}

Result<void> CheckScalingCell(const PlannedCell& cell) {
  TRY_ASSIGN(const Scenario scenario, LoadServedScenario(cell.scenario, cell.variant().changes));
  TRY(CheckCalibrations(cell));
  TRY_ASSIGN(const int load, LoadIn(scenario, cell));
  const Experiment& experiment = *cell.experiment;
  if (experiment.Names(ScalingExperiment::kTrained) && !scenario.load->objective.late)
    TRY(CheckLimitCanBeMet(scenario, {load}, LimitOf(cell, scenario)));
  TRY_ASSIGN(const std::vector<ListedPolicy> given, WithSeeds(experiment.Given()));
  Result<ScalingPolicies> made = ScalingPoliciesOf(given, cell.scenario);
  if (made) return {};
  for (const ListedPolicy& one : given) {
    const std::string& word = one.members[0].bare_path;
    if (made.error().message.find(fmt::format("`{}`", word)) != std::string::npos)
      made.error().message += DidYouMean(word, ScalingExperiment::kFoundWithin);
  }
  return tl::unexpected(std::move(made).error());
}

Result<CellResult> RunScalingCell(const PlannedCell& asked, const CellRun& run) {
  PlannedCell cell = asked;
  TRY_ASSIGN(cell.scenario, KeepVariant(asked.scenario, asked.variant(), asked.folder));
  TRY_ASSIGN(const Scenario scenario, LoadServedScenario(cell.scenario));
  TRY_ASSIGN(const int load, LoadIn(scenario, cell));
  const Experiment& experiment = *cell.experiment;
  const bool trains = experiment.Names(ScalingExperiment::kTrained);
  PartsClock watch;
  std::vector<Calibration> calibrations;
  for (const CalibratedWord& one : kCalibratedWords) {
    const bool is_rival = trains && one.kind == CalibratedKind::kHpa;
    if (!is_rival && !experiment.Names(one.word)) continue;
    const auto index = static_cast<double>(&one - kCalibratedWords);
    const double share = kCalibratedShare / static_cast<double>(std::size(kCalibratedWords));
    TRY_ASSIGN(Calibration calibration,
               Calibrate(cell, one.kind, scenario, load, run.pool,
                         PartOf(run.progress, index * share, share,
                                fmt::format("calibrating {}", KindName(one.kind)))));
    calibrations.push_back(std::move(calibration));
    watch.Lap(fmt::format("calibrate {}", KindName(one.kind)));
  }
  if (trains) {
    TRY(Train(
        cell, calibrations, run,
        PartOf(run.progress, kCalibratedShare, kTrainedShare - kCalibratedShare, "training")));
    watch.Lap("train");
  }
  TRY_ASSIGN(const std::vector<ListedPolicy> listed,
             PoliciesOf(experiment,
                        [&](const PolicySpec& policy) { return FoundForScaling(cell, policy); }));
  TRY_ASSIGN(const ScalingPolicies policies, ScalingPoliciesOf(listed, cell.scenario));
  const ReportProgress evaluating =
      PartOf(run.progress, kTrainedShare, 1 - kTrainedShare, "evaluating");
  auto judged = std::make_shared<JudgedScaling>();
  judged->evaluation = EvaluateScaling(scenario, EpisodeUse::kEvaluation, {load}, policies.list,
                                       experiment.episodes, experiment.seed, run.pool,
                                       [&](double fraction) { evaluating(fraction, ""); });
  judged->evaluation.late_max = LimitOf(cell, scenario);
  watch.Lap("evaluate");
  judged->summary = Summarize(judged->evaluation, scenario);
  RecordTimelines(scenario, {load}, policies.list, run.pool, &judged->summary);
  OrderedJson pairs = PairsOf(OutcomesOf(judged->evaluation, 0), ScalingRule(),
                              {{"scenario", cell.scenario.stem().string()},
                               {"variant", cell.variant().name},
                               {"load", judged->evaluation.loads[0]}});
  for (OrderedJson& pair : pairs) {
    pair["seeds_stepped_back"] = policies.stepped_back.back();
    pair["stepped_back_to"] = policies.rules.back();
  }
  CellResult result{.pairs = pairs.dump(1) + "\n"};
  watch.Lap("compare");
  result.others.emplace_back("seconds.csv", watch.text());
  result.judgement = JudgementOf(std::move(judged), experiment.episodes);
  return result;
}

}  // namespace rudderfish
