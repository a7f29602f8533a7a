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

// How many pods of which kind are on each node, for the rules between pods. What selects pods (a
// term of affinity, a spread constraint) of a class that is asked about is a matcher, kept once
// however many classes use it; for each the pods it matches are counted by node, as pods come and
// go. And each term that placed pods bring against or for others (anti-affinity, preferences) is a
// burden, counted where its bearers are and nowhere else: there may be many with one bearer each.
//
// Whether a matcher or burden selects a class is decided once, when the later of the two becomes
// known. One thread; a class or a matcher more allocates, and so does the first bearer on a node.

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

  // A term that placed pods bring along, by what it does to a pod that it selects.
  enum class Effect : uint8_t { kForbids, kScores };
  struct Burden {
    PodAffinityTerm term;
    int key_row = 0;  // Of its topology.
    Effect effect = Effect::kForbids;
    // Nodes in order, each with its bearers; of kScores with the sum of their weights.
    std::vector<std::pair<NodeId, int64_t>> on_nodes;
    int64_t bearers = 0;
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

  // Pods that all of these terms select; their topology keys do not matter.
  MatcherId Matcher(std::span<const PodAffinityTerm> terms, Counts counts);

  // REQUIRES: ids come in order from 0; `pod` outlives this, or the next Reset.
  void AddClass(PodClassId id, const PodClass* pod);

  // Pods of class `bearer` bring this term, counting `amount` each.
  void AddBurden(PodClassId bearer, const PodAffinityTerm& term, int key_row, Effect effect,
                 int64_t amount);

  void Place(PodClassId pod, NodeId node, PodLife life) { Add(pod, node, life, 1); }
  void Remove(PodClassId pod, NodeId node, PodLife life) { Add(pod, node, life, -1); }

  bool Selects(MatcherId matcher, const PodClass& pod) const;
  bool IsCounted(MatcherId matcher, PodClassId pod) const;  // The same, of a class that is known.
  std::span<const int32_t> by_node(MatcherId matcher) const { return matchers_[matcher].by_node; }
  std::span<const OnNode> on_node(NodeId node) const { return on_node_[node]; }
  int64_t total(MatcherId matcher) const { return matchers_[matcher].total; }
  const Burden& burden(BurdenId id) const { return burdens_[id]; }
  // Those that pods of this class bring along, each with its amount.
  std::span<const std::pair<BurdenId, int64_t>> burdens_of(PodClassId pod) const {
    return classes_[pod].bears;
  }
  // Those that select pods of this class: of the same effect and topology one after another.
  std::span<const BurdenId> burdens_on(PodClassId pod) const { return classes_[pod].burdens_on; }
  // Whether a pod of lower priority is placed.
  bool HasPodsBelow(int64_t priority) const;

 private:
  struct Selector {
    std::vector<PodAffinityTerm> terms;
    Counts counts;
    std::vector<int32_t> by_node;
    int64_t total = 0;
  };
  struct Class {
    const PodClass* pod;
    std::vector<MatcherId> counted_all, counted_serving;
    std::vector<std::pair<BurdenId, int64_t>> bears;
    std::vector<BurdenId> burdens_on;
    size_t priority = 0;  // [priorities_]
  };
  void Add(PodClassId pod, NodeId node, PodLife life, int32_t sign);
  void CountPlaced(Selector* selector, MatcherId id);
  bool Selects(const PodAffinityTerm& term, const PodClass& pod) const;
  bool IsBefore(BurdenId a, BurdenId b) const;
  BurdenId BurdenOf(const PodAffinityTerm& term, int key_row, Effect effect);

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
