// SPDX-License-Identifier: Apache-2.0
#include "run/routing_rows.h"

namespace rudderfish {

Result<int64_t> RoutingRows::Append(const RoutingDecision& decision) {
  Result<int64_t> row = leads_()
                            ? journal_->AppendRouting(decision)
                            : Fail(ErrorCode::kUnavailable, "it leads no more: nothing is decided");
  trouble_ = row ? "" : row.error().message + "; no split is set until it can be written again";
  return row;
}

void RoutingRows::Conclude(int64_t row, const RoutingEnd& end) {
  const Result<void> done = journal_->ConcludeRouting(row, end);
  if (!done) trouble_ = done.error().message;
}

}  // namespace rudderfish
