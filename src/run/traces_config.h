// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "base/yaml.h"

// Where traces of the applications come from: the section `traces` of a configuration.

namespace rudderfish {

struct TracesConfig {
  std::string jaeger;                          // http://jaeger:16686; empty: none are read.
  Duration window = std::chrono::minutes(10);  // The newest of so long are read,
  Duration period = std::chrono::minutes(5);   // so often.
  double sampled = 1;                          // The share of requests that is traced.

  bool operator==(const TracesConfig&) const = default;
};

// Messages read as those of ParseConfig. Looks at nothing else.
Result<TracesConfig> ParseTraces(const YamlNode& node);

}  // namespace rudderfish
