// SPDX-License-Identifier: Apache-2.0
#include "run/fenced_journal.h"

#include <utility>

namespace rudderfish {

template <class T>
Result<T> FencedJournal::Noted(Result<T> result) {
  trouble_.clear();
  if (result) return result;
  trouble_ = result.error().message + "; no move is decided until it can be written again";
  return Fail(result.error().code, "{}", trouble_);
}

Result<int64_t> FencedJournal::Append(JournalRow row) {
  if (!calls_.leads()) {
    return Fail(ErrorCode::kUnavailable, "it leads no more: nothing is decided");
  }
  TRY_ASSIGN(const int64_t number, Noted(journal_->Append(row)));
  if (row.fate == Fate::kInFlight) {
    in_flight_.insert_or_assign(number, std::move(row));
  } else {
    calls_.on_row(row);
  }
  return number;
}

Result<void> FencedJournal::Conclude(int64_t number, const RowEnd& end) {
  TRY(Noted(journal_->Conclude(number, end)));
  const auto found = in_flight_.find(number);
  if (found == in_flight_.end()) return {};
  JournalRow row = std::move(found->second);
  in_flight_.erase(found);
  row.fate = end.fate;
  row.failure = end.failure;
  calls_.on_row(row);
  return {};
}

Result<void> FencedJournal::AppendEvidence(const EvidenceRow& row) {
  if (!calls_.leads()) return {};
  return Noted(evidence_->AppendEvidence(row));
}

}  // namespace rudderfish
