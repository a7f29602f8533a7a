// SPDX-License-Identifier: Apache-2.0
#include "evaluation/routing_record.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "evaluation/routing_comparison.h"
#include "sim/held_out.h"

namespace rudderfish {
namespace {

constexpr int kEpisodesRecorded = 8, kTimes = 96;
constexpr double kLeastTimeS = 0.01, kMostTimeS = 10;

std::vector<double> Times() {
  std::vector<double> times(kTimes);
  for (int i = 0; i < kTimes; ++i)
    times[i] = kLeastTimeS * std::pow(kMostTimeS / kLeastTimeS, i / (kTimes - 1.0));
  return times;
}

int EpisodeShown(const RoutingEvaluation& evaluation, int variant) {
  const int candidate = static_cast<int>(evaluation.policies.size()) - 1;
  const int baseline = BaselineOf(evaluation, variant);
  std::vector<double> differences;
  for (int i = 0; i < evaluation.episodes; ++i) {
    const double base = baseline < 0 ? 0 : evaluation.at(variant, baseline, 0, i).objective();
    differences.push_back(evaluation.at(variant, candidate, 0, i).objective() - base);
  }
  std::vector<int> order(differences.size());
  std::iota(order.begin(), order.end(), 0);
  const auto middle = order.begin() + static_cast<int64_t>(order.size() / 2);
  std::nth_element(order.begin(), middle, order.end(), [&](int a, int b) {
    return std::pair(differences[a], a) < std::pair(differences[b], b);
  });
  return *middle;
}

class Recorder {
 public:
  Recorder(const std::shared_ptr<const RegionWorld>& world, const ServiceLaws& laws)
      : simulator_(world, laws) {}

  void AddLatencies(const RoutingPolicy& policy, const RegionEpisode& episode,
                    LatencyTally* tally) {
    simulator_.Watch(tally);
    RunRouting(policy, episode, &simulator_);
    simulator_.Watch(nullptr);
  }

  std::vector<RoutingMoment> Timeline(const RoutingPolicy& policy, const RegionEpisode& episode) {
    std::vector<RoutingMoment> timeline;
    RoutingRun run(policy, episode, &simulator_);
    for (int step = 0; step < simulator_.world().steps(); ++step) {
      const RoutingFigures before = simulator_.figures();
      run.Step();
      timeline.push_back(MomentSince(before));
    }
    return timeline;
  }

 private:
  RoutingMoment MomentSince(const RoutingFigures& before) const {
    constexpr double kHourS = 3600;
    const RoutingFigures& now = simulator_.figures();
    const RoutingQuestion question = simulator_.Question(0);
    RoutingMoment moment{.hours = question.step * question.interval_s / kHourS};
    const double requests = now.requests - before.requests;
    if (requests > 0) moment.late_share = (now.late_requests - before.late_requests) / requests;
    for (int r = 0; r < simulator_.world().network->size(); ++r) {
      double demand = 0, load = 0;  // Of all services.
      for (int s = 0; s < simulator_.services(); ++s) {
        const RoutingQuestion own = simulator_.Question(s);
        demand += own.regions[r].demand_per_s;
        load += own.regions[r].load_per_s;
      }
      moment.demand_per_s.push_back(demand);
      moment.load_per_s.push_back(load);
      moment.on_demand.push_back(simulator_.nodes().held(r, kOnDemand));
      moment.spot.push_back(simulator_.nodes().held(r, kSpot));
    }
    return moment;
  }

  RegionSimulator simulator_;
};

}  // namespace

RoutingRecord RecordRouting(const RoutingEvaluation& evaluation,
                            const std::shared_ptr<const RegionWorld>& world,
                            const std::vector<NamedRoutingPolicy>& policies,
                            const std::vector<int>& variants, ThreadPool* pool) {
  CHECK_EQ(variants.size(), evaluation.variants.size());
  CHECK_EQ(policies.size(), evaluation.policies.size());
  RoutingRecord record{.regions = {},
                       .times_s = Times(),
                       .deadline_s = world->network->service.deadline_s,
                       .episodes = std::min(kEpisodesRecorded, evaluation.episodes)};
  for (const Region& region : world->network->regions) record.regions.push_back(region.name);
  for (int v = 0; v < static_cast<int>(variants.size()); ++v) {
    record.variants.push_back({.episode_shown = EpisodeShown(evaluation, v), .policies = {}});
    record.variants.back().policies.resize(policies.size());
  }
  const ServiceLaws laws = LawsOf(*world);
  const int each = static_cast<int>(policies.size());
  pool->ParallelFor(each * static_cast<int>(variants.size()), [&](int turn, int) {
    const int v = turn / each, p = turn % each;
    const RegionVariant& variant = world->variants[variants[v]];
    const RoutingPolicy& policy = *policies[p].members[0];
    RoutingPolicyRecord& own = record.variants[v].policies[p];
    const auto judged = [&](int episode) {
      return JudgedEpisode(variant, evaluation.seed, episode);
    };
    Recorder recorder(world, laws);
    LatencyTally tally{.times_s = record.times_s,
                       .later = std::vector<double>(record.times_s.size())};
    for (int i = 0; i < record.episodes; ++i) recorder.AddLatencies(policy, judged(i), &tally);
    for (const double later : tally.later)
      own.within.push_back(tally.requests > 0 ? 1 - later / tally.requests : 1);
    if (p != each - 1 && p != BaselineOf(evaluation, v)) return;
    own.timeline = recorder.Timeline(policy, judged(record.variants[v].episode_shown));
  });
  return record;
}

}  // namespace rudderfish
