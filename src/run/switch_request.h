// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "control/mode.h"
#include "kube/config_map_watch.h"

// The switches by which people hold a controller back, whatever it decides about: the command
// line's (pause, resume, kill, mode MODE) as its socket hears them, and those of a ConfigMap.

namespace rudderfish {

struct SwitchedKind {
  std::string_view name;         // migration, placement
  Mode configured = Mode::kOff;  // Before switches.
  Mode highest = kHighestMode;   // That may be wished for.
};

// Obeys, logs, and answers with the mode that holds then; an unknown request changes nothing. A
// line of JSON.
std::string AnswerSwitch(std::string_view request, const SwitchedKind& kind, ModeSwitch* switches);

// Obeys and logs. What of it could not be understood, for people; empty: nothing.
std::string ObeyConfigMap(const kube::ConfigMapWatch::Said& said, const SwitchedKind& kind,
                          ModeSwitch* switches);

}  // namespace rudderfish
