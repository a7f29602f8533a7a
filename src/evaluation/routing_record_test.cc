// SPDX-License-Identifier: Apache-2.0
#include "evaluation/routing_record.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>

#include "base/check.h"
#include "policy/registry.h"
#include "scenario/scenario.h"
#include "tests/support/source_path.h"

namespace rudderfish {
namespace {

struct Recorded {
  std::shared_ptr<const RegionWorld> world;
  std::vector<NamedRoutingPolicy> policies;
  RoutingEvaluation evaluation;
  RoutingRecord record;
};

Recorded RecordedWith(int threads) {
  Result<Scenario> scenario = LoadScenario(SourcePath("scenarios/multicloud-16.yaml"));
  CHECK(scenario.has_value());
  const std::string names[] = {"us-east4", "europe-west3", "asia-south1"};
  Recorded recorded{.world = WithRegions(scenario->regions, names).value()};
  for (const char* name : {"static", "lp", "locality"}) {
    const PolicySpec spec = ParsePolicySpec(name).value();
    recorded.policies.push_back({name, {MakeRoutingPolicy(spec).value()}});
  }
  ThreadPool pool(threads);
  const std::vector<int> variants = VariantsNamed(*recorded.world, {}).value();
  recorded.evaluation = EvaluateRouting("m", recorded.world, recorded.policies,
                                        {.variants = variants, .episodes = 6, .trials = 4}, &pool);
  recorded.record =
      RecordRouting(recorded.evaluation, recorded.world, recorded.policies, variants, &pool);
  return recorded;
}

TEST(RoutingRecord, AnswersByTheDeadlineAreThoseThatAreNotLate) {
  const Recorded recorded = RecordedWith(1);
  const RoutingRecord& record = recorded.record;
  ASSERT_EQ(record.episodes, 6);
  for (size_t v = 0; v < record.variants.size(); ++v) {
    for (int p = 0; p < 3; ++p) {
      const std::vector<double>& within = record.variants[v].policies[p].within;
      double late = 0, requests = 0;
      for (int i = 0; i < 6; ++i) {
        const RoutingFigures& one = recorded.evaluation.at(static_cast<int>(v), p, 0, i);
        late += one.late_requests;
        requests += one.requests;
      }
      size_t at = 0;  // The last time before the deadline.
      while (record.times_s[at + 1] <= record.deadline_s) ++at;
      EXPECT_TRUE(std::is_sorted(within.begin(), within.end()));
      EXPECT_LE(within[at], 1 - late / requests + 1e-12);
      EXPECT_GE(within[at + 1], 1 - late / requests - 1e-12);
    }
  }
}

TEST(RoutingRecord, ATimelineIsOfTheEpisodeOfMedianDifference) {
  const Recorded recorded = RecordedWith(1);
  for (size_t v = 0; v < recorded.record.variants.size(); ++v) {
    const RoutingVariantRecord& variant = recorded.record.variants[v];
    const std::vector<RoutingMoment>& timeline = variant.policies[2].timeline;
    ASSERT_EQ(static_cast<int>(timeline.size()), recorded.world->steps());
    EXPECT_DOUBLE_EQ(timeline.back().hours, 4);
    // Its requests are late as those of that episode: the shares weigh as the requests do.
    double late = 0, requests = 0;
    for (const RoutingMoment& one : timeline) {
      const double load = std::accumulate(one.load_per_s.begin(), one.load_per_s.end(), 0.0);
      late += one.late_share * load;
      requests += load;
    }
    const RoutingFigures& episode =
        recorded.evaluation.at(static_cast<int>(v), 2, 0, variant.episode_shown);
    EXPECT_NEAR(late / requests, episode.late_share(), 1e-9);
    // The baseline's stands beside it, and no other's.
    const bool first = !variant.policies[0].timeline.empty();
    EXPECT_NE(first, !variant.policies[1].timeline.empty());
  }
}

TEST(RoutingRecord, IsTheSameForAnyNumberOfThreads) {
  const Recorded one = RecordedWith(1), two = RecordedWith(2);
  for (size_t v = 0; v < one.record.variants.size(); ++v) {
    EXPECT_EQ(one.record.variants[v].episode_shown, two.record.variants[v].episode_shown);
    for (int p = 0; p < 3; ++p)
      EXPECT_EQ(one.record.variants[v].policies[p].within,
                two.record.variants[v].policies[p].within);
  }
}

}  // namespace
}  // namespace rudderfish
