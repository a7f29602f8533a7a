// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/yaml.h"
#include "base/yaml_writer.h"

// The options of a training that are those of regions alone (learn/train_options.h).

namespace rudderfish {

// Where requests go (`route`), what regions have for them (`scale`), or both.
struct RoutingTiers {
  bool route = true, scale = true;

  bool operator==(const RoutingTiers&) const = default;
};

// "route", "scale", or both with a comma between; kInvalidArgument for anything else.
Result<RoutingTiers> ParseRoutingTiers(std::string_view text);
std::string RoutingTiersText(RoutingTiers tiers);

// Where it is regions that are to be learned.
struct RoutingTraining {
  std::vector<std::string> variants, regions;  // Of the scenario; empty: all.
  // As MakeRoutingRule reads them: what is begun with, mpc; and all that is to be beaten, that
  // one among them.
  std::string rule;
  std::vector<std::string> rivals;
  RoutingTiers tiers;

  bool operator==(const RoutingTraining&) const = default;
};

// The map `routing` of a configuration, and back.
void WriteRoutingTraining(const RoutingTraining& routing, YamlWriter* out);
Result<RoutingTraining> ReadRoutingTraining(const YamlNode& node);

}  // namespace rudderfish
