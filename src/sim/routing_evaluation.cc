// SPDX-License-Identifier: Apache-2.0
#include "sim/routing_evaluation.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "sim/episode_cut.h"
#include "sim/held_out.h"

namespace rudderfish {
namespace {

std::vector<RoutingFigures> FirstEpisodesOf(const std::vector<RoutingFigures>& figures, int row,
                                            int kept) {
  std::vector<RoutingFigures> first;
  for (size_t at = 0; at < figures.size(); at += static_cast<size_t>(row)) {
    const auto begin = figures.begin() + static_cast<int64_t>(at);
    first.insert(first.end(), begin, begin + kept);
  }
  return first;
}

}  // namespace

void RoutingMeans::Add(const RoutingFigures& figures, double weight) {
  objective += weight * figures.objective();
  late_share += weight * figures.late_share();
  carbon_kg_per_h += weight * figures.carbon_kg_per_h();
  dollars_per_h += weight * figures.dollars_per_h();
  provider_share += weight * figures.provider_share();
}

double BeyondLimits(const RoutingLimits& limits, const RoutingMeans& means) {
  const auto beyond = [](double value, double most) {
    if (value <= most) return 0.0;
    return most > 0 ? value / most - 1 : std::numeric_limits<double>::max() / 4;
  };
  return beyond(100 * means.late_share, limits.late_percent) +
         beyond(means.carbon_kg_per_h, limits.carbon_kg_per_h) +
         beyond(means.dollars_per_h, limits.dollars_per_h) +
         beyond(100 * means.provider_share, limits.provider_percent);
}

RegionEpisode JudgedEpisode(const RegionVariant& variant, uint64_t seed, int episode) {
  return {variant, HeldOutSeed(seed, episode), EpisodeUse::kEvaluation};
}

RoutingRun::RoutingRun(const RoutingPolicy& policy, const RegionEpisode& episode,
                       RegionSimulator* simulator)
    : policy_(policy), simulator_(simulator) {
  for (int s = 0; s < simulator->services(); ++s)
    memories_.push_back(policy.NewMemory(simulator->laws(s)));
  using Foresight = RegionSimulator::Foresight;
  simulator->Start(episode, policy.foresees() ? Foresight::kDemand : Foresight::kNone);
}

void RoutingRun::Step() {
  for (int s = 0; s < simulator_->services(); ++s)
    policy_.Decide(simulator_->Question(s), memories_[s].get(), simulator_->Answer(s));
  simulator_->Step();
}

RoutingFigures RunRouting(const RoutingPolicy& policy, const RegionEpisode& episode,
                          RegionSimulator* simulator) {
  RoutingRun run(policy, episode, simulator);
  for (int step = 0; step < simulator->world().steps(); ++step) run.Step();
  return simulator->figures();
}

RoutingEvaluation EvaluateRouting(const std::string& scenario,
                                  const std::shared_ptr<const RegionWorld>& world,
                                  const std::vector<NamedRoutingPolicy>& policies,
                                  const RoutingEvaluationOptions& options, ThreadPool* pool) {
  CHECK(options.episodes > 0 && !policies.empty() && !options.variants.empty());
  RoutingEvaluation evaluation{.scenario = scenario,
                               .seed = options.seed,
                               .regions = world->network->size(),
                               .episodes = options.episodes,
                               .limits = world->network->limits};
  for (const SharingService& one : world->services) evaluation.services.push_back(one.name);
  for (const int variant : options.variants)
    evaluation.variants.push_back(world->variants[variant].name);
  std::vector<const RoutingPolicy*> members;
  std::vector<int> policy_of;
  for (const NamedRoutingPolicy& one : policies) {
    evaluation.policies.push_back(one.name);
    evaluation.foresees.push_back(
        std::any_of(one.members.begin(), one.members.end(),
                    [](const auto& member) { return member->foresees(); }));
    evaluation.first_member.push_back(static_cast<int>(members.size()));
    for (const auto& member : one.members) {
      members.push_back(member.get());
      policy_of.push_back(static_cast<int>(evaluation.policies.size()) - 1);
    }
  }
  evaluation.first_member.push_back(static_cast<int>(members.size()));
  const ServiceLaws laws = LawsOf(*world);
  std::vector<std::unique_ptr<RegionSimulator>> simulators;
  for (int i = 0; i < pool->size(); ++i)
    simulators.push_back(std::make_unique<RegionSimulator>(world, laws));
  // Trials come first: without them there is nothing to compare with.
  const int each = static_cast<int>(options.variants.size() * members.size());
  const int all = options.episodes + options.trials;
  std::vector<RoutingFigures> figures(static_cast<size_t>(each) * options.episodes);
  std::vector<RoutingFigures> trials(static_cast<size_t>(each) * options.trials);
  EpisodeCut cut(options.stop);
  std::atomic<int> done = 0;
  pool->ParallelFor(each * all, [&](int turn, int worker) {
    const int position = turn / each, of = turn % each;
    const bool trial = position < options.trials;
    const int episode = trial ? position : position - options.trials;
    if (!cut.Begins(position)) return;
    const RegionVariant& variant =
        world->variants[options.variants[static_cast<size_t>(of) / members.size()]];
    const RoutingPolicy& policy = *members[static_cast<size_t>(of) % members.size()];
    const RegionEpisode drawn = trial ? RegionEpisode{variant, TrialSeed(options.seed, episode)}
                                      : JudgedEpisode(variant, options.seed, episode);
    const RoutingFigures one =
        RunRouting(policy, drawn, simulators[static_cast<size_t>(worker)].get());
    if (trial) {
      trials[static_cast<size_t>(of) * options.trials + episode] = one;
    } else {
      figures[static_cast<size_t>(of) * options.episodes + episode] = one;
    }
    ++done;
    if (worker == 0 && options.progress)
      options.progress(static_cast<double>(done) / (static_cast<double>(each) * all));
  });
  evaluation.episodes = std::max(0, cut.Complete(all) - options.trials);
  evaluation.trials.resize(options.variants.size() * policies.size());
  for (int of = 0; of < each; ++of) {
    const size_t variant = static_cast<size_t>(of) / members.size();
    const int policy = policy_of[static_cast<size_t>(of) % members.size()];
    for (int i = 0; i < options.trials; ++i) {
      evaluation.trials[variant * policies.size() + policy].Add(
          trials[static_cast<size_t>(of) * options.trials + i],
          1.0 / (options.trials * evaluation.seeds(policy)));
    }
  }
  evaluation.figures = evaluation.episodes < options.episodes
                           ? FirstEpisodesOf(figures, options.episodes, evaluation.episodes)
                           : std::move(figures);
  return evaluation;
}

}  // namespace rudderfish
