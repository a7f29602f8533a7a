// SPDX-License-Identifier: Apache-2.0
#include "model/pod_compiler.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace rudderfish {
namespace {

constexpr std::string_view kHostname = "kubernetes.io/hostname";
constexpr std::string_view kZoneLabels[] = {
    "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone", "topology.kubernetes.io/region"};
constexpr int64_t kHardAffinityWeight = 1;  // InterPodAffinityArgs.hardPodAffinityWeight.

// The names that the terms' fields allow; nothing: any. As NodeAffinity's PreFilter reads them.
std::optional<std::vector<std::string>> NamedNodes(const PodClass& pod) {
  if (!pod.required_nodes || pod.required_nodes->empty()) return std::nullopt;
  std::vector<std::string> all;
  for (const NodeTerm& term : *pod.required_nodes) {
    std::optional<std::vector<std::string>> names;
    for (const NodeRequirement& field : term.fields) {
      if (field.key != "metadata.name" || field.op != NodeRequirement::Operator::kIn) continue;
      if (!names) {
        names = field.values;
      } else {
        std::erase_if(*names, [&](const std::string& name) {
          return std::find(field.values.begin(), field.values.end(), name) == field.values.end();
        });
      }
    }
    if (!names) return std::nullopt;
    all.insert(all.end(), names->begin(), names->end());
  }
  return all;
}

bool IsNamed(const std::vector<std::string>& names, const SchedulingNode& node) {
  return std::find(names.begin(), names.end(), node.name) != names.end();
}

bool FitsAffinity(const PodClass& pod, const SchedulingNode& node) {
  for (const auto& [key, value] : pod.node_selector) {
    const std::string* found = FindLabel(node.labels, key);
    if (found == nullptr || *found != value) return false;
  }
  return !pod.required_nodes || AnyMatches(*pod.required_nodes, node.name, node.labels);
}

// VolumeZone: nodes that say nothing of zones and regions are taken for right.
bool FitsZones(const BoundVolume& volume, const SchedulingNode& node) {
  const bool says =
      std::any_of(std::begin(kZoneLabels), std::end(kZoneLabels),
                  [&](std::string_view label) { return FindLabel(node.labels, label) != nullptr; });
  if (!says) return true;
  return std::all_of(volume.zones.begin(), volume.zones.end(), [&](const BoundVolume::Zone& zone) {
    const std::string* value = FindLabel(node.labels, zone.key);
    if (value == nullptr && zone.key == kZoneLabels[0])
      value = FindLabel(node.labels, kZoneLabels[2]);
    if (value == nullptr && zone.key == kZoneLabels[1])
      value = FindLabel(node.labels, kZoneLabels[3]);
    return value != nullptr &&
           std::find(zone.values.begin(), zone.values.end(), *value) != zone.values.end();
  });
}

// VolumeBinding: where a CSI driver has taken over from the volume's plugin, its labels are asked.
bool FitsVolume(const BoundVolume& volume, const SchedulingNode& node) {
  const std::vector<std::string>& migrated = node.migrated_plugins;
  const bool is_migrated = volume.migrated && std::find(migrated.begin(), migrated.end(),
                                                        volume.migrated->plugin) != migrated.end();
  const BoundVolume::Affinity& affinity =
      is_migrated ? volume.migrated->node_affinity : volume.node_affinity;
  return !affinity || AnyMatches(*affinity, "", node.labels);
}

Rejection VolumeRejection(const PodClass& pod, const SchedulingNode& node) {
  for (const BoundVolume& volume : pod.volumes) {
    if (!FitsVolume(volume, node)) return Rejection::kVolumeAffinity;
  }
  for (const BoundVolume& volume : pod.volumes) {
    if (!FitsZones(volume, node)) return Rejection::kVolumeZone;
  }
  return Rejection::kNone;
}

CompiledPod::OnNode CompileOnNode(const PodClass& pod, const SchedulingNode& node) {
  CompiledPod::OnNode made;
  made.fits_affinity = FitsAffinity(pod, node);
  for (const NodeTaint& taint : node.taints) {
    if (Tolerate(pod.tolerations, taint)) continue;
    if (taint.effect == TaintEffect::kPreferNoSchedule) {
      ++made.avoided;
    } else {
      made.is_tolerated = false;
    }
  }
  const NodeTaint cordon{"node.kubernetes.io/unschedulable", "", TaintEffect::kNoSchedule};
  if (node.unschedulable && !Tolerate(pod.tolerations, cordon)) {
    made.early = Rejection::kUnschedulable;
  } else if (!made.is_tolerated) {
    made.early = Rejection::kTaint;
  } else if (!made.fits_affinity) {
    made.early = Rejection::kNodeAffinity;
  }
  made.late = VolumeRejection(pod, node);
  for (const PreferredNodes& preferred : pod.preferred_nodes) {
    if (preferred.term.Matches(node.name, node.labels))
      made.preference += static_cast<int32_t>(preferred.weight);
  }
  return made;
}

// ImageLocality: the sizes of the pod's images that a node has, each scaled by the share of nodes
// that have it, between 23 MB and 1000 MB a container.
void ScoreImages(const NodeTable& nodes, CompiledPod* made) {
  constexpr int64_t kMb = 1024 * 1024;
  const int64_t low = 23 * kMb, high = 1000 * kMb * made->pod->containers;
  std::vector<int64_t> sums(nodes.size(), 0);
  for (const std::string& name : made->pod->images) {
    const NodeTable::Image* image = nodes.FindImage(name);
    if (image == nullptr) continue;
    const double share = static_cast<double>(image->nodes.size()) / nodes.size();
    const auto scaled = static_cast<int64_t>(static_cast<double>(image->size_bytes) * share);
    for (const NodeId node : image->nodes) sums[node] += scaled;
  }
  for (NodeId n = 0; n < nodes.size(); ++n) {
    const int64_t sum = sums[n] < low ? low : std::min(sums[n], high);
    made->on_node[n].image_score = static_cast<uint8_t>(100 * (sum - low) / (high - low));
  }
}

void CompileOnNodes(const NodeTable& nodes, CompiledPod* made) {
  const PodClass& pod = *made->pod;
  made->on_node.reserve(static_cast<size_t>(nodes.size()));
  for (NodeId n = 0; n < nodes.size(); ++n) {
    made->on_node.push_back(CompileOnNode(pod, nodes.node(n)));
  }
  if (!pod.images.empty() && pod.containers > 0) ScoreImages(nodes, made);
  const std::optional<std::vector<std::string>> names = NamedNodes(pod);
  if (!names) return;
  made->names_no_node = names->empty();
  for (NodeId n = 0; n < nodes.size(); ++n) {
    if (!IsNamed(*names, nodes.node(n))) made->on_node[n].early = Rejection::kNotNamed;
  }
}

void CompileSpread(NodeTable* nodes, PodCounts* counts, CompiledPod* made) {
  const PodClass& pod = *made->pod;
  const auto add = [&](const SpreadConstraint& constraint) {
    CompiledPod::Spread spread;
    spread.key_row = nodes->KeyRow(constraint.topology_key);
    spread.skew_max = constraint.skew_max;
    spread.domains_min = constraint.domains_min;
    spread.by_host = constraint.topology_key == kHostname;
    spread.needs_affinity = constraint.node_affinity == SpreadConstraint::Policy::kHonor;
    spread.needs_tolerance = constraint.node_taints == SpreadConstraint::Policy::kHonor;
    spread.selects_self = constraint.selector && constraint.selector->Matches(pod.labels);
    // A selector that would select every pod is not counted at all.
    if (constraint.selector && !constraint.selector->requirements.empty()) {
      const PodAffinityTerm term{{pod.object_namespace}, {}, constraint.selector, ""};
      spread.matcher = counts->Matcher({&term, 1}, PodCounts::Counts::kServingPods);
    }
    (constraint.when == SpreadConstraint::When::kDoNotSchedule ? made->must_spread
                                                               : made->may_spread)
        .push_back(spread);
  };
  for (const SpreadConstraint& constraint : pod.spread) add(constraint);
  made->spread_needs_all_keys = !pod.spread.empty();
  if (!pod.spread.empty() || !pod.default_spread || pod.default_spread->requirements.empty())
    return;
  // The defaults of the system.
  add({std::string(kHostname), 3, SpreadConstraint::When::kScheduleAnyway, pod.default_spread});
  add({"topology.kubernetes.io/zone", 5, SpreadConstraint::When::kScheduleAnyway,
       pod.default_spread});
}

// Terms of one topology are asked for together: what a question costs does not grow with them.
using TermsByKey = std::map<int, std::vector<PodCounts::Weighted>>;

void AddTerm(const PodAffinityTerm& term, int64_t weight, NodeTable* nodes, TermsByKey* all) {
  (*all)[nodes->KeyRow(term.topology_key)].push_back({term, weight});
}

// What the pod looks for.
void CompileAffinity(NodeTable* nodes, PodCounts* counts, CompiledPod* made) {
  const PodClass& pod = *made->pod;
  if (!pod.required_pods.empty()) {
    made->attracted_by = counts->Matcher(pod.required_pods, PodCounts::Counts::kAllPods);
    made->attracts_itself = counts->Selects(made->attracted_by, pod);
  }
  for (const PodAffinityTerm& term : pod.required_pods) {
    const int key = nodes->KeyRow(term.topology_key);
    std::vector<int>& keys = made->attracted_keys;
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  }
  TermsByKey forbidden, preferred;
  for (const PodAffinityTerm& term : pod.forbidden_pods) AddTerm(term, 1, nodes, &forbidden);
  for (const auto& [term, weight] : pod.preferred_pods) AddTerm(term, weight, nodes, &preferred);
  for (const auto& [key, terms] : forbidden)
    made->repelled_by.push_back({counts->SumMatcher(terms), key});
  for (const auto& [key, terms] : preferred)
    made->preferred.push_back({counts->SumMatcher(terms), key});
}

// What it is to others, once it is placed.
void CompileBurdens(PodClassId id, NodeTable* nodes, PodCounts* counts, const PodClass& pod) {
  TermsByKey forbids, scores;
  for (const PodAffinityTerm& term : pod.forbidden_pods) AddTerm(term, 1, nodes, &forbids);
  for (const PodAffinityTerm& term : pod.required_pods)
    AddTerm(term, kHardAffinityWeight, nodes, &scores);
  for (const auto& [term, weight] : pod.preferred_pods) AddTerm(term, weight, nodes, &scores);
  for (auto& [key, terms] : forbids)
    counts->AddBurden(id, std::move(terms), key, PodCounts::Effect::kForbids);
  for (auto& [key, terms] : scores)
    counts->AddBurden(id, std::move(terms), key, PodCounts::Effect::kScores);
}

}  // namespace

