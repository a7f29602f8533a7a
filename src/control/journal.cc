// SPDX-License-Identifier: Apache-2.0
#include "control/journal.h"

#include <utility>

#include "base/check.h"

namespace rudderfish {

std::string_view FateName(Fate fate) {
  switch (fate) {
    case Fate::kInFlight:
      return "in flight";
    case Fate::kStayed:
      return "stayed";
    case Fate::kRefused:
      return "refused";
    case Fate::kDone:
      return "done";
    case Fate::kFailed:
      return "failed";
    case Fate::kRecorded:
      return "recorded";
    case Fate::kUnknown:
      return "unknown";
  }
  CHECK(false && "a Fate is one of the above");
}

std::optional<Fate> FateNamed(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(Fate::kUnknown); ++i) {
    if (FateName(static_cast<Fate>(i)) == name) return static_cast<Fate>(i);
  }
  return std::nullopt;
}

Result<int64_t> MemoryJournal::Append(JournalRow row) {
  rows_.push_back(std::move(row));
  return static_cast<int64_t>(rows_.size()) - 1;
}

Result<void> MemoryJournal::Conclude(int64_t number, const RowEnd& end) {
  CHECK_GE(number, 0);
  CHECK_LT(number, static_cast<int64_t>(rows_.size()));
  JournalRow& row = rows_[number];
  CHECK(row.fate == Fate::kInFlight);
  row.fate = end.fate;
  row.failure = end.failure;
  row.measured = end.measured;
  row.move = end.move;
  return {};
}

}  // namespace rudderfish
