// SPDX-License-Identifier: Apache-2.0
#include "scenario/region_world.h"

#include <gtest/gtest.h>

#include "tests/support/cloud_regions.h"

namespace rudderfish {
namespace {

using Names = std::vector<std::string>;

TEST(RegionWorld, APartKeepsItsRegionsAndTheirRoundTrips) {
  const auto world = testing::CloudRegions();
  const Names names = {"asia-northeast1", "us-east4"};
  const auto part = WithRegions(world, names).value();
  ASSERT_EQ(part->network->size(), 2);
  EXPECT_EQ(part->network->regions[0].name, "asia-northeast1");
  EXPECT_EQ(part->network->TripS(0, 1), world->network->TripS(2, 0));
  EXPECT_EQ(part->network->EgressOf(0, 1), world->network->EgressOf(2, 0));
  EXPECT_EQ(part->chance, world->chance);
}

TEST(RegionWorld, NoNamesAreAllOfThem) {
  const auto world = testing::CloudRegions();
  EXPECT_EQ(WithRegions(world, {}).value(), world);
  EXPECT_EQ(VariantsNamed(*world, {})->size(), world->variants.size());
}

TEST(RegionWorld, RefusesNamesThatAreUnknownOrGivenTwice) {
  const auto world = testing::CloudRegions();
  const Names unknown = {"us-east5"}, twice = {"us-east4", "us-east4"}, variant = {"fulll"};
  EXPECT_EQ(WithRegions(world, unknown).error().message,
            "no region is called us-east5; there are us-east4, europe-west3, asia-northeast1; did "
            "you mean `us-east4`?");
  EXPECT_EQ(WithRegions(world, twice).error().message, "region us-east4 is named twice");
  EXPECT_NE(VariantsNamed(*world, variant).error().message.find("no variant is called fulll"),
            std::string::npos);
}

}  // namespace
}  // namespace rudderfish
