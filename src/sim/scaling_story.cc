// SPDX-License-Identifier: Apache-2.0
#include "sim/scaling_story.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/check.h"
#include "model/steady_load.h"
#include "task/scaling.h"

namespace rudderfish {
namespace {

// A policy, and what it is asked and answers. Of one run.
class WitnessedPolicy final : public ScalingPolicy {
 public:
  WitnessedPolicy(const ScalingPolicy& policy, std::shared_ptr<const ServedApplication> application,
                  int alternatives)
      : policy_(policy),
        entries_(*application),
        steady_(std::move(application)),
        alternatives_(alternatives) {}

  std::unique_ptr<ScalingMemory> NewMemory(const ServedApplication& application) const override {
    return policy_.NewMemory(application);
  }

  void Decide(const ScalingQuestion& question, ScalingMemory* memory,
              std::span<int> replicas) const override {
    const std::vector<int> before(replicas.begin(), replicas.end());
    policy_.Decide(question, memory, replicas);
    ScalingStep step{.has_samples = question.has_samples};
    if (step.has_samples) step.requests_per_s = RateOf(question);
    for (WorkloadId w = 0; w < static_cast<WorkloadId>(replicas.size()); ++w) {
      if (replicas[w] != before[w])
        step.changes.push_back(ChangeOf(question, step, before, replicas, w));
    }
    steps_.push_back(std::move(step));
  }

  bool foresees() const override { return policy_.foresees(); }

  const std::vector<ScalingStep>& steps() const { return steps_; }

 private:
  double RateOf(const ScalingQuestion& question) const {
    double calls_per_s = 0;
    for (size_t w = 0; w < question.workloads.size(); ++w) {
      if (entries_.is_entry[w] != 0) calls_per_s += question.workloads[w].calls_per_s;
    }
    return entries_.calls_per_request > 0 ? calls_per_s / entries_.calls_per_request : 0;
  }

  ScaledWorkload ChangeOf(const ScalingQuestion& question, const ScalingStep& step,
                          std::span<const int> before, std::span<const int> after,
                          WorkloadId w) const {
    const WorkloadSight& seen = question.workloads[w];
    const ServedWorkload& workload = question.application->workloads[w];
    ScaledWorkload change{.workload = w, .before = before[w], .after = after[w]};
    if (!step.has_samples) return change;
    change.ready = seen.ready();
    change.calls_per_s = seen.calls_per_s;
    if (change.ready > 0) change.busy_share = seen.busy_slots / (change.ready * workload.slots);
    std::vector<int> replicas(after.begin(), after.end());
    for (const int count : NearTo(change, workload)) {
      replicas[w] = count;
      change.alternatives.push_back(
          {.replicas = count, .late_share = steady_.LateShare(replicas, step.requests_per_s)});
    }
    return change;
  }

  std::vector<int> NearTo(const ScaledWorkload& change, const ServedWorkload& workload) const {
    std::vector<int> counts = {change.before, change.after};
    const int most = std::max(alternatives_, 2);
    for (int away = 1; static_cast<int>(counts.size()) < most; ++away) {
      const int fewer = change.after - away, more = change.after + away;
      if (fewer < workload.replicas_min && more > workload.replicas_max) break;
      for (const int count : {more, fewer}) {
        const bool is_allowed = count >= workload.replicas_min && count <= workload.replicas_max;
        if (is_allowed && std::ranges::find(counts, count) == counts.end() &&
            static_cast<int>(counts.size()) < most)
          counts.push_back(count);
      }
    }
    std::ranges::sort(counts);
    return counts;
  }

  const ScalingPolicy& policy_;
  ApplicationEntries entries_;
  mutable SteadyLoad steady_;
  int alternatives_;
  mutable std::vector<ScalingStep> steps_;
};

}  // namespace

ScalingStory TellScaling(const ScalingPolicy& policy, const Scenario& scenario, int load,
                         uint64_t seed, int episode, int alternatives) {
  const auto application = std::make_shared<const ServedApplication>(ApplicationOf(scenario, 0));
  const WitnessedPolicy witnessed(policy, application, alternatives);
  const EpisodeStart start(application);
  const NodePacking packing = PackingOf(scenario);
  EventSimulator simulator(application);
  ScalingTimeline timeline;
  const ScalingEpisodeDraw draw =
      DrawScalingEpisode(*scenario.load, EpisodeUse::kEvaluation, load, seed, episode);
  ScalingStory story;
  story.figures = RunScaling(witnessed, *scenario.load, draw.curve, draw.seed, start, &simulator,
                             &timeline, &packing);
  story.steps = witnessed.steps();
  const std::vector<ScalingMoment>& moments = timeline.moments();
  CHECK_EQ(moments.size(), story.steps.size() + 1);  // After the last one nothing is decided.
  for (size_t i = 0; i < story.steps.size(); ++i) {
    story.steps[i].moment = moments[i];
    for (ScaledWorkload& change : story.steps[i].changes)
      change.allowed = moments[i + 1].replicas[change.workload];
  }
  return story;
}

}  // namespace rudderfish
