// SPDX-License-Identifier: Apache-2.0
#include "control/mode_ladder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "control/sqlite_journal.h"
#include "tests/support/test_folder.h"

// With a made-up kind of decision; what real kinds ask for is tested next to their evidence.

namespace rudderfish {
namespace {

using ::testing::HasSubstr;

class FakeEvidence final : public ModeEvidence {
 public:
  Result<std::vector<std::string>> Missing(const KeptMode& now, Mode to, int64_t from) override {
    if (fails) return Fail(ErrorCode::kUnavailable, "the disk is full");
    asked = fmt::format("{} {} {}", now.policy, ModeName(to), from);
    return lacks;
  }
  Result<std::optional<std::string>> WhyWorse(UnixMillis) override { return worse; }
  Result<OrderedJson> Describe(const KeptMode&) override {
    if (fails) return Fail(ErrorCode::kUnavailable, "the disk is full");
    return OrderedJson{{"seen", 7}};
  }

  std::vector<std::string> lacks;
  std::optional<std::string> worse;
  std::string asked;
  bool fails = false;
};

class ModeLadderTest : public ::testing::Test {
 protected:
  void SetUp() override { Start(); }
  // As a process that is restarted.
  void Start() {
    ladder_.reset();
    journal_.reset();
    journal_ = SqliteJournal::Open(folder_ / "j.db", {}).value();
    ladder_ = ModeLadder::Open(kind_, settings_, &evidence_, journal_->modes()).value();
  }
  std::string Ask(std::string_view request) { return ladder_->Answer(request); }
  Mode mode() const { return ladder_->mode(); }

  ModeLadder::Kind kind_{.name = "steering", .record = "turn"};
  ModeLadder::Settings settings_{.mode = Mode::kShadow, .policy = "a@1", .objective = "speed"};
  testing::TestFolder folder_;
  FakeEvidence evidence_;
  std::unique_ptr<SqliteJournal> journal_;
  std::unique_ptr<ModeLadder> ladder_;
};

TEST_F(ModeLadderTest, APromotionWithoutEvidenceIsRefusedAndSaysWhatIsMissing) {
  evidence_.lacks = {"9 of the 10 turns", "luck"};
  EXPECT_EQ(Ask("promote"),
            R"({"error":"steering stays in shadow; missing for advise: 9 of the 10 )"
            R"(turns; luck. Use --force to promote without this",)"
            R"("missing":["9 of the 10 turns","luck"]})");
  EXPECT_EQ(mode(), Mode::kShadow);
  const OrderedJson told = ladder_->Describe();
  EXPECT_EQ(told["next"]["mode"], "advise");
  EXPECT_EQ(told["next"]["missing"].size(), 2u);
  EXPECT_EQ(told["evidence"]["seen"], 7);
  EXPECT_EQ(told["policy"], "a@1");
}

TEST_F(ModeLadderTest, RequestsLeadFromModeToMode) {
  struct Step {
    const char *request, *answer;
    Mode mode;
  };
  for (const auto& [request, answer, mode] : std::initializer_list<Step>{
           {"promote", "\"from\":\"shadow\",\"mode\":\"advise\"", Mode::kAdvise},
           {"promote advise", "steering is in advise, and advise is not above it", Mode::kAdvise},
           {"promote off", "not above it", Mode::kAdvise},
           {"demote enforce", "not below it", Mode::kAdvise},
           {"promote canari", "did you mean `canary`", Mode::kAdvise},
           {"promote enforce", "\"mode\":\"enforce\"", Mode::kEnforce},
           {"promote", "there is nothing above it", Mode::kEnforce},
           {"demote", "\"mode\":\"canary\"", Mode::kCanary},
           {"demote shadow", "demoted from canary by the command line", Mode::kShadow},
           {"demote", "\"mode\":\"off\"", Mode::kOff},
           {"demote", "there is nothing below it", Mode::kOff},
           {"promote", "\"mode\":\"shadow\"", Mode::kShadow}}) {
    EXPECT_THAT(Ask(request), HasSubstr(answer)) << request;
    EXPECT_EQ(ladder_->mode(), mode) << request;
  }
}

