// SPDX-License-Identifier: Apache-2.0
#include "scenario/application_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/check.h"
#include "base/yaml_writer.h"

namespace rudderfish {
namespace {

void WriteLatencies(const Application& application, YamlWriter* out) {
  const Catalog& catalog = *application.catalog;
  out->BeginMap("latency");
  for (LayerId from = 0; from < catalog.layer_count(); ++from) {
    YamlWriter::Fields fields;
    for (LayerId to = 0; to < catalog.layer_count(); ++to) {
      fields.emplace_back(catalog.layers[to].name,
                          fmt::format("{}ms", application.network.LatencyMs(from, to)));
    }
    out->FlowMap(catalog.layers[from].name, fields);
  }
  out->End();
}

void WriteNodes(const LabelSelector& selector, YamlWriter* out) {
  out->BeginMap("nodes");
  out->BeginList("matchExpressions");
  for (const LabelRequirement& one : selector.requirements) {
    out->BeginItem();
    out->Field("key", one.key);
    if (one.op == LabelRequirement::Operator::kIn) {
      out->Field("operator", "In");
      const std::vector<YamlScalar> values(one.values.begin(), one.values.end());
      out->FlowList("values", values);
    } else {
      CHECK(one.op == LabelRequirement::Operator::kDoesNotExist);
      out->Field("operator", "DoesNotExist");
    }
    out->End();
  }
  out->End();
  out->End();
}

// A draft has a kind of node that none of the cluster's is of: it stands for the users.
bool SelectsNoNode(const LabelSelector& selector) {
  return std::any_of(selector.requirements.begin(), selector.requirements.end(),
                     [](const LabelRequirement& one) {
                       return one.op == LabelRequirement::Operator::kIn && one.values.empty();
                     });
}

void WriteCosts(const NodeCosts& costs, YamlWriter* out) {
  if (costs.price_per_hour != 0) out->Field("price_per_hour", costs.price_per_hour);
  if (costs.busy_watts == 0 && !costs.has_curve()) return;
  out->BeginMap("power");
  out->Field("idle_watts", costs.idle_watts);
  out->Field("busy_watts", costs.busy_watts);
  out->Field("asleep_watts", costs.asleep_watts);
  if (costs.has_curve()) {
    out->BeginList("curve");
    for (const PowerPoint& point : costs.curve)
      out->FlowItem({{"utilisation", point.utilisation}, {"watts", point.watts}});
    out->End();
  }
  out->End();
}

void WriteKinds(const Application& application, YamlWriter* out) {
  const Catalog& catalog = *application.catalog;
  out->BeginMap("node_types");
  for (KindId k = 0; k < catalog.kind_count(); ++k) {
    const NodeKind& kind = catalog.kinds[k];
    out->BeginMap(kind.name);
    if (!SelectsNoNode(application.kind_nodes[k])) WriteNodes(application.kind_nodes[k], out);
    out->Field("layer", catalog.layers[kind.layer].name);
    out->Field("cpu_type", kind.cpu_type);
    out->Field("bandwidth", fmt::format("{}Mbit", kind.bandwidth_mbytes_per_s * 8));
    if (!application.kind_costs.empty()) WriteCosts(application.kind_costs[k], out);
    out->End();
  }
  out->End();
}

std::string ObjectText(const WorkloadObject& object) {
  std::string text = object.kind + "/" + object.name;
  std::transform(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(object.kind.size()),
                 text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

YamlWriter::Fields WorkloadFields(const Workload& workload, const WorkloadObject& object,
                                  double warm_up_s) {
  YamlWriter::Fields fields{{"object", ObjectText(object)}, {"namespace", object.object_namespace}};
  if (!workload.movable) fields.emplace_back("movable", false);
  if (warm_up_s > 0) fields.emplace_back("warm_up", fmt::format("{}s", warm_up_s));
  return fields;
}

void WriteWorkloads(const Application& application, YamlWriter* out) {
  const Catalog& catalog = *application.catalog;
  out->BeginMap("workloads");
  for (WorkloadId w = 0; w < catalog.workload_count(); ++w) {
    const WorkloadObject& object = application.objects[w];
    if (object.is_external()) {
      out->FlowMap(catalog.workloads[w].name,
                   {{"external", catalog.layers[application.external_layers[w]].name}});
    } else {
      out->FlowMap(catalog.workloads[w].name,
                   WorkloadFields(catalog.workloads[w], object,
                                  application.warm_up_s.empty() ? 0 : application.warm_up_s[w]));
    }
  }
  out->End();
}

void WriteHead(const Application& application, YamlWriter* out) {
  out->Field("rudderfish", "application/v1");
  out->Field("name", application.name);
  out->Field("model", application.law);
  out->BlankLine();
}

void WriteLayers(const Catalog& catalog, YamlWriter* out) {
  out->BeginMap("layers");
  for (const Layer& layer : catalog.layers) {
    YamlWriter::Fields fields;
    if (!layer.accepts_moves) fields.emplace_back("accepts_moves", false);
    out->FlowMap(layer.name, fields);
  }
  out->End();
}

void WriteCalls(const Application& application, const Call& caller, YamlWriter* out);

void WriteCall(const Application& application, CallId id, YamlWriter* out) {
  const CallGraph& graph = *application.calls;
  const Catalog& catalog = *application.catalog;
  const Call& call = graph.calls[id];
  out->BeginItem();
  out->BeginMap(catalog.workloads[call.workload].name);
  out->Field("data", fmt::format("{}MB", call.data_mbytes));
  YamlWriter::Fields times;
  for (KindId k = 0; k < catalog.kind_count(); ++k) {
    const std::string& type = catalog.kinds[k].cpu_type;
    const bool has_it =
        std::any_of(times.begin(), times.end(), [&](const auto& one) { return one.first == type; });
    if (!has_it) times.emplace_back(type, fmt::format("{}ms", graph.ExecutionMs(id, k)));
  }
  out->FlowMap("execution", times);
  WriteCalls(application, call, out);
  out->End();
  out->End();
}

// `calls` for one group, `parallel` for several.
void WriteCalls(const Application& application, const Call& caller, YamlWriter* out) {
  const CallGraph& graph = *application.calls;
  const int groups = caller.last_group - caller.first_group;
  if (groups == 0) return;
  out->BeginList(groups == 1 ? "calls" : "parallel");
  for (int g = caller.first_group; g < caller.last_group; ++g) {
    const CallGroup& group = graph.groups[g];
    const bool is_list = groups > 1 && group.last - group.first > 1;
    if (is_list) {
      out->BeginItem();
      out->BeginList("calls");
    }
    for (int i = group.first; i < group.last; ++i) WriteCall(application, graph.sequence[i], out);
    if (is_list) {
      out->End();
      out->End();
    }
  }
  out->End();
}

void WriteEndpoints(const Application& application, YamlWriter* out) {
  const CallGraph& graph = *application.calls;
  out->BeginMap("endpoints");
  for (const Endpoint& endpoint : graph.endpoints) {
    const Call& root = graph.calls[endpoint.root];
    out->BeginMap(endpoint.name);
    out->Field("client", application.catalog->workloads[root.workload].name);
    out->Field("rate", endpoint.rate_per_second);
    out->Field("qos", fmt::format("{}ms", endpoint.qos_ms));
    WriteCalls(application, root, out);
    out->End();
  }
  out->End();
}

}  // namespace

std::string ApplicationDraftText(const Application& application) {
  const Catalog& catalog = *application.catalog;
  YamlWriter out;
  out.Comment(
      "The application as the API server shows it. Who calls whom, latencies and execution times\n"
      "are not known to it: until they are filled in, no placement is better than another.");
  WriteHead(application, &out);
  out.Comment("Layers are the zones of the nodes, and the users outside of the cluster.");
  WriteLayers(catalog, &out);
  out.BlankLine();
  out.Comment(
      "One way, between the nodes of two layers. Measure it: 0ms stands for what is not known.");
  WriteLatencies(application, &out);
  out.BlankLine();
  WriteKinds(application, &out);
  out.BlankLine();
  out.Comment("Add to each how long it computes for a call, by cpu_type: execution: {...: 5ms}.");
  WriteWorkloads(application, &out);
  out.BlankLine();
  out.Comment(
      "Requests of the users. Add the calls that each of them causes, for instance\n"
      "calls: [web: {data: 10kB, calls: [db: {data: 2kB}]}]");
  out.BeginMap("endpoints");
  for (const Endpoint& endpoint : application.calls->endpoints) {
    CHECK_EQ(endpoint.end, endpoint.root + 1);
    out.BeginMap(endpoint.name);
    out.Field("client", catalog.workloads[application.calls->calls[endpoint.root].workload].name);
    out.Field("rate", endpoint.rate_per_second);
    out.Field("qos", fmt::format("{}ms", endpoint.qos_ms));
    out.End();
  }
  out.End();
  return out.Take();
}

std::string ApplicationText(const Application& application, std::string_view comment) {
  YamlWriter out;
  out.Comment(comment);
  WriteHead(application, &out);
  WriteLayers(*application.catalog, &out);
  out.BlankLine();
  WriteLatencies(application, &out);
  out.BlankLine();
  WriteKinds(application, &out);
  out.BlankLine();
  WriteWorkloads(application, &out);
  out.BlankLine();
  WriteEndpoints(application, &out);
  return out.Take();
}

}  // namespace rudderfish
