// SPDX-License-Identifier: Apache-2.0
#include "scenario/application_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/files.h"
#include "base/suggest.h"
#include "base/units.h"
#include "model/latency.h"
#include "scenario/call_tree.h"
#include "scenario/catalog_parser.h"
#include "scenario/pattern_parser.h"
#include "scenario/scenario.h"
#include "scenario/yaml_values.h"

namespace rudderfish {
namespace {

constexpr std::string_view kApplicationFormat = "application/v1";
constexpr double kLongestWarmUpMs = 86'400'000;
constexpr size_t kLongestObjectName = 253;  // A DNS subdomain.

struct ObjectKind {
  std::string_view word, kind;
};
constexpr std::array kObjectKinds = {
    ObjectKind{"deployment", "Deployment"}, ObjectKind{"statefulset", "StatefulSet"},
    ObjectKind{"daemonset", "DaemonSet"}, ObjectKind{"replicaset", "ReplicaSet"},
    ObjectKind{"job", "Job"}};

bool IsObjectName(std::string_view text) {
  if (text.empty() || text.size() > kLongestObjectName) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  });
}

Result<std::string> ObjectNameOf(const YamlNode& node) {
  TRY_ASSIGN(std::string name, node.AsString());
  if (!IsObjectName(name)) {
    return node.Expected("a name as Kubernetes has them (a-z, 0-9, - and .)");
  }
  return name;
}

// "deployment/aggregator"
Result<WorkloadObject> ObjectOf(const YamlNode& node) {
  TRY_ASSIGN(const std::string text, node.AsString());
  const size_t slash = text.find('/');
  if (slash == std::string::npos || !IsObjectName(std::string_view(text).substr(slash + 1))) {
    return node.Expected("KIND/NAME, such as deployment/aggregator");
  }
  const std::string_view word = std::string_view(text).substr(0, slash);
  std::vector<std::string_view> known;
  for (const ObjectKind& one : kObjectKinds) {
    if (one.word == word) {
      return WorkloadObject{.kind = std::string(one.kind), .name = text.substr(slash + 1)};
    }
    known.push_back(one.word);
  }
  const std::string near = DidYouMean(word, known);
  return node.Refuse(
      fmt::format("no kind of workload is called \"{}\"{}", word.substr(0, 60),
                  near.empty() ? fmt::format("; there are {}", fmt::join(known, ", ")) : near));
}

Result<std::vector<std::string>> LabelValues(const YamlNode& node) {
  TRY_ASSIGN(const std::vector<YamlNode> items, node.AsList());
  if (items.empty()) return node.Expected("at least one value");
  std::vector<std::string> values;
  for (const YamlNode& item : items) {
    TRY_ASSIGN(std::string value, item.AsString());
    values.push_back(std::move(value));
  }
  return values;
}

Result<LabelRequirement> RequirementOf(const YamlNode& node) {
  using Operator = LabelRequirement::Operator;
  static constexpr std::array<std::string_view, 4> kWords = {"In", "NotIn", "Exists",
                                                             "DoesNotExist"};
  TRY_ASSIGN(YamlMap map, node.AsMap());
  LabelRequirement requirement;
  TRY_ASSIGN(const YamlNode key, map.Required("key"));
  TRY_ASSIGN(requirement.key, NameOf(key));
  TRY_ASSIGN(const YamlNode op, map.Required("operator"));
  TRY_ASSIGN(const std::string word, op.AsString());
  const auto at = std::find(kWords.begin(), kWords.end(), word);
  if (at == kWords.end()) return op.Expected("In, NotIn, Exists or DoesNotExist");
  requirement.op = static_cast<Operator>(at - kWords.begin());
  const bool lists = requirement.op == Operator::kIn || requirement.op == Operator::kNotIn;
  const std::optional<YamlNode> values = map.Optional("values");
  if (lists && !values) return node.Refuse(fmt::format("missing key `values`: {} needs it", word));
  if (!lists && values) return values->Refuse(fmt::format("{} takes no values", word));
  if (lists) {
    TRY_ASSIGN(requirement.values, LabelValues(*values));
  }
  TRY(map.Finish());
  return requirement;
}

// What no node fulfils: of a kind that stands for the outside.
LabelSelector SelectsNothing() {
  return {
      .requirements = {
          {.key = "rudderfish.io/outside", .op = LabelRequirement::Operator::kIn, .values = {}}}};
}

class ApplicationReader {
 public:
  explicit ApplicationReader(CallsInFile calls) : calls_(calls) {}

