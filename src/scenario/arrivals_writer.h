// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/yaml_writer.h"
#include "scenario/scenario.h"

// The parts `objective:` and `arrivals:` of a scenario file, as ParseScenario reads them back.

namespace rudderfish {

void WriteObjective(const Objective& objective, YamlWriter* out);

// A span of time that reads back to the same nanoseconds; and one that may be drawn.
std::string SimTimeText(SimTime time);
void WriteTimeLaw(std::string_view key, const TimeLaw& law, YamlWriter* out);

// REQUIRES: scenario.arrivals is there.
void WriteArrivals(const Scenario& scenario, YamlWriter* out);

}  // namespace rudderfish
