// SPDX-License-Identifier: Apache-2.0
#include "run/control_loop.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/json.h"
#include "base/log.h"
#include "base/units.h"
#include "base/version.h"
#include "evaluation/evaluation.h"
#include "evaluation/problem.h"
#include "policy/registry.h"
#include "scenario/application_file.h"
#include "sim/world.h"

namespace rudderfish {
namespace {

constexpr std::chrono::minutes kBetweenTrims(10);

OrderedJson JsonOf(const Terms& terms) {
  OrderedJson json;
  for (int i = 0; i < Terms::kCount; ++i) json[TermNames()[i]] = TermValue(terms, i);
  return json;
}

OrderedJson JsonOf(const std::vector<SignalStanding>& standings) {
  OrderedJson list = OrderedJson::array();
  for (const SignalStanding& one : standings) {
    list.push_back({{"name", one.name},
                    {"values", one.values},
                    {"age_s", one.age_s ? OrderedJson(*one.age_s) : OrderedJson(nullptr)},
                    {"trouble", one.trouble}});
  }
  return list;
}

std::string Dump(const OrderedJson& json) {
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
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
                             .guard = config.budgets,
                             .rest = config.rest,
                             .staleness = config.staleness};
  const DecisionConfig& migration = config.migration;
  TRY_ASSIGN(options.policy, PolicyNamed(migration.policy, migration.policy_node, *options.task));
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

}  // namespace

Result<ControlPlan> ControlPlan::Make(const Config& config) {
  ControlPlan plan;
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
                         config.objective.value_or(problem.task->options())));
    plan.parts_.push_back(
        {std::move(options), {.application = nullptr, .start = std::move(starts[0].state)}});
    return plan;
  }
  for (const std::filesystem::path& path : config.applications) {
    TRY_ASSIGN(Application application, LoadApplication(path));
    TRY(CheckScope(config, path, application));
    TRY_ASSIGN(const LatencyLaw law, LatencyLaw::Named(application.law));
    TRY_ASSIGN(
        ApplicationOptions options,
        OptionsOf(config, application.name, law, config.objective.value_or(MigrationOptions{})));
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
Result<void> ControlPlan::ReadSignals() {
  TRY_ASSIGN(signals_, ParseSignals(config_.signals, config_.path.parent_path()));
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

std::vector<WatchedApplication> ControlPlan::Watched() const {
  std::vector<WatchedApplication> watched;
  for (const Part& part : parts_) watched.push_back(part.watched);
  return watched;
}

std::string ControlPlan::Describe() const {
  const Config& config = config_;
  std::string text;
  const auto line = [&](std::string_view what, const std::string& value) {
    text += fmt::format("{:<14}{}\n", what, value);
  };
  const std::string context =
      config.cluster.context.empty() ? "" : fmt::format(", context {}", config.cluster.context);
  line("cluster", config.cluster.is_simulated()
                      ? fmt::format("simulated from {}, seed {}", config.cluster.scenario.string(),
                                    config.cluster.seed)
                  : config.cluster.kubeconfig.empty()
                      ? fmt::format("live, as kubectl finds it{}", context)
                      : fmt::format("live, {}{}", config.cluster.kubeconfig.string(), context));
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
       fmt::format("{}; {} decides{}", ModeName(config.migration.mode), config.migration.policy,
                   config.migration.baseline.empty()
                       ? ""
                       : fmt::format(", {} is asked beside it", config.migration.baseline)));
  if (!signals_.urls.empty()) line("signals", InWords(signals_));
  line("budgets", fmt::format("at most {} moves a plan, {}; {}", config.budgets.moves_per_plan,
                              config.budgets.benefit_factor
                                  ? fmt::format("each must win {:g} times what a step costs",
                                                *config.budgets.benefit_factor)
                                  : "whatever each wins",
                              config.budgets.pod_cooldown.count() > 0
                                  ? fmt::format("a pod that was moved rests for {}",
                                                FormatDuration(config.budgets.pod_cooldown))
                                  : "no pod rests after a move"));
  line("turn", fmt::format("looks every {}, plans an unchanged state again after {}, decides "
                           "nothing on a state older than {}",
                           FormatDuration(config.interval), FormatDuration(config.rest),
                           FormatDuration(config.staleness)));
  line("journal", fmt::format("{}, kept {}, at most {}", config.journal.path.string(),
                              FormatDuration(config.journal.retention),
                              FormatBytes(config.journal.size_bytes)));
  line("socket", config.server.socket.string());
  if (!config.server.listen.empty()) {
    line("server", fmt::format("{}: /livez, /readyz, /metrics", config.server.listen));
  }
  const LeaderElectionConfig& election = config.leader_election;
  const std::string lease = fmt::format("{}/{}", election.lease_namespace, election.lease_name);
  if (election.is_on()) {
    line("leader", fmt::format("who holds the Lease {} of {}; others look on", lease,
                               FormatDuration(election.duration)));
  }
  const std::string own = fmt::format(
      "{}{}", election.is_on() ? fmt::format(" but the Lease {}", lease) : "",
      config.events ? fmt::format(" {} Events of its plans", election.is_on() ? "and" : "but")
                    : "");
  line("touches", fmt::format("nothing{}: in shadow moves are recorded, not made", own));
  return text;
}

Result<std::unique_ptr<ControlLoop>> ControlLoop::Start(ControlPlan plan, ControlServer* server) {
  const JournalConfig& journal = plan.config().journal;
  TRY_ASSIGN(std::unique_ptr<SqliteJournal> opened,
             SqliteJournal::Open(
                 journal.path, {.retention = journal.retention, .size_bytes = journal.size_bytes}));
  std::unique_ptr<ControlLoop> loop(new ControlLoop(std::move(plan), std::move(opened), server));
  TRY_ASSIGN(loop->reader_, JournalReader::Open(loop->config().journal.path));
  TRY_ASSIGN(loop->standing_, SharedStanding::Open({.kind = "migration",
                                                    .journal = loop->journal_.get(),
                                                    .switches = &loop->switches_}));
  TRY(loop->Connect());
  return loop;
}

ControlLoop::ControlLoop(ControlPlan plan, std::unique_ptr<SqliteJournal> journal,
                         ControlServer* server)
    : plan_(std::move(plan)),
      server_(server),
      metrics_(server->metrics()),
      journal_(std::move(journal)),
      fenced_(journal_.get(), journal_.get(),
              {.leads = [this] { return cluster_->Leads(); },
               .on_row = [this](const JournalRow& row) { TakeRow(row); }}),
      started_(clock_.Now()),
      due_(started_),
      trimmed_(started_),
      started_at_(UnixNow()) {}

Result<void> ControlLoop::Connect() {
  const auto on_control = [this](const kube::ConfigMapWatch::Said& said) { TakeControl(said); };
  TRY_ASSIGN(cluster_, WatchedCluster::Open(plan_.config(), &clock_, plan_.Watched(), on_control,
                                            [this] { server_->Beat(); }));
  if (const std::vector<std::string> missing = cluster_->Missing(); !missing.empty()) {
    LogWarning("not seen: {}", fmt::join(missing, ", "));
  }
  MakeRuns();
  return {};
}

void ControlLoop::MakeRuns() {
  runs_.clear();
  for (size_t i = 0; i < plan_.parts().size(); ++i) {
    runs_.push_back(std::make_unique<ApplicationRun>(plan_.parts()[i].options, cluster_->Of(i),
                                                     &fenced_, &fenced_));
  }
  told_.assign(runs_.size(), "");
  signals_ = std::make_unique<SignalSource>(plan_.signals(), &clock_);
}

void ControlLoop::AskSignals() {
  if (plan_.signals().urls.empty()) return;
  SignalEntities entities;
  for (size_t i = 0; i < runs_.size(); ++i) {
    const State& state = runs_[i]->state();
    if (state.names == nullptr) continue;  // Not seen yet.
    AddEntities(*plan_.parts()[i].watched.application, state, &entities);
  }
  signals_->Turn(entities);
}

SwitchedKind ControlLoop::Kind() const {
  return {.name = "migration", .configured = plan_.config().migration.mode};
}

void ControlLoop::TakeControl(const kube::ConfigMapWatch::Said& said) {
  control_problem_ = ObeyConfigMap(said, Kind(), &switches_);
  due_ = clock_.Now();
}

void ControlLoop::Reload(ControlPlan plan) {
  plan_ = std::move(plan);
  runs_.clear();
  cluster_->Watch(plan_.Watched(), plan_.config());
  MakeRuns();
  due_ = clock_.Now();
}

bool ControlLoop::Turn() {
  const Instant now = clock_.Now();
  if (now - trimmed_ >= kBetweenTrims) {
    trimmed_ = now;
    if (const Result<void> trimmed = journal_->Trim(); !trimmed) {
      LogError("{}", trimmed.error().message);
    }
  }
  AskSignals();
  switches_.Hold(cluster_->WhyControlIsUnread());
  const Mode mode =
      cluster_->Leads() ? switches_.Effective(plan_.config().migration.mode) : Mode::kOff;
  bool goes_on = false;
  for (size_t i = 0; i < runs_.size(); ++i) {
    ApplicationRun& run = *runs_[i];
    const int64_t plans = run.status().plans;
    const Result<bool> turned =
        run.Turn(mode, signals_->Readings(run.name()), signals_->WhyTooOld(run.name()));
    goes_on = goes_on || turned.value_or(false);
    if (run.status().plans > plans) EndPlan(i);
    TellProblem(run);
  }
  metrics_.CountTurn(Seconds(clock_.Now() - now));
  if (!goes_on) due_ = clock_.Now() + plan_.config().interval;
  return goes_on;
}

// Once when it comes and once when it goes.
void ControlLoop::TellProblem(const ApplicationRun& run) {
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

std::chrono::milliseconds ControlLoop::UntilDue() const {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(due_ - clock_.Now());
  return std::max(left, std::chrono::milliseconds(0));
}

std::string ControlLoop::Answer(std::string_view request) {
  if (request == "status") return Status();
  due_ = clock_.Now();
  std::string answer = AnswerSwitch(request, Kind(), &switches_);
  const Result<void> kept = standing_->NotePause();
  return kept ? answer : WithWarning(answer, "this is not kept: " + kept.error().message);
}

std::string ControlLoop::Status() const {
  const Config& config = plan_.config();
  const Mode configured = config.migration.mode;
  const Seat seat = cluster_->GetSeat();
  OrderedJson json{
      {"schema_version", 1},
      {"version", ProgramVersion()},
      {"pid", ::getpid()},
      {"started_at_ms", started_at_},
      {"uptime_s", Seconds(clock_.Now() - started_)},
      {"config", config.path.string()},
      {"cluster", cluster_->Name()},
      {"not_seen", cluster_->Missing()},
      {"control_problem", control_problem_},
      {"signals", JsonOf(signals_->Standings())},
      {"signal_troubles", signals_->Troubles()},
      {"journal", config.journal.path.string()},
      {"configured_mode", ModeName(configured)},
      {"mode", ModeName(switches_.Effective(configured))},
      {"paused", switches_.paused()},
      {"killed", switches_.killed()},
      {"why", switches_.Why(configured)},
      {"paused_since_ms",
       standing_->pause().is_on() ? OrderedJson(standing_->pause().since) : OrderedJson(nullptr)},
      {"paused_by", standing_->pause().by},
      {"leads", cluster_->Leads()},
      {"lease", config.leader_election.is_on()
                    ? fmt::format("{}/{}", config.leader_election.lease_namespace,
                                  config.leader_election.lease_name)
                    : ""},
      {"identity", seat.identity},
      {"leader", seat.holder},
      {"leader_problem", seat.trouble},
      {"policy", config.migration.policy},
      {"baseline", config.migration.baseline}};
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
         {"seen", JsonOf(status.seen)},
         {"planned", status.plans == 0 ? OrderedJson(nullptr) : JsonOf(status.planned)},
         {"plans", status.plans},
         {"decisions", status.decisions},
         {"moves_recorded", status.moves},
         {"changes_seen", run.evidence().changes_seen()},
         {"changes_unmeasured", run.evidence().changes_unmeasured()},
         {"waiting_for_measurements", run.evidence().waiting()},
         {"problem", status.problem}});
  }
  return Dump(json);
}

}  // namespace rudderfish
