// SPDX-License-Identifier: Apache-2.0
#include "scenario/pattern_parser.h"

#include <fmt/format.h>

#include <algorithm>

#include "scenario/call_tree.h"
#include "scenario/yaml_values.h"

namespace rudderfish {
namespace {

constexpr double kMostRate = 1e9;

// Reads one pattern. Recursion is as deep as the file is nested, which ParseYaml limits.
class PatternReader {
 public:
  explicit PatternReader(const PatternContext& context) : context_(context) {}

  Result<EndpointTree> ReadEndpoint(std::string name, const YamlNode& node) {
    EndpointTree endpoint{.name = std::move(name)};
    TRY_ASSIGN(YamlMap map, node.AsMap());
    TRY_ASSIGN(const YamlNode client, map.Required("client"));
    TRY_ASSIGN(endpoint.root.workload, WorkloadIn(client));
    endpoint.root.execution_ms.assign(context_.catalog->kind_count(), 0.0);
    TRY_ASSIGN(endpoint.rate_per_second, map.RequiredDouble("rate", 0, kMostRate));
    TRY_ASSIGN(const YamlNode qos, map.Required("qos"));
    TRY_ASSIGN(endpoint.qos_ms, QuantityOf(qos, ParseLatencyMs));
    TRY(ReadGroups(&map, &endpoint.root));
    TRY(map.Finish());
    return endpoint;
  }

 private:
  Result<WorkloadId> WorkloadIn(const YamlNode& node) const {
    TRY_ASSIGN(const std::string name, node.AsString());
    return WorkloadNamed(name, node);
  }

  Result<WorkloadId> WorkloadNamed(std::string_view name, const YamlNode& where) const {
    const WorkloadId workload = context_.workloads->Find(name);
    if (workload == kNone) return where.Refuse(context_.workloads->Unknown(name));
    return workload;
  }

  // `calls` or `parallel` of an endpoint or a call.
  Result<void> ReadGroups(YamlMap* map, CallTree* caller) {
    const std::optional<YamlNode> calls = map->Optional("calls");
    const std::optional<YamlNode> parallel = map->Optional("parallel");
    if (calls && parallel) {
      return parallel->Refuse(
          "expected either `calls` (one after another) or `parallel` (at once), found both");
    }
    callers_.push_back(caller->workload);
    if (calls) {
      TRY_ASSIGN(std::vector<CallTree> group, ReadSequence(*calls));
      caller->groups.push_back(std::move(group));
    } else if (parallel) {
      TRY_ASSIGN(const std::vector<YamlNode> branches, parallel->AsList());
      if (branches.empty()) return parallel->Expected("at least one call");
      for (const YamlNode& branch : branches) {
        TRY_ASSIGN(std::vector<CallTree> group, ReadBranch(branch));
        caller->groups.push_back(std::move(group));
      }
    }
    callers_.pop_back();
    return {};
  }

  Result<std::vector<CallTree>> ReadBranch(const YamlNode& node) {
    if (node.IsMap()) {
      TRY_ASSIGN(YamlMap map, node.AsMap());
      if (const std::optional<YamlNode> calls = map.Optional("calls")) {
        TRY(map.Finish());
        return ReadSequence(*calls);
      }
    }
    std::vector<CallTree> group(1);
    TRY_ASSIGN(group[0], ReadCall(node));
    return group;
  }

  Result<std::vector<CallTree>> ReadSequence(const YamlNode& node) {
    TRY_ASSIGN(const std::vector<YamlNode> items, node.AsList());
    if (items.empty()) return node.Refuse("expected at least one call, found an empty list");
    std::vector<CallTree> group;
    for (const YamlNode& item : items) {
      TRY_ASSIGN(CallTree call, ReadCall(item));
      group.push_back(std::move(call));
    }
    return group;
  }

  // `aggregator` or `aggregator: {...}`.
  Result<CallTree> ReadCall(const YamlNode& node) {
    if (++call_count_ > kMaxCalls)
      return node.Refuse(fmt::format("more than {} calls in one pattern", kMaxCalls));
    CallTree call;
    if (node.IsScalar()) {
      TRY_ASSIGN(call.workload, WorkloadIn(node));
      TRY(CheckNotCyclic(call.workload, node));
      return WithDefaultExecution(std::move(call), node);
    }
    if (!node.IsMap()) return node.Expected("a call: the name of a workload");
    TRY_ASSIGN(YamlMap named, node.AsMap());
    const auto entries = named.Entries();
    if (entries.size() != 1) {
      return node.Refuse(
          fmt::format("expected one call, `workload: {{...}}`, found a map with {} keys{}",
                      entries.size(), entries.empty() ? "" : "; each call is an item of its own"));
    }
    const auto& [name, body] = entries[0];
    TRY_ASSIGN(call.workload, WorkloadNamed(name, body));
    TRY(CheckNotCyclic(call.workload, body));
    if (body.IsNull()) return WithDefaultExecution(std::move(call), body);
    TRY_ASSIGN(YamlMap map, body.AsMap());
    if (const std::optional<YamlNode> data = map.Optional("data")) {
      TRY_ASSIGN(call.data_mbytes, QuantityOf(*data, ParsePayloadMbytes));
    }
    const std::optional<YamlNode> execution = map.Optional("execution");
    if (execution) {
      TRY_ASSIGN(call.execution_ms, ParseExecution(*execution, *context_.catalog, call.workload,
                                                   context_.starts[call.workload]));
    }
    TRY(ReadGroups(&map, &call));
    TRY(map.Finish());
    return execution ? Result<CallTree>(std::move(call))
                     : WithDefaultExecution(std::move(call), body);
  }

