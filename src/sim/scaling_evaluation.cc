// SPDX-License-Identifier: Apache-2.0
#include "sim/scaling_evaluation.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "base/check.h"
#include "sim/episode_cut.h"
#include "sim/ratio_tally.h"

namespace rudderfish {
namespace {

constexpr uint64_t kCalibrationKey = 0x63616C6962726174;
constexpr double kPeakShare = 0.99;  // Of intervals that have no more.

// What ran once, in the place of every member that it stands for. `figures` [load][run][episode],
// `responses` [load][run].
void Gather(const std::vector<int>& run_of, size_t runs, const std::vector<ScalingFigures>& figures,
            const std::vector<ResponseHistogram>& responses, ScalingEvaluation* evaluation) {
  const int episodes = evaluation->episodes;
  for (size_t load = 0; load < evaluation->loads.size(); ++load) {
    for (const ScalingEvaluation::Evaluated& policy : evaluation->policies) {
      ResponseHistogram& all = evaluation->responses.emplace_back();
      for (int member = policy.first; member < policy.first + policy.members; ++member) {
        const size_t ran = load * runs + run_of[member];
        const auto first = figures.begin() + static_cast<ptrdiff_t>(ran) * episodes;
        evaluation->figures.insert(evaluation->figures.end(), first, first + episodes);
        all.Add(responses[ran]);
      }
    }
  }
}

// Of rows of so many figures each the first `kept`.
std::vector<ScalingFigures> FirstOfEach(const std::vector<ScalingFigures>& figures, int row,
                                        int kept) {
  std::vector<ScalingFigures> first;
  for (size_t at = 0; at < figures.size(); at += static_cast<size_t>(row)) {
    const auto begin = figures.begin() + static_cast<int64_t>(at);
    first.insert(first.end(), begin, begin + kept);
  }
  return first;
}

}  // namespace

uint64_t CalibrationSeed(uint64_t seed) { return seed ^ kCalibrationKey; }

double PeakPerS(const Scenario& scenario, const std::vector<int>& loads, int episodes,
                uint64_t seed) {
  CHECK(scenario.load != nullptr && episodes > 0 && !loads.empty());
  const Load& load = *scenario.load;
  const double interval_s = static_cast<double>(load.interval.count()) / 1e9;
  std::vector<double> rates;
  for (const int position : loads) {
    for (int episode = 0; episode < episodes; ++episode) {
      const ScalingEpisodeDraw draw =
          DrawScalingEpisode(load, EpisodeUse::kLearning, position, CalibrationSeed(seed), episode);
      for (int i = 0; int64_t{i + 1} * load.interval.count() <= load.duration.count(); ++i)
        rates.push_back(draw.curve->MeanOf(i * interval_s, (i + 1) * interval_s));
    }
  }
  if (rates.empty()) return 0;
  const auto at = static_cast<size_t>(kPeakShare * static_cast<double>(rates.size() - 1));
  std::nth_element(rates.begin(), rates.begin() + static_cast<ptrdiff_t>(at), rates.end());
  return rates[at];
}

ScalingEvaluation EvaluateScaling(const Scenario& scenario, EpisodeUse use,
                                  const std::vector<int>& loads,
                                  const std::vector<NamedScalingPolicy>& policies, int episodes,
                                  uint64_t seed, ThreadPool* pool,
                                  const std::function<void(double)>& progress, ScalingGround ground,
                                  int first_episode, const std::atomic<bool>* stop) {
  CHECK(scenario.load != nullptr && episodes > 0);
  const Load& load = *scenario.load;
  ScalingEvaluation evaluation{.scenario = scenario.name,
                               .seed = seed,
                               .episodes = episodes,
                               .late_max = LateMaxOf(scenario)};
  for (const int position : loads) evaluation.loads.push_back(load.loads[position].name);
  // Which member of all is run in whose place.
  std::vector<const ScalingPolicy*> runs;
  std::vector<int> run_of;
  for (const NamedScalingPolicy& named : policies) {
    CHECK(!named.members.empty());
    evaluation.policies.push_back({.name = named.name,
                                   .members = static_cast<int>(named.members.size()),
                                   .foresees = named.members[0]->foresees(),
                                   .first = static_cast<int>(run_of.size()),
                                   .shares_network = named.shares_network});
    for (const auto& member : named.members) {
      const auto at = std::find(runs.begin(), runs.end(), member.get());
      run_of.push_back(static_cast<int>(at - runs.begin()));
      if (at == runs.end()) runs.push_back(member.get());
    }
  }
  const auto application = std::make_shared<const ServedApplication>(ApplicationOf(scenario, 0));
  const auto laws = std::make_shared<const LoadLaws>(application);
  const EpisodeStart start(application);
  const NodePacking nodes = PackingOf(scenario);
  std::vector<std::unique_ptr<EventSimulator>> simulators;
  std::vector<std::unique_ptr<LoadModel>> models;
  for (int i = 0; i < pool->size(); ++i) {
    simulators.push_back(std::make_unique<EventSimulator>(application));
    models.push_back(std::make_unique<LoadModel>(laws));
  }
  const auto per_load = static_cast<int>(runs.size()) * episodes;
  std::vector<ScalingFigures> figures(loads.size() * per_load);
  std::atomic<int> done = 0;
  std::vector<ResponseHistogram> responses(loads.size() * runs.size());
  std::mutex sums;
  EpisodeCut cut(stop);
  const auto each = static_cast<int>(loads.size() * runs.size());  // Of an episode.
  pool->ParallelFor(static_cast<int>(figures.size()), [&](int turn, int worker) {
    const int episode = turn / each;
    if (!cut.Begins(episode)) return;
    const int index = turn % each * episodes + episode;
    const int position = loads[index / per_load], run = index % per_load / episodes;
    const ScalingEpisodeDraw draw =
        DrawScalingEpisode(load, use, position, seed, first_episode + episode);
    if (ground == ScalingGround::kModel) {
      figures[index] = RunScalingOnModel(*runs[run], load, *draw.curve, draw.seed, start,
                                         models[worker].get(), &nodes);
    } else {
      figures[index] = RunScaling(*runs[run], load, draw.curve, draw.seed, start,
                                  simulators[worker].get(), nullptr, &nodes);
      const std::lock_guard lock(sums);  // Of whole numbers: their order does not matter.
      responses[index / episodes].Add(simulators[worker]->responses());
    }
    ++done;
    if (worker == 0 && progress)
      progress(static_cast<double>(done) / static_cast<double>(figures.size()));
  });
  evaluation.episodes = cut.Complete(episodes);
  if (evaluation.episodes < episodes) figures = FirstOfEach(figures, episodes, evaluation.episodes);
  Gather(run_of, runs.size(), figures, responses, &evaluation);
  return evaluation;
}

ScalingSums SumsOf(const ScalingEvaluation& evaluation, int policy) {
  ScalingSums sums;
  RatioTally violations;
  const int members = evaluation.policies[policy].members;
  for (int episode = 0; episode < evaluation.episodes; ++episode) {
    int64_t late = 0, requests = 0;
    for (size_t i = 0; i < evaluation.loads.size() * members; ++i) {
      const ScalingFigures& one = evaluation.at(static_cast<int>(i) / members, policy, episode,
                                                static_cast<int>(i) % members);
      sums.core_hours += one.core_hours / (evaluation.episodes * members);
      late += one.violations;
      requests += one.requests;
    }
    violations.Add(static_cast<double>(late), static_cast<double>(requests));
  }
  sums.violation_share = violations.ratio();
  sums.violation_error = violations.standard_error();
  return sums;
}

}  // namespace rudderfish
