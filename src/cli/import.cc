// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "base/files.h"
#include "base/text_table.h"
#include "cli/commands.h"
#include "cli/terminal.h"
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
  return {.name = "import",
          .summary = "Convert the configuration of another system to a scenario",
          .operands = {{.name = "reach"}, {.name = "FOLDER"}},
          .options =
              {{"--config", "SIZE", "cluster to import: a folder such as 7-21"},
               {"--pattern", "P[,P...]",
                "call patterns; each episode draws one of them with equal probability"},
               {"-o,--output", "FILE", "file to write the scenario to (default stdout)"},
               {"--capacity", "drawn|full",
                "capacity of nodes: drawn in each episode from nodes.json, or the full capacity of "
                "nodes-simple.json (default drawn)"},
               {"--services", "FILE",
                "file of services (default services.json; services_full.json has more replicas)"},
               {"--name", "NAME", "name of the scenario (default reach-SIZE)"},
               {"--seed", "S", "random seed to write into the scenario (default 1)"}},
          .examples = {"import reach configs --config 7-21 --pattern chain -o chain.yaml",
                       "import reach configs --config 22-41 --pattern "
                       "chain,aggregator_sequential,aggregator_parallel -o 22-41.yaml"},
          .run = RunImport};
}

}  // namespace rudderfish
