// SPDX-License-Identifier: Apache-2.0
#include "scenario/reach_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/files.h"
#include "base/json.h"
#include "base/units.h"
#include "scenario/call_tree.h"
#include "scenario/name_index.h"
#include "scenario/pattern_parser.h"
#include "scenario/yaml_values.h"

namespace rudderfish {
namespace {

constexpr std::array<std::string_view, 3> kLayers = {"cloud", "edge",
                                                     "client"};  // As REACH numbers them.
constexpr std::string_view kClient = "client";
constexpr std::string_view kCpuInWords =
    R"(whole cores such as "2" or whole milli-cores such as "700m")";
constexpr std::string_view kMemoryInWords =
    R"(a number with M or G, powers of 1024, such as "700M" or "27.68G")"
    " (any other unit is 0 to REACH)";
constexpr std::string_view kTimeInWords = R"(a time such as "46ms" or "2s")";
constexpr std::string_view kTask =
    "{kind: migration, objective: latency, step_penalty_ms: 0.2, step_penalty: growing, "
    "max_steps: 100}";

using Reader = OrderedJsonReader;
using ReachParser = std::optional<double> (*)(std::string_view);

std::optional<double> Optional(const Result<double>& value) {
  return value ? std::optional(*value) : std::nullopt;
}

bool IsDigits(std::string_view text) {
  return !text.empty() && text.size() <= 18 &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

// REACH's int() knows no fractions of a core.
std::optional<double> CoresOf(std::string_view text) {
  std::string_view digits = text;
  if (digits.ends_with('m')) digits.remove_suffix(1);
  return IsDigits(digits) ? Optional(ParseCores(text)) : std::nullopt;
}

std::optional<std::string> WithBinaryUnit(std::string_view text) {
  if (!text.ends_with('M') && !text.ends_with('G')) return std::nullopt;
  return std::string(text) + 'i';
}

std::optional<double> BytesOf(std::string_view text) {
  const auto binary = WithBinaryUnit(text);
  return binary ? Optional(ParseMemory(*binary)) : std::nullopt;
}

std::optional<double> RequestedBytesOf(std::string_view text) {
  if (!BytesOf(text)) return std::nullopt;
  return static_cast<double>(*ParseMemoryBytes(*WithBinaryUnit(text), Rounding::kUp));
}

// 1 of REACH's M is 1 MB to the law of latency, which knows what REACH makes of it.
std::optional<double> PayloadOf(std::string_view text) {
  if (text.ends_with('M')) return Optional(ParsePayloadMbytes(std::string(text) + 'B'));
  if (!text.ends_with('G')) return std::nullopt;
  text.remove_suffix(1);
  const Result<double> gigas = ParsePayloadMbytes(std::string(text) + "MB");
  return gigas ? std::optional(*gigas * 1024) : std::nullopt;
}

std::optional<double> BandwidthOf(std::string_view text) {
  if (!text.ends_with('m') || !IsDigits(text.substr(0, text.size() - 1))) return std::nullopt;
  double mbits = 0;
  std::from_chars(text.data(), text.data() + text.size() - 1, mbits);
  return mbits > 0 && mbits <= 8e9 ? std::optional(mbits / 8) : std::nullopt;
}

std::optional<double> FractionOf(std::string_view text) { return Optional(ParseFraction(text)); }

std::optional<double> TimeOf(std::string_view text) {
  if (!text.ends_with('s') || text.ends_with("us") || text.ends_with("ns") || text.ends_with("µs"))
    return std::nullopt;
  return Optional(ParseLatencyMs(text));
}

std::optional<double> PositiveTimeOf(std::string_view text) {
  const std::optional<double> ms = TimeOf(text);
  return ms && *ms > 0 ? ms : std::nullopt;
}

Result<double> QuantityIn(const Reader& reader, ReachParser parse, std::string_view in_words) {
  if (!reader.IsString()) return reader.Expected(in_words);
  TRY_ASSIGN(const std::string text, reader.AsString());
  const std::optional<double> value = parse(text);
  if (!value) return reader.Expected(in_words);
  return *value;
}

// A list of two values is a range to REACH, any other a choice.
Result<Distribution> SampledIn(const Reader& reader, ReachParser parse, std::string_view in_words) {
  TRY_ASSIGN(const std::vector<Reader> items, reader.Elements());
  if (items.empty()) return reader.Refuse("expected at least one value, found an empty list");
  std::vector<double> values;
  for (const Reader& item : items) {
    TRY_ASSIGN(const double value, QuantityIn(item, parse, in_words));
    values.push_back(value);
  }
  if (values.size() != 2) return Distribution::Choice(std::move(values));
  return Distribution::Uniform(std::min(values[0], values[1]), std::max(values[0], values[1]));
}

class ReachReader {
 public:
  ReachReader() {
    for (std::string_view layer : kLayers) layer_names_.Add(std::string(layer));
  }

  Result<void> ReadNodes(const ReachText& file) {
    TRY_ASSIGN(const OrderedJson json, ParseOrderedJson(file.text, file.source_name));
    const Reader root(json, file.source_name);
    TRY(root.CheckKeys({"node_type", "latency", "cluster_setup"}));
    TRY_ASSIGN(const Reader types, root.At("node_type"));
    TRY_ASSIGN(const Reader latency, root.At("latency"));
    TRY_ASSIGN(const Reader setup, root.At("cluster_setup"));
    TRY(FindLayers(setup, latency));
    TRY(ReadSetup(setup, types));
    return ReadLatency(latency);
  }

  Result<void> ReadServices(const ReachText& file) {
    TRY_ASSIGN(const OrderedJson json, ParseOrderedJson(file.text, file.source_name));
    const Reader root(json, file.source_name);
    TRY_ASSIGN(const auto services, root.Members());
    if (services.empty()) return root.Refuse("expected at least one service");
    int64_t pods = 0;
    for (const auto& [name, service] : services) {
      if (!IsName(name))
        return root.Refuse(fmt::format("expected {} for every service", kNameInWords));
      TRY(ReadService(name, service));
      pods += catalog_.workloads.back().replicas_max;
      if (pods > kMaxPods || workloads_.size() > kMaxWorkloads) {
        return service.Refuse(
            fmt::format("more than {} pods or {} services in all", kMaxPods, kMaxWorkloads));
      }
    }
    scenario_.catalog = std::make_shared<const Catalog>(catalog_);
    WorkloadId culprit = kNone;
    const std::string why = WhyInfeasible(scenario_, &culprit);
    if (why.empty()) return {};
    return culprit == kNone ? root.Refuse(why) : services[culprit].second.Refuse(why);
  }

  Result<void> ReadPattern(const std::string& name, const ReachText& file) {
    if (scenario_.PatternNamed(name) != kNone)
      return Invalid("the pattern \"{}\" is given twice", name);
    TRY_ASSIGN(const OrderedJson json, ParseOrderedJson(file.text, file.source_name));
    const Reader root(json, file.source_name);
    TRY_ASSIGN(const auto members, root.Members());
    if (members.empty()) return root.Refuse("expected at least one endpoint");
    calls_ = 0;
    std::vector<EndpointTree> endpoints;
    for (const auto& [endpoint_name, value] : members) {
      if (!IsName(endpoint_name))
        return root.Refuse(fmt::format("expected {} for every endpoint", kNameInWords));
      TRY_ASSIGN(EndpointTree endpoint, ReadEndpoint(endpoint_name, value));
      endpoints.push_back(std::move(endpoint));
    }
    scenario_.patterns.push_back(BuildCallGraph(name, catalog_.kind_count(), endpoints));
    scenario_.pattern_weights.push_back(1);
    return {};
  }

  Result<Scenario> Finish(std::string_view config, const ReachImportOptions& options) {
    if (scenario_.patterns.empty())
      return Invalid("no pattern of calls is named; import at least one");
    if (scenario_.patterns.size() > kMaxPatterns)
      return Invalid("more than {} patterns", kMaxPatterns);
    scenario_.name = options.name.empty() ? fmt::format("reach-{}", config) : options.name;
    if (!IsName(scenario_.name)) return Invalid("expected {} for the scenario", kNameInWords);
    scenario_.seed = options.seed;
    scenario_.source_config = config;
    TRY_ASSIGN(scenario_.task, ParseYaml(kTask, "task of REACH"));
    return std::move(scenario_);
  }

 private:
  Result<LayerId> LayerNamed(std::string_view name, const Reader& where) const {
    const int layer = layer_names_.Find(name);
    if (layer == kNone) return where.Refuse(layer_names_.Unknown(name));
    return layer_ids_[layer];
  }

  // Layers that the file mentions, numbered as REACH numbers them.
  Result<void> FindLayers(const Reader& setup, const Reader& latency) {
    std::array<bool, kLayers.size()> mentioned{};
    const auto mention = [&](const Reader& reader) -> Result<void> {
      TRY_ASSIGN(const auto members, reader.Members());
      for (const auto& [name, member] : members) {
        const int layer = layer_names_.Find(name);
        if (layer == kNone) return member.Refuse(layer_names_.Unknown(name));
        mentioned[layer] = true;
      }
      return {};
    };
    TRY(mention(setup));
    TRY(mention(latency));
    TRY_ASSIGN(const auto rows, latency.Members());
    for (const auto& [from, row] : rows) TRY(mention(row));
    for (size_t i = 0; i < kLayers.size(); ++i) {
      if (!mentioned[i]) continue;
      layer_ids_[i] = catalog_.layer_count();
      catalog_.layers.push_back(
          {.name = std::string(kLayers[i]), .accepts_moves = kLayers[i] != kClient});
    }
    return {};
  }

  Result<void> ReadSetup(const Reader& setup, const Reader& types) {
    NameIndex type_names("node_type");
    TRY_ASSIGN(const auto type_members, types.Members());
    for (const auto& [name, type] : type_members) type_names.Add(name);
    auto names = std::make_shared<Names>();
    NameIndex used("node_type");
    TRY_ASSIGN(const auto layers, setup.Members());
    for (const auto& [layer_name, layer] : layers) {
      TRY_ASSIGN(const auto groups, layer.Members());
      for (const auto& [type_name, group] : groups) {
        const int type = type_names.Find(type_name);
        if (type == kNone) return group.Refuse(type_names.Unknown(type_name));
        if (!IsName(type_name))
          return types.Refuse(fmt::format("expected {} for every type", kNameInWords));
        if (!used.Add(type_name)) {
          return group.Refuse(fmt::format(
              "the type stands in another layer too, and two nodes would be called {}-1",
              type_name));
        }
        TRY_ASSIGN(const LayerId layer_id, LayerNamed(layer_name, layer));
        TRY(ReadKind(type_name, layer_id, type_members[type].second));
        TRY(ReadGroup(group, type_members[type].first, names.get()));
      }
    }
    if (names->nodes.empty()) return setup.Refuse("expected at least one node, found none");
    scenario_.names = std::move(names);
    return {};
  }

  Result<void> ReadKind(const std::string& name, LayerId layer, const Reader& type) {
    TRY(type.CheckKeys({"cpu_type", "bandwidth"}));
    NodeKind kind{.name = name, .layer = layer};
    TRY_ASSIGN(const Reader cpu_type, type.At("cpu_type"));
    if (cpu_type.IsString()) {
      TRY_ASSIGN(kind.cpu_type, cpu_type.AsString());
    } else {
      TRY_ASSIGN(const int64_t number, cpu_type.AsInt());
      kind.cpu_type = std::to_string(number);
    }
    if (!IsName(kind.cpu_type)) return cpu_type.Expected("an integer");
    TRY_ASSIGN(const Reader bandwidth, type.At("bandwidth"));
    TRY_ASSIGN(kind.bandwidth_mbytes_per_s,
               QuantityIn(bandwidth, BandwidthOf,
                          R"(whole Mbit/s above 0 with the unit m, such as "500m")"));
    catalog_.kinds.push_back(std::move(kind));
    if (catalog_.kind_count() > kMaxKinds)
      return type.Refuse(fmt::format("more than {} types of node", kMaxKinds));
    return {};
  }

  // A group of nodes of the kind read last.
  Result<void> ReadGroup(const Reader& group, const std::string& type_name, Names* names) {
    TRY(group.CheckKeys(
        {"count", "cpu_availability", "memory_availability", "bandwidth_utilization"}));
    NodeGroup read{.kind = catalog_.kind_count() - 1};
    TRY_ASSIGN(const Reader count, group.At("count"));
    TRY_ASSIGN(const int64_t nodes, count.AsInt(0, kMaxNodes));
    read.count = static_cast<int>(nodes);
    TRY_ASSIGN(const Reader cpu, group.At("cpu_availability"));
    TRY_ASSIGN(read.cpu_millis, SampledIn(cpu, CoresOf, kCpuInWords));
    TRY_ASSIGN(const Reader memory, group.At("memory_availability"));
    TRY_ASSIGN(read.memory_bytes, SampledIn(memory, BytesOf, kMemoryInWords));
    TRY_ASSIGN(const Reader background, group.At("bandwidth_utilization"));
    TRY_ASSIGN(read.background, SampledIn(background, FractionOf, R"(a fraction from "0" to "1")"));
    if (names->nodes.size() + read.count > kMaxNodes)
      return count.Refuse(fmt::format("more than {} nodes in all", kMaxNodes));
    for (int i = 1; i <= read.count; ++i)
      names->nodes.push_back(fmt::format("{}-{}", type_name, i));
    scenario_.node_groups.push_back(std::move(read));
    return {};
  }

  Result<void> ReadLatency(const Reader& latency) {
    const int layers = catalog_.layer_count();
    scenario_.latency_ms.resize(static_cast<size_t>(layers) * layers);
    for (LayerId from = 0; from < layers; ++from) {
      TRY_ASSIGN(const Reader row, latency.At(catalog_.layers[from].name));
      for (LayerId to = 0; to < layers; ++to) {
        TRY_ASSIGN(const Reader range, row.At(catalog_.layers[to].name));
        TRY_ASSIGN(const std::vector<Reader> ends, range.Elements());
        if (ends.size() != 2) return range.Refuse(R"(expected a range such as ["50ms", "500ms"])");
        TRY_ASSIGN(scenario_.latency_ms[from * layers + to],
                   SampledIn(range, TimeOf, kTimeInWords));
      }
    }
    return {};
  }

  Result<void> ReadService(const std::string& name, const Reader& service) {
    TRY(service.CheckKeys(
        {"cpu-requests", "memory-requests", "max-replica", "type", "layer", "external_services"}));
    Workload workload{.name = name};
    WorkloadStart start;
    TRY_ASSIGN(const Reader cpu, service.At("cpu-requests"));
    TRY_ASSIGN(const double millis, QuantityIn(cpu, CoresOf, kCpuInWords));
    TRY_ASSIGN(const Reader memory, service.At("memory-requests"));
    TRY_ASSIGN(const double bytes, QuantityIn(memory, RequestedBytesOf, kMemoryInWords));
    workload.requests = {static_cast<int64_t>(millis), static_cast<int64_t>(bytes)};
    TRY_ASSIGN(const Reader replicas, service.At("max-replica"));
    TRY_ASSIGN(const int64_t most, replicas.AsInt(1, kMaxReplicas));
    workload.replicas_max = static_cast<int>(most);
    start.replicas = Distribution::Uniform(1, static_cast<double>(most));
    TRY_ASSIGN(const Reader type, service.At("type"));
    TRY_ASSIGN(const std::string type_name, type.AsString());
    if (type_name != "service" && type_name != "persistent")
      return type.Expected("service or persistent");
    std::string layer_name = "all";
    TRY_ASSIGN(const std::optional<Reader> layer, service.Find("layer"));
    if (layer) {
      TRY_ASSIGN(layer_name, layer->AsString());
    }
    workload.movable = type_name != "persistent" && layer_name != kClient;
    for (LayerId id = 0; id < catalog_.layer_count(); ++id) {
      const std::string& known = catalog_.layers[id].name;
      if (layer_name == "all" ? known != kClient : known == layer_name)
        start.initial_layers.push_back(id);
    }
    if (start.initial_layers.empty()) {
      return (layer ? *layer : service)
          .Expected("a layer of cluster_setup (or all, for cloud and edge)");
    }
    workloads_.Add(name);
    catalog_.workloads.push_back(std::move(workload));
    scenario_.starts.push_back(std::move(start));
    return {};
  }

  Result<EndpointTree> ReadEndpoint(const std::string& name, const Reader& reader) {
    TRY(reader.CheckKeys({"client", "call-path", "rps", "qos"}));
    EndpointTree endpoint{.name = name};
    TRY_ASSIGN(const Reader client, reader.At("client"));
    TRY_ASSIGN(const std::string client_name, client.AsString());
    TRY_ASSIGN(endpoint.root.workload, WorkloadNamed(client_name, client));
    endpoint.root.execution_ms.assign(catalog_.kind_count(), 0.0);
    TRY_ASSIGN(const Reader rps, reader.At("rps"));
    TRY_ASSIGN(endpoint.rate_per_second, rps.AsDouble(0, 1e9));
    TRY_ASSIGN(const Reader qos, reader.At("qos"));
    TRY_ASSIGN(endpoint.qos_ms, QuantityIn(qos, TimeOf, kTimeInWords));
    TRY(ReadGroups(reader, &endpoint.root));
    return endpoint;
  }

  Result<WorkloadId> WorkloadNamed(std::string_view name, const Reader& where) const {
    const WorkloadId workload = workloads_.Find(name);
    if (workload == kNone) return where.Refuse(workloads_.Unknown(name));
    return workload;
  }

  // call-path: groups in parallel, the keys of a group one after another.
  Result<void> ReadGroups(const Reader& reader, CallTree* caller) {
    TRY_ASSIGN(const std::optional<Reader> path, reader.Find("call-path"));
    if (!path) return {};
    callers_.push_back(caller->workload);
    TRY_ASSIGN(const std::vector<Reader> groups, path->Elements());
    for (const Reader& group : groups) {
      TRY_ASSIGN(const auto members, group.Members());
      if (members.empty()) continue;
      std::vector<CallTree> calls;
      for (const auto& [name, value] : members) {
        TRY_ASSIGN(CallTree call, ReadCall(name, value));
        calls.push_back(std::move(call));
      }
      caller->groups.push_back(std::move(calls));
    }
    callers_.pop_back();
    return {};
  }

  Result<CallTree> ReadCall(const std::string& name, const Reader& reader) {
    if (++calls_ > kMaxCalls)
      return reader.Refuse(fmt::format("more than {} calls in one pattern", kMaxCalls));
    CallTree call;
    TRY_ASSIGN(call.workload, WorkloadNamed(name, reader));
    if (std::find(callers_.begin(), callers_.end(), call.workload) != callers_.end()) {
      return reader.Refuse(fmt::format("the calls go round in a circle: {} calls itself", name));
    }
    TRY(reader.CheckKeys({"data-size", "execution-time", "call-path"}));
    TRY_ASSIGN(const std::optional<Reader> data, reader.Find("data-size"));
    if (data) {
      TRY_ASSIGN(call.data_mbytes, QuantityIn(*data, PayloadOf, kMemoryInWords));
    }
    TRY_ASSIGN(const Reader execution, reader.At("execution-time"));
    TRY(ReadExecution(execution, &call));
    TRY(ReadGroups(reader, &call));
    return call;
  }

  // Times for types of CPU that this cluster lacks are ignored: all clusters share one file of call
  // patterns.
  Result<void> ReadExecution(const Reader& reader, CallTree* call) {
    call->execution_ms.assign(catalog_.kind_count(), 0.0);
    TRY_ASSIGN(const auto times, reader.Members());
    for (const auto& [type, time] : times) {
      TRY_ASSIGN(const double ms,
                 QuantityIn(time, PositiveTimeOf, R"(a time above 0 such as "46ms" or "2s")"));
      for (KindId kind = 0; kind < catalog_.kind_count(); ++kind) {
        if (catalog_.kinds[kind].cpu_type == type) call->execution_ms[kind] = ms;
      }
    }
    for (KindId kind = 0; kind < catalog_.kind_count(); ++kind) {
      if (call->execution_ms[kind] > 0) continue;
      if (!CanRunOn(catalog_, call->workload, scenario_.starts[call->workload], kind)) continue;
      return reader.Refuse(fmt::format("missing key \"{}\", the cpu_type of {}",
                                       catalog_.kinds[kind].cpu_type, catalog_.kinds[kind].name));
    }
    return {};
  }

  Scenario scenario_;
  Catalog catalog_;
  NameIndex layer_names_{"layer"};                   // All that REACH knows,
  std::array<LayerId, kLayers.size()> layer_ids_{};  // and their positions in the catalog.
  NameIndex workloads_{"service"};
  std::vector<WorkloadId> callers_;
  int calls_ = 0;
};

}  // namespace

Result<Scenario> ParseReach(const ReachTexts& texts, std::string_view config,
                            const ReachImportOptions& options) {
  ReachReader reader;
  TRY(reader.ReadNodes(texts.nodes));
  TRY(reader.ReadServices(texts.services));
  for (const auto& [name, file] : texts.patterns) TRY(reader.ReadPattern(name, file));
  return reader.Finish(config, options);
}

}  // namespace rudderfish
