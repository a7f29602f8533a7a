// SPDX-License-Identifier: Apache-2.0
#include "evaluation/placement_evaluation.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "evaluation/placement_bound.h"
#include "evaluation/placement_foresight.h"
#include "sim/episode_cut.h"
#include "sim/held_out.h"
#include "sim/placement_run.h"

namespace rudderfish {
namespace {

constexpr int kEpisodesForChoosing = 16;

struct PlacementJob {
  int policy = 0, member = 0;
  int episode = 0;
  bool for_choosing = false;
  Result<LifecycleMetrics> metrics = LifecycleMetrics();
  std::vector<double> decide_us;
  bool is_done = false;
};

// Those that choose the baseline, then episode by episode.
std::vector<PlacementJob> JobsOf(const std::vector<PlacementGroup>& policies, int episodes) {
  std::vector<PlacementJob> jobs;
  const auto count = static_cast<int>(policies.size());
  for (int p = 0; p + 1 < count; ++p) {
    for (int i = 0; i < kEpisodesForChoosing; ++i)
      jobs.push_back({.policy = p, .episode = i, .for_choosing = true});
  }
  for (int i = 0; i < episodes; ++i) {
    for (int p = 0; p < count; ++p) {
      for (int m = 0; m < static_cast<int>(policies[p].members.size()); ++m)
        jobs.push_back({.policy = p, .member = m, .episode = i});
    }
  }
  return jobs;
}

// The best of the others that keep to hard limits; where none does, the one with the fewest misses.
int BaselineOf(const PlacementEvaluation& evaluation,
               const std::vector<int64_t>& trial_violations) {
  std::vector<BaselineCandidate> others;
  for (size_t p = 0; p + 1 < evaluation.policies.size(); ++p) {
    others.push_back({.beyond = static_cast<double>(trial_violations[p]),
                      .cost = evaluation.policies[p].trial_cost,
                      .shares_network = evaluation.policies[p].shares_network});
  }
  return ChooseBaseline(others);
}

void Compare(const std::vector<int64_t>& trial_violations, PlacementEvaluation* evaluation) {
  const int count = static_cast<int>(evaluation->policies.size());
  if (count < 2) return;
  evaluation->baseline = BaselineOf(*evaluation, trial_violations);
  const int episodes = evaluation->episodes;
  const RunMatrix candidate = evaluation->policies.back().Objectives(episodes);
  const RunMatrix baseline = evaluation->policies[evaluation->baseline].Objectives(episodes);
  evaluation->difference = PairedDifference(candidate, baseline);
  evaluation->difference_ci = BootstrapPairedDifference(candidate, baseline, {});
  for (int i = 0; i < episodes; ++i) {
    const auto mean = [&](const RunMatrix& runs) {
      return Mean({&runs.values[i * runs.seeds], static_cast<size_t>(runs.seeds)});
    };
    const double difference = mean(candidate) - mean(baseline);
    evaluation->better += difference < -kTie ? 1 : 0;
    evaluation->worse += difference > kTie ? 1 : 0;
    evaluation->equal += std::abs(difference) <= kTie ? 1 : 0;
  }
  evaluation->finding = FindingOf(JudgeRule{}, episodes, evaluation->difference_ci);
}

// Of one episode.
struct Bounds {
  double none_below = 0;
  std::optional<double> best_foreseen;
};

Result<Bounds> BoundsOf(const std::shared_ptr<const Scenario>& scenario, uint64_t seed) {
  Bounds bounds;
  TRY_ASSIGN(bounds.none_below, LeastBalance(scenario, seed));
  TRY_ASSIGN(bounds.best_foreseen, BestForeseenBalance(scenario, seed));
  return bounds;
}

// Their means.
Result<void> ComputeBounds(const std::shared_ptr<const Scenario>& scenario,
                           const PlacementEvaluationOptions& options, ThreadPool* pool,
                           PlacementEvaluation* evaluation) {
  const int episodes = evaluation->episodes;
  std::vector<Result<Bounds>> each(static_cast<size_t>(episodes), Bounds());
  std::atomic<int> done = 0;
  pool->ParallelFor(episodes, [&](int episode, int worker) {
    each[static_cast<size_t>(episode)] = BoundsOf(scenario, HeldOutSeed(options.seed, episode));
    const int count = ++done;
    if (worker == 0 && options.progress) {
      options.progress(static_cast<double>(count) / episodes,
                       fmt::format("bounds of {} of {} episodes", count, episodes));
    }
  });
  evaluation->bound = evaluation->best_foreseen = 0.0;
  for (const Result<Bounds>& one : each) {
    TRY_ASSIGN(const Bounds bounds, one);
    *evaluation->bound += bounds.none_below / episodes;
    if (!bounds.best_foreseen) evaluation->best_foreseen.reset();
    if (evaluation->best_foreseen) *evaluation->best_foreseen += *bounds.best_foreseen / episodes;
  }
  return {};
}

}  // namespace

Result<void> CheckPresetsSuit(const Scenario& scenario,
                              const std::vector<PlacementGroup>& policies) {
  for (const PlacementGroup& group : policies) {
    for (const PlacementPolicy& policy : group.members) {
      if (policy.preset) TRY(CheckPresetSuits(*policy.preset, scenario));
    }
  }
  return {};
}

RunMatrix EvaluatedPlacement::Objectives(int episodes_each) const {
  RunMatrix runs{.starts = episodes_each, .seeds = training_seeds};
  for (int i = 0; i < episodes_each; ++i) {
    for (int s = 0; s < training_seeds; ++s) {
      const LifecycleMetrics& one = episodes[s * episodes_each + i];
      runs.values.push_back(one.MeanOverTime(one.objective_s));
    }
  }
  return runs;
}

RunMatrix EvaluatedPlacement::Runs(std::string_view row, int episodes_each) const {
  const std::vector<MetricRow> rows = episodes[0].Rows();
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const MetricRow& one) { return one.name == row; });
  CHECK(found != rows.end());
  const auto position = found - rows.begin();
  RunMatrix runs{.starts = episodes_each, .seeds = training_seeds};
  for (int i = 0; i < episodes_each; ++i) {
    for (int s = 0; s < training_seeds; ++s)
      runs.values.push_back(episodes[s * episodes_each + i].Rows()[position].value);
  }
  return runs;
}

