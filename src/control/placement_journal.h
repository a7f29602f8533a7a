// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/wall_time.h"
#include "cluster/scheduling_observer.h"
#include "control/journal.h"

// What was decided about pods that wait for a node: one row a decision, many rows a write, so that
// a thousand decisions a second do not wait for the disk a thousand times. What is written first is
// done afterwards, as in control/journal.h. Not thread safe.

namespace rudderfish {

struct PlacementRow {
  PodIdentity pod;
  std::string cluster;    // By its name in the configuration; empty: the configuration's own.
  std::string node;       // Empty: it goes on waiting.
  std::string scheduler;  // As pods name it.
  std::string policy;
  int64_t priority = 0;
  int attempt = 1;
  double waited_ms = 0;  // Since it was seen first.
  int nodes = 0, feasible = 0;
  std::vector<std::pair<std::string, double>> best;  // Nodes with their scores, best first.
  std::string reason;                                // Why it waits.
  Fate fate = Fate::kInFlight;
  std::string failure;
  UnixMillis at = 0;  // When it was decided; 0: as it is written.

  int64_t number = 0;  // Given by Append.
};

struct PlacementEnd {
  int64_t number = 0;
  Fate fate = Fate::kDone;
  std::string failure;
};

class PlacementJournal {
 public:
  virtual ~PlacementJournal() = default;

  // All or none. `ends`: outcomes of earlier rows, written along.
  virtual Result<void> AppendPlacements(std::span<PlacementRow> rows,
                                        std::span<const PlacementEnd> ends) = 0;
};

// Keeps all rows; for tests.
class MemoryPlacementJournal final : public PlacementJournal {
 public:
  Result<void> AppendPlacements(std::span<PlacementRow> rows,
                                std::span<const PlacementEnd> ends) override {
    for (PlacementRow& row : rows) {
      row.number = static_cast<int64_t>(rows_.size());
      rows_.push_back(row);
    }
    for (const PlacementEnd& end : ends) rows_[static_cast<size_t>(end.number)].fate = end.fate;
    return {};
  }

  const std::vector<PlacementRow>& rows() const { return rows_; }

 private:
  std::vector<PlacementRow> rows_;
};

}  // namespace rudderfish
