// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/yaml.h"
#include "base/yaml_writer.h"

// The options of a training that are those of regions alone (learn/train_options.h).

namespace rudderfish {

// Where it is scaling of regions that is to be learned.
struct RoutingTraining {
  std::vector<std::string> variants, regions;  // Of the scenario; empty: all.
  // As MakeRoutingRule reads them: what is begun with, mpc; and all that is to be beaten, that
  // one among them.
  std::string rule;
  std::vector<std::string> rivals;

  bool operator==(const RoutingTraining&) const = default;
};

// The map `routing` of a configuration, and back.
void WriteRoutingTraining(const RoutingTraining& routing, YamlWriter* out);
Result<RoutingTraining> ReadRoutingTraining(const YamlNode& node);

}  // namespace rudderfish
