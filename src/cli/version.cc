// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/terminal.h"
#include "nn/kernel.h"

namespace rudderfish {
namespace {

Result<ExitStatus> RunVersion(const Arguments&, const Session&) {
  TRY(Print(fmt::format("rudderfish {} ({} kernels)\n", ProgramVersion(), nn::BestKernels().name)));
  return ExitStatus::kDone;
}

}  // namespace

std::string_view ProgramVersion() { return RUDDERFISH_VERSION; }

CommandSpec VersionCommand() {
  return {.name = "version",
          .summary = "the version of this program",
          .examples = {"version"},
          .run = RunVersion};
}

}  // namespace rudderfish
