// SPDX-License-Identifier: Apache-2.0
#include "model/pod_counts.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"

namespace rudderfish {
namespace {

// What has come to nothing goes, so that many that come and go leave nothing behind.
void AddBearer(int32_t sign, int64_t amount, NodeId node, PodCounts::Burden* burden) {
  burden->bearers += sign;
  auto& on = burden->on_nodes;
  auto at = std::lower_bound(on.begin(), on.end(), node,
                             [](const auto& one, NodeId n) { return one.first < n; });
  if (at == on.end() || at->first != node) at = on.insert(at, {node, 0});
  at->second += sign * amount;
  if (at->second == 0) on.erase(at);
}

constexpr int kPodsOnANode = 32;  // Of different classes; more than that allocates anew.

size_t HashOf(std::span<const PodAffinityTerm> terms) {
  size_t hash = terms.size();
  const auto mix = [&](std::string_view text) {
    hash = hash * 0x9e3779b97f4a7c15u + std::hash<std::string_view>()(text);
  };
  for (const PodAffinityTerm& term : terms) {
    for (const std::string& name : term.namespaces) mix(name);
    if (!term.selector) continue;
    for (const LabelRequirement& requirement : term.selector->requirements) {
      mix(requirement.key);
      for (const std::string& value : requirement.values) mix(value);
    }
  }
  return hash;
}

}  // namespace

void PodCounts::Reset(int nodes, NamespaceLabels namespaces) {
  nodes_ = nodes;
  namespaces_ = std::move(namespaces);
  namespaces_of_classes_.clear();
  selects_namespaces_ = false;
  matchers_.clear();
  matchers_by_hash_.clear();
  burdens_.clear();
  burdens_by_hash_.clear();
  classes_.clear();
  priorities_.clear();
  on_node_.resize(nodes);
  for (std::vector<OnNode>& pods : on_node_) {
    pods.clear();
    pods.reserve(kPodsOnANode);
  }
}

bool PodCounts::PutNamespace(const std::string& name, const Labels& labels) {
  const auto [at, is_new] = namespaces_.try_emplace(name);
  if (!is_new && at->second == labels) return true;
  if (selects_namespaces_ && namespaces_of_classes_.contains(name)) return false;
  at->second = labels;
  return true;
}

PodCounts::MatcherId PodCounts::Matcher(std::span<const PodAffinityTerm> terms, Counts counts) {
  std::vector<PodAffinityTerm> plain(terms.begin(), terms.end());
  for (PodAffinityTerm& term : plain) term.topology_key.clear();
  const size_t hash = HashOf(plain);
  for (auto [at, end] = matchers_by_hash_.equal_range(hash); at != end; ++at) {
    const Selector& known = matchers_[at->second];
    if (known.counts == counts && known.terms == plain) return at->second;
  }
  const auto id = static_cast<MatcherId>(matchers_.size());
  matchers_by_hash_.emplace(hash, id);
  selects_namespaces_ |= std::any_of(plain.begin(), plain.end(), [](const PodAffinityTerm& term) {
    return term.namespace_selector.has_value();
  });
  matchers_.push_back({std::move(plain), counts, std::vector<int32_t>(nodes_, 0)});
  CountPlaced(&matchers_.back(), id);
  return id;
}

// Makes the matcher known to all classes, and counts their pods that are already placed.
void PodCounts::CountPlaced(Selector* selector, MatcherId id) {
  const bool all = selector->counts == Counts::kAllPods;
  std::vector<bool> selected(classes_.size());
  for (size_t c = 0; c < classes_.size(); ++c) {
    if (!Selects(id, *classes_[c].pod)) continue;
    selected[c] = true;
    (all ? classes_[c].counted_all : classes_[c].counted_serving).push_back(id);
  }
  for (NodeId node = 0; node < nodes_; ++node) {
    for (const OnNode& pods : on_node_[node]) {
      if (!selected[pods.pod]) continue;
      const int32_t count = pods.serving + (all ? pods.terminating : 0);
      selector->by_node[node] += count;
      selector->total += count;
    }
  }
}

bool PodCounts::Selects(const PodAffinityTerm& term, const PodClass& pod) const {
  if (!term.selector) return false;
  const bool is_named = std::find(term.namespaces.begin(), term.namespaces.end(),
                                  pod.object_namespace) != term.namespaces.end();
  if (!is_named) {
    if (!term.namespace_selector) return false;
    static const Labels kNoLabels;
    const auto at = namespaces_.find(pod.object_namespace);
    if (!term.namespace_selector->Matches(at == namespaces_.end() ? kNoLabels : at->second))
      return false;
  }
  return term.selector->Matches(pod.labels);
}

bool PodCounts::Selects(MatcherId matcher, const PodClass& pod) const {
  const std::vector<PodAffinityTerm>& terms = matchers_[matcher].terms;
  return std::all_of(terms.begin(), terms.end(),
                     [&](const PodAffinityTerm& term) { return Selects(term, pod); });
}

bool PodCounts::IsCounted(MatcherId matcher, PodClassId pod) const {
  const Class& known = classes_[pod];
  const std::vector<MatcherId>& counted =
      matchers_[matcher].counts == Counts::kAllPods ? known.counted_all : known.counted_serving;
  return std::find(counted.begin(), counted.end(), matcher) != counted.end();
}

bool PodCounts::HasPodsBelow(int64_t priority) const {
  return std::any_of(priorities_.begin(), priorities_.end(),
                     [&](const auto& one) { return one.first < priority && one.second > 0; });
}

void PodCounts::AddClass(PodClassId id, const PodClass* pod) {
  CHECK_EQ(static_cast<size_t>(id), classes_.size());
  namespaces_of_classes_.insert(pod->object_namespace);
  const auto same = std::find_if(priorities_.begin(), priorities_.end(),
                                 [&](const auto& one) { return one.first == pod->priority; });
  const auto priority = static_cast<size_t>(same - priorities_.begin());
  if (same == priorities_.end()) priorities_.emplace_back(pod->priority, 0);
  Class& made = classes_.emplace_back(Class{pod, {}, {}, {}, {}, priority});
  for (MatcherId m = 0; m < static_cast<MatcherId>(matchers_.size()); ++m) {
    if (!Selects(m, *pod)) continue;
    (matchers_[m].counts == Counts::kAllPods ? made.counted_all : made.counted_serving)
        .push_back(m);
  }
  for (BurdenId b = 0; b < static_cast<BurdenId>(burdens_.size()); ++b) {
    if (Selects(burdens_[b].term, *pod)) made.burdens_on.push_back(b);
  }
  std::sort(made.burdens_on.begin(), made.burdens_on.end(),
            [this](BurdenId a, BurdenId b) { return IsBefore(a, b); });
}

bool PodCounts::IsBefore(BurdenId a, BurdenId b) const {
  const Burden &x = burdens_[a], &y = burdens_[b];
  return std::tie(x.effect, x.key_row, a) < std::tie(y.effect, y.key_row, b);
}

void PodCounts::AddBurden(PodClassId bearer, const PodAffinityTerm& term, int key_row,
                          Effect effect, int64_t amount) {
  classes_[bearer].bears.emplace_back(BurdenOf(term, key_row, effect), amount);
}

PodCounts::BurdenId PodCounts::BurdenOf(const PodAffinityTerm& term, int key_row, Effect effect) {
  const size_t hash =
      (HashOf({&term, 1}) * 1031 + static_cast<size_t>(key_row)) * 2 + static_cast<size_t>(effect);
  for (auto [at, end] = burdens_by_hash_.equal_range(hash); at != end; ++at) {
    const Burden& known = burdens_[at->second];
    if (known.key_row == key_row && known.effect == effect && known.term == term) return at->second;
  }
  const auto id = static_cast<BurdenId>(burdens_.size());
  burdens_by_hash_.emplace(hash, id);
  burdens_.push_back({term, key_row, effect, {}});
  selects_namespaces_ |= term.namespace_selector.has_value();
  for (Class& known : classes_) {
    if (!Selects(term, *known.pod)) continue;
    const auto at = std::upper_bound(known.burdens_on.begin(), known.burdens_on.end(), id,
                                     [this](BurdenId a, BurdenId b) { return IsBefore(a, b); });
    known.burdens_on.insert(at, id);
  }
  return id;
}

void PodCounts::Add(PodClassId pod, NodeId node, PodLife life, int32_t sign) {
  const Class& what = classes_[pod];
  priorities_[what.priority].second += sign;
  for (const MatcherId m : what.counted_all) {
    matchers_[m].by_node[node] += sign;
    matchers_[m].total += sign;
  }
  if (life == PodLife::kServing) {
    for (const MatcherId m : what.counted_serving) {
      matchers_[m].by_node[node] += sign;
      matchers_[m].total += sign;
    }
  }
  for (const auto& [burden, amount] : what.bears) AddBearer(sign, amount, node, &burdens_[burden]);
  std::vector<OnNode>& pods = on_node_[node];
  auto at = std::find_if(pods.begin(), pods.end(), [&](const OnNode& p) { return p.pod == pod; });
  if (at == pods.end()) at = pods.insert(pods.end(), {pod, 0, 0});
  (life == PodLife::kServing ? at->serving : at->terminating) += sign;
  CHECK_GE(at->serving, 0);
  CHECK_GE(at->terminating, 0);
  if (at->serving + at->terminating > 0) return;
  *at = pods.back();
  pods.pop_back();
}

}  // namespace rudderfish
