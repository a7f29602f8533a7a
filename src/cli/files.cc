// SPDX-License-Identifier: Apache-2.0
#include "cli/files.h"

#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/files.h"
#include "learn/run_folder.h"

namespace rudderfish {

namespace fs = std::filesystem;

Result<std::vector<StartState>> SelectedStarts(const Arguments& arguments,
                                               const Scenario& scenario) {
  TRY_ASSIGN(const std::string path, arguments.RequiredText("starts", "a file of start states"));
  StartStateFilter filter;
  if (const auto select = arguments.Text("select")) {
    TRY_ASSIGN(filter, ParseStartStateFilter(*select));
  }
  return LoadStartStates(path, scenario, filter);
}

Result<fs::path> ShippedFile(const fs::path& name) {
  std::error_code ignored;
  if (fs::exists(name, ignored)) return name;
  fs::path folder = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  while (!folder.empty()) {
    for (const char* shared : {"", "share/rudderfish"}) {
      const fs::path path = folder / shared / name;
      if (fs::exists(path, ignored)) return path;
    }
    if (folder == folder.root_path()) break;
    folder = folder.parent_path();
  }
  return Fail(ErrorCode::kNotFound, "{}: not found here or above the program's folder",
              name.string());
}

Result<void> CheckCanWrite(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    return Invalid("{}: is a folder; name a file in it", path.string());
  }
  const fs::path parent = path.parent_path().empty() ? fs::path(".") : path.parent_path();
  if (!fs::is_directory(parent, ignored)) {
    return Invalid("{}: there is no folder {} to write it in", path.string(), parent.string());
  }
  if (!fs::exists(path, ignored) && ::access(parent.c_str(), W_OK) != 0) {
    return Invalid("{}: {} may not be written: {}", path.string(), parent.string(),
                   std::generic_category().message(errno));
  }
  return {};
}

Result<fs::path> KeepVariant(const fs::path& scenario, const ExperimentVariant& variant,
                             const fs::path& folder) {
  if (variant.changes.empty()) return scenario;
  TRY_ASSIGN(const TrainScenario changed,
             TrainScenario::Open(scenario, std::nullopt, variant.changes));
  const fs::path kept = folder / "scenarios" / variant.name / scenario.filename();
  TRY(MakeDirectories(kept.parent_path()));
  TRY(WriteFileAtomically(kept, changed.text));
  return kept;
}

}  // namespace rudderfish
