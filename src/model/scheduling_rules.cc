// SPDX-License-Identifier: Apache-2.0
#include "model/scheduling_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/check.h"
#include "model/inter_pod_affinity.h"
#include "model/pod_compiler.h"
#include "model/topology_spread.h"

namespace rudderfish {
namespace {

constexpr uint32_t kShortOfPods = 1;
constexpr int kFirstScalarBit = 4;

std::string ClaimKey(const PodClass& pod, const std::string& claim) {
  return fmt::format("{}/{}", pod.object_namespace, claim);
}

// Where that much of a resource is not free.
void AskFor(std::span<const int64_t> free, int64_t amount, uint32_t bit,
            std::vector<uint32_t>* short_of) {
  if (amount <= 0) return;
  for (size_t n = 0; n < free.size(); ++n) (*short_of)[n] |= amount > free[n] ? bit : 0;
}

}  // namespace

void SchedulingRules::Reset(std::vector<SchedulingNode> nodes,
                            PodCounts::NamespaceLabels namespaces) {
  volume_limits_.Reset(nodes);
  nodes_.Reset(std::move(nodes));
  counts_.Reset(nodes_.size(), std::move(namespaces));
  classes_.clear();
  questions_ = 0;
  classes_by_hash_.clear();
  classes_by_address_.clear();
  ports_.Reset();
  claims_.clear();
  claim_users_.clear();
  unread_by_node_.assign(nodes_.size(), 0);
  unread_ = 0;
}

void SchedulingRules::ReplaceNode(NodeId id, SchedulingNode node) {
  volume_limits_.ReplaceNode(id, node);
  const std::vector<std::string> images = nodes_.Replace(id, std::move(node));
  for (CompiledPod& pod : classes_) {
    if (!pod.on_node.empty()) RecompileOnNode(nodes_, id, images, &pod);
  }
}

PodClassId SchedulingRules::Register(const std::shared_ptr<const PodClass>& pod) {
  const PodClassId id = RegisterPlaced(pod);
  CompiledPod& made = classes_[id];
  if (!made.on_node.empty() || nodes_.size() == 0) return id;
  CompileForQuestions(&nodes_, &counts_, &made);
  ++questions_;
  return id;
}

void SchedulingRules::ForgetQuestions() {
  for (CompiledPod& pod : classes_) std::vector<CompiledPod::OnNode>().swap(pod.on_node);
  questions_ = 0;
}

PodClassId SchedulingRules::RegisterPlaced(const std::shared_ptr<const PodClass>& pod) {
  if (const auto at = classes_by_address_.find(pod.get()); at != classes_by_address_.end())
    return at->second;
  const size_t hash = HashOf(*pod);
  for (auto [at, end] = classes_by_hash_.equal_range(hash); at != end; ++at) {
    if (*classes_[at->second].pod == *pod) return at->second;
  }
  const auto id = static_cast<PodClassId>(classes_.size());
  CompiledPod& made = classes_.emplace_back();
  made.pod = pod;
  counts_.AddClass(id, made.pod.get());
  CompilePlaced(id, &nodes_, &counts_, &made);
  made.ports = ports_.Compile(pod->host_ports);
  CompileClaims(&made);
  made.attached = volume_limits_.RowsOf(pod->attached);
  classes_by_hash_.emplace(hash, id);
  classes_by_address_.emplace(pod.get(), id);
  return id;
}

void SchedulingRules::CompileClaims(CompiledPod* made) {
  const auto row_of = [&](const std::string& claim) {
    const auto [at, is_new] =
        claims_.emplace(ClaimKey(*made->pod, claim), static_cast<int>(claim_users_.size()));
    if (is_new) claim_users_.push_back(0);
    return at->second;
  };
  for (const std::string& claim : made->pod->claims) made->claims.push_back(row_of(claim));
  for (const std::string& claim : made->pod->exclusive_claims)
    made->exclusive_claims.push_back(row_of(claim));
}

void SchedulingRules::Assume(PodClassId pod, NodeId node, PodLife life) {
  nodes_.Take(classes_[pod].holding, node);
  counts_.Place(pod, node, life);
  Change(pod, node, 1);
}

void SchedulingRules::Forget(PodClassId pod, NodeId node, PodLife life) {
  nodes_.GiveBack(classes_[pod].holding, node);
  counts_.Remove(pod, node, life);
  Change(pod, node, -1);
}

void SchedulingRules::Change(PodClassId pod, NodeId node, int sign) {
  ports_.Change(classes_[pod].ports, node, sign);
  for (const int claim : classes_[pod].claims) claim_users_[claim] += sign;
  volume_limits_.Change(classes_[pod].attached, node, sign);
  if (classes_[pod].pod->attaches_unknown) volume_limits_.ChangeUnknown(node, sign);
  if (!classes_[pod].pod->holds_unknown) return;
  unread_by_node_[node] += sign;
  unread_ += sign;
}

void SchedulingRules::FilterResources(const CompiledPod& pod, Feasibility* out) const {
  const PodAmounts& amounts = pod.pod->amounts;
  AskFor(nodes_.pods_free(), 1, kShortOfPods, &out->short_of);
  AskFor(nodes_.free(NodeTable::kCpu), amounts.requests.cpu_millis, 2, &out->short_of);
  AskFor(nodes_.free(NodeTable::kMemory), amounts.requests.memory_bytes, 4, &out->short_of);
  AskFor(nodes_.free(NodeTable::kEphemeral), amounts.ephemeral_bytes, 8, &out->short_of);
  for (size_t i = 0; i < pod.asks.size(); ++i) {
    AskFor(nodes_.free(pod.asks[i].first), pod.asks[i].second, uint32_t{1} << (kFirstScalarBit + i),
           &out->short_of);
  }
  for (NodeId n = 0; n < nodes_.size(); ++n) {
    if (out->short_of[n] != 0 && out->IsFeasible(n)) out->rejection[n] = Rejection::kResources;
  }
}

void SchedulingRules::FilterUnread(Feasibility* out) const {
  if (unread_ == 0) return;
  for (NodeId n = 0; n < nodes_.size(); ++n) {
    if (out->IsFeasible(n) && unread_by_node_[n] > 0) out->rejection[n] = Rejection::kUnreadPod;
  }
}

void SchedulingRules::LimitLatency(PodClassId id, Feasibility* out) const {
  const LatencyLimits& limits = classes_[id].pod->latency_limits;
  if (!limits.has_hard()) return;
  for (NodeId n = 0; n < nodes_.size(); ++n) {
    const std::optional<double>& user_ms = nodes_.node(n).user_ms;
    if (!out->IsFeasible(n) || (user_ms && *user_ms <= limits.hard_ms)) continue;
    out->rejection[n] = Rejection::kTooFar;
    --out->feasible;
  }
}

void SchedulingRules::Filter(PodClassId id, Feasibility* out) const {
  const CompiledPod& pod = classes_[id];
  const auto count = static_cast<size_t>(nodes_.size());
  out->short_of.assign(count, 0);
  out->feasible = 0;
  out->rejection.assign(count, Rejection::kPod);
  CHECK_EQ(pod.on_node.size(), count);  // Register has come first.
  if (!RejectionOfPod(id).empty()) return;
  out->by_domain.reserve(nodes_.domains_max());
  for (size_t n = 0; n < count; ++n) out->rejection[n] = pod.on_node[n].early;
  ports_.ForConflicts(pod.ports, [&](NodeId n) {
    if (out->IsFeasible(n)) out->rejection[n] = Rejection::kHostPort;
  });
  FilterResources(pod, out);
  const bool claim_is_used = std::any_of(pod.exclusive_claims.begin(), pod.exclusive_claims.end(),
                                         [&](int claim) { return claim_users_[claim] > 0; });
  for (size_t n = 0; n < count && claim_is_used; ++n) {
    if (out->rejection[n] == Rejection::kNone) out->rejection[n] = Rejection::kClaimInUse;
  }
  volume_limits_.Filter(pod.attached, out);
  for (size_t n = 0; n < count; ++n) {
    if (out->rejection[n] == Rejection::kNone) out->rejection[n] = pod.on_node[n].late;
  }
  FilterSpread(nodes_, counts_, pod, out);
  FilterAffinity(nodes_, counts_, id, pod, out);
  FilterUnread(out);
  volume_limits_.FilterUnknown(pod.attached, out);
  out->feasible =
      static_cast<int>(std::count(out->rejection.begin(), out->rejection.end(), Rejection::kNone));
}

std::string_view SchedulingRules::RejectionOfPod(PodClassId pod) const {
  if (classes_[pod].names_no_node) return "pod affinity terms conflict";
  return classes_[pod].pod->rejection;
}

std::vector<std::pair<std::string, int>> SchedulingRules::CountReasons(
    PodClassId id, const Feasibility& feasibility) const {
  constexpr std::string_view kResources[] = {"cpu", "memory", "ephemeral-storage"};
  std::map<std::string, int> counts;
  const ScalarAmounts& scalars = classes_[id].pod->amounts.scalars;
  if (!RejectionOfPod(id).empty()) return {};
  for (NodeId n = 0; n < nodes_.size(); ++n) {
    if (feasibility.rejection[n] != Rejection::kResources) {
      if (!feasibility.IsFeasible(n)) ++counts[std::string(WordsOf(feasibility.rejection[n]))];
      continue;
    }
    const uint32_t lacks = feasibility.short_of[n];
    if (lacks & kShortOfPods) ++counts["Too many pods"];
    for (int i = 0; i < 3; ++i) {
      if (lacks & (2U << i)) ++counts[fmt::format("Insufficient {}", kResources[i])];
    }
    for (size_t i = 0; i < std::min(scalars.size(), kScalarsMax); ++i) {
      if (lacks & (uint32_t{1} << (kFirstScalarBit + i)))
        ++counts[fmt::format("Insufficient {}", scalars[i].first)];
    }
  }
  return {counts.begin(), counts.end()};
}

std::string SchedulingRules::Message(PodClassId id, const Feasibility& feasibility) const {
  if (nodes_.size() == 0) return "no nodes available to schedule pods";
  const std::string text = fmt::format("0/{} nodes are available:", nodes_.size());
  if (const std::string_view whole = RejectionOfPod(id); !whole.empty())
    return fmt::format("{} {}.", text, whole);
  std::vector<std::string> reasons;
  for (const auto& [words, count] : CountReasons(id, feasibility))
    reasons.push_back(fmt::format("{} {}", count, words));
  std::sort(reasons.begin(), reasons.end());
  return reasons.empty() ? text : fmt::format("{} {}.", text, fmt::join(reasons, ", "));
}

std::string_view WordsOf(Rejection rejection) {
  constexpr std::array<std::string_view, kRejectionCount> kWords = {
      "",
      "",
      "node(s) didn't satisfy plugin(s) [NodeAffinity]",
      "node(s) were unschedulable",
      "node(s) had untolerated taint(s)",
      "node(s) didn't match Pod's node affinity/selector",
      "node(s) didn't have free ports for the requested pod ports",
      "",
      "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already "
      "in-use by another pod",
      "node(s) exceed max volume count",
      "node(s) didn't match PersistentVolume's node affinity",
      "node(s) had no available volume zone",
      "node(s) didn't match pod topology spread constraints (missing required label)",
      "node(s) didn't match pod topology spread constraints",
      "node(s) didn't match pod affinity rules",
      "node(s) didn't match pod anti-affinity rules",
      "node(s) didn't satisfy existing pods anti-affinity rules",
      "node(s) run a pod whose spec could not be parsed completely",
      "node(s) held a pod whose volumes cannot be counted",
      "node(s) were not known to be within the pod's hard limit of latency"};
  return kWords[static_cast<size_t>(rejection)];
}

}  // namespace rudderfish
