// SPDX-License-Identifier: Apache-2.0
#include "cloud/http_route.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/one_line.h"
#include "base/text_table.h"

namespace rudderfish {
namespace {

std::string RoutePath(const HttpRouteChoice& choice) {
  return fmt::format("/apis/gateway.networking.k8s.io/v1/namespaces/{}/httproutes/{}",
                     choice.name_space, choice.name);
}

std::string RouteName(const HttpRouteChoice& choice) {
  return fmt::format("httproute {}/{}", choice.name_space, choice.name);
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
  TRY_ASSIGN(made.resource_version, CheckWritable(route, name, choice, {"spec", "rules"}));
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
    : WeightedObjectEnactor(client, RouteName(choice), RoutePath(choice), kWeightMax),
      choice_(std::move(choice)) {}

Result<WeightedObject> HttpRouteEnactor::Parse(std::string_view json) const {
  TRY_ASSIGN(HttpRouteRule rule, ReadHttpRoute(json, choice_));
  WeightedObject object{.resource_version = std::move(rule.resource_version),
                        .fields = {},
                        .notes = std::move(rule.notes)};
  for (size_t i = 0; i < rule.backends.size(); ++i) {
    const HttpRouteRule::Backend& backend = rule.backends[i];
    const std::string at = fmt::format("/spec/rules/{}/backendRefs/{}", rule.rule, i);
    const bool is_service = backend.kind == "Service";
    object.fields.push_back(
        {.name = backend.name,
         .weight = backend.weight,
         .path = at + "/weight",
         .guard_path = at + "/name",
         .guard_value = backend.name,
         .health_service = is_service ? backend.name : "",
         .health_namespace = backend.name_space,
         .unseen = fmt::format("whether a {} is healthy is not seen", backend.kind)});
  }
  return object;
}

std::string HttpRouteEnactor::Target() const {
  return choice_.rule ? fmt::format("{}, rule {}", title(), *choice_.rule)
                      : fmt::format("{}, rule 0", title());
}

}  // namespace rudderfish
