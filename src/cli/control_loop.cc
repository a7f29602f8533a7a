// SPDX-License-Identifier: Apache-2.0
#include "cli/control_loop.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/log.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/problem.h"
#include "evaluation/evaluation.h"
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

std::string Dump(const OrderedJson& json) {
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

Result<ApplicationOptions> OptionsOf(const Config& config, std::string name, const LatencyLaw& law,
                                     const MigrationOptions& objective) {
  ApplicationOptions options{.name = std::move(name),
                             .task = std::make_shared<const MigrationTask>(objective),
                             .law = law,
                             .guard = config.budgets,
                             .rest = config.rest,
                             .staleness = config.staleness};
  TRY_ASSIGN(options.policy, MakePolicy(config.migration.policy, *options.task));
  if (!config.migration.baseline.empty()) {
    TRY_ASSIGN(options.baseline, MakePolicy(config.migration.baseline, *options.task));
  }
  return options;
}

std::string ScopeInWords(const Config& config) {
  if (config.cluster.is_simulated()) return "all of the simulated cluster";
  std::string text = config.scope.namespaces.empty()
                         ? "the namespaces of the applications"
                         : fmt::format("namespaces {}", fmt::join(config.scope.namespaces, ", "));
  if (!config.scope.pods.requirements.empty()) text += ", pods that the selector picks";
  return text;
}

}  // namespace

Result<ControlPlan> ControlPlan::Make(const Config& config) {
  ControlPlan plan;
  plan.config_ = config;
  if (config.cluster.is_simulated()) {
    TRY_ASSIGN(const Problem problem, Problem::Open(config.cluster.scenario));
    TRY_ASSIGN(std::vector<StartState> starts,
               DrawStarts(World(problem.scenario), config.cluster.seed, 1));
    TRY_ASSIGN(ApplicationOptions options,
               OptionsOf(config, problem.scenario->name, problem.law,
                         config.objective.value_or(problem.task->options())));
    plan.parts_.push_back({std::move(options), std::move(starts[0].state)});
    return plan;
  }
  return Fail(ErrorCode::kFailedPrecondition, "{}: `cluster`: name a scenario",
              config.path.string());
}

std::string ControlPlan::Describe() const {
  const Config& config = config_;
  std::string text;
  const auto line = [&](std::string_view what, const std::string& value) {
    text += fmt::format("{:<14}{}\n", what, value);
  };
  line("cluster", config.cluster.is_simulated()
                      ? fmt::format("simulated from {}, seed {}", config.cluster.scenario.string(),
                                    config.cluster.seed)
                      : "live");
  line("scope", ScopeInWords(config));
  for (const Part& part : parts_) {
    line("application",
         fmt::format("{}: {} workloads, {} pods on {} nodes, model {}", part.options.name,
                     part.start.catalog->workload_count(), part.start.pods.size(),
                     part.start.nodes.size(), part.options.law.name));
  }
  line("migration",
       fmt::format("{}; {} decides{}", ModeName(config.migration.mode), config.migration.policy,
                   config.migration.baseline.empty()
                       ? ""
                       : fmt::format(", {} is asked beside it", config.migration.baseline)));
  line("budgets",
       fmt::format("at most {} moves a plan, each worth {}; a pod rests {}",
                   config.budgets.moves_per_plan,
                   config.budgets.benefit_factor
                       ? fmt::format("{:g} times its step", *config.budgets.benefit_factor)
                       : "anything",
                   FormatDuration(config.budgets.pod_cooldown)));
  line("turn", fmt::format("looks every {}, plans an unchanged state again after {}, decides "
                           "nothing on a state older than {}",
                           FormatDuration(config.interval), FormatDuration(config.rest),
                           FormatDuration(config.staleness)));
  line("journal", fmt::format("{}, kept {}, at most {}", config.journal.path.string(),
                              FormatDuration(config.journal.retention),
                              FormatBytes(config.journal.size_bytes)));
  line("socket", config.server.socket.string());
  line("touches", "nothing: in shadow moves are recorded, not made");
  return text;
}

Result<std::unique_ptr<ControlLoop>> ControlLoop::Start(ControlPlan plan) {
  const JournalConfig& journal = plan.config().journal;
  TRY_ASSIGN(std::unique_ptr<SqliteJournal> opened,
             SqliteJournal::Open(
                 journal.path, {.retention = journal.retention, .size_bytes = journal.size_bytes}));
  return std::unique_ptr<ControlLoop>(new ControlLoop(std::move(plan), std::move(opened)));
}

ControlLoop::ControlLoop(ControlPlan plan, std::unique_ptr<SqliteJournal> journal)
    : plan_(std::move(plan)),
      journal_(std::move(journal)),
      started_(clock_.Now()),
      due_(started_),
      advanced_(started_),
      drifted_(started_),
      trimmed_(started_),
      started_at_(UnixNow()) {
  for (const ControlPlan::Part& part : plan_.parts()) {
    clusters_.push_back(std::make_unique<SimCluster>(part.start));
  }
  MakeRuns();
}

