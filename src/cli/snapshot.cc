// SPDX-License-Identifier: Apache-2.0
#include "cli/cluster_source.h"
#include "cli/snapshot_text.h"
#include "cli/terminal.h"
#include "kube/kube_cluster.h"

namespace rudderfish {
namespace {

Result<ExitStatus> RunSnapshot(const Arguments& arguments, const Session& session) {
  constexpr std::string_view kFormats[] = {"table", "wide", "json"};
  TRY_ASSIGN(const int format, arguments.Choice("output", kFormats, 0));
  TRY_ASSIGN(const ClusterSource source, OpenCluster(arguments));
  ClusterView view = ViewOf(source);
  if (arguments.Has("application")) {
    TRY_ASSIGN(const std::shared_ptr<const Application> application,
               ApplicationOf(arguments, source));
    kube::KubeCluster cluster(source.mirror.get(), application);
    State state;
    const Result<void> refreshed = cluster.Refresh(&state);
    view.application = application->name;
    if (!refreshed) view.undecidable_because = refreshed.error().message;
  }
  if (format == 2) {
    TRY(Print(SnapshotJson(source, view)));
    return ExitStatus::kDone;
  }
  TRY(Print(SnapshotText(view, format == 1 ? SnapshotDetail::kWide : SnapshotDetail::kTable)));
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
  options.push_back({"-o,--output", "table|wide|json",
                     "wide also tells why a node takes no pods and why a workload is not moved"});
  return {
      .name = "snapshot",
      .summary = "what is seen of a Kubernetes cluster",
      .operands = {{.name = "DUMP", .min = 0, .max = 100}},
      .options = options,
      .examples = {"snapshot --from cluster.json", "snapshot --from nodes.json pods.json -o wide"},
      .run = RunSnapshot};
}

}  // namespace rudderfish
