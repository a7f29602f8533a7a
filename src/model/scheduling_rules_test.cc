// SPDX-License-Identifier: Apache-2.0
#include "model/scheduling_rules.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "model/kube_scores.h"
#include "tests/support/count_allocations.h"
#include "tests/support/random_scheduling.h"
#include "tests/support/reference_rules.h"

namespace rudderfish {
namespace {

using testing::RandomNamespaces;
using testing::RandomScheduling;
using testing::ReferenceCluster;

// What the two forms of a rule have in common.
Rejection Plainly(Rejection rejection) {
  if (rejection == Rejection::kNotNamed) return Rejection::kNodeAffinity;
  return rejection == Rejection::kSpreadLabel ? Rejection::kSpread : rejection;
}

// A cluster that lives: pods come where they fit, end, and go.
class Life {
 public:
  Life(uint64_t seed, int nodes, int classes) : random_(Rng(seed)) {
    for (int n = 0; n < nodes; ++n) cluster_.nodes.push_back(random_.Node(n));
    cluster_.namespaces = RandomNamespaces();
    for (int c = 0; c < classes; ++c) {
      auto pod = std::make_shared<PodClass>(random_.Pod());
      pod->holds_unknown = c % 25 == 24;  // Few: no pod may join them.
      pod->attaches_unknown = c % 12 == 5;
      classes_.push_back(std::move(pod));
    }
    rules.Reset(cluster_.nodes, cluster_.namespaces);
  }

  void Step() {
    const auto& pod = classes_[random_.rng().Below(static_cast<uint32_t>(classes_.size()))];
    if (!cluster_.placed.empty() && random_.Chance(0.3)) return Change();
    const PodClassId id = rules.Register(pod);
    rules.Filter(id, &feasibility);
    std::vector<int> fit;
    for (size_t n = 0; n < cluster_.nodes.size(); ++n) {
      if (feasibility.IsFeasible(static_cast<NodeId>(n))) fit.push_back(static_cast<int>(n));
    }
    if (fit.empty()) return;
    const int node = fit[random_.rng().Below(static_cast<uint32_t>(fit.size()))];
    rules.Assume(id, node);
    cluster_.placed.push_back({pod.get(), node, PodLife::kServing});
  }

  // One node is another one from now on, but for its name.
  void ChangeNode() {
    const auto n =
        static_cast<int>(random_.rng().Below(static_cast<uint32_t>(cluster_.nodes.size())));
    SchedulingNode changed = random_.Node(n);
    if (random_.Chance(0.5)) changed.labels = cluster_.nodes[n].labels;
    cluster_.nodes[n] = changed;
    rules.ReplaceNode(n, std::move(changed));
    ChangeAttachments();
  }

  // VolumeAttachments of one node are others from now on.
  void ChangeAttachments() {
    const auto n =
        static_cast<int>(random_.rng().Below(static_cast<uint32_t>(cluster_.nodes.size())));
    const std::vector<CsiVolume> attached = random_.volumes().Attached();
    cluster_.attachments[n] = {attached.begin(), attached.end()};
    rules.SetAttached(n, attached);
  }

  const ReferenceCluster& cluster() const { return cluster_; }
  const std::vector<std::shared_ptr<const PodClass>>& classes() const { return classes_; }
  RandomScheduling& random() { return random_; }

  SchedulingRules rules;
  Feasibility feasibility;

 private:
  void Change() {
    const uint32_t which = random_.rng().Below(static_cast<uint32_t>(cluster_.placed.size()));
    ReferenceCluster::Placed& placed = cluster_.placed[which];
    PodClassId id = kNone;
    for (const auto& pod : classes_) {
      if (pod.get() == placed.pod) id = rules.Register(pod);
    }
    rules.Forget(id, placed.node, placed.life);
    if (placed.life == PodLife::kServing && random_.Chance(0.5)) {
      placed.life = PodLife::kTerminating;
      rules.Assume(id, placed.node, placed.life);
    } else {
      cluster_.placed.erase(cluster_.placed.begin() + which);
    }
  }

