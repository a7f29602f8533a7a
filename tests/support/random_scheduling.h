// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "cluster/scheduling.h"
#include "tests/support/random_volumes.h"

// Random nodes and pods of few words, so that they meet: every rule of scheduling occurs, alone and
// with others.

namespace rudderfish::testing {

inline constexpr char kHostKey[] = "kubernetes.io/hostname";
inline constexpr char kZoneKey[] = "topology.kubernetes.io/zone";
inline constexpr char kRegionKey[] = "topology.kubernetes.io/region";
// As they were called before; who reads volumes heeds both.
inline constexpr char kBetaZoneKey[] = "failure-domain.beta.kubernetes.io/zone";
inline constexpr char kBetaRegionKey[] = "failure-domain.beta.kubernetes.io/region";
inline constexpr char kHugePages[] = "hugepages-2Mi";
inline constexpr int64_t kMebi = 1024 * 1024;

inline std::unordered_map<std::string, Labels> RandomNamespaces() {
  return {{"default", {{"kubernetes.io/metadata.name", "default"}}},
          {"team-a", {{"kubernetes.io/metadata.name", "team-a"}, {"stage", "live"}}},
          {"team-b", {{"kubernetes.io/metadata.name", "team-b"}, {"stage", "test"}}}};
}

class RandomScheduling {
 public:
  explicit RandomScheduling(Rng rng) : rng_(rng), volumes_(Rng(rng.Next64(), 1)) {}

  Rng& rng() { return rng_; }
  RandomVolumes& volumes() { return volumes_; }
  bool Chance(double p) { return rng_.Uniform() < p; }
  std::string OneOf(const std::vector<std::string>& words) {
    return words[rng_.Below(static_cast<uint32_t>(words.size()))];
  }

  SchedulingNode Node(int number) {
    SchedulingNode node;
    node.name = "node-" + std::to_string(number);
    node.labels = {{kHostKey, node.name}};
    if (Chance(0.85)) node.labels.emplace_back(kZoneKey, OneOf({"a", "b", "c"}));
    if (Chance(0.2)) node.labels.emplace_back(kBetaZoneKey, OneOf({"a", "b", "c"}));
    if (Chance(0.4)) node.labels.emplace_back(kRegionKey, OneOf({"north", "south"}));
    if (Chance(0.2)) node.labels.emplace_back(kBetaRegionKey, OneOf({"north", "south"}));
    if (Chance(0.8)) node.labels.emplace_back("rack", OneOf({"r1", "r2", "r3", "r4"}));
    if (Chance(0.6)) node.labels.emplace_back("rank", OneOf({"1", "3", "5", "10", "x"}));
    if (Chance(0.7)) node.labels.emplace_back("tier", OneOf({"gold", "tin"}));
    std::sort(node.labels.begin(), node.labels.end());
    const int taints = Chance(0.35) ? 1 + static_cast<int>(rng_.Below(2)) : 0;
    for (int i = 0; i < taints; ++i) {
      node.taints.push_back({i == 0 ? "dedicated" : "flaky", OneOf({"x", "y"}), Effect()});
    }
    node.unschedulable = Chance(0.08);
    node.allocatable = {500 * rng_.Between(2, 16), 512 * kMebi * rng_.Between(2, 16)};
    node.ephemeral_bytes = 1024 * kMebi * rng_.Between(1, 20);
    node.pods_max = rng_.Between(3, 14);
    if (Chance(0.5)) node.scalars = {{"example.com/gpu", rng_.Between(0, 4)}};
    if (Chance(0.4)) node.scalars.emplace_back(kHugePages, 2 * kMebi * rng_.Between(0, 16));
    // One name has one size: of several, kube-scheduler takes that of the node it heard of first.
    std::vector<NodeImage> images;
    if (Chance(0.5)) {
      images.push_back({"registry.local/app:1", 700 * kMebi});
      if (Chance(0.5)) images.push_back({kImages[2], 700 * kMebi});
    }
    if (Chance(0.3)) images.push_back({"registry.local/app:latest", 1900 * kMebi});
    node.images = std::move(images);
    volumes_.AddTo(&node);
    return node;
  }

