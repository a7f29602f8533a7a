// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/wall_time.h"
#include "control/evidence.h"
#include "control/evidence_table.h"
#include "control/journal.h"
#include "control/journal_file.h"
#include "control/kept_mode.h"
#include "control/migration_evidence.h"
#include "control/model_correction.h"
#include "control/placement_comparison.h"
#include "control/placement_evidence.h"
#include "control/placement_journal.h"
#include "control/routing_decision.h"
#include "control/routing_evidence.h"

// The journal on disk: one SQLite database in WAL mode (docs/journal.md has its schema). A row that
// Append has returned the number of is there after kill -9 and after the power fails. One process
// writes, any number read meanwhile or later. Bounded: rows older than `retention` go, and the
// oldest tenth of the table that is largest whenever the file is about to outgrow `size_bytes`.
//
// A disk that is full is kUnavailable in one line, and costs no row that was written before. A
// journal that is closed refuses what is written in the same way, and knows of no rows. Not thread
// safe.

namespace rudderfish {

struct JournalOptions {
  std::chrono::seconds retention = std::chrono::hours(24 * 30);
  int64_t size_bytes = int64_t{256} << 20;  // At least kJournalSizeMin.
  std::function<UnixMillis()> now = UnixNow;
};
inline constexpr int64_t kJournalSizeMin = int64_t{1} << 20;

// How much there is.
struct JournalExtent {
  int64_t decisions = 0, evidence = 0;  // Rows.
  int64_t bytes = 0;                    // On disk, the log beside the database included.
};

class SqliteJournal final : public Journal,
                            public EvidenceSink,
                            public PlacementJournal,
                            public ComparisonSink,
                            public RoutingJournal {
 public:
  // Creates what is missing. Rows that an earlier process left in flight become kUnknown. kConflict
  // if another process writes there.
  static Result<std::unique_ptr<SqliteJournal>> Open(const std::filesystem::path& path,
                                                     const JournalOptions& options);

  // For a process that runs without a journal rather than not at all. One whose disk is full is
  // closed until Mind can open it, but for what was kept of modes; a damaged file is set aside.
  static Result<std::unique_ptr<SqliteJournal>> Start(const std::filesystem::path& path,
                                                      const JournalOptions& options);

  // About once a second: opens what is closed, and notices that the file was removed, replaced or
  // damaged. That is an error, once: it says what is lost, and the journal goes on in a new file
  // with all rows that could still be read.
  Result<void> Mind();

  bool is_open() const { return file_ != nullptr; }
  int openings() const { return openings_; }  // So far.

  Result<int64_t> Append(JournalRow row) override;  // Counted from 1; no number is given twice.
  Result<void> Conclude(int64_t number, const RowEnd& end) override;
  Result<void> AppendEvidence(const EvidenceRow& row) override;
  // That the Model is corrected so from now on.
  Result<void> AppendCorrection(const ModelCorrection& correction, const std::string& model);
  // In one transaction, without a wait for the disk: there after kill -9, but after a power failure
  // the last ones may be missing. The same holds for comparisons.
  Result<void> AppendPlacements(std::span<PlacementRow> rows,
                                std::span<const PlacementEnd> ends) override;
  Result<void> AppendComparisons(std::span<const PlacementComparison> rows,
                                 std::span<const PlacementOutcome> outcomes) override;

  // Rows of routing are numbered with those of migration. What is in flight is concluded once;
  // what is measured later may follow.
  Result<int64_t> AppendRouting(const RoutingDecision& decision) override;
  Result<void> ConcludeRouting(int64_t number, const RoutingEnd& end) override;

  // What all of them say, kept up to date from the first call on, which reads them all.
  Result<const EvidenceTable*> Evidence();
  Result<std::string> DifferenceInWords(int64_t number);  // Of a comparison whose rules differ.

  // Those of a cluster whose pods had not ended when they were last heard of, oldest first.
  Result<std::vector<UnendedComparison>> UnendedComparisons(std::string_view cluster);

  // The mode of a kind of decision, as it was kept last; nothing: never.
  Result<void> KeepMode(std::string_view kind, const KeptMode& mode);
  Result<std::optional<KeptMode>> ModeOf(std::string_view kind);

  // Writes something of no meaning, and waits for the disk.
  Result<void> Probe();

  // Whether a kind of decision is paused.
  Result<void> KeepPause(std::string_view kind, const KeptPause& pause);
  Result<KeptPause> PauseOf(std::string_view kind);

  // What plans of moves say, of that policy for that objective, from decision `from` on, and how
  // right the Model was; by application.
  Result<std::vector<PlanEvidence>> Plans(std::string_view policy, std::string_view objective,
                                          int64_t from);

  // What moves of that application have come to since a canary began.
  Result<MoveTrial> CanaryMoves(std::string_view application, UnixMillis since);

  // Pods of that application that were moved since, or may have been, the oldest first.
  Result<std::vector<EarlierMove>> MovesSince(std::string_view application, UnixMillis since);

  // What the newest kRouteRows decisions about a route say, of that policy for that objective, from
  // decision `from` on.
  Result<RouteEvidence> RouteEvidenceOf(std::string_view route, std::string_view policy,
                                        std::string_view objective, int64_t from);

  // What splits that were set on a route have come to since a canary began, the newest kRouteRows.
  Result<RouteTrial> RouteTrialOf(std::string_view route, UnixMillis since);

  // As a JournalReader has them.
  Result<JournalExtent> Extent() const;
  Result<std::vector<EvidenceSum>> MeasuredEvidence() const;
  Result<std::vector<MeasuredChange>> Changes() const;

  // Removes what is too old; the size is minded by Append.
  Result<void> Trim();

  const std::filesystem::path& path() const { return path_; }

 private:
  SqliteJournal(std::filesystem::path path, const JournalOptions& options)
      : path_(std::move(path)), options_(options) {}
  sqlite3* database() const { return file_->database(); }
  Result<void> CheckOpen() const;
  Result<void> OpenFile();
  Result<void> OpenOrSetAside();
  Result<void> ReadKept();
  Result<void> Rescue(const std::string& why);
  Result<void> Settle();
  Result<void> ReadWhatIsNeeded();
  Result<void> Prepare();
  Result<void> Upgrade(int64_t version);
  Result<void> Exec(const char* sql);
  Result<void> CommitUnawaited(const std::function<Result<void>()>& insert);
  Result<void> Insert(const JournalRow& row, const std::string& detail);
  Result<void> InsertRouting(const RoutingDecision& decision);
  Result<void> InsertPlacements(std::span<PlacementRow> rows, std::span<const PlacementEnd> ends);
  Result<void> InsertComparisons(std::span<const PlacementComparison> rows,
                                 std::span<const PlacementOutcome> outcomes,
                                 std::vector<EvidenceTable::Row>* written);
  Result<void> FollowRemoval();
  Result<void> MindSize();
  Result<const char*> LargestTable() const;
  Result<void> RemoveOldestTenth();
  tl::unexpected<Error> Failed(int code);

  std::filesystem::path path_;
  JournalOptions options_;
  std::unique_ptr<internal::JournalFile> file_;  // Null: it is closed,
  std::string closed_;                           // and why.
  int openings_ = 0;
  bool is_damaged_ = false;
  int64_t last_number_ = 0;  // That was given, of any table; no number is given twice.
  bool is_settled_ = false;  // What an earlier process has left in flight is unknown now.
  // Up to these numbers rows of `decisions` and `placements` are of earlier processes.
  std::array<int64_t, 2> earlier_{};
  std::map<std::string, KeptMode, std::less<>> kept_modes_;    // By kind: of a journal that cannot
  std::map<std::string, KeptPause, std::less<>> kept_pauses_;  // be opened for writing.
  Result<void> kept_read_;                 // Whether these could be read of the file that is there.
  std::optional<EvidenceTable> evidence_;  // Of `comparisons`, once somebody has asked.
  int64_t page_bytes_ = 0;
  int appended_ = 0;  // Since the size was looked at.
};

}  // namespace rudderfish
