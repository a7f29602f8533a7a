// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/progress.h"
#include "base/result.h"
#include "cli/arguments.h"

// The commands of the program. A command is a value: what it is called, what it takes, what help
// says of it, and the function that runs it. The parser, `help` and `completion` all read the same
// list, so that none can forget an option.
//
// Results go to stdout, everything else (progress, what was written where, what to do next) to
// stderr.

namespace rudderfish {

enum class ExitStatus {
  kDone = 0,
  kFailed = 1,
  kBadInput = 2,       // Bad usage included.
  kNotBetter = 3,      // The verdict of an evaluation.
  kInterrupted = 130,  // By SIGINT or SIGTERM, with a part of the result.
};

// What all commands are told.
struct Session {
  Verbosity verbosity = Verbosity::kNormal;
  std::string command_line;  // As it was typed.
  Instant start;             // Of the process.
};

struct OptionSpec {
  std::string_view names;  // "-d,--dir"; commands ask for the last one, without dashes.
  std::string_view value;  // "FOLDER", or what may be given: "ppo|dqn". Empty: a switch.
  std::string_view help;
};

// kubectl's, of commands that look at all namespaces unless -n says another.
inline constexpr OptionSpec kAllNamespacesOption{"-A,--all-namespaces", "",
                                                 "all namespaces (the default)"};

struct OperandSpec {
  std::string_view name;  // "SCENARIO", or what may be given: "bash|zsh|fish".
  int min = 1;
  int max = 1;
};

struct CommandSpec {
  std::string_view name;
  std::string_view summary;  // One line, without a full stop.
  std::vector<OperandSpec> operands;
  std::vector<OptionSpec> options;
  std::string_view details;                // Paragraphs below the options.
  std::vector<std::string_view> examples;  // Without the program's name.
  Result<ExitStatus> (*run)(const Arguments& arguments, const Session& session) = nullptr;
};

CommandSpec ImportCommand();
CommandSpec TrainCommand();
CommandSpec EvaluateCommand();
CommandSpec ExperimentCommand();
CommandSpec PoliciesCommand();
CommandSpec PlotCommand();
CommandSpec ScenarioCommand();
CommandSpec CalibrateCommand();
CommandSpec SimulateCommand();
CommandSpec InspectCommand();
CommandSpec SnapshotCommand();
CommandSpec ProfileCommand();
CommandSpec InitCommand();
CommandSpec RunCommand();
CommandSpec DecisionsCommand();
CommandSpec ExplainCommand();
CommandSpec StatusCommand();
CommandSpec PauseCommand();
CommandSpec ResumeCommand();
CommandSpec PromoteCommand();
CommandSpec DemoteCommand();
CommandSpec MoveCommand();
CommandSpec MovesCommand();
CommandSpec RouteCommand();
CommandSpec VmsCommand();
CommandSpec LoadCommand();
CommandSpec ManifestsCommand();
CommandSpec GymHpaCommand();
CommandSpec NodeCommand();
CommandSpec ServeCommand();
CommandSpec ReachCommand();
CommandSpec ExtenderConfigCommand();
CommandSpec BenchCommand();
CommandSpec CompletionCommand();
CommandSpec VersionCommand();
CommandSpec HelpCommand();

// In the order of help.
const std::vector<CommandSpec>& Commands();

// Options of every command.
const std::vector<OptionSpec>& CommonOptions();

std::vector<std::string_view> CommandNames();

// An error with the nearest name if there is none.
Result<const CommandSpec*> CommandNamed(std::string_view name);

// Long names of what a command takes, without dashes; common options included.
std::vector<std::string_view> OptionNames(const CommandSpec& command);

// "a|b|c" -> a, b, c; one part if there is no bar.
std::vector<std::string_view> Alternatives(std::string_view text);

}  // namespace rudderfish