  PodClass Pod() {
    PodClass pod;
    pod.object_namespace = OneOf({"default", "default", "team-a", "team-b"});
    pod.labels = {{"app", OneOf({"web", "db", "cache"})}, {"version", OneOf({"1", "2"})}};
    Amounts(&pod);
    if (Chance(0.6)) pod.tolerations.push_back(Toleration("dedicated"));
    if (Chance(0.3)) pod.tolerations.push_back(Toleration("flaky"));
    if (Chance(0.1)) pod.tolerations.push_back({"", PodToleration::Operator::kExists, "", {}});
    if (Chance(0.15)) pod.node_selector = {{"tier", OneOf({"gold", "tin", "lead"})}};
    if (Chance(0.2)) RequireNodes(&pod);
    for (int i = 0; i < 3 && Chance(0.3); ++i)
      pod.preferred_nodes.push_back({Chance(0.1) ? NodeTerm() : Term(), rng_.Between(1, 100)});
    if (Chance(0.12)) pod.required_pods.push_back(PodTerm(pod));
    if (Chance(0.03)) pod.required_pods.push_back(PodTerm(pod));
    if (Chance(0.2)) pod.forbidden_pods.push_back(PodTerm(pod));
    if (Chance(0.2)) pod.preferred_pods.push_back({PodTerm(pod), rng_.Between(1, 100)});
    if (Chance(0.15)) pod.preferred_pods.push_back({PodTerm(pod), -rng_.Between(1, 100)});
    const int constraints = Chance(0.3) ? 1 + static_cast<int>(rng_.Below(2)) : 0;
    for (int i = 0; i < constraints; ++i) pod.spread.push_back(Constraint(i));
    if (Chance(0.2)) Ports(&pod);
    do {
      pod.images.push_back(Image());
    } while (Chance(0.25));
    pod.containers = static_cast<int64_t>(pod.images.size());
    volumes_.AddTo(&pod);
    return pod;
  }

  std::string Image() { return kImages[rng_.Below(std::size(kImages))]; }

  LabelSelector PodSelector() {
    using Operator = LabelRequirement::Operator;
    switch (rng_.Below(8)) {
      case 0:
        return {{{"app", Operator::kNotIn, {OneOf({"web", "db", "cache"})}}}};
      case 1:
        return {{{"version", Operator::kExists, {}}}};
      case 2:
        return {{{"app", Operator::kIn, {"web", "db"}}, {"version", Operator::kIn, {"2"}}}};
      case 3:
        return {{{"canary", Operator::kDoesNotExist, {}}}};
      case 4:
        return {};
      default:
        return {{{"app", Operator::kIn, {OneOf({"web", "db", "cache"})}}}};
    }
  }

  NodeTerm Term() {
    using Operator = NodeRequirement::Operator;
    NodeTerm term;
    do {
      switch (rng_.Below(8)) {
        case 0:
          term.expressions.push_back({"rank", Operator::kGt, {"2"}, 2});
          break;
        case 1:
          term.expressions.push_back({"rank", Operator::kLt, {"4"}, 4});
          break;
        case 2:
          term.expressions.push_back({"rack", Operator::kExists, {}});
          break;
        case 3:
          term.expressions.push_back({"tier", Operator::kDoesNotExist, {}});
          break;
        case 4:
          term.expressions.push_back({kZoneKey, Operator::kNotIn, {"a"}});
          break;
        case 5:
          term.fields.push_back({"metadata.name", Operator::kNotIn, {"node-1"}});
          break;
        default:
          term.expressions.push_back({"rack", Operator::kIn, {"r1", OneOf({"r2", "r3"})}});
      }
    } while (Chance(0.3));
    return term;
  }

 private:
  // Two tags of one image, the first also by its digest, and one that no node has.
  static constexpr const char* kImages[] = {
      "registry.local/app:1", "registry.local/app:latest",
      ("registry.local/app@sha256:"
       "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"),
      "none:latest"};

  TaintEffect Effect() { return static_cast<TaintEffect>(rng_.Below(3)); }

  PodToleration Toleration(const std::string& key) {
    if (Chance(0.5)) return {key, PodToleration::Operator::kExists, "", {}};
    PodToleration made{key, PodToleration::Operator::kEqual, OneOf({"x", "y"}), {}};
    if (Chance(0.5)) made.effect = Effect();
    return made;
  }

