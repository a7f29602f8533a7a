// SPDX-License-Identifier: Apache-2.0
#include "model/kube_scores.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/inter_pod_affinity.h"
#include "model/pod_compiler.h"
#include "model/topology_spread.h"
#include "tests/support/random_scheduling.h"
#include "tests/support/reference_rules.h"

namespace rudderfish {
namespace {

using testing::ReferenceCluster;

constexpr int64_t kGib = 1024 * 1024 * 1024;
constexpr char kZone[] = "topology.kubernetes.io/zone";

SchedulingNode NodeIn(const std::string& name, const std::string& zone) {
  SchedulingNode node;
  node.name = name;
  node.labels = {{"kubernetes.io/hostname", name}, {kZone, zone}};
  node.allocatable = {4000, 8 * kGib};
  node.pods_max = 10;
  return node;
}

std::shared_ptr<PodClass> PodOf(const std::string& app) {
  auto pod = std::make_shared<PodClass>();
  pod->object_namespace = "default";
  pod->labels = {{"app", app}};
  const Resources asked{1000, kGib};
  pod->amounts = {asked, 0, {}, asked, asked, asked};
  pod->containers = 1;
  return pod;
}

LabelSelector App(const std::string& app) {
  return {{{"app", LabelRequirement::Operator::kIn, {app}}}};
}

class KubeScoresOf : public ::testing::Test {
 protected:
  std::vector<int64_t> Of(const std::shared_ptr<PodClass>& pod, ScorePlugin plugin) {
    const PodClassId id = rules_.Register(pod);
    rules_.Filter(id, &feasibility_);
    ScoreAsKube(rules_, id, feasibility_, &scores_);
    return scores_.of_plugin[static_cast<int>(plugin)];
  }

