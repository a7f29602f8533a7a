// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/units.h"
#include "model/latency.h"
#include "scenario/arrivals_parser.h"
#include "scenario/catalog_parser.h"
#include "scenario/load_parser.h"
#include "scenario/name_index.h"
#include "scenario/pattern_parser.h"
#include "scenario/scenario.h"
#include "scenario/yaml_values.h"

namespace rudderfish {
namespace {

constexpr std::string_view kScenarioFormat = "scenario/v1";
constexpr std::string_view kReservedNames[] = {
    "calls", "parallel"};  // Keys that stand where workloads are called.
constexpr int kMaxRetries = 1'000'000;

// Reads a file from the top; each part refers to those before it.
class ScenarioReader {
 public:
  Result<Scenario> Read(const YamlNode& root) {
    if (root.IsNull()) return root.Refuse("expected a scenario, found an empty file");
    TRY_ASSIGN(YamlMap map, root.AsMap());
    TRY(ReadHead(&map));
    if (const std::optional<YamlNode> regions = map.Optional("regions")) {
      TRY(ReadRegions(*regions));
      TRY(map.Finish());
      return std::move(scenario_);
    }
    TRY_ASSIGN(const YamlNode layers, map.Required("layers"));
    TRY_ASSIGN(catalog_.layers, ParseLayers(layers, &layers_));
    TRY_ASSIGN(const YamlNode latency, map.Required("latency"));
    TRY_ASSIGN(scenario_.latency_ms, ParseLatencies(latency, catalog_.layers, layers_, LatencyOf));
    TRY_ASSIGN(const YamlNode kinds, map.Required("node_types"));
    TRY(ReadKinds(kinds));
    // Pods that come and go may be all there is to a scenario, and a trace bring nodes and
    // workloads.
    const std::optional<YamlNode> arrivals = map.Optional("arrivals");
    has_arrivals_ = arrivals.has_value();
    TRY_ASSIGN(const YamlNode nodes, RequiredUnlessArrivals(&map, "nodes"));
    TRY(ReadNodes(nodes));
    TRY_ASSIGN(const YamlNode workloads, RequiredUnlessArrivals(&map, "workloads"));
    TRY(ReadWorkloads(workloads));
    TRY_ASSIGN(const YamlNode patterns, RequiredUnlessArrivals(&map, "patterns"));
    TRY(ReadPatterns(patterns));
    TRY(ReadWeights(map.Optional("pattern_weights")));
    if (arrivals) TRY(ReadArrivals(*arrivals));
    TRY(CheckLatencyLimits());
    TRY(ReadLoad(map.Optional("load")));
    TRY(ReadObjective(map.Optional("objective")));
    TRY_ASSIGN(const int64_t retries, map.OptionalInt("retries", 1, kMaxRetries, 100));
    scenario_.retry_limit = static_cast<int>(retries);
    scenario_.task = map.Optional("task").value_or(YamlNode());
    TRY(map.Finish());
    WorkloadId culprit = kNone;
    const std::string why = WhyInfeasible(scenario_, &culprit);
    if (!why.empty()) return (culprit == kNone ? workloads : workload_nodes_[culprit]).Refuse(why);
    return std::move(scenario_);
  }

 private:
  // They are the whole world: it has neither nodes nor workloads beside them.
  Result<void> ReadRegions(const YamlNode& node) {
    TRY_ASSIGN(RegionWorld world, ParseRegions(node));
    world.seed = scenario_.seed;
    scenario_.regions = std::make_shared<const RegionWorld>(std::move(world));
    scenario_.catalog = std::make_shared<const Catalog>();
    scenario_.names = std::make_shared<const Names>();
    return {};
  }

  // Null if it is absent and may be.
  Result<YamlNode> RequiredUnlessArrivals(YamlMap* map, std::string_view key) const {
    if (!has_arrivals_) return map->Required(key);
    return map->Optional(key).value_or(YamlNode());
  }

  Result<void> ReadArrivals(const YamlNode& node) {
    TRY_ASSIGN(
        Arrivals arrivals,
        ParseArrivals(node, {.workloads = &workloads_, .layers = &layers_, .nodes = &nodes_}));
    if (scenario_.names->nodes.empty() && arrivals.trace.nodes_file.empty())
      return node.Refuse("there is no node: the scenario needs `nodes`, or the trace does");
    scenario_.arrivals = std::make_shared<const Arrivals>(std::move(arrivals));
    return {};
  }

  bool HasUsers() const {
    return scenario_.arrivals != nullptr && scenario_.arrivals->users != kNone;
  }

