// SPDX-License-Identifier: Apache-2.0
#include "cli/policy_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/files.h"
#include "task/migration.h"

namespace rudderfish {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class PolicySpecs : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / fmt::format("rudderfish-policy-spec-{}", ::getpid());
    fs::create_directories(folder_);
    before_ = fs::current_path();
    fs::current_path(folder_);
  }
  void TearDown() override {
    fs::current_path(before_);
    fs::remove_all(folder_);
  }

  static void MakeRunOfSeeds(const std::string& run, int seeds) {
    for (int number = 1; number <= seeds; ++number) {
      const fs::path seed = fs::path(run) / fmt::format("seed-{}", number);
      fs::create_directories(seed);
      ASSERT_TRUE(WriteFileAtomically(seed / "config.yaml", "rudderfish: run/v1\n"));
    }
  }

  static PolicySpec One(std::string_view text) {
    Result<std::vector<PolicySpec>> specs = ParsePolicySpecs(text);
    EXPECT_TRUE(specs) << specs.error().message;
    EXPECT_EQ(specs->size(), 1u);
    return specs->front();
  }

  static std::string Refusal(std::string_view text) {
    const Result<std::vector<PolicySpec>> specs = ParsePolicySpecs(text);
    EXPECT_FALSE(specs) << text;
    return specs ? "" : specs.error().message;
  }

 private:
  fs::path folder_, before_;
};

TEST_F(PolicySpecs, CommasSeparatePoliciesUnderWhatWasTyped) {
  const auto specs = ParsePolicySpecs("stay,greedy,runs/a").value();
  ASSERT_EQ(specs.size(), 3u);
  EXPECT_EQ(specs[0].name, "stay");
  EXPECT_EQ(specs[2].name, "runs/a");
  EXPECT_THAT(specs[2].members, ElementsAre("runs/a"));
}

TEST_F(PolicySpecs, NameBeforeTheSignIsShownInItsPlace) {
  const PolicySpec spec = One("learned=runs/a");
  EXPECT_EQ(spec.name, "learned");
  EXPECT_THAT(spec.members, ElementsAre("runs/a"));
}

TEST_F(PolicySpecs, ColonsSeparateTrainingSeeds) {
  EXPECT_THAT(One("learned=runs/a:runs/b:c.safetensors").members,
              ElementsAre("runs/a", "runs/b", "c.safetensors"));
}

TEST_F(PolicySpecs, OptionsOfSearchAreNotNamesOrSeeds) {
  const PolicySpec alone = One("lookahead:evaluations=20000");
  EXPECT_EQ(alone.name, "lookahead:evaluations=20000");
  EXPECT_THAT(alone.members, ElementsAre("lookahead:evaluations=20000"));
  EXPECT_THAT(One("fast=lookahead:time=10ms").members, ElementsAre("lookahead:time=10ms"));
}

TEST_F(PolicySpecs, CommasBetweenOptionsPartNoPolicies) {
  const auto specs = ParsePolicySpecs("stay,lookahead:width=8,patience=2,fast=greedy").value();
  ASSERT_EQ(specs.size(), 3u);
  EXPECT_EQ(specs[1].name, "lookahead:width=8,patience=2");
  EXPECT_THAT(specs[1].members, ElementsAre("lookahead:width=8,patience=2"));
  EXPECT_EQ(specs[2].name, "fast");
  EXPECT_THAT(One("x=lookahead:time=10ms,width=8,patience=2").members,
              ElementsAre("lookahead:time=10ms,width=8,patience=2"));
  EXPECT_THAT(
      One("x=lookahead:width=8,patience=2+runs/a:runs/b").members,
      ElementsAre("lookahead:width=8,patience=2+runs/a", "lookahead:width=8,patience=2+runs/b"));
  EXPECT_THAT(
      One("x=lookahead:width=8,patience=2+runs/a:lookahead:width=4,patience=1+runs/b").members,
      ElementsAre("lookahead:width=8,patience=2+runs/a", "lookahead:width=4,patience=1+runs/b"));
}

TEST_F(PolicySpecs, RunCalledLikeANumberIsNoOption) {
  fs::create_directories("8");
  const auto specs = ParsePolicySpecs("lookahead:width=4,learned=8,runs/9").value();
  ASSERT_EQ(specs.size(), 3u);
  EXPECT_EQ(specs[1].name, "learned");
  EXPECT_THAT(specs[1].members, ElementsAre("8"));
}

