// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "base/files.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "cli/text_table.h"
#include "scenario/reach_files.h"

namespace rudderfish {
namespace {

constexpr std::string_view kImportedSystems[] = {"reach"};

Result<ReachImportOptions> OptionsOf(const Arguments& arguments) {
  ReachImportOptions options;
  constexpr std::string_view kCapacities[] = {"drawn", "full"};
  TRY_ASSIGN(const int capacity, arguments.Choice("capacity", kCapacities, 0));
  options.capacity = capacity == 0 ? ReachCapacity::kDrawn : ReachCapacity::kFull;
  if (const auto services = arguments.Text("services")) options.services_file = *services;
  if (const auto name = arguments.Text("name")) options.name = *name;
  TRY_ASSIGN(options.seed, SeedOf(arguments));
  return options;
}

Result<ExitStatus> RunImport(const Arguments& arguments, const Session& session) {
  TRY(ChoiceOf(arguments.operands()[0], kImportedSystems));
  const std::filesystem::path folder = arguments.operands()[1];
  TRY_ASSIGN(const std::string config,
             arguments.RequiredText("config", "a folder of the configuration, such as 7-21"));
  TRY(arguments.RequiredText("pattern", "call patterns, such as chain,aggregator_parallel"));
  TRY_ASSIGN(const std::vector<std::string> patterns, arguments.List("pattern"));
  TRY_ASSIGN(const ReachImportOptions options, OptionsOf(arguments));
  TRY_ASSIGN(const Scenario scenario, ImportReach(folder, config, patterns, options));
  const std::string yaml = ToYaml(scenario);
  const std::string path = arguments.Text("output").value_or("-");
  if (path == "-") {
    TRY(Print(yaml));
    return ExitStatus::kDone;
  }
  TRY(WriteFileAtomically(path, yaml));
  Say(session, "Wrote {}: {}, {}, up to {}, {}", path, scenario.name,
      Counted(scenario.node_count(), "node"), Counted(scenario.pod_limit(), "pod"),
      Counted(static_cast<int64_t>(scenario.patterns.size()), "call pattern"));
  Say(session, "Next: rudderfish train {} -d runs/{} --time 60s", ShellWord(path),
      ShellWord(scenario.name));
  return ExitStatus::kDone;
}

}  // namespace

CommandSpec ImportCommand() {
  return {
      .name = "import",
      .summary = "turn the configuration of another system into a scenario",
      .operands = {{.name = "reach"}, {.name = "FOLDER"}},
      .options =
          {{"--config", "SIZE", "the cluster to import, a folder such as 7-21"},
           {"--pattern", "P[,P...]",
            "call patterns; of several, each episode draws one, all equally likely"},
           {"-o,--output", "FILE", "where to write the scenario; stdout if left out"},
           {"--capacity", "drawn|full",
            "what nodes can hold: drawn each episode (nodes.json, the default), or all that they "
            "have (nodes-simple.json)"},
           {"--services", "FILE", "services.json by default; services_full.json has more replicas"},
           {"--name", "NAME", "of the scenario; reach-SIZE by default"},
           {"--seed", "S", "that the scenario notes; 1 by default"}},
      .examples = {"import reach configs --config 7-21 --pattern chain -o chain.yaml",
                   "import reach configs --config 22-41 --pattern "
                   "chain,aggregator_sequential,aggregator_parallel -o 22-41.yaml"},
      .run = RunImport};
}

}  // namespace rudderfish
