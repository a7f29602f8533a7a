// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "base/log.h"
#include "run/host.h"
#include "run/migration_loop.h"

// What a MigrationLoop tells of itself while it works: health, metrics, Events of its plans.

namespace rudderfish {
namespace {

constexpr std::chrono::seconds kBetweenMeasures(10);  // Of the journal: it is counted.
constexpr uintmax_t kDiskBytesMin = 1 << 20;
constexpr std::chrono::seconds kUnseenGrace(1);
constexpr std::chrono::milliseconds kBetweenLooksAtMoves(500);

}  // namespace

void MigrationLoop::Poll() {
  cluster_->Poll();
  // What is under way is watched more closely than the cluster.
  if (AnyMoves()) due_ = std::min(due_, clock_->Now() + kBetweenLooksAtMoves);
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
  host_->metrics()->CountRow(row);
  Tally& tally = tallies_[row.application];
  if (row.step == 0) tally = {.before_ms = row.seen.latency_ms, .after_ms = row.seen.latency_ms};
  if (row.fate != Fate::kRecorded && row.fate != Fate::kDone) return;
  if (tally.moves++ == 0) tally.first_pod = row.chosen.empty() ? "" : row.chosen[0].pod;
  tally.after_ms = row.predicted.latency_ms;
}

void MigrationLoop::EndPlan(size_t run) {
  const ApplicationRun& ended = *runs_[run];
  const Tally tally = tallies_[ended.name()];
  tallies_.erase(ended.name());
  host_->metrics()->CountPlan(ended.name(), tally.before_ms - tally.after_ms);
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
  RunMetrics* metrics = host_->metrics();
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
  const Result<JournalExtent> extent = host_->journal()->Extent();
  const Result<std::vector<EvidenceSum>> evidence = host_->journal()->MeasuredEvidence();
  if (extent && evidence) metrics->ShowJournal(*extent, *evidence);
}

std::string MigrationLoop::Describe() const {
  const MigrationConfig& migration = *config().migration;
  return fmt::format("migration {}, policy {}", ModeName(ladder_->mode()), migration.policy);
}

}  // namespace rudderfish
