// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

// Many HTTP requests at once on one thread: nothing happens but within Poll, and every callback
// comes from there. Connections are kept and used again. Every request has a deadline and a limit
// on what it may answer. Redirects are not followed. Messages name the URL without user, password
// and query. Not thread safe.

namespace rudderfish {

struct HttpFetch {
  std::string url;                   // http or https.
  std::vector<std::string> headers;  // "Authorization: Bearer ...": never logged.
  std::string body;
  std::string method;                            // Empty: GET, or POST if there is a body.
  Duration deadline = std::chrono::seconds(10);  // From Start to the last byte.
  size_t body_limit_bytes = 64 << 20;
  std::string ca_file;  // For https; empty: the system's.
  // A connection of its own, which ends with it.
  enum class On { kKeptConnection, kNewConnection } on = On::kKeptConnection;
};

struct HttpReply {
  int status = 0;
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;  // Names in lower case.

  std::string_view Header(std::string_view name) const;  // Empty: it is not there.
};

// The address of a URL as it may be shown.
std::string PublicUrl(std::string_view url);

class HttpClient {
 public:
  using Done = std::function<void(Result<HttpReply>)>;

  static constexpr int kConnectionsPerHost = 8;

  explicit HttpClient(int connections_per_host = kConnectionsPerHost);
  ~HttpClient();  // Forgets what is in flight; its callbacks are not called.
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // kDeadlineExceeded, or kUnavailable: no connection, too large an answer. A status that is no 2xx
  // is a reply, not an error.
  void Start(HttpFetch fetch, Done done);

  // Moves what can be moved, waiting for it at most so long. Callbacks may Start. Returns how many
  // are in flight.
  int Poll(Duration wait);

  int in_flight() const;

  // Starts one and polls until it is done, together with all others.
  Result<HttpReply> Fetch(HttpFetch fetch);

 private:
  struct Transfers;
  std::unique_ptr<Transfers> transfers_;
};

}  // namespace rudderfish
