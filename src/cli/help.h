// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/commands.h"

// What the program says of itself: usage, options and examples, written from the list of commands.

namespace rudderfish {

std::string ProgramHelp();
std::string CommandHelp(const CommandSpec& command);

// "train SCENARIO... --dir FOLDER [options]", without the program's name.
std::string UsageLine(const CommandSpec& command);

}  // namespace rudderfish
