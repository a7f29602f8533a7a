// SPDX-License-Identifier: Apache-2.0
#include "scenario/manifests.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "base/yaml_writer.h"
#include "model/latency.h"

namespace rudderfish {
namespace {

constexpr int kPort = 8080;
constexpr int kGraceBeyondDrainS = 5;
constexpr std::string_view kFolder = "/etc/app", kFile = "calls";

// A Service is called as its workload's object; what is outside, as the workload.
const std::string& ServiceName(const Application& application, WorkloadId workload) {
  const WorkloadObject& object = application.objects[workload];
  return object.is_external() ? application.catalog->workloads[workload].name : object.name;
}

std::string ConfigName(const Application& application) { return application.name + "-calls"; }

YamlWriter Object(std::string_view api, std::string_view kind, const YamlWriter::Fields& metadata) {
  YamlWriter out;
  out.Field("apiVersion", api);
  out.Field("kind", kind);
  out.FlowMap("metadata", metadata);
  return out;
}

void WriteFieldVariable(std::string_view name, std::string_view field, YamlWriter* out) {
  out->BeginItem();
  out->Field("name", name);
  out->BeginMap("valueFrom");
  out->FlowMap("fieldRef", {{"fieldPath", field}});
  out->End();
  out->End();
}

void WriteEnvironment(const ManifestPlan& plan, YamlWriter* out) {
  out->BeginList("env");
  WriteFieldVariable("NODE_NAME", "spec.nodeName", out);
  if (!plan.otlp.empty()) {
    WriteFieldVariable("POD_NAME", "metadata.name", out);
    WriteFieldVariable("POD_NAMESPACE", "metadata.namespace", out);
    out->FlowItem({{"name", "OTEL_EXPORTER_OTLP_ENDPOINT"}, {"value", plan.otlp}});
    out->FlowItem({{"name", "OTEL_TRACES_SAMPLER"}, {"value", "parentbased_traceidratio"}});
    out->FlowItem(
        {{"name", "OTEL_TRACES_SAMPLER_ARG"}, {"value", fmt::format("{}", plan.traced_share)}});
  }
  out->End();
}

void WriteContainer(const Application& application, const ManifestPlan& plan, WorkloadId workload,
                    YamlWriter* out) {
  const std::string& name = application.objects[workload].name;
  out->BeginList("containers");
  out->BeginItem();
  out->Field("name", "app");
  out->Field("image", plan.image);
  out->Field("imagePullPolicy", "Never");
  std::vector<YamlScalar> arguments{
      "--calls", fmt::format("{}/{}", kFolder, kFile), "--service", name,
      "--start", std::to_string(plan.start_ms),        "--term",    std::to_string(plan.drain_s)};
  if (plan.burns) arguments.insert(arguments.end(), {"--burn", "1"});
  out->FlowList("args", arguments);
  WriteEnvironment(plan, out);
  out->BeginList("ports");
  out->FlowItem({{"containerPort", kPort}});
  out->End();
  out->BeginMap("readinessProbe");
  out->FlowMap("httpGet", {{"path", "/ready"}, {"port", kPort}});
  out->Field("periodSeconds", 1);
  out->End();
  const Resources& requests = plan.workloads[workload].requests;
  out->BeginMap("resources");
  out->FlowMap("requests", {{"cpu", FormatMillis(requests.cpu_millis)},
                            {"memory", FormatMemoryQuantity(requests.memory_bytes)}});
  out->End();
  out->BeginList("volumeMounts");
  out->FlowItem({{"name", "calls"}, {"mountPath", kFolder}});
  out->End();
  out->End();
  out->End();
}

std::string WorkloadText(const Application& application, const ManifestPlan& plan,
                         WorkloadId workload) {
  const WorkloadObject& object = application.objects[workload];
  YamlWriter out = Object("apps/v1", object.kind,
                          {{"name", object.name}, {"namespace", object.object_namespace}});
  out.BeginMap("spec");
  out.Field("replicas", plan.workloads[workload].replicas);
  if (object.kind == "StatefulSet") out.Field("serviceName", object.name);
  out.BeginMap("selector");
  out.FlowMap("matchLabels", {{"app", object.name}});
  out.End();
  out.BeginMap("template");
  out.BeginMap("metadata");
  out.FlowMap("labels", {{"app", object.name}});
  out.End();
  out.BeginMap("spec");
  out.Field("automountServiceAccountToken", false);
  out.Field("terminationGracePeriodSeconds", plan.drain_s + kGraceBeyondDrainS);
  WriteContainer(application, plan, workload, &out);
  out.BeginList("volumes");
  out.BeginItem();
  out.Field("name", "calls");
  out.FlowMap("configMap", {{"name", ConfigName(application)}});
  out.End();
  out.End();
  out.End();
  out.End();
  out.End();
  return out.Take();
}

std::string ServiceText(const WorkloadObject& object) {
  YamlWriter out =
      Object("v1", "Service", {{"name", object.name}, {"namespace", object.object_namespace}});
  out.BeginMap("spec");
  out.FlowMap("selector", {{"app", object.name}});
  out.BeginList("ports");
  out.FlowItem({{"port", kPort}});
  out.End();
  out.End();
  return out.Take();
}

std::string BudgetText(const WorkloadObject& object, int replicas) {
  YamlWriter out = Object("policy/v1", "PodDisruptionBudget",
                          {{"name", object.name}, {"namespace", object.object_namespace}});
  out.BeginMap("spec");
  out.Comment("No fewer pods than replicas: a move brings the replacement first.");
  out.Field("minAvailable", replicas);
  out.BeginMap("selector");
  out.FlowMap("matchLabels", {{"app", object.name}});
  out.End();
  out.End();
  return out.Take();
}

// The namespace of all that is in the cluster.
Result<std::string> NamespaceOf(const Application& application) {
  std::string space;
  for (const WorkloadObject& object : application.objects) {
    if (object.is_external()) continue;
    if (object.kind != "Deployment" && object.kind != "StatefulSet" && object.kind != "ReplicaSet")
      return Invalid(
          "workload {}: a {} is not written; deployments, statefulsets and replicasets "
          "are",
          object.name, object.kind);
    if (!space.empty() && space != object.object_namespace) {
      return Invalid(
          "workload {}: is in namespace {}, others are in {}; pods find only Services of "
          "their own namespace",
          object.name, object.object_namespace, space);
    }
    space = object.object_namespace;
  }
  if (space.empty()) return Invalid("no workload of {} is in the cluster", application.name);
  return space;
}

}  // namespace

Result<std::vector<std::pair<std::string, KindId>>> NodeNamesOf(const Application& application) {
  using Operator = LabelRequirement::Operator;
  std::vector<std::pair<std::string, KindId>> names;
  for (KindId k = 0; k < application.catalog->kind_count(); ++k) {
    const std::string& kind = application.catalog->kinds[k].name;
    const size_t before = names.size();
    bool is_outside = false;
    for (const LabelRequirement& one : application.kind_nodes[k].requirements) {
      if (one.op != Operator::kIn || names.size() > before) continue;
      is_outside |= one.values.empty();
      const bool is_host = one.key == "kubernetes.io/hostname";
      if (!is_host && one.values.size() != 1) continue;
      for (const std::string& value : one.values)
        names.emplace_back(value + (is_host ? "" : "-"), k);
    }
    if (!is_outside && names.size() == before)
      return Invalid("node type {}: how do the names of its nodes begin? --node-names {}=BEGINNING",
                     kind, kind);
    for (const auto& [name, other] : names) {
      if (other == k || names.size() == before || name != names.back().first) continue;
      const std::string& first = application.catalog->kinds[other].name;
      return Invalid(
          "node types {} and {}: how do the names of their nodes begin? --node-names "
          "{}=BEGINNING,{}=BEGINNING",
          first, kind, first, kind);
    }
  }
  return names;
}

std::string CallsText(const Application& application, const ManifestPlan& plan) {
  const CallGraph& graph = *application.calls;
  const auto& kinds = application.catalog->kinds;
  std::string text;
  for (const auto& [name, kind] : plan.node_names)
    text += fmt::format("node {} {}\n", name, kinds[kind].name);
  const Result<LatencyLaw> law = LatencyLaw::Named(application.law);
  if (law.has_value() && law->queueing) text += "shared\n";
  for (CallId c = 0; c < graph.call_count(); ++c) {
    const Call& call = graph.calls[c];
    text += fmt::format("call {} {} {:.0f}", c, ServiceName(application, call.workload),
                        std::round(call.data_mbytes * 1e6));
    for (KindId k = 0; call.caller != kNone && k < graph.kind_count; ++k)
      text += fmt::format(" {}={}", kinds[k].name, graph.ExecutionMs(c, k));
    text += "\n";
  }
  for (CallId c = 0; c < graph.call_count(); ++c) {
    for (int g = graph.calls[c].first_group; g < graph.calls[c].last_group; ++g) {
      text += fmt::format("group {}", c);
      for (int i = graph.groups[g].first; i < graph.groups[g].last; ++i)
        text += fmt::format(" {}", graph.sequence[i]);
      text += "\n";
    }
  }
  return text;
}

Result<std::string> ManifestsText(const Application& application, const ManifestPlan& plan) {
  TRY_ASSIGN(const std::string space, NamespaceOf(application));
  YamlWriter head;
  head.Comment(fmt::format(
      "The application {} as pods that play its calls, written by `rudderfish manifests`.\n"
      "Endpoints, for GET at the Service of the workload that is called first:",
      application.name));
  for (const Endpoint& endpoint : application.calls->endpoints) {
    for (CallId c = endpoint.root + 1; c < endpoint.end; ++c) {
      const Call& call = application.calls->calls[c];
      if (call.caller != endpoint.root) continue;
      head.Comment(fmt::format("  {}: http://{}:{}/call/{}", endpoint.name,
                               ServiceName(application, call.workload), kPort, c));
    }
  }
  std::string text = head.Take();
  if (space != "default") text += Object("v1", "Namespace", {{"name", space}}).Take() + "---\n";
  YamlWriter calls =
      Object("v1", "ConfigMap", {{"name", ConfigName(application)}, {"namespace", space}});
  calls.BeginMap("data");
  calls.Text(kFile, CallsText(application, plan));
  calls.End();
  text += calls.Take();
  // Services first: a container learns where they are from variables that are set as it starts.
  for (const WorkloadObject& object : application.objects) {
    if (!object.is_external()) text += "---\n" + ServiceText(object);
  }
  for (WorkloadId w = 0; w < application.catalog->workload_count(); ++w) {
    const WorkloadObject& object = application.objects[w];
    if (object.is_external()) continue;
    text += "---\n" + BudgetText(object, plan.workloads[w].replicas);
    text += "---\n" + WorkloadText(application, plan, w);
  }
  return text;
}

}  // namespace rudderfish
