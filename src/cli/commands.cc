// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"

#include <algorithm>

#include "base/suggest.h"

namespace rudderfish {

const std::vector<CommandSpec>& Commands() {
  static const auto* commands = new std::vector<CommandSpec>{
      ImportCommand(),    TrainCommand(),      EvaluateCommand(),  ExperimentCommand(),
      CalibrateCommand(), PoliciesCommand(),   PlotCommand(),      SimulateCommand(),
      InspectCommand(),   ScenarioCommand(),   SnapshotCommand(),  ProfileCommand(),
      InitCommand(),      RunCommand(),        DecisionsCommand(), ExplainCommand(),
      StatusCommand(),    PauseCommand(),      ResumeCommand(),    PromoteCommand(),
      DemoteCommand(),    MoveCommand(),       MovesCommand(),     RouteCommand(),
      VmsCommand(),       LoadCommand(),       ManifestsCommand(), NodeCommand(),
      ServeCommand(),     ReachCommand(),      GymHpaCommand(),    ExtenderConfigCommand(),
      BenchCommand(),     CompletionCommand(), VersionCommand(),   HelpCommand(),
  };
  return *commands;
}

const std::vector<OptionSpec>& CommonOptions() {
  static const auto* options = new std::vector<OptionSpec>{
      {"-q,--quiet", "", "print only results and errors"},
      {"-v,--verbose", "", "print more details; show progress even if stderr is not a terminal"},
      {"-h,--help", "", "show this help"}};
  return *options;
}

std::vector<std::string_view> CommandNames() {
  std::vector<std::string_view> names;
  for (const CommandSpec& command : Commands()) names.push_back(command.name);
  return names;
}

Result<const CommandSpec*> CommandNamed(std::string_view name) {
  const auto& commands = Commands();
  const auto found = std::find_if(commands.begin(), commands.end(),
                                  [&](const CommandSpec& spec) { return spec.name == name; });
  if (found != commands.end()) return &*found;
  const std::string near = DidYouMean(name, CommandNames());
  return Invalid("unknown command `{}`{}", name,
                 near.empty() ? "; `rudderfish help` lists them" : near);
}

std::vector<std::string_view> OptionNames(const CommandSpec& command) {
  std::vector<std::string_view> names;
  const auto add = [&](const std::vector<OptionSpec>& options) {
    for (const OptionSpec& option : options) {
      names.push_back(option.names.substr(option.names.rfind("--") + 2));
    }
  };
  add(command.options);
  add(CommonOptions());
  return names;
}

std::vector<std::string_view> Alternatives(std::string_view text) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('|', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace rudderfish
