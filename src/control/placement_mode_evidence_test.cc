// SPDX-License-Identifier: Apache-2.0
#include "control/placement_mode_evidence.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "control/journal_reader.h"
#include "control/sqlite_journal.h"
#include "tests/support/test_folder.h"

namespace rudderfish {
namespace {

using ::testing::HasSubstr;

class PlacementModeEvidenceTest : public ::testing::Test {
 protected:
  void SetUp() override { Start(); }
  void Start() {
    ladder_.reset();
    journal_.reset();
    journal_ = SqliteJournal::Open(folder_ / "j.db", {}).value();
    evidence_ = PlacementModeEvidence::Open(options_, journal_->placements()).value();
    ladder_ = ModeLadder::Open(
                  kPlacementLadder,
                  {.mode = Mode::kShadow, .policy = "most-allocated", .objective = "balance"},
                  evidence_.get(), journal_->modes())
                  .value();
  }
  // So many pods of a kind, of which our policy would have done better by so much.
  void Compare(ComparisonGroup group, int count, double change, double gain,
               const std::string& cluster = "") {
    for (int i = 0; i < count; ++i) {
      const std::string uid = fmt::format("{}{}-{}", cluster, NameOf(group), i);
      const PlacementComparison row{.pod = {"default", uid, uid},
                                    .cluster = cluster,
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
      ASSERT_TRUE(journal_->placements()->AppendComparisons({&row, 1}, {&outcome, 1}).has_value());
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
    EXPECT_TRUE(journal_->placements()->AppendComparisons({&row, 1}, {}).has_value());
    return JournalReader::Open(folder_ / "j.db")->Comparisons({.limit = 1})->at(0).number;
  }

  testing::TestFolder folder_;
  PlacementModeEvidence::Options options_{.schedulers = {"default-scheduler"}, .canary = 0.1};
  std::unique_ptr<SqliteJournal> journal_;
  std::unique_ptr<PlacementModeEvidence> evidence_;
  std::unique_ptr<ModeLadder> ladder_;
};

TEST_F(PlacementModeEvidenceTest, APromotionWithoutEvidenceIsRefusedAndSaysWhatIsMissing) {
  const std::string answer = ladder_->Answer("promote");
  EXPECT_THAT(answer, HasSubstr("0 of the 500 shadowed decisions"));
  EXPECT_EQ(ladder_->mode(), Mode::kShadow);
}

TEST_F(PlacementModeEvidenceTest, WithEvidenceItIsOneStep) {
  Compare(ComparisonGroup::kShadow, 500, 0, 1e-3);
  EXPECT_THAT(ladder_->Answer("promote"), HasSubstr("\"ok\":true"));
  EXPECT_EQ(ladder_->mode(), Mode::kAdvise);
  EXPECT_FALSE(ladder_->serves());
}

TEST_F(PlacementModeEvidenceTest, APromotionGoesByWhatWasSeenInItsOwnCluster) {
  Compare(ComparisonGroup::kShadow, 500, 0, 1e-3, "us");
  EXPECT_THAT(ladder_->Answer("promote"), HasSubstr("0 of the 500 shadowed decisions"));
  options_.cluster = "us";
  Start();
  EXPECT_THAT(ladder_->Answer("promote"), HasSubstr("\"ok\":true"));
}

TEST_F(PlacementModeEvidenceTest, APromotionGoesByTheSchedulersThatAreCompared) {
  Differ("batch", "theirs");
  Compare(ComparisonGroup::kShadow, 500, 0, 1e-3);
  const OrderedJson told = ladder_->Describe();
  EXPECT_EQ(told["evidence"]["shadowed"]["rules_different"], 0);
  EXPECT_THAT(told["next"]["missing"], ::testing::IsEmpty());
  ASSERT_EQ(told["evidence"]["schedulers"].size(), 2u);
  EXPECT_EQ(told["evidence"]["schedulers"][0]["scheduler"], "batch");
  EXPECT_EQ(told["evidence"]["schedulers"][0]["counts"], false);
  EXPECT_EQ(told["evidence"]["schedulers"][0]["rules_different"], 1);
  EXPECT_EQ(told["evidence"]["schedulers"][1]["counts"], true);
  EXPECT_EQ(told["evidence"]["schedulers"][1]["decisions"], 500);
  EXPECT_THAT(ladder_->Answer("promote"), HasSubstr("\"ok\":true"));
  ladder_->Answer("demote");
  options_.schedulers = {"default-scheduler", "batch"};
  Start();
  EXPECT_THAT(ladder_->Answer("promote"), HasSubstr("default/theirs on a: Insufficient cpu"));
  options_.schedulers = {"batch"};
  Start();
  EXPECT_THAT(ladder_->Answer("promote"), HasSubstr("1 of the 500 shadowed decisions"));
  EXPECT_EQ(ladder_->mode(), Mode::kShadow);
}

TEST_F(PlacementModeEvidenceTest, ARefusalNamesTheComparisonsWhoseRulesDiffer) {
  const int64_t older = Differ("default-scheduler", "x");
  const int64_t newer = Differ("default-scheduler", "y");
  EXPECT_THAT(ladder_->Answer("promote"),
              HasSubstr(fmt::format("2 differ (comparisons {}, {}), the newest: default/y on a",
                                    newer, older)));
  EXPECT_EQ(ladder_->Describe()["evidence"]["shadowed"]["differences"],
            OrderedJson({newer, older}));
}

TEST_F(PlacementModeEvidenceTest, APromotionMayCountOnlyWhatCameAfterADifferenceWasMended) {
  const int64_t mended = Differ("default-scheduler", "x");
  Compare(ComparisonGroup::kShadow, 500, 0, 1e-3);
  EXPECT_THAT(ladder_->Answer("promote"), HasSubstr("1 differ"));
  EXPECT_THAT(ladder_->Answer(fmt::format("promote from {}", mended)), HasSubstr("1 differ"));
  const std::string late = ladder_->Answer(fmt::format("promote from {}", mended + 2));
  EXPECT_THAT(late, HasSubstr("499 of the 500"));
  EXPECT_THAT(late, HasSubstr(fmt::format("for advise, by comparisons from {} on:", mended + 2)));
  EXPECT_EQ(ladder_->mode(), Mode::kShadow);
  ladder_->Answer(fmt::format("promote canary from {}", mended + 1));
  EXPECT_EQ(ladder_->mode(), Mode::kCanary);
  EXPECT_EQ(ladder_->kept().why, fmt::format("promoted from shadow by the command line, by "
                                             "comparisons from {} on",
                                             mended + 1));
}

TEST_F(PlacementModeEvidenceTest, ACanaryThatDoesWorseIsBackInShadowByItself) {
  ladder_->Answer("promote canary force");
  Compare(ComparisonGroup::kCanary, 40, 2e-3, 0);
  Compare(ComparisonGroup::kControl, 40, 1e-3, 0);
  const auto why = ladder_->LookAtActing(Instant(std::chrono::seconds(1000)));
  ASSERT_TRUE(why.has_value() && why->has_value());
  EXPECT_THAT(**why, HasSubstr("worse than its control group"));
  EXPECT_EQ(ladder_->mode(), Mode::kShadow);
  EXPECT_TRUE(ladder_->serves()) << "the pods that name us have no other scheduler";
  EXPECT_THAT(ladder_->Describe()["why"].dump(), HasSubstr("worse than its control group"));
}

TEST_F(PlacementModeEvidenceTest, ACanaryThatDoesBetterGoesOnAndMayBePromoted) {
  Compare(ComparisonGroup::kShadow, 500, 0, 1e-3);
  ladder_->Answer("promote canary");
  Compare(ComparisonGroup::kCanary, 40, 1e-3, 0);
  Compare(ComparisonGroup::kControl, 40, 2e-3, 0);
  EXPECT_FALSE(ladder_->LookAtActing(Instant(std::chrono::seconds(1000)))->has_value());
  ladder_->Answer("promote");
  EXPECT_EQ(ladder_->mode(), Mode::kEnforce);
}

}  // namespace
}  // namespace rudderfish
