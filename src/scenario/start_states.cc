// SPDX-License-Identifier: Apache-2.0
#include "scenario/start_states.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/files.h"
#include "base/json.h"
#include "base/suggest.h"
#include "scenario/name_index.h"
#include "scenario/yaml_values.h"

namespace rudderfish {
namespace {

// What rounding in the file's producer may have taken from a whole unit.
constexpr double kCoreSlack = 1e-6;    // Of a milli-core.
constexpr double kMemorySlack = 1e-3;  // Of a byte.
constexpr double kBelowZero = -1e-9;   // Of a core or GiB: still nothing, not less.
constexpr double kMostCores = 1e6;
constexpr double kMostGib = 1024.0 * 1024;

std::string_view WithoutReturn(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

Result<double> FreeIn(const JsonReader& node, std::string_view key, double most) {
  TRY_ASSIGN(const JsonReader reader, node.At(key));
  const Result<double> free = reader.AsDouble();
  if (free && *free < kBelowZero)
    return reader.Refuse("below 0: the pods there request more than the node has");
  if (!free || *free > most) return reader.Expected(RangeInWords("a number", 0.0, most));
  return std::max(0.0, *free);
}

class StartStateReader {
 public:
  StartStateReader(std::string_view source_name, const Scenario& scenario,
                   const StartStateFilter& filter)
      : source_name_(source_name),
        scenario_(scenario),
        catalog_(*scenario.catalog),
        filter_(filter) {
    for (const std::string& name : scenario.names->nodes) nodes_.Add(name);
    for (const Workload& workload : catalog_.workloads) workloads_.Add(workload.name);
    for (const Layer& layer : catalog_.layers) layers_.Add(layer.name);
    for (const auto& pattern : scenario.patterns) patterns_.Add(pattern->name);
    // A line of this cluster has no reason to be longer.
    longest_line_ =
        (size_t{1} << 20) + 1024 * (scenario.names->nodes.size() + scenario.pod_limit());
  }

  // Reads line `number`, from 0, into `states`, unless the filter leaves it out.
  Result<void> ReadLine(std::string_view line, int number, std::vector<StartState>* states) {
    const std::string where = fmt::format("{}:{}", source_name_, number + 1);
    if (line.size() > longest_line_) {
      return Invalid("{}: the line has {} bytes; more than {} are none for {} nodes and {} pods",
                     where, line.size(), longest_line_, scenario_.node_count(),
                     scenario_.pod_limit());
    }
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) {
      return Invalid("{}: the line is blank; every line holds one start state", where);
    }
    TRY_ASSIGN(const Json json, ParseJsonLine(line, source_name_, number + 1));
    const JsonReader root(json, where);
    TRY_ASSIGN(const bool wanted, IsWanted(root));
    if (!wanted) return {};
    StartState start{.line = number};
    TRY(ReadState(root, &start.state));
    states->push_back(std::move(start));
    return {};
  }

 private:
  Result<bool> IsWanted(const JsonReader& root) const {
    TRY_ASSIGN(const JsonReader config_reader, root.At("config"));
    TRY_ASSIGN(const std::string config, config_reader.AsString());
    TRY_ASSIGN(const JsonReader pattern_reader, root.At("pattern"));
    TRY_ASSIGN(const std::string pattern, pattern_reader.AsString());
    if (!filter_.config.empty() && filter_.config != config) return false;
    if (!filter_.pattern.empty() && filter_.pattern != pattern) return false;
    if (config != scenario_.config()) {
      return config_reader.Refuse(
          fmt::format("the line is of \"{}\", the scenario {} is of \"{}\"; "
                      "`--select config={}` takes lines that fit",
                      config, scenario_.name, scenario_.config(), scenario_.config()));
    }
    if (patterns_.Find(pattern) == kNone) {
      return pattern_reader.Refuse(
          fmt::format("the line is of \"{}\", which is no pattern of the scenario {}; "
                      "`--select config={},pattern={}` takes lines that fit",
                      pattern, scenario_.name, scenario_.config(), scenario_.patterns[0]->name));
    }
    return true;
  }

  Result<void> ReadState(const JsonReader& root, State* state) const {
    TRY_ASSIGN(const JsonReader pattern_reader, root.At("pattern"));
    TRY_ASSIGN(const std::string pattern, pattern_reader.AsString());
    state->catalog = scenario_.catalog;
    state->calls = scenario_.patterns[patterns_.Find(pattern)];
    TRY_ASSIGN(const JsonReader latency, root.At("latency_between_layer"));
    TRY(ReadNetwork(latency, &state->network));
    TRY_ASSIGN(const JsonReader nodes, root.At("nodes"));
    TRY(ReadNodes(nodes, &state->nodes));
    TRY_ASSIGN(const JsonReader pods, root.At("pods"));
    return ReadPods(pods, state);
  }

  Result<void> ReadNetwork(const JsonReader& reader, Network* network) const {
    network->layers = catalog_.layer_count();
    for (const Layer& from : catalog_.layers) {
      TRY_ASSIGN(const JsonReader row, reader.At(from.name));
      for (const Layer& to : catalog_.layers) {
        TRY_ASSIGN(const JsonReader cell, row.At(to.name));
        TRY_ASSIGN(const double latency_ms, cell.AsDouble(0, kMostLatencyMs));
        network->latency_ms.push_back(latency_ms);
      }
    }
    return {};
  }

  Result<void> ReadNodes(const JsonReader& reader, Nodes* nodes) const {
    nodes->kind = scenario_.KindsOfNodes();
    nodes->free.resize(nodes->kind.size());
    nodes->background_mbytes_per_s.assign(nodes->kind.size(), 0.0);
    std::vector<char> seen(nodes->kind.size(), 0);
    TRY_ASSIGN(const std::vector<JsonReader> items, reader.Elements());
    for (const JsonReader& item : items) {
      TRY_ASSIGN(const JsonReader name, item.At("name"));
      TRY_ASSIGN(const std::string node_name, name.AsString());
      const NodeId node = nodes_.Find(node_name);
      if (node == kNone) return name.Refuse(nodes_.Unknown(node_name));
      if (seen[node]++) return name.Refuse(fmt::format("the node {} is given twice", node_name));
      const NodeKind& kind = catalog_.kinds[nodes->kind[node]];
      TRY_ASSIGN(const JsonReader layer, item.At("layer"));
      TRY_ASSIGN(const std::string layer_name, layer.AsString());
      if (layer_name != catalog_.layers[kind.layer].name) {
        return layer.Refuse(fmt::format("expected {}, where the scenario has {}, found \"{}\"",
                                        catalog_.layers[kind.layer].name, node_name, layer_name));
      }
      TRY_ASSIGN(const FreeOfNode free, ReadFreeOfNode(item));
      nodes->free[node] = {
          static_cast<int64_t>(std::floor(free.cores * 1000 + kCoreSlack)),
          static_cast<int64_t>(std::floor(free.gib * kBytesPerGib + kMemorySlack))};
      TRY_ASSIGN(const std::optional<JsonReader> background, item.Find("background_mbytes_per_s"));
      if (background) {
        TRY_ASSIGN(nodes->background_mbytes_per_s[node],
                   background->AsDouble(0, kind.bandwidth_mbytes_per_s));
      }
    }
    for (NodeId node = 0; node < nodes->size(); ++node) {
      if (!seen[node])
        return reader.Refuse(fmt::format("the node {} is missing", scenario_.names->nodes[node]));
    }
    nodes->allocatable = nodes->free;
    return {};
  }

  Result<void> ReadPods(const JsonReader& reader, State* state) const {
    TRY_ASSIGN(const std::vector<JsonReader> items, reader.Elements());
    auto names = std::make_shared<Names>();
    names->nodes = scenario_.names->nodes;
    NameIndex pods("pod");
    std::vector<int> replicas(catalog_.workload_count(), 0);
    for (const JsonReader& item : items) {
      TRY_ASSIGN(const JsonReader name, item.At("name"));
      TRY_ASSIGN(const std::string pod_name, name.AsString());
      if (!IsName(pod_name)) return name.Expected(kNameInWords);
      if (!pods.Add(pod_name))
        return name.Refuse(fmt::format("the pod {} is given twice", pod_name));
      TRY_ASSIGN(const JsonReader service, item.At("service"));
      TRY_ASSIGN(const std::string service_name, service.AsString());
      const WorkloadId workload = workloads_.Find(service_name);
      if (workload == kNone) return service.Refuse(workloads_.Unknown(service_name));
      if (++replicas[workload] > catalog_.workloads[workload].replicas_max) {
        return service.Refuse(fmt::format("{} has more pods than replicas ({})", service_name,
                                          catalog_.workloads[workload].replicas_max));
      }
      TRY_ASSIGN(const JsonReader where, item.At("node"));
      TRY_ASSIGN(const std::string node_name, where.AsString());
      const NodeId node = nodes_.Find(node_name);
      if (node == kNone) return where.Refuse(nodes_.Unknown(node_name));
      state->pods.workload.push_back(workload);
      state->pods.node.push_back(node);
      state->nodes.allocatable[node] += catalog_.workloads[workload].requests;
      names->pods.push_back(pod_name);
    }
    if (items.empty()) return reader.Refuse("expected at least one pod");
    state->names = std::move(names);
    return {};
  }

  std::string source_name_;
  const Scenario& scenario_;
  const Catalog& catalog_;
  StartStateFilter filter_;
  NameIndex nodes_{"node"}, workloads_{"service"}, layers_{"layer"}, patterns_{"pattern"};
  size_t longest_line_ = 0;
};

}  // namespace

Result<FreeOfNode> ReadFreeOfNode(const JsonReader& node) {
  FreeOfNode free;
  TRY_ASSIGN(free.cores, FreeIn(node, "cpu_free", kMostCores));
  TRY_ASSIGN(free.gib, FreeIn(node, "mem_free", kMostGib));
  return free;
}

Result<StartStateFilter> ParseStartStateFilter(std::string_view text) {
  constexpr std::string_view kKeys[] = {"config", "pattern"};
  StartStateFilter filter;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    const std::string_view key = part.substr(0, part.find('='));
    const std::string_view value = part.substr(std::min(part.size(), key.size() + 1));
    std::string* field = key == "config"    ? &filter.config
                         : key == "pattern" ? &filter.pattern
                                            : nullptr;
    if (field == nullptr) {
      return Invalid("--select: expected config=... or pattern=..., found \"{}\"{}", part,
                     DidYouMean(key, kKeys));
    }
    if (value.empty())
      return Invalid("--select: `{}` lacks a value, as in config=7-21,pattern=chain", key);
    if (!field->empty()) return Invalid("--select: `{}` is given twice", key);
    *field = value;
  }
  if (filter.config.empty() && filter.pattern.empty()) {
    return Invalid("--select: expected config=... or pattern=..., found nothing");
  }
  return filter;
}