  SchedulingRules rules_;
  Feasibility feasibility_;
  KubeScores scores_;
};

TEST(LeastAllocatedOf, IsTheMeanShareThatStaysFreeRoundedDownEach) {
  EXPECT_EQ(LeastAllocatedOf({1000, kGib}, {4000, 8 * kGib}), (75 + 87) / 2);
  EXPECT_EQ(LeastAllocatedOf({5000, kGib}, {4000, 8 * kGib}), 87 / 2);
  EXPECT_EQ(LeastAllocatedOf({1000, kGib}, {4000, 0}), 75);
  EXPECT_EQ(LeastAllocatedOf({1000, kGib}, {0, 0}), 0);
}

// Petabytes are more than a double's digits tell apart.
TEST(LeastAllocatedOf, DividesExactlyWhateverTheSize) {
  const int64_t much = int64_t{1} << 53, more = (int64_t{1} << 54) + 6;
  EXPECT_EQ(LeastAllocatedOf({0, 1}, {0, much}), 99);
  EXPECT_EQ(LeastAllocatedOf({0, 0}, {0, much}), 100);
  EXPECT_EQ(LeastAllocatedOf({0, more / 2}, {0, more}), 50);
  EXPECT_EQ(LeastAllocatedOf({0, more / 2 + 1}, {0, more}), 49);
  EXPECT_EQ(LeastAllocatedOf({0, more}, {0, more}), 0);
}

TEST(BalancedAllocationOf, SaysByHowMuchThePodEvensTheSharesOut) {
  // From 1/4 and 1/8 to 1/2 and 1/2: from 93 to 100.
  EXPECT_EQ(BalancedAllocationOf({1000, kGib}, {2000, 4 * kGib}, {4000, 8 * kGib}),
            50 + (50 + 100 - 93) / 2);
  EXPECT_EQ(BalancedAllocationOf({0, 0}, {4000, 0}, {4000, 8 * kGib}), 50 + (50 + 50 - 100) / 2);
  EXPECT_EQ(BalancedAllocationOf({0, 0}, {4000, kGib}, {4000, 0}), 75);
  EXPECT_EQ(BalancedAllocationOf({0, 0}, {1000, 4 * kGib}, {0, 8 * kGib}), 75);
  EXPECT_EQ(BalancedAllocationOf({0, 0}, {1, 0}, {1, 1}), 50 + (50 + 50 - 100) / 2);
  // Twice of CPU is no more than all: from 100 to 75.
  EXPECT_EQ(BalancedAllocationOf({0, 0}, {8000, 4 * kGib}, {4000, 8 * kGib}),
            50 + (50 + 75 - 100) / 2);
}

// kube-scheduler counts 100m and 200Mi for each container that asks nothing, in scores alone.
TEST_F(KubeScoresOf, WhatPodsAreAssumedToTakeCountsUntilTheyAreGone) {
  rules_.Reset({NodeIn("a", "z"), NodeIn("b", "z")}, {});
  auto asks_nothing = PodOf("quiet");
  const Resources assumed{1000, 2 * kGib};
  asks_nothing->amounts = {{}, 0, {}, {}, assumed, assumed};
  const PodClassId quiet = rules_.Register(asks_nothing);
  rules_.Assume(quiet, 0);
  const std::vector<int64_t> one{(50 + 62) / 2, (75 + 87) / 2};
  EXPECT_EQ(Of(PodOf("web"), ScorePlugin::kResourcesFit), one);
  rules_.Forget(quiet, 0);
  const std::vector<int64_t> none{(75 + 87) / 2, (75 + 87) / 2};
  EXPECT_EQ(Of(PodOf("web"), ScorePlugin::kResourcesFit), none);
}

TEST_F(KubeScoresOf, TaintsThatArePreferredNotToBeMetCostTheirShare) {
  std::vector<SchedulingNode> nodes = {NodeIn("a", "x"), NodeIn("b", "x"), NodeIn("c", "x")};
  nodes[1].taints = {{"k", "", TaintEffect::kPreferNoSchedule}};
  nodes[2].taints = {{"k", "", TaintEffect::kPreferNoSchedule},
                     {"l", "", TaintEffect::kPreferNoSchedule}};
  rules_.Reset(std::move(nodes), {});
  EXPECT_EQ(Of(PodOf("web"), ScorePlugin::kTaintToleration), (std::vector<int64_t>{300, 150, 0}));
}

TEST_F(KubeScoresOf, PodsAreSpreadByDefaultOverHostsAndZones) {
  rules_.Reset({NodeIn("a", "x"), NodeIn("b", "x"), NodeIn("c", "y")}, {});
  auto pod = PodOf("web");
  pod->default_spread = App("web");
  rules_.Assume(rules_.Register(pod), 0);
  // Hosts: ln 5 a pod and 2; zones: ln 4 a pod and 4. 9, 7 and 6 are the result.
  EXPECT_EQ(Of(pod, ScorePlugin::kTopologySpread),
            (std::vector<int64_t>{2 * (100 * 6 / 9), 2 * (100 * 8 / 9), 200}));
}

TEST_F(KubeScoresOf, PodsThatRunDrawOthersByTheirAffinityAndWeights) {
  rules_.Reset({NodeIn("a", "x"), NodeIn("b", "x"), NodeIn("c", "y")}, {});
  auto drawn = PodOf("web"), runs = PodOf("db");
  runs->preferred_pods = {{{{"default"}, {}, App("web"), kZone}, 30},
                          {{{"default"}, {}, App("web"), "kubernetes.io/hostname"}, -10}};
  rules_.Assume(rules_.Register(runs), 0);
  EXPECT_EQ(Of(drawn, ScorePlugin::kInterPodAffinity),
            (std::vector<int64_t>{2 * (100 * 20 / 30), 200, 0}));
}

TEST_F(KubeScoresOf, ImagesCountByTheirSizeAndTheShareOfNodesThatHaveThem) {
  std::vector<SchedulingNode> nodes = {NodeIn("a", "x"), NodeIn("b", "x")};
  nodes[0].images = {{"app:1", 1046 * 1024 * 1024}};
  rules_.Reset(std::move(nodes), {});
  auto pod = PodOf("web");
  pod->images = {"app:1"};
  EXPECT_EQ(Of(pod, ScorePlugin::kImageLocality),
            (std::vector<int64_t>{100 * (523 - 23) / (1000 - 23), 0}));
}

// The scores a second time: each plugin asked of a pod and all nodes from the definitions, pod by
// pod, with nothing kept between two questions. Slow, and as plain as can be.
class ReferenceScores {
 public:
  ReferenceScores(const ReferenceCluster& cluster, const PodClass& pod,
                  std::vector<uint8_t> feasible)
      : cluster_(cluster), pod_(pod), feasible_(std::move(feasible)) {}

  // [node] Weighted; 0 where the pod may not run.
  std::vector<int64_t> Of(ScorePlugin plugin) const {
    constexpr std::array<int64_t, kScorePluginCount> kWeights = {3, 2, 1, 2, 2, 1, 1};
    std::vector<int64_t> scores = Unweighted(plugin);
    for (size_t n = 0; n < scores.size(); ++n)
      scores[n] = feasible_[n] ? scores[n] * kWeights[static_cast<int>(plugin)] : 0;
    return scores;
  }

