// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/signals.h"
#include "telemetry/prometheus_response.h"
#include "telemetry/signal_query.h"

// What an answer of Prometheus says of the entities it was asked about. Values that are no number
// or of no known entity are left out; ambiguous ones are left out and reported. Pure functions.

namespace rudderfish {

struct SignalSample {
  double value = 0;
  double unix_seconds = 0;
};

struct SignalReading {
  std::map<std::string, SignalSample, std::less<>> values;  // By entity.
  std::vector<std::string> problems;
};

// Adds the answer to one of the requests that `query` became.
void ReadAnswer(const SignalQuery& query, const ExpandedQuery& request,
                const SignalEntities& entities, const PrometheusAnswer& answer,
                SignalReading* reading);

// Puts what several replicas of Prometheus say into `column`: the mean of those that know a value,
// with its spread. A spread above `tolerance` times the largest magnitude is told. A value that no
// replica knows any more is kept, and ages. `at` of a sample is `now` less its age by
// `unix_now`, never in the future.
void MergeReadings(const std::vector<SignalReading>& replicas,
                   const std::vector<std::string>& entities, double tolerance, Instant now,
                   double unix_now, SignalColumn* column);

}  // namespace rudderfish
