// SPDX-License-Identifier: Apache-2.0
#include "cli/policy_list.h"

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

class ListedPolicies : public testing::Test {
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

  static ListedPolicy One(std::string_view text) {
    Result<std::vector<ListedPolicy>> policies = ParsePolicies(text);
    EXPECT_TRUE(policies) << policies.error().message;
    EXPECT_EQ(policies->size(), 1u);
    return policies->front();
  }

  static std::vector<std::string> MembersOf(std::string_view text) {
    std::vector<std::string> members;
    for (const PolicySpec& member : One(text).members) members.push_back(member.text());
    return members;
  }

  static std::string Refusal(std::string_view text) {
    const Result<std::vector<ListedPolicy>> policies = ParsePolicies(text);
    EXPECT_FALSE(policies) << text;
    return policies ? "" : policies.error().message;
  }

 private:
  fs::path folder_, before_;
};

TEST_F(ListedPolicies, NameBeforeTheSignIsShownInItsPlace) {
  EXPECT_EQ(One("learned=runs/a").name, "learned");
  EXPECT_THAT(MembersOf("learned=runs/a"), ElementsAre("runs/a"));
}

TEST_F(ListedPolicies, ColonsSeparateTrainingSeeds) {
  EXPECT_THAT(MembersOf("learned=runs/a:runs/b:c.safetensors"),
              ElementsAre("runs/a", "runs/b", "c.safetensors"));
  EXPECT_THAT(MembersOf("x=lookahead:width=8,run=runs/a:runs/b,patience=2"),
              ElementsAre("lookahead:width=8,run=runs/a,patience=2",
                          "lookahead:width=8,run=runs/b,patience=2"));
  EXPECT_THAT(MembersOf("fast=lookahead:time=10ms"), ElementsAre("lookahead:time=10ms"));
}

TEST_F(ListedPolicies, RunOfSeveralSeedsIsTheGroupOfThem) {
  MakeRunOfSeeds("runs/many", 3);
  EXPECT_THAT(MembersOf("runs/many"),
              ElementsAre("runs/many/seed-1", "runs/many/seed-2", "runs/many/seed-3"));
  EXPECT_THAT(MembersOf("best-of:run=runs/many"),
              ElementsAre("best-of:run=runs/many/seed-1", "best-of:run=runs/many/seed-2",
                          "best-of:run=runs/many/seed-3"));
  EXPECT_THAT(RunsOf(One("runs/many")), testing::SizeIs(3));
  EXPECT_TRUE(RunsOf(One("x=lookahead:run=runs/many")).empty());
}

TEST_F(ListedPolicies, PathsMayHoldColonsAndSignsIfTheyExist) {
  ASSERT_TRUE(WriteFileAtomically("a:b=c.safetensors", "x"));
  EXPECT_THAT(MembersOf("x=a:b=c.safetensors"), ElementsAre("a:b=c.safetensors"));
  EXPECT_EQ(One("./a:b=c.safetensors").name, "./a:b=c.safetensors");
}

TEST_F(ListedPolicies, AMisspeltNameWithOptionsIsNoGroup) {
  EXPECT_THAT(MembersOf("hpb:cpu=60"), ElementsAre("hpb:cpu=60"));
}

TEST_F(ListedPolicies, GroupsNeedAName) {
  EXPECT_THAT(Refusal("runs/a:runs/b"), HasSubstr("learned=runs/a:runs/b"));
  EXPECT_THAT(Refusal("x=a::b"), HasSubstr("empty"));
}

TEST_F(ListedPolicies, OnePolicyIsNeitherAListNorAGroup) {
  EXPECT_EQ(ParseOnePolicy("greedy").value().spec.text(), "greedy");
  EXPECT_THAT(ParseOnePolicy("greedy,stay").error().message, HasSubstr("expected one policy"));
  EXPECT_THAT(ParseOnePolicy("x=runs/a:runs/b").error().message, HasSubstr("2 training seeds"));
}

TEST_F(ListedPolicies, GroupsAreMadeOfPoliciesOrRefusedAsTheRegistrySays) {
  const MigrationTask task{MigrationOptions{}};
  const PolicyGroup group = MakePolicyGroup(One("mine=greedy"), task).value();
  EXPECT_EQ(group.name, "mine");
  EXPECT_EQ(group.training_seeds.size(), 1u);
  EXPECT_THAT(MakePolicyGroup(One("greddy"), task).error().message, HasSubstr("greedy"));
}

TEST_F(ListedPolicies, FilesAreThoseThatAreThere) {
  ASSERT_TRUE(WriteFileAtomically("a.safetensors", "x"));
  EXPECT_THAT(FilesOf(One("best-of:run=a.safetensors")), ElementsAre("a.safetensors"));
  EXPECT_TRUE(FilesOf(One("greedy")).empty());
  EXPECT_TRUE(FilesOf(One("runs/nowhere")).empty());
}

TEST_F(ListedPolicies, WhatBuildsOnTheLastOnesNetworkIsMarkedWhateverItsName) {
  for (const char* run : {"runs/a", "runs/b"}) {
    ASSERT_TRUE(MakeDirectories(run));
    ASSERT_TRUE(WriteFileAtomically(std::filesystem::path(run) / "checkpoint.safetensors", "x"));
  }
  const auto shares = [](const std::string& text) {
    std::vector<bool> marks;
    const std::vector<ListedPolicy> listed = ParsePolicies(text).value();
    for (const ListedPolicy& one : listed) marks.push_back(one.shares_network);
    return marks;
  };
  EXPECT_THAT(shares("greedy,mine=mixed:greedy=1,run=runs/a,other=mixed:greedy=1,run=runs/b,"
                     "learned=./runs/a"),
              ElementsAre(false, true, false, false));
  EXPECT_THAT(shares("both=runs/b:runs/a,best-of:run=runs/a"), ElementsAre(true, false));
  EXPECT_THAT(shares("learned=runs/a,greedy"), ElementsAre(false, false));
}

}  // namespace
}  // namespace rudderfish
