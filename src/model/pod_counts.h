// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "cluster/ids.h"
#include "cluster/scheduling.h"

// How many pods of which kind are on each node, for the rules between pods. What selects pods (the
// terms of affinity of one topology, a spread constraint) of a class that is asked about is a
// matcher, kept once however many classes use it; for each the pods it matches are counted by node,
// as pods come and go. And the terms of one topology that a placed pod brings against or for others
// (anti-affinity, preferences) are a burden, counted where its bearers are and nowhere else: there
// may be many with one bearer each.
//
// What a matcher or burden says of a class is decided once, when the later of the two becomes
// known: a pod of ten thousand terms costs a look at each then, and no question about another pod
// looks at them again. One thread; a class or a matcher more allocates, and so does the first
// bearer on a node.

namespace rudderfish {

using PodClassId = int32_t;

// A pod that is being deleted still takes room and still attracts and repels, but does not count
// for topology spread.
enum class PodLife : uint8_t { kServing, kTerminating };

class PodCounts {
 public:
  using MatcherId = int32_t;
  using BurdenId = int32_t;

  enum class Counts : uint8_t { kAllPods, kServingPods };

  // A term and what it adds for a pod that it selects.
  struct Weighted {
    PodAffinityTerm term;
    int64_t weight = 1;

    bool operator==(const Weighted&) const = default;
  };

  // Terms that placed pods bring along, by what they do to a pod that they select.
  enum class Effect : uint8_t { kForbids, kScores };
  struct Burden {
    std::vector<Weighted> terms;  // The first that selects decides kForbids; kScores is their sum.
    int key_row = 0;              // Of their topology.
    Effect effect = Effect::kForbids;
    std::vector<std::pair<NodeId, int64_t>> on_nodes;  // Nodes in order, each with its bearers.
    int64_t bearers = 0;
  };
  struct BurdenOn {  // Of one class: what one bearer of the burden adds to it.
    BurdenId id;
    int64_t value;
  };

  struct OnNode {  // Of one class.
    PodClassId pod;
    int32_t serving, terminating;

    int32_t count() const { return serving + terminating; }
  };

  using NamespaceLabels = std::unordered_map<std::string, Labels>;

  void Reset(int nodes, NamespaceLabels namespaces);

  // The labels of a namespace, where nothing that is known follows from them: no class is of it, or
  // no matcher selects namespaces. False: they are not taken, and it takes a Reset.
  bool PutNamespace(const std::string& name, const Labels& labels);

  // Pods that all of these terms select, each counting 1; their topology keys do not matter.
  MatcherId Matcher(std::span<const PodAffinityTerm> terms, Counts counts);

  // Pods that any of these terms select, each counting the weights of those that do. Of all pods.
  MatcherId SumMatcher(std::span<const Weighted> terms);

  // REQUIRES: ids come in order from 0; `pod` outlives this, or the next Reset.
  void AddClass(PodClassId id, const PodClass* pod);

  // Pods of class `bearer` bring these terms, all of one topology.
  void AddBurden(PodClassId bearer, std::vector<Weighted> terms, int key_row, Effect effect);

  void Place(PodClassId pod, NodeId node, PodLife life) { Add(pod, node, life, 1); }
  void Remove(PodClassId pod, NodeId node, PodLife life) { Add(pod, node, life, -1); }

  bool Selects(MatcherId matcher, const PodClass& pod) const;
  bool IsCounted(MatcherId matcher, PodClassId pod) const;  // The same, of a class that is known.
  std::span<const int32_t> by_node(MatcherId matcher) const { return matchers_[matcher].by_node; }
  std::span<const OnNode> on_node(NodeId node) const { return on_node_[node]; }
  int64_t total(MatcherId matcher) const { return matchers_[matcher].total; }  // Of pods.
  const Burden& burden(BurdenId id) const { return burdens_[id]; }
  // Those that pods of this class bring along.
  std::span<const BurdenId> burdens_of(PodClassId pod) const { return classes_[pod].bears; }
  // Those that select pods of this class: of the same effect and topology one after another.
  std::span<const BurdenOn> burdens_on(PodClassId pod) const { return classes_[pod].burdens_on; }
  // Whether a pod of lower priority is placed.
  bool HasPodsBelow(int64_t priority) const;

 private:
  enum class Joins : uint8_t { kAll, kSum };  // How terms make one value.
  struct Selector {
    std::vector<Weighted> terms;
    Joins joins;
    Counts counts;
    std::vector<int32_t> by_node;
    int64_t total = 0;
  };
  struct Counted {
    MatcherId matcher;
    int32_t value;
  };
  struct Class {
    const PodClass* pod;
    std::vector<Counted> counted_all, counted_serving;
    std::vector<BurdenId> bears;
    std::vector<BurdenOn> burdens_on;
    size_t priority = 0;  // [priorities_]
  };
  MatcherId MatcherOf(Selector made);
  void Add(PodClassId pod, NodeId node, PodLife life, int32_t sign);
  void Count(const Counted& counted, NodeId node, int32_t pods);
  void CountPlaced(Selector* selector, MatcherId id);
  bool Selects(const PodAffinityTerm& term, const PodClass& pod) const;
  int64_t ValueOf(const Selector& selector, const PodClass& pod) const;
  int64_t ValueOf(const Burden& burden, const PodClass& pod) const;
  bool IsBefore(const BurdenOn& a, const BurdenOn& b) const;

  int nodes_ = 0;
  NamespaceLabels namespaces_;
  std::unordered_set<std::string> namespaces_of_classes_;
  bool selects_namespaces_ = false;  // Some matcher does.
  std::vector<Selector> matchers_;
  std::unordered_multimap<size_t, MatcherId> matchers_by_hash_;
  std::vector<Burden> burdens_;
  std::unordered_multimap<size_t, BurdenId> burdens_by_hash_;
  std::vector<Class> classes_;
  std::vector<std::vector<OnNode>> on_node_;
  std::vector<std::pair<int64_t, int64_t>> priorities_;  // Each with how many pods are placed.
};

}  // namespace rudderfish
