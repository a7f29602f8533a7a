// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <memory>
#include <system_error>

#include "base/files.h"
#include "cli/commands.h"
#include "cli/inspection.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "learn/run_folder.h"

namespace rudderfish {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLengthBytes = 8;  // Of a safetensors header; the header follows it.

Result<std::string> InspectionOf(const fs::path& path, OutputFormat format) {
  TRY_ASSIGN(const FileKind kind, KindOf(path));
  switch (kind) {
    case FileKind::kScenario:
      return InspectScenario(path, format);
    case FileKind::kRun:
      return InspectRun(path, format);
    case FileKind::kCheckpoint:
      return InspectCheckpoint(path, format);
    case FileKind::kStartStates:
      break;
  }
  return InspectStartStates(path, format);
}

Result<ExitStatus> RunInspect(const Arguments& arguments, const Session&) {
  TRY_ASSIGN(const OutputFormat format, OutputFormatOf(arguments));
  TRY_ASSIGN(const std::string text, InspectionOf(arguments.operands()[0], format));
  TRY(Print(text));
  return ExitStatus::kDone;
}

}  // namespace

Result<FileKind> KindOf(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    if (HasRun(path)) return FileKind::kRun;
    return Fail(ErrorCode::kNotFound, "{}: a folder without config.yaml: no run of `train`",
                path.string());
  }
  TRY_ASSIGN(const std::string text, ReadFile(path));
  if (path.extension() == ".safetensors" ||
      (text.size() > kLengthBytes && text[kLengthBytes] == '{' && text[kLengthBytes - 1] == '\0')) {
    return FileKind::kCheckpoint;
  }
  if (path.extension() == ".jsonl") return FileKind::kStartStates;
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos)
    return Invalid("{}: is empty; expected a scenario, a checkpoint or start states",
                   path.string());
  return text[first] == '{' ? FileKind::kStartStates : FileKind::kScenario;
}

CommandSpec InspectCommand() {
  return {.name = "inspect",
          .summary = "Describe a scenario, run, checkpoint or file of initial states",
          .operands = {{.name = "FILE"}},
          .options = {{"-o,--output", "table|json", "output format (default: table, as text)"}},
          .examples = {"inspect scenarios/continuum-7x21.yaml", "inspect runs/a",
                       "inspect runs/a/best.safetensors -o json"},
          .run = RunInspect};
}

}  // namespace rudderfish
