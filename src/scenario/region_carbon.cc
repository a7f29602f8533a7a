// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>

#include "scenario/csv.h"
#include "scenario/region_world.h"

// Carbon intensity by region: the columns of github.com/GoogleCloudPlatform/region-carbon-info.

namespace rudderfish {
namespace {

constexpr double kMostGridCarbon = 1e5;
enum CarbonColumn { kCarbonRegion, kGridCarbon };
constexpr std::string_view kCarbonColumns[] = {"Google Cloud Region",
                                               "Grid carbon intensity (gCO2eq / kWh)"};

Result<double> GridCarbon(const CsvReader& row) {
  const std::string_view text = row.Text(kGridCarbon);
  double value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = read.ec == std::errc() && read.ptr == text.data() + text.size();
  if (!is_number || !std::isfinite(value) || value < 0 || value > kMostGridCarbon)
    return row.Refuse(kGridCarbon, fmt::format("expected a number from 0 to {}", kMostGridCarbon));
  return value;
}

}  // namespace

Result<void> ReadRegionCarbon(std::string_view text, std::string_view source_name,
                              RegionWorld* world) {
  TRY_ASSIGN(CsvReader rows, CsvReader::Open(text, source_name, kCarbonColumns));
  auto network = std::make_shared<RegionNetwork>(*world->network);
  std::vector<int> missing = world->without_carbon;
  for (;;) {
    TRY_ASSIGN(const bool more, rows.Next());
    if (!more) break;
    const auto found = std::find_if(missing.begin(), missing.end(), [&](int region) {
      return network->regions[region].name == rows.Text(kCarbonRegion);
    });
    if (found == missing.end()) continue;
    TRY_ASSIGN(const double carbon, GridCarbon(rows));
    network->regions[*found].carbon_g_per_kwh.fill(carbon);
    missing.erase(found);
  }
  if (!missing.empty()) {
    return Invalid("{}: it has no region {}, which has no `carbon` in the scenario either",
                   source_name, network->regions[missing[0]].name);
  }
  for (SharingService& one : world->services) {
    auto pods = std::make_shared<RegionNetwork>(*one.pods);
    for (int r = 0; r < network->size(); ++r)
      pods->regions[r].carbon_g_per_kwh = network->regions[r].carbon_g_per_kwh;
    one.pods = std::move(pods);
  }
  world->network = std::move(network);
  world->carbon_file.clear();
  world->without_carbon.clear();
  return {};
}

}  // namespace rudderfish
