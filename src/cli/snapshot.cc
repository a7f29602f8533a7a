// SPDX-License-Identifier: Apache-2.0
#include "cli/cluster_source.h"
#include "cli/output.h"
#include "cli/snapshot_text.h"
#include "cli/terminal.h"
#include "kube/kube_cluster.h"
#include "model/evaluator.h"

namespace rudderfish {
namespace {

// A workload that the application file holds where it is.
void HoldWorkloads(const Application& application, ClusterView* view) {
  for (size_t i = 0; i < application.objects.size(); ++i) {
    if (application.catalog->workloads[i].movable) continue;
    for (WorkloadView& workload : view->workloads) {
      if (workload.Is(application.objects[i])) {
        workload.not_movable_because.emplace_back("the application file says so");
      }
    }
  }
}

// What the application file adds: where its nodes lie, what it holds, how long its requests take.
Result<void> AddApplication(const ClusterSource& source,
                            const std::shared_ptr<const Application>& application,
                            ClusterView* view) {
  TRY_ASSIGN(const LatencyLaw law, LatencyLaw::Named(application->law));
  kube::KubeCluster cluster(source.mirror.get(), application);
  State state;
  Result<void> refreshed = source.CheckHoldsPods();
  if (refreshed) refreshed = cluster.Refresh(&state);
  view->application = application->name;
  view->law = law.name;
  HoldWorkloads(*application, view);
  if (!refreshed) {
    view->undecidable_because = refreshed.error().message;
    return {};
  }
  for (NodeId node = 0; node < state.nodes.size(); ++node) {
    view->layers[NodeName(state, node)] = state.catalog->layers[state.kind_of(node).layer].name;
  }
  Evaluator model(law);
  model.Reset(state);
  view->latency_ms = model.Now().latency_ms;
  return {};
}

Result<ExitStatus> RunSnapshot(const Arguments& arguments, const Session& session) {
  TRY_ASSIGN(
      const OutputFormat format,
      OutputFormatOf(arguments, {OutputFormat::kTable, OutputFormat::kWide, OutputFormat::kJson,
                                 OutputFormat::kYaml, OutputFormat::kName}));
  TRY_ASSIGN(const ClusterSource source, OpenCluster(arguments));
  ClusterView view = ViewOf(source);
  if (arguments.Has("application")) {
    TRY_ASSIGN(const std::shared_ptr<const Application> application,
               ApplicationOf(arguments, source));
    TRY(AddApplication(source, application, &view));
  }
  if (format == OutputFormat::kName) {
    TRY(PrintNames(SnapshotNames(view)));
    return ExitStatus::kDone;
  }
  if (IsStructured(format)) {
    TRY(PrintStructured(SnapshotJson(source, view), format));
    return ExitStatus::kDone;
  }
  TRY(Print(SnapshotText(
      source, view,
      format == OutputFormat::kWide ? SnapshotDetail::kWide : SnapshotDetail::kTable)));
  if (!source.missing.empty()) {
    std::string list;
    for (const std::string& kind : source.missing) list += (list.empty() ? "" : ", ") + kind;
    Say(session, "Not seen: {}", list);
  }
  return ExitStatus::kDone;
}

}  // namespace

CommandSpec SnapshotCommand() {
  std::vector<OptionSpec> options = ClusterOptions();
  options.push_back({"-o,--output", "table|wide|json|yaml|name",
                     "output format (default: table); wide adds why a node accepts no pods and why "
                     "a workload is not movable"});
  return {.name = "snapshot",
          .summary = "Show the nodes, workloads and application of a Kubernetes cluster",
          .operands = {{.name = "DUMP", .min = 0, .max = 100}},
          .options = options,
          .examples = {"snapshot", "snapshot -n shop --application shop.yaml -o wide",
                       "snapshot --from nodes.json pods.json -o json"},
          .run = RunSnapshot};
}

}  // namespace rudderfish
