// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/yaml.h"
#include "control/mode.h"

// The sections `placement` and `extender` of rudderfish.yaml: pods that are given nodes by us, and
// pods that kube-scheduler asks us about. Parts of cli/config.h.

namespace rudderfish {

// What must stay free of each node, whoever asks: a share of what it has. 1: nothing.
struct HardLimits {
  double cpu = 1, memory = 1;

  bool any() const { return cpu < 1 || memory < 1; }
  bool operator==(const HardLimits&) const = default;
};

struct PlacementConfig {
  Mode mode = Mode::kEnforce;  // Or off.
  std::string scheduler_name = "rudderfish";
  std::string policy = "kube-default";
  int bindings_max = 64;

  bool operator==(const PlacementConfig&) const = default;
};

struct ExtenderConfig {
  std::string listen = "127.0.0.1:8888";
  std::string policy = "most-allocated";
  std::chrono::nanoseconds timeout = std::chrono::milliseconds(200);  // Answered within it.
  HardLimits limits;
  std::filesystem::path certificate, key, client_authority;  // PEM files; none: plain HTTP.

  bool operator==(const ExtenderConfig&) const = default;
};

Result<PlacementConfig> ParsePlacement(const YamlNode& node);

// `folder`: of the file, to which paths are relative.
Result<ExtenderConfig> ParseExtender(const YamlNode& node, const std::filesystem::path& folder);

}  // namespace rudderfish