  Result<Application> Read(const YamlNode& root) {
    if (root.IsNull()) return root.Refuse("expected an application, found an empty file");
    TRY_ASSIGN(YamlMap map, root.AsMap());
    TRY(ParseHead(kApplicationFormat, &map, &application_.name, &application_.law));
    if (const std::optional<YamlNode> space = map.Optional("namespace")) {
      TRY_ASSIGN(namespace_, ObjectNameOf(*space));
    }
    TRY_ASSIGN(const YamlNode layers, map.Required("layers"));
    TRY_ASSIGN(catalog_.layers, ParseLayers(layers, &layers_));
    TRY_ASSIGN(const YamlNode latency, map.Required("latency"));
    TRY(ReadLatency(latency));
    TRY_ASSIGN(const YamlNode kinds, map.Required("node_types"));
    TRY(ReadKinds(kinds));
    TRY_ASSIGN(const YamlNode workloads, map.Required("workloads"));
    TRY(ReadWorkloads(workloads));
    TRY(ReadCalls(&map));
    TRY(map.Finish());
    return std::move(application_);
  }

 private:
  Result<void> ReadCalls(YamlMap* map) {
    if (calls_ == CallsInFile::kOptional && !map->Optional("endpoints")) {
      application_.calls = BuildCallGraph(application_.name, catalog_.kind_count(), {});
      return {};
    }
    TRY_ASSIGN(const YamlNode endpoints, map->Required("endpoints"));
    const PatternContext context{.catalog = application_.catalog.get(),
                                 .workloads = &workloads_,
                                 .starts = starts_,
                                 .executions = executions_};
    TRY_ASSIGN(application_.calls, ParsePattern(application_.name, endpoints, context));
    return {};
  }

  static Result<Distribution> FixedLatency(const YamlNode& node) {
    TRY_ASSIGN(const double ms, QuantityOf(node, ParseLatencyMs));
    return Distribution::Constant(ms);
  }

  Result<void> ReadLatency(const YamlNode& node) {
    TRY_ASSIGN(const std::vector<Distribution> latency_ms,
               ParseLatencies(node, catalog_.layers, layers_, FixedLatency));
    application_.network.layers = catalog_.layer_count();
    for (const Distribution& one : latency_ms) {
      application_.network.latency_ms.push_back(one.values()[0]);
    }
    return {};
  }

  Result<void> ReadKinds(const YamlNode& node) {
    TRY_ASSIGN(YamlMap map, node.AsMap());
    for (const auto& [name, value] : map.Entries()) {
      if (!IsName(name)) return value.Refuse(fmt::format("expected {} as key", kNameInWords));
      TRY_ASSIGN(YamlMap fields, value.AsMap());
      TRY_ASSIGN(NodeKind kind, ParseNodeKind(name, &fields, layers_));
      LabelSelector selector = SelectsNothing();
      if (const std::optional<YamlNode> nodes = fields.Optional("nodes")) {
        TRY_ASSIGN(selector, ParseLabelSelector(*nodes));
      }
      TRY_ASSIGN(const NodeCosts costs, ParseNodeCosts(&fields));
      TRY(fields.Finish());
      catalog_.kinds.push_back(std::move(kind));
      application_.kind_nodes.push_back(std::move(selector));
      application_.kind_costs.push_back(costs);
    }
    if (catalog_.kinds.empty() || catalog_.kind_count() > kMaxKinds) {
      return node.Refuse(
          fmt::format("expected 1 to {} node types, found {}", kMaxKinds, catalog_.kind_count()));
    }
    return {};
  }

  Result<void> ReadWorkloads(const YamlNode& node) {
    TRY_ASSIGN(YamlMap map, node.AsMap());
    const auto entries = map.Entries();
    if (entries.empty() || entries.size() > kMaxWorkloads) {
      return node.Refuse(
          fmt::format("expected 1 to {} workloads, found {}", kMaxWorkloads, entries.size()));
    }
    std::vector<YamlNode> executions;
    for (const auto& [name, value] : entries) {
      if (!IsName(name)) return value.Refuse(fmt::format("expected {} as key", kNameInWords));
      if (name == "calls" || name == "parallel") {
        return value.Refuse(
            "a workload cannot have this name: it is a keyword where calls are listed");
      }
      workloads_.Add(name);
      TRY(ReadWorkload(name, value, &executions));
    }
    application_.catalog = std::make_shared<const Catalog>(catalog_);
    executions_.resize(entries.size());
    for (size_t w = 0; w < entries.size(); ++w) {
      if (executions[w].IsNull()) {
        if (calls_ == CallsInFile::kOptional) executions_[w].assign(catalog_.kinds.size(), 0.0);
        continue;
      }
      TRY_ASSIGN(executions_[w],
                 ParseExecution(executions[w], catalog_, static_cast<WorkloadId>(w), starts_[w]));
    }
    return {};
  }

