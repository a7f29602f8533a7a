// SPDX-License-Identifier: Apache-2.0
#include "cli/routing_story.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace rudderfish {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

StoredRouting Shifted() {
  return {.number = 7,
          .written_at = 1000,
          .row = {.route = "web",
                  .target = "httproute shop/web, rule 0",
                  .mode = "shadow",
                  .policy = "lp",
                  .baseline = "locality",
                  .objective = "cost",
                  .regions = {{.region = "eu",
                               .now = 0.9,
                               .wanted = 0.6,
                               .allowed = 0.8,
                               .baseline = 0.9,
                               .one_more = {1, 0, 0, 0.5, 2}},
                              {.region = "us",
                               .now = 0.1,
                               .wanted = 0.4,
                               .allowed = 0.2,
                               .baseline = 0.1,
                               .one_more = {1, 0.25, 0, 0.25, 0.5}}},
                  .reasons = {"a share changes by at most 10 points in one step, not by 30"},
                  .gain = 0.25,
                  .gain_over_baseline = 0.125,
                  .predicted_now_ms = 120,
                  .predicted_ms = 90,
                  .measured_now_ms = 131,
                  .demand_per_s = 58,
                  .request = "PATCH /apis\n\n[]",
                  .verdict = {.allowed = true, .reason = ""},
                  .fate = Fate::kRecorded}};
}

TEST(RoutingStory, CountsVms) {
  const StoredRouting stored{.number = 8,
                             .written_at = 1000,
                             .row = {.route = "capacity/eu",
                                     .target = "fleet shop-eu of cloud eu",
                                     .mode = "enforce",
                                     .policy = "mpc",
                                     .capacity = RoutedCapacity{"VM", 2, 9, 4},
                                     .reasons = {"9 VMs are wanted; 1 to 8"},
                                     .verdict = {.allowed = true, .reason = ""},
                                     .fate = Fate::kDone}};
  const std::string story = RoutingStory(stored, 61'000);
  for (const char* part :
       {"capacity/eu was set to 4 VMs", "decision 8 of fleet shop-eu of cloud eu",
        "guard: 9 VMs are wanted; 1 to 8", "VMs: 2 ready or starting, 9 wanted, 4 allowed"})
    EXPECT_THAT(story, HasSubstr(part));
  EXPECT_THAT(story, Not(HasSubstr("Regions")));
}

TEST(RoutingStory, SaysWhatMakesTheDifference) {
  const std::string story = RoutingStory(Shifted(), 61'000);
  for (const char* part :
       {"route web would be set to eu 80, us 20 (shadow: nothing was touched)",
        "decision 7 of httproute shop/web, rule 0",
        "one request more costs 3.500 units in eu and 2.000 in us",
        "of the difference is wait, 1.500",
        "gain: +0.25 units a request against what stands, +0.125 against locality",
        "120.0 ms now by the Model, 131.0 ms measured; 90.0 ms predicted",
        "guard: a share changes by at most 10 points", "The request, not sent:", "PATCH /apis"})
    EXPECT_THAT(story, HasSubstr(part));
}

TEST(RoutingStory, ARegionThatIsNotHealthyIsTheReason) {
  StoredRouting stored = Shifted();
  stored.row.fate = Fate::kDone;
  stored.row.regions[0].is_healthy = false;
  stored.row.regions[0].one_more[3] = std::numeric_limits<double>::infinity();
  const std::string story = RoutingStory(stored, 61'000);
  EXPECT_THAT(story, HasSubstr("Why: eu is not healthy."));
  EXPECT_THAT(story, HasSubstr("route web was set to"));
  EXPECT_THAT(story, Not(HasSubstr("not sent")));
}

TEST(RoutingStory, DetailsAreWhatTheListDoesNotHave) {
  const OrderedJson details = RoutingDetails(Shifted());
  EXPECT_EQ(details["route"], "web");
  EXPECT_EQ(details["gain_units"], 0.25);
  EXPECT_TRUE(details["measured_ms"].is_null());
  EXPECT_FALSE(details.contains("policy"));
  EXPECT_EQ(SharesText(Shifted().row, &RoutedRegion::wanted), "eu 60, us 40");
}

}  // namespace
}  // namespace rudderfish
