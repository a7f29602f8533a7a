// SPDX-License-Identifier: Apache-2.0
#include "kube/kube_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/timestamp.h"
#include "base/units.h"
#include "kube/scheduling.h"

namespace rudderfish::kube {
namespace {

Resources Most(const Resources& a, const Resources& b) {
  return {std::max(a.cpu_millis, b.cpu_millis), std::max(a.memory_bytes, b.memory_bytes)};
}

bool SameCatalog(const Catalog& a, const Catalog& b) {
  return std::equal(a.workloads.begin(), a.workloads.end(), b.workloads.begin(), b.workloads.end(),
                    [](const Workload& x, const Workload& y) {
                      return x.requests == y.requests && x.replicas_max == y.replicas_max &&
                             x.movable == y.movable;
                    });
}

bool SameColumns(const State& a, const State& b) {
  return a.catalog == b.catalog && a.nodes.kind == b.nodes.kind &&
         a.nodes.allocatable == b.nodes.allocatable && a.nodes.free == b.nodes.free &&
         a.pods.workload == b.pods.workload && a.pods.node == b.pods.node &&
         a.network.latency_ms == b.network.latency_ms &&
         (a.names == b.names || *a.names == *b.names);
}

std::string ObjectText(const WorkloadObject& object) {
  return fmt::format("{} {}/{}", object.kind, object.object_namespace, object.name);
}

}  // namespace

KubeCluster::KubeCluster(const Mirror* mirror, std::shared_ptr<const Application> application,
                         KubeClusterOptions options)
    : mirror_(mirror),
      application_(std::move(application)),
      options_(options),
      pods_(mirror, application_),
      network_(application_->network),
      requests_(application_->objects.size()),
      obstacles_(application_->objects.size()),
      tolerations_(application_->objects.size()) {}

void KubeCluster::SetNetwork(Network network) {
  CHECK_EQ(network.layers, application_->catalog->layer_count());
  network_ = std::move(network);
  pending_.any = true;
}

Result<void> KubeCluster::CheckFresh() const {
  for (const Resource resource : {Resource::kNodes, Resource::kPods, Resource::kReplicaSets}) {
    const std::string_view name = NameOf(resource).resource;
    if (!mirror_->IsSynced(resource)) {
      return Fail(ErrorCode::kUnavailable, "the {} of the cluster have not been listed yet", name);
    }
    const Duration age = mirror_->clock().Now() - mirror_->FreshAt(resource);
    if (age > options_.staleness_limit) {
      return Fail(ErrorCode::kUnavailable,
                  "what is known of the {} of the cluster is {} old, more than the limit of {}",
                  name, FormatDuration(age), FormatDuration(options_.staleness_limit));
    }
  }
  return {};
}

Result<void> KubeCluster::Refresh(State* state) {
  TRY(CheckFresh());
  const ApplicationPods::Differences now = pods_.Update();
  pending_.any |= now.any;
  pending_.nodes |= now.nodes;
  pending_.members |= now.members;
  pending_.all_workloads |= now.all_workloads;
  pending_.workloads.insert(pending_.workloads.end(), now.workloads.begin(), now.workloads.end());
  pending_.any |= !held_for_a_time_.empty();
  pending_.workloads.insert(pending_.workloads.end(), held_for_a_time_.begin(),
                            held_for_a_time_.end());
  if (pending_.members) pod_members_.clear();  // They may be gone.
  if (pending_.any) {
    TRY(Build(&next_));
    pending_ = {};
    if (state_.catalog == nullptr || !SameColumns(next_, state_)) {
      next_.version = state_.version + 1;
      std::swap(state_, next_);
    }
  }
  state_.at = Now();
  *state = state_;
  return {};
}

Result<void> KubeCluster::Build(State* state) {
  if (pending_.nodes) {
    ListNodes();
    pending_.workloads.insert(pending_.workloads.end(), choosy_.begin(), choosy_.end());
  }
  for (auto& [unused, use] : pods_.nodes()) use.row = kNone;
  for (size_t row = 0; row < rows_.size(); ++row) {
    if (rows_[row].node == nullptr) continue;
    const auto use = pods_.nodes().find(rows_[row].name);
    if (use != pods_.nodes().end()) use->second.row = static_cast<NodeId>(row);
  }
  LookAtWorkloads();
  std::shared_ptr<const Catalog> catalog = MakeCatalog();
  const bool same = state_.catalog != nullptr && SameCatalog(*catalog, *state_.catalog);
  state->catalog = same ? state_.catalog : std::move(catalog);
  state->calls = application_->calls;
  state->network = network_;
  TRY(CheckPods());
  BuildPods(state);
  BuildRoom(state);
  return {};
}

// Nodes that a pod may be moved to, as far as the application goes.
std::vector<const Node*> KubeCluster::MoveTargets() const {
  const Catalog& catalog = *application_->catalog;
  std::vector<const Node*> nodes;
  for (const Row& row : rows_) {
    if (row.node != nullptr && catalog.layers[catalog.kinds[row.kind].layer].accepts_moves)
      nodes.push_back(row.node);
  }
  return nodes;
}

void KubeCluster::LookAtWorkloads() {
  if (pending_.all_workloads) {
    for (size_t w = 0; w < requests_.size(); ++w) LookAt(static_cast<WorkloadId>(w));
    return;
  }
  const std::set<WorkloadId> once(pending_.workloads.begin(), pending_.workloads.end());
  for (const WorkloadId workload : once) LookAt(workload);
}

// The cluster's nodes that are of a kind, and one for each layer outside, all by name.
void KubeCluster::ListNodes() {
  rows_.clear();
  for (const auto& [key, node] : mirror_->nodes.objects()) {
    const auto& selectors = application_->kind_nodes;
    const Labels& labels = node.labels;
    const auto kind =
        std::find_if(selectors.begin(), selectors.end(),
                     [&labels](const LabelSelector& selector) { return selector.Matches(labels); });
    if (kind == selectors.end()) continue;
    rows_.push_back({key.name, &node, static_cast<KindId>(kind - selectors.begin())});
  }
  const Catalog& catalog = *application_->catalog;
  for (LayerId layer = 0; layer < catalog.layer_count(); ++layer) {
    const auto& external = application_->external_layers;
    if (std::find(external.begin(), external.end(), layer) == external.end()) continue;
    const auto kind = std::find_if(catalog.kinds.begin(), catalog.kinds.end(),
                                   [&](const NodeKind& k) { return k.layer == layer; });
    CHECK(kind != catalog.kinds.end());
    rows_.push_back({fmt::format("external-{}", catalog.layers[layer].name), nullptr,
                     static_cast<KindId>(kind - catalog.kinds.begin())});
  }
  std::stable_sort(rows_.begin(), rows_.end(),
                   [](const Row& a, const Row& b) { return a.name < b.name; });
}

// What the pods of a workload are, so that it need not be asked again until they differ.
void KubeCluster::LookAt(WorkloadId workload) {
  requests_[workload] = {};
  obstacles_[workload].clear();
  tolerations_[workload].clear();
  choosy_.erase(workload);
  const auto add = [](auto* all, const auto& one) {
    if (std::find(all->begin(), all->end(), one) == all->end()) all->push_back(one);
  };
  const int64_t now = std::chrono::floor<std::chrono::seconds>(Today()).time_since_epoch().count();
  const PodShape* last = nullptr;
  std::set<const PodShape*> judged;  // For each node, which takes its time.
  bool may_become_movable = false;
  for (const auto& [key, member] : pods_.members(workload)) {
    // Nearly always: pods of one template.
    if (member.shape.get() == last && !may_become_movable) continue;
    last = member.shape.get();
    requests_[workload] = Most(requests_[workload], member.shape->requests);
    add(&tolerations_[workload], member.shape->tolerations);
    const Pod* pod = mirror_->pods.Find(key);
    may_become_movable |= MayBecomeMovable(*mirror_, *pod);
    for (const std::string& reason : WhyNotMovable(*mirror_, *pod, now)) {
      add(&obstacles_[workload], reason);
    }
    if (member.shape->nodes.empty() || !judged.insert(last).second) continue;
    choosy_.insert(workload);
    if (std::string reason = WhyNotOnAll(*member.shape, MoveTargets()); !reason.empty())
      add(&obstacles_[workload], reason);
  }
  if (may_become_movable) {
    held_for_a_time_.insert(workload);
  } else {
    held_for_a_time_.erase(workload);
  }
}

std::shared_ptr<const Catalog> KubeCluster::MakeCatalog() const {
  Catalog catalog = *application_->catalog;
  for (WorkloadId w = 0; w < catalog.workload_count(); ++w) {
    if (application_->objects[w].is_external()) continue;
    Workload& workload = catalog.workloads[w];
    workload.replicas_max = static_cast<int>(pods_.members(w).size());
    workload.requests = requests_[w];
    workload.movable = workload.movable && obstacles_[w].empty();
  }
  return std::make_shared<const Catalog>(std::move(catalog));
}

Result<void> KubeCluster::CheckPods() const {
  for (size_t w = 0; w < application_->objects.size(); ++w) {
    const WorkloadObject& object = application_->objects[w];
    if (object.is_external()) continue;
    const auto& members = pods_.members(static_cast<WorkloadId>(w));
    if (members.empty()) {
      return Fail(ErrorCode::kFailedPrecondition,
                  "{} of the application {} has no pod on a node; no decision without it",
                  ObjectText(object), application_->name);
    }
    for (const auto& [key, member] : members) {
      if (member.node->second.row != kNone) continue;
      return Fail(ErrorCode::kFailedPrecondition,
                  "the pod {} of the application {} is on the node {}, which is of none of its "
                  "node types",
                  KeyText(key), application_->name, member.node->first);
    }
  }
  return {};
}

void KubeCluster::BuildPods(State* state) {
  const Catalog& catalog = *application_->catalog;
  state->pods.workload.clear();
  state->pods.node.clear();
  pod_members_.clear();
  for (WorkloadId w = 0; w < catalog.workload_count(); ++w) {
    if (application_->objects[w].is_external()) {
      const std::string name =
          fmt::format("external-{}", catalog.layers[application_->external_layers[w]].name);
      const auto row = std::find_if(rows_.begin(), rows_.end(), [&](const Row& r) {
        return r.node == nullptr && r.name == name;
      });
      state->pods.workload.push_back(w);
      state->pods.node.push_back(static_cast<NodeId>(row - rows_.begin()));
      pod_members_.push_back(nullptr);
      continue;
    }
    for (const auto& member : pods_.members(w)) {
      state->pods.workload.push_back(w);
      state->pods.node.push_back(member.second.node->second.row);
      pod_members_.push_back(&member);
    }
  }
  if (names_ == nullptr || pending_.members || pending_.nodes) names_ = MakeNames();
  state->names = names_;
}

std::shared_ptr<const Names> KubeCluster::MakeNames() const {
  auto names = std::make_shared<Names>();
  for (const Row& row : rows_) {
    names->nodes.push_back(row.name);
    names->addresses.push_back(row.node == nullptr ? "" : row.node->address);
  }
  std::set<std::string_view> namespaces;
  for (const WorkloadObject& object : application_->objects) {
    if (!object.is_external()) namespaces.insert(object.object_namespace);
  }
  names->pods.reserve(pod_members_.size());
  WorkloadId external = 0;
  for (const auto* member : pod_members_) {
    if (member != nullptr) {
      names->pods.push_back(namespaces.size() == 1 ? member->first.name : KeyText(member->first));
      continue;
    }
    while (!application_->objects[external].is_external()) ++external;
    names->pods.push_back(application_->catalog->workloads[external++].name);
  }
  return names;
}

std::vector<std::vector<PodToleration>> KubeCluster::TolerationsOfMovable(
    const Catalog& catalog) const {
  std::vector<std::vector<PodToleration>> all;
  for (WorkloadId w = 0; w < catalog.workload_count(); ++w) {
    if (!catalog.workloads[w].movable) continue;
    for (const auto& tolerations : tolerations_[w]) {
      if (std::find(all.begin(), all.end(), tolerations) == all.end()) all.push_back(tolerations);
    }
  }
  if (all.empty()) all.emplace_back();
  return all;
}

void KubeCluster::BuildRoom(State* state) {
  const auto tolerations = TolerationsOfMovable(*state->catalog);
  Nodes& nodes = state->nodes;
  nodes.kind.clear();
  nodes.free.clear();
  closed_.clear();
  for (const Row& row : rows_) {
    const auto use = pods_.nodes().find(row.name);
    const NodeLoad load = use == pods_.nodes().end() ? NodeLoad{} : use->second.load;
    std::string closed = row.node == nullptr ? "outside of the cluster" : "";
    for (size_t i = 0; i < tolerations.size() && closed.empty(); ++i) {
      closed = WhyClosed(*row.node, load, tolerations[i]);
    }
    Resources free;
    if (closed.empty()) free = Most({}, row.node->allocatable - load.requested);
    nodes.kind.push_back(row.kind);
    nodes.free.push_back(free);
    closed_.push_back(std::move(closed));
  }
  nodes.allocatable = nodes.free;
  nodes.background_mbytes_per_s.assign(rows_.size(), 0.0);
  for (PodId pod = 0; pod < state->pods.size(); ++pod) {
    nodes.allocatable[state->pods.node[pod]] += state->workload_of(pod).requests;
  }
}

void KubeCluster::Submit(std::span<const Intent> intents, Completions* completions) {
  for (const Intent& intent : intents) completions->push_back({intent, Review(intent)});
}

KubeCluster::PodObject KubeCluster::pod_object(PodId pod) const {
  const auto* member = pod_members_[pod];
  return member == nullptr ? PodObject{} : PodObject{member->first, member->second.uid};
}

Result<void> KubeCluster::Review(const Intent& intent) const {
  const Migrate& migrate = std::get<Migrate>(intent.action);
  const auto is_node = [&](NodeId node) { return node >= 0 && node < state_.nodes.size(); };
  if (migrate.pod < 0 || migrate.pod >= static_cast<PodId>(pod_members_.size()) ||
      !is_node(migrate.from) || !is_node(migrate.to)) {
    return Fail(ErrorCode::kConflict, "the pod or the node of a move is not there any more");
  }
  if (intent.seen.state_version != state_.version) {
    return Fail(ErrorCode::kConflict, "the cluster has changed since it was seen");
  }
  const PodObject object = pod_object(migrate.pod);
  const NodeId was_on = state_.pods.node[migrate.pod];
  const Pod* pod = mirror_->pods.Find(object.key);
  const bool is_there =
      object.uid.empty() || (pod != nullptr && pod->meta.uid == object.uid && pod->counts() &&
                             pod->node == NodeName(state_, was_on));
  if (was_on != migrate.from || was_on != intent.seen.pod_was_on || !is_there) {
    return Fail(ErrorCode::kConflict, "{} is not on {} any more", PodName(state_, migrate.pod),
                NodeName(state_, migrate.from));
  }
  return Fail(ErrorCode::kFailedPrecondition, "the cluster is read-only: {} stays on {}",
              PodName(state_, migrate.pod), NodeName(state_, was_on));
}

}  // namespace rudderfish::kube