double EvaluatedPlacement::Overhead(int episodes_each) const {
  const double makespan_s = Mean(Runs("makespan", episodes_each).values);
  return makespan_s > 0 ? decide_s / makespan_s : 0;
}

Result<PlacementEvaluation> EvaluatePlacements(std::shared_ptr<const Scenario> scenario,
                                               const std::vector<PlacementGroup>& policies,
                                               const PlacementEvaluationOptions& options,
                                               ThreadPool* pool) {
  CHECK(scenario->objective.has_value());
  CHECK(!policies.empty());
  TRY(CheckPresetsSuit(*scenario, policies));
  PlacementEvaluation evaluation{.scenario = scenario->name,
                                 .objective = ObjectiveText(*scenario->objective),
                                 .seed = options.seed,
                                 .nodes = scenario->node_count(),
                                 .episodes = options.episodes};
  std::vector<PlacementJob> jobs = JobsOf(policies, options.episodes);
  std::vector<std::unique_ptr<Lifecycle>> worlds;
  for (int i = 0; i < pool->size(); ++i) worlds.push_back(std::make_unique<Lifecycle>(scenario));
  std::atomic<int> done = 0;
  EpisodeCut cut(options.stop), choosing(options.stop);
  pool->ParallelFor(static_cast<int>(jobs.size()), [&](int index, int worker) {
    PlacementJob& job = jobs[index];
    if (!(job.for_choosing ? choosing.Begins(index) : cut.Begins(job.episode))) return;
    const uint64_t seed = job.for_choosing ? TrialSeed(scenario->seed, job.episode)
                                           : HeldOutSeed(options.seed, job.episode);
    job.metrics = RunPlacement(policies[job.policy].members[job.member].start(), seed,
                               worlds[worker].get(), &job.decide_us);
    job.is_done = true;
    const int count = ++done;
    if (worker == 0 && options.progress) {
      options.progress(static_cast<double>(count) / static_cast<double>(jobs.size()),
                       fmt::format("{} of {} episodes", count, jobs.size()));
    }
  });
  evaluation.episodes = cut.Complete(options.episodes);
  const bool is_chosen = std::all_of(jobs.begin(), jobs.end(), [](const PlacementJob& job) {
    return job.is_done || !job.for_choosing;
  });
  if (evaluation.episodes == 0 || !is_chosen)
    return Fail(ErrorCode::kFailedPrecondition, "stopped before an episode was complete");
  std::erase_if(jobs, [&](const PlacementJob& job) {
    return !job.for_choosing && job.episode >= evaluation.episodes;
  });
  std::stable_sort(jobs.begin(), jobs.end(), [](const PlacementJob& a, const PlacementJob& b) {
    return std::pair(a.policy, a.member) < std::pair(b.policy, b.member);
  });
  std::vector<std::vector<double>> times(policies.size());
  std::vector<int64_t> trial_violations(policies.size());
  for (const PlacementGroup& group : policies) {
    evaluation.policies.push_back({.name = group.name,
                                   .training_seeds = static_cast<int>(group.members.size()),
                                   .shares_network = group.shares_network});
  }
  for (PlacementJob& job : jobs) {
    TRY_ASSIGN(const LifecycleMetrics metrics, std::move(job.metrics));
    EvaluatedPlacement& policy = evaluation.policies[job.policy];
    if (job.for_choosing) {
      policy.trial_cost += PlacementCost(metrics, evaluation.nodes) / kEpisodesForChoosing;
      trial_violations[job.policy] += metrics.hard_misses;
    } else {
      policy.episodes.push_back(metrics);
      auto& all = times[job.policy];
      all.insert(all.end(), job.decide_us.begin(), job.decide_us.end());
    }
  }
  for (size_t p = 0; p < policies.size(); ++p) {
    if (times[p].empty()) continue;
    evaluation.policies[p].decide_p50_us = Quantile(times[p], 0.5);
    evaluation.policies[p].decide_p99_us = Quantile(times[p], 0.99);
    evaluation.policies[p].decide_s = Mean(times[p]) * 1e-6 * static_cast<double>(times[p].size()) /
                                      static_cast<double>(evaluation.policies[p].episodes.size());
  }
  Compare(trial_violations, &evaluation);
  const bool is_whole = evaluation.episodes == options.episodes;
  if (options.bound == PlacementBound::kComputed && is_whole)
    TRY(ComputeBounds(scenario, options, pool, &evaluation));
  return evaluation;
}

}  // namespace rudderfish
