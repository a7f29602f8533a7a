// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "evaluation/judge.h"

// The candidate against each of the other policies, as experiments keep it: of every world alike.

namespace rudderfish {

// Where outcomes stand within an experiment, such as {{"scenario", "shop"}, {"load", "ramp"}}.
using PairLabels = std::vector<std::pair<std::string, std::string>>;

// An entry for each other policy and metric, the labels first:
//   [{"scenario",...,"metric","unit","candidate","baseline","candidate_iqm","baseline_iqm",
//     "candidate_mean","baseline_mean","difference","difference_ci95":[lo,hi],
//     "probability_of_improvement","episodes","seeds","judged":true|false,
//     "better":true|false|null}, ...]
// `better` is null where the interval holds 0 or there are too few episodes to say; of the primary
// metric also where it is better at the price of a broken constraint.
OrderedJson PairsOf(const Outcomes& outcomes, const JudgeRule& rule, const PairLabels& labels);

// A table of those that have a part in the verdict (`judged`), aligned; ends with a newline. Labels
// that are the same in all rows are left out.
std::string PairsTable(const OrderedJson& pairs);

}  // namespace rudderfish
