// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <span>

#include "base/units.h"
#include "base/yaml_writer.h"
#include "scenario/arrivals_writer.h"
#include "scenario/catalog_parser.h"
#include "scenario/load_parser.h"
#include "scenario/pattern_parser.h"
#include "scenario/scenario.h"
#include "scenario/yaml_values.h"

namespace rudderfish {
namespace {

// Quantities as text that the parsers read back to the same value, as short as a person would write
// them.

std::string CoresText(double millis) { return FormatMillis(static_cast<int64_t>(millis)); }

std::string MemoryText(int64_t bytes, Rounding rounding) {
  std::string shortest = FormatMemoryQuantity(bytes);
  for (const auto& [unit, factor] :
       {std::pair("Gi", kBytesPerGib), std::pair("Mi", 1024.0 * 1024)}) {
    for (int decimals = 0; decimals <= 3; ++decimals) {
      std::string text =
          fmt::format("{:.{}f}{}", static_cast<double>(bytes) / factor, decimals, unit);
      if (text.size() < shortest.size() && ParseMemoryBytes(text, rounding) == bytes) {
        shortest = std::move(text);
      }
    }
  }
  return shortest;
}

std::string AllocatableText(double bytes) {
  return MemoryText(static_cast<int64_t>(bytes), Rounding::kDown);
}

std::string LatencyText(double ms) { return fmt::format("{}ms", ms); }

std::string NumberText(double value) { return fmt::format("{}", value); }

std::string PayloadText(double mbytes) { return fmt::format("{}MB", mbytes); }

std::string BandwidthText(double mbytes_per_s) {
  std::string text = fmt::format("{}Mbit", mbytes_per_s * 8);
  return ParseBandwidthMbytesPerS(text) == mbytes_per_s ? text
                                                        : fmt::format("{}MB/s", mbytes_per_s);
}

using Text = std::string (*)(double);

// Bare numbers stay unquoted.
YamlScalar ScalarOf(const std::string& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  return whole ? YamlScalar(number) : YamlScalar(text);
}

std::optional<YamlScalar> OneLine(const Distribution& distribution, Text text) {
  switch (distribution.shape()) {
    case Distribution::Shape::kConstant:
      return ScalarOf(text(distribution.min()));
    case Distribution::Shape::kUniform:
      return YamlScalar(
          fmt::format("{} to {}", text(distribution.min()), text(distribution.max())));
    case Distribution::Shape::kChoice:
      break;
  }
  return std::nullopt;
}

void WriteDistribution(std::string_view key, const Distribution& distribution, Text text,
                       YamlWriter* out) {
  if (const std::optional<YamlScalar> line = OneLine(distribution, text)) {
    out->Field(key, *line);
    return;
  }
  std::vector<YamlScalar> values;
  for (const double value : distribution.values()) values.push_back(ScalarOf(text(value)));
  out->FlowList(key, values);
}

class ScenarioText {
 public:
  explicit ScenarioText(const Scenario& scenario)
      : scenario_(scenario), catalog_(*scenario.catalog) {}

  std::string Write() {
    out_.Field("rudderfish", "scenario/v1");
    out_.Field("name", scenario_.name);
    out_.Field("seed", scenario_.seed);
    if (!scenario_.source_config.empty()) {
      out_.FlowMap("source", {{"system", "reach"}, {"config", scenario_.source_config}});
    }
    out_.Field("model", scenario_.law);
    if (scenario_.regions != nullptr) {
      WriteRegions(*scenario_.regions, &out_);
      return out_.Take();
    }
    WriteLayers();
    WriteLatency();
    WriteNodes();
    WriteWorkloads();
    WritePatterns();
    out_.BlankLine();
    if (scenario_.retry_limit != 100) out_.Field("retries", scenario_.retry_limit);
    if (scenario_.objective) WriteObjective(*scenario_.objective, &out_);
    if (scenario_.arrivals != nullptr) WriteArrivals(scenario_, &out_);
    if (scenario_.load != nullptr)
      WriteLoad(*scenario_.load, catalog_, *scenario_.patterns[0], &out_);
    if (!scenario_.task.IsNull()) out_.Node("task", scenario_.task);
    return out_.Take();
  }

