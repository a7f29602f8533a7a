// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/wall_time.h"
#include "control/evidence.h"
#include "control/journal.h"
#include "control/migration_evidence.h"
#include "control/model_correction.h"

// What control/sqlite_journal.h keeps of moves: decisions about them, what the signals measured of
// changes, corrections of the Model, and what promotions of migration rest on.

struct sqlite3;

namespace rudderfish {

class SqliteDatabase;

class SqliteMoves final : public Journal, public EvidenceSink {
 public:
  explicit SqliteMoves(SqliteDatabase* database) : database_(database) {}

  Result<int64_t> Append(JournalRow row) override;  // Counted from 1; no number is given twice.
  Result<void> Conclude(int64_t number, const RowEnd& end) override;
  Result<void> AppendEvidence(const EvidenceRow& row) override;
  // That the Model is corrected so from now on.
  Result<void> AppendCorrection(const ModelCorrection& correction, const std::string& model);

  // As a JournalReader has them.
  Result<std::vector<EvidenceSum>> MeasuredEvidence() const;
  Result<std::vector<MeasuredChange>> Changes() const;

  // What plans of moves say, of that policy for that objective, from decision `from` on, and how
  // right the Model was; by application.
  Result<std::vector<PlanEvidence>> Plans(std::string_view policy, std::string_view objective,
                                          int64_t from);

  // What moves of that application have come to since a canary began.
  Result<MoveTrial> CanaryMoves(std::string_view application, UnixMillis since);

  // Pods of that application that were moved since, or may have been, the oldest first.
  Result<std::vector<EarlierMove>> MovesSince(std::string_view application, UnixMillis since);

 private:
  Result<void> Insert(const JournalRow& row, const std::string& detail);

  SqliteDatabase* database_;
};

namespace internal {

// For all who read, also in another process.
Result<std::vector<EvidenceSum>> EvidenceIn(const std::filesystem::path& path, sqlite3* database);
Result<std::vector<MeasuredChange>> ChangesIn(const std::filesystem::path& path, sqlite3* database);

}  // namespace internal
}  // namespace rudderfish
