// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/yaml_writer.h"
#include "scenario/scenario.h"

// The parts `objective:` and `arrivals:` of a scenario file, as ParseScenario reads them back.

namespace rudderfish {

void WriteObjective(const Objective& objective, YamlWriter* out);

// REQUIRES: scenario.arrivals is there.
void WriteArrivals(const Scenario& scenario, YamlWriter* out);

}  // namespace rudderfish
