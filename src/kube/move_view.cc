// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kube/move_document.h"
#include "kube/object_reader.h"
#include "kube/opt_outs.h"

namespace rudderfish::kube {
namespace {

bool Fits(const Labels& selector, const Labels& labels) {
  return !selector.empty() &&
         std::all_of(selector.begin(), selector.end(), [&](const auto& wanted) {
           const std::string* value = FindLabel(labels, wanted.first);
           return value != nullptr && *value == wanted.second;
         });
}

// Whether pods on several nodes can use a volume at a time.
Result<bool> IsShared(const std::string& claim) {
  TRY_ASSIGN(const internal::Document document, internal::Document::Parse(claim, "claim"));
  TRY_ASSIGN(const Fields spec, document.fields().Find("spec"));
  simdjson::dom::array modes;
  if (!spec.there() || spec.element()["accessModes"].get(modes) != simdjson::SUCCESS) return false;
  for (const Element mode : modes) {
    std::string_view text;
    if (mode.get(text) != simdjson::SUCCESS) continue;
    if (text == "ReadWriteMany" || text == "ReadOnlyMany") return true;
  }
  return false;
}

Result<void> LookAtReplicaSet(ApiClient* client, const std::string& object_namespace,
                              const PodMove& move, MoveView* view) {
  TRY_ASSIGN(const std::optional<std::string> body,
             internal::GetObject(client, fmt::format("/apis/apps/v1/namespaces/{}/replicasets/{}",
                                                     object_namespace, move.replica_set)));
  if (!body) return {};
  TRY_ASSIGN(const internal::Document document, internal::Document::Parse(*body, "ReplicaSet"));
  const Fields set = document.fields();
  TRY_ASSIGN(const std::string_view uid, set.Text("metadata.uid"));
  TRY_ASSIGN(const std::string_view deleted, set.Text("metadata.deletionTimestamp"));
  if (uid != move.replica_set_uid) return {};
  view->has_replica_set = deleted.empty();
  TRY_ASSIGN(view->wanted, set.Integer("spec.replicas", 1));
  TRY_ASSIGN(view->ready, set.Integer("status.readyReplicas"));
  TRY_ASSIGN(view->replica_set_selector, set.TextMap("spec.selector.matchLabels"));
  std::string query;
  for (const auto& [key, value] : view->replica_set_selector)
    query += fmt::format("{}{}%3D{}", query.empty() ? "?labelSelector=" : "%2C", key, value);
  TRY_ASSIGN(const std::optional<std::string> pods,
             internal::GetObject(
                 client, fmt::format("/api/v1/namespaces/{}/pods{}", object_namespace, query)));
  if (!pods) return {};
  TRY_ASSIGN(const internal::Document list, internal::Document::Parse(*pods, "pods"));
  return list.fields().ForEach("items", [&](const Fields& item) -> Result<void> {
    TRY_ASSIGN(const ObjectRef owner, internal::ReadController(item));
    if (owner.uid != move.replica_set_uid) return {};
    TRY_ASSIGN(MovedPod pod, internal::ReadMovedPod(item.element()));
    if (pod.has_ended) return {};
    TRY_ASSIGN(const std::string replaces, internal::AnnotationOf(item.element(), kReplacesKey));
    const bool is_better = !view->replacement || view->replacement->is_terminating;
    if (!move.id.empty() && replaces == move.Pin() && is_better) view->replacement = pod;
    if (!pod.is_terminating) view->replicas.push_back(std::move(pod));
    return {};
  });
}

Result<void> LookAtServices(ApiClient* client, const std::string& object_namespace,
                            const Labels& labels, MoveView* view) {
  TRY_ASSIGN(
      const std::optional<std::string> body,
      internal::GetObject(client, fmt::format("/api/v1/namespaces/{}/services", object_namespace)));
  if (!body) return {};
  TRY_ASSIGN(const internal::Document services, internal::Document::Parse(*body, "services"));
  TRY(services.fields().ForEach("items", [&](const Fields& item) -> Result<void> {
    MoveView::Service service;
    TRY_ASSIGN(service.name, item.Text("metadata.name"));
    TRY_ASSIGN(service.selector, item.TextMap("spec.selector"));
    if (Fits(service.selector, labels)) view->services.push_back(std::move(service));
    return {};
  }));
  if (view->services.empty()) return {};
  TRY_ASSIGN(const std::optional<std::string> found,
             internal::GetObject(
                 client, fmt::format("/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices",
                                     object_namespace)));
  if (!found) return {};
  TRY_ASSIGN(const internal::Document slices, internal::Document::Parse(*found, "EndpointSlices"));
  return slices.fields().ForEach("items", [&](const Fields& slice) -> Result<void> {
    TRY_ASSIGN(const Labels marks, slice.TextMap("metadata.labels"));
    const std::string* name = FindLabel(marks, "kubernetes.io/service-name");
    if (name == nullptr) return {};
    const auto service = std::find_if(view->services.begin(), view->services.end(),
                                      [&](const auto& one) { return one.name == *name; });
    if (service == view->services.end()) return {};
    return slice.ForEach("endpoints", [&](const Fields& endpoint) -> Result<void> {
      TRY_ASSIGN(const std::string_view uid, endpoint.Text("targetRef.uid"));
      TRY_ASSIGN(const Fields ready, endpoint.Find("conditions.ready"));
      TRY_ASSIGN(const bool is_ready, endpoint.Flag("conditions.ready"));
      service->endpoints.emplace_back(uid);
      if (is_ready || !ready.there()) service->ready.emplace_back(uid);  // Unknown counts as ready.
      return {};
    });
  });
}

Result<void> LookAtBudgets(ApiClient* client, const std::string& object_namespace, MoveView* view) {
  if (!view->pod) return {};
  TRY_ASSIGN(
      const std::optional<std::string> body,
      internal::GetObject(client, fmt::format("/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
                                              object_namespace)));
  if (!body) return {};
  TRY_ASSIGN(const internal::Document budgets,
             internal::Document::Parse(*body, "PodDisruptionBudgets"));
  return budgets.fields().ForEach("items", [&](const Fields& item) -> Result<void> {
    TRY_ASSIGN(const Fields there, item.Find("spec.selector"));
    if (!there.there()) return {};  // Selects nothing.
    TRY_ASSIGN(const LabelSelector selector, internal::ReadSelector(item, "spec.selector"));
    if (!selector.Matches(view->pod->labels)) return {};
    MoveView::Budget budget;
    TRY_ASSIGN(budget.name, item.Text("metadata.name"));
    TRY_ASSIGN(budget.allowed, item.Integer("status.disruptionsAllowed"));
    TRY_ASSIGN(const int64_t generation, item.Integer("metadata.generation"));
    TRY_ASSIGN(const int64_t observed, item.Integer("status.observedGeneration"));
    budget.is_current = observed >= generation;
    view->budgets.push_back(std::move(budget));
    return {};
  });
}

Result<void> LookAtTarget(ApiClient* client, const std::string& target, MoveView* view) {
  TRY_ASSIGN(const std::optional<std::string> body,
             internal::GetObject(client, fmt::format("/api/v1/nodes/{}", target)));
  if (!body) {
    view->target_trouble = "is not found";
    return {};
  }
  TRY_ASSIGN(const internal::Document document, internal::Document::Parse(*body, "node"));
  TRY_ASSIGN(const Node node, ReadNode(document.root()));
  TRY_ASSIGN(const std::string_view deleted, document.fields().Text("metadata.deletionTimestamp"));
  if (!deleted.empty()) {
    view->target_trouble = "is being deleted";
  } else if (node.unschedulable) {
    view->target_trouble = "is cordoned";
  } else if (!node.ready) {
    view->target_trouble = "is not Ready";
  }
  return {};
}

Result<void> LookAtClaims(ApiClient* client, const Element& pod,
                          const std::string& object_namespace, MoveView* view) {
  std::vector<std::string> claims;
  TRY(Fields(pod).ForEach("spec.volumes", [&](const Fields& volume) -> Result<void> {
    TRY_ASSIGN(const Fields host, volume.Find("hostPath"));
    if (host.there()) view->obstacles.emplace_back("mounts a folder of its host");
    TRY_ASSIGN(const std::string_view claim, volume.Text("persistentVolumeClaim.claimName"));
    if (!claim.empty()) claims.emplace_back(claim);
    return {};
  }));
  for (const std::string& claim : claims) {
    TRY_ASSIGN(
        const std::optional<std::string> body,
        internal::GetObject(client, fmt::format("/api/v1/namespaces/{}/persistentvolumeclaims/{}",
                                                object_namespace, claim)));
    bool is_shared = false;
    if (body) {
      TRY_ASSIGN(is_shared, IsShared(*body));
    }
    if (!is_shared)
      view->obstacles.push_back(
          fmt::format("uses the volume of claim {}, which only one node can mount", claim));
  }
  return {};
}

Result<void> LookAtDeployment(ApiClient* client, const std::string& object_namespace,
                              const std::string& name, MoveView* view) {
  TRY_ASSIGN(const std::optional<std::string> body,
             internal::GetObject(client, fmt::format("/apis/apps/v1/namespaces/{}/deployments/{}",
                                                     object_namespace, name)));
  if (!body) return {};
  TRY_ASSIGN(const internal::Document document, internal::Document::Parse(*body, "Deployment"));
  const Fields fields = document.fields();
  TRY_ASSIGN(const std::string_view strategy, fields.Text("spec.strategy.type"));
  if (strategy == "Recreate") {
    view->obstacles.push_back(fmt::format(
        "Deployment {} has strategy Recreate: its pods may not run side by side", name));
  }
  TRY_ASSIGN(const int64_t wanted, fields.Integer("spec.replicas", 1));
  TRY_ASSIGN(const int64_t updated, fields.Integer("status.updatedReplicas"));
  TRY_ASSIGN(const int64_t all, fields.Integer("status.replicas"));
  TRY_ASSIGN(const int64_t generation, fields.Integer("metadata.generation"));
  TRY_ASSIGN(const int64_t observed, fields.Integer("status.observedGeneration"));
  if (observed < generation || updated != wanted || all != wanted)
    view->obstacles.push_back(fmt::format("a rollout of Deployment {} is in progress", name));
  TRY_ASSIGN(const std::vector<OptOut> opt_outs, ReadOptOuts(fields));
  for (const OptOut& one : opt_outs)
    view->obstacles.push_back(fmt::format("Deployment {} {}", name, one.why));
  return {};
}

Result<void> LookAtObstacles(ApiClient* client, const Element& pod, MoveView* view) {
  const Fields fields(pod);
  const std::string& place = view->pod->id.object_namespace;
  std::vector<std::string>& obstacles = view->obstacles;
  TRY_ASSIGN(const ObjectRef owner, internal::ReadController(fields));
  if (owner.kind.empty()) {
    obstacles.emplace_back("has no controller that would replace it");
  } else if (owner.kind != "ReplicaSet") {
    obstacles.push_back(
        fmt::format("belongs to a {}, whose pods cannot run twice for a time; only pods of "
                    "ReplicaSets are moved",
                    owner.kind));
  }
  TRY_ASSIGN(const std::vector<OptOut> opt_outs, ReadOptOuts(fields));
  TRY_ASSIGN(const int64_t started, fields.Time("status.startTime"));
  for (const OptOut& one : opt_outs) {
    if (one.HoldsAt(started, UnixNow() / 1000)) obstacles.push_back(one.why);
  }
  TRY(fields.ForEach("status.conditions", [&](const Fields& condition) -> Result<void> {
    TRY_ASSIGN(const std::string_view type, condition.Text("type"));
    TRY_ASSIGN(const std::string_view status, condition.Text("status"));
    if (type.starts_with("PodResize") && status == "True")
      obstacles.emplace_back("is being resized in place");
    return {};
  }));
  TRY(LookAtClaims(client, pod, place, view));
  if (owner.kind != "ReplicaSet") return {};
  TRY_ASSIGN(const std::optional<std::string> body,
             internal::GetObject(client, fmt::format("/apis/apps/v1/namespaces/{}/replicasets/{}",
                                                     place, owner.name)));
  if (!body) return {};
  TRY_ASSIGN(const internal::Document set, internal::Document::Parse(*body, "ReplicaSet"));
  TRY_ASSIGN(const ObjectRef above, internal::ReadController(set.fields()));
  if (above.kind == "Deployment") TRY(LookAtDeployment(client, place, above.name, view));
  return {};
}

}  // namespace

Result<std::optional<std::string>> internal::ReadMoveView(ApiClient* client, const PodIdentity& pod,
                                                          const std::optional<PodMove>& move,
                                                          const std::string& target,
                                                          MoveView* view) {
  TRY_ASSIGN(const std::optional<std::string> body,
             internal::GetObject(client, internal::PodPath(pod)));
  PodMove known = move.value_or(PodMove{});
  Labels labels;
  if (body) {
    TRY_ASSIGN(const internal::Document document, internal::Document::Parse(*body, "pod"));
    TRY_ASSIGN(MovedPod read, internal::ReadMovedPod(document.root()));
    if (read.id.uid == pod.uid) {
      TRY_ASSIGN(const std::string text, internal::AnnotationOf(document.root(), kMoveKey));
      if (!text.empty()) {
        if (Result<PodMove> written = PodMoveOf(text)) {
          view->move = *std::move(written);
        } else {
          view->unreadable = written.error().message;
        }
      }
      if (view->move) known = *view->move;
      labels = internal::WithLabels(read.labels, known.removed);
      view->pod = std::move(read);
      if (!move) {
        TRY_ASSIGN(const ObjectRef owner, internal::ReadController(document.fields()));
        if (known.replica_set.empty() && owner.kind == "ReplicaSet") {
          known.replica_set = owner.name;
          known.replica_set_uid = owner.uid;
        }
        TRY(LookAtObstacles(client, document.root(), view));
      }
    }
  }
  if (known.replica_set.empty()) return std::nullopt;
  TRY(LookAtReplicaSet(client, pod.object_namespace, known, view));
  TRY(LookAtServices(client, pod.object_namespace, labels, view));
  TRY(LookAtBudgets(client, pod.object_namespace, view));
  TRY(LookAtTarget(client, target.empty() ? known.target : target, view));
  return known.replica_set_uid;
}

}  // namespace rudderfish::kube
