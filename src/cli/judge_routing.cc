// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "base/files.h"
#include "cli/files.h"
#include "cli/judged_worlds.h"
#include "cli/routing_options.h"
#include "cli/scaling_options.h"
#include "cli/stop_signals.h"
#include "evaluation/carbon_front.h"
#include "evaluation/limit_check.h"
#include "evaluation/pairs.h"
#include "evaluation/routing_calibration.h"
#include "evaluation/routing_comparison.h"
#include "evaluation/routing_record.h"
#include "learn/trainer.h"
#include "report/report_routing.h"
#include "scenario/region_world.h"
#include "sim/routing_evaluation.h"

// Judging the routing between regions. Within an experiment, a cell is one variant of a scenario's
// regions at one place. Rules are calibrated for that variant and networks are trained in it, at
// the first place, if the experiment asks for that. Each of these steps is kept, and resumed after
// an interruption. A network steps back to the best of what is calibrated.

namespace rudderfish {
namespace {

constexpr int kRoutingEpisodes = 60;

// Shares of a cell's progress.
constexpr double kRulesShare = 0.5, kWeightsShare = 0.85;

struct JudgedRouting {
  RoutingEvaluation evaluation;
  std::optional<RoutingRecord> record;  // For a report.
};

Judgement JudgementOf(std::shared_ptr<const JudgedRouting> judged, int asked) {
  return {.episodes = judged->evaluation.episodes,
          .asked = asked,
          .is_better = BetterEverywhere(judged->evaluation),
          .table = [judged] { return RoutingTable(judged->evaluation); },
          .json = [judged] { return RoutingJson(judged->evaluation); },
          .csv = [judged] { return RoutingCsv(judged->evaluation); },
          .write_report =
              [judged](const ReportOptions& options, const std::filesystem::path& path) {
                return WriteRoutingReport(judged->evaluation, *judged->record, options, path);
              }};
}

const std::string& RegionVariantOf(const PlannedCell& cell) {
  return cell.experiment->routing->region_variants[cell.cell.region_variant];
}

const NamedPlace& HomeOf(const PlannedCell& cell) { return cell.experiment->routing->places[0]; }

const NamedPlace& PlaceOf(const PlannedCell& cell) {
  return cell.experiment->routing->places[cell.cell.place];
}

// What is found for a cell is found once for all places.
std::string NameOfFound(const PlannedCell& cell) {
  return fmt::format("{}.{}{}", cell.scenario.stem().string(), RegionVariantOf(cell),
                     cell.variant().changes.empty() ? "" : "." + cell.variant().name);
}

std::filesystem::path RoutingRunOf(const PlannedCell& cell, std::string_view tiers) {
  const std::string found = NameOfFound(cell);
  const bool is_whole = tiers == RoutingTiersText({});
  return cell.folder / "trained" / (is_whole ? found : fmt::format("{}+{}", found, tiers));
}

std::filesystem::path CalibrationOf(const PlannedCell& cell, std::string_view policy) {
  return cell.folder / "calibrated" / fmt::format("{}+{}.yaml", NameOfFound(cell), policy);
}

std::optional<std::filesystem::path> FoundForRouting(const PlannedCell& cell,
                                                     const PolicySpec& policy) {
  if (const auto calibrated = RoutingExperiment::CalibratedFor(policy))
    return CalibrationOf(cell, *calibrated);
  if (const auto tiers = RoutingExperiment::TiersFor(policy)) return RoutingRunOf(cell, *tiers);
  return std::nullopt;
}

struct OpenedRoutingCell {
  std::shared_ptr<const RegionWorld> home, place;
  std::vector<int> variants;  // One.
};

Result<OpenedRoutingCell> OpenRoutingCell(const PlannedCell& cell, const Scenario& scenario) {
  const std::string file = cell.scenario.string();
  if (scenario.regions == nullptr) return Invalid("{}: has no `regions`", file);
  const auto of_file = [&](Error error) {
    error.message = file + ": " + error.message;
    return error;
  };
  OpenedRoutingCell opened;
  for (auto [place, world] :
       {std::pair(&HomeOf(cell), &opened.home), std::pair(&PlaceOf(cell), &opened.place)}) {
    auto found = WithRegions(scenario.regions, place->regions);
    if (!found) return tl::unexpected(of_file(found.error()));
    *world = *std::move(found);
  }
  auto variants = VariantsNamed(*scenario.regions, std::vector{RegionVariantOf(cell)});
  if (!variants) return tl::unexpected(of_file(variants.error()));
  opened.variants = *std::move(variants);
  return opened;
}

Result<RoutingCalibration> Calibrate(const PlannedCell& cell, const std::string& scenario,
                                     std::string_view policy, const OpenedRoutingCell& opened,
                                     ThreadPool* pool, const ReportProgress& progress) {
  const std::filesystem::path file = CalibrationOf(cell, policy);
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) {
    TRY(MakeDirectories(file.parent_path()));
    const RoutingCalibrationOptions options{
        .variants = opened.variants,
        .settings = cell.experiment->routing->calibration_settings,
        .episodes = cell.experiment->routing->calibration_episodes,
        .progress = progress};
    RoutingCalibration calibration = CalibrateRouting(scenario, opened.home, policy, options, pool);
    TRY_ASSIGN(calibration.sha256, DigestOfScenario(cell.scenario));
    TRY(WriteFileAtomically(file, RoutingCalibrationYaml(calibration)));
  }
  return ReadRoutingCalibration(file, cell.scenario);
}

// Begins with the calibrated mpc, if there is one, and is to beat all that is calibrated.
RoutingTraining TrainingFor(const PlannedCell& cell,
                            const std::vector<std::pair<std::string, std::string>>& calibrated) {
  RoutingTraining routing{.variants = {RegionVariantOf(cell)}, .regions = HomeOf(cell).regions};
  for (const auto& [name, setting] : calibrated) {
    if (name == kPlannedRule) routing.rule = setting;
    routing.rivals.push_back(setting);
  }
  if (routing.rule.empty()) {
    routing.rule = kPlannedRule;
    routing.rivals.emplace_back(kPlannedRule);
  }
  return routing;
}

Result<void> Train(const PlannedCell& cell, RoutingTraining routing, const CellRun& run,
                   const ReportProgress& progress) {
  TrainJob job{.folder = RoutingRunOf(cell, RoutingTiersText(routing.tiers))};
  TRY_ASSIGN(TrainScenario scenario, TrainScenario::Open(cell.scenario));
  job.scenarios.push_back(std::move(scenario));
  UseRoutingDefaults(&job.options);
  job.options.routing = std::move(routing);
  job.options.steps = cell.experiment->routing->train_steps;
  return TrainWithin(std::move(job), cell.experiment->routing->train_seeds, run, progress);
}

// All that the experiment finds for the cell, in files.
Result<void> Find(const PlannedCell& cell, const std::string& scenario,
                  const OpenedRoutingCell& opened, const CellRun& run) {
  std::vector<std::string_view> rules;
  std::set<std::string_view> trainings;
  for (const NamedPolicySpec& one : cell.experiment->policies) {
    const auto rule = RoutingExperiment::CalibratedFor(one.policy);
    if (rule && std::find(rules.begin(), rules.end(), *rule) == rules.end()) rules.push_back(*rule);
    if (const auto tiers = RoutingExperiment::TiersFor(one.policy)) trainings.insert(*tiers);
  }
  std::vector<std::pair<std::string, std::string>> calibrated;
  const double rule_share = kRulesShare / static_cast<double>(rules.size());
  for (const std::string_view rule : rules) {
    const double from = rule_share * static_cast<double>(calibrated.size());
    TRY_ASSIGN(
        const RoutingCalibration calibration,
        Calibrate(cell, scenario, rule, opened, run.pool,
                  PartOf(run.progress, from, rule_share, fmt::format("calibrating {}", rule))));
    calibrated.emplace_back(rule, calibration.finalists[0].policy);
  }
  const double share = (kWeightsShare - kRulesShare) / static_cast<double>(trainings.size());
  double from = kRulesShare;
  for (const std::string_view tiers : trainings) {
    RoutingTraining routing = TrainingFor(cell, calibrated);
    TRY_ASSIGN(routing.tiers, ParseRoutingTiers(tiers));
    TRY(Train(cell, std::move(routing), run,
              PartOf(run.progress, from, share, fmt::format("training {}", tiers))));
    from += share;
  }
  return {};
}

}  // namespace

