// SPDX-License-Identifier: Apache-2.0
#include "cloud/http_route.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/check.h"
#include "base/json.h"
#include "base/one_line.h"
#include "base/text_table.h"

namespace rudderfish {
namespace {

constexpr std::string_view kFieldManager = "rudderfish";

std::string RoutePath(const HttpRouteChoice& choice) {
  return fmt::format("/apis/gateway.networking.k8s.io/v1/namespaces/{}/httproutes/{}",
                     choice.name_space, choice.name);
}

std::string RouteName(const HttpRouteChoice& choice) {
  return fmt::format("httproute {}/{}", choice.name_space, choice.name);
}

bool MayChange(const std::string& manager, const HttpRouteChoice& choice) {
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

// The text of a member, or an empty one.
Result<std::string> TextAt(const JsonReader& object, std::string_view key) {
  TRY_ASSIGN(const auto found, object.Find(key));
  return found ? found->AsString() : std::string();
}

// An object that a controller made is written by it again.
Result<void> CheckController(const JsonReader& metadata, const HttpRouteChoice& choice) {
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
                "{}: it belongs to {}/{}, which would set the weights back; change them there",
                RouteName(choice), OneLine(kind, 100), OneLine(name, 100));
  }
  return {};
}

Result<void> CheckOwners(const JsonReader& metadata, const HttpRouteChoice& choice) {
  TRY_ASSIGN(const auto managed, metadata.Find("managedFields"));
  if (!managed) return {};
  TRY_ASSIGN(const std::vector<JsonReader> entries, managed->Elements());
  for (const JsonReader& entry : entries) {
    TRY_ASSIGN(const std::string manager, TextAt(entry, "manager"));
    TRY_ASSIGN(const auto fields, entry.Find("fieldsV1"));
    if (!fields) continue;
    TRY_ASSIGN(const auto spec, fields->Find("f:spec"));
    if (!spec) continue;
    TRY_ASSIGN(const auto rules, spec->Find("f:rules"));
    if (!rules || MayChange(manager, choice)) continue;
    return Fail(ErrorCode::kFailedPrecondition,
                "{}: its rules belong to the field manager `{}`, which would set the weights back; "
                "change them there, or allow it with --may-change {}",
                RouteName(choice), OneLine(manager, 100), OneLine(manager, 100));
  }
  return {};
}

// What Gateways say of the route.
Result<std::vector<std::string>> NotesOf(const JsonReader& route, int64_t generation) {
  std::vector<std::string> notes;
  TRY_ASSIGN(const auto status, route.Find("status"));
  std::vector<JsonReader> parents;
  if (status) {
    TRY_ASSIGN(const auto found, status->Find("parents"));
    if (found) {
      TRY_ASSIGN(parents, found->Elements());
    }
  }
  if (parents.empty()) notes.emplace_back("no Gateway says that it has accepted the route");
  for (const JsonReader& parent : parents) {
    TRY_ASSIGN(const std::string controller, TextAt(parent, "controllerName"));
    TRY_ASSIGN(const auto conditions, parent.Find("conditions"));
    if (!conditions) continue;
    TRY_ASSIGN(const std::vector<JsonReader> list, conditions->Elements());
    for (const JsonReader& condition : list) {
      TRY_ASSIGN(const std::string type, TextAt(condition, "type"));
      TRY_ASSIGN(const std::string value, TextAt(condition, "status"));
      if (type != "Accepted" && type != "ResolvedRefs") continue;
      if (value != "True") {
        TRY_ASSIGN(const std::string reason, TextAt(condition, "reason"));
        notes.push_back(fmt::format("{}: {} is {} ({})", OneLine(controller, 100), type,
                                    OneLine(value, 20), OneLine(reason, 100)));
      }
      TRY_ASSIGN(const auto observed, condition.Find("observedGeneration"));
      if (!observed || type != "Accepted") continue;
      TRY_ASSIGN(const int64_t seen, observed->AsInt());
      if (seen < generation) {
        notes.push_back(fmt::format("{} has seen generation {} of the route, not yet {}",
                                    OneLine(controller, 100), seen, generation));
      }
    }
  }
  return notes;
}

Result<HttpRouteRule::Backend> ReadBackend(const JsonReader& reader,
                                           const HttpRouteChoice& choice) {
  HttpRouteRule::Backend backend;
  TRY_ASSIGN(const JsonReader name, reader.At("name"));
  TRY_ASSIGN(backend.name, name.AsString());
  TRY_ASSIGN(const std::string kind, TextAt(reader, "kind"));
  TRY_ASSIGN(const std::string group, TextAt(reader, "group"));
  backend.kind = (group.empty() ? "" : group + "/") + (kind.empty() ? "Service" : kind);
  TRY_ASSIGN(backend.name_space, TextAt(reader, "namespace"));
  if (backend.name_space.empty()) backend.name_space = choice.name_space;
  TRY_ASSIGN(const auto weight, reader.Find("weight"));
  if (weight) {
    TRY_ASSIGN(backend.weight, weight->AsInt(0, HttpRouteEnactor::kWeightMax));
  }
  return backend;
}

Result<int> RuleOf(const HttpRouteChoice& choice, size_t count) {
  const std::string have = Counted(static_cast<int64_t>(count), "rule");
  if (!choice.rule) {
    if (count == 1) return 0;
    return Fail(ErrorCode::kNotFound, "{} has {}; choose one with --rule, from 0",
                RouteName(choice), have);
  }
  if (*choice.rule >= 0 && static_cast<size_t>(*choice.rule) < count) return *choice.rule;
  return Fail(ErrorCode::kNotFound, "{} has no rule {}; it has {}, counted from 0",
              RouteName(choice), *choice.rule, have);
}

}  // namespace

