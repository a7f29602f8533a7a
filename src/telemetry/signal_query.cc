// SPDX-License-Identifier: Apache-2.0
#include "telemetry/signal_query.h"

#include <algorithm>
#include <array>
#include <functional>
#include <set>

#include "base/suggest.h"
#include "base/units.h"

namespace rudderfish {
namespace {

constexpr std::string_view kScopes[] = {"cluster", "node", "workload", "edge", "region"};
constexpr std::string_view kDuplicates[] = {"refuse", "sum", "mean", "max"};
constexpr std::string_view kNamedBy[] = {"workload", "pod"};
constexpr std::string_view kReduces[] = {"last", "mean", "max"};
constexpr std::string_view kOfAll[] = {"nodes", "addresses", "workloads", "namespaces"};

// Which placeholders a query of each scope may hold for the entity it is sent for.
std::vector<std::string_view> PlaceholdersOf(SignalScope scope) {
  switch (scope) {
    case SignalScope::kNode:
      return {"node", "address"};
    case SignalScope::kWorkload:
      return {"workload", "namespace"};
    case SignalScope::kEdge:
      return {"from", "to"};
    case SignalScope::kRegion:
      return {"region"};
    case SignalScope::kCluster:
      break;
  }
  return {};
}

std::vector<std::string> DefaultLabels(SignalScope scope) {
  switch (scope) {
    case SignalScope::kNode:
      return {"node"};
    case SignalScope::kWorkload:
      return {"workload"};
    case SignalScope::kEdge:
      return {"source_workload", "destination_workload"};
    case SignalScope::kRegion:
      return {"region"};
    case SignalScope::kCluster:
      break;
  }
  return {};
}

// Replaces what stands between double braces; the text is as `value` says, or stays if it says
// nothing.
using Replacement = std::function<const std::string*(std::string_view)>;

std::string Replace(std::string_view text, const Replacement& value) {
  std::string replaced;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = std::min(text.find("{{", at), text.size());
    replaced += text.substr(at, begin - at);
    const size_t end = text.find("}}", begin);
    if (end == std::string_view::npos) return replaced + std::string(text.substr(begin));
    const std::string* found = value(text.substr(begin + 2, end - begin - 2));
    replaced += found != nullptr ? *found : std::string(text.substr(begin, end + 2 - begin));
    at = end + 2;
  }
  return replaced;
}

// As it stands between double quotes in PromQL.
std::string Quoted(std::string_view name) {
  std::string quoted;
  for (char c : name) {
    if (c == '\\' || c == '"') quoted += '\\';
    if (c != '\n') quoted += c;
  }
  return quoted;
}

// "a|b" for =~, with what regular expressions mean by a character taken away.
std::string Alternatives(const std::set<std::string>& names) {
  constexpr std::string_view kSpecial = "\\.+*?()|[]{}^$";
  std::string text;
  for (const std::string& name : names) {
    if (!text.empty()) text += '|';
    std::string escaped;
    for (char c : name) {
      if (kSpecial.find(c) != std::string_view::npos) escaped += '\\';
      escaped += c;
    }
    text += Quoted(escaped);
  }
  return text;
}

// Of kOfAll, in its order.
std::array<std::string, 4> TextsOfAll(const SignalEntities& entities) {
  std::set<std::string> names[4];
  for (const auto& node : entities.nodes) {
    names[0].insert(node.name);
    if (!node.address.empty()) names[1].insert(node.address);
  }
  for (const auto& workload : entities.workloads) {
    names[2].insert(workload.name);
    names[3].insert(workload.name_space);
  }
  return {Alternatives(names[0]), Alternatives(names[1]), Alternatives(names[2]),
          Alternatives(names[3])};
}

// The names and what the placeholders stand for, of each entity of a scope.
struct Entity {
  std::string name;
  std::vector<std::string> values;  // In the order of PlaceholdersOf.
};

std::vector<Entity> EntitiesOf(SignalScope scope, const SignalEntities& entities) {
  std::vector<Entity> list;
  switch (scope) {
    case SignalScope::kCluster:
      return {{"", {}}};
    case SignalScope::kNode:
      for (const auto& node : entities.nodes)
        list.push_back({node.name, {Quoted(node.name), Quoted(node.address)}});
      break;
    case SignalScope::kWorkload:
      for (const auto& workload : entities.workloads)
        list.push_back({workload.name, {Quoted(workload.name), Quoted(workload.name_space)}});
      break;
    case SignalScope::kEdge:
      for (const auto& [from, to] : entities.edges)
        list.push_back({EdgeName(from, to), {Quoted(from), Quoted(to)}});
      break;
    case SignalScope::kRegion:
      for (const auto& region : entities.regions) list.push_back({region, {Quoted(region)}});
      break;
  }
  return list;
}

Result<int> ParseChoice(YamlMap* map, std::string_view key, std::span<const std::string_view> words,
                        std::string_view fallback) {
  TRY_ASSIGN(const std::string word, map->OptionalString(key, fallback));
  const auto found = std::find(words.begin(), words.end(), word);
  if (found == words.end())
    return (*map->Optional(key)).Expected(fmt::format("one of {}", fmt::join(words, ", ")));
  return static_cast<int>(found - words.begin());
}

Result<Duration> ParseDuration(YamlMap* map, std::string_view key) {
  TRY_ASSIGN(const std::string text, map->OptionalString(key, ""));
  if (text.empty()) return Duration(0);
  const Result<double> ms = ParseDurationMs(text);
  if (!ms || *ms <= 0) return (*map->Optional(key)).Expected("a duration such as 30s");
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::milli>(*ms));
}

