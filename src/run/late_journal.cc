// SPDX-License-Identifier: Apache-2.0
#include "run/late_journal.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/wall_time.h"

namespace rudderfish {
namespace {

constexpr size_t kRowsATime = 1024;

}  // namespace

Result<void> LateJournal::AppendPlacements(std::span<PlacementRow> rows,
                                           std::span<const PlacementEnd> ends) {
  if (rows_.empty() && ends_.empty() && health_->MayTry()) {
    const Result<void> written = Write(rows, ends);
    if (written) return {};
    health_->Failed(written.error());
  }
  Keep(rows, ends);
  return {};
}

// With the numbers that the journal has given to rows that were late.
Result<void> LateJournal::Write(std::span<PlacementRow> rows, std::span<const PlacementEnd> ends) {
  if (std::none_of(ends.begin(), ends.end(), [](const auto& end) { return end.number < 0; }))
    return journal_->AppendPlacements(rows, ends);
  std::vector<PlacementEnd> known;
  for (const PlacementEnd& end : ends) {
    const auto at = written_as_.find(end.number);
    if (end.number >= 0) known.push_back(end);
    if (at != written_as_.end()) known.push_back({at->second, end.fate, end.failure});
  }
  TRY(journal_->AppendPlacements(rows, known));
  for (const PlacementEnd& end : ends) written_as_.erase(end.number);
  return {};
}

void LateJournal::Keep(std::span<PlacementRow> rows, std::span<const PlacementEnd> ends) {
  for (PlacementRow& row : rows) {
    row.number = -++given_;
    if (row.at == 0) row.at = UnixNow();
    if (rows_.size() < kRowsMax) {
      rows_.push_back(row);
    } else {
      ++lost_;
    }
  }
  for (const PlacementEnd& end : ends) {
    if (PlacementRow* row = FindWaiting(end.number)) {
      row->fate = end.fate;
      row->failure = end.failure;
    } else if (end.number >= 0 || written_as_.contains(end.number)) {
      ends_.push_back(end);
    }
  }
}

PlacementRow* LateJournal::FindWaiting(int64_t number) {
  const auto at = std::lower_bound(rows_.begin(), rows_.end(), number,
                                   [](const auto& row, int64_t n) { return row.number > n; });
  return at == rows_.end() || at->number != number ? nullptr : &*at;
}

Result<void> LateJournal::Flush() {
  if (!ends_.empty()) {
    TRY(Write({}, ends_));
    ends_.clear();
  }
  while (!rows_.empty()) {
    const auto end = rows_.begin() + static_cast<int64_t>(std::min(rows_.size(), kRowsATime));
    std::vector<PlacementRow> some(rows_.begin(), end);
    TRY(journal_->AppendPlacements(some, {}));
    for (size_t i = 0; i < some.size(); ++i) {
      if (some[i].fate == Fate::kInFlight) written_as_[rows_[i].number] = some[i].number;
    }
    rows_.erase(rows_.begin(), end);
  }
  if (lost_ > 0)
    LogWarning("the journal lacks {} decisions about pods, made while it could not be written",
               std::exchange(lost_, 0));
  return {};
}

std::string LateJournal::Missing() const {
  if (rows_.empty() && lost_ == 0) return "";
  return fmt::format("pods are placed; {} decisions wait to be written{}", rows_.size(),
                     lost_ == 0 ? "" : fmt::format(", {} are lost", lost_));
}

}  // namespace rudderfish