 private:
  void WriteLayers() {
    out_.BlankLine();
    out_.BeginMap("layers");
    for (const Layer& layer : catalog_.layers) {
      YamlWriter::Fields fields;
      if (!layer.accepts_moves) fields.push_back({"accepts_moves", false});
      out_.FlowMap(layer.name, fields);
    }
    out_.End();
  }

  void WriteLatency() {
    out_.Comment("One way, from -> to; drawn once an episode.");
    out_.BeginMap("latency");
    for (LayerId from = 0; from < catalog_.layer_count(); ++from) {
      const auto latency = [&](LayerId to) -> const Distribution& {
        return scenario_.latency_ms[from * catalog_.layer_count() + to];
      };
      std::optional<YamlWriter::Fields> row{std::in_place};
      for (LayerId to = 0; to < catalog_.layer_count() && row; ++to) {
        const std::optional<YamlScalar> text = OneLine(latency(to), LatencyText);
        if (text)
          row->push_back({catalog_.layers[to].name, *text});
        else
          row.reset();
      }
      if (row) {
        out_.FlowMap(catalog_.layers[from].name, *row);
        continue;
      }
      out_.BeginMap(catalog_.layers[from].name);
      for (LayerId to = 0; to < catalog_.layer_count(); ++to) {
        WriteDistribution(catalog_.layers[to].name, latency(to), LatencyText, &out_);
      }
      out_.End();
    }
    out_.End();
  }

  void WriteNodes() {
    out_.BlankLine();
    out_.BeginMap("node_types");
    for (const NodeKind& kind : catalog_.kinds) {
      WriteNodeKind(kind, static_cast<size_t>(&kind - catalog_.kinds.data()));
    }
    out_.End();
    const std::span<const NodeGroup> groups = OfTheFile(
        scenario_.node_groups, scenario_.arrivals ? scenario_.arrivals->first_trace_group : kNone);
    if (groups.empty()) return;
    out_.BeginList("nodes");
    node_ordinal_.assign(catalog_.kind_count(), 0);
    for (const NodeGroup& group : groups) {
      out_.BeginItem();
      out_.Field("type", catalog_.kinds[group.kind].name);
      WriteNodeNames(group);
      WriteDistribution("cpu", group.cpu_millis, CoresText, &out_);
      WriteDistribution("memory", group.memory_bytes, AllocatableText, &out_);
      if (group.background != Distribution())
        WriteDistribution("background", group.background, NumberText, &out_);
      if (group.devices != 0) out_.Field("gpus", group.devices);
      out_.End();
    }
    out_.End();
  }

  // What stands in the file itself, where a trace has brought more.
  template <class Item>
  static std::span<const Item> OfTheFile(const std::vector<Item>& items, int first_of_trace) {
    const std::span<const Item> all(items);
    return first_of_trace == kNone ? all : all.first(first_of_trace);
  }

  void WriteNodeKind(const NodeKind& kind, size_t index) {
    const YamlWriter::Fields fields = {{"layer", catalog_.layers[kind.layer].name},
                                       {"cpu_type", kind.cpu_type},
                                       {"bandwidth", BandwidthText(kind.bandwidth_mbytes_per_s)}};
    const NodeCosts costs =
        scenario_.kind_costs.empty() ? NodeCosts() : scenario_.kind_costs[index];
    if (costs == NodeCosts()) {
      out_.FlowMap(kind.name, fields);
      return;
    }
    out_.BeginMap(kind.name);
    for (const auto& [key, value] : fields) out_.Field(key, value);
    if (costs.price_per_hour != 0) out_.Field("price_per_hour", costs.price_per_hour);
    if (costs.busy_watts != 0 || costs.has_curve()) WritePower(costs);
    out_.End();
  }

