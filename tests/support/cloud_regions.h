// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "scenario/region_world.h"
#include "scenario/scenario.h"
#include "tests/support/source_path.h"

// Three regions of the scenario that is shipped.

namespace rudderfish::testing {

inline std::shared_ptr<const RegionWorld> CloudRegions() {
  const Result<Scenario> scenario = LoadScenario(SourcePath("scenarios/multicloud-16.yaml"));
  CHECK(scenario.has_value());
  const std::vector<std::string> names = {"us-east4", "europe-west3", "asia-northeast1"};
  return WithRegions(scenario->regions, names).value();
}

}  // namespace rudderfish::testing
