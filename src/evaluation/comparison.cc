// SPDX-License-Identifier: Apache-2.0
#include "evaluation/comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace rudderfish {
namespace {

// Strata of fewer starts than this are too small to be resampled alone.
constexpr int kStartsPerStratum = 5;

// Positions of starts: all, or those of one pattern.
std::vector<int> Select(const Evaluation& evaluation, std::string_view pattern) {
  std::vector<int> selected;
  for (int i = 0; i < evaluation.start_count(); ++i) {
    if (pattern.empty() || evaluation.starts[i].pattern == pattern) selected.push_back(i);
  }
  return selected;
}

// Names in order of appearance.
std::vector<std::string> PatternNames(const Evaluation& evaluation) {
  std::vector<std::string> names;
  for (const EvaluatedStart& start : evaluation.starts) {
    if (std::find(names.begin(), names.end(), start.pattern) == names.end()) {
      names.push_back(start.pattern);
    }
  }
  return names;
}

RunMatrix Finals(const Evaluation& evaluation, int policy, const std::vector<int>& selected) {
  const EvaluatedPolicy& run = evaluation.policies[policy];
  RunMatrix runs{.starts = static_cast<int>(selected.size()), .seeds = run.training_seeds};
  for (int start : selected) {
    for (int seed = 0; seed < runs.seeds; ++seed) {
      runs.values.push_back(run.at(seed, start, evaluation.start_count()).final.latency_ms);
    }
  }
  return runs;
}

std::vector<int> Strata(const Evaluation& evaluation) {
  const std::vector<std::string> names = PatternNames(evaluation);
  std::vector<int> strata, sizes(names.size());
  for (const EvaluatedStart& start : evaluation.starts) {
    const auto found = std::find(names.begin(), names.end(), start.pattern);
    strata.push_back(static_cast<int>(found - names.begin()));
    ++sizes[strata.back()];
  }
  if (*std::min_element(sizes.begin(), sizes.end()) < kStartsPerStratum) strata.clear();
  return strata;
}

PolicySummary Summarize(const Evaluation& evaluation, int policy, const std::vector<int>& selected,
                        const std::vector<double>& best, const BootstrapOptions& options) {
  const EvaluatedPolicy& run = evaluation.policies[policy];
  const RunMatrix finals = Finals(evaluation, policy, selected);
  PolicySummary summary{.mean_final_ms = Mean(finals.values),
                        .mean_final_ci = BootstrapMean(finals, options),
                        .iqm_final_ms = InterquartileMean(finals.values),
                        .iqm_final_ci = BootstrapInterquartileMean(finals, options),
                        .worst_final_ms = -std::numeric_limits<double>::infinity(),
                        .worst_change_ms = -std::numeric_limits<double>::infinity()};
  std::vector<double> initial, final, lowest, proven_initial, proven_cost, optimum;
  for (int start : selected) {
    const std::optional<double> proven = evaluation.starts[start].optimum_ms;
    summary.proven_starts += proven.has_value();
    for (int seed = 0; seed < run.training_seeds; ++seed) {
      const EvaluatedEpisode& episode = run.at(seed, start, evaluation.start_count());
      initial.push_back(episode.initial.latency_ms);
      final.push_back(episode.final.latency_ms);
      lowest.push_back(best[start]);
      if (proven) {
        proven_initial.push_back(initial.back());
        proven_cost.push_back(initial.back() - episode.return_ms);
        optimum.push_back(*proven);
      }
      if (final.back() > summary.worst_final_ms) {
        summary.worst_final_ms = final.back();
        summary.worst_start = evaluation.starts[start].line;
      }
      summary.worst_change_ms = std::max(summary.worst_change_ms, final.back() - initial.back());
      summary.mean_moves += static_cast<double>(episode.decisions.size());
      summary.stopped_share += episode.stopped;
    }
  }
  summary.mean_initial_ms = Mean(initial);
  summary.mean_moves /= static_cast<double>(final.size());
  summary.stopped_share /= static_cast<double>(final.size());
  summary.share_of_best = ShareWon(initial, final, lowest);
  summary.share_of_optimum = ShareWon(proven_initial, proven_cost, optimum);
  return summary;
}

PairedResult Pair(const RunMatrix& candidate, const RunMatrix& baseline,
                  const BootstrapOptions& options) {
  PairedResult result{
      .difference_ms = PairedDifference(candidate, baseline),
      .difference_ci = BootstrapPairedDifference(candidate, baseline, options),
      .probability_of_improvement = ProbabilityOfImprovement(candidate, baseline),
      .probability_ci = BootstrapProbabilityOfImprovement(candidate, baseline, options)};
  for (int start = 0; start < candidate.starts; ++start) {
    const auto mean = [&](const RunMatrix& runs) {
      return Mean({&runs.values[start * runs.seeds], static_cast<size_t>(runs.seeds)});
    };
    const double difference = mean(candidate) - mean(baseline);
    result.starts_better += difference < -kTie;
    result.starts_worse += difference > kTie;
    result.starts_equal += std::abs(difference) <= kTie;
  }
  return result;
}

std::string VerdictText(const Evaluation& evaluation, const Comparison::Verdict& verdict) {
  const PairedResult& paired = verdict.paired;
  const std::string& candidate = evaluation.policies[verdict.candidate].name;
  const std::string& baseline = evaluation.policies[verdict.baseline].name;
  const int starts = evaluation.start_count();
  const int seeds = evaluation.policies[verdict.candidate].training_seeds;
  const std::string numbers = fmt::format(
      "{} ms {} in mean final latency (paired, 95 % interval over starts{}); better on {}, equal "
      "on {}, worse on {}.",
      SignedText(paired.difference_ms, 1), IntervalText(paired.difference_ci, 1),
      seeds > 1 ? fmt::format(" and {} training seeds", seeds) : "", paired.starts_better,
      paired.starts_equal, paired.starts_worse);
  if (starts < kEpisodesForFinding) {
    return fmt::format(
        "No difference between {} and {} can be shown on {}: at least {} are needed. {}", candidate,
        baseline, CountText(starts, "start"), kEpisodesForFinding, numbers);
  }
  switch (verdict.finding) {
    case Finding::kBetter:
      return fmt::format("{} is better than {} on these {} starts: {}", candidate, baseline, starts,
                         numbers);
    case Finding::kWorse:
      return fmt::format("{} is not better than {}; it is worse on these {} starts: {}", candidate,
                         baseline, starts, numbers);
    case Finding::kBreaksLimit:  // There is no limit.
    case Finding::kUndecided:
      break;
  }
  return fmt::format("No difference between {} and {} can be shown on these {} starts: {}",
                     candidate, baseline, starts, numbers);
}

Comparison::Verdict VerdictOf(const Evaluation& evaluation, const Comparison& comparison,
                              const BootstrapOptions& options) {
  Comparison::Verdict verdict{.candidate = static_cast<int>(evaluation.policies.size()) - 1};
  std::vector<BaselineCandidate> others;  // On the same starts, which favours the baseline.
  for (int p = 0; p < verdict.candidate; ++p)
    others.push_back({.cost = comparison.policies[p].mean_final_ms,
                      .shares_network = evaluation.policies[p].shares_network});
  verdict.baseline = ChooseBaseline(others);
  verdict.paired = Pair(FinalLatencies(evaluation, verdict.candidate),
                        FinalLatencies(evaluation, verdict.baseline), options);
  verdict.finding = FindingOf(JudgeRule{}, evaluation.start_count(), verdict.paired.difference_ci);
  verdict.text = VerdictText(evaluation, verdict);
  return verdict;
}

}  // namespace