Result<Judgement> EvaluateRoutingPolicies(const EvaluationRequest& request) {
  RoutingEvaluationOptions options{
      .seed = request.seed,
      .progress = [&](double fraction) { request.progress(fraction, ""); },
      .stop = request.stop};
  TRY_ASSIGN(options.episodes, EpisodesOf(request.arguments, kRoutingEpisodes));
  TRY_ASSIGN(const std::shared_ptr<const RegionWorld> world,
             RegionsOf(request.arguments, request.scenario));
  TRY_ASSIGN(options.variants, VariantsOf(request.arguments, *world));
  TRY_ASSIGN(const RoutingPolicies policies,
             OfOption("policy", RoutingPoliciesOf(request.policies, request.path)));
  if (request.policies.size() == 1) options.trials = 0;
  auto judged = std::make_shared<JudgedRouting>();
  judged->evaluation =
      EvaluateRouting(request.scenario.name, world, policies.list, options, request.pool);
  if (judged->evaluation.episodes == 0) return StoppedTooEarly();
  if (request.has_report)
    judged->record =
        RecordRouting(judged->evaluation, world, policies.list, options.variants, request.pool);
  return JudgementOf(std::move(judged), options.episodes);
}

Result<void> CheckRoutingCell(const PlannedCell& cell) {
  TRY_ASSIGN(const Scenario scenario, LoadScenario(cell.scenario, cell.variant().changes));
  TRY_ASSIGN(const OpenedRoutingCell opened, OpenRoutingCell(cell, scenario));
  ThreadPool pool(1);
  TRY(CheckLimits(opened.home, opened.variants, &pool));
  TRY_ASSIGN(const std::vector<ListedPolicy> given, WithSeeds(cell.experiment->Given()));
  for (const ListedPolicy& one : given) {
    if (!cell.variant().changes.empty() && IsCalibrated(one.members[0])) {
      return Invalid(
          "{}: was calibrated for {} as it is, and the variant {} changes that; name "
          "`calibrated-lp` or another `calibrated-NAME` instead",
          one.members[0].bare_path, cell.scenario.string(), cell.variant().name);
    }
  }
  TRY(RoutingPoliciesOf(given, cell.scenario));
  return {};
}