Result<StartState> ParseStartState(std::string_view line, std::string_view source_name, int number,
                                   const Scenario& scenario) {
  const StartStateFilter all;
  StartStateReader reader(source_name, scenario, all);
  std::vector<StartState> states;
  TRY(reader.ReadLine(WithoutReturn(line), number, &states));
  return std::move(states.front());
}

Result<std::vector<StartState>> ParseStartStates(std::string_view text,
                                                 std::string_view source_name,
                                                 const Scenario& scenario,
                                                 const StartStateFilter& filter) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return Invalid("{}: is empty; expected one start state a line", source_name);
  }
  StartStateReader reader(source_name, scenario, filter);
  std::vector<StartState> states;
  int number = 0;
  for (size_t begin = 0; begin < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    TRY(reader.ReadLine(WithoutReturn(text.substr(begin, end - begin)), number, &states));
    begin = end + 1;
  }
  if (states.empty()) {
    return Invalid("{}: none of its {} lines has {}{}{}", source_name, number,
                   filter.config.empty() ? "" : "config " + filter.config,
                   filter.config.empty() || filter.pattern.empty() ? "" : " and ",
                   filter.pattern.empty() ? "" : "pattern " + filter.pattern);
  }
  return states;
}

Result<std::vector<StartState>> LoadStartStates(const std::filesystem::path& path,
                                                const Scenario& scenario,
                                                const StartStateFilter& filter) {
  TRY_ASSIGN(const std::string text, ReadFile(path));
  return ParseStartStates(text, path.string(), scenario, filter);
}