  Result<void> CheckLatencyLimits() const {
    if (!latency_limit_ || HasUsers()) return {};
    return latency_limit_->Refuse(
        "a limit of latency counts from the users: say in `arrivals.users` which layer they are "
        "in");
  }

  Result<void> ReadLoad(const std::optional<YamlNode>& node) {
    if (!node) return {};
    if (scenario_.patterns.empty())
      return node->Refuse("requests need `patterns`: who calls whom to answer them");
    const CallGraph& calls = *scenario_.patterns[0];
    if (std::ranges::all_of(calls.endpoints,
                            [](const Endpoint& e) { return e.rate_per_second <= 0; }))
      return node->Refuse(fmt::format(
          "there are no requests: every endpoint of the pattern {} has a rate of 0", calls.name));
    TRY_ASSIGN(Load load, ParseLoad(*node, workloads_, scenario_.patterns[0]));
    TRY(CheckQuota(*node, load));
    scenario_.load = std::make_shared<const Load>(std::move(load));
    return {};
  }

  // Of what is called, as a quota counts it.
  Result<void> CheckQuota(const YamlNode& node, const Load& load) const {
    std::vector<char> is_called(load.pods.size(), 0);
    for (const Call& call : scenario_.patterns[0]->calls) {
      if (call.caller != kNone) is_called[call.workload] = 1;
    }
    int64_t pods = 0, cpu_millis = 0;
    for (size_t w = 0; w < load.pods.size(); ++w) {
      if (!is_called[w]) continue;
      pods += load.pods[w].replicas_min;
      cpu_millis += load.pods[w].replicas_min * scenario_.catalog->workloads[w].requests.cpu_millis;
    }
    if (pods <= load.limits.pods_max && cpu_millis <= load.limits.cpu_millis_max) return {};
    return node.Refuse(
        fmt::format("the fewest pods that `replicas` allow, {} of {:.4g} cores, are beyond `quota`",
                    pods, static_cast<double>(cpu_millis) / 1000));
  }

  Result<void> ReadObjective(const std::optional<YamlNode>& node) {
    if (!node) return {};
    TRY_ASSIGN(const Objective objective, ParseObjective(*node));
    if (objective.WeightOf(ObjectiveTerm::kLatency) > 0 && !HasUsers())
      return node->Refuse(
          "latency counts from the users: say in `arrivals.users` which layer they are in");
    if (objective.WeightOf(ObjectiveTerm::kCalls) > 0 && scenario_.patterns.empty())
      return node->Refuse("calls count by who calls whom: say so in `patterns`");
    scenario_.objective = objective;
    return {};
  }

  Result<void> ReadHead(YamlMap* map) {
    TRY(ParseHead(kScenarioFormat, map, &scenario_.name, &scenario_.law));
    TRY_ASSIGN(const int64_t seed,
               map->OptionalInt("seed", 0, std::numeric_limits<int64_t>::max(), 1));
    scenario_.seed = static_cast<uint64_t>(seed);
    if (const std::optional<YamlNode> source = map->Optional("source")) {
      TRY_ASSIGN(YamlMap fields, source->AsMap());
      TRY_ASSIGN(const std::string system, fields.RequiredString("system"));
      if (system != "reach")
        return (*fields.Optional("system")).Expected("reach, the one source there is");
      TRY_ASSIGN(const YamlNode config, fields.Required("config"));
      TRY_ASSIGN(scenario_.source_config, NameOf(config));
      TRY(fields.Finish());
    }
    return {};
  }

  static Result<Distribution> LatencyOf(const YamlNode& node) {
    return DistributionOf(node, ParseLatencyMs);
  }

  Result<void> ReadKinds(const YamlNode& node) {
    TRY_ASSIGN(YamlMap map, node.AsMap());
    for (const auto& [name, value] : map.Entries()) {
      if (!IsName(name)) return value.Refuse(fmt::format("expected {} as key", kNameInWords));
      TRY_ASSIGN(YamlMap fields, value.AsMap());
      TRY_ASSIGN(NodeKind kind, ParseNodeKind(name, &fields, layers_));
      TRY_ASSIGN(const NodeCosts costs, ParseNodeCosts(&fields));
      TRY(fields.Finish());
      scenario_.kind_costs.push_back(costs);
      kinds_.Add(name);
      catalog_.kinds.push_back(std::move(kind));
    }
    if (catalog_.kinds.empty() || catalog_.kind_count() > kMaxKinds) {
      return node.Refuse(
          fmt::format("expected 1 to {} node types, found {}", kMaxKinds, catalog_.kind_count()));
    }
    return {};
  }

