// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "control/routing_decision.h"

// The journal as routing writes it, of splits and of capacity alike: a row only while it leads,
// asked right before each. What is not written must not be done. One thread.

namespace rudderfish {

// Why the outcome of a change is not known.
inline constexpr std::string_view kReloaded = "the configuration was reloaded meanwhile";

class RoutingRows {
 public:
  // The journal outlives it.
  RoutingRows(RoutingJournal* journal, std::function<bool()> leads)
      : journal_(journal), leads_(std::move(leads)) {}

  // Returns the row's number.
  Result<int64_t> Append(const RoutingDecision& decision);

  // Of a row that is there already: also by who leads no more.
  void Conclude(int64_t row, const RoutingEnd& end);

  // Why the last row could not be written; empty: it was.
  const std::string& trouble() const { return trouble_; }

 private:
  RoutingJournal* journal_;
  std::function<bool()> leads_;
  std::string trouble_;
};

}  // namespace rudderfish
