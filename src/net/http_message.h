// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

// What a server is asked and what it answers, without the wire. Plain values; the views of a
// request live as long as the call that passes it.

namespace rudderfish {

struct HttpRequest {
  std::string_view method;  // "GET"
  std::string_view path;    // As sent, up to the question mark.
  std::string_view query;   // After it.
  std::string_view content_type;
  std::string_view body;
  std::string_view peer;  // "127.0.0.1:40312"; empty on a unix-domain socket.
  int worker = 0;         // The thread that asks, from 0: what a handler keeps per thread.
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;  // Besides Content-Type and -Length.
  std::string note;                                          // What the log says of it; not sent.
};

// {"message": WHAT, "status": "error"} and a line feed, whatever bytes `what` holds.
HttpResponse HttpError(int status, std::string_view what);

}  // namespace rudderfish
