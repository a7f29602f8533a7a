// SPDX-License-Identifier: Apache-2.0
#include "cli/help.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text_table.h"
#include "cli/terminal.h"

namespace rudderfish {
namespace {

constexpr int kHelpPageColumns = 90;
constexpr int kHelpColumn = 32;  // Where what an option does begins.

// "-d, --dir FOLDER", "    --seed S".
std::string OptionText(const OptionSpec& option) {
  const size_t comma = option.names.find(',');
  std::string text =
      comma == std::string_view::npos
          ? fmt::format("    {}", option.names)
          : fmt::format("{}, {}", option.names.substr(0, comma), option.names.substr(comma + 1));
  if (!option.value.empty()) text += fmt::format(" {}", option.value);
  return text;
}

std::string OptionLines(const OptionSpec& option) {
  const std::string head = fmt::format("  {}", OptionText(option));
  std::string help = Paragraph(option.help, kHelpPageColumns, kHelpColumn);
  if (TextColumns(head) + 2 > kHelpColumn) return head + "\n" + help;
  return head + help.substr(head.size());
}

std::string Examples(const std::vector<std::string_view>& examples) {
  std::string text;
  for (const std::string_view example : examples) text += fmt::format("  rudderfish {}\n", example);
  return text;
}

Result<ExitStatus> RunHelp(const Arguments& arguments, const Session&) {
  if (arguments.operands().empty()) {
    TRY(Print(ProgramHelp()));
    return ExitStatus::kDone;
  }
  TRY_ASSIGN(const CommandSpec* command, CommandNamed(arguments.operands()[0]));
  TRY(Print(CommandHelp(*command)));
  return ExitStatus::kDone;
}

}  // namespace

std::string UsageLine(const CommandSpec& command) {
  std::string line(command.name);
  for (const OperandSpec& operand : command.operands) {
    line += fmt::format(" {}{}{}{}", operand.min == 0 ? "[" : "", operand.name,
                        operand.max > 1 ? "..." : "", operand.min == 0 ? "]" : "");
  }
  return line + (command.options.empty() ? "" : " [options]");
}

std::string CommandHelp(const CommandSpec& command) {
  std::string text = fmt::format("rudderfish {}: {}\n\n{} rudderfish {}\n", command.name,
                                 command.summary, Bold("Usage:"), UsageLine(command));
  if (!command.examples.empty()) {
    text += fmt::format("\n{}\n{}", Bold("Examples:"), Examples(command.examples));
  }
  text += fmt::format("\n{}\n", Bold("Options:"));
  for (const OptionSpec& option : command.options) text += OptionLines(option);
  for (const OptionSpec& option : CommonOptions()) text += OptionLines(option);
  if (command.details.empty()) return text;
  for (size_t begin = 0; begin < command.details.size();) {
    const size_t end = std::min(command.details.find('\n', begin), command.details.size());
    text += "\n" + Paragraph(command.details.substr(begin, end - begin), kHelpPageColumns);
    begin = end + 1;
  }
  return text;
}

std::string ProgramHelp() {
  std::string text =
      "Rudderfish learns scheduling decisions for a Kubernetes cluster: where to place pending "
      "pods,\nwhich pods to move, and how many replicas to run. It trains in a simulator of the "
      "cluster,\ncompares the result with simpler rules, and explains every decision.\n\n";
  text += fmt::format("{} rudderfish COMMAND [options]\n\n", Bold("Usage:"));
  size_t longest = 0;
  for (const CommandSpec& command : Commands()) longest = std::max(longest, command.name.size());
  for (const CommandSpec& command : Commands()) {
    text += fmt::format("  {:<{}}  {}\n", command.name, longest, command.summary);
  }
  text += fmt::format(
      "\n{}\n{}", Bold("A first tour:"),
      Examples({"inspect scenarios/continuum-7x21.yaml",
                "train scenarios/continuum-7x21.yaml -d runs/first --time 30s",
                "evaluate scenarios/continuum-7x21.yaml --policy greedy,learned=runs/first",
                "simulate scenarios/continuum-7x21.yaml --policy runs/first --seed 7"}));
  text += fmt::format("\n{}\n{}", Bold("On a Kubernetes cluster:"),
                      Examples({"snapshot --application application.yaml",
                                "profile --application application.yaml --for 10m -o cluster.yaml",
                                "train cluster.yaml -d runs/cluster --time 60s",
                                "run --config rudderfish.yaml", "decisions --since 1h"}));
  text +=
      "\nEvery command accepts -q (print only results), -v (print more) and -h (help). Results go "
      "to\nstdout, everything else to stderr. Exit status: 0 success, 1 failure, 2 invalid usage "
      "or input,\n3 the candidate of `evaluate` is not better, 130 `evaluate` or `calibrate` was "
      "stopped early.\nNO_COLOR is respected.\n";
  return text;
}

CommandSpec HelpCommand() {
  return {.name = "help",
          .summary = "Show help for a command",
          .operands = {{.name = "COMMAND", .min = 0}},
          .examples = {"help evaluate"},
          .run = RunHelp};
}

}  // namespace rudderfish
