// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "net/http_message.h"

// Which handler answers which method and path. A path without a handler is 404, a method that its
// path does not take is 405 with Allow, both as JSON. HEAD is answered by the handler of GET.
// Immutable once a server has it; handlers are called from all threads of the server.

namespace rudderfish {

using HttpHandler = std::function<HttpResponse(const HttpRequest&)>;

class HttpRoutes {
 public:
  // `path` is compared as a whole.
  void Add(std::string method, std::string path, HttpHandler handler);

  bool Has(std::string_view path) const;

  HttpResponse operator()(const HttpRequest& request) const;

 private:
  struct Route {
    std::string method, path;
    HttpHandler handler;
  };

  std::vector<Route> routes_;
};

}  // namespace rudderfish
