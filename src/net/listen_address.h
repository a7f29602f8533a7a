// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

// Where a server listens: "127.0.0.1:5000", "[::1]:5000", "localhost:0" (any free port), or
// "unix:/run/rudderfish.sock".

namespace rudderfish {

struct ListenAddress {
  std::string text;  // As it was given.
  std::string ip;    // A literal; empty for a unix-domain socket.
  uint16_t port = 0;
  std::string path;  // Of a unix-domain socket.

  bool is_unix() const { return !path.empty(); }
};

// kInvalidArgument with what was expected.
Result<ListenAddress> ParseListenAddress(const std::string& text);

// Removes a socket file on which no process listens: a process that was killed left it.
// kUnavailable if a process listens; kInvalidArgument if it is no socket.
Result<void> RemoveStaleSocket(const std::string& path);

}  // namespace rudderfish