TEST_F(PolicySpecs, OptionsOfNoPolicyAreRefused) {
  for (const char* text : {"width=8", "greedy,width=8", "lookahead,width=8",
                           "x=best-of:4+run,time=1ms", "lookahead:width=8+runs/a,patience=2"}) {
    EXPECT_THAT(Refusal(text), HasSubstr("neither a policy nor an option of one")) << text;
  }
}

TEST_F(PolicySpecs, UnknownOptionsAreRefusedWithTheNearestKnownOne) {
  const MigrationTask task{MigrationOptions{}};
  const PolicySpec spec = One("x=lookahead:width=8,patence=3");
  EXPECT_THAT(
      MakePolicyGroup(spec, task).error().message,
      testing::AllOf(HasSubstr("unknown option `patence`"), HasSubstr("did you mean `patience`?")));
}

TEST_F(PolicySpecs, SearchBeforeTheFirstRunCountsForTheGroup) {
  EXPECT_THAT(One("x=best-of:16+runs/a:runs/b").members,
              ElementsAre("best-of:16+runs/a", "best-of:16+runs/b"));
  EXPECT_THAT(One("x=lookahead+runs/a:lookahead:width=8+runs/b").members,
              ElementsAre("lookahead+runs/a", "lookahead:width=8+runs/b"));
  EXPECT_THAT(
      One("x=lookahead:width=8:patience=2+runs/a:runs/b").members,
      ElementsAre("lookahead:width=8:patience=2+runs/a", "lookahead:width=8:patience=2+runs/b"));
}

TEST_F(PolicySpecs, RunOfSeveralSeedsIsTheGroupOfThem) {
  MakeRunOfSeeds("runs/many", 3);
  EXPECT_THAT(One("runs/many").members,
              ElementsAre("runs/many/seed-1", "runs/many/seed-2", "runs/many/seed-3"));
  EXPECT_THAT(One("x=lookahead+runs/many").members,
              ElementsAre("lookahead+runs/many/seed-1", "lookahead+runs/many/seed-2",
                          "lookahead+runs/many/seed-3"));
  EXPECT_THAT(RunsOf(One("runs/many")), testing::SizeIs(3));
  EXPECT_TRUE(RunsOf(One("x=lookahead+runs/many")).empty());
}

TEST_F(PolicySpecs, PathsMayHoldColonsAndSignsIfTheyExist) {
  ASSERT_TRUE(WriteFileAtomically("a:b=c.safetensors", "x"));
  EXPECT_THAT(One("x=a:b=c.safetensors").members, ElementsAre("a:b=c.safetensors"));
  EXPECT_EQ(One("./a:b=c.safetensors").name, "./a:b=c.safetensors");
}

TEST_F(PolicySpecs, EmptyPartsAreRefused) {
  EXPECT_THAT(Refusal("stay,,greedy"), HasSubstr("empty"));
  EXPECT_THAT(Refusal("stay,"), HasSubstr("empty"));
  EXPECT_THAT(Refusal("x=a::b"), HasSubstr("empty"));
  EXPECT_THAT(Refusal("=runs/a"), HasSubstr("name is missing"));
  EXPECT_THAT(Refusal("learned="), HasSubstr("policy is missing"));
}

TEST_F(PolicySpecs, NamesThatAreEqualAreRefused) {
  EXPECT_THAT(Refusal("greedy,stay,greedy"), HasSubstr("`greedy` is named twice"));
}

TEST_F(PolicySpecs, GroupsNeedAName) {
  EXPECT_THAT(Refusal("runs/a:runs/b"), HasSubstr("learned=runs/a:runs/b"));
}

TEST_F(PolicySpecs, OnePolicyIsNeitherAListNorAGroup) {
  EXPECT_EQ(ParsePolicySpec("greedy").value().members[0], "greedy");
  EXPECT_THAT(ParsePolicySpec("greedy,stay").error().message, HasSubstr("expected one policy"));
  EXPECT_THAT(ParsePolicySpec("x=runs/a:runs/b").error().message, HasSubstr("2 training seeds"));
}

TEST_F(PolicySpecs, GroupsAreMadeOfPoliciesOrRefusedAsTheRegistrySays) {
  const MigrationTask task{MigrationOptions{}};
  const PolicyGroup group = MakePolicyGroup(One("twins=greedy:stay"), task).value();
  EXPECT_EQ(group.name, "twins");
  EXPECT_EQ(group.training_seeds.size(), 2u);
  EXPECT_THAT(MakePolicyGroup(One("greddy"), task).error().message, HasSubstr("greedy"));
}

}  // namespace
}  // namespace rudderfish