  Result<void> ReadNodes(const YamlNode& node) {
    std::vector<YamlNode> groups;
    if (!node.IsNull() || !has_arrivals_) {
      TRY_ASSIGN(groups, node.AsList());
    }
    auto names = std::make_shared<Names>();
    std::vector<int> ordinal(catalog_.kind_count(), 0);
    for (const YamlNode& item : groups) {
      TRY_ASSIGN(YamlMap fields, item.AsMap());
      NodeGroup group;
      TRY_ASSIGN(const YamlNode type, fields.Required("type"));
      TRY_ASSIGN(const std::string type_name, type.AsString());
      group.kind = kinds_.Find(type_name);
      if (group.kind == kNone) return type.Refuse(kinds_.Unknown(type_name));
      TRY_ASSIGN(const std::vector<std::string> own_names, ReadNodeNames(&fields));
      group.count = static_cast<int>(own_names.size());
      if (own_names.empty()) {
        TRY_ASSIGN(const int64_t count, fields.RequiredInt("count", 0, kMaxNodes));
        group.count = static_cast<int>(count);
      }
      TRY_ASSIGN(const YamlNode cpu, fields.Required("cpu"));
      TRY_ASSIGN(group.cpu_millis, DistributionOf(cpu, ParseCores));
      TRY_ASSIGN(const YamlNode memory, fields.Required("memory"));
      TRY_ASSIGN(group.memory_bytes, DistributionOf(memory, ParseMemory));
      if (const std::optional<YamlNode> background = fields.Optional("background")) {
        TRY_ASSIGN(group.background, DistributionOf(*background, ParseFraction));
      }
      TRY_ASSIGN(const int64_t gpus, fields.OptionalInt("gpus", 0, kMaxDevices, 0));
      group.devices = static_cast<int>(gpus);
      TRY(fields.Finish());
      if (names->nodes.size() + group.count > kMaxNodes) {
        return item.Refuse(fmt::format("more than {} nodes in all", kMaxNodes));
      }
      for (int i = 0; i < group.count; ++i) {
        const int number = ++ordinal[group.kind];
        names->nodes.push_back(own_names.empty() ? fmt::format("{}-{}", type_name, number)
                                                 : own_names[i]);
        if (!nodes_.Add(names->nodes.back())) {
          return item.Refuse(fmt::format("two nodes are called {}", names->nodes.back()));
        }
      }
      scenario_.node_groups.push_back(std::move(group));
    }
    if (names->nodes.empty() && !has_arrivals_)
      return node.Refuse("expected at least one node, found none");
    scenario_.names = std::move(names);
    return {};
  }

  // Empty if the group counts its nodes instead.
  static Result<std::vector<std::string>> ReadNodeNames(YamlMap* fields) {
    std::vector<std::string> names;
    const std::optional<YamlNode> node = fields->Optional("names");
    if (!node) return names;
    if (const std::optional<YamlNode> count = fields->Optional("count")) {
      return count->Refuse("give either `count` or `names`, not both");
    }
    TRY_ASSIGN(const std::vector<YamlNode> items, node->AsList());
    for (const YamlNode& item : items) {
      TRY_ASSIGN(std::string name, NameOf(item));
      names.push_back(std::move(name));
    }
    if (names.empty()) return node->Refuse("expected at least one name, found none");
    return names;
  }

  Result<void> ReadWorkloads(const YamlNode& node) {
    std::vector<std::pair<std::string, YamlNode>> entries;
    if (!node.IsNull() || !has_arrivals_) {
      TRY_ASSIGN(YamlMap map, node.AsMap());
      entries = map.Entries();
    }
    const size_t most = std::min<size_t>(
        kMaxWorkloads, 100'000'000 / std::max<size_t>(scenario_.names->nodes.size(), 1));
    if ((entries.empty() && !has_arrivals_) || entries.size() > most) {
      return node.Refuse(fmt::format("expected 1 to {} workloads for {} nodes, found {}", most,
                                     scenario_.names->nodes.size(), entries.size()));
    }
    int pods = 0;
    std::vector<YamlNode> executions;
    for (const auto& [name, value] : entries) {
      if (!IsName(name)) return value.Refuse(fmt::format("expected {} as key", kNameInWords));
      if (std::find(std::begin(kReservedNames), std::end(kReservedNames), name) !=
          std::end(kReservedNames)) {
        return value.Refuse(
            "a workload cannot have this name: it is a keyword where calls are listed");
      }
      workloads_.Add(name);
      workload_nodes_.push_back(value);
      TRY(ReadWorkload(name, value, &executions));
      pods += catalog_.workloads.back().replicas_max;
      if (pods > kMaxPods) return value.Refuse(fmt::format("more than {} pods in all", kMaxPods));
    }
    scenario_.catalog = std::make_shared<const Catalog>(catalog_);
    executions_.resize(entries.size());
    for (size_t w = 0; w < entries.size(); ++w) {
      if (executions[w].IsNull()) continue;
      TRY_ASSIGN(executions_[w], ParseExecution(executions[w], catalog_, static_cast<WorkloadId>(w),
                                                scenario_.starts[w]));
    }
    return {};
  }

