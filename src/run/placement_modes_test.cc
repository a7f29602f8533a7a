// SPDX-License-Identifier: Apache-2.0
#include "run/placement_modes.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

namespace rudderfish {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class PlacementModesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() /
              ("rudderfish-modes-" + std::to_string(::getpid()) + "-" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(folder_);
    config_.choice.policy = "most-allocated";
    Start();
  }
  void TearDown() override {
    modes_.reset();
    journal_.reset();
    fs::remove_all(folder_);
  }
  void Start() {
    modes_.reset();
    journal_.reset();
    journal_ = SqliteJournal::Open(folder_ / "j.db", {}).value();
    modes_ =
        PlacementModes::Open(config_, config_.choice.policy, objective_, journal_.get()).value();
  }
  // So many pods of a kind, of which our policy would have done better by so much.
  void Compare(ComparisonGroup group, int count, double change, double gain) {
    for (int i = 0; i < count; ++i) {
      const std::string uid = fmt::format("{}-{}", NameOf(group), i);
      const PlacementComparison row{.pod = {"default", uid, uid},
                                    .group = group,
                                    .scheduler = "default-scheduler",
                                    .policy = "most-allocated",
                                    .objective = "balance",
                                    .node = "a",
                                    .policy_node = "b",
                                    .baseline_node = "a",
                                    .policy_change = 0,
                                    .baseline_change = gain};
      const PlacementOutcome outcome{
          .uid = uid, .measured_gain = gain, .measured_change = change + 1e-6 * (i % 2)};
      ASSERT_TRUE(journal_->AppendComparisons({&row, 1}, {&outcome, 1}).has_value());
    }
  }

  // A pod that a scheduler has put where our rules forbid it; the comparison's number.
  int64_t Differ(const std::string& scheduler, const std::string& name) {
    const PlacementComparison row{.pod = {"default", name, name},
                                  .scheduler = scheduler,
                                  .policy = "most-allocated",
                                  .objective = "balance",
                                  .node = "a",
                                  .rules = RulesVerdict::kDifferent,
                                  .reason = "a: Insufficient cpu"};
    EXPECT_TRUE(journal_->AppendComparisons({&row, 1}, {}).has_value());
    return JournalReader::Open(folder_ / "j.db")->Comparisons("", 1)->at(0).number;
  }

  fs::path folder_;
  PlacementConfig config_;
  std::string objective_ = "balance";
  std::unique_ptr<SqliteJournal> journal_;
  std::unique_ptr<PlacementModes> modes_;
};

TEST_F(PlacementModesTest, APromotionWithoutEvidenceIsRefusedAndSaysWhatIsMissing) {
  const std::string answer = modes_->Answer("promote");
  EXPECT_THAT(answer, HasSubstr("0 of the 500 shadowed decisions"));
  EXPECT_EQ(modes_->mode(), Mode::kShadow);
}

TEST_F(PlacementModesTest, WithEvidenceItIsOneStep) {
  Compare(ComparisonGroup::kShadow, 500, 0, 1e-3);
  EXPECT_THAT(modes_->Answer("promote"), HasSubstr("\"ok\":true"));
  EXPECT_EQ(modes_->mode(), Mode::kAdvise);
  EXPECT_FALSE(modes_->serves());
}

TEST_F(PlacementModesTest, AForcedPromotionOutlivesTheProcessUntilTheFileSaysAnotherMode) {
  EXPECT_THAT(modes_->Answer("promote canary force"), HasSubstr("\"missing\":[\"0 of"));
  EXPECT_EQ(modes_->mode(), Mode::kCanary);
  Start();
  EXPECT_EQ(modes_->mode(), Mode::kCanary);
  EXPECT_TRUE(modes_->serves());
  config_.mode = Mode::kOff;
  Start();
  EXPECT_EQ(modes_->mode(), Mode::kOff);
  EXPECT_FALSE(modes_->serves());
}

