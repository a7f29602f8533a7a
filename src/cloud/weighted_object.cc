// SPDX-License-Identifier: Apache-2.0
#include "cloud/weighted_object.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/check.h"
#include "base/one_line.h"
#include "base/text_table.h"

namespace rudderfish {
namespace {

bool MayChange(const std::string& manager, const ObjectChoice& choice) {
  return manager == kFieldManager || manager.starts_with("kubectl") ||
         std::find(choice.may_change.begin(), choice.may_change.end(), manager) !=
             choice.may_change.end();
}

Result<std::string> VersionOf(std::string_view json, const std::string& name) {
  TRY_ASSIGN(const Json object, ParseJson(json, name));
  TRY_ASSIGN(const JsonReader metadata, JsonReader(object, name).At("metadata"));
  TRY_ASSIGN(const JsonReader version, metadata.At("resourceVersion"));
  return version.AsString();
}

// An object that a controller made is written by it again.
Result<void> CheckController(const JsonReader& metadata, const std::string& title) {
  TRY_ASSIGN(const auto owners, metadata.Find("ownerReferences"));
  if (!owners) return {};
  TRY_ASSIGN(const std::vector<JsonReader> references, owners->Elements());
  for (const JsonReader& reference : references) {
    TRY_ASSIGN(const auto controls, reference.Find("controller"));
    if (!controls) continue;
    TRY_ASSIGN(const bool is_controller, controls->AsBool());
    if (!is_controller) continue;
    TRY_ASSIGN(const std::string kind, TextAt(reference, "kind"));
    TRY_ASSIGN(const std::string name, TextAt(reference, "name"));
    return Fail(ErrorCode::kFailedPrecondition,
                "{}: it belongs to {}/{}, which would undo the change; change it there", title,
                OneLine(kind, 100), OneLine(name, 100));
  }
  return {};
}

Result<void> CheckManagers(const JsonReader& metadata, const std::string& title,
                           const ObjectChoice& choice, const std::vector<std::string>& fields) {
  TRY_ASSIGN(const auto managed, metadata.Find("managedFields"));
  if (!managed) return {};
  TRY_ASSIGN(const std::vector<JsonReader> entries, managed->Elements());
  for (const JsonReader& entry : entries) {
    TRY_ASSIGN(const std::string manager, TextAt(entry, "manager"));
    TRY_ASSIGN(std::optional<JsonReader> owned, entry.Find("fieldsV1"));
    for (const std::string& field : fields) {
      if (!owned) break;
      TRY_ASSIGN(owned, owned->Find("f:" + field));
    }
    if (!owned || MayChange(manager, choice)) continue;
    return Fail(ErrorCode::kFailedPrecondition,
                "{}: its {} belong to the field manager `{}`, which would undo the change; "
                "change it there, or allow it with --may-change {} (`may_change`)",
                title, fields.back(), OneLine(manager, 100), OneLine(manager, 100));
  }
  return {};
}

}  // namespace

Result<ObjectChoice> ParseObjectChoice(std::string_view text) {
  const size_t slash = text.find('/');
  constexpr std::string_view kOfNames = "abcdefghijklmnopqrstuvwxyz0123456789-.";
  ObjectChoice choice;
  if (slash != std::string_view::npos) {
    choice.name_space = text.substr(0, slash);
    choice.name = text.substr(slash + 1);
  }
  for (const std::string& name : {choice.name_space, choice.name}) {
    if (name.empty() || name.find_first_not_of(kOfNames) != std::string::npos)
      return Invalid("`{}`: expected NAMESPACE/NAME", OneLine(text));
  }
  return choice;
}

std::string PointerPart(std::string_view text) {
  std::string part;
  for (const char c : text) {
    if (c == '~')
      part += "~0";
    else if (c == '/')
      part += "~1";
    else
      part += c;
  }
  return part;
}

Result<std::string> CheckWritable(const JsonReader& object, const std::string& title,
                                  const ObjectChoice& choice,
                                  const std::vector<std::string>& fields) {
  TRY_ASSIGN(const JsonReader metadata, object.At("metadata"));
  TRY_ASSIGN(const JsonReader version, metadata.At("resourceVersion"));
  TRY(CheckController(metadata, title));
  TRY(CheckManagers(metadata, title, choice, fields));
  return version.AsString();
}

WeightedObjectEnactor::WeightedObjectEnactor(kube::ApiClient* client, std::string title,
                                             std::string path, int64_t weight_sum)
    : client_(client), title_(std::move(title)), path_(std::move(path)), weight_sum_(weight_sum) {}

Result<void> WeightedObjectEnactor::LookAtHealth(const WeightField& field,
                                                 StandingBackend* standing) {
  const std::string path = fmt::format(
      "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices?labelSelector=kubernetes.io%2F"
      "service-name%3D{}",
      field.health_namespace, field.health_service);
  TRY_ASSIGN(const std::string body, client_->Get(path));
  TRY_ASSIGN(const Json object, ParseJson(body, "EndpointSlices"));
  const JsonReader list(object, "EndpointSlices of Service " + field.health_service);
  TRY_ASSIGN(const auto items, list.Find("items"));
  std::vector<JsonReader> slices;
  if (items) {
    TRY_ASSIGN(slices, items->Elements());
  }
  int64_t ready = 0;
  for (const JsonReader& slice : slices) {
    TRY_ASSIGN(const auto endpoints, slice.Find("endpoints"));
    if (!endpoints) continue;
    TRY_ASSIGN(const std::vector<JsonReader> all, endpoints->Elements());
    for (const JsonReader& endpoint : all) {
      bool is_ready = true;  // What the API takes where it is not said.
      TRY_ASSIGN(const auto conditions, endpoint.Find("conditions"));
      if (conditions) {
        TRY_ASSIGN(const auto said, conditions->Find("ready"));
        if (said) {
          TRY_ASSIGN(is_ready, said->AsBool());
        }
      }
      ready += is_ready ? 1 : 0;
    }
  }
  standing->is_healthy = ready > 0;
  standing->ready = ready;
  standing->health = ready > 0
                         ? Counted(ready, "ready endpoint")
                         : fmt::format("Service {} has no ready endpoint", field.health_service);
  return {};
}

Result<StandingWeights> WeightedObjectEnactor::Read() {
  TRY_ASSIGN(const std::string body, client_->Get(path_));
  TRY_ASSIGN(read_, Parse(body));
  StandingWeights standing{.target = Target(), .backends = {}, .notes = read_.notes};
  for (const WeightField& field : read_.fields) {
    StandingBackend one{.name = field.name, .weight = field.weight, .health = "", .ready = {}};
    if (field.health_service.empty()) {
      one.is_health_seen = false;
      one.health = field.unseen;
    } else {
      TRY(LookAtHealth(field, &one));
    }
    standing.backends.push_back(std::move(one));
  }
  return standing;
}

std::string WeightedObjectEnactor::Patch(const std::vector<int64_t>& weights) const {
  CHECK_EQ(weights.size(), read_.fields.size());
  OrderedJson patch = OrderedJson::array();
  patch.push_back(
      {{"op", "test"}, {"path", "/metadata/resourceVersion"}, {"value", read_.resource_version}});
  for (size_t i = 0; i < weights.size(); ++i) {
    const WeightField& field = read_.fields[i];
    if (!field.guard_path.empty())
      patch.push_back({{"op", "test"}, {"path", field.guard_path}, {"value", field.guard_value}});
    OrderedJson value = weights[i];
    if (field.is_text) value = std::to_string(weights[i]);
    patch.push_back({{"op", "add"}, {"path", field.path}, {"value", std::move(value)}});
  }
  return patch.dump();
}

std::string WeightedObjectEnactor::Request(const std::vector<int64_t>& weights) const {
  return fmt::format("PATCH {}?fieldManager={}\nContent-Type: application/json-patch+json\n\n{}\n",
                     path_, kFieldManager, Patch(weights));
}

Result<void> WeightedObjectEnactor::Send(const std::vector<int64_t>& weights) {
  const kube::ApiAnswer answer =
      client_->Call({.method = kube::Method::kJsonPatch,
                     .path = fmt::format("{}?fieldManager={}", path_, kFieldManager),
                     .body = Patch(weights)});
  if (answer.ok()) return {};
  // A test that failed is answered like any patch that does not fit: the version tells them apart.
  bool has_changed = answer.status.code == 409;
  if (answer.status.code == 422) {
    TRY_ASSIGN(const std::string body, client_->Get(path_));
    TRY_ASSIGN(const std::string version, VersionOf(body, title_));
    has_changed = version != read_.resource_version;
  }
  if (has_changed) {
    return Fail(ErrorCode::kConflict,
                "{}: it was changed since it was read, and nothing was done; run it again",
                Target());
  }
  return tl::unexpected(answer.outcome.error());
}

}  // namespace rudderfish
