// SPDX-License-Identifier: Apache-2.0
#include "cloud/split_objects.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/one_line.h"
#include "base/text_table.h"

namespace rudderfish {
namespace {

constexpr std::string_view kWeightProperty = "aws/weight";
constexpr int64_t kDnsWeightMax = 255;
constexpr int64_t kPercentMax = 100;
constexpr int64_t kReplicaWeightMax = int64_t{1} << 31;

constexpr std::array<SplitObjectRow, kSplitObjectKinds> kRows = {{
    {"virtualservice", "networking.istio.io", "v1", "virtualservices", kPercentMax},
    {"destinationrule", "networking.istio.io", "v1", "destinationrules", kPercentMax},
    {"dnsendpoint", "externaldns.k8s.io", "v1alpha1", "dnsendpoints", kDnsWeightMax},
    {"propagationpolicy", "policy.karmada.io", "v1alpha1", "propagationpolicies", kPercentMax},
}};

// What an object is read with.
struct Reading {
  const SplitObjectChoice& choice;
  std::string title;
  JsonReader spec;
};

// Members of members; nothing where one is missing.
Result<std::optional<JsonReader>> FindAll(const JsonReader& from,
                                          std::initializer_list<std::string_view> keys) {
  std::optional<JsonReader> at = from;
  for (const std::string_view key : keys) {
    TRY_ASSIGN(at, at->Find(key));
    if (!at) return at;
  }
  return at;
}

Result<std::vector<JsonReader>> ElementsAt(const JsonReader& from,
                                           std::initializer_list<std::string_view> keys) {
  TRY_ASSIGN(const auto found, FindAll(from, keys));
  if (!found) return std::vector<JsonReader>();
  return found->Elements();
}

Result<size_t> RuleIndex(const Reading& reading, size_t count, std::string_view what) {
  const std::string have = Counted(static_cast<int64_t>(count), what);
  if (reading.choice.rule) {
    if (static_cast<size_t>(*reading.choice.rule) < count)
      return static_cast<size_t>(*reading.choice.rule);
    return Fail(ErrorCode::kNotFound, "{} has no {} {}; it has {}, counted from 0", reading.title,
                what, *reading.choice.rule, have);
  }
  if (count == 1) return size_t{0};
  if (count == 0)
    return Invalid("{}: has no {}, so that there is nothing to split", reading.title, what);
  return Fail(ErrorCode::kNotFound, "{} has {}; choose one with --rule, from 0", reading.title,
              have);
}

// Service and namespace of a host of this cluster; empty for any other.
std::pair<std::string, std::string> ServiceOf(const std::string& host,
                                              const std::string& name_space) {
  const size_t dot = host.find('.');
  if (dot == std::string::npos) return {host, name_space};
  const std::string rest = host.substr(dot + 1);
  constexpr std::string_view kSuffix = ".svc.cluster.local";
  if (!rest.ends_with(kSuffix)) return {};
  return {host.substr(0, dot), rest.substr(0, rest.size() - kSuffix.size())};
}

Result<void> ReadVirtualService(const Reading& reading, WeightedObject* object) {
  TRY_ASSIGN(const std::vector<JsonReader> rules, ElementsAt(reading.spec, {"http"}));
  TRY_ASSIGN(const size_t rule, RuleIndex(reading, rules.size(), "http rule"));
  TRY_ASSIGN(const std::vector<JsonReader> routes, ElementsAt(rules[rule], {"route"}));
  for (size_t i = 0; i < routes.size(); ++i) {
    const std::string at = fmt::format("/spec/http/{}/route/{}", rule, i);
    TRY_ASSIGN(const JsonReader destination, routes[i].At("destination"));
    TRY_ASSIGN(const JsonReader host, destination.At("host"));
    WeightField field{.name = {}, .path = at + "/weight", .guard_path = at + "/destination/host"};
    TRY_ASSIGN(field.guard_value, host.AsString());
    TRY_ASSIGN(const std::string subset, TextAt(destination, "subset"));
    field.name = field.guard_value + (subset.empty() ? "" : "/" + subset);
    field.weight = routes.size() == 1 ? kPercentMax : 0;  // What Istio takes where none is given.
    TRY_ASSIGN(const auto weight, routes[i].Find("weight"));
    if (weight) {
      TRY_ASSIGN(field.weight, weight->AsInt(0, kReplicaWeightMax));
    }
    std::tie(field.health_service, field.health_namespace) =
        ServiceOf(field.guard_value, reading.choice.name_space);
    object->fields.push_back(std::move(field));
  }
  return {};
}

Result<void> ReadDestinationRule(const Reading& reading, WeightedObject* object) {
  TRY_ASSIGN(const std::vector<JsonReader> entries,
             ElementsAt(reading.spec,
                        {"trafficPolicy", "loadBalancer", "localityLbSetting", "distribute"}));
  TRY_ASSIGN(const size_t rule, RuleIndex(reading, entries.size(), "distribute rule"));
  const std::string at =
      fmt::format("/spec/trafficPolicy/loadBalancer/localityLbSetting/distribute/{}", rule);
  TRY_ASSIGN(const JsonReader from, entries[rule].At("from"));
  TRY_ASSIGN(const std::string whose, from.AsString());
  TRY_ASSIGN(const JsonReader to, entries[rule].At("to"));
  TRY_ASSIGN(const auto members, to.Members());
  for (const auto& [locality, weight] : members) {
    WeightField field{.name = locality,
                      .path = at + "/to/" + PointerPart(locality),
                      .guard_path = at + "/from",
                      .guard_value = whose};
    TRY_ASSIGN(field.weight, weight.AsInt(0, kPercentMax));
    object->fields.push_back(std::move(field));
  }
  object->notes.push_back(fmt::format("requests from {}", OneLine(whose, 100)));
  return {};
}

// Where the weight of a record stands; none: it has no weight.
Result<std::optional<size_t>> WeightProperty(const JsonReader& record, int64_t* weight) {
  TRY_ASSIGN(const std::vector<JsonReader> properties, ElementsAt(record, {"providerSpecific"}));
  for (size_t i = 0; i < properties.size(); ++i) {
    TRY_ASSIGN(const std::string name, TextAt(properties[i], "name"));
    if (name != kWeightProperty) continue;
    TRY_ASSIGN(const JsonReader value, properties[i].At("value"));
    TRY_ASSIGN(const std::string text, value.AsString());
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *weight);
    if (error != std::errc() || end != text.data() + text.size() || *weight < 0 ||
        *weight > kDnsWeightMax) {
      return value.Expected(fmt::format("a whole number from 0 to {}", kDnsWeightMax));
    }
    return std::optional(i);
  }
  return std::optional<size_t>();
}

Result<void> ReadDnsEndpoint(const Reading& reading, WeightedObject* object) {
  TRY_ASSIGN(const std::vector<JsonReader> records, ElementsAt(reading.spec, {"endpoints"}));
  std::string name;
  for (size_t i = 0; i < records.size(); ++i) {
    WeightField field{.name = {}, .path = {}, .is_text = true};
    TRY_ASSIGN(field.name, TextAt(records[i], "setIdentifier"));
    TRY_ASSIGN(const std::optional<size_t> property, WeightProperty(records[i], &field.weight));
    if (field.name.empty() || !property) continue;
    TRY_ASSIGN(const std::string record, TextAt(records[i], "dnsName"));
    if (!name.empty() && name != record) {
      return Invalid("{}: has weighted records of {} and {}; one name is expected", reading.title,
                     OneLine(name, 100), OneLine(record, 100));
    }
    name = record;
    const std::string at = fmt::format("/spec/endpoints/{}", i);
    field.path = fmt::format("{}/providerSpecific/{}/value", at, *property);
    field.guard_path = at + "/setIdentifier";
    field.guard_value = field.name;
    object->fields.push_back(std::move(field));
  }
  object->notes.push_back(fmt::format("records of {}; resolvers keep them for their TTL",
                                      name.empty() ? "no name" : OneLine(name, 100)));
  return {};
}

Result<void> ReadPropagationPolicy(const Reading& reading, WeightedObject* object) {
  TRY_ASSIGN(const std::vector<JsonReader> weights,
             ElementsAt(reading.spec, {"placement", "replicaScheduling", "weightPreference",
                                       "staticWeightList"}));
  for (size_t i = 0; i < weights.size(); ++i) {
    const std::string at =
        fmt::format("/spec/placement/replicaScheduling/weightPreference/staticWeightList/{}", i);
    TRY_ASSIGN(const std::vector<JsonReader> clusters,
               ElementsAt(weights[i], {"targetCluster", "clusterNames"}));
    if (clusters.size() != 1) {
      return Invalid("{}: weight {} is of {}; one cluster each is expected", reading.title, i,
                     Counted(static_cast<int64_t>(clusters.size()), "cluster"));
    }
    WeightField field{
        .name = {}, .path = at + "/weight", .guard_path = at + "/targetCluster/clusterNames/0"};
    TRY_ASSIGN(field.name, clusters[0].AsString());
    field.guard_value = field.name;
    TRY_ASSIGN(const JsonReader weight, weights[i].At("weight"));
    TRY_ASSIGN(field.weight, weight.AsInt(0, kReplicaWeightMax));
    object->fields.push_back(std::move(field));
  }
  object->notes.emplace_back("a split of replicas, not of requests");
  return {};
}

// Names from the root on of what field managers own.
std::vector<std::string> FieldsOf(SplitObjectKind kind) {
  switch (kind) {
    case SplitObjectKind::kVirtualService:
      return {"spec", "http"};
    case SplitObjectKind::kDestinationRule:
      return {"spec", "trafficPolicy"};
    case SplitObjectKind::kDnsEndpoint:
      return {"spec", "endpoints"};
    case SplitObjectKind::kPropagationPolicy:
      break;
  }
  return {"spec", "placement"};
}

std::string TitleOf(const SplitObjectChoice& choice) {
  return fmt::format("{} {}/{}", RowOf(choice.kind).name, choice.name_space, choice.name);
}

}  // namespace

