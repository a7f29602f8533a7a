// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

// The `.env` file of REACH's migrator, as far as its experiments need it here: lines NAME=VALUE,
// with `export ` before them or not, values quoted or not, comments after #. A variable of the
// process is preferred. Names that are not listed are passed over; so are those of REACH that it
// reads and does not use, and those that the configuration of `run` says (NAMESPACE, APP_LABEL,
// PROMETHEUS_ADDR).

namespace rudderfish {

struct ReachSettings {
  std::string kubeconfig;                                            // KUBECONFIG
  std::string entry_url;                                             // ENTRY_SERVICE_URL
  std::string jaeger_url;                                            // JAEGER_URL less /api/traces
  std::chrono::nanoseconds polling_period{std::chrono::seconds(1)};  // POLLING_PERIOD
  double alpha = 0.3;         // ALPHA: weight of the newest latency in the mean.
  int waiting_retries = 100;  // MAX_POD_WAITING_RETRIES, of POLLING_PERIOD each.
  int steps_max = 15;         // MAX_STEP
};

using ReachVariable = std::function<std::optional<std::string>(const std::string& name)>;

// Messages say FILE:LINE and the name. `process` is asked for each name before the text.
Result<ReachSettings> ParseReachSettings(std::string_view text, std::string_view source_name,
                                         const ReachVariable& process);

}  // namespace rudderfish
