// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "base/yaml.h"
#include "scenario/arrivals.h"
#include "scenario/name_index.h"

// The part `arrivals:` of a scenario file.

namespace rudderfish {

class YamlWriter;

// What arrivals refer to by name.
struct ArrivalNames {
  const NameIndex* workloads;
  const NameIndex* layers;
  const NameIndex* nodes;
};

// Events are sorted by time; those of one time keep the order of the file.
Result<Arrivals> ParseArrivals(const YamlNode& node, const ArrivalNames& names);

// A span of time, with its unit; and one that may be drawn.
Result<SimTime> ParseSimTime(std::string_view text);
Result<SimTime> SimTimeOf(const YamlNode& node);
Result<TimeLaw> TimeLawOf(const YamlNode& node);

}  // namespace rudderfish
