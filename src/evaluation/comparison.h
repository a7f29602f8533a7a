// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "evaluation/evaluation.h"
#include "evaluation/judge.h"
#include "evaluation/statistics.h"

// What an Evaluation says: each policy in numbers with 95 % intervals, and a verdict on the last
// policy named (the candidate) against the best of the others (the baseline), from the same starts.
// A pure function of the Evaluation and the resampling's options; as text, JSON and CSV.
//
// All times are ms of mean request latency; smaller is better.

namespace rudderfish {

// Of one policy over some starts and all its training seeds.
struct PolicySummary {
  double mean_initial_ms = 0;
  double mean_final_ms = 0;
  ConfidenceInterval mean_final_ci;
  double iqm_final_ms = 0;  // Interquartile mean over starts and seeds.
  ConfidenceInterval iqm_final_ci;
  double worst_final_ms = 0;   // The largest final latency of any episode,
  int worst_start = 0;         // and its start's line.
  double worst_change_ms = 0;  // The largest final - initial: above 0 some start was made worse.
  double mean_moves = 0;
  double stopped_share = 0;  // Episodes that ended by decision, not by the task's limit of steps.
  // Of what the best episode of all policies here won from each start; nothing if no policy won
  // anything.
  std::optional<double> share_of_best;
  // Of what can be won at all, step costs paid, over the starts whose optimum was proven.
  std::optional<double> share_of_optimum;
  int proven_starts = 0;
};

// candidate - baseline over some starts.
struct PairedResult {
  double difference_ms = 0;
  ConfidenceInterval difference_ci;
  double probability_of_improvement = 0;
  ConfidenceInterval probability_ci;
  int starts_better = 0, starts_equal = 0, starts_worse = 0;  // Means over seeds, within kTie.
};

struct Comparison {
  struct Pattern {
    std::string name;
    int starts = 0;
    std::vector<PolicySummary> policies;  // [policy]
    std::optional<PairedResult> paired;
  };
  struct Verdict {
    int candidate = 0, baseline = 0;  // Positions in Evaluation::policies.
    Finding finding = Finding::kUndecided;
    PairedResult paired;
    std::string text;  // In words, one or two sentences.
  };

  std::vector<PolicySummary> policies;  // [policy]
  std::vector<Pattern> patterns;        // By name of call pattern, if starts have several.
  std::optional<Verdict> verdict;       // With two policies or more.

  bool better() const { return verdict && verdict->finding == Finding::kBetter; }
};

// `options.strata` is ignored: the strata are the patterns, where each has at least 5 starts.
Comparison Compare(const Evaluation& evaluation, const BootstrapOptions& options = {});

// Final latencies of one policy, by start and seed; of the starts of one pattern, if not empty.
RunMatrix FinalLatencies(const Evaluation& evaluation, int policy, std::string_view pattern = {});

// Final latencies, for the judge; `rule` is JudgeRule{}. Starts are resampled within patterns.
Outcomes OutcomesOf(const Evaluation& evaluation, const BootstrapOptions& options = {});

// Lowest latency of each start over all policies and seeds, at the start or at the end.
std::vector<double> BestLatencies(const Evaluation& evaluation);

// Aligned text of at most 100 columns, the verdict last. Ends with a newline.
std::string ComparisonTable(const Evaluation& evaluation, const Comparison& comparison);

// The format of `evaluate -o json`, schema_version 1. Numbers read back to the same bits.
std::string EvaluationJson(const Evaluation& evaluation, const Comparison& comparison);

// What EvaluationJson wrote, as far as distributions and Compare need it: latencies alone, without
// decisions and times. Messages name the source and the key.
Result<Evaluation> EvaluationOf(const Json& json, std::string_view source_name);

// One row an episode, after a header (RFC 4180).
std::string EpisodesCsv(const Evaluation& evaluation);

// "-3.2" or "+3.2", "0.0" for what rounds to it; "[-5.1, -1.4]".
std::string SignedText(double value, int decimals);
std::string MsText(double ms);  // "12.3"
std::string IntervalText(const ConfidenceInterval& interval, int decimals);

}  // namespace rudderfish
