// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/wall_time.h"
#include "control/evidence.h"
#include "control/evidence_table.h"
#include "control/journal.h"
#include "control/kept_mode.h"
#include "control/placement_comparison.h"
#include "control/placement_evidence.h"
#include "control/placement_journal.h"

// The journal on disk: one SQLite database in WAL mode (docs/journal.md has its schema). A row that
// Append has returned the number of is there after kill -9 and after the power fails. One process
// writes, any number read meanwhile or later. Bounded: rows older than `retention` go, and the
// oldest tenth of the table that is largest whenever the file is about to outgrow `size_bytes`.
//
// A disk that is full is kUnavailable in one line, and costs no row that was written before. Not
// thread safe.

struct sqlite3;

namespace rudderfish {

struct JournalOptions {
  std::chrono::seconds retention = std::chrono::hours(24 * 30);
  int64_t size_bytes = int64_t{256} << 20;  // At least kJournalSizeMin.
  std::function<UnixMillis()> now = UnixNow;
};
inline constexpr int64_t kJournalSizeMin = int64_t{1} << 20;

namespace internal {
// Closes what is nullptr, too.
struct CloseDatabase {
  void operator()(sqlite3* database) const;
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;
}  // namespace internal

class SqliteJournal final : public Journal,
                            public EvidenceSink,
                            public PlacementJournal,
                            public ComparisonSink {
 public:
  // Creates what is missing. Rows that an earlier process left in flight become kUnknown. kConflict
  // if another process writes there.
  static Result<std::unique_ptr<SqliteJournal>> Open(const std::filesystem::path& path,
                                                     const JournalOptions& options);
  ~SqliteJournal() override;

  Result<int64_t> Append(JournalRow row) override;  // Counted from 1; no number is given twice.
  Result<void> Conclude(int64_t number, Fate fate, std::string_view failure,
                        const Terms& measured) override;
  Result<void> AppendEvidence(const EvidenceRow& row) override;
  // In one transaction, without a wait for the disk: there after kill -9, but after a power failure
  // the last ones may be missing. The same holds for comparisons.
  Result<void> AppendPlacements(std::span<PlacementRow> rows,
                                std::span<const PlacementEnd> ends) override;
  Result<void> AppendComparisons(std::span<const PlacementComparison> rows,
                                 std::span<const PlacementOutcome> outcomes) override;

  // What all of them say, kept up to date from the first call on, which reads them all.
  Result<const EvidenceTable*> Evidence();
  Result<std::string> DifferenceInWords(int64_t number);  // Of a comparison whose rules differ.

  // Those whose pods had not ended when they were last heard of, oldest first.
  Result<std::vector<UnendedComparison>> UnendedComparisons();

  // The mode of a kind of decision, as it was kept last; nothing: never.
  Result<void> KeepMode(std::string_view kind, const KeptMode& mode);
  Result<std::optional<KeptMode>> ModeOf(std::string_view kind);

  // Writes something of no meaning, and waits for the disk.
  Result<void> Probe();

  // Whether a kind of decision is paused.
  Result<void> KeepPause(std::string_view kind, const KeptPause& pause);
  Result<KeptPause> PauseOf(std::string_view kind);

  // Removes what is too old; the size is minded by Append.
  Result<void> Trim();

  const std::filesystem::path& path() const { return path_; }

 private:
  SqliteJournal(std::filesystem::path path, const JournalOptions& options, int lock,
                internal::Database database);
  Result<void> Prepare();
  Result<void> Exec(const char* sql);
  Result<void> CommitUnawaited(const std::function<Result<void>()>& insert);
  Result<void> Insert(const JournalRow& row, const std::string& detail);
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
  int lock_;  // Of the file; held until this is gone.
  internal::Database database_;
  std::optional<EvidenceTable> evidence_;  // Of `comparisons`, once somebody has asked.
  int64_t page_bytes_ = 0;
  int appended_ = 0;  // Since the size was looked at.
};

struct StoredRow {
  int64_t number = 0;
  UnixMillis written_at = 0;
  JournalRow row;
};

struct StoredPlacement {
  UnixMillis written_at = 0;
  PlacementRow row;
  std::string fate, failure;
};

struct StoredComparison {
  int64_t number = 0;
  UnixMillis written_at = 0;
  PlacementComparison row;
  PlacementOutcome outcome;
};

struct RowFilter {
  std::optional<UnixMillis> since;
  int64_t limit = 100;      // The newest.
  std::string application;  // Empty: any.
  std::string pod;          // Of which they speak; empty: any.
};

// How much there is.
struct JournalExtent {
  int64_t decisions = 0, evidence = 0;  // Rows.
  int64_t bytes = 0;                    // On disk, the log beside the database included.
};

class JournalReader {
 public:
  static Result<JournalReader> Open(const std::filesystem::path& path);

  Result<std::vector<StoredRow>> Rows(const RowFilter& filter) const;  // Oldest first.
  Result<std::vector<EvidenceSum>> Evidence() const;
  Result<JournalExtent> Extent() const;

  // What was decided of a pod that waits ("namespace/name"), or of all (empty): the newest, oldest
  // first; of a journal that has none, nothing. Without `best`.
  Result<std::vector<StoredPlacement>> Placements(std::string_view pod, int64_t limit) const;

  // The same of comparisons; a limit of one has its `detail`.
  Result<std::vector<StoredComparison>> Comparisons(std::string_view pod, int64_t limit) const;

  // What comparisons say, all that are kept.
  Result<EvidenceTable> LoadEvidence() const;

  // How many decisions there are, since a time, by their fate's name.
  Result<std::vector<std::pair<std::string, int64_t>>> Counts(UnixMillis since) const;

 private:
  JournalReader(std::filesystem::path path, internal::Database database)
      : path_(std::move(path)), database_(std::move(database)) {}
  Result<bool> HasComparisons() const;
  tl::unexpected<Error> Failed(int code) const;

  std::filesystem::path path_;
  internal::Database database_;
};

}  // namespace rudderfish
