// SPDX-License-Identifier: Apache-2.0
#include "run/left_moves.h"

#include <algorithm>
#include <utility>

namespace rudderfish {

void LeftMoves::Add(const std::string& application, int64_t row, MovingCluster::LetGoMove move,
                    MoveDriver* driver) {
  Left left{.application = application, .row = row, .move = std::move(move)};
  if (driver->Cancel(left.move.order)) {
    left.move.end = MoveDriver::End{.why = "not begun: the configuration was reloaded"};
    left.move.tell(*left.move.end);
    left.is_begun = false;
  }
  left_.push_back(std::move(left));
}

void LeftMoves::Conclude(MoveDriver* driver) {
  // A journal that cannot be written is waited for once, not for each of them.
  bool may_write = health_->MayTry();
  std::erase_if(left_, [&](Left& left) {
    std::optional<MoveDriver::End>& end = left.move.end;
    if (!end) {
      end = driver->Take(left.move.order);
      if (end) left.move.tell(*end);
    }
    if (!end || !may_write) return false;
    return may_write = Write(left);
  });
}

void LeftMoves::ConcludeAll(MoveDriver* driver) {
  Conclude(driver);
  for (const Left& left : left_) Write(left);
  left_.clear();
}

bool LeftMoves::Has(std::string_view application) const {
  return std::any_of(left_.begin(), left_.end(),
                     [&](const Left& left) { return left.application == application; });
}

// False: the journal cannot be written.
bool LeftMoves::Write(const Left& left) {
  RowEnd row{.fate = Fate::kUnknown,
             .failure = "the process ended before the move",
             .measured = {},
             .move = ""};
  if (const std::optional<MoveDriver::End>& end = left.move.end) {
    // What never began says nothing of whether pods can be moved.
    const Fate not_moved = left.is_begun ? Fate::kFailed : Fate::kRefused;
    row.fate = end->is_moved ? Fate::kDone : not_moved;
    row.failure = end->why;
    row.move = end->id;
  }
  const Result<void> done = journal_->Conclude(left.row, row);
  health_->Note(done);
  return done.has_value();
}

}  // namespace rudderfish
