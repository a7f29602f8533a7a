// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "control/mode.h"

// What comparisons of the past (control/placement_comparison.h) say together, and what they allow:
// what a promotion still lacks, and whether a canary does worse than its control group. Pure
// functions of sums.
//
// A canary is looked at again and again, so that an interval of 95 % each time would end many that
// are as good as their control group. Its bounds therefore hold for all looks together: Robbins'
// normal mixture (Robbins: "Statistical methods related to the law of the iterated logarithm", Ann.
// Math. Statist. 41, 1970; Howard, Ramdas, McAuliffe and Sekhon: "Time-uniform, nonparametric,
// nonasymptotic confidence sequences", Ann. Statist. 49, 2021, eq. 14). A canary that is no worse
// is ended wrongly in at most 5 of 100, however long it runs: two one-sided tests, of 2.5 each. Not
// where what its pods come to depends on each other.

namespace rudderfish {

// Sums of a quantity; its mean with a 95 % interval (Student's t).
struct MeanSum {
  int64_t count = 0;
  double sum = 0, squares = 0;

  void Add(double value);
  double mean() const { return count == 0 ? 0 : sum / static_cast<double>(count); }
  double variance() const;               // Of one value; 0 below 2.
  std::optional<double> half95() const;  // Half the interval's width; nothing below 2.
  bool operator==(const MeanSum&) const = default;
};

// Which comparisons are asked about: of a policy for an objective, with the choices of the
// schedulers that are named, from a number on.
struct EvidenceQuestion {
  std::string policy, objective;
  std::string cluster;                  // By its name; empty: the configuration's own.
  std::vector<std::string> schedulers;  // Empty: any.
  int64_t from = 0;
};

// How our rules agree with one scheduler's.
struct SchedulerEvidence {
  std::string scheduler;  // As pods name it.
  int64_t equal = 0, different = 0, unclear = 0, unmodelled = 0;

  int64_t decisions() const { return equal + different; }
  bool operator==(const SchedulerEvidence&) const = default;
};

inline constexpr size_t kDifferencesNamed = 5;

// Of pods that other schedulers placed. Changes and gains are fractions of the worst.
struct ShadowEvidence {
  int64_t equal = 0, different = 0, unclear = 0, unmodelled = 0;  // By RulesVerdict.
  int64_t same_choice = 0;                                        // Of equal.
  std::vector<int64_t> differences;  // Their numbers, the newest first; kDifferencesNamed at most.
  std::string difference;            // The newest, in words.
  MeanSum gain;                      // Predicted, a pod.
  MeanSum error;                     // Predicted less measured later.
  int64_t started = 0, failed = 0, evicted = 0;

  int64_t decisions() const { return equal + different; }
  bool operator==(const ShadowEvidence&) const = default;
};

struct GroupEvidence {
  int64_t pods = 0, bad = 0;  // Of them failed or evicted.
  MeanSum change;             // Of the objective by a pod, measured.
  bool operator==(const GroupEvidence&) const = default;
};

// Since the canary began.
struct TrialEvidence {
  GroupEvidence canary, control;
  bool operator==(const TrialEvidence&) const = default;
};

inline constexpr int64_t kShadowedNeeded = 500;
inline constexpr int64_t kErrorsNeeded = 30;  // Measured, of shadowed decisions.
inline constexpr int64_t kTrialNeeded = 30;   // Measured, in each group.

// What is missing for a promotion to that mode, one line each; empty: nothing.
std::vector<std::string> WhatIsMissing(Mode to, const ShadowEvidence& shadow,
                                       const TrialEvidence& trial);

// Why the canary does worse than its control group; nothing: it does not, or it is too early. By
// the means of what pods change, from kTrialNeeded measured in each group on; by the shares of bad
// pods (Newcombe: "Interval estimation for the difference between independent proportions", Stat.
// Med. 17, 1998, method 10), from kTrialNeeded pods in each group and 5 bad ones on.
std::optional<std::string> WhyWorse(const TrialEvidence& trial);

// "+12.3 ± 4.5 ppm", millionths of the worst.
std::string InMillionths(const MeanSum& sum);

}  // namespace rudderfish