void ControlLoop::MakeRuns() {
  runs_.clear();
  for (size_t i = 0; i < clusters_.size(); ++i) {
    runs_.push_back(std::make_unique<ApplicationRun>(plan_.parts()[i].options, clusters_[i].get(),
                                                     journal_.get(), journal_.get()));
  }
  told_.assign(runs_.size(), "");
}

void ControlLoop::Reload(ControlPlan plan) {
  plan_ = std::move(plan);
  MakeRuns();
  due_ = clock_.Now();
}

// Somebody else moves a pod: what happens in a real cluster without us.
void ControlLoop::Drift() {
  for (const auto& cluster : clusters_) {
    const State& state = cluster->state();
    Rng rng(plan_.config().cluster.seed, ++drifts_);
    for (int attempt = 0; attempt < 100; ++attempt) {
      const auto pod = static_cast<PodId>(rng.Below(static_cast<uint32_t>(state.pods.size())));
      const auto to = static_cast<NodeId>(rng.Below(static_cast<uint32_t>(state.nodes.size())));
      const bool accepts = state.catalog->layers[state.kind_of(to).layer].accepts_moves;
      if (!state.workload_of(pod).movable || !accepts) continue;
      const NodeId from = state.pods.node[pod];
      const Intent intent{Migrate{pod, from, to}, {.state_version = 0, .pod_was_on = from}};
      Completions completions;
      cluster->Submit({&intent, 1}, &completions);
      if (completions[0].outcome) break;
    }
  }
}

bool ControlLoop::Turn() {
  const Instant now = clock_.Now();
  for (const auto& cluster : clusters_) cluster->Advance(now - advanced_);
  advanced_ = now;
  const std::chrono::nanoseconds drift = plan_.config().cluster.drift;
  if (drift.count() > 0 && now - drifted_ >= drift) {
    drifted_ = now;
    Drift();
  }
  if (now - trimmed_ >= kBetweenTrims) {
    trimmed_ = now;
    if (const Result<void> trimmed = journal_->Trim(); !trimmed) {
      LogError("{}", trimmed.error().message);
    }
  }
  const Mode mode = switches_.Effective(plan_.config().migration.mode);
  bool goes_on = false;
  for (const auto& run : runs_) {
    const Result<bool> turned = run->Turn(mode, {});
    goes_on = goes_on || turned.value_or(false);
    TellProblem(*run);
  }
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

std::string ControlLoop::Wished(const Wish& wish, std::string_view what) {
  switches_.Set(ModeSwitch::Source::kSocket, wish);
  due_ = clock_.Now();
  LogInfo("{} by the command line", what);
  const Mode configured = plan_.config().migration.mode;
  return Dump({{"ok", true},
               {"mode", ModeName(switches_.Effective(configured))},
               {"why", switches_.Why(configured)}});
}

std::string ControlLoop::Answer(std::string_view request) {
  Wish wish = switches_.wish(ModeSwitch::Source::kSocket);
  if (request == "status") return Status();
  if (request == "pause") {
    wish.paused = true;
    return Wished(wish, "paused");
  }
  if (request == "resume") {
    wish.paused = false;
    return Wished(wish, "resumed");
  }
  if (request == "kill") {
    wish.killed = true;
    return Wished(wish, "killed");
  }
  if (request.starts_with("mode ")) {
    const Result<Mode> mode = AvailableModeNamed(request.substr(5));
    if (!mode) return Dump({{"error", mode.error().message}});
    wish.mode = *mode;
    return Wished(wish, fmt::format("held at {}", ModeName(*mode)));
  }
  return Dump({{"error", "unknown request; there are status, pause, resume, kill, mode MODE"}});
}

std::string ControlLoop::Status() const {
  const Config& config = plan_.config();
  const Mode configured = config.migration.mode;
  OrderedJson json{
      {"version", ProgramVersion()},
      {"pid", ::getpid()},
      {"started_at_ms", started_at_},
      {"uptime_seconds", Seconds(clock_.Now() - started_)},
      {"config", config.path.string()},
      {"cluster", config.cluster.is_simulated()
                      ? fmt::format("simulated from {}", config.cluster.scenario.string())
                      : "live"},
      {"journal", config.journal.path.string()},
      {"configured_mode", ModeName(configured)},
      {"mode", ModeName(switches_.Effective(configured))},
      {"paused", switches_.paused()},
      {"killed", switches_.killed()},
      {"why", switches_.Why(configured)},
      {"policy", config.migration.policy},
      {"baseline", config.migration.baseline}};
  json["applications"] = OrderedJson::array();
  for (size_t i = 0; i < runs_.size(); ++i) {
    const ApplicationRun& run = *runs_[i];
    const ApplicationStatus& status = run.status();
    json["applications"].push_back(
        {{"name", run.name()},
         {"nodes", status.nodes},
         {"pods", status.pods},
         {"pending", status.pending},
         {"state_age_seconds", Seconds(clusters_[i]->Now() - run.state().at)},
         {"model", run.options().law.name},
         {"seen", JsonOf(status.seen)},
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
