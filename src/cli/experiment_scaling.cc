// SPDX-License-Identifier: Apache-2.0
#include "cli/experiment_scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <span>
#include <system_error>
#include <utility>

#include "base/files.h"
#include "base/log.h"
#include "base/suggest.h"
#include "base/version.h"
#include "cli/arguments.h"
#include "cli/files.h"
#include "cli/scaling_options.h"
#include "evaluation/calibration.h"
#include "evaluation/pairs.h"
#include "evaluation/scaling_comparison.h"
#include "evaluation/scaling_summary.h"
#include "learn/scaling_limit.h"
#include "learn/trainer.h"
#include "nn/encoder.h"
#include "report/report_scaling.h"
#include "sim/scaling_evaluation.h"

namespace rudderfish {
namespace {

// Shares of a cell's progress.
constexpr double kCalibratedShare = 0.25, kTrainedShare = 0.6;

using Said = std::function<void(double, std::string_view)>;

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

// With what is found within the experiment in the place of what stands for it.
Result<std::vector<ListedPolicy>> PoliciesOf(const ScalingCell& cell) {
  std::vector<NamedPolicySpec> policies = cell.experiment->policies;
  for (auto& [name, policy] : policies) {
    if (const CalibratedWord* found = CalibratedWordOf(policy.path())) {
      policy.SetPath(cell.calibration(found->kind).string());
    } else if (policy.path() == ScalingExperiment::kTrained) {
      policy.SetPath(cell.training().string());
    }
  }
  return WithSeeds(policies);
}

Result<int> LoadOf(const ScalingCell& cell, const Scenario& scenario) {
  std::vector<std::string_view> known;
  for (const NamedTraffic& named : scenario.load->loads) known.push_back(named.name);
  Result<int> position = ChoiceOf(cell.load(), known);
  if (!position)
    return Invalid("{}: `loads`: {}", cell.scenario.string(), position.error().message);
  return position;
}

double LimitOf(const ScalingCell& cell, const Scenario& scenario) {
  return cell.experiment->scaling->violations_max.value_or(LateMaxOf(scenario));
}

Result<Calibration> Calibrate(const ScalingCell& cell, CalibratedKind kind,
                              const Scenario& scenario, int load, ThreadPool* pool,
                              const Said& progress) {
  const std::filesystem::path file = cell.calibration(kind);
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

Result<void> Train(const ScalingCell& cell, std::span<const Calibration> calibrations,
                   const Session& session, int threads, const Said& progress) {
  const ScalingExperiment& scaling = *cell.experiment->scaling;
  TrainJob job{.folder = cell.training()};
  TRY_ASSIGN(TrainScenario scenario, TrainScenario::Open(cell.scenario));
  job.scenarios.push_back(std::move(scenario));
  UseScalingDefaults(&job.options);
  job.options.scaling = ScalingTraining{.violations_max = LimitOf(cell, *job.scenarios[0].scenario),
                                        .loads = {cell.load()},
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
  job.options.threads = threads;
  job.provenance = {.version = std::string(ProgramVersion()), .command = session.command_line};
  job.resume = HasRun(job.folder) ? Resume::kYes : Resume::kNo;
  if (job.resume == Resume::kNo) TRY(MakeDirectories(cell.training().parent_path()));
  TRY(TrainSeeds(job, scaling.train_seeds, nullptr, [&](const TrainProgress& report) {
    progress((report.seed_number - 1 + report.fraction) / report.seed_count,
             fmt::format("seed {} of {}", report.seed_number, report.seed_count));
  }));
  return {};
}

Result<void> CheckCalibrations(const ScalingCell& cell) {
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

Result<void> CheckScalingCell(const ScalingCell& cell) {
  TRY_ASSIGN(const Scenario scenario, LoadServedScenario(cell.scenario, cell.variant().changes));
  TRY(CheckCalibrations(cell));
  TRY_ASSIGN(const int load, LoadOf(cell, scenario));
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

Result<void> RunScalingCell(const ScalingCell& asked, const std::filesystem::path& folder,
                            const Session& session, ThreadPool* pool, const Said& progress) {
  ScalingCell cell = asked;
  TRY_ASSIGN(cell.scenario, KeepVariant(asked.scenario, asked.variant(), asked.folder));
  TRY_ASSIGN(const Scenario scenario, LoadServedScenario(cell.scenario));
  TRY_ASSIGN(const int load, LoadOf(cell, scenario));
  const Experiment& experiment = *cell.experiment;
  const bool trains = experiment.Names(ScalingExperiment::kTrained);
  PartsClock watch;
  std::vector<Calibration> calibrations;
  for (const CalibratedWord& one : kCalibratedWords) {
    const bool is_rival = trains && one.kind == CalibratedKind::kHpa;
    if (!is_rival && !experiment.Names(one.word)) continue;
    const auto index = static_cast<double>(&one - kCalibratedWords);
    TRY_ASSIGN(Calibration calibration,
               Calibrate(cell, one.kind, scenario, load, pool,
                         [&](double fraction, std::string_view text) {
                           progress(kCalibratedShare * (index + fraction) /
                                        static_cast<double>(std::size(kCalibratedWords)),
                                    fmt::format("calibrating {}, {}", KindName(one.kind), text));
                         }));
    calibrations.push_back(std::move(calibration));
    watch.Lap(fmt::format("calibrate {}", KindName(one.kind)));
  }
  if (trains) {
    TRY(Train(cell, calibrations, session, pool->size(),
              [&](double fraction, std::string_view text) {
                progress(kCalibratedShare + (kTrainedShare - kCalibratedShare) * fraction,
                         fmt::format("training, {}", text));
              }));
    watch.Lap("train");
  }
  TRY_ASSIGN(const std::vector<ListedPolicy> listed, PoliciesOf(cell));
  TRY_ASSIGN(const ScalingPolicies policies, ScalingPoliciesOf(listed, cell.scenario));
  ScalingEvaluation evaluation =
      EvaluateScaling(scenario, EpisodeUse::kEvaluation, {load}, policies.list, experiment.episodes,
                      experiment.seed, pool, [&](double fraction) {
                        progress(kTrainedShare + (1 - kTrainedShare) * fraction, "evaluating");
                      });
  evaluation.late_max = LimitOf(cell, scenario);
  watch.Lap("evaluate");
  ScalingSummary summary = Summarize(evaluation, scenario);
  RecordTimelines(scenario, {load}, policies.list, pool, &summary);
  OrderedJson pairs = PairsOf(OutcomesOf(evaluation, 0), ScalingRule(),
                              {{"scenario", cell.scenario.stem().string()},
                               {"variant", cell.variant().name},
                               {"load", evaluation.loads[0]}});
  for (OrderedJson& pair : pairs) {
    pair["seeds_stepped_back"] = policies.stepped_back.back();
    pair["stepped_back_to"] = policies.rules.back();
  }
  TRY(WriteFileAtomically(folder / "episodes.csv", ScalingCsv(evaluation)));
  TRY(WriteFileAtomically(folder / "evaluation.json", ScalingSummaryText(summary)));
  TRY(WriteScalingReport(
      summary, {.command = session.command_line, .version = std::string(ProgramVersion())},
      folder / "report.html"));
  watch.Lap("report");
  TRY(WriteFileAtomically(folder / "seconds.csv", watch.text()));
  return WriteFileAtomically(folder / "comparisons.json", pairs.dump(1) + "\n");
}

}  // namespace rudderfish