  RandomScheduling random_;
  ReferenceCluster cluster_;
  std::vector<std::shared_ptr<const PodClass>> classes_;
};

TEST(SchedulingRules, EveryNodeIsRejectedByTheFirstRuleOfThePlainDefinitions) {
  std::array<int, kRejectionCount> seen{};
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Life life(seed, 3 + static_cast<int>(seed % 10), 30);
    for (int step = 0; step < 120; ++step) {
      if (step % 5 == 4) life.ChangeAttachments();
      life.Step();
    }
    for (const auto& pod : life.classes()) {
      const PodClassId id = life.rules.Register(pod);
      life.rules.Filter(id, &life.feasibility);
      for (size_t n = 0; n < life.cluster().nodes.size(); ++n) {
        const std::set<Rejection> all = life.cluster().Rejections(*pod, static_cast<int>(n));
        const Rejection first = all.empty() ? Rejection::kNone : *all.begin();
        const Rejection found = life.feasibility.rejection[n];
        ++seen[static_cast<int>(found)];
        // Which nodes a pod names is asked before all else, and whether those can be any.
        if (found == Rejection::kNotNamed || found == Rejection::kPod) {
          EXPECT_TRUE(all.contains(Rejection::kNodeAffinity));
        } else {
          ASSERT_EQ(Plainly(found), first) << "seed " << seed << " node " << n;
        }
      }
    }
  }
  for (const Rejection rejection :
       {Rejection::kNotNamed, Rejection::kUnschedulable, Rejection::kTaint,
        Rejection::kNodeAffinity, Rejection::kHostPort, Rejection::kResources,
        Rejection::kSpreadLabel, Rejection::kSpread, Rejection::kAffinity, Rejection::kAntiAffinity,
        Rejection::kExistingAntiAffinity, Rejection::kVolumeLimit, Rejection::kVolumeAffinity,
        Rejection::kVolumeZone, Rejection::kUnreadPod, Rejection::kUnknownVolumes}) {
    EXPECT_GE(seen[static_cast<int>(rejection)], 30) << WordsOf(rejection);
  }
}

TEST(SchedulingRules, WhatIsKeptIncrementallyIsWhatAFreshStartFinds) {
  for (uint64_t seed = 100; seed < 120; ++seed) {
    Life life(seed, 12, 25);
    for (int step = 0; step < 200; ++step) {
      if (step % 5 == 4) life.ChangeNode();
      life.Step();
    }
    SchedulingRules fresh;
    fresh.Reset(life.cluster().nodes, life.cluster().namespaces);
    for (const auto& [node, attached] : life.cluster().attachments)
      fresh.SetAttached(node, std::vector<CsiVolume>(attached.begin(), attached.end()));
    // In another order, so that classes meet matchers that are older and younger than they.
    for (auto pod = life.classes().rbegin(); pod != life.classes().rend(); ++pod) {
      for (const ReferenceCluster::Placed& placed : life.cluster().placed) {
        if (placed.pod == pod->get()) fresh.Assume(fresh.Register(*pod), placed.node, placed.life);
      }
    }
    for (const auto& pod : life.classes()) {
      Feasibility other;
      KubeScores scores, other_scores;
      const PodClassId here = life.rules.Register(pod), there = fresh.Register(pod);
      life.rules.Filter(here, &life.feasibility);
      fresh.Filter(there, &other);
      ASSERT_EQ(life.feasibility.rejection, other.rejection);
      ASSERT_EQ(life.feasibility.short_of, other.short_of);
      ScoreAsKube(life.rules, here, life.feasibility, &scores);
      ScoreAsKube(fresh, there, other, &other_scores);
      ASSERT_EQ(scores.of_plugin, other_scores.of_plugin);
    }
  }
}

TEST(SchedulingRules, FilterAndScoresAllocateNothingOnceTheyHaveTheirSize) {
  Life life(7, 40, 20);
  for (int step = 0; step < 100; ++step) life.Step();
  KubeScores scores;
  std::vector<PodClassId> ids;
  for (const auto& pod : life.classes()) ids.push_back(life.rules.Register(pod));
  const auto all = [&] {
    for (const PodClassId id : ids) {
      life.rules.Filter(id, &life.feasibility);
      ScoreAsKube(life.rules, id, life.feasibility, &scores);
      life.rules.Assume(id, 3);
      life.rules.Forget(id, 3);
    }
  };
  all();
  const long before = allocation_count;
  all();
  EXPECT_EQ(allocation_count - before, 0);
}

SchedulingNode PlainNode(const std::string& name) {
  SchedulingNode node;
  node.name = name;
  node.labels = {{testing::kHostKey, name}};
  node.allocatable = {1000, 1024 * testing::kMebi};
  node.pods_max = 2;
  return node;
}

std::shared_ptr<PodClass> PlainPod(int64_t cpu_millis) {
  auto pod = std::make_shared<PodClass>();
  pod->object_namespace = "default";
  pod->amounts.requests = pod->amounts.held = {cpu_millis, 0};
  pod->containers = 1;
  return pod;
}

TEST(SchedulingRules, MessageCountsReasonsInTheWordsOfKubeScheduler) {
  SchedulingRules rules;
  SchedulingNode cordoned = PlainNode("c");
  cordoned.unschedulable = true;
  rules.Reset({PlainNode("a"), PlainNode("b"), cordoned}, {});
  const PodClassId small = rules.Register(PlainPod(100)), large = rules.Register(PlainPod(1000));
  rules.Assume(small, 0);
  rules.Assume(small, 0);
  rules.Assume(small, 1);
  Feasibility found;
  rules.Filter(large, &found);
  EXPECT_EQ(found.feasible, 0);
  EXPECT_EQ(rules.Message(large, found),
            "0/3 nodes are available: 1 Too many pods, 1 node(s) were unschedulable, 2 "
            "Insufficient cpu.");
}

TEST(SchedulingRules, MessageNamesEveryResourceThatIsShort) {
  SchedulingRules rules;
  SchedulingNode roomy = PlainNode("roomy"), wide = PlainNode("wide");
  roomy.ephemeral_bytes = wide.ephemeral_bytes = 100;
  roomy.scalars = {{"example.com/a", 1}, {"example.com/b", 5}};
  wide.scalars = {{"example.com/a", 5}, {"example.com/b", 1}};
  rules.Reset({roomy, wide, PlainNode("plain")}, {});
  auto pod = PlainPod(10);
  pod->amounts.scalars = {{"example.com/a", 2}, {"example.com/b", 3}};
  pod->amounts.ephemeral_bytes = 50;
  const PodClassId scalars = rules.Register(pod);
  Feasibility found;
  rules.Filter(scalars, &found);
  EXPECT_EQ(rules.Message(scalars, found),
            "0/3 nodes are available: 1 Insufficient ephemeral-storage, 2 Insufficient "
            "example.com/a, 2 Insufficient example.com/b.");
  auto heavy = PlainPod(2000);
  heavy->amounts.requests.memory_bytes = heavy->amounts.held.memory_bytes = 2048 * testing::kMebi;
  const PodClassId both = rules.Register(heavy);
  rules.Filter(both, &found);
  EXPECT_EQ(rules.Message(both, found),
            "0/3 nodes are available: 3 Insufficient cpu, 3 Insufficient memory.");
}

// Also of resources that no node offers yet and no pod to be placed has requested.
TEST(SchedulingRules, WhatPodsHoldCountsHoweverManyResourcesTheyName) {
  SchedulingNode a = PlainNode("a"), b = PlainNode("b");
  a.pods_max = b.pods_max = 100;
  a.scalars = b.scalars = {{"example.com/r07", 5}};
  SchedulingRules rules;
  rules.Reset({a, b}, {});
  auto hog = PlainPod(0);
  for (int i = 0; i < 500; ++i)
    hog->amounts.scalars.emplace_back(fmt::format("example.com/r{:02}", i), 3);
  const PodClassId holds = rules.RegisterPlaced(hog);
  rules.Assume(holds, 0);
  const auto feasible = [&](const char* name, int64_t amount) {
    auto pod = PlainPod(0);
    pod->amounts.scalars = {{name, amount}};
    Feasibility found;
    rules.Filter(rules.Register(pod), &found);
    return std::vector<bool>{found.IsFeasible(0), found.IsFeasible(1)};
  };
  EXPECT_EQ(feasible("example.com/r07", 2), (std::vector<bool>{true, true}));
  EXPECT_EQ(feasible("example.com/r07", 3), (std::vector<bool>{false, true}));
  EXPECT_EQ(feasible("example.com/r400", 1), (std::vector<bool>{false, false}));
  a.scalars.emplace_back("example.com/r400", 4);
  a.scalars.emplace_back("example.com/r450", 4);
  rules.ReplaceNode(0, a);
  for (const char* name : {"example.com/r400", "example.com/r450"}) {
    EXPECT_EQ(feasible(name, 1), (std::vector<bool>{true, false})) << name;
    EXPECT_EQ(feasible(name, 2), (std::vector<bool>{false, false})) << name;
  }
  rules.Forget(holds, 0);
  EXPECT_EQ(feasible("example.com/r450", 4), (std::vector<bool>{true, false}));
  rules.ReplaceNode(0, PlainNode("a"));
  EXPECT_EQ(feasible("example.com/r07", 1), (std::vector<bool>{false, true}));
}

TEST(SchedulingRules, AsksForMoreResourcesThanAWordHasBitsAreAnsweredByTheFirst) {
  SchedulingRules rules;
  rules.Reset({PlainNode("a")}, {});
  auto pod = PlainPod(0);
  for (int i = 0; i < 500; ++i)
    pod->amounts.scalars.emplace_back(fmt::format("example.com/r{:02}", i), 1);
  const PodClassId id = rules.Register(pod);
  Feasibility found;
  rules.Filter(id, &found);
  EXPECT_EQ(found.feasible, 0);
  EXPECT_EQ(rules.CountReasons(id, found).size(), kScalarsMax);
}

TEST(SchedulingRules, AClaimOfOnePodKeepsOthersFromEveryNode) {
  SchedulingRules rules;
  rules.Reset({PlainNode("a"), PlainNode("b")}, {});
  auto pod = PlainPod(100);
  pod->claims = pod->exclusive_claims = {"data"};
  const PodClassId id = rules.Register(pod);
  Feasibility found;
  rules.Filter(id, &found);
  EXPECT_EQ(found.feasible, 2);
  rules.Assume(id, 1);
  rules.Filter(id, &found);
  EXPECT_EQ(found.rejection[0], Rejection::kClaimInUse);
  EXPECT_EQ(found.feasible, 0);
  rules.Forget(id, 1);
  rules.Filter(id, &found);
  EXPECT_EQ(found.feasible, 2);
}

TEST(SchedulingRules, NoPodJoinsAPodWhoseRequestsCannotBeRead) {
  SchedulingRules rules;
  rules.Reset({PlainNode("a"), PlainNode("b")}, {});
  auto unread = PlainPod(0);
  unread->holds_unknown = true;
  const PodClassId closes = rules.Register(unread), id = rules.Register(PlainPod(100));
  EXPECT_NE(closes, rules.Register(PlainPod(0)));
  rules.Assume(closes, 1);
  Feasibility found;
  rules.Filter(id, &found);
  EXPECT_EQ(found.rejection, (std::vector{Rejection::kNone, Rejection::kUnreadPod}));
  EXPECT_EQ(
      rules.Message(id, found),
      "0/2 nodes are available: 1 node(s) run a pod whose spec could not be parsed completely.");
  rules.Forget(closes, 1);
  rules.Filter(id, &found);
  EXPECT_EQ(found.feasible, 2);
}

TEST(SchedulingRules, AHardLimitOfLatencyIsNoRuleOfKubeSchedulersAndKeptOnRequest) {
  SchedulingRules rules;
  std::vector<SchedulingNode> nodes = {PlainNode("near"), PlainNode("far"), PlainNode("silent"),
                                       PlainNode("full")};
  nodes[0].user_ms = 30;
  nodes[1].user_ms = 30.5;
  nodes[3].allocatable.cpu_millis = 10;
  rules.Reset(nodes, {});
  auto pod = PlainPod(100);
  pod->latency_limits.hard_ms = 30;
  const PodClassId limited = rules.Register(pod), free = rules.Register(PlainPod(100));
  EXPECT_NE(limited, free);
  Feasibility found;
  rules.Filter(limited, &found);
  EXPECT_EQ(found.feasible, 3);
  rules.LimitLatency(limited, &found);
  EXPECT_EQ(found.feasible, 1);
  EXPECT_EQ(found.rejection, (std::vector{Rejection::kNone, Rejection::kTooFar, Rejection::kTooFar,
                                          Rejection::kResources}));
  EXPECT_EQ(rules.CountReasons(limited, found).back(),
            std::pair(std::string("node(s) were not known to be within the pod's hard limit of "
                                  "latency"),
                      2));
  rules.Filter(free, &found);
  rules.LimitLatency(free, &found);
  EXPECT_EQ(found.feasible, 3);
}

TEST(SchedulingRules, VolumesKeepThePodWhereTheyCanBeUsed) {
  SchedulingRules rules;
  SchedulingNode in_a = PlainNode("a"), in_b = PlainNode("b");
  in_a.labels.emplace_back(testing::kZoneKey, "zone-a");
  in_b.labels.emplace_back(testing::kZoneKey, "zone-b");
  rules.Reset({in_a, in_b, PlainNode("c")}, {});
  auto zonal = PlainPod(100), bound = PlainPod(100);
  zonal->volumes = {{{}, {{"failure-domain.beta.kubernetes.io/zone", {"zone-a"}}}}};
  NodeTerm on_b;
  on_b.expressions = {{testing::kHostKey, NodeRequirement::Operator::kIn, {"b"}}};
  bound->volumes = {{{{on_b}}, {}}};
  Feasibility found;
  rules.Filter(rules.Register(zonal), &found);
  EXPECT_EQ(found.rejection,
            (std::vector{Rejection::kNone, Rejection::kVolumeZone, Rejection::kNone}));
  rules.Filter(rules.Register(bound), &found);
  EXPECT_EQ(found.rejection, (std::vector{Rejection::kVolumeAffinity, Rejection::kNone,
                                          Rejection::kVolumeAffinity}));
}

TEST(SchedulingRules, AVolumeOfAnInTreeTypeIsAskedForByTheLabelsOfTheDriverThatHasTakenOver) {
  SchedulingRules rules;
  std::vector<SchedulingNode> nodes = {PlainNode("a"), PlainNode("b"), PlainNode("c")};
  for (SchedulingNode& node : nodes) node.labels.emplace_back(testing::kZoneKey, "here");
  nodes[1].migrated_plugins = nodes[2].migrated_plugins = {"kubernetes.io/aws-ebs"};
  nodes[2].labels.emplace_back("topology.ebs.csi.aws.com/zone", "here");
  for (SchedulingNode& node : nodes) std::sort(node.labels.begin(), node.labels.end());
  rules.Reset(nodes, {});
  const auto in = [](const char* key) {
    NodeTerm term;
    term.expressions = {{key, NodeRequirement::Operator::kIn, {"here"}}};
    return std::vector{term};
  };
  BoundVolume volume{in(testing::kZoneKey), {}, {}};
  volume.migrated = {"kubernetes.io/aws-ebs", in("topology.ebs.csi.aws.com/zone")};
  auto pod = PlainPod(100);
  pod->volumes = {volume};
  Feasibility found;
  rules.Filter(rules.Register(pod), &found);
  EXPECT_EQ(found.rejection,
            (std::vector{Rejection::kNone, Rejection::kVolumeAffinity, Rejection::kNone}));
}

// The labels of old are those of today where a node has these alone.
TEST(SchedulingRules, VolumesAskForZonesAndRegionsByOldLabelsToo) {
  SchedulingRules rules;
  std::vector<SchedulingNode> nodes(4);
  constexpr const char* kLabels[] = {
      "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region",
      "topology.kubernetes.io/zone", "topology.kubernetes.io/region"};
  for (int n = 0; n < 4; ++n) {
    nodes[n] = PlainNode(std::string(1, static_cast<char>('a' + n)));
    nodes[n].labels.emplace_back(kLabels[n], "here");
    std::sort(nodes[n].labels.begin(), nodes[n].labels.end());
  }
  rules.Reset(nodes, {});
  // Which of these nodes a volume with each label may be used on.
  constexpr bool kFits[4][4] = {{true, false, true, false},
                                {false, true, false, true},
                                {false, false, true, false},
                                {false, false, false, true}};
  for (int label = 0; label < 4; ++label) {
    auto pod = PlainPod(100);
    pod->volumes = {{{}, {{kLabels[label], {"elsewhere", "here"}}}}};
    Feasibility found;
    rules.Filter(rules.Register(pod), &found);
    for (int n = 0; n < 4; ++n)
      EXPECT_EQ(found.rejection[n], kFits[label][n] ? Rejection::kNone : Rejection::kVolumeZone)
          << label << " " << n;
    pod = PlainPod(100);
    pod->volumes = {{{}, {{kLabels[label], {"elsewhere"}}}}};
    rules.Filter(rules.Register(pod), &found);
    EXPECT_EQ(found.feasible, 0);
  }
}

TEST(SchedulingRules, WhatThePodItselfLacksRejectsEveryNode) {
  SchedulingRules rules;
  rules.Reset({PlainNode("a"), PlainNode("b")}, {});
  auto lacks = PlainPod(100), torn = PlainPod(100);
  lacks->rejection = "persistentvolumeclaim \"c\" not found";
  NodeTerm two_names;
  two_names.fields = {{"metadata.name", NodeRequirement::Operator::kIn, {"a"}},
                      {"metadata.name", NodeRequirement::Operator::kIn, {"b"}}};
  torn->required_nodes = {{two_names}};
  Feasibility found;
  rules.Filter(rules.Register(lacks), &found);
  EXPECT_EQ(found.rejection, (std::vector{Rejection::kPod, Rejection::kPod}));
  EXPECT_EQ(rules.Message(rules.Register(lacks), found),
            "0/2 nodes are available: persistentvolumeclaim \"c\" not found.");
  rules.Filter(rules.Register(torn), &found);
  EXPECT_EQ(found.feasible, 0);
  EXPECT_EQ(rules.Message(rules.Register(torn), found),
            "0/2 nodes are available: pod affinity terms conflict.");
}

TEST(SchedulingRules, WithoutNodesTheMessageSaysSo) {
  SchedulingRules rules;
  rules.Reset({}, {});
  Feasibility found;
  const PodClassId id = rules.Register(PlainPod(100));
  rules.Filter(id, &found);
  EXPECT_EQ(found.feasible, 0);
  EXPECT_EQ(rules.Message(id, found), "no nodes available to schedule pods");
}

TEST(SchedulingRules, EqualClassesAreOne) {
  SchedulingRules rules;
  rules.Reset({PlainNode("a")}, {});
  EXPECT_EQ(rules.Register(PlainPod(100)), rules.Register(PlainPod(100)));
  EXPECT_NE(rules.Register(PlainPod(100)), rules.Register(PlainPod(200)));
  EXPECT_EQ(rules.class_count(), 2);
}

}  // namespace
}  // namespace rudderfish