 private:
  using Scores = std::vector<int64_t>;

  Scores Unweighted(ScorePlugin plugin) const {
    switch (plugin) {
      case ScorePlugin::kTaintToleration:
        return Taints();
      case ScorePlugin::kNodeAffinity:
        return PreferredOnNodes();
      case ScorePlugin::kResourcesFit:
        return LeastAllocated();
      case ScorePlugin::kTopologySpread:
        return Spread();
      case ScorePlugin::kInterPodAffinity:
        return Affinity();
      case ScorePlugin::kBalancedAllocation:
        return Balanced();
      case ScorePlugin::kImageLocality:
        return Images();
    }
    return {};
  }

  const SchedulingNode& Node(size_t n) const { return cluster_.nodes[n]; }
  Scores Zeros() const { return Scores(cluster_.nodes.size(), 0); }

  Scores ShareOfMost(const Scores& raw) const {
    int64_t most = 0;
    for (size_t n = 0; n < raw.size(); ++n) most = feasible_[n] ? std::max(most, raw[n]) : most;
    Scores scores = Zeros();
    for (size_t n = 0; n < raw.size(); ++n) scores[n] = most == 0 ? 0 : 100 * raw[n] / most;
    return scores;
  }

  Scores Taints() const {
    Scores avoided = Zeros();
    for (size_t n = 0; n < avoided.size(); ++n) {
      for (const NodeTaint& taint : Node(n).taints)
        avoided[n] +=
            taint.effect == TaintEffect::kPreferNoSchedule && !Tolerate(pod_.tolerations, taint);
    }
    avoided = ShareOfMost(avoided);
    for (int64_t& score : avoided) score = 100 - score;
    return avoided;
  }

  Scores PreferredOnNodes() const {
    Scores wanted = Zeros();
    for (size_t n = 0; n < wanted.size(); ++n) {
      for (const PreferredNodes& preferred : pod_.preferred_nodes)
        wanted[n] += preferred.term.Matches(Node(n).name, Node(n).labels) ? preferred.weight : 0;
    }
    return ShareOfMost(wanted);
  }

  Resources HeldOn(size_t n, Resources PodAmounts::*amounts) const {
    Resources held;
    for (const auto& other : cluster_.placed) {
      if (other.node == static_cast<int>(n)) held += other.pod->amounts.*amounts;
    }
    return held;
  }

  Scores LeastAllocated() const {
    Scores scores = Zeros();
    for (size_t n = 0; n < scores.size(); ++n) {
      const Resources with = HeldOn(n, &PodAmounts::held_assumed) + pod_.amounts.scored_assumed;
      const auto free = [](int64_t used, int64_t all) {
        return used > all ? 0 : (all - used) * 100 / all;
      };
      scores[n] = (free(with.cpu_millis, Node(n).allocatable.cpu_millis) +
                   free(with.memory_bytes, Node(n).allocatable.memory_bytes)) /
                  2;
    }
    return scores;
  }

  static int64_t Evenness(const Resources& used, const Resources& all) {
    const auto share = [](int64_t part, int64_t whole) {
      return std::min(1.0, static_cast<double>(part) / static_cast<double>(whole));
    };
    const double apart =
        share(used.cpu_millis, all.cpu_millis) - share(used.memory_bytes, all.memory_bytes);
    return static_cast<int64_t>((1 - std::abs(apart / 2)) * 100);
  }

  Scores Balanced() const {
    Scores scores = Zeros();
    if (pod_.amounts.held == Resources{}) return scores;
    for (size_t n = 0; n < scores.size(); ++n) {
      const Resources before = HeldOn(n, &PodAmounts::held);
      const int64_t better = Evenness(before + pod_.amounts.held, Node(n).allocatable) -
                             Evenness(before, Node(n).allocatable);
      scores[n] = 50 + (50 + better) / 2;
    }
    return scores;
  }

  std::vector<SpreadConstraint> Soft() const {
    std::vector<SpreadConstraint> soft;
    for (const SpreadConstraint& one : pod_.spread) {
      if (one.when == SpreadConstraint::When::kScheduleAnyway) soft.push_back(one);
    }
    if (pod_.spread.empty() && pod_.default_spread && !pod_.default_spread->requirements.empty()) {
      constexpr auto kAnyway = SpreadConstraint::When::kScheduleAnyway;
      soft = {{kHostKeyText, 3, kAnyway, pod_.default_spread},
              {"topology.kubernetes.io/zone", 5, kAnyway, pod_.default_spread}};
    }
    return soft;
  }

