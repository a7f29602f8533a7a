// SPDX-License-Identifier: Apache-2.0
#include "cli/reach_experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "base/json.h"
#include "base/log.h"
#include "cli/controller_client.h"
#include "cli/stop_signals.h"
#include "cli/terminal.h"
#include "control/mode.h"
#include "run/trace_places.h"
#include "telemetry/jaeger_client.h"
#include "telemetry/traced_request.h"

namespace rudderfish {
namespace {

constexpr Duration kBetweenExperimentSteps = std::chrono::milliseconds(20);
constexpr Duration kBetweenLooksAtController = std::chrono::seconds(1);  // A move takes longer.
constexpr Duration kEntryDeadline = std::chrono::seconds(10);
constexpr Duration kJaegerDeadline = std::chrono::seconds(10);
constexpr size_t kRequestsNeeded = 5;  // As in REACH, of traces.
constexpr int kTracesOfAService = 100;
constexpr double kNewestTracesS = 1;  // Those that are still being written.

bool IsStopped() { return StopOnSignals().load(std::memory_order_relaxed); }

tl::unexpected<Error> StoppedBySignal() {
  return Fail(ErrorCode::kCancelled, "stopped by a signal");
}

double MeanOf(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

ReachController::~ReachController() {
  const Result<void> done = was_held_ ? Hold() : LetGo();
  if (!done) {
    LogError("{}; run `rudderfish {}` to leave the controller as it was", done.error().message,
             was_held_ ? "pause" : "resume");
  }
}

Result<void> ReachController::Begin(ReachStrategy strategy) {
  std::optional<OrderedJson> status;
  if (strategy == ReachStrategy::kLearned) {
    TRY_ASSIGN(status, AskRunning(socket_, "status"));
  } else {
    TRY_ASSIGN(status, AskIfRunning(socket_, "status"));
  }
  if (!status) return {};
  if (!(*status)["leads"].get<bool>()) {
    return Fail(ErrorCode::kFailedPrecondition,
                "this instance of the controller is on standby; run the experiment beside the one "
                "that leads");
  }
  is_there_ = true;
  was_held_ = is_held_ = (*status)["paused"].get<bool>();
  if (strategy == ReachStrategy::kBestEffort) return {};
  if ((*status)["killed"].get<bool>()) {
    return Fail(ErrorCode::kFailedPrecondition,
                "the controller was stopped by `rudderfish kill`; restart it");
  }
  if (!(*status)["decisions"].contains("migration")) {
    return Fail(ErrorCode::kFailedPrecondition,
                "the controller does not move pods; add `decisions.migration` to its "
                "configuration");
  }
  const OrderedJson& migration = (*status)["decisions"]["migration"];
  // What it has reached, whether it is paused or not.
  const auto mode = migration["standing"]["mode"].get<std::string>();
  TRY_ASSIGN(const Mode named, ModeNamed(mode));
  if (named >= Mode::kCanary) return {};
  return Fail(ErrorCode::kFailedPrecondition,
              "migration is in {} and moves no pod; run `rudderfish promote migration` first",
              mode);
}

Result<ReachController::Standing> ReachController::Look() {
  Standing standing;
  if (!is_there_) return standing;
  TRY_ASSIGN(const OrderedJson status, AskRunning(socket_, "status"));
  if (!status["decisions"].contains("migration")) return standing;
  const OrderedJson& migration = status["decisions"]["migration"];
  for (const OrderedJson& one : migration["applications"]) {
    standing.plans += one["plans"].get<int64_t>();
    standing.moves += one["moved"].get<int64_t>() + one["not_moved"].get<int64_t>();
    if (!is_held_) standing.problem = one["problem"].get<std::string>();
  }
  for (const OrderedJson& one : migration["moves"]) {
    standing.moving.push_back({.id = one["id"].get<std::string>(),
                               .pod = one["pod"].get<std::string>(),
                               .from = one["from"].get<std::string>(),
                               .to = one["to"].get<std::string>(),
                               .begun = one["begun_ms"].get<UnixMillis>()});
  }
  return standing;
}

Result<void> ReachController::Hold() {
  if (!is_there_ || is_held_) return {};
  is_held_ = true;  // Before the answer, which may be lost.
  TRY(AskRunning(socket_, "pause"));
  return {};
}

Result<void> ReachController::LetGo() {
  if (!is_held_) return {};
  TRY_ASSIGN(const OrderedJson answer, AskRunning(socket_, "resume"));
  is_held_ = false;
  for (const OrderedJson& kind : answer["kinds"]) {
    if (kind["kind"] != "migration") continue;
    TRY_ASSIGN(const Mode mode, ModeNamed(kind["mode"].get<std::string>()));
    if (mode < Mode::kCanary) {
      return Fail(ErrorCode::kFailedPrecondition, "migration is still held back: {}",
                  ModeText(kind));
    }
  }
  return {};
}

ReachExperiment::ReachExperiment(ReachExperimentPlan plan, ReachCluster* cluster,
                                 std::optional<ReachCsv>* csv, const Session* session)
    : plan_(std::move(plan)),
      cluster_(cluster),
      csv_(csv),
      session_(session),
      controller_(plan_.socket) {}

Result<void> ReachExperiment::Begin() {
  TRY(controller_.Begin(plan_.strategy));
  TRY(Hold());
  TRY_ASSIGN(const std::vector<std::string> left, cluster_->OpenLeft());
  for (const std::string& node : left)
    Say(*session_, "node {}: an earlier experiment has left it cordoned; uncordoned", node);
  TRY_ASSIGN(begun_, controller_.Look());
  standing_ = begun_;
  return WaitReady();
}

Result<void> ReachExperiment::Write(ReachTimeRow row) {
  if (csv_ == nullptr || !*csv_) return {};
  if (row.at == 0) row.at = UnixNow();
  return (*csv_)->Add(CellsOf(row));
}

// A request at a time, none while an earlier one is not answered.
void ReachExperiment::Ask() {
  const Instant now = cluster_->clock().Now();
  if (plan_.settings.entry_url.empty() || http_.in_flight() > 0 || now < ask_at_) return;
  ask_at_ = now + plan_.settings.polling_period;
  http_.Start({.url = plan_.settings.entry_url, .deadline = kEntryDeadline},
              [this, now](const Result<HttpReply>& reply) {
                if (!reply || reply->status / 100 != 2) {
                  ++failed_;
                  last_failure_ =
                      reply ? fmt::format("HTTP {}", reply->status) : reply.error().message;
                  return;
                }
                ++answered_;
                const double took_ms = 1000 * Seconds(cluster_->clock().Now() - now);
                written_ = TakeLatency(ReachEntryLatencyMs(reply->body).value_or(took_ms));
              });
}

Result<void> ReachExperiment::TakeLatency(double ms) {
  latencies_ms_.push_back(ms);
  const double alpha = plan_.settings.alpha;
  mean_ms_ = mean_ms_ ? (1 - alpha) * *mean_ms_ + alpha * ms : ms;
  return Write({.latency_ms = ms, .event = "latency"});
}

// Each move that has begun is told once.
Result<void> ReachExperiment::Look() {
  const Instant now = cluster_->clock().Now();
  if (now < look_at_) return {};
  look_at_ = now + kBetweenLooksAtController;
  TRY_ASSIGN(standing_, controller_.Look());
  if (std::exchange(told_problem_, standing_.problem) != standing_.problem &&
      !standing_.problem.empty())
    Say(*session_, "the controller decides nothing: {}", standing_.problem);
  for (const ReachController::Standing::Move& move : standing_.moving) {
    if (std::find(told_.begin(), told_.end(), move.id) != told_.end()) continue;
    told_.push_back(move.id);
    Say(*session_, "{}: {} -> {}", move.pod, move.from, move.to);
    TRY(Write({.at = move.begun,
               .current_node = move.from,
               .target_node = move.to,
               .target_pod = move.pod.substr(move.pod.find('/') + 1),
               .event = "rescheduling"}));
  }
  return Follow();
}

// A move that has begun is not cut short: holding back would undo it.
Result<void> ReachExperiment::Follow() {
  if (!follows_ || !mean_ms_ || !standing_.moving.empty()) return {};
  return *mean_ms_ > plan_.qos_ms ? controller_.LetGo() : controller_.Hold();
}

Result<void> ReachExperiment::Step() {
  cluster_->Poll(kBetweenExperimentSteps);
  http_.Poll(Duration::zero());
  TRY(std::exchange(written_, Result<void>()));
  Ask();
  return Look();
}

Result<bool> ReachExperiment::Spend(Duration length) {
  const Instant end = cluster_->clock().Now() + length;
  while (cluster_->clock().Now() < end) {
    if (IsStopped()) return false;
    TRY(Step());
  }
  return true;
}

Result<void> ReachExperiment::WaitReady() {
  const Instant end =
      cluster_->clock().Now() + plan_.settings.waiting_retries * plan_.settings.polling_period;
  std::string said;
  for (;;) {
    const std::string why = cluster_->WhyNotReady();
    if (why.empty()) return {};
    if (cluster_->clock().Now() >= end)
      return Fail(ErrorCode::kDeadlineExceeded, "not all pods are ready: {}", why);
    if (std::exchange(said, why) != why) Say(*session_, "{}", why);
    if (IsStopped()) return StoppedBySignal();
    TRY(Step());
  }
}

Result<void> ReachExperiment::Hold() {
  const Instant end =
      cluster_->clock().Now() + plan_.settings.waiting_retries * plan_.settings.polling_period;
  for (;;) {
    TRY_ASSIGN(standing_, controller_.Look());
    if (standing_.moving.empty()) break;
    if (cluster_->clock().Now() >= end)
      return Fail(ErrorCode::kDeadlineExceeded, "{} is still being moved", standing_.moving[0].pod);
    if (IsStopped()) return StoppedBySignal();
    TRY(Step());
  }
  return controller_.Hold();
}

Result<int> ReachExperiment::Episode() {
  TRY_ASSIGN(const ReachController::Standing before, controller_.Look());
  TRY(controller_.LetGo());
  const auto moves = [&] { return static_cast<int>(standing_.moves - before.moves); };
  for (standing_ = before; standing_.plans == before.plans || !standing_.moving.empty();) {
    if (IsStopped()) return StoppedBySignal();
    if (moves() >= plan_.settings.steps_max && standing_.moving.empty()) break;
    TRY(Step());
  }
  TRY(Hold());
  TRY(WaitReady());
  return moves();
}

std::vector<WorkloadId> ReachExperiment::Workloads() const {
  std::vector<std::string> names;
  for (const Workload& workload : plan_.application->catalog->workloads)
    names.push_back(workload.name);
  std::vector<WorkloadId> workloads;
  for (const int w : ReachServiceOrder(names)) {
    if (!plan_.application->objects[static_cast<size_t>(w)].is_external()) workloads.push_back(w);
  }
  return workloads;
}

// False: there are too few that show a whole request.
Result<bool> ReachExperiment::ReadTraces(double from_unix, ReachLatencies* latencies) const {
  SpanSet set;
  const JaegerQuery query{.url = plan_.settings.jaeger_url,
                          .from_unix = from_unix,
                          .to_unix = static_cast<double>(UnixNow()) / 1000 - kNewestTracesS,
                          .traces_max = kTracesOfAService,
                          .deadline = kJaegerDeadline};
  if (const Result<JaegerAnswer> read = FetchSpans(query, &set); !read) {
    if (read.error().code == ErrorCode::kFailedPrecondition) return false;  // None of that time.
    return tl::unexpected(read.error());
  }
  LinkSpans(&set);
  std::vector<std::string> unknown;
  const SpanPlaces places = TracePlaces(plan_.application, cluster_->mirror()).Of(set, &unknown);
  const std::vector<WorkloadId> workloads = Workloads();
  std::vector<double> totals_ms;
  std::vector<std::vector<double>> services_ms(workloads.size());
  for (const SpanRange& range : TracesOf(set)) {
    std::string reason;
    const std::optional<TracedRequest> request = ReadRequest(set, range, places, &reason);
    if (!request) continue;
    const bool is_whole = std::all_of(workloads.begin(), workloads.end(), [&](WorkloadId w) {
      return std::any_of(request->calls.begin(), request->calls.end(),
                         [&](const TracedCall& call) { return call.workload == w; });
    });
    if (!is_whole) continue;
    totals_ms.push_back(request->duration_ms);
    for (size_t i = 0; i < workloads.size(); ++i) {
      for (const TracedCall& call : request->calls) {
        if (call.workload == workloads[i])
          services_ms[i].push_back(static_cast<double>(call.end_ns - call.start_ns) / kNsPerMs);
      }
    }
  }
  if (totals_ms.size() < kRequestsNeeded) return false;
  latencies->total_ms = MeanOf(totals_ms);
  for (size_t i = 0; i < workloads.size(); ++i) latencies->services_ms[i] = MeanOf(services_ms[i]);
  return true;
}

Result<ReachLatencies> ReachExperiment::Average(Duration length) {
  const double from_unix = static_cast<double>(UnixNow()) / 1000;
  latencies_ms_.clear();
  ReachLatencies latencies;
  latencies.services_ms.resize(Workloads().size());
  TRY_ASSIGN(bool goes_on, Spend(length));
  for (int tries = 0; goes_on; ++tries) {
    bool is_enough = true;
    if (!plan_.settings.jaeger_url.empty()) {
      TRY_ASSIGN(is_enough, ReadTraces(from_unix, &latencies));
    }
    // What users see has the network to the first service in it, which its spans do not show.
    if (!plan_.settings.entry_url.empty()) {
      is_enough = is_enough && latencies_ms_.size() >= kRequestsNeeded;
      if (is_enough) latencies.total_ms = MeanOf(latencies_ms_);
    }
    if (is_enough) return latencies;
    if (tries >= plan_.settings.waiting_retries) {
      return Fail(
          ErrorCode::kDeadlineExceeded,
          "{} shows fewer than {} whole requests; is there load on the application?",
          plan_.settings.jaeger_url.empty() ? plan_.settings.entry_url : plan_.settings.jaeger_url,
          kRequestsNeeded);
    }
    TRY_ASSIGN(goes_on, Spend(plan_.settings.polling_period));
  }
  return StoppedBySignal();
}

Result<void> ReachExperiment::FailNode(const std::string& node) {
  TRY(Write({.failed_node = node, .event = "node_failed"}));
  TRY(cluster_->Close(node));
  for (int tries = 0;; ++tries) {
    TRY_ASSIGN(const ReachCluster::Evicted evicted, cluster_->EvictFrom(node));
    if (evicted.left == 0) return {};
    if (tries >= plan_.settings.waiting_retries) {
      return Fail(ErrorCode::kDeadlineExceeded, "node {} still has {} pods{}{}", node, evicted.left,
                  evicted.refused.empty() ? "" : ": ", evicted.refused);
    }
    TRY_ASSIGN(const bool goes_on, Spend(plan_.settings.polling_period));
    if (!goes_on) return StoppedBySignal();
  }
}

Result<void> ReachExperiment::RecoverNodes() {
  TRY(cluster_->OpenAll());
  return Write({.failed_node = "Finish", .event = "node_recovered"});
}

std::string ReachExperiment::EndText() const {
  std::string text = fmt::format("{} moves", standing_.moves - begun_.moves);
  if (plan_.settings.entry_url.empty()) return text;
  text += fmt::format("; {} requests answered, {} failed", answered_, failed_);
  return failed_ > 0 ? text + " (" + last_failure_ + ")" : text;
}

}  // namespace rudderfish