  Result<void> ReadWorkload(const std::string& name, const YamlNode& node,
                            std::vector<YamlNode>* executions) {
    TRY_ASSIGN(YamlMap fields, node.AsMap());
    Workload workload{.name = name};
    application_.warm_up_s.push_back(0);
    const std::optional<YamlNode> object = fields.Optional("object");
    const std::optional<YamlNode> external = fields.Optional("external");
    if (object.has_value() == external.has_value()) {
      return (object ? *external : node)
          .Refuse(
              "expected either `object` (KIND/NAME in the cluster) or `external` (a layer "
              "outside)");
    }
    if (object) {
      TRY(ReadObject(*object, &fields));
      TRY_ASSIGN(workload.movable, fields.OptionalBool("movable", true));
      if (const auto warm_up = fields.Optional("warm_up")) {
        TRY_ASSIGN(application_.warm_up_s.back(), WarmUpOf(*warm_up));
      }
    } else {
      TRY(ReadExternal(*external));
      workload.movable = false;
    }
    executions->push_back(fields.Optional("execution").value_or(YamlNode()));
    TRY(fields.Finish());
    catalog_.workloads.push_back(std::move(workload));
    return {};
  }

  static Result<double> WarmUpOf(const YamlNode& node) {
    TRY_ASSIGN(const std::string text, node.AsString());
    const Result<double> ms = ParseDurationMs(text);
    if (!ms) return node.Refuse(ms.error().message);
    if (*ms < 0 || *ms > kLongestWarmUpMs) return node.Expected("from 0s to 24h");
    return *ms / 1000;
  }

  // Its pods may be anywhere: every kind of node in the cluster needs an execution time.
  Result<void> ReadObject(const YamlNode& node, YamlMap* fields) {
    TRY_ASSIGN(WorkloadObject object, ObjectOf(node));
    object.object_namespace = namespace_;
    if (const std::optional<YamlNode> space = fields->Optional("namespace")) {
      TRY_ASSIGN(object.object_namespace, ObjectNameOf(*space));
    }
    const auto& objects = application_.objects;
    const auto same = std::find(objects.begin(), objects.end(), object);
    if (same != objects.end()) {
      return node.Refuse(fmt::format("is the object of `workloads.{}` already",
                                     catalog_.workloads[same - objects.begin()].name));
    }
    application_.objects.push_back(std::move(object));
    application_.external_layers.push_back(kNone);
    starts_.emplace_back();
    for (const NodeKind& kind : catalog_.kinds) {
      const size_t k = &kind - catalog_.kinds.data();
      if (application_.kind_nodes[k] == SelectsNothing()) continue;
      starts_.back().initial_layers.push_back(kind.layer);
    }
    std::sort(starts_.back().initial_layers.begin(), starts_.back().initial_layers.end());
    return {};
  }

  Result<void> ReadExternal(const YamlNode& node) {
    TRY_ASSIGN(const LayerId layer, ParseLayerName(node, layers_));
    const bool has_kind = std::any_of(catalog_.kinds.begin(), catalog_.kinds.end(),
                                      [&](const NodeKind& kind) { return kind.layer == layer; });
    if (!has_kind) {
      return node.Refuse(
          fmt::format("no node type lies in layer {}; add one, without `nodes` if none of the "
                      "cluster's are there",
                      catalog_.layers[layer].name));
    }
    application_.objects.emplace_back();
    application_.external_layers.push_back(layer);
    starts_.push_back({.replicas = Distribution::Constant(1), .initial_layers = {layer}});
    return {};
  }

  const CallsInFile calls_;
  Application application_;
  Catalog catalog_;
  std::string namespace_ = "default";
  NameIndex layers_{"layer"}, workloads_{"workload"};
  std::vector<WorkloadStart> starts_;  // [workload] Where its pods can be, for execution times.
  std::vector<std::vector<double>> executions_;  // [workload][kind]; empty: no default.
};

}  // namespace

Result<LabelSelector> ParseLabelSelector(const YamlNode& node) {
  TRY_ASSIGN(YamlMap map, node.AsMap());
  LabelSelector selector;
  if (const std::optional<YamlNode> labels = map.Optional("matchLabels")) {
    TRY_ASSIGN(YamlMap pairs, labels->AsMap());
    for (const auto& [key, value] : pairs.Entries()) {
      if (!IsName(key)) return value.Refuse(fmt::format("expected {} as key", kNameInWords));
      TRY_ASSIGN(std::string text, value.AsString());
      selector.requirements.push_back(
          {.key = key, .op = LabelRequirement::Operator::kIn, .values = {std::move(text)}});
    }
  }
  TRY_ASSIGN(const std::vector<YamlNode> expressions, map.OptionalList("matchExpressions"));
  for (const YamlNode& expression : expressions) {
    TRY_ASSIGN(LabelRequirement requirement, RequirementOf(expression));
    selector.requirements.push_back(std::move(requirement));
  }
  TRY(map.Finish());
  return selector;
}

Result<Application> ParseApplication(std::string_view text, std::string_view source_name,
                                     CallsInFile calls) {
  TRY_ASSIGN(const YamlNode root, ParseYaml(text, source_name));
  return ApplicationReader(calls).Read(root);
}

Result<Application> LoadApplication(const std::filesystem::path& path, CallsInFile calls) {
  TRY_ASSIGN(const std::string text, ReadFile(path));
  return ParseApplication(text, path.string(), calls);
}

}  // namespace rudderfish