// Refuses placeholders that nothing stands for.
Result<void> CheckPlaceholders(const SignalQuery& query, const YamlNode& at) {
  std::vector<std::string_view> known(std::begin(kOfAll), std::end(kOfAll));
  for (std::string_view name : PlaceholdersOf(query.scope)) known.push_back(name);
  std::string unknown;
  Replace(query.query, [&](std::string_view name) -> const std::string* {
    if (std::find(known.begin(), known.end(), name) == known.end()) unknown = name;
    return nullptr;
  });
  if (unknown.empty()) return {};
  return at.Refuse(fmt::format("unknown placeholder {{{{{}}}}} in a signal per {}{}", unknown,
                               kScopes[static_cast<int>(query.scope)], DidYouMean(unknown, known)));
}

Result<std::vector<std::string>> ParseLabels(YamlMap* map, SignalScope scope) {
  TRY_ASSIGN(const std::string one, map->OptionalString("label", ""));
  TRY_ASSIGN(const auto several, map->OptionalList("labels"));
  std::vector<std::string> labels;
  if (!one.empty()) labels.push_back(one);
  for (const YamlNode& node : several) {
    TRY_ASSIGN(std::string label, node.AsString());
    labels.push_back(std::move(label));
  }
  std::vector<std::string> defaults = DefaultLabels(scope);
  if (labels.empty()) return defaults;
  if (labels.size() != defaults.size()) {
    const auto at = map->Optional(one.empty() ? "labels" : "label");
    return at->Expected(fmt::format("{} for a signal per {}",
                                    defaults.size() == 2   ? "labels: [FROM, TO]"
                                    : defaults.size() == 1 ? "one label"
                                                           : "no label",
                                    kScopes[static_cast<int>(scope)]));
  }
  return labels;
}

