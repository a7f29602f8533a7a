// SPDX-License-Identifier: Apache-2.0
#include "run/migration_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <utility>

#include "base/json.h"
#include "base/log.h"
#include "base/units.h"

namespace rudderfish {
namespace {

constexpr std::chrono::seconds kBetweenMeasures(10);  // Of the journal: it is counted.
constexpr uintmax_t kDiskBytesMin = 1 << 20;
constexpr std::chrono::seconds kUnseenGrace(1);
constexpr std::chrono::milliseconds kBetweenLooksAtMoves(500);
constexpr std::chrono::milliseconds kBetweenLooksAtThoughts(5);

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

OrderedJson JsonOf(const TraceStanding& standing) {
  return {{"read_ms", standing.read_at},
          {"traces", standing.traces},
          {"changes", standing.changes},
          {"last_change", standing.last_change},
          {"trouble", standing.trouble}};
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

using Runs = std::vector<std::unique_ptr<ApplicationRun>>;

bool AnyMoves(const Runs& runs) {
  return std::any_of(runs.begin(), runs.end(), [](const auto& run) { return run->is_moving(); });
}

bool AnyThinking(const Runs& runs) {
  return std::any_of(runs.begin(), runs.end(), [](const auto& run) { return run->is_thinking(); });
}

// What is under way goes on without them.
void AbandonRuns(const Runs& runs, std::string_view why) {
  for (const auto& run : runs) {
    if (const Result<void> done = run->Abandon(why); !done)
      LogError("{}: {}", run->name(), done.error().message);
  }
}

// A restart or a reload forgets no cooldown, as far as the journal has it.
void RecallMoves(const GuardOptions& budgets, SqliteMoves* journal, const Runs& runs) {
  const auto kept = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::max({budgets.return_cooldown, budgets.pod_cooldown, Duration(std::chrono::hours(1))}));
  for (const auto& run : runs) {
    Result<std::vector<EarlierMove>> moves =
        journal->MovesSince(run->name(), UnixNow() - kept.count());
    if (moves) {
      run->Recall(*std::move(moves));
    } else {
      LogWarning("{}: moves of the last hour are not known: {}", run->name(),
                 moves.error().message);
    }
  }
}

}  // namespace

Result<std::unique_ptr<MigrationLoop>> MigrationLoop::Start(MigrationPlan plan, HostParts* host) {
  std::unique_ptr<MigrationLoop> loop(new MigrationLoop(std::move(plan), host));
  loop->evidence_ = std::make_unique<MigrationModeEvidence>(host->journal->moves());
  TRY_ASSIGN(loop->ladder_, ModeLadder::Open(kMigrationLadder, loop->plan_.LadderSettings(),
                                             loop->evidence_.get(), host->journal->modes()));
  if (host->own.client != nullptr) {
    TRY_ASSIGN(auto client, kube::ApiClient::Open(host->own.client->access(), host->clock));
    loop->moves_ = std::make_unique<MoveDriver>(std::move(client), loop->config().migration->moves);
  }
  loop->cluster_ = WatchedCluster::Open(loop->config(), host->clock,
                                        {.feed = host->own.feed.get(),
                                         .telling = host->own.telling.get(),
                                         .moves = loop->moves_.get(),
                                         .identity = host->identity},
                                        loop->plan_.Watched());
  return loop;
}

MigrationLoop::MigrationLoop(MigrationPlan plan, HostParts* host)
    : plan_(std::move(plan)),
      host_(host),
      clock_(host->clock),
      fenced_(host->journal->moves(), host->journal->moves(),
              {.leads = [this] { return host_->Leads(); },
               .on_row = [this](const JournalRow& row) { TakeRow(row); }}),
      left_(&fenced_, host->journal_health.get()),
      corrector_(host->journal->moves()),
      due_(clock_->Now()) {}

Result<void> MigrationLoop::Begin() {
  if (const std::vector<std::string> missing = cluster_->Missing(); !missing.empty()) {
    LogWarning("not seen: {}", fmt::join(missing, ", "));
  }
  OpenSources();
  MakeRuns();
  return {};
}

void MigrationLoop::OpenSources() {
  signals_ = std::make_unique<SignalSource>(plan_.signals(), clock_);
  traces_ = std::make_unique<CallsSource>(config().traces, clock_);
}

void MigrationLoop::MakeRuns() {
  runs_.clear();
  corrector_ = ModelCorrector(host_->journal->moves());
  ledger_.Clear();
  std::vector<std::string> names;
  for (size_t i = 0; i < plan_.parts().size(); ++i) {
    ApplicationOptions options = plan_.parts()[i].options;
    options.thinker = &thinker_;
    options.ledger = &ledger_;
    options.guard.leaves = [this](std::string_view node) { return cluster_->Leaves(node); };
    options.guard.start_time = [this, i](WorkloadId workload) { return StartTimeOf(i, workload); };
    names.push_back(options.name);
    runs_.push_back(std::make_unique<ApplicationRun>(options, cluster_->Of(i), cluster_->ActedOn(i),
                                                     &fenced_, &fenced_));
  }
  RecallMoves(config().migration->budgets, host_->journal->moves(), runs_);
  evidence_->Watch(std::move(names));
  told_.assign(runs_.size(), "");
  next_ = 0;
  goes_on_ = false;
}

Duration MigrationLoop::StartTimeOf(size_t part, WorkloadId workload) const {
  const Application* application = plan_.parts()[part].watched.application.get();
  if (application == nullptr) return Duration(0);
  const std::chrono::duration<double> warm_up(application->warm_up_s[workload]);
  return cluster_->StartTimeOf(part, workload) + std::chrono::duration_cast<Duration>(warm_up);
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

// A plan is judged by one Model from its beginning to its end as far as pods are moved by it; what
// is known of them changes between moves.
void MigrationLoop::FollowTraces() {
  if (traces_->IsDue()) {
    std::vector<CallsSource::Asked> asked;
    for (size_t i = 0; i < runs_.size(); ++i)
      asked.push_back({*cluster_->PlacesOf(i), plan_.parts()[i].new_endpoints});
    traces_->Read(std::move(asked));
  }
  if (AnyMoves(runs_) || AnyThinking(runs_)) return;
  bool has_changed = false;
  std::vector<std::shared_ptr<const Application>> changed = traces_->Take();
  for (size_t i = 0; i < changed.size(); ++i) {
    if (changed[i] == nullptr) continue;
    plan_.SetApplication(i, std::move(changed[i]));
    has_changed = true;
  }
  if (!has_changed) return;
  runs_.clear();
  cluster_->Watch(plan_.Watched(), plan_.config());
  MakeRuns();
}

SwitchedKind MigrationLoop::Kind() const {
  return {.name = kMigrationLadder.name, .configured = ladder_->mode()};
}

// What was resumed, or has come to lead, does not wait for its next turn.
void MigrationLoop::FollowMode() {
  const Mode mode = host_->Leads() ? host_->switches.Effective(ladder_->mode()) : Mode::kOff;
  // Outside of its windows it advises. A move that has begun goes on.
  const bool may_move = window_.IsOpen(config().migration->windows, UnixNow());
  const Mode before = std::exchange(mode_, may_move ? mode : std::min(mode, Mode::kAdvise));
  if (mode_ != before) due_ = clock_->Now();
  if (moves_ == nullptr) return;
  // Paused, it undoes what an earlier process has left: it has the rights.
  if (host_->Leads() && ladder_->mode() >= Mode::kCanary) moves_->Start();
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
  left_.ConcludeAll(moves_.get());
  AbandonRuns(runs_, "the process ended before the move");
}

// What is under way goes on, and its end belongs to the decision that it began with.
void MigrationLoop::LeaveMoves() {
  for (size_t i = 0; i < runs_.size(); ++i) {
    auto move = cluster_->LetGo(i);
    const std::optional<int64_t> row = move ? runs_[i]->HandOver() : std::nullopt;
    if (row) left_.Add(runs_[i]->name(), *row, *std::move(move), moves_.get());
  }
  AbandonRuns(runs_, "the configuration was reloaded during the move");
  left_.Conclude(moves_.get());  // Before budgets count what is in flight.
}

Result<void> MigrationLoop::Reload(MigrationPlan plan) {
  LeaveMoves();
  plan_ = std::move(plan);
  window_.Forget();
  runs_.clear();
  if (moves_ != nullptr) moves_->Configure(config().migration->moves);
  cluster_->Watch(plan_.Watched(), plan_.config());
  OpenSources();
  MakeRuns();
  due_ = clock_->Now();
  return ladder_->Configure(plan_.LadderSettings());
}

// One application a turn: the other kinds of decision wait for no more than one of its decisions.
bool MigrationLoop::Turn() {
  if (next_ == 0) {
    FollowTraces();
    AskSignals();
  }
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
  if (traces_->is_on()) {
    if (traces_->IsFirstAwaited()) return "the first traces are being read";
    const CallGraph& calls = *plan_.parts()[run].watched.application->calls;
    if (calls.call_count() == static_cast<int>(calls.endpoints.size()))
      return "its calls are not known: the file has none, and traces have shown none yet";
  }
  if (left_.Has(runs_[run]->name())) return "a move that began before the reload has not ended";
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
    LogInfo("{}: decides again", run.name());
  } else {
    LogError("{}: {}", run.name(), problem);
  }
  told = problem;
}

std::chrono::milliseconds MigrationLoop::UntilDue() const {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(due_ - clock_->Now());
  return std::max(left, std::chrono::milliseconds(0));
}

void MigrationLoop::Poll() {
  cluster_->Poll();
  left_.Conclude(moves_.get());
  // What is under way is watched more closely than the cluster.
  if (AnyMoves(runs_)) due_ = std::min(due_, clock_->Now() + kBetweenLooksAtMoves);
  if (AnyThinking(runs_)) due_ = std::min(due_, clock_->Now() + kBetweenLooksAtThoughts);
  signals_->Poll();  // A turn may be rarer than the deadline of a query.
  FollowMode();
}

std::string MigrationLoop::JournalTrouble() const {
  if (!fenced_.trouble().empty()) return fenced_.trouble();
  const std::filesystem::path folder = config().journal.path.parent_path();
  std::error_code ignored;
  const auto space = std::filesystem::space(folder.empty() ? "." : folder, ignored);
  return !ignored && space.available < kDiskBytesMin ? "the disk is full" : "";
}

void MigrationLoop::TakeRow(const JournalRow& row) {
  host_->metrics.CountRow(row);
  Tally& tally = tallies_[row.application];
  if (row.step == 0) tally = {.before_ms = row.seen.latency_ms, .after_ms = row.seen.latency_ms};
  if (row.fate == Fate::kFailed && !row.chosen.empty())
    LogWarning("{}: pod {} was not moved: {}", row.application, row.chosen[0].pod, row.failure);
  if (row.fate != Fate::kRecorded && row.fate != Fate::kDone) return;
  if (tally.moves++ == 0) tally.first_pod = row.chosen.empty() ? "" : row.chosen[0].pod;
  tally.after_ms = row.predicted.latency_ms;
}

void MigrationLoop::EndPlan(size_t run) {
  const ApplicationRun& ended = *runs_[run];
  const Tally tally = tallies_[ended.name()];
  tallies_.erase(ended.name());
  host_->metrics.CountPlan(ended.name(), tally.before_ms - tally.after_ms);
  const Application* application = plan_.parts()[run].watched.application.get();
  if (mode_ != Mode::kAdvise || tally.moves == 0 || application == nullptr) return;
  const State& state = ended.state();
  for (PodId pod = 0; pod < state.pods.size(); ++pod) {
    if (state.names->pods[pod] != tally.first_pod) continue;
    cluster_->Tell(application->objects[state.pods.workload[pod]], kWouldMove,
                   fmt::format("{}: a plan of {} moves would change latency from {:.1f} to {:.1f} "
                               "ms; in advise nothing was touched",
                               ended.name(), tally.moves, tally.before_ms, tally.after_ms));
    return;
  }
}

// Once when it comes and once when it goes. What has not been answered yet is not in trouble.
void MigrationLoop::TellSignals() {
  if (!signals_->has_answers()) return;
  const std::vector<std::string> troubles = signals_->Troubles();
  if (troubles.empty() == !told_signals_) return;
  told_signals_ = !troubles.empty();
  if (!told_signals_) {
    LogInfo("the signals are in order again");
  } else {
    LogWarning("signal {}{}; what was measured last stays, and ages", troubles[0],
               troubles.size() > 1 ? fmt::format(", and {} more", troubles.size() - 1) : "");
  }
}

std::string MigrationLoop::ClusterTrouble() const {
  for (size_t i = 0; i < runs_.size(); ++i) {
    const ApplicationRun& run = *runs_[i];
    if (run.state().names == nullptr) {
      return run.status().problem.empty() ? "not seen yet" : run.status().problem;
    }
    const Duration age = cluster_->Of(i)->Now() - run.state().at;
    if (age > config().staleness + config().migration->interval + kUnseenGrace) {
      return fmt::format("{}: what is known is {:.0f} s old", run.name(), Seconds(age));
    }
  }
  return "";
}

void MigrationLoop::Report() {
  RunMetrics* metrics = &host_->metrics;
  for (size_t i = 0; i < runs_.size(); ++i) {
    const State& state = runs_[i]->state();
    if (state.names == nullptr) continue;
    metrics->ShowApplication(*runs_[i], Seconds(cluster_->Of(i)->Now() - state.at));
  }
  metrics->ShowSignals(signals_->Standings());
  TellSignals();
  const Instant now = clock_->Now();
  if (measured_ != Instant() && now - measured_ < kBetweenMeasures) return;
  measured_ = now;
  const Result<JournalExtent> extent = host_->journal->Extent();
  const Result<std::vector<EvidenceSum>> evidence = host_->journal->moves()->MeasuredEvidence();
  if (extent && evidence) metrics->ShowJournal(*extent, *evidence);
}

std::string MigrationLoop::Describe() const {
  const MigrationConfig& migration = *config().migration;
  return fmt::format("migration {}, policy {}", ModeName(ladder_->mode()), migration.policy);
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
         {"traces",
          i < traces_->standings().size() ? JsonOf(traces_->standings()[i]) : OrderedJson(nullptr)},
         {"problem", status.problem}});
  }
  return json;
}

}  // namespace rudderfish