  Result<void> ReadWorkload(const std::string& name, const YamlNode& node,
                            std::vector<YamlNode>* executions) {
    TRY_ASSIGN(YamlMap fields, node.AsMap());
    Workload workload{.name = name};
    WorkloadStart start;
    TRY_ASSIGN(YamlMap requests, fields.RequiredMap("requests"));
    TRY_ASSIGN(const YamlNode cpu, requests.Required("cpu"));
    TRY_ASSIGN(workload.requests.cpu_millis, RequestOf(cpu, ParseCores, ParseCpuMillis));
    TRY_ASSIGN(const YamlNode memory, requests.Required("memory"));
    TRY_ASSIGN(workload.requests.memory_bytes, RequestOf(memory, ParseMemory, ParseMemoryBytes));
    TRY_ASSIGN(workload.devices, ReadDevices(requests.Optional("gpus")));
    TRY(requests.Finish());
    TRY_ASSIGN(const YamlNode replicas, RequiredUnlessArrivals(&fields, "replicas"));
    if (!replicas.IsNull()) {
      TRY_ASSIGN(start.replicas, DistributionOf(replicas, ParseReplicas));
    }
    TRY(ReadPlacementLimits(&fields, &workload));
    if (!replicas.IsNull() && (workload.devices.count > 0 || workload.node_kinds != kAnyKind))
      return replicas.Refuse("pods with gpus or node_types arrive; none are there from the start");
    workload.replicas_max = static_cast<int>(start.replicas.max());
    TRY_ASSIGN(workload.movable, fields.OptionalBool("movable", true));
    TRY(ReadInitialLayers(fields.Optional("layers"), node, &start));
    executions->push_back(fields.Optional("execution").value_or(YamlNode()));
    TRY(fields.Finish());
    catalog_.workloads.push_back(std::move(workload));
    scenario_.starts.push_back(std::move(start));
    return {};
  }

  // 2 is two whole devices, 0.46 or 460m a share of one.
  static Result<DeviceRequest> ReadDevices(const std::optional<YamlNode>& node) {
    if (!node) return DeviceRequest{};
    TRY_ASSIGN(const int64_t millis, RequestOf(*node, ParseCores, ParseCpuMillis));
    if (millis <= kDeviceMillis)
      return DeviceRequest{static_cast<int16_t>(millis > 0 ? 1 : 0), static_cast<int16_t>(millis)};
    if (millis % kDeviceMillis != 0 || millis / kDeviceMillis > kMaxDevices) {
      return node->Refuse(
          fmt::format("expected a share of one GPU, or 1 to {} whole ones", kMaxDevices));
    }
    return DeviceRequest{static_cast<int16_t>(millis / kDeviceMillis), kDeviceMillis};
  }

  // Where pods of the workload may run, and how far from the users.
  Result<void> ReadPlacementLimits(YamlMap* fields, Workload* workload) {
    if (const std::optional<YamlNode> types = fields->Optional("node_types")) {
      TRY_ASSIGN(const std::vector<YamlNode> items, types->AsList());
      if (items.empty()) return types->Refuse("expected at least one node type");
      workload->node_kinds = 0;
      for (const YamlNode& item : items) {
        TRY_ASSIGN(const std::string name, item.AsString());
        const KindId kind = kinds_.Find(name);
        if (kind == kNone) return item.Refuse(kinds_.Unknown(name));
        workload->node_kinds |= NodeKindSet{1} << kind;
      }
    }
    LatencyLimits& limits = workload->latency_limits;
    if (const std::optional<YamlNode> soft = fields->Optional("latency_soft")) {
      TRY_ASSIGN(limits.soft_ms, QuantityOf(*soft, ParseLatencyMs));
      latency_limit_ = soft;
    }
    if (const std::optional<YamlNode> hard = fields->Optional("latency_hard")) {
      TRY_ASSIGN(limits.hard_ms, QuantityOf(*hard, ParseLatencyMs));
      if (fields->Optional("latency_soft") && limits.soft_ms > limits.hard_ms)
        return hard->Refuse("the hard limit is below the soft one");
      latency_limit_ = hard;
    }
    return ReadMeasured(fields->Optional("measured"), &workload->measured);
  }

