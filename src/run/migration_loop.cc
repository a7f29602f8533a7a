// SPDX-License-Identifier: Apache-2.0
#include "run/migration_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/json.h"
#include "base/log.h"
#include "base/units.h"
#include "policy/registry.h"
#include "run/host.h"
#include "scenario/application_file.h"
#include "sim/held_out.h"
#include "sim/problem.h"
#include "sim/world.h"

namespace rudderfish {
namespace {

OrderedJson JsonOf(const Terms& terms) {
  OrderedJson json;
  for (int i = 0; i < Terms::kCount; ++i) json[TermNames()[i]] = TermValue(terms, i);
  return json;
}

OrderedJson JsonOf(const LatencyFactors& factors) {
  return {{"execution", factors.execution},
          {"network", factors.network},
          {"transfer", factors.transfer},
          {"queueing", factors.queueing}};
}

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

// What stands for a workload outside of the cluster: no pod and no node that kubectl shows.
struct Outside {
  int nodes = 0, pods = 0;
};

Outside OutsideOf(const Application* application, const State& state) {
  Outside outside;
  if (application == nullptr || state.names == nullptr) return outside;
  std::set<NodeId> nodes;
  for (PodId pod = 0; pod < state.pods.size(); ++pod) {
    if (!application->objects[state.pods.workload[pod]].is_external()) continue;
    ++outside.pods;
    nodes.insert(state.pods.node[pod]);
  }
  outside.nodes = static_cast<int>(nodes.size());
  return outside;
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
    TRY_ASSIGN(Application application, LoadApplication(path));
    TRY(CheckScope(config, path, application));
    TRY_ASSIGN(const LatencyLaw law, LatencyLaw::Named(application.law));
    TRY_ASSIGN(ApplicationOptions options,
               OptionsOf(config, application.name, law,
                         config.migration->objective.value_or(MigrationOptions{})));
    options.evidence.model = FingerprintOf(application);
    const auto same = std::find_if(plan.parts_.begin(), plan.parts_.end(), [&](const Part& part) {
      return part.options.name == application.name;
    });
    if (same != plan.parts_.end()) {
      return Invalid("{}: another application is called {} as well", path.string(),
                     application.name);
    }
    plan.parts_.push_back(
        {std::move(options),
         {.application = std::make_shared<const Application>(std::move(application)),
          .start = {}}});
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
    const bool known = latency.endpoint.empty() ||
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
  line("budgets",
       fmt::format("at most {} moves a plan, {}; {}", config.migration->budgets.moves_per_plan,
                   config.migration->budgets.benefit_factor
                       ? fmt::format("a plan must gain {:g} times the cost of its steps",
                                     *config.migration->budgets.benefit_factor)
                       : "no minimum benefit",
                   config.migration->budgets.pod_cooldown.count() > 0
                       ? fmt::format("cooldown {} per moved pod",
                                     FormatDuration(config.migration->budgets.pod_cooldown))
                       : "no cooldown"));
  line("turn",
       fmt::format("looks every {}, plans an unchanged state again after {}, decides "
                   "nothing on a state older than {}",
                   FormatDuration(config.migration->interval),
                   FormatDuration(config.migration->rest), FormatDuration(config.staleness)));
  line("touches", TouchesInWords(config));
  return text;
}

Result<std::unique_ptr<MigrationLoop>> MigrationLoop::Start(MigrationPlan plan, Host* host) {
  std::unique_ptr<MigrationLoop> loop(new MigrationLoop(std::move(plan), host));
  loop->evidence_ = std::make_unique<MigrationModeEvidence>(host->journal());
  TRY_ASSIGN(loop->ladder_, ModeLadder::Open(kMigrationLadder, loop->plan_.LadderSettings(),
                                             loop->evidence_.get(), host->journal()));
  if (host->client() != nullptr) TRY(loop->OpenMoves());
  loop->cluster_ = WatchedCluster::Open(loop->config(), host->clock(),
                                        {.feed = host->feed(),
                                         .telling = host->telling(),
                                         .moves = loop->moves_.get(),
                                         .identity = host->identity()},
                                        loop->plan_.Watched());
  return loop;
}

Result<void> MigrationLoop::OpenMoves() {
  TRY_ASSIGN(auto client, kube::ApiClient::Open(host_->client()->access(), clock_));
  moves_ = std::make_unique<MoveDriver>(std::move(client), config().migration->moves);
  return {};
}

bool MigrationLoop::AnyMoves() const {
  return std::any_of(runs_.begin(), runs_.end(), [](const auto& run) { return run->is_moving(); });
}

MigrationLoop::MigrationLoop(MigrationPlan plan, Host* host)
    : plan_(std::move(plan)),
      host_(host),
      clock_(host->clock()),
      fenced_(host->journal(), host->journal(),
              {.leads = [this] { return host_->Leads(); },
               .on_row = [this](const JournalRow& row) { TakeRow(row); }}),
      corrector_(host->journal()),
      due_(clock_->Now()) {}

Result<void> MigrationLoop::Begin() {
  if (const std::vector<std::string> missing = cluster_->Missing(); !missing.empty()) {
    LogWarning("not seen: {}", fmt::join(missing, ", "));
  }
  MakeRuns();
  return {};
}

void MigrationLoop::MakeRuns() {
  runs_.clear();
  corrector_ = ModelCorrector(host_->journal());
  ledger_.Clear();
  std::vector<std::string> names;
  for (size_t i = 0; i < plan_.parts().size(); ++i) {
    ApplicationOptions options = plan_.parts()[i].options;
    options.ledger = &ledger_;
    names.push_back(options.name);
    runs_.push_back(std::make_unique<ApplicationRun>(options, cluster_->Of(i), cluster_->ActedOn(i),
                                                     &fenced_, &fenced_));
  }
  RecallMoves();
  evidence_->Watch(std::move(names));
  told_.assign(runs_.size(), "");
  next_ = 0;
  goes_on_ = false;
  signals_ = std::make_unique<SignalSource>(plan_.signals(), clock_);
}

// A restart or a reload forgets no cooldown, as far as the journal has it.
void MigrationLoop::RecallMoves() {
  const GuardOptions& budgets = config().migration->budgets;
  const auto kept = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::max<Duration>(budgets.return_cooldown, std::chrono::hours(1)));
  for (const auto& run : runs_) {
    Result<std::vector<EarlierMove>> moves =
        host_->journal()->MovesSince(run->name(), UnixNow() - kept.count());
    if (moves) {
      run->Recall(*std::move(moves));
    } else {
      LogWarning("{}: moves of the last hour are not known: {}", run->name(),
                 moves.error().message);
    }
  }
}

void MigrationLoop::AskSignals() {
  if (plan_.signals().urls.empty()) return;
  SignalEntities entities;
  for (size_t i = 0; i < runs_.size(); ++i) {
    const State& state = runs_[i]->state();
    if (state.names == nullptr) continue;  // Not seen yet.
    AddEntities(*plan_.parts()[i].watched.application, state, &entities);
  }
  signals_->Turn(entities);
}

SwitchedKind MigrationLoop::Kind() const {
  return {.name = kMigrationLadder.name, .configured = ladder_->mode()};
}

// What was resumed, or has come to lead, does not wait for its next turn.
void MigrationLoop::FollowMode() {
  const Mode mode = host_->Leads() ? host_->switches().Effective(ladder_->mode()) : Mode::kOff;
  // Outside of its windows it advises. A move that has begun goes on.
  const bool may_move = window_.IsOpen(config().migration->windows, UnixNow());
  const Mode before = std::exchange(mode_, may_move ? mode : std::min(mode, Mode::kAdvise));
  if (mode_ != before) due_ = clock_->Now();
  if (moves_ == nullptr) return;
  moves_->Say(!host_->Leads()         ? MoveDriver::Word::kNothing
              : mode >= Mode::kCanary ? MoveDriver::Word::kAct
                                      : MoveDriver::Word::kUndo);
}

void MigrationLoop::EndActing() {
  if (moves_ == nullptr) return;
  moves_->Finish(kUndoLimit);
  for (const auto& run : runs_) {
    // Once more, for what has ended meanwhile.
    if (run->is_moving()) static_cast<void>(run->Turn(Mode::kOff, {}));
  }
  AbandonRuns("the process ended before the move");
}

// What is under way goes on without them.
void MigrationLoop::AbandonRuns(std::string_view why) {
  for (const auto& run : runs_) {
    if (const Result<void> done = run->Abandon(why); !done)
      LogError("{}: {}", run->name(), done.error().message);
  }
}

Result<void> MigrationLoop::Reload(MigrationPlan plan) {
  AbandonRuns("the configuration was reloaded during the move");
  plan_ = std::move(plan);
  window_.Forget();
  runs_.clear();
  if (moves_ != nullptr) moves_->Configure(config().migration->moves);
  cluster_->Watch(plan_.Watched(), plan_.config());
  MakeRuns();
  due_ = clock_->Now();
  return ladder_->Configure(plan_.LadderSettings());
}

// One application a turn: the other kinds of decision wait for no more than one of its decisions.
bool MigrationLoop::Turn() {
  if (next_ == 0) AskSignals();
  FollowMode();
  ApplicationRun& run = *runs_[next_];
  const int64_t plans = run.status().plans;
  const Result<bool> turned =
      run.Turn(mode_, signals_->Readings(run.name()), [this] { return WhyNoDecision(next_); });
  goes_on_ = turned.value_or(false) || goes_on_;
  if (run.status().plans > plans) EndPlan(next_);
  if (config().migration->correction == Correction::kApply && host_->Leads())
    corrector_.Follow(&run);
  TellProblem(run);
  next_ = (next_ + 1) % runs_.size();
  if (next_ != 0) return true;
  const bool goes_on = std::exchange(goes_on_, false);
  if (!goes_on) due_ = clock_->Now() + plan_.config().migration->interval;
  return goes_on;
}

std::string MigrationLoop::WhyNoDecision(size_t run) const {
  std::string why = signals_->WhyTooOld(runs_[run]->name());
  return why.empty() ? cluster_->WhyBusy(run) : why;
}

// Once when it comes and once when it goes.
void MigrationLoop::TellProblem(const ApplicationRun& run) {
  const auto at =
      std::find_if(runs_.begin(), runs_.end(), [&](const auto& one) { return one.get() == &run; });
  std::string& told = told_[static_cast<size_t>(at - runs_.begin())];
  const std::string& problem = run.status().problem;
  if (problem.empty() == told.empty()) return;
  if (problem.empty()) {
    LogInfo("{}: goes on", run.name());
  } else {
    LogError("{}: {}", run.name(), problem);
  }
  told = problem;
}

std::chrono::milliseconds MigrationLoop::UntilDue() const {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(due_ - clock_->Now());
  return std::max(left, std::chrono::milliseconds(0));
}

OrderedJson MigrationLoop::Status() const {
  const Config& config = plan_.config();
  OrderedJson json{{"policy", config.migration->policy},
                   {"baseline", config.migration->baseline},
                   {"not_seen", cluster_->Missing()},
                   {"signals", JsonOf(signals_->Standings())},
                   {"signal_troubles", signals_->Troubles()}};
  json["window"] = window_.Status(config.migration->windows, UnixNow());
  json["moves"] = OrderedJson::array();
  for (const MoveDriver::Standing& one :
       moves_ == nullptr ? std::vector<MoveDriver::Standing>() : moves_->Standings()) {
    json["moves"].push_back({{"id", one.move.id},
                             {"pod", one.pod},
                             {"workload", one.move.workload},
                             {"from", one.node},
                             {"to", one.move.target},
                             {"step", StepName(one.move.step)},
                             {"begun_ms", one.move.begun},
                             {"why", one.why}});
  }
  json["applications"] = OrderedJson::array();
  for (size_t i = 0; i < runs_.size(); ++i) {
    const ApplicationRun& run = *runs_[i];
    const ApplicationStatus& status = run.status();
    const Outside outside = OutsideOf(plan_.parts()[i].watched.application.get(), run.state());
    json["applications"].push_back(
        {{"name", run.name()},
         {"nodes", status.nodes - outside.nodes},
         {"pods", status.pods - outside.pods},
         {"outside_of_the_cluster", outside.pods},
         {"pending", status.pending},
         {"state_age_s", Seconds(cluster_->Of(i)->Now() - run.state().at)},
         {"model", run.options().law.name},
         {"factors", JsonOf(run.factors())},
         {"seen", JsonOf(status.seen)},
         {"planned", status.plans == 0 ? OrderedJson(nullptr) : JsonOf(status.planned)},
         {"plans", status.plans},
         {"decisions", status.decisions},
         {"moves_recorded", status.moves},
         {"moved", status.moved},
         {"not_moved", status.not_moved},
         {"changes_seen", run.evidence().changes_seen()},
         {"changes_unmeasured", run.evidence().changes_unmeasured()},
         {"waiting_for_measurements", run.evidence().waiting()},
         {"problem", status.problem}});
  }
  return json;
}

}  // namespace rudderfish
