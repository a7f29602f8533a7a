// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/rng.h"

// What may be said of policies that ran from the same starts with several training seeds.
//
// Agarwal, Schwarzer, Castro, Courville, Bellemare: "Deep reinforcement learning at the edge of the
// statistical precipice", NeurIPS 2021: interquartile means, percentile bootstrap intervals and the
// probability of improvement instead of means of few runs alone. There the runs of every task are
// resampled within the task; here all seeds meet all starts, so both are resampled and cross
// (Owen: "The pigeonhole bootstrap", Annals of Applied Statistics 2007), and starts are resampled
// within their stratum, which is their call pattern. Percentile intervals: Efron and Tibshirani,
// "An introduction to the bootstrap", 1993, chapter 13.
//
// Everything is a pure function of its arguments. Smaller values are better throughout.

namespace rudderfish {

struct ConfidenceInterval {
  double low = 0;
  double high = 0;

  bool operator==(const ConfidenceInterval&) const = default;
};

// One value for each start and training seed of a policy. A policy that was not trained has one
// column.
struct RunMatrix {
  int starts = 0;
  int seeds = 0;
  std::vector<double> values;  // [start][seed]

  double at(int start, int seed) const { return values[start * seeds + seed]; }
};

struct BootstrapOptions {
  uint64_t seed = 1;
  int resamples = 2000;
  double confidence = 0.95;
  // [start] Starts are resampled among those of equal number, which are dense from 0. Empty: among
  // all.
  std::vector<int> strata;
};

// REQUIRES of all below: at least one value.
double Mean(std::span<const double> values);

// Mean of the middle half: a quarter of the values, rounded down, is left out at either end.
double InterquartileMean(std::vector<double> values);

// `share` in [0, 1]; between two values by their distance (type 7 of Hyndman and Fan, "Sample
// quantiles in statistical packages", The American Statistician 1996).
double Quantile(std::vector<double> values, double share);

ConfidenceInterval BootstrapMean(const RunMatrix& runs, const BootstrapOptions& options);
ConfidenceInterval BootstrapInterquartileMean(const RunMatrix& runs,
                                              const BootstrapOptions& options);

// Mean of candidate - baseline over starts: paired, since both ran from each start. In a resample
// both have the same starts, and each its own seeds. REQUIRES: equally many starts.
double PairedDifference(const RunMatrix& candidate, const RunMatrix& baseline);
ConfidenceInterval BootstrapPairedDifference(const RunMatrix& candidate, const RunMatrix& baseline,
                                             const BootstrapOptions& options);

// P(candidate < baseline) on a start drawn at random, with a seed of each drawn at random; a tie
// counts half (Agarwal et al. §4.3: the mean over tasks of the Mann-Whitney statistic). Values
// within kTie of each other are equal placements summed in another order.
inline constexpr double kTie = 1e-9;
double ProbabilityOfImprovement(const RunMatrix& candidate, const RunMatrix& baseline);
ConfidenceInterval BootstrapProbabilityOfImprovement(const RunMatrix& candidate,
                                                     const RunMatrix& baseline,
                                                     const BootstrapOptions& options);

// The parts of the intervals above, for a statistic of more than two matrices. How often each of
// `weights` was drawn, in as many draws with replacement as there are.
void DrawWeights(Rng* rng, std::span<int> weights);
// Mean over starts and seeds, each as often as it was drawn.
double WeightedMean(const RunMatrix& runs, std::span<const int> starts, std::span<const int> seeds);
// Of the values of a statistic in all resamples.
ConfidenceInterval PercentileInterval(std::vector<double> values, double confidence = 0.95);

// What was won of what could be won: sum of (initial - final) over sum of (initial - best), all
// three in the same order. A ratio of sums, so that starts where little can be won weigh little.
// Nothing if nothing can be won.
std::optional<double> ShareWon(std::span<const double> initial, std::span<const double> final,
                               std::span<const double> best);

}  // namespace rudderfish
