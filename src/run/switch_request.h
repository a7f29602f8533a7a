// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "control/mode.h"

// The command line's switches (pause, resume, kill, mode MODE) as a controller's socket hears them,
// whatever it decides about.

namespace rudderfish {

struct SwitchedKind {
  std::string_view name;         // migration, placement
  Mode configured = Mode::kOff;  // Before switches.
  Mode highest = kHighestMode;   // That may be wished for.
};

// Obeys, logs, and answers with the mode that holds then; an unknown request changes nothing. A
// line of JSON.
std::string AnswerSwitch(std::string_view request, const SwitchedKind& kind, ModeSwitch* switches);

}  // namespace rudderfish