TEST_F(ModeLadderTest, EvidenceMayBeCountedFromARecordOn) {
  Ask("promote canary from 12");
  EXPECT_EQ(evidence_.asked, "a@1 canary 12");
  EXPECT_EQ(ladder_->kept().why, "promoted from shadow by the command line, by turns from 12 on");
  for (const char* number : {"", " 0", " -3", " x", " 99999999999999999999", " force"}) {
    EXPECT_THAT(Ask(fmt::format("promote enforce from{}", number)),
                HasSubstr("expected the number of a turn, as `decisions` shows them"))
        << number;
  }
  EXPECT_THAT(Ask("promote from 7x force"), HasSubstr("error"));
  EXPECT_THAT(Ask("demote from 7"), HasSubstr("error"));
  EXPECT_EQ(mode(), Mode::kCanary);
}

TEST_F(ModeLadderTest, AForcedPromotionOutlivesTheProcessUntilTheFileSaysAnotherMode) {
  evidence_.lacks = {"luck"};
  EXPECT_THAT(Ask("promote canary force"), HasSubstr("\"missing\":[\"luck\"]"));
  EXPECT_THAT(ladder_->kept().why, HasSubstr("without evidence"));
  Start();
  EXPECT_EQ(mode(), Mode::kCanary);
  EXPECT_TRUE(ladder_->serves());
  settings_.mode = Mode::kOff;
  Start();
  EXPECT_EQ(mode(), Mode::kOff);
  EXPECT_FALSE(ladder_->serves());
}

TEST_F(ModeLadderTest, EvidenceThatCannotBeReadPromotesNothing) {
  evidence_.fails = true;
  EXPECT_THAT(Ask("promote force"), HasSubstr("the disk is full"));
  EXPECT_EQ(ladder_->Describe()["problem"], "the disk is full");
  EXPECT_EQ(mode(), Mode::kShadow);
}

// What one policy has earned is not another's; who is served stays served.
TEST_F(ModeLadderTest, AnotherPolicyOrObjectiveBeginsAsTheFileSays) {
  Ask("promote enforce");
  settings_.policy = "a@2";
  Start();
  EXPECT_EQ(mode(), Mode::kShadow);
  EXPECT_TRUE(ladder_->serves());
  EXPECT_EQ(ladder_->kept().why, "policy a@1 for speed had reached enforce");
  Ask("promote enforce");
  settings_.objective = "comfort";
  ASSERT_TRUE(ladder_->Configure(settings_));
  EXPECT_EQ(mode(), Mode::kShadow) << "also at a reload";
}

TEST_F(ModeLadderTest, WhatWasDemotedStaysSoWithAnotherPolicy) {
  settings_.mode = Mode::kEnforce;
  Start();
  Ask("demote shadow");
  settings_.policy = "a@2";
  Start();
  EXPECT_EQ(mode(), Mode::kShadow);
}

TEST_F(ModeLadderTest, AReloadIsAsARestart) {
  Ask("promote canary");
  ASSERT_TRUE(ladder_->Configure(settings_));
  EXPECT_EQ(mode(), Mode::kCanary) << "the file says what it said";
  settings_.mode = Mode::kAdvise;
  ASSERT_TRUE(ladder_->Configure(settings_));
  EXPECT_EQ(mode(), Mode::kAdvise);
  EXPECT_FALSE(ladder_->serves());
  EXPECT_EQ(ladder_->kept().why, "as configured");
  Start();
  EXPECT_EQ(mode(), Mode::kAdvise);
}

// As the Lease says it of the leader before.
TEST_F(ModeLadderTest, TheModeOfAnotherInstanceIsTaken) {
  KeptMode theirs{.configured = Mode::kShadow,
                  .mode = Mode::kCanary,
                  .policy = "a@1",
                  .objective = "speed",
                  .since = 7,
                  .serves = true,
                  .why = "promoted there"};
  ASSERT_TRUE(ladder_->Take(theirs));
  EXPECT_EQ(ladder_->kept(), theirs);
  Start();
  EXPECT_EQ(ladder_->kept(), theirs) << "it is kept";
  theirs.configured = theirs.mode = Mode::kEnforce;
  ASSERT_TRUE(ladder_->Take(theirs));
  EXPECT_EQ(mode(), Mode::kCanary) << "our file says another mode than theirs";
}

