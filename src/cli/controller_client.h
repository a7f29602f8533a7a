// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "run/run_places.h"

// How commands find the controller that runs and speak with it: its socket by --socket, or by the
// configuration that it was started with.

namespace rudderfish {

inline constexpr OptionSpec kRunningConfigOption{
    "-c,--config", "FILE",
    "configuration file that `run` was started with (default rudderfish.yaml)"};
inline constexpr OptionSpec kSocketOption{"--socket", "PATH",
                                          "control socket of `run`; overrides the configuration"};

// Those of the configuration file. A mistake in it is a warning.
Result<RunPlaces> PlacesOf(const Arguments& arguments);
Result<std::filesystem::path> SocketOf(const Arguments& arguments);

// Returns the controller's answer, an object, or its error. kUnavailable: no controller listens.
Result<OrderedJson> AskRunning(const std::filesystem::path& socket, std::string_view request);
// Likewise. nullopt: no controller listens.
Result<std::optional<OrderedJson>> AskIfRunning(const std::filesystem::path& socket,
                                                std::string_view request);

// "shadow", or "off (paused by the command line)".
std::string ModeText(const OrderedJson& answer);

}  // namespace rudderfish
