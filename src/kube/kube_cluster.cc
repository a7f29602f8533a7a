// SPDX-License-Identifier: Apache-2.0
#include "kube/kube_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.h"
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
         a.network.latency_ms == b.network.latency_ms && a.names->nodes == b.names->nodes &&
         a.names->pods == b.names->pods;
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
      obstacles_(application_->objects.size()) {}

void KubeCluster::SetNetwork(Network network) {
  CHECK_EQ(network.layers, application_->catalog->layer_count());
  network_ = std::move(network);
  changed_ = true;
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
  changed_ = pods_.Update() || changed_;
  if (changed_) {
    TRY(Build(&next_));
    changed_ = false;
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
  ListNodes();
  std::shared_ptr<const Catalog> catalog = MakeCatalog();
  const bool same = state_.catalog != nullptr && SameCatalog(*catalog, *state_.catalog);
  state->catalog = same ? state_.catalog : std::move(catalog);
  state->calls = application_->calls;
  state->network = network_;
  TRY(BuildPods(state));
  BuildRoom(state);
  return {};
}

// The cluster's nodes that are of a kind, and one for each layer outside, all by name.
void KubeCluster::ListNodes() {
  rows_.clear();
  for (const auto& [key, node] : mirror_->nodes.objects()) {
    const auto& selectors = application_->kind_nodes;
    const auto kind = std::find_if(selectors.begin(), selectors.end(), [&](const auto& selector) {
      return selector.Matches(node.labels);
    });
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

std::shared_ptr<const Catalog> KubeCluster::MakeCatalog() {
  Catalog catalog = *application_->catalog;
  for (WorkloadId w = 0; w < catalog.workload_count(); ++w) {
    obstacles_[w].clear();
    if (application_->objects[w].is_external()) continue;
    Workload& workload = catalog.workloads[w];
    workload.replicas_max = static_cast<int>(pods_.members(w).size());
    const PodShape* last = nullptr;
    for (const auto& [key, member] : pods_.members(w)) {
      if (member.shape.get() == last) continue;  // Nearly always: pods of one template.
      last = member.shape.get();
      workload.requests = Most(workload.requests, member.shape->requests);
      const Pod* pod = mirror_->pods.Find(key);
      for (std::string& reason : WhyNotMovable(*mirror_, *pod)) {
        auto& all = obstacles_[w];
        if (std::find(all.begin(), all.end(), reason) == all.end())
          all.push_back(std::move(reason));
      }
    }
    workload.movable = workload.movable && obstacles_[w].empty();
  }
  return std::make_shared<const Catalog>(std::move(catalog));
}

NodeId KubeCluster::NodeNamed(const std::string& name) const {
  const auto at = std::lower_bound(rows_.begin(), rows_.end(), name,
                                   [](const Row& row, const auto& n) { return row.name < n; });
  return at != rows_.end() && at->name == name && at->node != nullptr
             ? static_cast<NodeId>(at - rows_.begin())
             : kNone;
}

Result<void> KubeCluster::BuildPods(State* state) {
  const Catalog& catalog = *application_->catalog;
  auto names = std::make_shared<Names>();
  std::vector<PodObject> objects;
  state->pods.workload.clear();
  state->pods.node.clear();
  for (const Row& row : rows_) names->nodes.push_back(row.name);
  std::set<std::string_view> namespaces;
  for (const WorkloadObject& object : application_->objects) {
    if (!object.is_external()) namespaces.insert(object.object_namespace);
  }
  const auto add = [&](WorkloadId workload, NodeId node, std::string name, PodObject object) {
    state->pods.workload.push_back(workload);
    state->pods.node.push_back(node);
    names->pods.push_back(std::move(name));
    objects.push_back(std::move(object));
  };
  for (WorkloadId w = 0; w < catalog.workload_count(); ++w) {
    const WorkloadObject& object = application_->objects[w];
    if (object.is_external()) {
      const std::string name =
          fmt::format("external-{}", catalog.layers[application_->external_layers[w]].name);
      const auto row = std::find_if(rows_.begin(), rows_.end(), [&](const Row& r) {
        return r.node == nullptr && r.name == name;
      });
      add(w, static_cast<NodeId>(row - rows_.begin()), catalog.workloads[w].name, {});
      continue;
    }
    if (pods_.members(w).empty()) {
      return Fail(ErrorCode::kFailedPrecondition,
                  "{} of the application {} has no pod on a node; no decision without it",
                  ObjectText(object), application_->name);
    }
    for (const auto& [key, member] : pods_.members(w)) {
      const NodeId node = NodeNamed(member.node);
      if (node == kNone) {
        return Fail(ErrorCode::kFailedPrecondition,
                    "the pod {} of the application {} is on the node {}, which is of none of its "
                    "node types",
                    KeyText(key), application_->name, member.node);
      }
      add(w, node, namespaces.size() == 1 ? key.name : KeyText(key), {key, member.uid});
    }
  }
  pod_objects_ = std::move(objects);
  state->names = std::move(names);
  return {};
}

std::vector<std::vector<Toleration>> KubeCluster::TolerationsOfMovable(
    const Catalog& catalog) const {
  std::vector<std::vector<Toleration>> all;
  for (WorkloadId w = 0; w < catalog.workload_count(); ++w) {
    if (!catalog.workloads[w].movable) continue;
    for (const auto& [key, member] : pods_.members(w)) {
      const auto& tolerations = member.shape->tolerations;
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
    const auto load_at = pods_.loads().find(row.name);
    const NodeLoad load = load_at == pods_.loads().end() ? NodeLoad{} : load_at->second;
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

Result<void> KubeCluster::Review(const Intent& intent) {
  const Migrate& migrate = std::get<Migrate>(intent.action);
  if (intent.seen.state_version > state_.version || migrate.pod < 0 ||
      migrate.pod >= static_cast<PodId>(pod_objects_.size()) || migrate.to < 0 ||
      migrate.to >= state_.nodes.size()) {
    return Fail(ErrorCode::kConflict, "the pod or the node of a move is not there any more");
  }
  if (intent.seen.state_version != state_.version) {
    return Fail(ErrorCode::kConflict, "the cluster has changed since it was seen");
  }
  const PodObject& object = pod_objects_[migrate.pod];
  const NodeId was_on = state_.pods.node[migrate.pod];
  const Pod* pod = mirror_->pods.Find(object.key);
  if (was_on != migrate.from || was_on != intent.seen.pod_was_on ||
      (!object.uid.empty() && (pod == nullptr || pod->meta.uid != object.uid || !pod->counts() ||
                               pod->node != NodeName(state_, was_on)))) {
    return Fail(ErrorCode::kConflict, "{} is not on {} any more", PodName(state_, migrate.pod),
                migrate.from >= 0 && migrate.from < state_.nodes.size()
                    ? NodeName(state_, migrate.from)
                    : "its node");
  }
  return Fail(ErrorCode::kFailedPrecondition, "the cluster is read-only: {} stays on {}",
              PodName(state_, migrate.pod), NodeName(state_, was_on));
}

}  // namespace rudderfish::kube
