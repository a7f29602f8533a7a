// SPDX-License-Identifier: Apache-2.0
#include "scenario/region_world.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/suggest.h"

namespace rudderfish {
namespace {

// Where each of `names` stands in `known`, each at most once; no names: all.
Result<std::vector<int>> PositionsOf(std::span<const std::string> names,
                                     const std::vector<std::string_view>& known,
                                     std::string_view what) {
  std::vector<int> positions;
  for (size_t i = 0; names.empty() && i < known.size(); ++i)
    positions.push_back(static_cast<int>(i));
  for (const std::string& name : names) {
    const auto found = std::find(known.begin(), known.end(), name);
    if (found == known.end()) {
      return Fail(ErrorCode::kNotFound, "no {} is called {}; there are {}{}", what, name,
                  fmt::join(known, ", "), DidYouMean(name, known));
    }
    const auto position = static_cast<int>(found - known.begin());
    if (std::find(positions.begin(), positions.end(), position) != positions.end())
      return Invalid("{} {} is named twice", what, name);
    positions.push_back(position);
  }
  return positions;
}

}  // namespace

ServiceLaws LawsOf(const RegionWorld& world) {
  ServiceLaws laws;
  if (world.services.empty()) laws.push_back(std::make_shared<const RegionLaws>(world.network));
  for (const SharingService& one : world.services)
    laws.push_back(std::make_shared<const RegionLaws>(one.pods));
  return laws;
}

Result<std::shared_ptr<const RegionWorld>> WithRegions(
    const std::shared_ptr<const RegionWorld>& world, std::span<const std::string> names) {
  if (names.empty()) return world;
  std::vector<std::string_view> known;
  for (const Region& region : world->network->regions) known.push_back(region.name);
  TRY_ASSIGN(const std::vector<int> positions, PositionsOf(names, known, "region"));
  auto part = std::make_shared<RegionWorld>(*world);
  part->network = std::make_shared<const RegionNetwork>(WithRegions(*world->network, positions));
  for (SharingService& one : part->services)
    one.pods = std::make_shared<const RegionNetwork>(WithRegions(*one.pods, positions));
  part->measured.clear();  // Their positions are those of before; the network has what they said.
  return part;
}

Result<std::vector<int>> VariantsNamed(const RegionWorld& world,
                                       std::span<const std::string> names) {
  std::vector<std::string_view> known;
  for (const RegionVariant& variant : world.variants) known.push_back(variant.name);
  return PositionsOf(names, known, "variant");
}

}  // namespace rudderfish
