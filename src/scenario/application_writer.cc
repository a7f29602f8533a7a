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
  out->Comment(
      "One way, between the nodes of two layers. Measure it: 0ms stands for what is not known.");
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

void WriteWorkloads(const Application& application, YamlWriter* out) {
  const Catalog& catalog = *application.catalog;
  out->Comment("Add to each how long it computes for a call, by cpu_type: execution: {...: 5ms}.");
  out->BeginMap("workloads");
  for (WorkloadId w = 0; w < catalog.workload_count(); ++w) {
    const WorkloadObject& object = application.objects[w];
    if (object.is_external()) {
      out->FlowMap(catalog.workloads[w].name,
                   {{"external", catalog.layers[application.external_layers[w]].name}});
    } else {
      out->FlowMap(catalog.workloads[w].name,
                   {{"object", ObjectText(object)}, {"namespace", object.object_namespace}});
    }
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
  out.Field("rudderfish", "application/v1");
  out.Field("name", application.name);
  out.Field("model", application.law);
  out.BlankLine();
  out.Comment("Layers are the zones of the nodes, and the users outside of the cluster.");
  out.BeginMap("layers");
  for (const Layer& layer : catalog.layers) {
    YamlWriter::Fields fields;
    if (!layer.accepts_moves) fields.emplace_back("accepts_moves", false);
    out.FlowMap(layer.name, fields);
  }
  out.End();
  out.BlankLine();
  WriteLatencies(application, &out);
  out.BlankLine();
  WriteKinds(application, &out);
  out.BlankLine();
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

}  // namespace rudderfish