TEST_F(PlacementModesTest, APromotionGoesByTheSchedulersThatAreCompared) {
  Differ("batch", "theirs");
  Compare(ComparisonGroup::kShadow, 500, 0, 1e-3);
  const OrderedJson told = modes_->Describe();
  EXPECT_EQ(told["shadowed"]["rules_different"], 0);
  EXPECT_THAT(told["next"]["missing"], ::testing::IsEmpty());
  ASSERT_EQ(told["schedulers"].size(), 2u);
  EXPECT_EQ(told["schedulers"][0]["scheduler"], "batch");
  EXPECT_EQ(told["schedulers"][0]["counts"], false);
  EXPECT_EQ(told["schedulers"][0]["rules_different"], 1);
  EXPECT_EQ(told["schedulers"][1]["counts"], true);
  EXPECT_EQ(told["schedulers"][1]["decisions"], 500);
  EXPECT_THAT(modes_->Answer("promote"), HasSubstr("\"ok\":true"));
  modes_->Answer("demote");
  config_.compare = {"default-scheduler", "batch"};
  Start();
  EXPECT_THAT(modes_->Answer("promote"), HasSubstr("default/theirs on a: Insufficient cpu"));
  config_.compare = {"batch"};
  Start();
  EXPECT_THAT(modes_->Answer("promote"), HasSubstr("1 of the 500 shadowed decisions"));
  EXPECT_EQ(modes_->mode(), Mode::kShadow);
}

TEST_F(PlacementModesTest, ARefusalNamesTheComparisonsWhoseRulesDiffer) {
  const int64_t older = Differ("default-scheduler", "x");
  const int64_t newer = Differ("default-scheduler", "y");
  EXPECT_THAT(modes_->Answer("promote"),
              HasSubstr(fmt::format("2 differ (comparisons {}, {}), the newest: default/y on a",
                                    newer, older)));
  EXPECT_EQ(modes_->Describe()["shadowed"]["differences"], OrderedJson({newer, older}));
}

TEST_F(PlacementModesTest, APromotionMayCountOnlyWhatCameAfterADifferenceWasMended) {
  const int64_t mended = Differ("default-scheduler", "x");
  Compare(ComparisonGroup::kShadow, 500, 0, 1e-3);
  EXPECT_THAT(modes_->Answer("promote"), HasSubstr("1 differ"));
  EXPECT_THAT(modes_->Answer(fmt::format("promote from {}", mended)), HasSubstr("1 differ"));
  const std::string late = modes_->Answer(fmt::format("promote from {}", mended + 2));
  EXPECT_THAT(late, HasSubstr("499 of the 500"));
  EXPECT_THAT(late, HasSubstr(fmt::format("for advise, by comparisons from {} on,", mended + 2)));
  EXPECT_EQ(modes_->mode(), Mode::kShadow);
  modes_->Answer(fmt::format("promote canary from {}", mended + 1));
  EXPECT_EQ(modes_->mode(), Mode::kCanary);
  EXPECT_EQ(modes_->kept().why, fmt::format("promoted from shadow by the command line, by "
                                            "comparisons from {} on",
                                            mended + 1));
}

TEST_F(PlacementModesTest, ANumberThatIsNoneIsRefused) {
  for (const char* number : {"", " 0", " -3", " x", " 99999999999999999999", " force"}) {
    EXPECT_THAT(modes_->Answer(fmt::format("promote advise from{}", number)),
                HasSubstr("expected the number of a comparison"))
        << number;
  }
  EXPECT_THAT(modes_->Answer("promote from 7x force"), HasSubstr("error"));
  EXPECT_THAT(modes_->Answer("demote from 7"), HasSubstr("error"));
  EXPECT_EQ(modes_->mode(), Mode::kShadow);
}

// What one policy has earned is not another's; pods that name us are placed all the same.
TEST_F(PlacementModesTest, AnotherPolicyOrObjectiveBeginsAsTheFileSays) {
  modes_->Answer("promote enforce force");
  config_.choice.policy = "runs/new@12345678";
  Start();
  EXPECT_EQ(modes_->mode(), Mode::kShadow);
  EXPECT_TRUE(modes_->serves());
  modes_->Answer("promote enforce force");
  Start();
  EXPECT_EQ(modes_->mode(), Mode::kEnforce);
  objective_ = "energy";
  Start();
  EXPECT_EQ(modes_->mode(), Mode::kShadow);
}