  bool HasKeys(const std::vector<SpreadConstraint>& soft, size_t n) const {
    return std::all_of(soft.begin(), soft.end(), [&](const SpreadConstraint& one) {
      return ReferenceCluster::Value(Node(n), one.topology_key) != nullptr;
    });
  }

  int64_t Alike(const SpreadConstraint& constraint, size_t n) const {
    if (!constraint.selector || constraint.selector->requirements.empty()) return 0;
    int64_t count = 0;
    for (const auto& other : cluster_.placed) {
      count += other.node == static_cast<int>(n) && other.life == PodLife::kServing &&
               other.pod->object_namespace == pod_.object_namespace &&
               constraint.selector->Matches(other.pod->labels);
    }
    return count;
  }

  bool IsCounted(const SpreadConstraint& one, const std::vector<SpreadConstraint>& soft,
                 size_t n) const {
    constexpr auto kHonor = SpreadConstraint::Policy::kHonor;
    return (pod_.spread.empty() || HasKeys(soft, n)) &&
           (one.node_affinity != kHonor || cluster_.FitsAffinity(pod_, Node(n))) &&
           (one.node_taints != kHonor || !ReferenceCluster::Untolerated(pod_, Node(n)));
  }

  Scores Spread() const {
    const std::vector<SpreadConstraint> soft = Soft();
    Scores scores = Zeros();
    if (soft.empty()) return scores;
    const size_t nodes = scores.size();
    const auto ranks = [&](size_t n) {
      return feasible_[n] && (pod_.spread.empty() || HasKeys(soft, n));
    };
    std::vector<double> sums(nodes, 0);
    for (const SpreadConstraint& one : soft) {
      std::set<std::string> values;  // "" where the key is missing.
      double ranked = 0;
      for (size_t n = 0; n < nodes; ++n) {
        if (!ranks(n)) continue;
        const std::string* value = ReferenceCluster::Value(Node(n), one.topology_key);
        values.insert(value == nullptr ? "" : *value);
        ranked += 1;
      }
      const bool by_host = one.topology_key == kHostKeyText;
      const double weight = std::log((by_host ? ranked : static_cast<double>(values.size())) + 2);
      for (size_t n = 0; n < nodes; ++n) {
        const std::string* here = ReferenceCluster::Value(Node(n), one.topology_key);
        if (here == nullptr) continue;
        int64_t count = by_host ? Alike(one, n) : 0;
        for (size_t other = 0; !by_host && other < nodes; ++other) {
          if (cluster_.SharesDomain(one.topology_key, Node(n), static_cast<int>(other)) &&
              IsCounted(one, soft, other))
            count += Alike(one, other);
        }
        sums[n] += static_cast<double>(count) * weight + static_cast<double>(one.skew_max - 1);
      }
    }
    int64_t least = INT64_MAX, most = 0;
    for (size_t n = 0; n < nodes; ++n) {
      if (!ranks(n)) continue;
      scores[n] = std::llround(sums[n]);
      least = std::min(least, scores[n]), most = std::max(most, scores[n]);
    }
    for (size_t n = 0; n < nodes; ++n) {
      if (ranks(n)) scores[n] = most == 0 ? 100 : 100 * (most + least - scores[n]) / most;
    }
    return scores;
  }

  Scores Affinity() const {
    Scores sums = Zeros();
    for (size_t n = 0; n < sums.size(); ++n) {
      for (const auto& other : cluster_.placed) {
        const auto add = [&](const PodAffinityTerm& term, const PodClass& selected,
                             int64_t weight) {
          if (cluster_.Selects(term, selected) &&
              cluster_.SharesDomain(term.topology_key, Node(n), other.node))
            sums[n] += weight;
        };
        for (const PreferredPods& mine : pod_.preferred_pods)
          add(mine.term, *other.pod, mine.weight);
        for (const PreferredPods& theirs : other.pod->preferred_pods)
          add(theirs.term, pod_, theirs.weight);
        for (const PodAffinityTerm& theirs : other.pod->required_pods) add(theirs, pod_, 1);
      }
    }
    int64_t least = INT64_MAX, most = INT64_MIN;
    for (size_t n = 0; n < sums.size(); ++n) {
      if (feasible_[n]) least = std::min(least, sums[n]), most = std::max(most, sums[n]);
    }
    Scores scores = Zeros();
    for (size_t n = 0; n < sums.size(); ++n) {
      if (most > least)
        scores[n] = static_cast<int64_t>(
            100 * (static_cast<double>(sums[n] - least) / static_cast<double>(most - least)));
    }
    return scores;
  }

