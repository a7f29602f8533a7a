// SPDX-License-Identifier: Apache-2.0
#include "net/http_routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace rudderfish {

void HttpRoutes::Add(std::string method, std::string path, HttpHandler handler) {
  routes_.push_back({std::move(method), std::move(path), std::move(handler)});
}

bool HttpRoutes::Has(std::string_view path) const {
  return std::any_of(routes_.begin(), routes_.end(),
                     [&](const Route& route) { return route.path == path; });
}

HttpResponse HttpRoutes::operator()(const HttpRequest& request) const {
  const std::string_view method = request.method == "HEAD" ? "GET" : request.method;
  std::string allowed;
  for (const Route& route : routes_) {
    if (route.path != request.path) continue;
    if (route.method == method) return route.handler(request);
    allowed += allowed.empty() ? route.method : ", " + route.method;
  }
  if (allowed.empty()) return HttpError(404, fmt::format("nothing at {}", request.path));
  HttpResponse response =
      HttpError(405, fmt::format("{} takes {}, not {}", request.path, allowed, request.method));
  response.headers.emplace_back("Allow", allowed);
  return response;
}

}  // namespace rudderfish