std::string StartStateLine(const Scenario& scenario, const State& state) {
  const Catalog& catalog = *state.catalog;
  OrderedJson line;
  line["config"] = scenario.config();
  line["pattern"] = state.calls->name;
  OrderedJson& latency = line["latency_between_layer"] = OrderedJson::object();
  for (LayerId from = 0; from < catalog.layer_count(); ++from) {
    OrderedJson& row = latency[catalog.layers[from].name] = OrderedJson::object();
    for (LayerId to = 0; to < catalog.layer_count(); ++to) {
      row[catalog.layers[to].name] = state.network.LatencyMs(from, to);
    }
  }
  OrderedJson& nodes = line["nodes"] = OrderedJson::array();
  for (NodeId id = 0; id < state.nodes.size(); ++id) {
    OrderedJson node{
        {"name", NodeName(state, id)},
        {"layer", catalog.layers[state.kind_of(id).layer].name},
        {"cpu_free", static_cast<double>(state.nodes.free[id].cpu_millis) / 1000},
        {"mem_free", static_cast<double>(state.nodes.free[id].memory_bytes) / kBytesPerGib}};
    const double background = state.nodes.background_mbytes_per_s[id];
    if (background != 0) node["background_mbytes_per_s"] = background;
    nodes.push_back(std::move(node));
  }
  OrderedJson& pods = line["pods"] = OrderedJson::array();
  std::vector<int> ordinal(catalog.workload_count(), 0);
  const bool named = state.names != nullptr && !state.names->pods.empty();
  for (PodId id = 0; id < state.pods.size(); ++id) {
    const std::string& service = state.workload_of(id).name;
    const int position = ++ordinal[state.pods.workload[id]];  // PodName recounts for each pod.
    pods.push_back(
        {{"name", named ? state.names->pods[id] : fmt::format("{}-{}", service, position)},
         {"service", service},
         {"node", NodeName(state, state.pods.node[id])}});
  }
  return line.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace rudderfish
