// SPDX-License-Identifier: Apache-2.0
#include "evaluation/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "base/rng.h"

namespace rudderfish {
namespace {

// Resample r draws from Rng(seed, stream, r): one stream for starts, one for each side's seeds.
constexpr uint64_t kStartStream = uint64_t{1} << 50;
constexpr uint64_t kSeedStream = kStartStream + 1;

void CheckMatrix(const RunMatrix& runs) {
  CHECK_GT(runs.starts, 0);
  CHECK_GT(runs.seeds, 0);
  CHECK_EQ(runs.values.size(), static_cast<size_t>(runs.starts) * runs.seeds);
}

// Draws starts within their strata.
class StartSampler {
 public:
  StartSampler(int starts, std::span<const int> strata) : weights_(starts) {
    CHECK(strata.empty() || strata.size() == weights_.size());
    const int count = strata.empty() ? 1 : 1 + *std::max_element(strata.begin(), strata.end());
    members_.resize(count);
    for (int start = 0; start < starts; ++start) {
      members_[strata.empty() ? 0 : strata[start]].push_back(start);
    }
  }

  std::span<const int> Draw(Rng* rng) {
    std::fill(weights_.begin(), weights_.end(), 0);
    for (const std::vector<int>& members : members_) {
      const auto n = static_cast<uint32_t>(members.size());
      for (uint32_t i = 0; i < n; ++i) ++weights_[members[rng->Below(n)]];
    }
    return weights_;
  }