  Result<void> CheckNotCyclic(WorkloadId workload, const YamlNode& where) const {
    const auto first = std::find(callers_.begin(), callers_.end(), workload);
    if (first == callers_.end()) return {};
    std::vector<std::string_view> way;
    for (auto at = first; at != callers_.end(); ++at)
      way.push_back(context_.catalog->workloads[*at].name);
    way.push_back(way.front());
    return where.Refuse(fmt::format("the calls go round in a circle: {}", fmt::join(way, " -> ")));
  }

  Result<CallTree> WithDefaultExecution(CallTree call, const YamlNode& where) const {
    call.execution_ms = context_.executions[call.workload];
    if (!call.execution_ms.empty()) return call;
    const std::string& name = context_.catalog->workloads[call.workload].name;
    return where.Refuse(
        fmt::format("missing key `execution`: give it here or at `workloads.{}`", name));
  }

  const PatternContext& context_;
  std::vector<WorkloadId> callers_;  // From the client down to the call being read.
  int call_count_ = 0;
};

}  // namespace

bool CanRunOn(const Catalog& catalog, WorkloadId workload, const WorkloadStart& start,
              KindId kind) {
  const LayerId layer = catalog.kinds[kind].layer;
  const bool initially =
      std::binary_search(start.initial_layers.begin(), start.initial_layers.end(), layer);
  return initially || (catalog.workloads[workload].movable && catalog.layers[layer].accepts_moves);
}

Result<std::vector<double>> ParseExecution(const YamlNode& node, const Catalog& catalog,
                                           WorkloadId workload, const WorkloadStart& start) {
  const auto positive = [](std::string_view text) -> Result<double> {
    TRY_ASSIGN(const double ms, ParseLatencyMs(text));
    if (ms <= 0) return Invalid("expected a time above 0, found \"{}\"", text);
    return ms;
  };
  std::vector<double> execution(catalog.kind_count(), 0.0);
  if (node.IsScalar()) {
    TRY_ASSIGN(const double ms, QuantityOf(node, positive));
    execution.assign(execution.size(), ms);
    return execution;
  }
  if (!node.IsMap()) return node.Expected("a time, or a map of times by cpu_type");
  NameIndex types("cpu_type");
  for (const NodeKind& kind : catalog.kinds) types.Add(kind.cpu_type);
  TRY_ASSIGN(YamlMap map, node.AsMap());
  for (const auto& [type, value] : map.Entries()) {
    if (types.Find(type) == kNone) return value.Refuse(types.Unknown(type));
    TRY_ASSIGN(const double ms, QuantityOf(value, positive));
    for (KindId kind = 0; kind < catalog.kind_count(); ++kind) {
      if (catalog.kinds[kind].cpu_type == type) execution[kind] = ms;
    }
  }
  for (KindId kind = 0; kind < catalog.kind_count(); ++kind) {
    if (execution[kind] > 0 || !CanRunOn(catalog, workload, start, kind)) continue;
    return node.Refuse(fmt::format("missing key `{}`: the cpu_type of {}, where {} can run",
                                   catalog.kinds[kind].cpu_type, catalog.kinds[kind].name,
                                   catalog.workloads[workload].name));
  }
  return execution;
}

Result<std::shared_ptr<const CallGraph>> ParsePattern(std::string name, const YamlNode& node,
                                                      const PatternContext& context) {
  PatternReader reader(context);
  TRY_ASSIGN(YamlMap map, node.AsMap());
  std::vector<EndpointTree> endpoints;
  for (const auto& [key, value] : map.Entries()) {
    if (!IsName(key)) return value.Refuse(fmt::format("expected {} as key", kNameInWords));
    TRY_ASSIGN(EndpointTree endpoint, reader.ReadEndpoint(key, value));
    endpoints.push_back(std::move(endpoint));
  }
  if (endpoints.empty()) return node.Refuse("expected at least one endpoint");
  return BuildCallGraph(std::move(name), context.catalog->kind_count(), endpoints);
}

}  // namespace rudderfish