void CompilePlaced(PodClassId id, NodeTable* nodes, PodCounts* counts, CompiledPod* made) {
  const PodAmounts& amounts = made->pod->amounts;
  made->holding = {amounts.held, amounts.held_assumed, amounts.ephemeral_bytes, {}};
  for (const auto& [name, amount] : amounts.scalars) {
    made->holding.scalars.emplace_back(nodes->HeldRow(name), amount);
  }
  CompileBurdens(id, nodes, counts, *made->pod);
}

void CompileForQuestions(NodeTable* nodes, PodCounts* counts, CompiledPod* made) {
  CompileOnNodes(*nodes, made);
  const ScalarAmounts& scalars = made->pod->amounts.scalars;
  made->asks.clear();
  for (size_t i = 0; i < std::min(scalars.size(), kScalarsMax); ++i)
    made->asks.emplace_back(nodes->ResourceRow(scalars[i].first), scalars[i].second);
  if (std::exchange(made->is_asked_about, true)) return;
  CompileSpread(nodes, counts, made);
  CompileAffinity(nodes, counts, made);
}

void RecompileOnNode(const NodeTable& nodes, NodeId node, std::span<const std::string> images,
                     CompiledPod* made) {
  const PodClass& pod = *made->pod;
  CompiledPod::OnNode& on_node = made->on_node[node];
  const uint8_t image_score = on_node.image_score;
  on_node = CompileOnNode(pod, nodes.node(node));
  on_node.image_score = image_score;
  const std::optional<std::vector<std::string>> names = NamedNodes(pod);
  if (names && !IsNamed(*names, nodes.node(node))) on_node.early = Rejection::kNotNamed;
  // An image that one node more has is worth more on all.
  const bool is_concerned =
      std::any_of(pod.images.begin(), pod.images.end(), [&](const std::string& image) {
        return std::binary_search(images.begin(), images.end(), image);
      });
  if (is_concerned && pod.containers > 0) ScoreImages(nodes, made);
}

}  // namespace rudderfish
