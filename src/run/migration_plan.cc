// SPDX-License-Identifier: Apache-2.0
#include "run/migration_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/units.h"
#include "policy/registry.h"
#include "scenario/application_file.h"
#include "sim/held_out.h"
#include "sim/problem.h"
#include "sim/world.h"

namespace rudderfish {
namespace {

// Messages say where the file names it; `at` is null if it does not.
Result<std::unique_ptr<Policy>> PolicyNamed(const std::string& name, const YamlNode& at,
                                            const Task& task) {
  Result<std::unique_ptr<Policy>> policy = MakePolicy(name, task);
  if (policy || at.IsNull()) return policy;
  return at.Refuse(policy.error().message);
}

Result<ApplicationOptions> OptionsOf(const Config& config, std::string name, const LatencyLaw& law,
                                     const MigrationOptions& objective) {
  ApplicationOptions options{.name = std::move(name),
                             .task = std::make_shared<const MigrationTask>(objective),
                             .law = law,
                             .guard = config.migration->budgets,
                             .rest = config.migration->rest,
                             .staleness = config.staleness,
                             .canary = config.migration->canary};
  const MigrationConfig& migration = *config.migration;
  options.objective = ObjectiveText(objective);
  TRY_ASSIGN(options.policy, PolicyNamed(migration.policy, migration.policy_node, *options.task));
  TRY_ASSIGN(options.policy_name, NameOfPolicy(migration.policy));
  if (!migration.baseline.empty()) {
    TRY_ASSIGN(options.baseline,
               PolicyNamed(migration.baseline, migration.baseline_node, *options.task));
  }
  return options;
}

// What is outside of the scope is not judged: an application that reaches there is refused.
Result<void> CheckScope(const Config& config, const std::filesystem::path& path,
                        const Application& application) {
  const auto& scope = config.scope.namespaces;
  if (scope.empty()) return {};
  for (size_t w = 0; w < application.objects.size(); ++w) {
    const WorkloadObject& object = application.objects[w];
    const bool inside = object.is_external() || std::find(scope.begin(), scope.end(),
                                                          object.object_namespace) != scope.end();
    if (inside) continue;
    return Fail(ErrorCode::kFailedPrecondition,
                "{}: `workloads.{}`: its namespace {} is outside of the scope of {}", path.string(),
                application.catalog->workloads[w].name, object.object_namespace,
                config.path.string());
  }
  return {};
}

std::string ScopeInWords(const Config& config) {
  if (config.cluster.is_simulated()) return "all of the simulated cluster";
  std::string text = config.scope.namespaces.empty()
                         ? "the namespaces of the applications"
                         : fmt::format("namespaces {}", fmt::join(config.scope.namespaces, ", "));
  if (!config.scope.pods.requirements.empty()) text += ", pods that the selector picks";
  return text;
}

std::string InWords(const SignalsConfig& signals) {
  return fmt::format("{} of {}, every {}{}{}; {} measured as latency{}", signals.queries.size(),
                     fmt::join(signals.urls, ", "), FormatDuration(signals.period),
                     signals.header_files.empty() ? "" : ", with headers from a file",
                     signals.ca_file.empty() ? "" : ", by " + signals.ca_file.string(),
                     signals.latencies.size(),
                     signals.staleness ? fmt::format(", nothing decided on one older than {}",
                                                     FormatDuration(*signals.staleness))
                                       : "");
}

std::string TouchesInWords(const Config& config) {
  const MigrationConfig& migration = *config.migration;
  if (migration.mode < Mode::kCanary) {
    return fmt::format("nothing{}: in {} moves are recorded, not made",
                       migration.mode == Mode::kAdvise ? " but Events of its plans" : "",
                       ModeName(migration.mode));
  }
  const std::string whose = migration.mode == Mode::kCanary
                                ? fmt::format("{:g} % of the workloads", 100 * migration.canary)
                                : "all workloads";
  if (config.cluster.is_simulated()) return fmt::format("pods of {}, simulated", whose);
  return fmt::format("pods of {}, {} at a time: a replacement serves before its pod is evicted",
                     whose, migration.moves.at_once);
}

}  // namespace

Result<MigrationPlan> MigrationPlan::Make(const Config& config) {
  MigrationPlan plan;
  plan.config_ = config;
  if (config.cluster.is_simulated()) {
    if (!config.signals.IsNull()) {
      return config.signals.Refuse("nothing measures a simulated cluster: leave it out");
    }
    TRY_ASSIGN(const Problem problem, Problem::Open(config.cluster.scenario));
    TRY_ASSIGN(std::vector<StartState> starts,
               DrawStarts(World(problem.scenario), config.cluster.seed, 1));
    TRY_ASSIGN(ApplicationOptions options,
               OptionsOf(config, problem.scenario->name, problem.law,
                         config.migration->objective.value_or(problem.task->options())));
    plan.parts_.push_back(
        {std::move(options), {.application = nullptr, .start = std::move(starts[0].state)}});
    return plan;
  }
  for (const std::filesystem::path& path : config.applications) {
    // Traces tell what is missing.
    const auto calls = config.traces.jaeger.empty() ? CallsInFile::kNeeded : CallsInFile::kOptional;
    TRY_ASSIGN(Application application, LoadApplication(path, calls));
    TRY(CheckScope(config, path, application));
    TRY_ASSIGN(const LatencyLaw law, LatencyLaw::Named(application.law));
    TRY_ASSIGN(ApplicationOptions options,
               OptionsOf(config, application.name, law,
                         config.migration->objective.value_or(MigrationOptions{})));
    options.evidence.model = FingerprintOf(application);
    for (const WorkloadObject& object : application.objects)
      options.guard.namespaces.push_back(object.object_namespace);
    const auto same = std::find_if(plan.parts_.begin(), plan.parts_.end(), [&](const Part& part) {
      return part.options.name == application.name;
    });
    if (same != plan.parts_.end()) {
      return Invalid("{}: another application is called {} as well", path.string(),
                     application.name);
    }
    const auto new_endpoints =
        application.calls->endpoints.empty() ? NewEndpoints::kAdd : NewEndpoints::kLeaveOut;
    plan.parts_.push_back(
        {std::move(options),
         {.application = std::make_shared<const Application>(std::move(application)), .start = {}},
         new_endpoints});
  }
  TRY(plan.ReadSignals());
  return plan;
}

// Each latency that is measured belongs to an endpoint that there is.
Result<void> MigrationPlan::ReadSignals() {
  TRY_ASSIGN(const SignalsConfig all, ParseSignals(config_.signals, config_.path.parent_path()));
  if (all.carbon && !config_.routing) {
    return config_.signals.Refuse(
        "`carbon` is of regions, and `decisions.routing` is missing: leave it out");
  }
  signals_ = all.Of(SignalsConfig::Whose::kCluster);
  TRY(CheckFiles(signals_));
  for (const LatencySignal& latency : signals_.latencies) {
    const auto part = std::find_if(parts_.begin(), parts_.end(), [&](const Part& one) {
      return one.options.name == latency.application;
    });
    if (part == parts_.end()) {
      return config_.signals.Refuse(fmt::format("`latency.{}`: no application is called \"{}\"",
                                                latency.signal, latency.application));
    }
    const auto& endpoints = part->watched.application->calls->endpoints;
    // Traces may show it later.
    const bool known = latency.endpoint.empty() || !config_.traces.jaeger.empty() ||
                       std::any_of(endpoints.begin(), endpoints.end(), [&](const Endpoint& one) {
                         return one.name == latency.endpoint;
                       });
    if (!known) {
      return config_.signals.Refuse(fmt::format("`latency.{}`: {} has no endpoint \"{}\"",
                                                latency.signal, latency.application,
                                                latency.endpoint));
    }
  }
  return {};
}

void MigrationPlan::SetApplication(size_t part, std::shared_ptr<const Application> application) {
  parts_[part].options.evidence.model = FingerprintOf(*application);
  parts_[part].watched.application = std::move(application);
}

std::vector<WatchedApplication> MigrationPlan::Watched() const {
  std::vector<WatchedApplication> watched;
  for (const Part& part : parts_) watched.push_back(part.watched);
  return watched;
}

// All applications have one policy and one objective.
ModeLadder::Settings MigrationPlan::LadderSettings() const {
  const ApplicationOptions& options = parts_.front().options;
  return {.mode = config_.migration->mode,
          .policy = options.policy_name,
          .objective = options.objective};
}

std::string MigrationPlan::Describe() const {
  const Config& config = config_;
  std::string text;
  const auto line = [&](std::string_view what, const std::string& value) {
    text += fmt::format("{:<14}{}\n", what, value);
  };
  line("scope", ScopeInWords(config));
  for (const Part& part : parts_) {
    const bool simulated = config.cluster.is_simulated();
    const State& start = part.watched.start;
    const Catalog& catalog = simulated ? *start.catalog : *part.watched.application->catalog;
    line("application",
         fmt::format(
             "{}: {} workloads{}, model {}", part.options.name, catalog.workload_count(),
             simulated ? fmt::format(", {} pods on {} nodes", start.pods.size(), start.nodes.size())
                       : "",
             part.options.law.name));
  }
  line("migration",
       fmt::format("{}; {} decides{}", ModeName(config.migration->mode), config.migration->policy,
                   config.migration->baseline.empty()
                       ? ""
                       : fmt::format("; baseline for comparison: {}", config.migration->baseline)));
  if (!signals_.urls.empty()) line("signals", InWords(signals_));
  if (const TracesConfig& traces = config.traces; !traces.jaeger.empty()) {
    line("traces", fmt::format("calls from {}: those of the last {}, every {}", traces.jaeger,
                               FormatDuration(traces.window), FormatDuration(traces.period)));
  }
  line(
      "budgets",
      fmt::format("at most {} moves a plan, {}; {}", config.migration->budgets.moves_per_plan,
                  config.migration->budgets.benefit_factor
                      ? fmt::format("a plan must gain {:g} times the cost of its steps",
                                    *config.migration->budgets.benefit_factor)
                      : "no minimum benefit",
                  fmt::format("a moved pod rests for {}",
                              FormatDuration(RestOfMovedPods(config.migration->budgets.pod_cooldown,
                                                             config.migration->rest)))));
  line("turn",
       fmt::format("looks every {}, plans an unchanged state again after {}, decides "
                   "nothing on a state older than {}",
                   FormatDuration(config.migration->interval),
                   FormatDuration(config.migration->rest), FormatDuration(config.staleness)));
  line("touches", TouchesInWords(config));
  return text;
}

}  // namespace rudderfish