 private:
  std::vector<std::vector<int>> members_;  // [stratum]
  std::vector<int> weights_;
};

// The percentile interval of `statistic`(start weights, weights of the first side's seeds, weights
// of the second side's).
template <class Statistic>
ConfidenceInterval Bootstrap(int starts, int first_seeds, int second_seeds,
                             const BootstrapOptions& options, Statistic&& statistic) {
  CHECK_GT(options.resamples, 0);
  StartSampler sampler(starts, options.strata);
  std::vector<int> first(first_seeds), second(second_seeds);
  std::vector<double> values(options.resamples);
  for (int r = 0; r < options.resamples; ++r) {
    Rng start_rng(options.seed, kStartStream, r);
    Rng first_rng(options.seed, kSeedStream, r);
    Rng second_rng(options.seed, kSeedStream + 1, r);
    DrawWeights(&first_rng, first);
    DrawWeights(&second_rng, second);
    values[r] = statistic(sampler.Draw(&start_rng), std::span<const int>(first),
                          std::span<const int>(second));
  }
  return PercentileInterval(std::move(values), options.confidence);
}

// Sum over the seeds of a row, weighted, over the number of seeds.
double RowMean(const RunMatrix& runs, int start, std::span<const int> seed_weights) {
  double sum = 0;
  for (int seed = 0; seed < runs.seeds; ++seed) sum += seed_weights[seed] * runs.at(start, seed);
  return sum / runs.seeds;
}

// 1 for better, 1/2 for a tie, 0 for worse.
double Wins(double candidate, double baseline) {
  if (std::abs(candidate - baseline) <= kTie) return 0.5;
  return candidate < baseline ? 1 : 0;
}

// Weighted Mann-Whitney statistic of one start.
double StartWins(const RunMatrix& candidate, const RunMatrix& baseline, int start,
                 std::span<const int> candidate_weights, std::span<const int> baseline_weights) {
  double wins = 0;
  for (int c = 0; c < candidate.seeds; ++c) {
    for (int b = 0; b < baseline.seeds; ++b) {
      wins += candidate_weights[c] * baseline_weights[b] *
              Wins(candidate.at(start, c), baseline.at(start, b));
    }
  }
  return wins / (candidate.seeds * baseline.seeds);
}

// Interquartile mean of values that stand in ascending order and occur `weight(i)` times each.
template <class Weight>
double TrimmedMean(std::span<const double> ascending, int64_t total, Weight&& weight) {
  const int64_t cut = total / 4;
  int64_t seen = 0;
  double sum = 0;
  for (size_t i = 0; i < ascending.size() && seen < total - cut; ++i) {
    const int64_t next = seen + weight(i);
    const int64_t kept = std::min(next, total - cut) - std::max(seen, cut);
    if (kept > 0) sum += static_cast<double>(kept) * ascending[i];
    seen = next;
  }
  return sum / static_cast<double>(total - 2 * cut);
}

// Of the mean over starts of what `of_start` says of the two policies at one start, by how often
// each seed was drawn.
template <class OfStart>
ConfidenceInterval BootstrapPairs(const RunMatrix& candidate, const RunMatrix& baseline,
                                  const BootstrapOptions& options, OfStart&& of_start) {
  CheckMatrix(candidate);
  CheckMatrix(baseline);
  CHECK_EQ(candidate.starts, baseline.starts);
  return Bootstrap(candidate.starts, candidate.seeds, baseline.seeds, options,
                   [&](auto starts, auto candidate_seeds, auto baseline_seeds) {
                     double sum = 0;
                     for (int start = 0; start < candidate.starts; ++start) {
                       if (starts[start] == 0) continue;
                       sum += starts[start] * of_start(start, candidate_seeds, baseline_seeds);
                     }
                     return sum / candidate.starts;
                   });
}

}  // namespace

double Mean(std::span<const double> values) {
  CHECK(!values.empty());
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double InterquartileMean(std::vector<double> values) {
  CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  return TrimmedMean(values, static_cast<int64_t>(values.size()), [](size_t) { return 1; });
}

double Quantile(std::vector<double> values, double share) {
  CHECK(!values.empty());
  CHECK(share >= 0 && share <= 1);
  std::sort(values.begin(), values.end());
  const double position = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (position - static_cast<double>(below)) * (values[above] - values[below]);
}

void DrawWeights(Rng* rng, std::span<int> weights) {
  std::fill(weights.begin(), weights.end(), 0);
  const auto n = static_cast<uint32_t>(weights.size());
  for (uint32_t i = 0; i < n; ++i) ++weights[rng->Below(n)];
}

double WeightedMean(const RunMatrix& runs, std::span<const int> starts,
                    std::span<const int> seeds) {
  double sum = 0;
  for (int start = 0; start < runs.starts; ++start) {
    if (starts[start] > 0) sum += starts[start] * RowMean(runs, start, seeds);
  }
  return sum / runs.starts;
}

ConfidenceInterval PercentileInterval(std::vector<double> values, double confidence) {
  const double tail = (1 - confidence) / 2;
  return {Quantile(values, tail), Quantile(std::move(values), 1 - tail)};
}

ConfidenceInterval BootstrapMean(const RunMatrix& runs, const BootstrapOptions& options) {
  CheckMatrix(runs);
  return Bootstrap(runs.starts, runs.seeds, 1, options, [&](auto starts, auto seeds, auto) {
    return WeightedMean(runs, starts, seeds);
  });
}

ConfidenceInterval BootstrapInterquartileMean(const RunMatrix& runs,
                                              const BootstrapOptions& options) {
  CheckMatrix(runs);
  // Sorted once; a resample only reweights the values.
  std::vector<int> order(runs.values.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](int a, int b) { return runs.values[a] < runs.values[b]; });
  std::vector<double> ascending(order.size());
  for (size_t i = 0; i < order.size(); ++i) ascending[i] = runs.values[order[i]];
  const auto total = static_cast<int64_t>(order.size());
  return Bootstrap(runs.starts, runs.seeds, 1, options, [&](auto starts, auto seeds, auto) {
    return TrimmedMean(ascending, total, [&](size_t i) {
      return int64_t{starts[order[i] / runs.seeds]} * seeds[order[i] % runs.seeds];
    });
  });
}

double PairedDifference(const RunMatrix& candidate, const RunMatrix& baseline) {
  CHECK_EQ(candidate.starts, baseline.starts);
  return Mean(candidate.values) - Mean(baseline.values);
}

ConfidenceInterval BootstrapPairedDifference(const RunMatrix& candidate, const RunMatrix& baseline,
                                             const BootstrapOptions& options) {
  return BootstrapPairs(candidate, baseline, options,
                        [&](int start, auto candidate_seeds, auto baseline_seeds) {
                          return RowMean(candidate, start, candidate_seeds) -
                                 RowMean(baseline, start, baseline_seeds);
                        });
}

double ProbabilityOfImprovement(const RunMatrix& candidate, const RunMatrix& baseline) {
  CheckMatrix(candidate);
  CheckMatrix(baseline);
  CHECK_EQ(candidate.starts, baseline.starts);
  const std::vector<int> candidate_once(candidate.seeds, 1), baseline_once(baseline.seeds, 1);
  double sum = 0;
  for (int start = 0; start < candidate.starts; ++start) {
    sum += StartWins(candidate, baseline, start, candidate_once, baseline_once);
  }
  return sum / candidate.starts;
}

ConfidenceInterval BootstrapProbabilityOfImprovement(const RunMatrix& candidate,
                                                     const RunMatrix& baseline,
                                                     const BootstrapOptions& options) {
  return BootstrapPairs(
      candidate, baseline, options, [&](int start, auto candidate_seeds, auto baseline_seeds) {
        return StartWins(candidate, baseline, start, candidate_seeds, baseline_seeds);
      });
}

std::optional<double> ShareWon(std::span<const double> initial, std::span<const double> final,
                               std::span<const double> best) {
  CHECK_EQ(initial.size(), final.size());
  CHECK_EQ(initial.size(), best.size());
  double won = 0, winnable = 0;
  for (size_t i = 0; i < initial.size(); ++i) {
    won += initial[i] - final[i];
    winnable += initial[i] - best[i];
  }
  if (winnable <= kTie) return std::nullopt;
  return won / winnable;
}

}  // namespace rudderfish
