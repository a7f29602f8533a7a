// SPDX-License-Identifier: Apache-2.0
#include "model/pod_crew.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/rng.h"

namespace rudderfish {
namespace {

// Pods of 100 ms a call: a slot serves 10 a second.
ServedWorkload CrewOfPods(int slots = 1, int queue_limit = kNoQueueLimit) {
  return {.name = "pods",
          .slots = slots,
          .queue_limit = queue_limit,
          .replicas_max = 40,
          .start_low_s = 10,
          .start_high_s = 30};
}

LoadLaws LawsOf(const ServedWorkload& workload) {
  return LoadLaws(std::make_shared<ServedApplication>(SingleStation(workload, 100)));
}

// The crew's formulas written out plainly: who stands where, what one step does to it, what a
// caller meets. Pods that became ready together are one group.
struct PlainCrew {
  struct Group {
    int pods = 0;
    double present = 0, variance = 0;  // Calls at one pod.
  };

  explicit PlainCrew(const CrewLaw& crew_law) : law(crew_law) {}

  int Ready() const {
    int ready = 0;
    for (const Group& group : groups) ready += group.pods;
    return ready;
  }
  double Present() const {
    double calls = 0;
    for (const Group& group : groups) calls += group.pods * group.present;
    return calls;
  }
  double Capacity() const { return law.slots / law.service_s; }
  double Load() const { return rate / Ready() / Capacity(); }
  const PodEquilibria& Curve() const { return law.EquilibriaOf(Ready()); }
  // To where calls go, if they come to rest.
  bool ComesToRest() const {
    return Load() < PodEquilibria::kFull &&
           Curve().At(Curve().AtUtilisation(Load())).present <= law.most_present;
  }
  PodPoint Rest() const { return Curve().At(Curve().AtUtilisation(Load())); }
  double Slope(const PodEquilibria::Place& place) const {
    return Capacity() * Curve().UtilisationPerCall(place);
  }
  double RestPerS() const { return Slope(Curve().AtUtilisation(Load())); }
  double Use(double present) const { return Curve().At(Curve().AtPresent(present, 0)).utilisation; }

  bool IsNear(const Group& group) const {
    return std::abs(group.present - Rest().present) <= 0.05 * (Rest().present + 0.01);
  }
  // One exponential of six time constants or more, which leaves a tenth of the way at most.
  bool IsQuick(const Group& group, double seconds) const {
    if (!ComesToRest()) return false;
    if (IsNear(group)) return true;
    if (Curve().AtPresent(group.present, 0).beyond()) return false;
    const double gap = group.present - Rest().present;
    const double chord = Capacity() * (Use(group.present) - Load()) / gap;
    const double steps = std::min(chord, RestPerS()) * seconds;
    return steps >= 6 && std::abs(gap) <= 0.1 * steps * (Rest().present + 0.01 + law.slots / 2);
  }
  bool AllQuick(double seconds) const {
    return std::all_of(groups.begin(), groups.end(),
                       [&](const Group& group) { return IsQuick(group, seconds); });
  }

  void Meet(const Group& group, double present, double group_variance, bool beyond) {
    const PodPoint point = beyond ? Curve().At({PodEquilibria::kIntervals})
                                  : Curve().At(Curve().AtPresent(present, 0));
    const double use = beyond ? 1 : std::max(point.utilisation, 1e-9);
    const double wait = std::max(0.0, present / (Capacity() * use) - law.service_s);
    const double spread = beyond
                              ? group_variance / Capacity() / Capacity()
                              : wait * wait * (2 / point.waits - 1) *
                                    std::min(2.0, group_variance / std::max(point.variance, 1e-12));
    const double share = 1.0 * group.pods / Ready();
    wait_s += share * wait;
    wait_square += share * (wait * wait + spread);
  }

