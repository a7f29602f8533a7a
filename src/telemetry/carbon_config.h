// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/yaml.h"

// Which service tells how much carbon dioxide a kilowatt hour stands for, and as what it knows the
// regions: `signals.carbon` of a configuration.

namespace rudderfish {

enum class CarbonService { kElectricityMaps, kCarbonAwareSdk };

inline constexpr std::string_view kCarbonServiceNames[] = {"electricity-maps", "carbon-aware-sdk"};

// The signal that has it, whichever service provides it.
inline constexpr std::string_view kCarbonSignal = "carbon_g_per_kwh";

struct CarbonZone {
  std::string region;  // Of the scenario.
  std::string zone;    // As the service is asked.
  std::string answer;  // As it then calls it; empty: the same.
};

struct CarbonConfig {
  CarbonService service = CarbonService::kElectricityMaps;
  std::string url;                   // https://api.electricitymaps.com/v3
  std::filesystem::path token_file;  // Of electricity-maps; empty: none.
  std::string ca_file;               // For https; empty: the system's.
  std::vector<CarbonZone> zones;
  Duration period = std::chrono::minutes(5);
};

// Files are relative to `folder`. Messages read as those of ParseConfig; no file is looked at.
Result<CarbonConfig> ParseCarbonConfig(const YamlNode& node, const std::filesystem::path& folder);

// The token of a file, as it is now; no message shows any of it.
Result<std::string> ReadCarbonToken(const std::filesystem::path& path);

}  // namespace rudderfish
