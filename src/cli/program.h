// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cli/arguments.h"
#include "cli/commands.h"

// From what was typed to an exit status. Whatever goes wrong ends here, as one line on stderr; no
// exception leaves.

namespace rudderfish {

// `arguments` without the program's name.
int RunProgram(std::vector<std::string> arguments, Instant start);

// What to run, and with what.
struct Invocation {
  const CommandSpec* command = nullptr;  // nullptr: none was named.
  Arguments arguments;
  Verbosity verbosity = Verbosity::kNormal;
  bool wants_help = false;
  bool wants_version = false;
};

// Errors begin with the command and name the nearest option or command that exists.
Result<Invocation> ParseInvocation(std::vector<std::string> arguments);

ExitStatus StatusOf(ErrorCode code);

}  // namespace rudderfish
