// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "evaluation/statistics.h"

// What policies did, and what may be said of it: one table and one rule for every kind of decision.
// Each world (moving pods, placing them, an application under load) contributes its metrics and the
// rule; nothing else decides whether a policy is better.

namespace rudderfish {

struct Metric {
  enum class Better { kLess, kMore };

  std::string name, unit;
  std::string title;  // For readers.
  int decimals = 3;
  Better better = Better::kLess;
};

// Policy x training seed x episode x metric. All policies met the same episodes; the last policy is
// the candidate.
struct Outcomes {
  struct Of {
    std::string name;
    int seeds = 1;  // Of training.
  };

  int episodes = 0;
  BootstrapOptions resampling;  // With the strata of episodes, if there are any.
  std::vector<Metric> metrics;
  std::vector<Of> policies;
  std::vector<RunMatrix> runs;  // [policy][metric]

  const RunMatrix& of(int policy, int metric) const {
    return runs[static_cast<size_t>(policy) * metrics.size() + static_cast<size_t>(metric)];
  }
  int candidate() const { return static_cast<int>(policies.size()) - 1; }
};

enum class Finding {
  kBetter,       // The primary metric is better, and every constraint is kept.
  kWorse,        // The primary metric is worse.
  kBreaksLimit,  // Not worse, but a constraint is broken.
  kUndecided,    // An interval holds 0, or there are too few episodes to say.
};

// Were there no difference, all of 5 episodes would still agree once in 16 times: too often for
// 95 %. It is so in every world.
inline constexpr int kEpisodesForFinding = 6;

// A metric that may not become worse by more than `tolerance`, in its unit; with `most`, one that
// may not be above that by more.
struct Constraint {
  int metric = 0;
  double tolerance = 0;
  std::optional<double> most = {};
};

struct JudgeRule {
  int primary = 0;
  std::vector<Constraint> constraints;
  int episodes_min = kEpisodesForFinding;
};

// candidate - baseline, with its 95 % interval.
struct Difference {
  double mean = 0;
  ConfidenceInterval ci95;
};

Difference DifferenceIn(const Outcomes& outcomes, int metric, int baseline);

// The one place in which intervals become a verdict. Smaller is better in all of them.
// `constraints`: of JudgeRule::constraints, in their order.
Finding FindingOf(const JudgeRule& rule, int episodes, const ConfidenceInterval& primary,
                  std::span<const ConfidenceInterval> constraints = {});

// The candidate against policy `baseline`.
Finding Judge(const Outcomes& outcomes, const JudgeRule& rule, int baseline);

// Which of the others the candidate is compared with.
struct BaselineCandidate {
  double beyond = 0;  // How far it is beyond a limit; 0: it keeps them.
  double cost = 0;
  bool shares_network = false;  // With the candidate: chosen only where there is no other.
};

// The cheapest of those that keep the limits; where none does, the one that is least beyond them.
// One that holds the candidate's own network says nothing of whether that network is worth having.
// -1 if there is none.
int ChooseBaseline(std::span<const BaselineCandidate> policies);

// A line that says that there are too few to show anything; empty where they are enough. `noun` is
// what one of them is called.
std::string TooFewText(int64_t count, std::string_view noun);

// "1 start", "2 starts".
std::string CountText(int64_t count, std::string_view noun);

// "better", "worse", "breaks-limit", "undecided".
std::string_view FindingName(Finding finding);

}  // namespace rudderfish
