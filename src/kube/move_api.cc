// SPDX-License-Identifier: Apache-2.0
#include "kube/move_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/one_line.h"
#include "kube/fields.h"
#include "kube/move_document.h"
#include "kube/object_reader.h"

namespace rudderfish::kube {
namespace {

constexpr Duration kMoveDeadline = std::chrono::seconds(10);  // Of one request.

std::string MoveBody(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<void> ReadPodConditions(const Fields& pod, MovedPod* made) {
  return pod.ForEach("status.conditions", [&](const Fields& condition) -> Result<void> {
    TRY_ASSIGN(const std::string_view type, condition.Text("type"));
    TRY_ASSIGN(const std::string_view status, condition.Text("status"));
    if (type == "Ready") made->is_ready = status == "True";
    if (type == "PodScheduled" && status == "False") {
      TRY_ASSIGN(const std::string_view message, condition.Text("message"));
      made->unschedulable = OneLine(message, 300);
    }
    return {};
  });
}

Result<void> ReadFailure(const Fields& pod, MovedPod* made) {
  return pod.ForEach("status.containerStatuses", [&](const Fields& container) -> Result<void> {
    TRY_ASSIGN(const std::string_view reason, container.Text("state.waiting.reason"));
    if (!reason.empty() && reason != "ContainerCreating" && reason != "PodInitializing")
      made->failing = OneLine(reason, 100);
    return {};
  });
}

}  // namespace

namespace internal {

std::string PodPath(const PodIdentity& pod) {
  return fmt::format("/api/v1/namespaces/{}/pods/{}", pod.object_namespace, pod.name);
}

std::string PinPath() {
  return fmt::format("/api/v1/namespaces/{}/configmaps/{}", kMovesNamespace, kMovesName);
}

Labels WithLabels(Labels labels, const Labels& more) {
  std::erase_if(labels, [&](const auto& label) { return FindLabel(more, label.first) != nullptr; });
  labels.insert(labels.end(), more.begin(), more.end());
  std::sort(labels.begin(), labels.end());
  return labels;
}

Result<std::string> AnnotationOf(const Element& object, std::string_view key) {
  TRY_ASSIGN(const Labels annotations, Fields(object).TextMap("metadata.annotations"));
  const std::string* text = FindLabel(annotations, key);
  return text == nullptr ? std::string() : *text;
}

Result<MovedPod> ReadMovedPod(const Element& object) {
  const Fields pod(object);
  MovedPod made;
  TRY_ASSIGN(made.id.object_namespace, pod.Text("metadata.namespace"));
  TRY_ASSIGN(made.id.name, pod.Text("metadata.name"));
  TRY_ASSIGN(made.id.uid, pod.Text("metadata.uid"));
  TRY_ASSIGN(made.resource_version, pod.Text("metadata.resourceVersion"));
  TRY_ASSIGN(made.node, pod.Text("spec.nodeName"));
  TRY_ASSIGN(made.labels, pod.TextMap("metadata.labels"));
  TRY_ASSIGN(const Labels annotations, pod.TextMap("metadata.annotations"));
  made.is_replacement = FindLabel(annotations, kReplacesKey) != nullptr;
  TRY_ASSIGN(const std::string_view deleted, pod.Text("metadata.deletionTimestamp"));
  made.is_terminating = !deleted.empty();
  if (made.is_terminating) {
    TRY_ASSIGN(made.grace_s, pod.Integer("metadata.deletionGracePeriodSeconds", 0));
  }
  TRY_ASSIGN(const std::string_view phase, pod.Text("status.phase"));
  made.has_ended = phase == "Succeeded" || phase == "Failed";
  TRY(ReadPodConditions(pod, &made));
  TRY(ReadFailure(pod, &made));
  return made;
}

Result<std::optional<std::string>> GetObject(ApiClient* client, const std::string& path) {
  ApiAnswer answer = client->Call({.path = path, .deadline = kMoveDeadline});
  if (answer.ok()) return std::move(answer.body);
  if (answer.status.code == 404) return std::nullopt;
  return tl::unexpected(answer.outcome.error());
}

}  // namespace internal

Result<void> MoveApi::Patch(const std::string& path, const std::string& body) {
  const ApiAnswer answer = client_->Call({.method = Method::kMergePatch,
                                          .path = path,
                                          .body = body,
                                          .deadline = kMoveDeadline,
                                          .repeat = Repeat::kNever});
  if (answer.ok()) return {};
  if (answer.status.code == 409 || answer.status.code == 404)
    return Fail(ErrorCode::kConflict, "{}", answer.outcome.error().message);
  return tl::unexpected(answer.outcome.error());
}

Result<MoveView> MoveApi::Look(const PodIdentity& pod, const std::optional<PodMove>& move,
                               const std::string& target) {
  MoveView view;
  TRY_ASSIGN(const std::optional<std::string> replica_set_uid,
             internal::ReadMoveView(client_, pod, move, target, &view));
  if (!replica_set_uid) return view;
  TRY_ASSIGN(const std::optional<Labels> pins, ReadPins());
  view.can_pin = pins.has_value();
  if (!pins) return view;
  if (const std::string* pin = FindLabel(*pins, *replica_set_uid)) view.pin = *pin;
  return view;
}

Result<MovedPod> MoveApi::FindPod(const std::string& object_namespace, const std::string& name) {
  const std::string path = internal::PodPath({object_namespace, name, ""});
  TRY_ASSIGN(const std::optional<std::string> body, internal::GetObject(client_, path));
  if (!body) return Fail(ErrorCode::kNotFound, "pod {}/{} is not found", object_namespace, name);
  TRY_ASSIGN(const internal::Document document, internal::Document::Parse(*body, path));
  return internal::ReadMovedPod(document.root());
}

Result<PodMove> MoveApi::Plan(const MovedPod& pod, const std::string& target, UnixMillis now,
                              Duration limit) {
  TRY_ASSIGN(const std::optional<std::string> body,
             internal::GetObject(client_, internal::PodPath(pod.id)));
  if (!body) return Fail(ErrorCode::kNotFound, "pod {} is not found", pod.id.Key());
  TRY_ASSIGN(const internal::Document document, internal::Document::Parse(*body, "pod"));
  TRY_ASSIGN(const ObjectRef owner, internal::ReadController(document.fields()));
  PodMove move{.target = target, .begun = now};
  move.deadline = now + std::chrono::duration_cast<std::chrono::milliseconds>(limit).count();
  move.id = fmt::format("{:012x}", client_->NewRng().Next64() >> 16);
  move.workload = owner.kind + "/" + owner.name;
  if (owner.kind == "ReplicaSet") {
    move.replica_set = owner.name;
    move.replica_set_uid = owner.uid;
    TRY_ASSIGN(
        const std::optional<std::string> set,
        internal::GetObject(client_, fmt::format("/apis/apps/v1/namespaces/{}/replicasets/{}",
                                                 pod.id.object_namespace, owner.name)));
    if (set) {
      TRY_ASSIGN(const internal::Document read, internal::Document::Parse(*set, "ReplicaSet"));
      TRY_ASSIGN(const ObjectRef above, internal::ReadController(read.fields()));
      if (!above.kind.empty()) move.workload = above.kind + "/" + above.name;
    }
  }
  TRY_ASSIGN(const std::optional<std::string> node,
             internal::GetObject(client_, fmt::format("/api/v1/nodes/{}", target)));
  if (!node) return Fail(ErrorCode::kNotFound, "node {} is not found", target);
  TRY_ASSIGN(const internal::Document read, internal::Document::Parse(*node, "node"));
  TRY_ASSIGN(const Labels labels, read.fields().TextMap("metadata.labels"));
  const std::string* hostname = FindLabel(labels, kHostnameLabel);
  if (hostname == nullptr)
    return Fail(ErrorCode::kFailedPrecondition, "node {} has no label {}", target, kHostnameLabel);
  move.target_hostname = *hostname;
  return move;
}

Result<std::vector<MoveApi::Listed>> MoveApi::List() {
  TRY_ASSIGN(const std::optional<std::string> body,
             internal::GetObject(client_, "/api/v1/pods?labelSelector=rudderfish.io%2Fmove"));
  std::vector<Listed> listed;
  if (!body) return listed;
  TRY_ASSIGN(const internal::Document document, internal::Document::Parse(*body, "pods"));
  TRY(document.fields().ForEach("items", [&](const Fields& item) -> Result<void> {
    TRY_ASSIGN(const MovedPod pod, internal::ReadMovedPod(item.element()));
    Listed one{.pod = pod.id, .node = pod.node};
    TRY_ASSIGN(const std::string text, internal::AnnotationOf(item.element(), kMoveKey));
    if (Result<PodMove> move = PodMoveOf(text)) {
      one.move = *std::move(move);
    } else {
      one.unreadable = move.error().message;
    }
    listed.push_back(std::move(one));
    return {};
  }));
  return listed;
}

// Writes the record, and takes `removed` from the labels: at once, or not at all.
Result<void> MoveApi::PatchPod(const MovedPod& pod, const PodMove& move, const Labels& removed) {
  Json labels = {{std::string(kMoveKey), move.id}};
  for (const auto& [key, value] : removed) labels[key] = nullptr;
  const Json annotations = {{std::string(kMoveKey), PodMoveText(move)},
                            {std::string(kDetachedFrom), move.workload}};
  return Patch(internal::PodPath(pod.id), MoveBody({{"metadata",
                                                     {{"uid", pod.id.uid},
                                                      {"resourceVersion", pod.resource_version},
                                                      {"labels", std::move(labels)},
                                                      {"annotations", annotations}}}}));
}

Result<void> MoveApi::Begin(const MoveView& view, const PodMove& move) {
  return PatchPod(*view.pod, move, {});
}

Result<void> MoveApi::TakeLabels(const MoveView& view, const std::vector<std::string>& keys,
                                 MoveStep step, PodMove* move) {
  PodMove next = *move;
  next.step = step;
  Labels removed;
  for (const std::string& key : keys) {
    const std::string* value = FindLabel(view.pod->labels, key);
    if (value != nullptr) removed.emplace_back(key, *value);
  }
  next.removed = internal::WithLabels(next.removed, removed);
  TRY(PatchPod(*view.pod, next, removed));
  *move = std::move(next);
  return {};
}

Result<void> MoveApi::NoteAbort(const MoveView& view, const std::string& why, PodMove* move) {
  PodMove next = *move;
  next.step = MoveStep::kAbort;
  next.aborting = OneLine(why, 300);
  TRY(PatchPod(*view.pod, next, {}));
  *move = std::move(next);
  return {};
}

Result<void> MoveApi::Restore(const MoveView& view, const PodMove& move) {
  Json labels = {{std::string(kMoveKey), nullptr}};
  for (const auto& [key, value] : move.removed) labels[key] = value;
  const Json annotations = {{std::string(kMoveKey), nullptr},
                            {std::string(kDetachedFrom), nullptr}};
  return Patch(internal::PodPath(view.pod->id),
               MoveBody({{"metadata",
                          {{"uid", view.pod->id.uid},
                           {"resourceVersion", view.pod->resource_version},
                           {"labels", std::move(labels)},
                           {"annotations", annotations}}}}));
}

Result<void> MoveApi::Pin(const PodMove& move) {
  return PatchPins(move.replica_set_uid, move.Pin());
}

Result<void> MoveApi::Unpin(const PodMove& move) { return PatchPins(move.replica_set_uid, ""); }

Result<void> MoveApi::Remove(const LeftPin& pin) { return PatchPins(pin.replica_set_uid, ""); }

Result<bool> MoveApi::CanPin(Duration limit) {
  const ApiAnswer answer = client_->Call({.path = internal::PinPath(), .deadline = limit});
  if (answer.ok()) return true;
  if (answer.status.code == 404) return false;
  return tl::unexpected(answer.outcome.error());
}

Result<std::optional<Labels>> MoveApi::ReadPins() {
  TRY_ASSIGN(const std::optional<std::string> body,
             internal::GetObject(client_, internal::PinPath()));
  if (!body) return std::nullopt;
  TRY_ASSIGN(const internal::Document document, internal::Document::Parse(*body, "ConfigMap"));
  TRY_ASSIGN(pin_version_, document.fields().Text("metadata.resourceVersion"));
  TRY_ASSIGN(Labels data, document.fields().TextMap("data"));
  return data;
}

// `pin`: empty: the line is taken away.
Result<void> MoveApi::PatchPins(const std::string& replica_set_uid, const std::string& pin) {
  Json data = {{replica_set_uid, nullptr}};
  if (!pin.empty()) data[replica_set_uid] = pin;
  return Patch(internal::PinPath(), MoveBody({{"metadata", {{"resourceVersion", pin_version_}}},
                                              {"data", std::move(data)}}));
}

Result<std::vector<MoveApi::LeftPin>> MoveApi::LeftPins() {
  // In this order: a pod says that it is moved before there is a line for it.
  TRY_ASSIGN(const std::optional<Labels> pins, ReadPins());
  std::vector<LeftPin> left;
  if (!pins || pins->empty()) return left;
  TRY_ASSIGN(const std::vector<Listed> moves, List());
  for (const auto& [uid, pin] : *pins) {
    const std::string id = pin.substr(0, pin.find('/'));
    const bool is_under_way = std::any_of(moves.begin(), moves.end(), [&](const Listed& one) {
      return !one.move || one.move->id == id;  // What cannot be read may be this one.
    });
    if (!is_under_way) left.push_back({uid, id, pin.substr(std::min(pin.size(), id.size() + 1))});
  }
  return left;
}

Result<void> MoveApi::Evict(const MoveView& view) {
  const PodIdentity& pod = view.pod->id;
  const Json eviction = {
      {"apiVersion", "policy/v1"},
      {"kind", "Eviction"},
      {"metadata", {{"name", pod.name}, {"namespace", pod.object_namespace}}},
      {"deleteOptions",
       {{"preconditions", {{"uid", pod.uid}, {"resourceVersion", view.pod->resource_version}}}}}};
  const ApiAnswer answer = client_->Call({.method = Method::kPost,
                                          .path = internal::PodPath(pod) + "/eviction",
                                          .body = MoveBody(eviction),
                                          .deadline = kMoveDeadline,
                                          .repeat = Repeat::kNever});
  if (answer.ok()) return {};
  if (answer.status.code == 404 || answer.status.code == 409)
    return Fail(ErrorCode::kConflict, "{}", answer.outcome.error().message);
  if (answer.status.code == 429)
    return Fail(ErrorCode::kFailedPrecondition, "{}", answer.outcome.error().message);
  return tl::unexpected(answer.outcome.error());
}

}  // namespace rudderfish::kube
