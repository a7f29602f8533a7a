// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"
#include "net/socket_address.h"

// One question to a small server that answers and closes the connection: over a socket of the file
// system, or TCP. Blocks until the end, within a limit.

namespace rudderfish {

struct StreamPeer {
  std::filesystem::path path;  // Empty: `address`.
  HostAndPort address;

  std::string Text() const;
};

// A path has a slash; else "host:port".
Result<StreamPeer> ParseStreamPeer(std::string_view text);

// A connection that does not block; the caller closes it. kNotFound: nothing listens there.
Result<int> ConnectStream(const StreamPeer& peer, std::chrono::milliseconds timeout);

// All that the peer answers until it ends. kDeadlineExceeded after `timeout`; kUnavailable if it
// answers more than `answer_max` bytes. The request ends as the peer's protocol has it.
Result<std::string> AskStream(const StreamPeer& peer, std::string_view request,
                              std::chrono::milliseconds timeout, size_t answer_max);

}  // namespace rudderfish
