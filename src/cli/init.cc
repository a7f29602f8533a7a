// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>

#include "base/files.h"
#include "base/yaml_writer.h"
#include "cli/cluster_source.h"
#include "cli/terminal.h"
#include "kube/draft_application.h"
#include "scenario/application_writer.h"

namespace rudderfish {
namespace {

std::string FirstConfiguration(const Arguments& arguments, const ClusterSource& source) {
  YamlWriter out;
  out.Comment(
      "Rudderfish in shadow: it compares its choices with those of kube-scheduler, records\n"
      "them, and changes nothing. docs/placement.md says how it may do more.");
  out.Field("rudderfish", "config/v1");
  YamlWriter::Fields cluster;
  if (const auto given = arguments.Text("kubeconfig"))  // Else relative to the configuration.
    cluster.emplace_back("kubeconfig", std::filesystem::absolute(*given).native());
  if (const auto given = arguments.Text("context")) cluster.emplace_back("context", *given);
  if (!cluster.empty()) out.FlowMap("cluster", cluster);
  out.BlankLine();
  out.BeginMap("decisions");
  out.FlowMap("placement",
              {{"mode", "shadow"}, {"policy", "greedy"}, {"objective", "utilisation"}});
  out.Comment(
      "To plan moves of running pods too, complete application.yaml, and take this in:\n"
      "migration: {mode: shadow, policy: lookahead, baseline: greedy}");
  out.End();
  out.Comment("applications: [application.yaml]");
  if (!source.namespaces.empty())
    out.Comment(fmt::format("scope: {{namespaces: [{}]}}", fmt::join(source.namespaces, ", ")));
  out.BlankLine();
  out.FlowMap("journal", {{"path", "rudderfish.db"}});
  return out.Take();
}

Result<ExitStatus> RunInit(const Arguments& arguments, const Session& session) {
  const std::filesystem::path folder = arguments.Text("directory").value_or(".");
  const auto config = folder / "rudderfish.yaml", application = folder / "application.yaml";
  for (const auto& path : {config, application}) {
    if (!arguments.Has("force") && std::filesystem::exists(path))
      return Invalid("{} exists; use --force to overwrite it", path.native());
  }
  TRY_ASSIGN(const ClusterSource source, OpenCluster(arguments));
  TRY(source.CheckHoldsPods());
  TRY_ASSIGN(const Application draft, kube::DraftApplication(*source.mirror, source.namespaces));
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return Invalid("{}: {}", folder.native(), error.message());
  TRY(WriteFileAtomically(application, ApplicationDraftText(draft)));
  TRY(WriteFileAtomically(config, FirstConfiguration(arguments, source)));
  Say(session, "Wrote {} and {}", config.native(), application.native());
  Say(session, "Next: rudderfish run --config {} --dry-run", config.native());
  return ExitStatus::kDone;
}

}  // namespace

CommandSpec InitCommand() {
  std::vector<OptionSpec> options = ClusterOptions();
  std::erase_if(options, [](const OptionSpec& one) { return one.names == "--application"; });
  options.push_back({"-d,--directory", "FOLDER", "where to write (default: the current folder)"});
  options.push_back({"--force", "", "overwrite files that exist"});
  return {.name = "init",
          .summary = "Write a first configuration from a Kubernetes cluster",
          .operands = {{.name = "DUMP", .min = 0, .max = 100}},
          .options = options,
          .details =
              "Writes rudderfish.yaml, which runs placement in shadow mode, and application.yaml, "
              "which names the layers, node types and workloads of the cluster. Calls, latencies "
              "and execution times are left for you to fill in.",
          .examples = {"init", "init -n shop -d shop", "init --from nodes.json pods.json"},
          .run = RunInit};
}

}  // namespace rudderfish