const SplitObjectRow& RowOf(SplitObjectKind kind) { return kRows[static_cast<size_t>(kind)]; }

Result<WeightedObject> ReadSplitObject(std::string_view json, const SplitObjectChoice& choice) {
  const std::string title = TitleOf(choice);
  TRY_ASSIGN(const Json parsed, ParseJson(json, title));
  const JsonReader root(parsed, title);
  WeightedObject object;
  TRY_ASSIGN(object.resource_version, CheckWritable(root, title, choice, FieldsOf(choice.kind)));
  TRY_ASSIGN(JsonReader spec, root.At("spec"));
  const Reading reading{.choice = choice, .title = title, .spec = std::move(spec)};
  switch (choice.kind) {
    case SplitObjectKind::kVirtualService:
      TRY(ReadVirtualService(reading, &object));
      break;
    case SplitObjectKind::kDestinationRule:
      TRY(ReadDestinationRule(reading, &object));
      break;
    case SplitObjectKind::kDnsEndpoint:
      TRY(ReadDnsEndpoint(reading, &object));
      break;
    case SplitObjectKind::kPropagationPolicy:
      TRY(ReadPropagationPolicy(reading, &object));
      break;
  }
  if (object.fields.empty())
    return Invalid("{}: holds no weights, so that there is nothing to split", title);
  return object;
}

SplitObjectEnactor::SplitObjectEnactor(kube::ApiClient* client, SplitObjectChoice choice)
    : WeightedObjectEnactor(client, TitleOf(choice),
                            fmt::format("/apis/{}/{}/namespaces/{}/{}/{}", RowOf(choice.kind).group,
                                        RowOf(choice.kind).version, choice.name_space,
                                        RowOf(choice.kind).plural, choice.name),
                            RowOf(choice.kind).weight_sum),
      choice_(std::move(choice)) {}

}  // namespace rudderfish
