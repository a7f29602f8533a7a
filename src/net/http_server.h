// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "net/http_routes.h"
#include "net/server_tls.h"

// An HTTP/1.1 server on loopback, a network address or a unix-domain socket. A small fixed number
// of threads; a connection stays with one of them, so that a handler may keep state per thread
// without locks. A handler must be short: while it runs, other connections of its thread wait.
//
// Whatever arrives is bounded: headers, body, connections, idle time, time for one request; and all
// that connections hold together, bodies and answers under way, has one budget of memory. What
// breaks a bound is answered with 4xx, what the budget has no room for with 503, in JSON where that
// is still possible, and the connection is closed. Idle connections keep no client out: above the
// limit the one that has been silent longest is closed for each new one.

namespace rudderfish {

struct HttpServerOptions {
  std::vector<std::string> listen;  // As net/listen_address.h says.
  int threads = 2;
  int connections_max = 256;  // An equal share for each thread.
  size_t header_limit_bytes = 16 << 10;
  // Most bytes of a body, by path. Others take none.
  std::map<std::string, size_t, std::less<>> body_limits;
  size_t memory_limit_bytes = 64 << 20;            // Of the bodies and answers of all connections.
  Duration idle_limit = std::chrono::seconds(75);  // Between requests.
  Duration request_limit = std::chrono::seconds(10);  // To send one, or to take its answer.
  std::optional<ServerTlsFiles>
      tls;  // HTTPS at the network addresses; nothing else is taken there.
  // Hears which client could not be met by TLS, and why, on any thread of the server. May be empty.
  std::function<void(std::string_view)> refused;
  // Hears the path and status of what is answered without asking the handler: too large, or no
  // HTTP. The path is empty where it could not be read. On any thread of the server. May be empty.
  std::function<void(std::string_view path, int status)> rejected;
};

class HttpServer {
 public:
  // Listens before it returns; the first error of an address is the whole call's.
  static Result<std::unique_ptr<HttpServer>> Start(const HttpServerOptions& options,
                                                   HttpHandler handler);
  virtual ~HttpServer() = default;  // Stop, at once.

  // Of `listen`, with the ports that were chosen.
  virtual const std::vector<std::string>& addresses() const = 0;

  // Accepts nothing more, lets requests finish that have begun, and cuts what lasts longer than the
  // deadline. Returns whether nothing had to be cut. Any thread but the server's own; once.
  virtual bool Stop(Duration deadline) = 0;
};

}  // namespace rudderfish