TEST_F(PlacementModesTest, WhatWasDemotedStaysSoWithAnotherPolicy) {
  config_.mode = Mode::kEnforce;
  Start();
  modes_->Answer("demote shadow");
  config_.choice.policy = "runs/new@12345678";
  Start();
  EXPECT_EQ(modes_->mode(), Mode::kShadow);
}

// As the Lease says it of who led before.
TEST_F(PlacementModesTest, WhatAnotherInstanceHasComeToIsGoneOnFrom) {
  KeptMode theirs{.configured = Mode::kShadow,
                  .mode = Mode::kCanary,
                  .policy = "most-allocated",
                  .objective = "balance",
                  .since = 7,
                  .serves = true,
                  .why = "promoted there"};
  ASSERT_TRUE(modes_->Take(theirs).has_value());
  EXPECT_EQ(modes_->kept(), theirs);
  Start();
  EXPECT_EQ(modes_->kept(), theirs) << "it is kept";
  theirs.configured = theirs.mode = Mode::kEnforce;
  ASSERT_TRUE(modes_->Take(theirs).has_value());
  EXPECT_EQ(modes_->mode(), Mode::kCanary) << "our file says another mode than theirs";
}

TEST_F(PlacementModesTest, OfAnotherPolicyOnlyThatPodsAreServedIsTaken) {
  const KeptMode theirs{.configured = Mode::kShadow,
                        .mode = Mode::kEnforce,
                        .policy = "runs/old@12345678",
                        .objective = "balance",
                        .since = 7,
                        .serves = true,
                        .why = "promoted there"};
  ASSERT_TRUE(modes_->Take(theirs).has_value());
  EXPECT_EQ(modes_->mode(), Mode::kShadow);
  EXPECT_TRUE(modes_->serves());
  EXPECT_EQ(modes_->kept().policy, "most-allocated");
}

TEST_F(PlacementModesTest, ADemotionNeedsNoEvidenceAndWhoHasServedGoesOnServing) {
  modes_->Answer("promote enforce force");
  EXPECT_THAT(modes_->Answer("demote shadow"), HasSubstr("\"mode\":\"shadow\""));
  EXPECT_EQ(modes_->mode(), Mode::kShadow);
  EXPECT_TRUE(modes_->serves());
  modes_->Answer("demote");
  EXPECT_EQ(modes_->mode(), Mode::kOff);
  EXPECT_FALSE(modes_->serves());
  EXPECT_THAT(modes_->Answer("demote"), HasSubstr("nothing below it"));
}

TEST_F(PlacementModesTest, ModesThatAreNoneOrTheWrongWayAreRefused) {
  EXPECT_THAT(modes_->Answer("promote canari force"), HasSubstr("canary"));
  EXPECT_THAT(modes_->Answer("promote off"), HasSubstr("not above it"));
  EXPECT_THAT(modes_->Answer("demote enforce"), HasSubstr("not below it"));
}

TEST_F(PlacementModesTest, ACanaryThatDoesWorseIsBackInShadowByItself) {
  modes_->Answer("promote canary force");
  Compare(ComparisonGroup::kCanary, 40, 2e-3, 0);
  Compare(ComparisonGroup::kControl, 40, 1e-3, 0);
  const auto why = modes_->LookAtCanary(Instant(std::chrono::seconds(1000)));
  ASSERT_TRUE(why.has_value() && why->has_value());
  EXPECT_THAT(**why, HasSubstr("worse than its control group"));
  EXPECT_EQ(modes_->mode(), Mode::kShadow);
  EXPECT_TRUE(modes_->serves()) << "the pods that name us have no other scheduler";
  EXPECT_THAT(modes_->Describe()["why"].dump(), HasSubstr("worse than its control group"));
}

TEST_F(PlacementModesTest, ACanaryThatDoesBetterGoesOnAndMayBePromoted) {
  Compare(ComparisonGroup::kShadow, 500, 0, 1e-3);
  modes_->Answer("promote canary");
  Compare(ComparisonGroup::kCanary, 40, 1e-3, 0);
  Compare(ComparisonGroup::kControl, 40, 2e-3, 0);
  EXPECT_FALSE(modes_->LookAtCanary(Instant(std::chrono::seconds(1000)))->has_value());
  modes_->Answer("promote");
  EXPECT_EQ(modes_->mode(), Mode::kEnforce);
}

}  // namespace
}  // namespace rudderfish
