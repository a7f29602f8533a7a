// SPDX-License-Identifier: Apache-2.0
#include "control/scheduling_tables.h"

#include <algorithm>
#include <utility>

#include "model/overcommitment.h"

namespace rudderfish {
namespace {

constexpr int kClassesSpare = 512;
constexpr int kQuestionsMax = 1024;  // Of 5,000 nodes they take 60 MB.

}  // namespace

bool SchedulingTables::PutNode(const SchedulingNode& node) {
  const auto [at, is_new] = nodes_.try_emplace(node.name, node);
  if (!is_new && at->second == node) return false;
  ++changes_;
  if (is_new) {
    is_stale_ = true;
    return true;
  }
  at->second = node;
  if (!is_stale_) rules_.ReplaceNode(rules_.nodes().Find(node.name), node);
  return true;
}

void SchedulingTables::RemoveNode(const std::string& name) {
  if (nodes_.erase(name) == 0) return;
  is_stale_ = true;
  ++changes_;
}

SchedulingTables::Attachments SchedulingTables::PutAttachments(
    const std::string& node, const std::vector<CsiVolume>& volumes) {
  std::vector<CsiVolume>& known = attachments_[node];
  if (known == volumes) {
    if (known.empty()) attachments_.erase(node);
    return Attachments::kAsTheyWere;
  }
  ++changes_;
  const bool is_more = std::includes(volumes.begin(), volumes.end(), known.begin(), known.end());
  known = volumes;
  if (!is_stale_) {
    const NodeId at = rules_.nodes().Find(node);
    if (at != kNone) rules_.SetAttached(at, volumes);
  }
  if (volumes.empty()) attachments_.erase(node);
  return is_more ? Attachments::kMore : Attachments::kFewer;
}

bool SchedulingTables::PutNamespace(const std::string& name, const Labels& labels) {
  const auto [at, is_new] = namespaces_.try_emplace(name, labels);
  if (!is_new && at->second == labels) return false;
  at->second = labels;
  if (!is_stale_) is_stale_ = !rules_.PutNamespace(name, labels);
  return true;
}

void SchedulingTables::RemoveNamespace(const std::string& name) {
  // Its pods are gone before it, so that nothing asks for its labels.
  namespaces_.erase(name);
}

bool SchedulingTables::Place(const std::string& key, const std::shared_ptr<const PodClass>& shape,
                             const std::string& node, PodLife life) {
  Placed& pod = pods_[key];
  if (pod.shape == shape && pod.node == node && pod.life == life) return false;
  ++changes_;
  TakeOut(&pod);
  pod.shape = shape;
  pod.node = node;
  pod.life = life;
  if (!is_stale_) Enter(&pod);
  return true;
}

void SchedulingTables::Remove(const std::string& key) {
  const auto at = pods_.find(key);
  if (at == pods_.end()) return;
  ++changes_;
  TakeOut(&at->second);
  pods_.erase(at);
}

std::optional<SchedulingTables::Taken> SchedulingTables::Take(const std::string& key) {
  const auto at = pods_.find(key);
  if (at == pods_.end()) return std::nullopt;
  Taken taken = at->second;
  Remove(key);
  return taken;
}

std::string_view SchedulingTables::NodeOf(const std::string& key) const {
  const auto at = pods_.find(key);
  return at == pods_.end() ? std::string_view() : at->second.node;
}

std::shared_ptr<const PodClass> SchedulingTables::ShapeOf(const std::string& key) const {
  const auto at = pods_.find(key);
  return at == pods_.end() ? nullptr : at->second.shape;
}

void SchedulingTables::Enter(Placed* pod) {
  pod->at = rules_.nodes().Find(pod->node);
  if (pod->at == kNone) return;
  pod->pod_class = rules_.RegisterPlaced(pod->shape);
  rules_.Assume(pod->pod_class, pod->at, pod->life);
}

void SchedulingTables::TakeOut(Placed* pod) {
  const PodClassId pod_class = std::exchange(pod->pod_class, kNone);
  if (!is_stale_ && pod_class != kNone) rules_.Forget(pod_class, pod->at, pod->life);
}

SchedulingRules& SchedulingTables::Rules() {
  if (is_stale_ || rules_.class_count() > classes_max_) Rebuild();
  if (rules_.question_count() > kQuestionsMax) rules_.ForgetQuestions();
  return rules_;
}

void SchedulingTables::Rebuild() {
  std::vector<SchedulingNode> nodes;
  nodes.reserve(nodes_.size());
  for (const auto& [name, node] : nodes_) nodes.push_back(node);
  rules_.Reset(std::move(nodes), namespaces_);
  is_stale_ = false;
  for (const auto& [node, volumes] : attachments_) {
    const NodeId at = rules_.nodes().Find(node);
    if (at != kNone) rules_.SetAttached(at, volumes);
  }
  for (auto& [key, pod] : pods_) {
    pod.pod_class = kNone;
    Enter(&pod);
  }
  classes_max_ = 2 * rules_.class_count() + kClassesSpare;
  ++rebuilds_;
}

std::vector<std::string> SchedulingTables::OvercommittedOn(const std::string& node) {
  const SchedulingRules& rules = Rules();
  const NodeId at = rules.nodes().Find(node);
  return at == kNone ? std::vector<std::string>() : rudderfish::OvercommittedOn(rules, at);
}

}  // namespace rudderfish