RunMatrix FinalLatencies(const Evaluation& evaluation, int policy, std::string_view pattern) {
  return Finals(evaluation, policy, Select(evaluation, pattern));
}

Outcomes OutcomesOf(const Evaluation& evaluation, const BootstrapOptions& options) {
  Outcomes outcomes{
      .episodes = evaluation.start_count(),
      .resampling = options,
      .metrics = {{.name = "final_" + evaluation.objective, .unit = evaluation.unit}}};
  outcomes.resampling.strata = Strata(evaluation);
  for (size_t p = 0; p < evaluation.policies.size(); ++p) {
    const EvaluatedPolicy& policy = evaluation.policies[p];
    outcomes.policies.push_back({policy.name, policy.training_seeds});
    outcomes.runs.push_back(FinalLatencies(evaluation, static_cast<int>(p)));
  }
  return outcomes;
}

std::vector<double> BestLatencies(const Evaluation& evaluation) {
  std::vector<double> best(evaluation.starts.size(), std::numeric_limits<double>::infinity());
  for (const EvaluatedPolicy& policy : evaluation.policies) {
    for (const EvaluatedEpisode& episode : policy.episodes) {
      const double reached = std::min(episode.initial.latency_ms, episode.final.latency_ms);
      best[episode.start] = std::min(best[episode.start], reached);
    }
  }
  return best;
}

Comparison Compare(const Evaluation& evaluation, const BootstrapOptions& options) {
  const int policies = static_cast<int>(evaluation.policies.size());
  const std::vector<double> best = BestLatencies(evaluation);
  Comparison comparison;
  BootstrapOptions all = options, within = options;
  all.strata = Strata(evaluation);
  within.strata.clear();
  for (int p = 0; p < policies; ++p) {
    comparison.policies.push_back(Summarize(evaluation, p, Select(evaluation, {}), best, all));
  }
  if (policies > 1) comparison.verdict = VerdictOf(evaluation, comparison, all);

  const std::vector<std::string> names = PatternNames(evaluation);
  if (names.size() < 2) return comparison;
  for (const std::string& name : names) {
    const std::vector<int> selected = Select(evaluation, name);
    Comparison::Pattern pattern{.name = name, .starts = static_cast<int>(selected.size())};
    for (int p = 0; p < policies; ++p) {
      pattern.policies.push_back(Summarize(evaluation, p, selected, best, within));
    }
    if (comparison.verdict) {
      pattern.paired = Pair(Finals(evaluation, comparison.verdict->candidate, selected),
                            Finals(evaluation, comparison.verdict->baseline, selected), within);
    }
    comparison.patterns.push_back(std::move(pattern));
  }
  return comparison;
}

}  // namespace rudderfish
