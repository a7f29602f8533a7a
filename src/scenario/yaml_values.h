// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/yaml.h"
#include "scenario/distribution.h"

// Values of a scenario file: quantities with units, and distributions of them.
//
//   constant   0.1ms
//   range      50ms to 500ms       any value between; for counts both ends are included
//   choice     [2, 5, 7]           each as likely

namespace rudderfish {

inline constexpr double kMostLatencyMs = 1e9;  // Of one hop.

// Parsers of one quantity. As those of base/units.h, but in the unit of the field it fills and
// within its bounds.
Result<double> ParseCores(std::string_view text);   // Milli-cores, rounded down.
Result<double> ParseMemory(std::string_view text);  // Bytes, rounded down.
Result<double> ParseLatencyMs(std::string_view text);
Result<double> ParseFraction(std::string_view text);  // 0 to 1.
Result<double> ParseReplicas(std::string_view text);
Result<double> ParsePayloadMbytes(std::string_view text);

using QuantityParser = Result<double> (*)(std::string_view);

// The quantity in a node, or what is wrong with it, with its place.
Result<double> QuantityOf(const YamlNode& node, QuantityParser parse);
Result<Distribution> DistributionOf(const YamlNode& node, QuantityParser parse);

// A name: not empty, at most 200 bytes, no control characters.
Result<std::string> NameOf(const YamlNode& node);
bool IsName(std::string_view text);
inline constexpr std::string_view kNameInWords = "a name (1 to 200 printable characters)";

}  // namespace rudderfish