  static Result<void> ReadMeasured(const std::optional<YamlNode>& node, MeasuredUsage* measured) {
    if (!node) return {};
    TRY_ASSIGN(YamlMap fields, node->AsMap());
    for (const auto& [key, field] : kMeasuredKeys) {
      TRY_ASSIGN(measured->*field, fields.OptionalDouble(key, 0, kMostMeasured, 0));
    }
    return fields.Finish();
  }

  // Requests are rounded up, as Kubernetes does, where what nodes have is rounded down.
  static Result<int64_t> RequestOf(const YamlNode& node, QuantityParser bounded,
                                   Result<int64_t> (*exact)(std::string_view, Rounding)) {
    TRY(QuantityOf(node, bounded));
    TRY_ASSIGN(const std::string text, node.AsString());
    return exact(text, Rounding::kUp);
  }

  Result<void> ReadInitialLayers(const std::optional<YamlNode>& node, const YamlNode& workload,
                                 WorkloadStart* start) {
    if (!node) {
      for (LayerId layer = 0; layer < catalog_.layer_count(); ++layer) {
        if (catalog_.layers[layer].accepts_moves) start->initial_layers.push_back(layer);
      }
      if (start->initial_layers.empty()) {
        return workload.Refuse(
            "missing key `layers`: no layer accepts moves, so say where its pods are");
      }
      return {};
    }
    TRY_ASSIGN(const std::vector<YamlNode> names, node->AsList());
    for (const YamlNode& name : names) {
      TRY_ASSIGN(const LayerId layer, ParseLayerName(name, layers_));
      start->initial_layers.push_back(layer);
    }
    std::sort(start->initial_layers.begin(), start->initial_layers.end());
    const auto twice =
        std::adjacent_find(start->initial_layers.begin(), start->initial_layers.end());
    if (start->initial_layers.empty() || twice != start->initial_layers.end()) {
      return node->Refuse("expected at least one layer, and each once");
    }
    return {};
  }

  Result<void> ReadPatterns(const YamlNode& node) {
    const PatternContext context{.catalog = scenario_.catalog.get(),
                                 .workloads = &workloads_,
                                 .starts = scenario_.starts,
                                 .executions = executions_};
    if (node.IsNull() && has_arrivals_) return {};
    TRY_ASSIGN(YamlMap map, node.AsMap());
    for (const auto& [name, value] : map.Entries()) {
      if (!IsName(name)) return value.Refuse(fmt::format("expected {} as key", kNameInWords));
      TRY_ASSIGN(std::shared_ptr<const CallGraph> pattern, ParsePattern(name, value, context));
      scenario_.patterns.push_back(std::move(pattern));
      patterns_.Add(name);
    }
    if (patterns_.size() == 0 || patterns_.size() > kMaxPatterns) {
      return node.Refuse(
          fmt::format("expected 1 to {} patterns, found {}", kMaxPatterns, patterns_.size()));
    }
    return {};
  }

  Result<void> ReadWeights(const std::optional<YamlNode>& node) {
    constexpr double kLeast = 1e-6, kMost = 1e6;
    scenario_.pattern_weights.assign(scenario_.patterns.size(), 1.0);
    if (!node) return {};
    TRY_ASSIGN(YamlMap map, node->AsMap());
    for (const auto& [name, value] : map.Entries()) {
      const int pattern = patterns_.Find(name);
      if (pattern == kNone) return value.Refuse(patterns_.Unknown(name));
      TRY_ASSIGN(scenario_.pattern_weights[pattern], value.AsDouble(kLeast, kMost));
    }
    return {};
  }

  Scenario scenario_;
  Catalog catalog_;
  bool has_arrivals_ = false;
  NameIndex layers_{"layer"}, kinds_{"node type"}, nodes_{"node"}, workloads_{"workload"},
      patterns_{"pattern"};
  std::vector<YamlNode> workload_nodes_;
  std::optional<YamlNode> latency_limit_;        // Of some workload.
  std::vector<std::vector<double>> executions_;  // [workload][kind]; empty: no default.
};

}  // namespace

Result<Scenario> ParseScenario(std::string_view text, std::string_view source_name) {
  TRY_ASSIGN(const YamlNode root, ParseYaml(text, source_name));
  return ParseScenario(root);
}

Result<Scenario> ParseScenario(const YamlNode& root) { return ScenarioReader().Read(root); }

}  // namespace rudderfish
