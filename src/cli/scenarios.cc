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
#include "cli/output.h"
#include "cli/terminal.h"
#include "scenario/scenario.h"

namespace rudderfish {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kActions[] = {"list", "show", "validate", "schema"};
enum ScenarioAction { kList, kShow, kValidate, kSchema };

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
          {"arrivals", scenario.arrivals != nullptr},
          {"regions", scenario.regions != nullptr ? scenario.regions->network->size() : 0}};
}

Result<ExitStatus> List(OutputFormat format) {
  TRY_ASSIGN(const std::vector<fs::path> paths, ShippedScenarios());
  OrderedJson rows = OrderedJson::array();
  for (const fs::path& path : paths) {
    TRY_ASSIGN(const Scenario scenario, LoadScenario(path));
    rows.push_back(RowOf(path, scenario));
  }
  if (format == OutputFormat::kName) {
    std::vector<std::string> names;
    for (const OrderedJson& row : rows) names.push_back(row["name"].get<std::string>());
    TRY(PrintNames(names));
    return ExitStatus::kDone;
  }
  if (IsStructured(format)) {
    TRY(PrintStructured(OrderedJson{{"schema_version", 1}, {"scenarios", rows}}.dump(1) + "\n",
                        format));
    return ExitStatus::kDone;
  }
  std::string table = fmt::format("{:<24} {:>6} {:>7} {:>10}  {}\n", "NAME", "NODES", "PODS",
                                  "WORKLOADS", "WHAT HAPPENS");
  for (const OrderedJson& row : rows) {
    const bool arrivals = row["arrivals"].get<bool>();
    const int patterns = row["patterns"].get<int>(), regions = row["regions"].get<int>();
    table += fmt::format(
        "{:<24} {:>6} {:>7} {:>10}  {}\n", row["name"].get<std::string>(), row["nodes"].get<int>(),
        arrivals || regions > 0 ? std::string("-") : std::to_string(row["pods_max"].get<int>()),
        row["workloads"].get<int>(),
        arrivals        ? std::string("pods come and go")
        : regions > 0   ? fmt::format("requests go to {} regions", regions)
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
  if (format == OutputFormat::kName) {
    TRY(PrintNames({path.string()}));
    return ExitStatus::kDone;
  }
  TRY_ASSIGN(const std::string text,
             InspectScenario(path, IsStructured(format) ? OutputFormat::kJson : format));
  TRY(IsStructured(format) ? PrintStructured(text, format) : Print(text));
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
  TRY_ASSIGN(const OutputFormat format,
             OutputFormatOf(arguments, {OutputFormat::kTable, OutputFormat::kJson,
                                        OutputFormat::kYaml, OutputFormat::kName}));
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
  return {
      .name = "scenario",
      .summary = "List, show and validate scenarios, or print their JSON Schema",
      .operands = {{.name = "list|show|validate|schema"},
                   {.name = "SCENARIO", .min = 0, .max = 1000}},
      .options = {{"-o,--output", "table|json|yaml|name",
                   "output format of list and show (default: table)"}},
      .details =
          "`list` lists the scenarios that come with the program. `show` describes one, by file or "
          "by name. `validate` reads files as `train` and `evaluate` do, and reports what is "
          "wrong, where, and how to correct it. `schema` prints the JSON Schema, for editors.",
      .examples = {"scenario list", "scenario show continuum-7x21",
                   "scenario validate scenarios/continuum-7x21.yaml", "scenario schema"},
      .run = RunScenario};
}

}  // namespace rudderfish