TEST_F(ModeLadderTest, OfAnotherPolicyOnlyWhatIsServedIsTaken) {
  const KeptMode theirs{.configured = Mode::kShadow,
                        .mode = Mode::kEnforce,
                        .policy = "a@0",
                        .objective = "speed",
                        .since = 7,
                        .serves = true,
                        .why = "promoted there"};
  ASSERT_TRUE(ladder_->Take(theirs));
  EXPECT_EQ(mode(), Mode::kShadow);
  EXPECT_TRUE(ladder_->serves());
  EXPECT_EQ(ladder_->kept().policy, "a@1");
}

TEST_F(ModeLadderTest, ADemotionNeedsNoEvidenceAndWhatWasServedStaysServed) {
  Ask("promote enforce");
  evidence_.lacks = {"luck"};
  Ask("demote shadow");
  EXPECT_EQ(mode(), Mode::kShadow);
  EXPECT_TRUE(ladder_->serves());
  Ask("demote");
  EXPECT_FALSE(ladder_->serves());
}

TEST_F(ModeLadderTest, ACanaryThatDoesWorseIsBackInShadowByItself) {
  const Instant now(std::chrono::seconds(1000));
  evidence_.worse = "2 of 3 crashed";
  EXPECT_FALSE(ladder_->LookAtActing(now)->has_value()) << "there is no canary";
  Ask("promote canary");
  const auto why = ladder_->LookAtActing(now);
  ASSERT_TRUE(why.has_value() && why->has_value());
  EXPECT_EQ(**why, "2 of 3 crashed");
  EXPECT_EQ(mode(), Mode::kShadow);
  EXPECT_TRUE(ladder_->serves());
  EXPECT_EQ(ladder_->Describe()["why"], **why);
}

TEST_F(ModeLadderTest, SoIsWhatDoesWorseInEnforce) {
  Ask("promote enforce");
  evidence_.worse = "slower by far";
  EXPECT_EQ(ladder_->LookAtActing(Instant(std::chrono::seconds(1000))).value(), "slower by far");
  EXPECT_EQ(mode(), Mode::kShadow);
}

TEST_F(ModeLadderTest, TheWayDownNeedsNoJournal) {
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  for (const bool by_itself : {true, false}) {
    Ask("promote canary force");
    ASSERT_EQ(mode(), Mode::kCanary);
    rlimit none = before;
    none.rlim_cur = 1;  // As on a disk that is full.
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &none), 0);
    evidence_.worse = "it is slower";
    if (by_itself) {
      EXPECT_TRUE(ladder_->LookAtActing(Instant(std::chrono::hours(1))).value());
    } else {
      Ask("demote shadow");
    }
    const Mode lowered = mode();
    const std::string refused = Ask("promote force");
    const Mode after = mode();
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT_EQ(lowered, Mode::kShadow);
    EXPECT_THAT(refused, HasSubstr("error"));
    EXPECT_EQ(after, Mode::kShadow);
    EXPECT_TRUE(ladder_->Keep());
    Start();
    EXPECT_EQ(mode(), Mode::kShadow);
  }
}

TEST_F(ModeLadderTest, RightsThatTheNextModeNeedsAreAskedForAndNamed) {
  std::vector<Mode> asked;
  const auto lacks = [&](Mode to) {
    asked.push_back(to);
    return std::vector<std::string>{"the right create pods/binding"};
  };
  const std::string refused = ladder_->Answer("promote canary", lacks);
  EXPECT_THAT(refused, HasSubstr("missing for canary: the right create pods/binding"));
  EXPECT_EQ(mode(), Mode::kShadow);
  EXPECT_THAT(ladder_->Answer("promote canary force", lacks), HasSubstr("\"ok\":true"));
  ladder_->Answer("demote shadow", lacks);
  EXPECT_EQ(asked, (std::vector<Mode>{Mode::kCanary, Mode::kCanary})) << "the way down needs none";
}

TEST_F(ModeLadderTest, ACanaryThatDoesNoWorseGoesOn) {
  Ask("promote canary");
  EXPECT_FALSE(ladder_->LookAtActing(Instant(std::chrono::seconds(1000)))->has_value());
  EXPECT_EQ(mode(), Mode::kCanary);
}

}  // namespace
}  // namespace rudderfish