  void WritePower(const NodeCosts& costs) {
    const YamlWriter::Fields watts = {{"idle_watts", costs.idle_watts},
                                      {"busy_watts", costs.busy_watts},
                                      {"asleep_watts", costs.asleep_watts}};
    if (!costs.has_curve()) return out_.FlowMap("power", watts);
    out_.BeginMap("power");
    for (const auto& [key, value] : watts) out_.Field(key, value);
    YamlWriter::Fields points;
    for (const PowerPoint& point : costs.curve)
      points.push_back({NumberText(point.utilisation), point.watts});
    out_.FlowMap("curve", points);
    out_.End();
  }

  // How many, unless they are called otherwise than by their number.
  void WriteNodeNames(const NodeGroup& group) {
    bool numbered = true;
    std::vector<YamlScalar> names;
    for (int i = 0; i < group.count; ++i) {
      const std::string& name = scenario_.names->nodes[next_node_++];
      const int number = ++node_ordinal_[group.kind];
      numbered = numbered && name == fmt::format("{}-{}", catalog_.kinds[group.kind].name, number);
      names.push_back(name);
    }
    if (numbered) {
      out_.Field("count", group.count);
    } else {
      out_.FlowList("names", names);
    }
  }

  void WriteWorkloads() {
    out_.BlankLine();
    const std::span<const Workload> workloads = OfTheFile(
        catalog_.workloads, scenario_.arrivals ? scenario_.arrivals->first_trace_workload : kNone);
    if (workloads.empty()) return;
    out_.BeginMap("workloads");
    default_execution_.resize(catalog_.workload_count());
    for (WorkloadId w = 0; w < static_cast<WorkloadId>(workloads.size()); ++w) {
      const Workload& workload = workloads[w];
      const WorkloadStart& start = scenario_.starts[w];
      out_.BeginMap(workload.name);
      YamlWriter::Fields requests = {
          {"cpu", ScalarOf(CoresText(static_cast<double>(workload.requests.cpu_millis)))},
          {"memory", ScalarOf(MemoryText(workload.requests.memory_bytes, Rounding::kUp))}};
      if (workload.devices.count > 0) {
        const double millis = workload.devices.total_millis();
        requests.push_back({"gpus", ScalarOf(CoresText(millis))});
      }
      out_.FlowMap("requests", requests);
      if (start.replicas.max() > 0)
        WriteDistribution("replicas", start.replicas, NumberText, &out_);
      WritePlacementLimits(workload);
      std::vector<YamlScalar> layers;
      for (LayerId layer : start.initial_layers) layers.push_back(catalog_.layers[layer].name);
      out_.FlowList("layers", layers);
      if (!workload.movable) out_.Field("movable", false);
      default_execution_[w] = FirstExecution(w);
      if (!default_execution_[w].empty()) WriteExecution(w, default_execution_[w]);
      out_.End();
    }
    out_.End();
  }

  void WritePlacementLimits(const Workload& workload) {
    const LatencyLimits& limits = workload.latency_limits;
    if (!std::isinf(limits.soft_ms)) out_.Field("latency_soft", LatencyText(limits.soft_ms));
    if (limits.has_hard()) out_.Field("latency_hard", LatencyText(limits.hard_ms));
    YamlWriter::Fields measured;
    for (const auto& [key, field] : kMeasuredKeys) {
      if (workload.measured.*field > 0) measured.push_back({key, workload.measured.*field});
    }
    if (!measured.empty()) out_.FlowMap("measured", measured);
    if (workload.node_kinds == kAnyKind) return;
    std::vector<YamlScalar> kinds;
    for (KindId kind = 0; kind < catalog_.kind_count(); ++kind) {
      if (Contains(workload.node_kinds, kind)) kinds.push_back(catalog_.kinds[kind].name);
    }
    out_.FlowList("node_types", kinds);
  }

  // The execution times of the first call of a workload stand with the workload, those of others
  // only if they differ.
  std::vector<double> FirstExecution(WorkloadId workload) const {
    for (const auto& pattern : scenario_.patterns) {
      for (CallId call = 0; call < pattern->call_count(); ++call) {
        const Call& c = pattern->calls[call];
        if (c.workload == workload && c.caller != kNone) return ExecutionOf(*pattern, call);
      }
    }
    return {};
  }

