// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "control/evidence_table.h"
#include "control/placement_comparison.h"
#include "control/placement_journal.h"
#include "control/sqlite_database.h"

// What control/sqlite_journal.h keeps of pods that wait for a node: where they were put, what that
// was compared with, and what promotions of placement rest on. Many rows are one transaction,
// without a wait for the disk: they are there after kill -9, but after a power failure the last
// ones may be missing.

namespace rudderfish {

class SqlitePlacements final : public PlacementJournal, public ComparisonSink, public RowFollower {
 public:
  explicit SqlitePlacements(SqliteDatabase* database) : database_(database) {}

  Result<void> AppendPlacements(std::span<PlacementRow> rows,
                                std::span<const PlacementEnd> ends) override;
  Result<void> AppendComparisons(std::span<const PlacementComparison> rows,
                                 std::span<const PlacementOutcome> outcomes) override;

  // What all comparisons say, kept up to date from the first call on, which reads them all.
  Result<const EvidenceTable*> Evidence();
  Result<std::string> DifferenceInWords(int64_t number);  // Of a comparison whose rules differ.

  // Those of a cluster whose pods had not ended when they were last heard of, oldest first.
  Result<std::vector<UnendedComparison>> UnendedComparisons(std::string_view cluster);

  void Forget() override { evidence_.reset(); }
  void ForgetOlder(UnixMillis than) override;
  Result<void> ForgetRemoved() override;

 private:
  Result<void> InsertPlacements(std::span<PlacementRow> rows, std::span<const PlacementEnd> ends);
  Result<void> InsertComparisons(std::span<const PlacementComparison> rows,
                                 std::span<const PlacementOutcome> outcomes,
                                 std::vector<EvidenceTable::Row>* written);

  SqliteDatabase* database_;
  std::optional<EvidenceTable> evidence_;  // Of `comparisons`, once somebody has asked.
};

namespace internal {

// What all comparisons of a journal say; returns SQLite's code.
int ReadEvidence(sqlite3* database, EvidenceTable* table);

}  // namespace internal
}  // namespace rudderfish
