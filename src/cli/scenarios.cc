// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <vector>

#include "base/files.h"
#include "base/json.h"
#include "cli/commands.h"
#include "cli/files.h"
#include "cli/inspection.h"
#include "cli/terminal.h"
#include "scenario/scenario.h"

namespace rudderfish {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kActions[] = {"list", "show", "validate", "schema"};
enum Action { kList, kShow, kValidate, kSchema };

// Those that come with the program, by name.
Result<std::vector<fs::path>> ShippedScenarios() {
  TRY_ASSIGN(const fs::path folder, ShippedFile("scenarios"));
  std::vector<fs::path> paths;
  std::error_code failed;
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    if (entry->path().extension() == ".yaml") paths.push_back(entry->path());
  }
  if (failed) return Invalid("{}: {}", folder.string(), failed.message());
  std::sort(paths.begin(), paths.end());
  return paths;
}

OrderedJson RowOf(const fs::path& path, const Scenario& scenario) {
  return {{"name", scenario.name},
          {"file", path.string()},
          {"nodes", scenario.node_count()},
          {"pods_max", scenario.pod_limit()},
          {"workloads", scenario.catalog->workloads.size()},
          {"patterns", scenario.patterns.size()},
          {"arrivals", scenario.arrivals != nullptr}};
}

Result<ExitStatus> List(OutputFormat format) {
  TRY_ASSIGN(const std::vector<fs::path> paths, ShippedScenarios());
  OrderedJson rows = OrderedJson::array();
  for (const fs::path& path : paths) {
    TRY_ASSIGN(const Scenario scenario, LoadScenario(path));
    rows.push_back(RowOf(path, scenario));
  }
  if (format == OutputFormat::kJson) {
    TRY(Print(OrderedJson{{"schema_version", 1}, {"scenarios", rows}}.dump(1) + "\n"));
    return ExitStatus::kDone;
  }
  std::string table = fmt::format("{:<24} {:>6} {:>7} {:>10}  {}\n", "NAME", "NODES", "PODS",
                                  "WORKLOADS", "WHAT HAPPENS");
  for (const OrderedJson& row : rows) {
    const bool arrivals = row["arrivals"].get<bool>();
    const int patterns = row["patterns"].get<int>();
    table += fmt::format("{:<24} {:>6} {:>7} {:>10}  {}\n", row["name"].get<std::string>(),
                         row["nodes"].get<int>(),
                         arrivals ? std::string("-") : std::to_string(row["pods_max"].get<int>()),
                         row["workloads"].get<int>(),
                         arrivals        ? std::string("pods come and go")
                         : patterns == 1 ? std::string("1 call pattern")
                                         : fmt::format("{} call patterns", patterns));
  }
  TRY(Print(table));
  return ExitStatus::kDone;
}

// A path as it is, or the name of one that comes with the program.
Result<fs::path> ScenarioNamed(const std::string& name) {
  std::error_code ignored;
  if (fs::exists(name, ignored)) return fs::path(name);
  if (name.find('/') != name.npos || name.ends_with(".yaml")) return ShippedFile(name);
  return ShippedFile(fmt::format("scenarios/{}.yaml", name));
}

Result<ExitStatus> Show(const std::string& name, OutputFormat format) {
  TRY_ASSIGN(const fs::path path, ScenarioNamed(name));
  TRY_ASSIGN(const std::string text, InspectScenario(path, format));
  TRY(Print(text));
  return ExitStatus::kDone;
}

// All of them, also after one that is wrong; a line each.
Result<ExitStatus> Validate(const std::vector<std::string>& names) {
  std::vector<Error> errors;
  for (const std::string& name : names) {
    TRY_ASSIGN(const fs::path path, ScenarioNamed(name));
    const Result<Scenario> scenario = LoadScenario(path);
    if (scenario.has_value()) {
      TRY(Print(fmt::format("{}: valid\n", path.string())));
    } else {
      errors.push_back(scenario.error());
    }
  }
  if (errors.empty()) return ExitStatus::kDone;
  for (size_t i = 0; i + 1 < errors.size(); ++i) Complain("scenario: " + errors[i].message);
  return tl::unexpected(errors.back());
}

Result<ExitStatus> Schema() {
  TRY_ASSIGN(const fs::path path, ShippedFile("scenarios/scenario.schema.json"));
  TRY_ASSIGN(const std::string text, ReadFile(path));
  TRY(Print(text));
  return ExitStatus::kDone;
}

Result<ExitStatus> RunScenario(const Arguments& arguments, const Session&) {
  TRY_ASSIGN(const OutputFormat format, OutputFormatOf(arguments));
  const std::vector<std::string>& words = arguments.operands();
  TRY_ASSIGN(const int action, ChoiceOf(words[0], kActions));
  const std::vector<std::string> names(words.begin() + 1, words.end());
  if ((action == kList || action == kSchema) && !names.empty()) {
    return Invalid("`{}` takes no file; found \"{}\"", words[0], names[0]);
  }
  if (action == kShow && names.size() != 1) return Invalid("`show` takes one file or name");
  if (action == kValidate && names.empty()) {
    return Invalid("`validate` takes files, such as scenarios/continuum-7x21.yaml");
  }
  switch (action) {
    case kList:
      return List(format);
    case kShow:
      return Show(names[0], format);
    case kValidate:
      return Validate(names);
    default:
      return Schema();
  }
}

}  // namespace

CommandSpec ScenarioCommand() {
  return {.name = "scenario",
          .summary = "list those that come with the program, show, check, print the schema",
          .operands = {{.name = "list|show|validate|schema"},
                       {.name = "SCENARIO", .min = 0, .max = 1000}},
          .options = {{"-o,--output", "table|json", "of list and show; a table by default"}},
          .details =
              "`list` shows what comes with the program; `show` says what one is, in words and "
              "numbers, by file or by name; `validate` reads files as train and evaluate would, "
              "and says of each that is wrong what, where and how to mend it; `schema` prints the "
              "JSON Schema, for editors.",
          .examples = {"scenario list", "scenario show continuum-7x21",
                       "scenario validate scenarios/continuum-7x21.yaml", "scenario schema"},
          .run = RunScenario};
}

}  // namespace rudderfish
