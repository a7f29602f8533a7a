// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/json.h"
#include "evaluation/judge.h"

// Outcomes of any world in words: a table of means and the verdict, and the same as JSON.

namespace rudderfish {

// A row a policy, a column a metric under its title; of the primary metric also the interval of its
// mean.
std::string OutcomesTable(const Outcomes& outcomes, const JudgeRule& rule);

// The candidate against policy `baseline` in a sentence: "lp is better than locality on these 60
// episodes: objective -0.1 [-0.2, -0.1] (-5.0 %), ...".
std::string VerdictText(const Outcomes& outcomes, const JudgeRule& rule, int baseline);

// {"policies": [{"name","seeds","METRIC": mean, ..., "METRIC_ci95": [lo, hi] of the primary}, ...],
//  "pairs": PairsOf without labels, "verdict": {"candidate","baseline","finding","text"}}; no
// verdict where `baseline` is -1.
OrderedJson OutcomesJson(const Outcomes& outcomes, const JudgeRule& rule, int baseline);

}  // namespace rudderfish
