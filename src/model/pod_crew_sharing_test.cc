// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "base/rng.h"
#include "model/pod_crew.h"

// Pods whose slots calls share, and pods that pull their image; the rest is in pod_crew_test.cc.

namespace rudderfish {
namespace {

// 100 ms a call.
ServedWorkload PodsOfTenths() {
  return {.name = "pods", .replicas_max = 40, .start_low_s = 10, .start_high_s = 30};
}

LoadLaws LawsOfPods(const ServedWorkload& workload) {
  return LoadLaws(std::make_shared<ServedApplication>(SingleStation(workload, 100)));
}

LoadLaws SharedLawsOf(double scv, int slots = 1, int queue_limit = kNoQueueLimit) {
  ServedWorkload pods = PodsOfTenths();
  pods.slots = slots;
  pods.discipline = Discipline::kShared;
  pods.queue_limit = queue_limit;
  pods.service = ServiceLaw::OfScv(scv);
  return LawsOfPods(pods);
}

// Stretched by 1 / (1 - 0.8), whatever the law of service: four more than its own 0.1 s.
TEST(PodCrew, SharedSlotsComeToRestWhereExponentialServiceDoes) {
  for (const double scv : {0.0, 1.0, 3.0}) {
    const LoadLaws laws = SharedLawsOf(scv);
    const CrewLaw& law = laws.crew(1);
    PodCrew crew;
    crew.Start(law, 1);
    for (int i = 0; i < 600; ++i) {
      const bool quick = crew.Aim(law, 8, .5);
      crew.Pass(law, .5, quick ? PodCrew::Pace::kLong : PodCrew::Pace::kShort);
    }
    EXPECT_NEAR(crew.present(), 4, 0.02) << scv;
    EXPECT_NEAR(crew.wait_s(), 0.4, 0.002) << scv;
    EXPECT_NEAR(crew.busy(), 0.8, 1e-9);
    EXPECT_EQ(crew.passes(), 1);
    // What is left to do of four: 0.1 s (1 + scv) / 2 each.
    EXPECT_NEAR(crew.SetReplicas(law, 0, 0), 4 * 0.05 * (1 + scv), 0.004) << scv;
  }
}

TEST(PodCrew, AllSharedSlotsOfAllPodsAreCountedAsBusy) {
  const LoadLaws laws = SharedLawsOf(1, 2);
  const CrewLaw& law = laws.crew(1);
  PodCrew crew;
  crew.Start(law, 3);
  for (int i = 0; i < 400; ++i) {
    crew.Aim(law, 36, .5);
    crew.Pass(law, .5, PodCrew::Pace::kShort);
  }
  EXPECT_NEAR(crew.busy(), 3.6, .01);  // Of six, each a tenth of a second a call.
}

// In overload calls add up at the root of a = lambda (1 - E[exp(-a x)]), work at lambda - 1; and
// then less work is left than there would be of as many calls in equilibrium.
TEST(PodCrew, SharedSlotsAddUpCallsAsTheoryOfOverloadSays) {
  struct Row {
    double scv, per_s, grow_per_s;
  };
  for (const Row& row : {Row{0, 13, 5.53}, Row{1, 13, 3}, Row{0, 12, 3.71}, Row{2, 14, 2.77}}) {
    const LoadLaws laws = SharedLawsOf(row.scv);
    const CrewLaw& law = laws.crew(1);
    PodCrew crew;
    crew.Start(law, 1);
    double before = 0, left = 0;
    for (int i = 0; i < 400; ++i) {
      if (i == 200) before = crew.present();
      EXPECT_FALSE(crew.Aim(law, row.per_s, .5));
      crew.Pass(law, .5, PodCrew::Pace::kShort);
      left += .5 * row.per_s * crew.passes();
    }
    EXPECT_NEAR((crew.present() - before) / 100 / row.grow_per_s, 1, .05) << row.scv;
    EXPECT_NEAR(left, 200 * row.per_s - crew.present(), 1e-6);
    EXPECT_NEAR(crew.busy(), 1, .002);
    // A call that comes stays about as long as the work that is already there takes.
    EXPECT_NEAR(crew.wait_s() / (crew.present() * .1), 1, .1);
    PodCrew gone = crew;
    EXPECT_NEAR(gone.SetReplicas(law, 0, 200) / ((row.per_s - 10) * .1 * 200), 1, .04);
    // Less comes: work is gone as soon as that takes, and calls follow.
    const double seconds = (row.per_s - 10) * 200 / 5;
    const double dear = crew.present();
    for (double t = 0; t < seconds / 4; t += .5) {
      crew.Aim(law, 5, .5);
      crew.Pass(law, .5, PodCrew::Pace::kShort);
    }
    EXPECT_LT(crew.present(), dear);
    for (double t = seconds / 4; t < 1.1 * seconds + 5; t += .5) {
      crew.Aim(law, 5, .5);
      crew.Pass(law, .5, PodCrew::Pace::kShort);
    }
    EXPECT_NEAR(crew.present(), 1, .1) << row.scv << " " << row.per_s;
  }
}

TEST(PodCrew, FullSharedSlotsRefuse) {
  const LoadLaws laws = SharedLawsOf(0, 2, 3);
  const CrewLaw& law = laws.crew(1);
  PodCrew crew;
  crew.Start(law, 1);
  for (int i = 0; i < 40; ++i) {
    crew.Aim(law, 40, .5);
    crew.Pass(law, .5, PodCrew::Pace::kShort);
  }
  EXPECT_EQ(crew.present(), 5);
  EXPECT_NEAR(crew.refused_share(), .5, 1e-9);
  EXPECT_EQ(crew.busy(), 2);
  EXPECT_NEAR(crew.wait_s(), .1 * 5 / 2 - .1, 1e-9);
}

// Four nodes, one of which holds the image of the first pod.
TEST(PodCrew, TheFirstPodOnANodePullsItsImage) {
  ServedWorkload pods = PodsOfTenths();
  pods.image_nodes = 4;
  pods.pull_low_s = 30;
  pods.pull_high_s = 50;
  const LoadLaws laws = LawsOfPods(pods);
  const CrewLaw& law = laws.crew(1);
  PodCrew crew;
  crew.Start(law, 1);
  crew.SetReplicas(law, 3, 0);
  EXPECT_EQ(crew.replicas(), 3);
  EXPECT_EQ(crew.next_ready_s(), 60);
  crew.SetReplicas(law, 2, 1);  // One goes before its image is there,
  crew.SetReplicas(law, 3, 5);  // and the next pulls it from the start.
  crew.Join(60);
  EXPECT_EQ(crew.ready(), 2);
  EXPECT_EQ(crew.next_ready_s(), 65);
  crew.Join(65);
  crew.SetReplicas(law, 1, 70);
  crew.SetReplicas(law, 6, 80);  // Two where it is, one that pulls, two that find it everywhere.
  EXPECT_EQ(crew.next_ready_s(), 100);
  crew.Join(100);
  EXPECT_EQ(crew.ready(), 5);
  EXPECT_EQ(crew.next_ready_s(), 140);
  crew.SetReplicas(law, 9, 110);
  EXPECT_EQ(crew.next_ready_s(), 130);
  crew.Start(law, 7);
  crew.SetReplicas(law, 8, 0);
  EXPECT_EQ(crew.next_ready_s(), 20);
}

// Against pods that are made one by one, as many as there may be of any moment.
TEST(PodCrew, PullsWhatPodsMadeOneByOneWould) {
  ServedWorkload pods = PodsOfTenths();
  pods.image_nodes = 5;
  pods.pull_low_s = pods.pull_high_s = 40;
  const LoadLaws laws = LawsOfPods(pods);
  const CrewLaw& law = laws.crew(1);
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed, 3);
    struct Starting {
      double ready_s;
      bool pulls;
    };
    std::vector<Starting> starting;
    int ready = 2, images = 2;
    PodCrew crew;
    crew.Start(law, ready);
    for (double now_s = 0; now_s < 300; now_s += 10) {
      const auto is_over = [&](const Starting& pod) { return pod.ready_s <= now_s; };
      ready += static_cast<int>(std::count_if(starting.begin(), starting.end(), is_over));
      std::erase_if(starting, is_over);
      if (crew.next_ready_s() <= now_s) crew.Join(now_s);
      const int replicas = 1 + static_cast<int>(rng.Below(12));
      while (ready + static_cast<int>(starting.size()) < replicas) {
        const int number = ready + static_cast<int>(starting.size()) + 1;
        const bool pulls = number > images && images < law.image_nodes;
        images += pulls;
        starting.push_back({now_s + law.start_delay_s + (pulls ? law.pull_s : 0), pulls});
      }
      while (ready + static_cast<int>(starting.size()) > replicas && !starting.empty()) {
        images -= starting.back().pulls;
        starting.pop_back();
      }
      ready = std::min(ready, replicas);
      crew.SetReplicas(law, replicas, now_s);
      ASSERT_EQ(crew.replicas(), replicas) << seed;
      ASSERT_EQ(crew.ready(), ready) << seed << " at " << now_s;
    }
  }
}

}  // namespace
}  // namespace rudderfish
