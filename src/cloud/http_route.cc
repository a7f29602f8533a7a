// SPDX-License-Identifier: Apache-2.0
#include "cloud/http_route.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"

namespace rudderfish {
namespace {

constexpr int kBackendsMax = 16;
constexpr int64_t kWeightMax = 1'000'000;
constexpr std::string_view kUs = "rudderfish";
constexpr Duration kDeadline = std::chrono::seconds(10);

Result<std::string> TextAt(const JsonReader& object, std::string_view key) {
  TRY_ASSIGN(const auto value, object.Find(key));
  if (!value) return std::string();
  return value->AsString();
}

Result<std::string> OwnerOf(const JsonReader& metadata) {
  TRY_ASSIGN(const auto owners, metadata.Find("ownerReferences"));
  if (!owners) return std::string();
  TRY_ASSIGN(const std::vector<JsonReader> list, owners->Elements());
  for (const JsonReader& one : list) {
    TRY_ASSIGN(const auto controls, one.Find("controller"));
    if (!controls) continue;
    TRY_ASSIGN(const bool is_controller, controls->AsBool());
    if (!is_controller) continue;
    TRY_ASSIGN(const std::string kind, TextAt(one, "kind"));
    TRY_ASSIGN(const std::string name, TextAt(one, "name"));
    return kind + "/" + name;
  }
  return std::string();
}

// The newest that has `f:rules` of `f:spec` among its fields.
Result<std::string> ManagerOf(const JsonReader& metadata) {
  TRY_ASSIGN(const auto fields, metadata.Find("managedFields"));
  if (!fields) return std::string();
  TRY_ASSIGN(const std::vector<JsonReader> list, fields->Elements());
  std::string newest, manager;
  for (const JsonReader& one : list) {
    TRY_ASSIGN(const auto owned, one.Find("fieldsV1"));
    if (!owned) continue;
    TRY_ASSIGN(const auto spec, owned->Find("f:spec"));
    if (!spec) continue;
    TRY_ASSIGN(const auto rules, spec->Find("f:rules"));
    if (!rules) continue;
    TRY_ASSIGN(const std::string time, TextAt(one, "time"));  // RFC 3339, in UTC.
    if (time < newest) continue;
    newest = time;
    TRY_ASSIGN(manager, TextAt(one, "manager"));
  }
  return manager;
}

Result<HttpRouteRule::Backend> BackendOf(const JsonReader& node, const std::string& name_space) {
  HttpRouteRule::Backend backend;
  TRY_ASSIGN(const JsonReader name, node.At("name"));
  TRY_ASSIGN(backend.name, name.AsString());
  TRY_ASSIGN(backend.name_space, TextAt(node, "namespace"));
  if (backend.name_space.empty()) backend.name_space = name_space;
  TRY_ASSIGN(backend.kind, TextAt(node, "kind"));
  if (backend.kind.empty()) backend.kind = "Service";
  TRY_ASSIGN(const auto weight, node.Find("weight"));
  if (weight) {
    TRY_ASSIGN(const int64_t value, weight->AsInt(0, kWeightMax));
    backend.weight = static_cast<int>(value);
    backend.has_weight = true;
  }
  return backend;
}

Result<std::vector<HttpRouteRule::Backend>> BackendsOf(const JsonReader& rule,
                                                       const std::string& route,
                                                       const std::string& name_space) {
  TRY_ASSIGN(const auto refs, rule.Find("backendRefs"));
  std::vector<HttpRouteRule::Backend> backends;
  if (refs) {
    TRY_ASSIGN(const std::vector<JsonReader> list, refs->Elements());
    if (list.size() > kBackendsMax) {
      return Fail(ErrorCode::kFailedPrecondition,
                  "httproute {}: has {} backends in a rule; Gateway API allows {}", route,
                  list.size(), kBackendsMax);
    }
    for (const JsonReader& node : list) {
      TRY_ASSIGN(HttpRouteRule::Backend backend, BackendOf(node, name_space));
      backends.push_back(std::move(backend));
    }
  }
  if (backends.size() > 1) return backends;
  return Fail(ErrorCode::kFailedPrecondition,
              "httproute {}: the rule has {}; a split needs two or more", route,
              backends.empty() ? "no backend" : "one backend");
}

}  // namespace

Result<HttpRouteRule> ReadHttpRoute(std::string_view json, std::string_view source_name,
                                    std::optional<int> rule) {
  TRY_ASSIGN(const Json object, ParseJson(json, source_name));
  const JsonReader root(object, source_name);
  TRY_ASSIGN(const JsonReader metadata, root.At("metadata"));
  HttpRouteRule read;
  TRY_ASSIGN(const JsonReader name, metadata.At("name"));
  TRY_ASSIGN(const std::string bare_name, name.AsString());
  TRY_ASSIGN(const std::string name_space, TextAt(metadata, "namespace"));
  read.route = name_space + "/" + bare_name;
  TRY_ASSIGN(const JsonReader version, metadata.At("resourceVersion"));
  TRY_ASSIGN(read.version, version.AsString());
  TRY_ASSIGN(const auto annotations, metadata.Find("annotations"));
  read.has_annotations = annotations.has_value();
  TRY_ASSIGN(read.owner, OwnerOf(metadata));
  TRY_ASSIGN(read.manager, ManagerOf(metadata));
  TRY_ASSIGN(const JsonReader spec, root.At("spec"));
  TRY_ASSIGN(const auto rules, spec.Find("rules"));
  std::vector<JsonReader> list;
  if (rules) {
    TRY_ASSIGN(list, rules->Elements());
  }
  read.rules = static_cast<int>(list.size());
  if (!rule && read.rules != 1) {
    return Fail(ErrorCode::kFailedPrecondition, "httproute {}: has {} rules; name one with --rule",
                read.route, read.rules);
  }
  read.rule = rule.value_or(0);
  if (read.rule < 0 || read.rule >= read.rules) {
    return Fail(ErrorCode::kFailedPrecondition, "httproute {}: has no rule {}; it has {}",
                read.route, read.rule,
                read.rules == 1 ? "rule 0" : fmt::format("0 to {}", read.rules - 1));
  }
  TRY_ASSIGN(read.backends, BackendsOf(list[read.rule], read.route, name_space));
  return read;
}

std::string HttpRoutePatch(const HttpRouteRule& rule, const std::vector<int>& weights,
                           const std::string& note) {
  OrderedJson patch = OrderedJson::array();
  const auto add = [&](std::string_view op, const std::string& path, const OrderedJson& value) {
    patch.push_back({{"op", op}, {"path", path}, {"value", value}});
  };
  add("test", "/metadata/resourceVersion", rule.version);
  const std::string refs = fmt::format("/spec/rules/{}/backendRefs", rule.rule);
  for (size_t i = 0; i < rule.backends.size(); ++i) {
    const HttpRouteRule::Backend& backend = rule.backends[i];
    add("test", fmt::format("{}/{}/name", refs, i), backend.name);
    if (backend.weight == weights[i] && backend.has_weight) continue;
    add(backend.has_weight ? "replace" : "add", fmt::format("{}/{}/weight", refs, i), weights[i]);
  }
  if (!rule.has_annotations) add("add", "/metadata/annotations", OrderedJson::object());
  std::string key(kSplitKey);
  key.replace(key.find('/'), 1, "~1");  // As RFC 6901 writes it.
  add("add", "/metadata/annotations/" + key, note);
  std::string text = "[";
  for (const OrderedJson& one : patch) text += (text.size() > 1 ? ",\n " : "") + one.dump();
  return text + "]";
}

Result<RegionState> ReadyEndpoints(std::string_view json, std::string_view source_name) {
  TRY_ASSIGN(const Json object, ParseJson(json, source_name));
  TRY_ASSIGN(const JsonReader items, JsonReader(object, source_name).At("items"));
  TRY_ASSIGN(const std::vector<JsonReader> slices, items.Elements());
  for (const JsonReader& slice : slices) {
    TRY_ASSIGN(const auto endpoints, slice.Find("endpoints"));
    if (!endpoints) continue;
    TRY_ASSIGN(const std::vector<JsonReader> list, endpoints->Elements());
    for (const JsonReader& endpoint : list) {
      TRY_ASSIGN(const auto conditions, endpoint.Find("conditions"));
      bool ready = true;  // Nothing said is ready, as the API has it.
      if (conditions) {
        TRY_ASSIGN(const auto said, conditions->Find("ready"));
        if (said) {
          TRY_ASSIGN(ready, said->AsBool());
        }
      }
      if (ready) return RegionState::kHealthy;
    }
  }
  return slices.empty() ? RegionState::kUnseen : RegionState::kUnhealthy;
}

std::string HttpRoutePath::name() const {
  return fmt::format("httproute/{}/{}, rule {}", options_.name_space, options_.name,
                     options_.rule.value_or(0));
}

std::string HttpRoutePath::ObjectPath() const {
  return fmt::format("/apis/gateway.networking.k8s.io/v1/namespaces/{}/httproutes/{}",
                     options_.name_space, options_.name);
}

Result<RegionState> HttpRoutePath::StateOf(const HttpRouteRule::Backend& backend) {
  if (backend.kind != "Service") return RegionState::kUnseen;
  const std::string path = fmt::format(
      "/apis/discovery.k8s.io/v1/namespaces/{}/"
      "endpointslices?labelSelector=kubernetes.io%2Fservice-name%3D{}",
      backend.name_space, backend.name);
  const kube::ApiAnswer answer = client_->Call({.path = path, .deadline = kDeadline});
  if (!answer.ok()) return tl::unexpected(answer.outcome.error());
  return ReadyEndpoints(answer.body, "endpointslices of " + backend.name);
}

Result<std::vector<WeightedBackend>> HttpRoutePath::Read() {
  const kube::ApiAnswer answer = client_->Call({.path = ObjectPath(), .deadline = kDeadline});
  if (answer.status.code == 404) {
    return Fail(ErrorCode::kNotFound,
                "httproute {}/{}: not found; if no HTTPRoute is, the cluster lacks the Gateway "
                "API's custom resources",
                options_.name_space, options_.name);
  }
  if (!answer.ok()) return tl::unexpected(answer.outcome.error());
  TRY_ASSIGN(
      read_,
      ReadHttpRoute(answer.body, fmt::format("httproute {}/{}", options_.name_space, options_.name),
                    options_.rule));
  std::vector<WeightedBackend> backends;
  for (const HttpRouteRule::Backend& one : read_.backends) {
    const auto region = options_.regions.find(one.name);
    WeightedBackend backend{.region = region == options_.regions.end() ? one.name : region->second,
                            .name = one.name,
                            .weight = one.weight};
    for (const WeightedBackend& other : backends) {
      if (other.region != backend.region) continue;
      return Fail(ErrorCode::kFailedPrecondition, "httproute {}: {} and {} are both the region {}",
                  read_.route, other.name, backend.name, backend.region);
    }
    TRY_ASSIGN(backend.state, StateOf(one));
    backends.push_back(std::move(backend));
  }
  for (const auto& [backend, region] : options_.regions) {
    const bool known = std::any_of(backends.begin(), backends.end(),
                                   [&](const auto& one) { return one.name == backend; });
    if (!known)
      return Fail(ErrorCode::kFailedPrecondition,
                  "httproute {}: has no backend {} for the region {}", read_.route, backend,
                  region);
  }
  return backends;
}

Result<void> HttpRoutePath::CheckOwner() const {
  if (!read_.owner.empty()) {
    return Fail(ErrorCode::kFailedPrecondition,
                "httproute {}: belongs to {}, which writes its weights", read_.route, read_.owner);
  }
  // What a person applied is theirs to give away; another controller would write again.
  const std::string& manager = read_.manager;
  const bool fine = manager.empty() || manager == kUs || manager.starts_with("kubectl");
  if (fine || options_.take_over) return {};
  return Fail(ErrorCode::kFailedPrecondition,
              "httproute {}: {} wrote its rules last; --take-over writes all the same", read_.route,
              manager);
}

std::string HttpRoutePath::Patch(const std::vector<int>& weights) const {
  OrderedJson before = OrderedJson::object();
  for (const HttpRouteRule::Backend& one : read_.backends) before[one.name] = one.weight;
  return HttpRoutePatch(read_, weights,
                        OrderedJson{{"rule", read_.rule}, {"before", before}}.dump());
}

Result<std::string> HttpRoutePath::RequestOf(const std::vector<int>& weights) const {
  TRY(CheckOwner());
  return fmt::format("PATCH {}?fieldManager={}\nContent-Type: application/json-patch+json\n\n{}",
                     ObjectPath(), kUs, Patch(weights));
}

Result<void> HttpRoutePath::Write(const std::vector<int>& weights) {
  TRY(CheckOwner());
  const kube::ApiAnswer answer =
      client_->Call({.method = kube::Method::kJsonPatch,
                     .path = fmt::format("{}?fieldManager={}", ObjectPath(), kUs),
                     .body = Patch(weights),
                     .deadline = kDeadline,
                     .repeat = kube::Repeat::kNever});
  if (answer.ok()) return {};
  // A test that fails is answered so: somebody wrote in between.
  if (answer.status.code == 422 || answer.status.code == 409) {
    return Fail(ErrorCode::kConflict,
                "httproute {}: was changed since it was read, and nothing was written; try again",
                read_.route);
  }
  return tl::unexpected(answer.outcome.error());
}

}  // namespace rudderfish
