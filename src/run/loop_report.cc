// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "base/log.h"
#include "run/control_loop.h"

// What a ControlLoop tells of itself while it works: health, metrics, Events of its plans, who
// leads.

namespace rudderfish {
namespace {

constexpr std::chrono::milliseconds kBetweenReports(250);
constexpr std::chrono::seconds kBetweenMeasures(10);  // Of the journal: it is counted.
constexpr std::chrono::milliseconds kResignLimit(2000);
constexpr uintmax_t kDiskBytesMin = 1 << 20;
constexpr std::chrono::seconds kUnseenGrace(1);

std::string JournalTrouble(const FencedJournal& journal, const std::filesystem::path& path) {
  if (!journal.trouble().empty()) return journal.trouble();
  std::error_code ignored;
  const auto space =
      std::filesystem::space(path.parent_path().empty() ? "." : path.parent_path(), ignored);
  return !ignored && space.available < kDiskBytesMin ? "the disk is full" : "";
}

std::string LeaderTrouble(const Seat& seat) {
  if (!seat.is_elected) return "";
  if (!seat.trouble.empty()) return seat.trouble;
  return seat.holder.empty() ? "nobody holds the Lease yet" : "";
}

}  // namespace

void ControlLoop::Poll(std::chrono::milliseconds timeout) {
  cluster_->Poll(timeout);
  server_->Beat();
  NoteLeadership();
  Report();
}

void ControlLoop::Stop() { cluster_->Resign(kResignLimit); }

// Who has just come to lead does not wait for its next turn.
void ControlLoop::NoteLeadership() {
  const bool leads = cluster_->Leads();
  if (leads && !led_) due_ = clock_.Now();
  led_ = leads;
}

void ControlLoop::TakeRow(const JournalRow& row) {
  metrics_.CountRow(row);
  Tally& tally = tallies_[row.application];
  if (row.step == 0) tally = {.before_ms = row.seen.latency_ms, .after_ms = row.seen.latency_ms};
  if (row.fate != Fate::kRecorded && row.fate != Fate::kDone) return;
  if (tally.moves++ == 0) tally.first_pod = row.chosen.empty() ? "" : row.chosen[0].pod;
  tally.after_ms = row.predicted.latency_ms;
}

void ControlLoop::EndPlan(size_t run) {
  const ApplicationRun& ended = *runs_[run];
  const Tally tally = tallies_[ended.name()];
  tallies_.erase(ended.name());
  metrics_.CountPlan(ended.name(), tally.before_ms - tally.after_ms);
  const Application* application = plan_.parts()[run].watched.application.get();
  if (!config().events || tally.moves == 0 || application == nullptr) return;
  const State& state = ended.state();
  for (PodId pod = 0; pod < state.pods.size(); ++pod) {
    if (state.names->pods[pod] != tally.first_pod) continue;
    cluster_->Tell(application->objects[state.pods.workload[pod]],
                   fmt::format("{}: a plan of {} moves would change latency from {:.1f} to {:.1f} "
                               "ms; in shadow nothing was touched",
                               ended.name(), tally.moves, tally.before_ms, tally.after_ms));
    return;
  }
}

// Once when it comes and once when it goes. What has not been answered yet is not in trouble.
void ControlLoop::TellSignals() {
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

void ControlLoop::Report() {
  const Instant now = clock_.Now();
  if (now - reported_ < kBetweenReports) return;
  reported_ = now;
  const Config& config = plan_.config();
  std::string trouble;
  for (size_t i = 0; i < runs_.size(); ++i) {
    const ApplicationRun& run = *runs_[i];
    const bool seen = run.state().names != nullptr;
    const Duration age = cluster_->Of(i)->Now() - run.state().at;
    if (seen) metrics_.ShowApplication(run, Seconds(age));
    if (!trouble.empty()) continue;
    if (!seen) {
      trouble = run.status().problem.empty() ? "not seen yet" : run.status().problem;
    } else if (age > config.staleness + config.interval + kUnseenGrace) {
      trouble = fmt::format("{}: what is known is {:.0f} s old", run.name(), Seconds(age));
    }
  }
  server_->cluster().Fail(trouble);
  server_->journal().Fail(JournalTrouble(fenced_, config.journal.path));
  server_->leader().Fail(LeaderTrouble(cluster_->GetSeat()));
  metrics_.ShowStanding({.mode = switches_.Effective(config.migration.mode),
                         .paused = switches_.paused(),
                         .leads = cluster_->Leads()});
  metrics_.ShowCluster(cluster_->Counts());
  metrics_.ShowSignals(signals_->Standings());
  TellSignals();
  metrics_.ShowProcess();
  if (measured_ != Instant() && now - measured_ < kBetweenMeasures) return;
  measured_ = now;
  const Result<JournalExtent> extent = reader_->Extent();
  const Result<std::vector<EvidenceSum>> evidence = reader_->Evidence();
  if (extent && evidence) metrics_.ShowJournal(*extent, *evidence);
}

}  // namespace rudderfish
