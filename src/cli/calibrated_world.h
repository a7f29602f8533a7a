// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/thread_pool.h"
#include "cli/arguments.h"
#include "scenario/scenario.h"

// `calibrate` does the same for each kind of decision whose policies have settings to search: a
// kind contributes the function that searches them.

namespace rudderfish {

struct CalibrationRequest {
  const Arguments& arguments;
  const Scenario& scenario;
  std::string path;    // Of the scenario,
  std::string sha256;  // and its DigestOfScenario.
  uint64_t seed = 1;
  std::function<void(double fraction, std::string_view text)> progress;
  ThreadPool* pool = nullptr;
  const std::atomic<bool>* stop = nullptr;  // Becomes true: the search ends with what it has.
};

struct CalibrationResult {
  std::string table;                   // For people.
  std::string yaml;                    // The file.
  std::optional<std::string> refusal;  // Why the file is not written.
  int episodes = 0;                    // On which the best settings were judged,
  int asked = 0;                       // and should have been.
};

// hpa, mpc and static, in a scenario with `load`.
Result<CalibrationResult> CalibrateScalingPolicy(const CalibrationRequest& request);
// Any policy that routes, in a scenario with `regions`.
Result<CalibrationResult> CalibrateRoutingPolicy(const CalibrationRequest& request);

}  // namespace rudderfish
