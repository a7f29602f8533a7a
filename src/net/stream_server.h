// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/result.h"

// A TCP server for small protocols that are not HTTP: bytes come, the handler says when they are a
// request, and its answer goes back. One thread serves all connections.
//
// All that arrives is bounded: bytes of a request, connections, time to send a request and to take
// its answer. While an answer waits to be taken nothing more is read. Who breaks a bound is
// disconnected and counted. Above the limit of connections the one that has been idle longest is
// closed for a new one; if none is idle, the new one is closed.

namespace rudderfish {

struct StreamServerOptions {
  std::string wire;                 // What metrics call it: "suggestions".
  std::vector<std::string> listen;  // Network addresses, as net/listen_address.h says.
  int connections_max = 64;
  size_t request_limit_bytes = 4096;
  Duration request_limit = std::chrono::seconds(10);  // To send one, or to take its answer.
  Duration idle_limit = std::chrono::seconds(10);     // Before the first byte of one; 0: no limit.
  Duration quiet = std::chrono::milliseconds(200);    // After which the handler is asked again.
};

// Why the handler is asked about the bytes of a request so far.
enum class StreamEvent {
  kBytes,   // More have come.
  kQuiet,   // None have come for a while.
  kClosed,  // The client sends nothing more.
};

struct StreamAnswer {
  enum class After { kKeep, kClose };

  std::string bytes;
  After after = After::kClose;
};

// An answer takes all bytes so far; none: they are not a request yet. On the server's thread: while
// it runs, other connections wait.
using StreamHandler =
    std::function<std::optional<StreamAnswer>(std::string_view received, StreamEvent event)>;

class StreamServer {
 public:
  // Listens before it returns. `metrics` outlives the server: it counts connections by how they
  // ended, as rudderfish_stream_connections_total{wire, end}.
  static Result<std::unique_ptr<StreamServer>> Start(const StreamServerOptions& options,
                                                     MetricRegistry* metrics,
                                                     StreamHandler handler);
  virtual ~StreamServer() = default;  // Ends it at once.

  // Of `listen`, with the ports that were chosen.
  virtual const std::vector<std::string>& addresses() const = 0;
};

}  // namespace rudderfish
