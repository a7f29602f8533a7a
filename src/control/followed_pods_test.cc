// SPDX-License-Identifier: Apache-2.0
#include "control/followed_pods.h"

#include <gtest/gtest.h>

#include <utility>

namespace rudderfish {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

class FollowedPodsTest : public ::testing::Test {
 protected:
  // Written so long ago.
  static UnendedComparison Left(const std::string& name, Duration ago) {
    return {
        .pod = {"shop", name, "uid-" + name},
        .group = ComparisonGroup::kCanary,
        .node = "a",
        .policy_node = "a",
        .baseline_node = "b",
        .written_at = kNow - std::chrono::duration_cast<std::chrono::milliseconds>(ago).count()};
  }
  void Resume(const std::vector<UnendedComparison>& rows) { pods_.Resume(rows, kNow); }
  void See(const std::string& name, const std::string& node, bool is_running = true) {
    pods_.Seen({.id = {"shop", name, "uid-" + name},
                .shape = std::make_shared<PodClass>(),
                .node = node,
                .is_running = is_running},
               "shop/" + name);
  }
  // "uid-a started, ..."
  std::string Outcomes() {
    std::string text;
    for (const PlacementOutcome& one : pods_.outcomes())
      text += (text.empty() ? "" : ", ") + one.uid + " " + one.fate;
    pods_.ForgetOutcomes();
    return text;
  }

  static constexpr UnixMillis kNow = 1'000'000'000;
  ManualClock clock_{Instant(seconds(1000))};
  FollowedPods pods_{&clock_, seconds(30)};
};

TEST_F(FollowedPodsTest, WordsOfPodsThatAnEarlierProcessPlacedAreTaken) {
  Resume({Left("a", seconds(5)), Left("b", seconds(4)), Left("c", seconds(3))});
  See("a", "a");
  See("b", "elsewhere");
  See("c", "a", false);
  pods_.EndUnseen([](const std::string&, const std::string&) { return false; });
  EXPECT_EQ(Outcomes(), "uid-a started, uid-b elsewhere");
  pods_.Gone("shop/a");
  pods_.Gone("shop/c");
  pods_.Failed({"shop", "c", "uid-c"}, "OutOfcpu");
  EXPECT_EQ(Outcomes(), "uid-a ended, uid-c gone, uid-c failed");
}

TEST_F(FollowedPodsTest, PodsThatWentWhileTheControllerWasDownHaveGone) {
  UnendedComparison started = Left("b", seconds(50));
  started.is_started = true;
  Resume({Left("a", seconds(60)), started, Left("waits", seconds(40))});
  pods_.EndUnseen([](const std::string& key, const std::string& uid) {
    return key == "shop/waits" && uid == "uid-waits";
  });
  std::string outcomes = Outcomes();
  EXPECT_TRUE(outcomes == "uid-a gone, uid-b ended" || outcomes == "uid-b ended, uid-a gone")
      << outcomes;
}

TEST_F(FollowedPodsTest, MeasurementsThatWerePendingCome) {
  UnendedComparison measured = Left("measured", seconds(29));
  measured.is_measured = true;
  Resume(
      {Left("old", minutes(11)), Left("late", seconds(40)), measured, Left("soon", seconds(28))});
  for (const char* name : {"old", "late", "measured", "soon"}) See(name, "a");
  const FollowedPods::Pod* due = pods_.PopDue();
  ASSERT_NE(due, nullptr);
  EXPECT_EQ(due->id.name, "late");
  EXPECT_EQ(due->other_node, "b");
  EXPECT_TRUE(due->is_policy_choice);
  EXPECT_NE(due->shape, nullptr);
  EXPECT_EQ(pods_.PopDue(), nullptr);
  clock_.Advance(seconds(2));
  ASSERT_NE(due = pods_.PopDue(), nullptr);
  EXPECT_EQ(due->id.name, "soon");
  clock_.Advance(minutes(60));
  EXPECT_EQ(pods_.PopDue(), nullptr) << "the old one would be of another state";
}

}  // namespace
}  // namespace rudderfish
