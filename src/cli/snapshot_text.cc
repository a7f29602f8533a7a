// SPDX-License-Identifier: Apache-2.0
#include "cli/snapshot_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <span>
#include <tuple>

#include "base/json.h"
#include "base/text_table.h"
#include "base/timestamp.h"
#include "base/units.h"
#include "kube/scheduling.h"

namespace rudderfish {
namespace {

using kube::Mirror;
using kube::Pod;

int64_t WholeUnixSeconds() {
  return std::chrono::floor<std::chrono::seconds>(Today()).time_since_epoch().count();
}

std::string OfAll(const Resources& part, const Resources& all) {
  return fmt::format("{} of {}", part.cpu_millis / 1000.0, all.cpu_millis / 1000.0);
}

std::string MemoryOfAll(const Resources& part, const Resources& all) {
  return fmt::format("{} of {}", FormatBytes(part.memory_bytes), FormatBytes(all.memory_bytes));
}

std::vector<NodeView> NodesOf(const Mirror& mirror) {
  const kube::NodeLoads loads = kube::LoadOfNodes(mirror);
  std::vector<NodeView> views;
  for (const auto& [key, node] : mirror.nodes.objects()) {
    NodeView view{.node = &node};
    if (const auto at = loads.find(key.name); at != loads.end()) view.load = at->second;
    view.free = node.allocatable - view.load.requested;
    view.free.cpu_millis = std::max<int64_t>(0, view.free.cpu_millis);
    view.free.memory_bytes = std::max<int64_t>(0, view.free.memory_bytes);
    view.usage = mirror.node_usage.Find(key);
    view.closed_because = kube::WhyClosed(node, view.load, {});
    views.push_back(std::move(view));
  }
  return views;
}

void AddPod(const Mirror& mirror, const Pod& pod, std::span<const kube::Node* const> nodes,
            WorkloadView* view) {
  view->pods.push_back(&pod);
  view->ready += pod.ready;
  view->requests.cpu_millis = std::max(view->requests.cpu_millis, pod.shape->requests.cpu_millis);
  view->requests.memory_bytes =
      std::max(view->requests.memory_bytes, pod.shape->requests.memory_bytes);
  std::vector<std::string> reasons = kube::WhyNotMovable(mirror, pod, WholeUnixSeconds());
  if (std::string reason = kube::WhyNotOnAll(*pod.shape, nodes); !reason.empty())
    reasons.push_back(std::move(reason));
  for (std::string& reason : reasons) {
    auto& all = view->not_movable_because;
    if (std::find(all.begin(), all.end(), reason) == all.end()) all.push_back(std::move(reason));
  }
}

bool IsChosen(const ClusterSource& source, const std::string& name_space) {
  return source.namespaces.empty() || source.namespaces.contains(name_space);
}

std::vector<WorkloadView> WorkloadsOf(const ClusterSource& source) {
  const Mirror& mirror = *source.mirror;
  std::map<std::tuple<std::string, std::string, std::string>, WorkloadView> views;
  const auto view_of = [&](const std::string& place, const kube::ObjectRef& ref) -> WorkloadView& {
    WorkloadView& view = views[{place, ref.kind, ref.name}];
    view.object_namespace = place;
    view.kind = ref.kind;
    view.name = ref.name;
    view.controller = mirror.FindController(ref.kind, {place, ref.name});
    return view;
  };
  for (const auto& [key, deployment] : mirror.deployments.objects()) {
    view_of(key.object_namespace, {"Deployment", key.name, ""});  // Also those without a pod.
  }
  for (const auto& [key, set] : mirror.stateful_sets.objects()) {
    view_of(key.object_namespace, {"StatefulSet", key.name, ""});
  }
  std::vector<const kube::Node*> nodes;
  for (const auto& [key, node] : mirror.nodes.objects()) nodes.push_back(&node);
  for (const auto& [key, pod] : mirror.pods.objects()) {
    kube::ObjectRef ref = mirror.WorkloadOf(pod);
    if (ref.kind.empty()) ref = {"Pod", key.name, ""};
    if (pod.counts()) AddPod(mirror, pod, nodes, &view_of(key.object_namespace, ref));
  }
  std::vector<WorkloadView> list;
  for (auto& [unused, view] : views) {
    if (IsChosen(source, view.object_namespace)) list.push_back(std::move(view));
  }
  return list;
}

std::string NodesTable(const ClusterView& view, SnapshotDetail detail) {
  using Align = TextTable::Align;
  std::vector<TextTable::Column> columns{{"NODE"}};
  if (!view.layers.empty()) columns.push_back({"LAYER"});
  for (const TextTable::Column& column :
       std::vector<TextTable::Column>{{"TAKES PODS"},
                                      {"CORES FREE", Align::kRight},
                                      {"MEMORY FREE", Align::kRight},
                                      {"PODS", Align::kRight},
                                      {"CORES USED", Align::kRight}}) {
    columns.push_back(column);
  }
  if (detail == SnapshotDetail::kWide) columns.push_back({"BECAUSE"});
  TextTable table(std::move(columns));
  for (const NodeView& node : view.nodes) {
    const std::string& name = node.node->meta.key.name;
    std::vector<std::string> cells{name};
    if (!view.layers.empty()) {
      const auto layer = view.layers.find(name);
      cells.push_back(layer == view.layers.end() ? "-" : layer->second);
    }
    for (const std::string& cell :
         {std::string(node.closed_because.empty() ? "yes" : "no"),
          OfAll(node.free, node.node->allocatable), MemoryOfAll(node.free, node.node->allocatable),
          std::to_string(node.load.pods),
          node.usage == nullptr ? std::string("-")
                                : fmt::format("{}", node.usage->used.cpu_millis / 1000.0)}) {
      cells.push_back(cell);
    }
    if (detail == SnapshotDetail::kWide) cells.push_back(node.closed_because);
    table.Row(std::move(cells));
  }
  return table.Text();
}

std::string WorkloadTable(const ClusterView& view, SnapshotDetail detail) {
  using Align = TextTable::Align;
  std::vector<TextTable::Column> columns{{"NAMESPACE"},
                                         {"WORKLOAD"},
                                         {"READY", Align::kRight},
                                         {"CORES/POD", Align::kRight},
                                         {"MEMORY/POD", Align::kRight},
                                         {"NODES", Align::kRight},
                                         {"MOVABLE"}};
  if (detail == SnapshotDetail::kWide) columns.push_back({"BECAUSE"});
  TextTable table(std::move(columns));
  for (const WorkloadView& workload : view.workloads) {
    std::set<std::string> nodes;
    for (const Pod* pod : workload.pods) nodes.insert(pod->node);
    const int64_t wanted = workload.controller == nullptr
                               ? static_cast<int64_t>(workload.pods.size())
                               : workload.controller->replicas;
    std::vector<std::string> cells{workload.object_namespace,
                                   fmt::format("{}/{}", workload.kind, workload.name),
                                   fmt::format("{}/{}", workload.ready, wanted),
                                   fmt::format("{}", workload.requests.cpu_millis / 1000.0),
                                   FormatBytes(workload.requests.memory_bytes),
                                   std::to_string(nodes.size()),
                                   workload.not_movable_because.empty() ? "yes" : "no"};
    if (detail == SnapshotDetail::kWide) {
      cells.push_back(fmt::format("{}", fmt::join(workload.not_movable_because, "; ")));
    }
    table.Row(std::move(cells));
  }
  return table.Text();
}

OrderedJson ResourcesJson(const Resources& resources) {
  return {{"cpu_millis", resources.cpu_millis}, {"memory_bytes", resources.memory_bytes}};
}

OrderedJson UsageJson(const kube::Usage* usage, int64_t now) {
  if (usage == nullptr) return nullptr;
  OrderedJson json = ResourcesJson(usage->used);
  json["source"] = "metrics.k8s.io";
  if (usage->measured_at > 0) json["age_s"] = now - usage->measured_at;
  return json;
}

OrderedJson NodesJson(const ClusterView& view, int64_t now) {
  OrderedJson list = OrderedJson::array();
  for (const NodeView& node : view.nodes) {
    OrderedJson labels = OrderedJson::object(), taints = OrderedJson::array();
    for (const auto& [key, value] : node.node->labels) labels[key] = value;
    for (const NodeTaint& taint : node.node->taints) {
      taints.push_back(
          {{"key", taint.key}, {"value", taint.value}, {"effect", kube::NameOf(taint.effect)}});
    }
    OrderedJson json{{"name", node.node->meta.key.name},
                     {"uid", node.node->meta.uid},
                     {"ready", node.node->ready},
                     {"unschedulable", node.node->unschedulable},
                     {"takes_pods", node.closed_because.empty()},
                     {"closed_because", node.closed_because},
                     {"allocatable", ResourcesJson(node.node->allocatable)},
                     {"requested", ResourcesJson(node.load.requested)},
                     {"free", ResourcesJson(node.free)},
                     {"pods", node.load.pods},
                     {"pods_max", node.node->pods_max},
                     {"usage", UsageJson(node.usage, now)},
                     {"labels", std::move(labels)},
                     {"taints", std::move(taints)}};
    list.push_back(std::move(json));
  }
  return list;
}

constexpr std::string_view kPhases[] = {"Pending", "Running", "Succeeded", "Failed", "Unknown"};

OrderedJson PodsJson(const ClusterSource& source, int64_t now) {
  const Mirror& mirror = *source.mirror;
  OrderedJson list = OrderedJson::array();
  for (const auto& [key, pod] : mirror.pods.objects()) {
    if (!IsChosen(source, key.object_namespace)) continue;
    const kube::ObjectRef workload = mirror.WorkloadOf(pod);
    list.push_back({{"namespace", key.object_namespace},
                    {"name", key.name},
                    {"uid", pod.meta.uid},
                    {"node", pod.node},
                    {"phase", kPhases[static_cast<int>(pod.phase)]},
                    {"ready", pod.ready},
                    {"terminating", pod.terminating},
                    {"gated", pod.gated},
                    {"workload", {{"kind", workload.kind}, {"name", workload.name}}},
                    {"requests", ResourcesJson(pod.shape->requests)},
                    {"usage", UsageJson(mirror.pod_usage.Find(key), now)},
                    {"created_at", pod.meta.created_at}});
  }
  return list;
}

OrderedJson WorkloadsJson(const ClusterView& view) {
  OrderedJson list = OrderedJson::array();
  for (const WorkloadView& workload : view.workloads) {
    OrderedJson json{{"namespace", workload.object_namespace},
                     {"kind", workload.kind},
                     {"name", workload.name},
                     {"pods", workload.pods.size()},
                     {"ready", workload.ready},
                     {"requests", ResourcesJson(workload.requests)},
                     {"movable", workload.not_movable_because.empty()},
                     {"not_movable_because", workload.not_movable_because}};
    json["replicas"] = workload.controller == nullptr ? OrderedJson(nullptr)
                                                      : OrderedJson(workload.controller->replicas);
    list.push_back(std::move(json));
  }
  return list;
}

OrderedJson SourcesJson(const ClusterSource& source) {
  OrderedJson list = OrderedJson::array();
  for (int i = 0; i < kube::kMirroredCount; ++i) {
    const auto resource = static_cast<kube::Resource>(i);
    if (!source.mirror->IsSynced(resource)) continue;
    const Duration age = source.clock->Now() - source.mirror->FreshAt(resource);
    list.push_back({{"kind", kube::NameOf(resource).kind},
                    {"count", source.mirror->Count(resource)},
                    {"source", source.name},
                    {"age_s", Seconds(age)}});
  }
  return list;
}

// Where all of this was seen, and how long ago.
std::string SourceLine(const ClusterSource& source, const ClusterView& view) {
  std::string line = fmt::format("Seen in {}", source.name);
  if (source.is_live()) {
    Duration oldest{};
    for (int i = 0; i < kube::kMirroredCount; ++i) {
      const auto resource = static_cast<kube::Resource>(i);
      if (!source.mirror->IsSynced(resource)) continue;
      oldest = std::max(oldest, source.clock->Now() - source.mirror->FreshAt(resource));
    }
    line += fmt::format(", at most {:.1f} s ago", Seconds(oldest));
  }
  int64_t measured_at = 0;
  for (const NodeView& node : view.nodes) {
    if (node.usage == nullptr || node.usage->measured_at <= 0) continue;
    if (measured_at == 0 || node.usage->measured_at < measured_at) {
      measured_at = node.usage->measured_at;
    }
  }
  if (measured_at > 0) {
    line += fmt::format("; use as of metrics.k8s.io, at most {} s ago",
                        WholeUnixSeconds() - measured_at);
  }
  return line + "\n";
}

}  // namespace

ClusterView ViewOf(const ClusterSource& source) {
  return {.nodes = NodesOf(*source.mirror), .workloads = WorkloadsOf(source)};
}

std::string SnapshotText(const ClusterSource& source, const ClusterView& view,
                         SnapshotDetail detail) {
  std::string text = NodesTable(view, detail) + "\n" + WorkloadTable(view, detail) + "\n";
  if (!view.application.empty()) {
    text += fmt::format("Application {}: {}\n", view.application,
                        view.latency_ms ? fmt::format("complete; latency {:.1f} ms by the {} law",
                                                      *view.latency_ms, view.law)
                                        : view.undecidable_because);
  }
  return text + SourceLine(source, view);
}

std::string SnapshotJson(const ClusterSource& source, const ClusterView& view) {
  const int64_t now = WholeUnixSeconds();
  OrderedJson json{{"schema_version", 1},
                   {"kind", "snapshot"},
                   {"sources", SourcesJson(source)},
                   {"not_seen", source.missing},
                   {"nodes", NodesJson(view, now)},
                   {"pods", PodsJson(source, now)},
                   {"workloads", WorkloadsJson(view)}};
  if (!view.application.empty()) {
    json["application"] = {{"name", view.application},
                           {"complete", view.undecidable_because.empty()},
                           {"undecidable_because", view.undecidable_because},
                           {"layers", view.layers},
                           {"law", view.law}};
    json["application"]["latency_ms"] =
        view.latency_ms ? OrderedJson(*view.latency_ms) : OrderedJson(nullptr);
  }
  return json.dump(1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

std::vector<std::string> SnapshotNames(const ClusterView& view) {
  std::vector<std::string> names;
  for (const NodeView& node : view.nodes) names.push_back("node/" + node.node->meta.key.name);
  for (const WorkloadView& workload : view.workloads) {
    std::string kind = workload.kind;
    std::transform(kind.begin(), kind.end(), kind.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    names.push_back(fmt::format("{}/{}", kind, workload.name));
  }
  return names;
}

}  // namespace rudderfish
