// SPDX-License-Identifier: Apache-2.0
#include "base/version.h"

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

CommandSpec VersionCommand() {
  return {.name = "version",
          .summary = "Print the version",
          .examples = {"version"},
          .run = RunVersion};
}

}  // namespace rudderfish