Result<CellResult> RunRoutingCell(const PlannedCell& asked, const CellRun& run) {
  PlannedCell cell = asked;
  TRY_ASSIGN(cell.scenario, KeepVariant(asked.scenario, asked.variant(), asked.folder));
  TRY_ASSIGN(const Scenario scenario, LoadScenario(cell.scenario));
  TRY_ASSIGN(const OpenedRoutingCell opened, OpenRoutingCell(cell, scenario));
  const Experiment& experiment = *cell.experiment;
  TRY(Find(cell, scenario.name, opened, run));
  TRY_ASSIGN(const std::vector<ListedPolicy> listed,
             PoliciesOf(experiment,
                        [&](const PolicySpec& policy) { return FoundForRouting(cell, policy); }));
  TRY_ASSIGN(const RoutingPolicies policies, RoutingPoliciesOf(listed, cell.scenario));
  const ReportProgress evaluating =
      PartOf(run.progress, kWeightsShare, 1 - kWeightsShare, "evaluating");
  auto judged = std::make_shared<JudgedRouting>();
  judged->evaluation =
      EvaluateRouting(scenario.name, opened.place, policies.list,
                      {.variants = opened.variants,
                       .episodes = experiment.episodes,
                       .seed = experiment.seed,
                       .progress = [&](double fraction) { evaluating(fraction, ""); }},
                      run.pool);
  const RoutingEvaluation& evaluation = judged->evaluation;
  judged->record =
      RecordRouting(evaluation, opened.place, policies.list, opened.variants, run.pool);
  PairLabels labels{{"scenario", RegionVariantOf(cell)}, {"variant", cell.variant().name}};
  if (experiment.routing->places.size() > 1) labels.emplace_back("place", PlaceOf(cell).name);
  if (experiment.scenarios.size() > 1) labels.emplace_back("file", asked.scenario.stem().string());
  OrderedJson pairs = PairsOf(OutcomesOf(evaluation, 0), RoutingRule(evaluation.limits), labels);
  const int baseline = BaselineOf(evaluation, 0);
  for (OrderedJson& pair : pairs) {
    pair["strongest"] = baseline >= 0 && pair["baseline"] == evaluation.policies[baseline];
    pair["seeds_stepped_back"] = policies.stepped_back.back();
    pair["stepped_back_to"] = policies.rules.back();
  }
  CellResult result{.pairs = pairs.dump(1) + "\n"};
  if (MakesCarbonFronts(experiment)) {
    const OrderedJson points = FrontPointsJson(evaluation, *opened.place->network);
    result.others.emplace_back(kFrontFile, points.dump() + "\n");
  }
  result.judgement = JudgementOf(std::move(judged), experiment.episodes);
  return result;
}

CellColumns RoutingColumns(const PlannedCell& cell) {
  // Its rows have the variant of the regions in a column `variant`.
  return {{"place", PlaceOf(cell).name}, {"changes", cell.variant().name}};
}

}  // namespace rudderfish
