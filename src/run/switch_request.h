// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/json.h"
#include "control/mode.h"
#include "kube/config_map_watch.h"

// The switches by which people hold a controller back, whatever it decides about: the command
// line's (pause, resume, kill, mode MODE) as its socket hears them, and those of a ConfigMap.

namespace rudderfish {

struct SwitchedKind {
  std::string_view name;         // migration, placement
  Mode configured = Mode::kOff;  // Before switches: what the kind has reached.
};

// Obeys, logs, and answers with the mode that then holds for each kind; an unknown request changes
// nothing. A line of JSON.
std::string AnswerSwitch(std::string_view request, std::span<const SwitchedKind> kinds,
                         ModeSwitch* switches);

// Obeys and logs. What of it could not be understood, for people; empty: nothing.
std::string ObeyConfigMap(const kube::ConfigMapWatch::Said& said,
                          std::span<const SwitchedKind> kinds, ModeSwitch* switches);

// An answer of the socket: a line of JSON, whatever bytes the cluster's names hold.
std::string DumpAnswer(const OrderedJson& json);

}  // namespace rudderfish
