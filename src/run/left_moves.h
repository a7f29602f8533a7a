// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "run/fenced_journal.h"
#include "run/journal_health.h"
#include "run/move_driver.h"
#include "run/moving_cluster.h"

// Moves that outlive the run that began them, as a reload makes other runs. Their outcomes belong
// to the decisions that they began with.

namespace rudderfish {

class LeftMoves {
 public:
  // Both outlive it.
  LeftMoves(FencedJournal* journal, JournalHealth* health) : journal_(journal), health_(health) {}

  // A move of an application, whose decision is this row. One that has not begun does not begin.
  void Add(const std::string& application, int64_t row, MovingCluster::LetGoMove move,
           MoveDriver* driver);

  // Writes and tells the outcomes of those that have ended, unless the journal cannot be written.
  void Conclude(MoveDriver* driver);

  // Before the process ends: also of those that have not ended.
  void ConcludeAll(MoveDriver* driver);

  bool Has(std::string_view application) const;

 private:
  struct Left {
    std::string application;
    int64_t row = 0;
    MovingCluster::LetGoMove move;
    bool is_begun = true;
  };

  bool Write(const Left& left);

  FencedJournal* journal_;
  JournalHealth* health_;
  std::vector<Left> left_;
};

}  // namespace rudderfish
