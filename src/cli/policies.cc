// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/json.h"
#include "base/text_table.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "cluster/task_kind.h"
#include "policy/policy_table.h"

// The table of policies, as text and as JSON.

namespace rudderfish {
namespace {

bool IsNumber(const PolicyOption& option) {
  return option.kind != PolicyOption::Kind::kWord && option.kind != PolicyOption::Kind::kPath;
}

OrderedJson JsonOf(const PolicyOption& option) {
  OrderedJson json{
      {"key", option.key},
      {"type", option.KindName()},
      {"default", option.fallback.empty() ? OrderedJson(nullptr) : OrderedJson(option.fallback)},
      {"accepts", option.RangeText()}};
  if (!option.words.empty()) json["values"] = option.words;
  if (IsNumber(option)) {
    // As numbers; of a duration in milliseconds.
    json["minimum"] = option.low;
    json["maximum"] = option.high;
  }
  json["description"] = option.help;
  return json;
}

OrderedJson JsonOf(const PolicyRow& row) {
  OrderedJson json{{"name", row.name}, {"task", TaskName(row.task)}, {"description", row.help}};
  json["example"] = row.example.empty() ? row.name : row.example;
  OrderedJson& options = json["options"] = OrderedJson::array();
  for (const PolicyOption& option : row.options) options.push_back(JsonOf(option));
  return json;
}

std::string OptionText(const PolicyOption& option) {
  if (!option.fallback.empty()) return fmt::format("  {}={}", option.key, option.fallback);
  return fmt::format("  {}={}", option.key, option.kind == PolicyOption::Kind::kPath ? "PATH" : "");
}

std::string TableOf(TaskKind task) {
  std::string heading(TaskName(task));
  std::ranges::transform(heading, heading.begin(), [](unsigned char c) { return std::toupper(c); });
  TextTable table({{heading}, {"DESCRIPTION"}});
  for (const PolicyRow& row : PolicyTable()) {
    if (row.task != task) continue;
    table.Row({std::string(row.name), std::string(row.help)});
    for (const PolicyOption& option : row.options) {
      const std::string range = option.kind == PolicyOption::Kind::kPath
                                    ? std::string()
                                    : fmt::format(" ({})", option.RangeText());
      table.Row({OptionText(option), fmt::format("  {}{}", option.help, range)});
    }
  }
  return table.Text();
}

Result<ExitStatus> RunPolicies(const Arguments& arguments, const Session&) {
  TRY_ASSIGN(const OutputFormat format,
             OutputFormatOf(arguments, {OutputFormat::kTable, OutputFormat::kJson,
                                        OutputFormat::kYaml, OutputFormat::kName}));
  std::optional<TaskKind> only;
  if (arguments.Has("task")) {
    TRY_ASSIGN(only, OfOption("task", TaskNamed(*arguments.Text("task"))));
  }
  if (format == OutputFormat::kName) {
    std::vector<std::string> names;
    for (const PolicyRow& row : PolicyTable()) {
      if (!only || row.task == *only) names.emplace_back(row.name);
    }
    TRY(PrintNames(names));
    return ExitStatus::kDone;
  }
  if (IsStructured(format)) {
    OrderedJson list = OrderedJson::array();
    for (const PolicyRow& row : PolicyTable()) {
      if (!only || row.task == *only) list.push_back(JsonOf(row));
    }
    TRY(PrintStructured(OrderedJson{{"schema_version", 1}, {"policies", list}}.dump(1) + "\n",
                        format));
    return ExitStatus::kDone;
  }
  std::string text;
  for (int i = 0; i < static_cast<int>(std::size(kTaskNames)); ++i) {
    const auto task = static_cast<TaskKind>(i);
    if (only && task != *only) continue;
    text += (text.empty() ? "" : "\n") + TableOf(task);
  }
  TRY(Print(text));
  return ExitStatus::kDone;
}

}  // namespace

CommandSpec PoliciesCommand() {
  return {
      .name = "policies",
      .summary = "List the policies, with their options and defaults",
      .options = {{"--task", kTaskWords,
                   "list only the policies of this task (default: all tasks)"},
                  {"-o,--output", "table|json|yaml|name", "output format (default: table)"}},
      .details =
          "Every command, rudderfish.yaml and experiments name policies the same way: "
          "NAME, NAME:KEY=VALUE,KEY=VALUE, or the path of a run folder or a checkpoint. Anything "
          "that is not a name in this list is a path; write ./greedy for a run folder called "
          "greedy. The defaults of an option are shown after `=`.",
      .examples = {"policies --task scale", "policies -o json"},
      .run = RunPolicies};
}

}  // namespace rudderfish