  Scores Images() const {
    constexpr int64_t kMb = 1024 * 1024;
    const auto size_on = [&](size_t n, const std::string& name) -> std::optional<int64_t> {
      for (const NodeImage& image : Node(n).images) {
        if (image.name == name) return image.size_bytes;
      }
      return std::nullopt;
    };
    Scores scores = Zeros();
    for (size_t n = 0; n < scores.size(); ++n) {
      int64_t sum = 0;
      for (const std::string& name : pod_.images) {
        const std::optional<int64_t> size = size_on(n, name);
        if (!size) continue;
        double having = 0;
        for (size_t other = 0; other < scores.size(); ++other)
          having += size_on(other, name) ? 1 : 0;
        sum += static_cast<int64_t>(static_cast<double>(*size) *
                                    (having / static_cast<double>(scores.size())));
      }
      const int64_t least = 23 * kMb, most = 1000 * kMb * pod_.containers;
      if (pod_.containers > 0)
        scores[n] = 100 * (std::clamp(sum, least, most) - least) / (most - least);
    }
    return scores;
  }

  static constexpr char kHostKeyText[] = "kubernetes.io/hostname";

  const ReferenceCluster& cluster_;
  const PodClass& pod_;
  std::vector<uint8_t> feasible_;
};

TEST(KubeScores, AreThoseOfThePlainDefinitions) {
  std::array<int, kScorePluginCount> telling{};  // Clusters in which nodes differ.
  for (uint64_t seed = 0; seed < 80; ++seed) {
    testing::RandomScheduling random{Rng(seed)};
    testing::ReferenceCluster cluster;
    cluster.namespaces = testing::RandomNamespaces();
    const int nodes = 3 + static_cast<int>(seed % 9);
    for (int n = 0; n < nodes; ++n) cluster.nodes.push_back(random.Node(n));
    SchedulingRules rules;
    rules.Reset(cluster.nodes, cluster.namespaces);
    std::vector<std::shared_ptr<const PodClass>> pods;
    for (int i = 0; i < 25; ++i) {
      auto pod = std::make_shared<PodClass>(random.Pod());
      if (pod->spread.empty() && random.Chance(0.4)) pod->default_spread = random.PodSelector();
      if (random.Chance(0.2)) pod->images.push_back("registry.local/app:1"), pod->containers = 2;
      if (random.Chance(0.05)) pod->containers = 0;
      while (pod->preferred_pods.size() > 1 && pod->preferred_pods.size() < 60) {
        for (const PreferredPods& more : random.Pod().preferred_pods)
          pod->preferred_pods.push_back(more);
      }
      pods.push_back(std::move(pod));
    }
    Feasibility feasibility;
    KubeScores scores;
    for (int step = 0; step < 60; ++step) {
      const auto& pod = pods[random.rng().Below(25)];
      const PodClassId id = rules.Register(pod);
      rules.Filter(id, &feasibility);
      ScoreAsKube(rules, id, feasibility, &scores);
      std::vector<uint8_t> feasible;
      for (int n = 0; n < nodes; ++n) feasible.push_back(feasibility.IsFeasible(n) ? 1 : 0);
      const ReferenceScores reference(cluster, *pod, feasible);
      std::vector<int64_t> total(nodes, 0);
      for (int plugin = 0; plugin < kScorePluginCount; ++plugin) {
        const std::vector<int64_t> expected = reference.Of(static_cast<ScorePlugin>(plugin));
        ASSERT_EQ(scores.of_plugin[plugin], expected)
            << NameOf(static_cast<ScorePlugin>(plugin)) << " seed " << seed << " step " << step;
        std::set<int64_t> differ;
        for (int n = 0; n < nodes; ++n) {
          if (feasible[n]) differ.insert(expected[n]);
          total[n] += expected[n];
        }
        telling[plugin] += differ.size() > 1 ? 1 : 0;
      }
      ASSERT_EQ(scores.total, total);
      const auto at = random.rng().Below(static_cast<uint32_t>(nodes));
      if (!feasible[at]) continue;
      const PodLife life = random.Chance(0.8) ? PodLife::kServing : PodLife::kTerminating;
      rules.Assume(id, static_cast<NodeId>(at), life);
      cluster.placed.push_back({pod.get(), static_cast<int>(at), life});
    }
  }
  for (int plugin = 0; plugin < kScorePluginCount; ++plugin)
    EXPECT_GT(telling[plugin], 50) << NameOf(static_cast<ScorePlugin>(plugin));
}

}  // namespace
}  // namespace rudderfish