  static std::vector<double> ExecutionOf(const CallGraph& graph, CallId call) {
    const auto row =
        graph.execution_ms.begin() + static_cast<std::ptrdiff_t>(call) * graph.kind_count;
    return {row, row + graph.kind_count};
  }

  void WriteExecution(WorkloadId workload, const std::vector<double>& execution) {
    std::map<std::string, std::string> times;
    for (KindId kind = 0; kind < catalog_.kind_count(); ++kind) {
      if (execution[kind] == 0 && !CanRunOn(catalog_, workload, scenario_.starts[workload], kind))
        continue;
      times[catalog_.kinds[kind].cpu_type] = LatencyText(execution[kind]);
    }
    YamlWriter::Fields fields;
    for (const auto& [type, time] : times) fields.push_back({type, time});
    out_.FlowMap("execution", fields);
  }

  void WritePatterns() {
    if (scenario_.patterns.empty()) return;
    out_.BlankLine();
    out_.Comment(
        "Who calls whom: `calls` one after another, `parallel` at once. Each episode has one of "
        "these patterns.");
    out_.BeginMap("patterns");
    bool weighted = false;
    YamlWriter::Fields weights;
    for (size_t p = 0; p < scenario_.patterns.size(); ++p) {
      const CallGraph& graph = *scenario_.patterns[p];
      weights.push_back({graph.name, scenario_.pattern_weights[p]});
      weighted = weighted || scenario_.pattern_weights[p] != 1;
      out_.BeginMap(graph.name);
      for (const Endpoint& endpoint : graph.endpoints) {
        out_.BeginMap(endpoint.name);
        out_.Field("client", catalog_.workloads[graph.calls[endpoint.root].workload].name);
        out_.Field("rate", endpoint.rate_per_second);
        out_.Field("qos", LatencyText(endpoint.qos_ms));
        WriteGroups(graph, graph.calls[endpoint.root]);
        out_.End();
      }
      out_.End();
    }
    out_.End();
    if (weighted) out_.FlowMap("pattern_weights", weights);
  }

  void WriteGroups(const CallGraph& graph, const Call& call) {
    if (call.last_group == call.first_group) return;
    const bool parallel = call.last_group - call.first_group > 1;
    out_.BeginList(parallel ? "parallel" : "calls");
    for (int g = call.first_group; g < call.last_group; ++g) {
      const CallGroup& group = graph.groups[g];
      const bool branch = parallel && group.last - group.first > 1;
      if (branch) {
        out_.BeginItem();
        out_.BeginList("calls");
      }
      for (int i = group.first; i < group.last; ++i) WriteCall(graph, graph.sequence[i]);
      if (branch) {
        out_.End();
        out_.End();
      }
    }
    out_.End();
  }

  void WriteCall(const CallGraph& graph, CallId id) {
    const Call& call = graph.calls[id];
    const std::string& name = catalog_.workloads[call.workload].name;
    const std::vector<double> execution = ExecutionOf(graph, id);
    const bool own_execution = execution != default_execution_[call.workload];
    out_.BeginItem();
    if (!own_execution && call.last_group == call.first_group) {
      YamlWriter::Fields fields;
      if (call.data_mbytes != 0) fields.push_back({"data", PayloadText(call.data_mbytes)});
      out_.FlowMap(name, fields);
    } else {
      out_.BeginMap(name);
      if (call.data_mbytes != 0) out_.Field("data", PayloadText(call.data_mbytes));
      if (own_execution) WriteExecution(call.workload, execution);
      WriteGroups(graph, call);
      out_.End();
    }
    out_.End();
  }

  const Scenario& scenario_;
  const Catalog& catalog_;
  YamlWriter out_;
  int next_node_ = 0;
  std::vector<int> node_ordinal_;                       // [kind] Nodes written.
  std::vector<std::vector<double>> default_execution_;  // [workload]
};

}  // namespace

std::string ToYaml(const Scenario& scenario) { return ScenarioText(scenario).Write(); }

}  // namespace rudderfish
