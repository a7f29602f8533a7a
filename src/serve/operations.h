// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "base/metrics.h"
#include "net/http_routes.h"
#include "serve/health.h"

// What every server of ours has beside its own routes: /livez, /readyz and /metrics; a count and a
// duration of each request, and one line in the log at -v.

namespace rudderfish {

// All outlive the routes.
void AddOperations(const HealthChecks* live, const HealthChecks* ready,
                   const MetricRegistry* metrics, HttpRoutes* routes);

// The handler, counted as rudderfish_http_requests_total and timed as
// rudderfish_http_request_duration_seconds, and logged. Paths that are not among those of `routes`
// count as "other".
HttpHandler Observed(HttpRoutes routes, const Clock* clock, MetricRegistry* metrics);

}  // namespace rudderfish