  void Amounts(PodClass* pod) {
    Resources asked;
    if (Chance(0.85)) asked.cpu_millis = 50 * rng_.Between(1, 40);
    if (Chance(0.85)) asked.memory_bytes = 64 * kMebi * rng_.Between(1, 30);
    Resources assumed = asked;
    if (asked.cpu_millis == 0) assumed.cpu_millis = 100;
    if (asked.memory_bytes == 0) assumed.memory_bytes = 200 * kMebi;
    pod->amounts = {asked, 0, {}, asked, assumed, assumed};
    if (Chance(0.15)) pod->amounts.ephemeral_bytes = 512 * kMebi * rng_.Between(1, 12);
    if (Chance(0.12)) pod->amounts.scalars = {{"example.com/gpu", rng_.Between(1, 3)}};
    // Beside cpu or memory alone they are allowed.
    if (!(asked == Resources{}) && Chance(0.1))
      pod->amounts.scalars.emplace_back(kHugePages, 2 * kMebi * rng_.Between(1, 8));
  }

  void RequireNodes(PodClass* pod) {
    pod->required_nodes.emplace();
    do {
      pod->required_nodes->push_back(Term());
    } while (Chance(0.3));
    if (Chance(0.1)) {  // No number: the term fits no node.
      NodeTerm& term = pod->required_nodes->front();
      term.expressions.push_back({"rank", NodeRequirement::Operator::kGt, {"high"}});
      term.malformed = true;
    }
    if (Chance(0.1)) pod->required_nodes->emplace_back();  // Asks nothing, and fits no node.
    if (!Chance(0.15)) return;
    const std::string name = "node-" + std::to_string(rng_.Between(0, 12));
    for (NodeTerm& term : *pod->required_nodes)
      term.fields = {{"metadata.name", NodeRequirement::Operator::kIn, {name}}};
    if (!Chance(0.2)) return;
    for (NodeTerm& term : *pod->required_nodes)  // And another one: no node is both.
      term.fields.push_back({"metadata.name", NodeRequirement::Operator::kIn, {"node-13"}});
  }

  PodAffinityTerm PodTerm(const PodClass& pod) {
    PodAffinityTerm term{
        {}, {}, PodSelector(), OneOf({kHostKey, kZoneKey, kZoneKey, "rack", "rack", kRegionKey})};
    if (Chance(0.06)) term.selector.reset();
    const uint32_t where = rng_.Below(8);
    if (where == 0) term.namespaces = {"team-a", "team-b"};
    if (where == 1)
      term.namespace_selector =
          LabelSelector{{{"stage", LabelRequirement::Operator::kIn, {"live"}}}};
    if (where == 2) term.namespace_selector = LabelSelector{};
    if (where == 3) {  // Either is enough.
      term.namespaces = {pod.object_namespace};
      term.namespace_selector =
          LabelSelector{{{"stage", LabelRequirement::Operator::kIn, {OneOf({"live", "test"})}}}};
    }
    if (where > 3) term.namespaces = {pod.object_namespace};
    return term;
  }

  SpreadConstraint Constraint(int number) {
    SpreadConstraint made;
    made.topology_key = number == 0 ? OneOf({kZoneKey, kHostKey}) : "rack";
    made.skew_max = rng_.Between(1, 3);
    made.when = static_cast<SpreadConstraint::When>(rng_.Below(2));
    if (!Chance(0.06)) made.selector = PodSelector();
    if (Chance(0.25) && made.when == SpreadConstraint::When::kDoNotSchedule)
      made.domains_min = rng_.Between(2, 5);
    if (Chance(0.3)) made.node_affinity = SpreadConstraint::Policy::kIgnore;
    if (Chance(0.3)) made.node_taints = SpreadConstraint::Policy::kHonor;
    return made;
  }

  void Ports(PodClass* pod) {
    pod->host_ports.push_back({OneOf({"0.0.0.0", "10.0.0.1", "10.0.0.2"}), OneOf({"TCP", "UDP"}),
                               8000 + static_cast<int64_t>(rng_.Below(2))});
  }

  Rng rng_;
  RandomVolumes volumes_;
};

}  // namespace rudderfish::testing
