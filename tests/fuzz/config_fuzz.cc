// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "control/migration_evidence.h"
#include "run/config.h"
#include "run/signal_source.h"

// Any bytes as rudderfish.yaml: refused in one line, or a configuration within its bounds.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto config = rudderfish::ParseConfig(text, "/nowhere/fuzz.yaml");
  if (!config) {
    CHECK(!config.error().message.empty());
    CHECK(config.error().message.find('\n') == std::string::npos);
    return 0;
  }
  if (config->migration) {
    CHECK(config->migration->canary > 0 && config->migration->canary < 1);
    CHECK(config->migration->interval.count() > 0);
    CHECK(config->cluster.is_simulated() == config->applications.empty());
  }
  if (config->routing) {
    const rudderfish::RoutingConfig& routing = *config->routing;
    CHECK(!routing.routes.empty() && !config->cluster.is_simulated());
    CHECK(routing.limits.step > 0 && routing.limits.step <= 1);
    CHECK(routing.limits.floor >= 0 && routing.limits.floor <= 1);
    CHECK(routing.interval.count() > 0 && routing.settle.count() > 0);
  }
  CHECK(config->staleness.count() > 0);
  CHECK(rudderfish::WhatNeedsARestart(*config, *config).empty());
  const auto signals = rudderfish::ParseSignals(config->signals, "/nowhere");
  CHECK(signals.has_value() || !signals.error().message.empty());
  return 0;
}
