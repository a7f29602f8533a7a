// SPDX-License-Identifier: Apache-2.0
#include "serve/operations.h"

#include <utility>

#include "base/log.h"

namespace rudderfish {

void AddOperations(const HealthChecks* live, const HealthChecks* ready,
                   const MetricRegistry* metrics, HttpRoutes* routes) {
  routes->Add("GET", "/livez", [live](const HttpRequest& request) { return (*live)(request); });
  routes->Add("GET", "/readyz", [ready](const HttpRequest& request) { return (*ready)(request); });
  routes->Add("GET", "/metrics", [metrics](const HttpRequest&) {
    return HttpResponse{.content_type = std::string(kMetricsContentType), .body = metrics->Text()};
  });
}

HttpHandler Observed(HttpRoutes routes, const Clock* clock, MetricRegistry* metrics) {
  return [routes = std::move(routes), clock, metrics](const HttpRequest& request) {
    const Instant start = clock->Now();
    HttpResponse response = routes(request);
    const double seconds = Seconds(clock->Now() - start);
    const std::string path = routes.Has(request.path) ? std::string(request.path) : "other";
    metrics
        ->AddCounter("rudderfish_http_requests_total", "HTTP requests answered.",
                     {{"path", path}, {"code", fmt::format("{}", response.status)}})
        .Add();
    metrics
        ->AddHistogram("rudderfish_http_request_duration_seconds",
                       "Time to answer an HTTP request, without reading and writing it.",
                       LatencyBounds(), {{"path", path}})
        .Observe(seconds);
    LogDebug("{} {} {} {:.3f} ms{}{}", request.method, request.path, response.status,
             seconds * 1000, response.note.empty() ? "" : ": ", response.note);
    return response;
  };
}

}  // namespace rudderfish
