// SPDX-License-Identifier: Apache-2.0
#include "model/pod_counts.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"

namespace rudderfish {
namespace {

// A node without bearers goes, so that many that come and go leave nothing behind.
void AddBearer(int32_t sign, NodeId node, PodCounts::Burden* burden) {
  burden->bearers += sign;
  auto& on = burden->on_nodes;
  auto at = std::lower_bound(on.begin(), on.end(), node,
                             [](const auto& one, NodeId n) { return one.first < n; });
  if (at == on.end() || at->first != node) at = on.insert(at, {node, 0});
  at->second += sign;
  if (at->second == 0) on.erase(at);
}

constexpr int kPodsOnANode = 32;  // Of different classes; more than that reallocates.

size_t HashOf(std::span<const PodCounts::Weighted> terms) {
  size_t hash = terms.size();
  const auto mix = [&](size_t more) { hash = hash * 0x9e3779b97f4a7c15u + more; };
  for (const PodCounts::Weighted& one : terms) mix(rudderfish::HashOf(one.term));
  return hash;
}

bool SelectNamespaces(std::span<const PodCounts::Weighted> terms) {
  return std::any_of(terms.begin(), terms.end(), [](const PodCounts::Weighted& one) {
    return one.term.namespace_selector.has_value();
  });
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
  std::vector<Weighted> plain;
  for (const PodAffinityTerm& term : terms) plain.push_back({term});
  return MatcherOf({std::move(plain), Joins::kAll, counts, {}});
}

PodCounts::MatcherId PodCounts::SumMatcher(std::span<const Weighted> terms) {
  return MatcherOf({{terms.begin(), terms.end()}, Joins::kSum, Counts::kAllPods, {}});
}

PodCounts::MatcherId PodCounts::MatcherOf(Selector made) {
  for (Weighted& one : made.terms) one.term.topology_key.clear();
  const size_t hash = HashOf(made.terms);
  for (auto [at, end] = matchers_by_hash_.equal_range(hash); at != end; ++at) {
    const Selector& known = matchers_[at->second];
    if (known.counts == made.counts && known.joins == made.joins && known.terms == made.terms)
      return at->second;
  }
  const auto id = static_cast<MatcherId>(matchers_.size());
  matchers_by_hash_.emplace(hash, id);
  selects_namespaces_ |= SelectNamespaces(made.terms);
  made.by_node.assign(nodes_, 0);
  matchers_.push_back(std::move(made));
  CountPlaced(&matchers_.back(), id);
  return id;
}

// Makes the matcher known to all classes, and counts their pods that are already placed.
void PodCounts::CountPlaced(Selector* selector, MatcherId id) {
  const bool all = selector->counts == Counts::kAllPods;
  std::vector<int32_t> values(classes_.size());
  for (size_t c = 0; c < classes_.size(); ++c) {
    values[c] = static_cast<int32_t>(ValueOf(*selector, *classes_[c].pod));
    if (values[c] == 0) continue;
    (all ? classes_[c].counted_all : classes_[c].counted_serving).push_back({id, values[c]});
  }
  for (NodeId node = 0; node < nodes_; ++node) {
    for (const OnNode& pods : on_node_[node]) {
      if (values[pods.pod] == 0) continue;
      Count({id, values[pods.pod]}, node, pods.serving + (all ? pods.terminating : 0));
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

int64_t PodCounts::ValueOf(const Selector& selector, const PodClass& pod) const {
  const std::vector<Weighted>& terms = selector.terms;
  const auto selects = [&](const Weighted& one) { return Selects(one.term, pod); };
  if (selector.joins == Joins::kAll) return std::all_of(terms.begin(), terms.end(), selects);
  int64_t sum = 0;
  for (const Weighted& one : terms) sum += selects(one) ? one.weight : 0;
  return sum;
}

int64_t PodCounts::ValueOf(const Burden& burden, const PodClass& pod) const {
  const auto selects = [&](const Weighted& one) { return Selects(one.term, pod); };
  if (burden.effect == Effect::kForbids)
    return std::any_of(burden.terms.begin(), burden.terms.end(), selects);
  int64_t sum = 0;
  for (const Weighted& one : burden.terms) sum += selects(one) ? one.weight : 0;
  return sum;
}

bool PodCounts::Selects(MatcherId matcher, const PodClass& pod) const {
  return ValueOf(matchers_[matcher], pod) != 0;
}

bool PodCounts::IsCounted(MatcherId matcher, PodClassId pod) const {
  const Class& known = classes_[pod];
  const std::vector<Counted>& counted =
      matchers_[matcher].counts == Counts::kAllPods ? known.counted_all : known.counted_serving;
  return std::any_of(counted.begin(), counted.end(),
                     [&](const Counted& one) { return one.matcher == matcher; });
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
    const auto value = static_cast<int32_t>(ValueOf(matchers_[m], *pod));
    if (value == 0) continue;
    (matchers_[m].counts == Counts::kAllPods ? made.counted_all : made.counted_serving)
        .push_back({m, value});
  }
  for (BurdenId b = 0; b < static_cast<BurdenId>(burdens_.size()); ++b) {
    if (const int64_t value = ValueOf(burdens_[b], *pod)) made.burdens_on.push_back({b, value});
  }
  std::sort(made.burdens_on.begin(), made.burdens_on.end(),
            [this](const BurdenOn& a, const BurdenOn& b) { return IsBefore(a, b); });
}

bool PodCounts::IsBefore(const BurdenOn& a, const BurdenOn& b) const {
  const Burden &x = burdens_[a.id], &y = burdens_[b.id];
  return std::tie(x.effect, x.key_row, a.id) < std::tie(y.effect, y.key_row, b.id);
}

void PodCounts::AddBurden(PodClassId bearer, std::vector<Weighted> terms, int key_row,
                          Effect effect) {
  const size_t hash =
      (HashOf(terms) * 1031 + static_cast<size_t>(key_row)) * 2 + static_cast<size_t>(effect);
  for (auto [at, end] = burdens_by_hash_.equal_range(hash); at != end; ++at) {
    const Burden& known = burdens_[at->second];
    if (known.key_row == key_row && known.effect == effect && known.terms == terms)
      return classes_[bearer].bears.push_back(at->second);
  }
  const auto id = static_cast<BurdenId>(burdens_.size());
  burdens_by_hash_.emplace(hash, id);
  selects_namespaces_ |= SelectNamespaces(terms);
  const Burden& made = burdens_.emplace_back(Burden{std::move(terms), key_row, effect, {}});
  for (Class& known : classes_) {
    const BurdenOn on{id, ValueOf(made, *known.pod)};
    if (on.value == 0) continue;
    const auto at =
        std::upper_bound(known.burdens_on.begin(), known.burdens_on.end(), on,
                         [this](const auto& a, const auto& b) { return IsBefore(a, b); });
    known.burdens_on.insert(at, on);
  }
  classes_[bearer].bears.push_back(id);
}

void PodCounts::Count(const Counted& counted, NodeId node, int32_t pods) {
  Selector& matcher = matchers_[counted.matcher];
  matcher.by_node[node] += pods * counted.value;
  matcher.total += pods;
}

void PodCounts::Add(PodClassId pod, NodeId node, PodLife life, int32_t sign) {
  const Class& what = classes_[pod];
  priorities_[what.priority].second += sign;
  for (const Counted& counted : what.counted_all) Count(counted, node, sign);
  if (life == PodLife::kServing) {
    for (const Counted& counted : what.counted_serving) Count(counted, node, sign);
  }
  for (const BurdenId burden : what.bears) AddBearer(sign, node, &burdens_[burden]);
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