  void Long(Group* group, double seconds) {
    const PodPoint rest = Rest();
    const double gap = group->present - rest.present, before = group->present;
    double mean = rest.present;
    if (gap != 0) {
      const double rate_per_s =
          IsNear(*group) ? RestPerS() : Capacity() * (Use(before) - Load()) / gap;
      const double steps = std::max(rate_per_s * seconds, 1e-9);
      group->present = rest.present + gap * std::exp(-steps);
      mean += gap * -std::expm1(-steps) / steps;
    }
    const double steps = std::max(2 * RestPerS() * seconds, 1e-9);
    const double far = group->variance - rest.variance;
    group->variance = rest.variance + far * std::exp(-steps);
    Meet(*group, mean, rest.variance + far * -std::expm1(-steps) / steps, false);
    busy += group->pods * law.slots * Use(mean);
    grown += group->pods * (group->present - before);
  }

  // Four parts, each as fast as it begins.
  void Short(Group* group, double seconds) {
    const double before = group->present, dt = seconds / 4, arrivals = rate / Ready();
    const bool overload = Load() >= PodEquilibria::kFull;
    double busy_here = 0;
    for (int part = 0; part < 4; ++part) {
      const auto place = Curve().AtPresent(group->present, 0);
      const PodPoint point = Curve().At(place);
      const bool always = place.beyond() || (overload && group->present >= law.most_present);
      const double use = always ? 1 : point.utilisation;
      busy_here += use / 4;
      if (overload) {
        group->present = std::max(0.0, group->present + (arrivals - Capacity() * use) * dt);
      } else if (std::abs(group->present - Rest().present) > 1e-9) {
        const double gap = group->present - Rest().present;
        const double per_s = std::max(1e-9, Capacity() * (use - Load()) / gap);
        group->present = Rest().present + gap * std::exp(-per_s * dt);
      }
      if (place.beyond()) {
        group->variance += (arrivals + Capacity() * law.service_scv) * dt;
      } else {
        group->variance += (point.variance - group->variance) * -std::expm1(-2 * Slope(place) * dt);
      }
    }
    const bool full = group->present > law.most_present;
    if (full) {
      group->present = law.most_present;
      refused += group->pods * std::max(0.0, 1 - 1 / Load()) / Ready();
    }
    const double mean = (before + group->present) / 2;
    Meet(*group, mean, group->variance, (full && overload) || Curve().AtPresent(mean, 0).beyond());
    busy += group->pods * law.slots * busy_here;
    grown += group->pods * (group->present - before);
  }

  void Pass(double seconds, PodCrew::Pace pace) {
    if (at_rest) return;
    wait_s = wait_square = busy = refused = grown = 0;
    passes = 1;
    at_rest = ComesToRest();
    const auto is_there = [](double value, double end, double share) {
      return std::abs(value - end) <= share * (end + 0.01);
    };
    for (Group& group : groups) {
      if (pace == PodCrew::Pace::kLong || IsQuick(group, seconds)) {
        Long(&group, seconds);
      } else {
        Short(&group, seconds);
      }
      const bool there = ComesToRest() && is_there(group.present, Rest().present, 1e-3) &&
                         is_there(group.variance, Rest().variance, 1e-2);
      if (at_rest && there) group = {group.pods, Rest().present, Rest().variance};
      at_rest = at_rest && there;
    }
    if (at_rest) {
      groups = {{Ready(), Rest().present, Rest().variance}};
      wait_s = wait_square = 0;
      Meet(groups[0], Rest().present, Rest().variance, false);
      busy = Load() * law.slots * Ready();
    } else if (pace == PodCrew::Pace::kShort && rate > 0) {
      passes = std::clamp(1 - grown / (rate * seconds), 0.0, law.passes_most);
    }
  }

  // The two youngest of more than eight are taken together.
  void Join(int pods) {
    if (groups.size() == 8) {
      const Group young = groups.back();
      groups.pop_back();
      Group& old = groups.back();
      const double all = old.pods + young.pods;
      old.present = (old.pods * old.present + young.pods * young.present) / all;
      old.variance = (old.pods * old.variance + young.pods * young.variance) / all;
      old.pods += young.pods;
    }
    groups.push_back({.pods = pods});
    at_rest = false;
  }