Result<HttpRouteRule> ReadHttpRoute(std::string_view json, const HttpRouteChoice& choice) {
  const std::string name = RouteName(choice);
  TRY_ASSIGN(const Json object, ParseJson(json, name));
  const JsonReader route(object, name);
  TRY_ASSIGN(const JsonReader metadata, route.At("metadata"));
  HttpRouteRule made;
  TRY_ASSIGN(const JsonReader version, metadata.At("resourceVersion"));
  TRY_ASSIGN(made.resource_version, version.AsString());
  TRY(CheckController(metadata, choice));
  TRY(CheckOwners(metadata, choice));
  TRY_ASSIGN(const JsonReader spec, route.At("spec"));
  TRY_ASSIGN(const auto rules, spec.Find("rules"));
  std::vector<JsonReader> all;
  if (rules) {
    TRY_ASSIGN(all, rules->Elements());
  }
  TRY_ASSIGN(made.rule, RuleOf(choice, all.size()));
  TRY_ASSIGN(const auto found, all[static_cast<size_t>(made.rule)].Find("backendRefs"));
  std::vector<JsonReader> backends;
  if (found) {
    TRY_ASSIGN(backends, found->Elements());
  }
  if (backends.empty())
    return Invalid("{}: rule {} has no backendRefs, so that there is nothing to split", name,
                   made.rule);
  if (backends.size() > HttpRouteEnactor::kBackendsMax) {
    return Invalid("{}: rule {} has {} backendRefs; the Gateway API allows {}", name, made.rule,
                   backends.size(), HttpRouteEnactor::kBackendsMax);
  }
  for (const JsonReader& reader : backends) {
    TRY_ASSIGN(HttpRouteRule::Backend backend, ReadBackend(reader, choice));
    made.backends.push_back(std::move(backend));
  }
  TRY_ASSIGN(const auto generation, metadata.Find("generation"));
  int64_t number = 0;
  if (generation) {
    TRY_ASSIGN(number, generation->AsInt());
  }
  TRY_ASSIGN(made.notes, NotesOf(route, number));
  return made;
}

HttpRouteEnactor::HttpRouteEnactor(kube::ApiClient* client, HttpRouteChoice choice)
    : client_(client), choice_(std::move(choice)) {}

std::string HttpRouteEnactor::Target() const {
  return fmt::format("{}, rule {}", RouteName(choice_), read_.rule);
}

Result<void> HttpRouteEnactor::LookAtHealth(const HttpRouteRule::Backend& backend,
                                            StandingBackend* standing) {
  if (backend.kind != "Service") {
    standing->health = fmt::format("whether a {} is healthy is not seen", backend.kind);
    return {};
  }
  const std::string path = fmt::format(
      "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices?labelSelector=kubernetes.io%2F"
      "service-name%3D{}",
      backend.name_space, backend.name);
  TRY_ASSIGN(const std::string body, client_->Get(path));
  TRY_ASSIGN(const Json object, ParseJson(body, "EndpointSlices"));
  const JsonReader list(object, "EndpointSlices of Service " + backend.name);
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
  standing->health = ready > 0 ? Counted(ready, "ready endpoint")
                               : fmt::format("Service {} has no ready endpoint", backend.name);
  return {};
}

Result<StandingWeights> HttpRouteEnactor::Read() {
  TRY_ASSIGN(const std::string body, client_->Get(RoutePath(choice_)));
  TRY_ASSIGN(read_, ReadHttpRoute(body, choice_));
  StandingWeights standing{.target = Target(), .backends = {}, .notes = read_.notes};
  for (const HttpRouteRule::Backend& backend : read_.backends) {
    StandingBackend one{.name = backend.name, .weight = backend.weight, .health = ""};
    TRY(LookAtHealth(backend, &one));
    standing.backends.push_back(std::move(one));
  }
  return standing;
}

std::string HttpRouteEnactor::Patch(const std::vector<int64_t>& weights) const {
  CHECK_EQ(weights.size(), read_.backends.size());
  OrderedJson patch = OrderedJson::array();
  patch.push_back(
      {{"op", "test"}, {"path", "/metadata/resourceVersion"}, {"value", read_.resource_version}});
  for (size_t i = 0; i < weights.size(); ++i) {
    const std::string at = fmt::format("/spec/rules/{}/backendRefs/{}", read_.rule, i);
    patch.push_back({{"op", "test"}, {"path", at + "/name"}, {"value", read_.backends[i].name}});
    patch.push_back({{"op", "add"}, {"path", at + "/weight"}, {"value", weights[i]}});
  }
  return patch.dump();
}

std::string HttpRouteEnactor::Request(const std::vector<int64_t>& weights) const {
  return fmt::format("PATCH {}?fieldManager={}\nContent-Type: application/json-patch+json\n\n{}\n",
                     RoutePath(choice_), kFieldManager, Patch(weights));
}

Result<void> HttpRouteEnactor::Send(const std::vector<int64_t>& weights) {
  const kube::ApiAnswer answer =
      client_->Call({.method = kube::Method::kJsonPatch,
                     .path = fmt::format("{}?fieldManager={}", RoutePath(choice_), kFieldManager),
                     .body = Patch(weights)});
  if (answer.ok()) return {};
  // A test that failed is answered like any patch that does not fit: the version tells them apart.
  bool has_changed = answer.status.code == 409;
  if (answer.status.code == 422) {
    TRY_ASSIGN(const std::string body, client_->Get(RoutePath(choice_)));
    TRY_ASSIGN(const std::string version, VersionOf(body, RouteName(choice_)));
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
