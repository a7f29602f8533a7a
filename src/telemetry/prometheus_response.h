// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

// What Prometheus' HTTP API answers to /api/v1/query and /api/v1/query_range. Plain values.

namespace rudderfish {

struct PrometheusSample {
  double unix_seconds = 0;
  double value = 0;  // NaN and infinities as Prometheus has them.
};

struct PrometheusSeries {
  std::vector<std::pair<std::string, std::string>> labels;  // By name; none of a scalar.
  std::vector<PrometheusSample> samples;                    // One of an instant query.

  // Empty if there is none, which is what Prometheus takes it for.
  std::string_view label(std::string_view name) const;
};

struct PrometheusAnswer {
  std::vector<PrometheusSeries> series;
  std::vector<std::string> warnings;  // Prometheus' own: of a partial answer, for instance.

  // Series that hold no number that can be read, such as native histograms, and the first of them
  // with the reason. The others are not lost with them.
  size_t left_out = 0;
  std::string first_left_out;
};

// Vectors, matrices and scalars. An answer that is an error is kUnavailable with Prometheus' words,
// kInvalidArgument if the query is at fault; what is no answer of Prometheus is kCorruption.
Result<PrometheusAnswer> ParsePrometheusResponse(std::string_view body);

}  // namespace rudderfish
