// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "report/report.h"

// The page of an experiment: all its comparisons in one table, cell by cell, each with a link to
// the page of its cell. Of several metrics the first one, which the others are beside. Then what a
// weight of carbon buys, where cells differ in that, and what others have published, beside ours.

namespace rudderfish {

struct ReportedCell {
  std::string name;                    // "online-boutique.steady"
  std::string link;                    // To its page, from where this one is.
  const OrderedJson* pairs = nullptr;  // Of PairsOf.
};

// `fronts`: of FrontJson (carbon_front.h), with "scenario" and "place". `quotes`: of QuotesOf
// (published.h), of all cells. REQUIRES: every cell has at least one pair.
std::string ExperimentPage(std::string_view experiment, const std::vector<ReportedCell>& cells,
                           const OrderedJson& fronts, const OrderedJson& quotes,
                           const ReportOptions& options);

}  // namespace rudderfish
