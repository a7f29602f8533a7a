// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "control/evidence.h"
#include "control/evidence_table.h"
#include "control/journal.h"
#include "control/journal_file.h"
#include "control/model_correction.h"
#include "control/placement_comparison.h"
#include "control/placement_journal.h"
#include "control/routing_decision.h"
#include "control/sqlite_database.h"
#include "control/sqlite_modes.h"

// What control/sqlite_journal.h has written, for those who only read, while it is written or later.

namespace rudderfish {

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

struct StoredRouting {
  int64_t number = 0;
  UnixMillis written_at = 0;
  RoutingDecision row;
};

// A decision of any kind.
using StoredDecision = std::variant<StoredRow, StoredPlacement, StoredComparison, StoredRouting>;
UnixMillis WrittenAt(const StoredDecision& decision);

struct RowFilter {
  std::optional<UnixMillis> since;
  int64_t limit = 100;      // The newest.
  std::string kind;         // placement, migration or routing; empty: any.
  std::string application;  // Or route; placements have none. Empty: any.
  // Of which they speak; empty: any. Of placements "namespace/name", where * is any text.
  std::string pod;
  std::optional<std::string> cluster = {};  // Of placements; empty: the configuration's own.
  std::string move = {};                    // Id of a pod's move; empty: any.
  bool is_uncompared = false;               // Placements without a comparison.
};

class JournalReader {
 public:
  static Result<JournalReader> Open(const std::filesystem::path& path);

  // Of all kinds, oldest first. A pod that was placed is one decision, with what it was compared
  // with if it was.
  Result<std::vector<StoredDecision>> Decisions(const RowFilter& filter) const;

  Result<std::vector<StoredRow>> Rows(const RowFilter& filter) const;  // Oldest first.
  Result<std::vector<EvidenceSum>> Evidence() const;
  // Changes of the cluster that were measured, oldest first: the endpoints of one change are
  // written together, and count as one, their mean.
  Result<std::vector<MeasuredChange>> Changes() const;
  Result<JournalExtent> Extent() const;

  // What was decided about routes, oldest first.
  Result<std::vector<StoredRouting>> Routings(const RowFilter& filter) const;

  // What was decided of pods that wait, oldest first. Without `best`.
  Result<std::vector<StoredPlacement>> Placements(const RowFilter& filter) const;

  // The same of comparisons; a limit of one has its `detail`.
  Result<std::vector<StoredComparison>> Comparisons(const RowFilter& filter) const;

  // What comparisons say, all that are kept.
  Result<EvidenceTable> LoadEvidence() const;

  // The modes that kinds of decision have reached, as `run` will take them over.
  Result<KeptModes> Modes() const;

  // How many decisions there are, since a time, by their fate's name.
  Result<std::vector<std::pair<std::string, int64_t>>> Counts(UnixMillis since) const;

 private:
  JournalReader(std::filesystem::path path, internal::Database database)
      : path_(std::move(path)), database_(std::move(database)) {}
  tl::unexpected<Error> Failed(int code) const;

  std::filesystem::path path_;
  internal::Database database_;
};

}  // namespace rudderfish
