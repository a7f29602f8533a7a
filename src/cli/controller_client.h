// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "cli/arguments.h"
#include "cli/commands.h"

// How commands find the controller that runs and speak with it: its socket by --socket, or by the
// configuration that it was started with.

namespace rudderfish {

inline constexpr OptionSpec kRunningConfigOption{
    "-c,--config", "FILE",
    "configuration file that `run` was started with (default rudderfish.yaml)"};
inline constexpr OptionSpec kSocketOption{"--socket", "PATH",
                                          "control socket of `run`; overrides the configuration"};

Result<std::filesystem::path> SocketOf(const Arguments& arguments);

// What the controller answers, an object; its own error is ours. kNotFound: nobody listens.
Result<OrderedJson> AskRunning(const std::filesystem::path& socket, std::string_view request);

// "shadow", or "off (paused by the command line)".
std::string ModeText(const OrderedJson& answer);

}  // namespace rudderfish