  CrewLaw law;
  std::vector<Group> groups;
  double rate = -1;
  bool at_rest = false;
  double wait_s = 0, wait_square = 0, busy = 0, refused = 0, grown = 0, passes = 1;
};

void ExpectSameCrew(const PodCrew& crew, const PlainCrew& plain) {
  const auto near = [](double a, double b) { return std::abs(a - b) <= 1e-7 * (1 + std::abs(b)); };
  EXPECT_PRED2(near, crew.present(), plain.Present());
  EXPECT_PRED2(near, crew.wait_s(), plain.wait_s);
  EXPECT_PRED2(near, crew.wait_variance_s2(),
               std::max(0.0, plain.wait_square - plain.wait_s * plain.wait_s));
  EXPECT_PRED2(near, crew.busy(), plain.busy);
  EXPECT_PRED2(near, crew.refused_share(), plain.refused);
  EXPECT_PRED2(near, crew.passes(), plain.passes);
}

// Rates that leap, some beyond capacity; pods that join and go; steps of all lengths.
TEST(PodCrew, DoesWhatItsFormulasSay) {
  ServedWorkload least = CrewOfPods(2);
  least.balancing = Balancing::kLeastRequests;
  ServedWorkload regular = CrewOfPods(3);
  regular.service = ServiceLaw::OfScv(0.25);
  int at_rest = 0, quick = 0, slow = 0, refuses = 0;
  for (const ServedWorkload& workload :
       {CrewOfPods(), CrewOfPods(1, 4), CrewOfPods(2, 30), regular, least}) {
    const LoadLaws laws = LawsOf(workload);
    const CrewLaw& law = laws.crew(1);
    for (uint64_t seed = 1; seed <= 8 && !::testing::Test::HasFailure(); ++seed) {
      SCOPED_TRACE(seed);
      Rng rng(seed);
      PodCrew crew;
      PlainCrew plain(law);
      const int first = rng.Between(1, 4);
      crew.Start(law, first);
      plain.groups = {{.pods = first}};
      double now_s = 0, rate = 10;
      for (int step = 0; step < 120 && !::testing::Test::HasFailure(); ++step) {
        SCOPED_TRACE(step);
        if (rng.Below(6) == 0) {  // One group more, or the youngest pods go.
          const int change = rng.Below(3) == 0 ? -1 : rng.Between(1, 3);
          if (change > 0) {
            crew.SetReplicas(law, crew.replicas() + change, now_s);
            crew.Join(now_s + law.start_delay_s);
            plain.Join(change);
          } else if (crew.ready() > 1) {
            crew.SetReplicas(law, crew.ready() - 1, now_s);
            if (--plain.groups.back().pods == 0) plain.groups.pop_back();
            plain.at_rest = false;
          }
        }
        if (rng.Below(3) == 0)
          rate = crew.ready() * law.capacity_per_s *
                 (rng.Below(4) == 0 ? rng.Uniform(0.9, 1.6) : rng.Uniform(0, 0.95));
        if (rng.Below(12) == 0) rate = 0;
        if (rng.Below(12) == 0)  // Full to the digit.
          rate = PodEquilibria::kFull * law.capacity_per_s * crew.ready();
        constexpr double kSeconds[] = {0.05, 0.3, 1, 4, 15, 60};
        const double seconds = kSeconds[rng.Below(6)];
        if (rate != plain.rate) plain.at_rest = false;
        plain.rate = rate;
        const bool is_quick = crew.Aim(law, rate, seconds);
        ASSERT_EQ(is_quick, plain.at_rest || plain.AllQuick(seconds));
        (is_quick ? quick : slow) += 1;
        // Who is asked to go in short steps may still do some at once.
        const auto pace =
            is_quick && rng.Below(3) > 0 ? PodCrew::Pace::kLong : PodCrew::Pace::kShort;
        crew.Pass(law, seconds, pace);
        plain.Pass(seconds, pace);
        ExpectSameCrew(crew, plain);
        at_rest += plain.at_rest ? 1 : 0;
        refuses += plain.refused > 0 ? 1 : 0;
        now_s += seconds + law.start_delay_s;
      }
    }
  }
  EXPECT_GT(at_rest, 300);
  EXPECT_GT(quick, 300);
  EXPECT_GT(slow, 300);
  EXPECT_GT(refuses, 50);
}

// Up to eight groups that became ready at different times are told apart.
TEST(PodCrew, GroupsAreToldApartFromNoneOn) {
  const LoadLaws laws = LawsOf(CrewOfPods());
  const CrewLaw& law = laws.crew(1);
  PodCrew crew;
  crew.Start(law, 0);
  PlainCrew plain(law);
  for (int pods = 1; pods <= 12; ++pods) {
    SCOPED_TRACE(pods);
    crew.SetReplicas(law, pods, 100 * pods);
    crew.Join(100 * pods + law.start_delay_s);
    plain.Join(1);
    plain.rate = 15 * pods;  // More than can be served.
    EXPECT_FALSE(crew.Aim(law, plain.rate, 0.3));
    crew.Pass(law, 0.3, PodCrew::Pace::kShort);
    plain.Pass(0.3, PodCrew::Pace::kShort);
    ExpectSameCrew(crew, plain);
  }
}

// L = 1 in M/M/1 at half of capacity; where L calls are, L / (1 + L) of capacity is used.
TEST(PodCrew, OneStepIsEnoughNearTheEndOrAfterManyTimeConstants) {
  const LoadLaws laws = LawsOf(CrewOfPods());
  const CrewLaw& law = laws.crew(1);
  const auto settled_at = [&](double present) {
    PodCrew crew;
    crew.Start(law, 1);
    crew.Aim(law, 10 * present / (1 + present), 1e6);
    crew.Pass(law, 1e6, PodCrew::Pace::kLong);
    EXPECT_NEAR(crew.present(), present, 0.01 * present);
    return crew;
  };
  // Within a twentieth, and of what is small a twentieth of a hundredth more.
  EXPECT_TRUE(settled_at(1.045).Aim(law, 5, 1e-3));
  EXPECT_FALSE(settled_at(1.056).Aim(law, 5, 1e-3));
  EXPECT_TRUE(settled_at(0.0109).Aim(law, 10 * 0.01 / 1.01, 1e-3));
  EXPECT_FALSE(settled_at(0.0112).Aim(law, 10 * 0.01 / 1.01, 1e-3));
  // From below the end is the slower part: 10 / (1 + L)^2 = 2.5 a second there, six times.
  EXPECT_FALSE(settled_at(0.5).Aim(law, 5, 5.6 / 2.5));
  EXPECT_TRUE(settled_at(0.5).Aim(law, 5, 6.8 / 2.5));
  // From L = 4, of which 3 too many, by 10 (0.8 - 0.5) / 3 = 1 a second: 20 times, so that a tenth
  // of as many times 1.01 + 1/2 is what is left to go.
  EXPECT_FALSE(settled_at(4).Aim(law, 5, 19.4));
  EXPECT_TRUE(settled_at(4).Aim(law, 5, 20.4));
  EXPECT_FALSE(settled_at(4).Aim(law, 10.1, 1e6));  // Beyond capacity nothing comes to rest.
}

TEST(PodCrew, TheYoungestPodsGoFirstAndServeWhoIsInTheirLine) {
  const LoadLaws laws = LawsOf(CrewOfPods());
  const CrewLaw& law = laws.crew(1);
  PodCrew crew;
  crew.Start(law, 2);
  crew.Aim(law, 16, 1e6);
  crew.Pass(law, 1e6, PodCrew::Pace::kLong);
  EXPECT_NEAR(crew.present(), 8, 0.05);  // Four at each: 0.8 / (1 - 0.8).
  EXPECT_EQ(crew.next_ready_s(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(crew.SetReplicas(law, 5, 100), 0);  // Three more after 20 s,
  EXPECT_EQ(crew.SetReplicas(law, 7, 105), 0);  // and two more,
  EXPECT_EQ(crew.SetReplicas(law, 6, 106), 0);  // of which one does not come.
  EXPECT_EQ(crew.SetReplicas(law, 6, 107), 0);
  EXPECT_EQ(crew.replicas(), 6);
  EXPECT_EQ(crew.ready(), 2);
  EXPECT_EQ(crew.next_ready_s(), 120);
  crew.Join(119.9);
  EXPECT_EQ(crew.ready(), 2);
  crew.Join(120);
  EXPECT_EQ(crew.ready(), 5);
  EXPECT_EQ(crew.next_ready_s(), 125);
  const double before = crew.present();
  EXPECT_EQ(crew.SetReplicas(law, 4, 121), 0);  // The one to come, and one without calls.
  EXPECT_EQ(crew.ready(), 4);
  EXPECT_EQ(crew.replicas(), 4);
  EXPECT_EQ(crew.next_ready_s(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(crew.present(), before);
  // Both without calls, then one with four: 0.1 s each.
  EXPECT_NEAR(crew.SetReplicas(law, 1, 122), 0.1 * before / 2, 1e-12);
  EXPECT_NEAR(crew.present(), before / 2, 1e-12);
  EXPECT_EQ(crew.ready(), 1);
  EXPECT_NEAR(crew.SetReplicas(law, 0, 122), 0.1 * before / 2, 1e-12);
  EXPECT_EQ(crew.present(), 0);
}

// Two slots serve a line in half the time.
TEST(PodCrew, SlotsServeALineTogether) {
  const LoadLaws laws = LawsOf(CrewOfPods(2));
  const CrewLaw& law = laws.crew(1);
  PodCrew crew;
  crew.Start(law, 1);
  crew.Aim(law, 16, 1e6);
  crew.Pass(law, 1e6, PodCrew::Pace::kLong);
  // As many are there as in M/M/2: 1.6 / (1 - 0.8^2).
  EXPECT_NEAR(crew.SetReplicas(law, 0, 0), 1.6 / (1 - 0.64) * 0.05, 0.002);
}

// Of more than sixteen that start one after another the last two are taken together.
TEST(PodCrew, ManyStartsAreRememberedByTheirMeanTime) {
  const LoadLaws laws = LawsOf(CrewOfPods());
  const CrewLaw& law = laws.crew(1);
  PodCrew crew;
  crew.Start(law, 0);
  EXPECT_EQ(crew.replicas(), 0);
  for (int i = 0; i < 18; ++i) crew.SetReplicas(law, i + 1, i);  // Ready at 20 + i.
  EXPECT_EQ(crew.replicas(), 18);
  EXPECT_EQ(crew.next_ready_s(), 20);
  crew.Join(33.5);
  EXPECT_EQ(crew.ready(), 14);
  // Those of 34 and 35 at 34.5; with that of 36 at 35.
  EXPECT_DOUBLE_EQ(crew.next_ready_s(), 35);
  crew.Join(35);
  EXPECT_EQ(crew.ready(), 17);
  EXPECT_EQ(crew.next_ready_s(), 37);
  crew.Join(37);
  EXPECT_EQ(crew.ready(), 18);
}

TEST(PodCrew, AWorkloadThatIsNotScaledOrNotCalledLetsCallsThrough) {
  ServedApplication application = SingleStation(CrewOfPods(), 100);
  application.workloads.push_back(CrewOfPods());  // Never called.
  const LoadLaws laws(std::make_shared<ServedApplication>(application));
  for (const WorkloadId w : {0, 2}) {
    PodCrew crew;
    crew.Start(laws.crew(w), 3);
    EXPECT_EQ(crew.replicas(), w == 0 ? 0 : 3);
    EXPECT_TRUE(crew.Aim(laws.crew(w), 7, 1));
    crew.Pass(laws.crew(w), 1, PodCrew::Pace::kShort);
    EXPECT_EQ(crew.calls_per_s(), 7);
    EXPECT_EQ(crew.passes(), 1);
    EXPECT_EQ(crew.refused_share(), 0);
    EXPECT_EQ(crew.wait_s(), 0);
  }
}

TEST(PodCrew, WithoutReadyPodsAllAreRefused) {
  const LoadLaws laws = LawsOf(CrewOfPods());
  PodCrew crew;
  crew.Start(laws.crew(1), 0);
  EXPECT_TRUE(crew.Aim(laws.crew(1), 7, 1));
  crew.Pass(laws.crew(1), 1, PodCrew::Pace::kLong);
  EXPECT_EQ(crew.refused_share(), 1);
  EXPECT_EQ(crew.passes(), 1);
  EXPECT_EQ(crew.busy(), 0);
  crew.SetReplicas(laws.crew(1), 1, 0);
  crew.Join(20);
  crew.Aim(laws.crew(1), 7, 1);
  crew.Pass(laws.crew(1), 1, PodCrew::Pace::kShort);
  EXPECT_EQ(crew.refused_share(), 0);
  EXPECT_GT(crew.busy(), 0);
}

}  // namespace
}  // namespace rudderfish
