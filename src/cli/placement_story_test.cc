// SPDX-License-Identifier: Apache-2.0
#include "cli/placement_story.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace rudderfish {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

OrderedJson Pending() {
  return {{"pod", "default/web-1"},
          {"scheduler", "rudderfish"},
          {"waited_s", 12.4},
          {"nodes", 5},
          {"feasible", 3},
          {"message", ""},
          {"gates", OrderedJson::array()},
          {"unmodelled", OrderedJson::array()},
          {"opted_out", false},
          {"held", ""},
          {"policy", "greedy"},
          {"choice", "n1"},
          {"refused", {{{"reason", "Insufficient cpu"}, {"nodes", {"n4", "n5"}}}}}};
}

TEST(PlacementStory, APodThatWaitsIsToldWhereItCouldGoAndWhereNot) {
  EXPECT_EQ(PendingStoryText(Pending()),
            "default/web-1 waits for rudderfish, for 12 s\n"
            "3 of 5 nodes may take it; greedy would put it on n1.\n"
            "\n"
            "  2 nodes  Insufficient cpu  n4, n5\n");
}

TEST(PlacementStory, APodThatNoSchedulerPlacesIsToldSo) {
  OrderedJson pending = Pending();
  pending["held"] = "placement is in shadow";
  EXPECT_THAT(PendingStoryText(pending),
              HasSubstr("for 12 s\nNo scheduler places it now: placement is in shadow.\n3 of 5"));
  pending["opted_out"] = true;
  pending["choice"] = "";
  EXPECT_THAT(PendingStoryText(pending),
              HasSubstr("It says rudderfish.io/do-not-place: no policy of ours counts for it.\n"
                        "3 of 5 nodes may take it.\n"));
}

TEST(PlacementStory, WhatIsNotModelledWasAskedOfNoNode) {
  StoredComparison stored{.number = 7, .written_at = 1'000'000};
  stored.row.pod = {"default", "web-1", "u"};
  stored.row.scheduler = "default-scheduler";
  stored.row.node = "n2";
  stored.row.nodes = 5;
  stored.row.rules = RulesVerdict::kUnmodelled;
  stored.row.reason = "the pod claims devices (DRA)";
  stored.row.detail = "{}";
  stored.outcome.fate = "placed";
  const std::string story = ComparisonStory(stored, 1'060'000).value();
  EXPECT_THAT(story, HasSubstr("Not compared, as this is not modelled: the pod claims devices"));
  EXPECT_THAT(story, Not(HasSubstr("could take it")));
  stored.row.rules = RulesVerdict::kDifferent;
  EXPECT_THAT(ComparisonStory(stored, 1'060'000).value(),
              HasSubstr("UTC); 0 of 5 nodes could take it; it waited 0 ms"));
}

TEST(PlacementStory, WhoDecidesFollowsFromTheMode) {
  const auto decider = [](const char* mode, bool serves) {
    return DeciderText({{"mode", mode},
                        {"policy", "greedy"},
                        {"scheduler_name", "ours"},
                        {"standing", {{"serves", serves}}}});
  };
  EXPECT_EQ(decider("enforce", true), "greedy decides about pods of the scheduler `ours`");
  EXPECT_EQ(decider("shadow", true),
            "kube-default decides about pods of the scheduler `ours`; greedy is compared");
  EXPECT_EQ(decider("advise", false), "pods of the scheduler `ours` wait; greedy is compared");
  EXPECT_EQ(decider("off", true), "pods of the scheduler `ours` wait");
  EXPECT_THAT(decider("canary", true), StartsWith("greedy decides about a share of the pods"));
}

}  // namespace
}  // namespace rudderfish
