// SPDX-License-Identifier: Apache-2.0
#include "cli/experiment_routing.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <utility>

#include "base/files.h"
#include "base/version.h"
#include "cli/files.h"
#include "cli/policy_list.h"
#include "cli/routing_options.h"
#include "cli/scaling_options.h"
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

namespace rudderfish {
namespace {

// Shares of a cell's progress.
constexpr double kRulesShare = 0.5, kWeightsShare = 0.85;

constexpr std::string_view kFrontFile = "front.json";  // In the folder of a cell.
constexpr std::string_view kCarbonWeight = "regions.objective.carbon_per_kg";

// Whether variants differ in the weight of carbon, and in nothing else.
bool MakesFronts(const Experiment& experiment) {
  const auto is_weight = [](const ExperimentVariant& variant) {
    return variant.changes.empty() ||
           (variant.changes.size() == 1 && variant.changes[0].path == kCarbonWeight);
  };
  return experiment.routing && experiment.variants.size() > 1 &&
         std::all_of(experiment.variants.begin(), experiment.variants.end(), is_weight);
}

using Said = std::function<void(double, std::string_view)>;

// With what is found within the experiment in the place of what stands for it.
Result<std::vector<ListedPolicy>> PoliciesOf(const RoutingCell& cell) {
  std::vector<NamedPolicySpec> policies = cell.experiment->policies;
  for (auto& [name, policy] : policies) {
    if (const auto calibrated = RoutingExperiment::CalibratedFor(policy)) {
      policy.SetPath(cell.calibration(*calibrated).string());
    } else if (const auto tiers = RoutingExperiment::TiersFor(policy)) {
      policy.SetPath(cell.training(*tiers).string());
    }
  }
  return WithSeeds(policies);
}

struct OpenedCell {
  std::shared_ptr<const RegionWorld> home, place;
  std::vector<int> variants;  // One.
};

Result<OpenedCell> OpenCell(const RoutingCell& cell, const Scenario& scenario) {
  const std::string file = cell.scenario.string();
  if (scenario.regions == nullptr) return Invalid("{}: has no `regions`", file);
  const auto of_file = [&](Error error) {
    error.message = file + ": " + error.message;
    return error;
  };
  OpenedCell opened;
  for (auto [place, world] :
       {std::pair(&cell.home(), &opened.home), std::pair(&cell.place(), &opened.place)}) {
    auto found = WithRegions(scenario.regions, place->regions);
    if (!found) return tl::unexpected(of_file(found.error()));
    *world = *std::move(found);
  }
  auto variants = VariantsNamed(*scenario.regions, std::vector{cell.region_variant()});
  if (!variants) return tl::unexpected(of_file(variants.error()));
  opened.variants = *std::move(variants);
  return opened;
}

Result<RoutingCalibration> Calibrate(const RoutingCell& cell, const std::string& scenario,
                                     std::string_view policy, const OpenedCell& opened,
                                     ThreadPool* pool, const Said& progress) {
  const std::filesystem::path file = cell.calibration(policy);
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
RoutingTraining TrainingOf(const RoutingCell& cell,
                           const std::vector<std::pair<std::string, std::string>>& calibrated) {
  RoutingTraining routing{.variants = {cell.region_variant()}, .regions = cell.home().regions};
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

Result<void> Train(const RoutingCell& cell, RoutingTraining routing, const Session& session,
                   int threads, const Said& progress) {
  TrainJob job{.folder = cell.training(RoutingTiersText(routing.tiers))};
  TRY_ASSIGN(TrainScenario scenario, TrainScenario::Open(cell.scenario));
  job.scenarios.push_back(std::move(scenario));
  UseRoutingDefaults(&job.options);
  job.options.routing = std::move(routing);
  job.options.steps = cell.experiment->routing->train_steps;
  job.options.threads = threads;
  job.provenance = {.version = std::string(ProgramVersion()), .command = session.command_line};
  job.resume = HasRun(job.folder) ? Resume::kYes : Resume::kNo;
  if (job.resume == Resume::kNo) TRY(MakeDirectories(job.folder.parent_path()));
  TRY(TrainSeeds(job, cell.experiment->routing->train_seeds, nullptr,
                 [&](const TrainProgress& report) {
                   progress((report.seed_number - 1 + report.fraction) / report.seed_count,
                            fmt::format("seed {} of {}", report.seed_number, report.seed_count));
                 }));
  return {};
}

// All that the experiment finds for the cell, in files.
Result<void> Find(const RoutingCell& cell, const std::string& scenario, const OpenedCell& opened,
                  const Session& session, ThreadPool* pool, const Said& progress) {
  std::vector<std::string_view> rules;
  for (const NamedPolicySpec& one : cell.experiment->policies) {
    const auto rule = RoutingExperiment::CalibratedFor(one.policy);
    if (rule && std::find(rules.begin(), rules.end(), *rule) == rules.end()) rules.push_back(*rule);
  }
  std::vector<std::pair<std::string, std::string>> calibrated;
  for (const std::string_view rule : rules) {
    const auto index = static_cast<double>(calibrated.size());
    TRY_ASSIGN(
        const RoutingCalibration calibration,
        Calibrate(cell, scenario, rule, opened, pool, [&](double fraction, std::string_view text) {
          progress(kRulesShare * (index + fraction) / static_cast<double>(rules.size()),
                   fmt::format("calibrating {}, {}", rule, text));
        }));
    calibrated.emplace_back(rule, calibration.finalists[0].policy);
  }
  std::set<std::string_view> trainings;
  for (const NamedPolicySpec& one : cell.experiment->policies) {
    if (const auto tiers = RoutingExperiment::TiersFor(one.policy)) trainings.insert(*tiers);
  }
  double done = 0;
  for (const std::string_view tiers : trainings) {
    RoutingTraining routing = TrainingOf(cell, calibrated);
    TRY_ASSIGN(routing.tiers, ParseRoutingTiers(tiers));
    TRY(Train(cell, std::move(routing), session, pool->size(),
              [&](double fraction, std::string_view text) {
                const double share = (done + fraction) / static_cast<double>(trainings.size());
                progress(kRulesShare + (kWeightsShare - kRulesShare) * share,
                         fmt::format("training {}, {}", tiers, text));
              }));
    ++done;
  }
  return {};
}

}  // namespace

std::string RoutingCell::found() const {
  return fmt::format("{}.{}{}", scenario.stem().string(), region_variant(),
                     variant().changes.empty() ? "" : "." + variant().name);
}

std::filesystem::path RoutingCell::training(std::string_view tiers) const {
  const bool is_whole = tiers == RoutingTiersText({});
  return folder / "trained" / (is_whole ? found() : fmt::format("{}+{}", found(), tiers));
}

std::filesystem::path RoutingCell::calibration(std::string_view policy) const {
  return folder / "calibrated" / fmt::format("{}+{}.yaml", found(), policy);
}

Result<void> CheckRoutingCell(const RoutingCell& cell) {
  TRY_ASSIGN(const Scenario scenario, LoadScenario(cell.scenario, cell.variant().changes));
  TRY_ASSIGN(const OpenedCell opened, OpenCell(cell, scenario));
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

Result<void> RunRoutingCell(const RoutingCell& asked, const std::filesystem::path& folder,
                            const Session& session, ThreadPool* pool, const Said& progress) {
  RoutingCell cell = asked;
  TRY_ASSIGN(cell.scenario, KeepVariant(asked.scenario, asked.variant(), asked.folder));
  TRY_ASSIGN(const Scenario scenario, LoadScenario(cell.scenario));
  TRY_ASSIGN(const OpenedCell opened, OpenCell(cell, scenario));
  TRY(Find(cell, scenario.name, opened, session, pool, progress));
  TRY_ASSIGN(const std::vector<ListedPolicy> listed, PoliciesOf(cell));
  TRY_ASSIGN(const RoutingPolicies policies, RoutingPoliciesOf(listed, cell.scenario));
  const RoutingEvaluation evaluation =
      EvaluateRouting(scenario.name, opened.place, policies.list,
                      {.variants = opened.variants,
                       .episodes = cell.experiment->episodes,
                       .seed = cell.experiment->seed,
                       .progress =
                           [&](double fraction) {
                             progress(kWeightsShare + (1 - kWeightsShare) * fraction, "evaluating");
                           }},
                      pool);
  PairLabels labels{{"scenario", cell.region_variant()}, {"variant", cell.variant().name}};
  if (cell.experiment->routing->places.size() > 1) labels.emplace_back("place", cell.place().name);
  if (cell.experiment->scenarios.size() > 1)
    labels.emplace_back("file", asked.scenario.stem().string());
  OrderedJson pairs = PairsOf(OutcomesOf(evaluation, 0), RoutingRule(evaluation.limits), labels);
  const int baseline = BaselineOf(evaluation, 0);
  for (OrderedJson& pair : pairs) {
    pair["strongest"] = baseline >= 0 && pair["baseline"] == evaluation.policies[baseline];
    pair["seeds_stepped_back"] = policies.stepped_back.back();
    pair["stepped_back_to"] = policies.rules.back();
  }
  TRY(WriteFileAtomically(folder / "episodes.csv", RoutingCsv(evaluation)));
  if (MakesFronts(*cell.experiment)) {
    const OrderedJson points = FrontPointsJson(evaluation, *opened.place->network);
    TRY(WriteFileAtomically(folder / kFrontFile, points.dump() + "\n"));
  }
  TRY(WriteFileAtomically(folder / "evaluation.json", RoutingJson(evaluation)));
  TRY(WriteRoutingReport(
      evaluation, RecordRouting(evaluation, opened.place, policies.list, opened.variants, pool),
      {.command = session.command_line, .version = std::string(ProgramVersion())},
      folder / "report.html"));
  return WriteFileAtomically(folder / "comparisons.json", pairs.dump(1) + "\n");
}

Result<OrderedJson> CarbonFronts(const Experiment& experiment,
                                 const std::vector<ExperimentCell>& cells,
                                 const std::filesystem::path& folder) {
  OrderedJson all = OrderedJson::array();
  if (!MakesFronts(experiment)) return all;
  // Cells that differ in their variant alone follow each other.
  const size_t each = experiment.variants.size();
  for (size_t first = 0; first < cells.size(); first += each) {
    std::vector<PolicyFront> fronts;
    for (size_t i = first; i < first + each; ++i) {
      const std::filesystem::path file = folder / cells[i].name / kFrontFile;
      TRY_ASSIGN(const std::string text, ReadFile(file));
      TRY_ASSIGN(const Json points, ParseJson(text, file.string()));
      TRY(AddFrontPoints(points, file.string(), experiment.variants[cells[i].variant].name,
                         &fronts));
    }
    const RoutingExperiment& routing = *experiment.routing;
    OrderedJson front{{"scenario", routing.region_variants[cells[first].region_variant]},
                      {"place", routing.places[cells[first].place].name},
                      {"file", experiment.scenarios[cells[first].scenario].stem().string()}};
    front.update(FrontJson(fronts, experiment.seed));
    all.push_back(std::move(front));
  }
  return all;
}

}  // namespace rudderfish
