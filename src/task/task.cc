// SPDX-License-Identifier: Apache-2.0
#include "task/task.h"

#include <fmt/format.h>

#include "base/sha256.h"

namespace rudderfish {

std::string HashOfFeatures(std::string_view task, const FeatureTable& table) {
  std::string text(task);
  for (const auto* entity : {&table.candidate, &table.node, &table.workload, &table.context}) {
    text += "|";
    for (const FeatureDescription& feature : *entity) {
      text += fmt::format("{}:{}:{};", feature.name, feature.unit, feature.scale);
    }
  }
  return Sha256Hex(text).substr(0, 16);
}

std::string Task::FeatureHash() const { return HashOfFeatures(name(), features()); }

}  // namespace rudderfish
