// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/yaml.h"
#include "control/extender.h"
#include "control/mode.h"
#include "model/objective.h"
#include "net/server_tls.h"

// The sections `placement` and `extender` of rudderfish.yaml: pods that are given nodes by us, and
// pods that kube-scheduler asks us about. Parts of cli/config.h.

namespace rudderfish {

struct PlacementConfig {
  Mode mode = Mode::kShadow;  // Where it begins; `promote` and `demote` go on from there.
  std::string scheduler_name = "rudderfish";
  std::string policy = "kube-default";
  Objective objective = Objective::Of(ObjectiveTerm::kBalance);  // What choices are judged by.
  double canary = 0.1;                                           // Share of pods.
  int bindings_max = 64;

  bool operator==(const PlacementConfig&) const = default;
};

struct ExtenderConfig {
  std::string listen = "127.0.0.1:8888";
  std::string policy = "most-allocated";
  std::chrono::nanoseconds timeout = std::chrono::milliseconds(200);  // Answered within it.
  HardLimits limits;
  std::optional<ServerTlsFiles> tls;  // Absent: plain HTTP.

  bool operator==(const ExtenderConfig&) const = default;
};

Result<PlacementConfig> ParsePlacement(const YamlNode& node);
// Relative paths are relative to `folder`.
Result<ExtenderConfig> ParseExtender(const YamlNode& node, const std::filesystem::path& folder);

}  // namespace rudderfish
