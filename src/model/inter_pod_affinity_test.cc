// SPDX-License-Identifier: Apache-2.0
#include "model/inter_pod_affinity.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/rng.h"
#include "tests/support/random_scheduling.h"
#include "tests/support/reference_rules.h"

namespace rudderfish {
namespace {

using testing::RandomScheduling;
using testing::ReferenceCluster;

SchedulingNode Labelled(RandomScheduling* random, int number) {
  SchedulingNode node;
  node.name = "node-" + std::to_string(number);
  node.labels = random->Node(number).labels;
  node.allocatable = {1000000, 1024 * 1024 * testing::kMebi};
  node.pods_max = 1000;
  return node;
}

// Many terms, on as many topologies as there are, and on one that no node
// has; nothing else is asked.
std::shared_ptr<const PodClass> PodOfTerms(RandomScheduling* random, size_t forbidden) {
  const PodClass drawn = random->Pod();
  auto pod = std::make_shared<PodClass>();
  pod->object_namespace = drawn.object_namespace;
  pod->labels = drawn.labels;
  pod->containers = 1;
  while (pod->forbidden_pods.size() < forbidden) {
    for (PodAffinityTerm& term : random->Pod().forbidden_pods) {
      if (random->Chance(0.1)) term.topology_key = "example.com/nowhere";
      pod->forbidden_pods.push_back(std::move(term));
    }
  }
  if (random->Chance(0.3)) pod->required_pods = drawn.required_pods;
  return pod;
}

// A living cluster of such pods: most are known by being placed, and asked about later or never.
class TermLife {
 public:
  static constexpr int kNodes = 12;
  static constexpr int kClasses = 16;

  explicit TermLife(uint64_t seed) : random_(Rng(seed)) {
    for (int n = 0; n < kNodes; ++n) cluster_.nodes.push_back(Labelled(&random_, n));
    cluster_.namespaces = testing::RandomNamespaces();
    rules_.Reset(cluster_.nodes, cluster_.namespaces);
    for (int c = 0; c < kClasses; ++c) {
      const bool has_many = c % 4 == 3;
      const size_t few = random_.rng().Below(3);
      classes_.push_back(PodOfTerms(&random_, has_many ? 40 : few));
    }
  }

  void Step() {
    if (!cluster_.placed.empty() && random_.Chance(0.5)) {
      const uint32_t which = random_.rng().Below(static_cast<uint32_t>(cluster_.placed.size()));
      const ReferenceCluster::Placed gone = cluster_.placed[which];
      for (const auto& pod : classes_) {
        if (pod.get() == gone.pod) rules_.Forget(rules_.RegisterPlaced(pod), gone.node, gone.life);
      }
      cluster_.placed.erase(cluster_.placed.begin() + which);
      return;
    }
    const auto& pod = classes_[random_.rng().Below(kClasses)];
    const int node = static_cast<int>(random_.rng().Below(kNodes));
    rules_.Assume(rules_.RegisterPlaced(pod), node, PodLife::kServing);
    cluster_.placed.push_back({pod.get(), node, PodLife::kServing});
  }

  void Relabel() {
    const int n = static_cast<int>(random_.rng().Below(kNodes));
    cluster_.nodes[n] = Labelled(&random_, n);
    if (random_.Chance(0.1)) cluster_.nodes[n].labels = {{"example.com/nowhere", "here"}};
    rules_.ReplaceNode(n, cluster_.nodes[n]);
  }

  // Adds to `seen` how often each reason was given.
  void Compare(std::array<int, kRejectionCount>* seen) {
    Feasibility found;
    const auto& pod = classes_[random_.rng().Below(kClasses)];
    rules_.Filter(rules_.Register(pod), &found);
    for (int n = 0; n < kNodes; ++n) {
      const std::set<Rejection> all = cluster_.Rejections(*pod, n);
      ASSERT_EQ(found.rejection[n], all.empty() ? Rejection::kNone : *all.begin()) << "node " << n;
      ++(*seen)[static_cast<int>(found.rejection[n])];
    }
  }

 private:
  RandomScheduling random_;
  ReferenceCluster cluster_;
  SchedulingRules rules_;
  std::vector<std::shared_ptr<const PodClass>> classes_;
};

TEST(InterPodAffinity, PodsOfManyTermsAreJudgedAsByThePlainDefinitions) {
  std::array<int, kRejectionCount> seen{};
  for (uint64_t seed = 300; seed < 345; ++seed) {
    TermLife life(seed);
    for (int step = 0; step < 100; ++step) {
      life.Step();
      if (step % 10 == 9) life.Relabel();
      if (step % 4 != 3) continue;
      life.Compare(&seen);
      ASSERT_FALSE(::testing::Test::HasFatalFailure()) << "seed " << seed << " step " << step;
    }
  }
  for (const Rejection rejection : {Rejection::kNone, Rejection::kAffinity,
                                    Rejection::kAntiAffinity, Rejection::kExistingAntiAffinity})
    EXPECT_GE(seen[static_cast<int>(rejection)], 300) << WordsOf(rejection);
}

}  // namespace
}  // namespace rudderfish
