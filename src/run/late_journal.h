// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "control/placement_journal.h"
#include "run/journal_health.h"

// Where pods are placed, a journal that cannot be written holds up none of them: no other scheduler
// would place those that name us. What was decided waits in memory meanwhile and is written once
// that can be done, or is lost if it is too much. Not thread safe.

namespace rudderfish {

class LateJournal final : public PlacementJournal {
 public:
  static constexpr size_t kRowsMax = 10'000;  // That wait; what is decided beyond them is lost.

  // Both outlive it.
  LateJournal(PlacementJournal* journal, JournalHealth* health)
      : journal_(journal), health_(health) {}

  // Never fails. Numbers below 0 are of rows that wait.
  Result<void> AppendPlacements(std::span<PlacementRow> rows,
                                std::span<const PlacementEnd> ends) override;

  // Writes what waits.
  Result<void> Flush();

  // What is missing in the journal, in words; empty: nothing.
  std::string Missing() const;

 private:
  Result<void> Write(std::span<PlacementRow> rows, std::span<const PlacementEnd> ends);
  void Keep(std::span<PlacementRow> rows, std::span<const PlacementEnd> ends);
  PlacementRow* FindWaiting(int64_t number);

  PlacementJournal* journal_;
  JournalHealth* health_;
  std::vector<PlacementRow> rows_;
  std::vector<PlacementEnd> ends_;
  std::unordered_map<int64_t, int64_t> written_as_;  // Rows in flight that were written late.
  int64_t given_ = 0;                                // Numbers below 0, so far.
  int64_t lost_ = 0;                                 // Rows, since all was written last.
};

}  // namespace rudderfish
