// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/check.h"
#include "scenario/scenario.h"
#include "tests/support/source_path.h"

// The scenarios that users get, by the name of their file.

namespace rudderfish::testing {

inline std::shared_ptr<const Scenario> ShippedScenario(std::string_view name) {
  Result<Scenario> scenario = LoadScenario(SourcePath("scenarios/") + std::string(name) + ".yaml");
  CHECK(scenario.has_value());
  return std::make_shared<const Scenario>(*std::move(scenario));
}

}  // namespace rudderfish::testing