Result<SignalQuery> ParseQuery(const std::string& name, const YamlNode& node) {
  SignalQuery query{.name = name};
  TRY_ASSIGN(YamlMap map, node.AsMap());
  TRY_ASSIGN(const int scope, ParseChoice(&map, "per", kScopes, "cluster"));
  query.scope = static_cast<SignalScope>(scope);
  TRY_ASSIGN(query.query, map.RequiredString("query"));
  TRY(CheckPlaceholders(query, *map.Optional("query")));
  TRY_ASSIGN(query.labels, ParseLabels(&map, query.scope));
  TRY_ASSIGN(const int named_by, ParseChoice(&map, "by", kNamedBy, "workload"));
  query.by_pod = named_by == 1;
  if (query.by_pod && query.scope != SignalScope::kWorkload)
    return (*map.Optional("by")).Refuse("`by: pod` is for signals `per: workload`");
  if (query.by_pod && !map.Optional("label") && !map.Optional("labels")) query.labels = {"pod"};
  TRY_ASSIGN(query.scale, map.OptionalDouble("scale", -1e15, 1e15, 1));
  TRY_ASSIGN(const int duplicates,
             ParseChoice(&map, "duplicates", kDuplicates, query.by_pod ? "sum" : "refuse"));
  query.duplicates = static_cast<SignalDuplicates>(duplicates);
  TRY_ASSIGN(query.range, ParseDuration(&map, "range"));
  TRY_ASSIGN(query.step, ParseDuration(&map, "step"));
  TRY_ASSIGN(const int reduce, ParseChoice(&map, "reduce", kReduces, "last"));
  query.reduce = static_cast<SignalReduce>(reduce);
  if (query.range.count() == 0 && (query.step.count() > 0 || query.reduce != SignalReduce::kLast))
    return node.Refuse("step and reduce mean nothing without range");
  if (query.range.count() > 0 && query.step.count() == 0) query.step = query.range / 20;
  constexpr int64_t kPointsMax = 11'000;  // Prometheus' own limit.
  if (query.range.count() > 0 && query.range / query.step > kPointsMax)
    return node.Refuse(fmt::format("has more than {} steps in its range", kPointsMax));
  TRY(map.Finish());
  return query;
}

}  // namespace

std::vector<std::string> EntityNames(SignalScope scope, const SignalEntities& entities) {
  std::vector<std::string> names;
  for (Entity& entity : EntitiesOf(scope, entities)) names.push_back(std::move(entity.name));
  return names;
}

std::vector<ExpandedQuery> ExpandQuery(const SignalQuery& query, const SignalEntities& entities) {
  const std::array<std::string, 4> all = TextsOfAll(entities);
  const std::string text = Replace(query.query, [&](std::string_view name) -> const std::string* {
    const auto found = std::find(std::begin(kOfAll), std::end(kOfAll), name);
    return found == std::end(kOfAll) ? nullptr : &all[found - std::begin(kOfAll)];
  });
  const auto placeholders = PlaceholdersOf(query.scope);
  bool is_alone = false;
  Replace(text, [&](std::string_view) -> const std::string* {
    is_alone = true;
    return nullptr;
  });
  if (!is_alone) return {{.text = text, .entity = "", .is_batched = true}};
  std::vector<ExpandedQuery> expanded;
  for (const Entity& entity : EntitiesOf(query.scope, entities)) {
    expanded.push_back({.text = Replace(text,
                                        [&](std::string_view name) -> const std::string* {
                                          const auto found = std::find(placeholders.begin(),
                                                                       placeholders.end(), name);
                                          return found == placeholders.end()
                                                     ? nullptr
                                                     : &entity.values[found - placeholders.begin()];
                                        }),
                        .entity = entity.name,
                        .is_batched = false});
  }
  return expanded;
}

Result<std::vector<SignalQuery>> ParseSignalQueries(const YamlNode& node) {
  TRY_ASSIGN(YamlMap map, node.AsMap());
  std::vector<SignalQuery> queries;
  for (const auto& [name, value] : map.Entries()) {
    TRY_ASSIGN(SignalQuery query, ParseQuery(name, value));
    queries.push_back(std::move(query));
  }
  return queries;
}

}  // namespace rudderfish
