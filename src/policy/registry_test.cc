// SPDX-License-Identifier: Apache-2.0
#include "policy/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/policy_table.h"
#include "task/migration.h"
#include "tests/support/source_path.h"

namespace rudderfish {
namespace {

using ::testing::HasSubstr;

// A policy is made from each spec; the result, in words.
std::string Made(const PolicySpec& spec, TaskKind task) {
  const MigrationTask moving{{}};
  const auto outcome = [](const auto& policy) {
    return policy ? std::string("made") : policy.error().message;
  };
  switch (task) {
    case TaskKind::kMove:
      return outcome(MakePolicy(spec, moving));
    case TaskKind::kPlace:
      return outcome(
          MakePlacementPolicy(spec, PlacementTask(Objective::Of(ObjectiveTerm::kBalance))));
    case TaskKind::kRoute:
      return outcome(MakeRoutingPolicy(spec));
    case TaskKind::kScale:
      break;
  }
  return outcome(MakeScalingPolicy(spec));
}

std::string ErrorOf(std::string_view text, TaskKind task = TaskKind::kMove) {
  const Result<PolicySpec> spec = ParsePolicySpec(text);
  return spec ? Made(*spec, task) : spec.error().message;
}

// The row by its name alone, or by its example with the shipped network in place of RUN.
std::string LeastSpecOf(const PolicyRow& row) {
  std::string spec(row.example.empty() ? row.name : row.example);
  if (const size_t run = spec.find("RUN"); run != std::string::npos)
    spec.replace(run, 3, SourcePath("policies/continuum.safetensors"));
  return spec;
}

TEST(PolicyTable, EveryPolicyIsMadeWithItsDefaults) {
  for (const PolicyRow& row : PolicyTable())
    EXPECT_EQ(ErrorOf(LeastSpecOf(row), row.task), "made") << row.name;
}

TEST(PolicyTable, EveryDefaultIsAccepted) {
  for (const PolicyRow& row : PolicyTable()) {
    for (const PolicyOption& option : row.options) {
      if (option.fallback.empty()) continue;
      const PolicySpec spec{.name = std::string(row.name),
                            .options = {{std::string(option.key), std::string(option.fallback)}}};
      EXPECT_TRUE(CheckPolicy(spec, row.task)) << spec.text();
    }
  }
}

TEST(PolicyTable, EveryRowIsDescribedInALine) {
  for (const PolicyRow& row : PolicyTable()) {
    EXPECT_EQ(FindPolicy(row.task, row.name), &row) << row.name << " stands twice";
    EXPECT_EQ(row.help.find('\n'), std::string_view::npos);
    EXPECT_FALSE(row.help.empty() || row.help.ends_with('.')) << row.name;
    for (const PolicyOption& option : row.options)
      EXPECT_FALSE(option.help.empty() || option.help.ends_with('.')) << option.key;
  }
}

TEST(PolicyTable, AMixHasAnOptionForEveryScore) {
  const PolicyRow* mixed = FindPolicy(TaskKind::kPlace, "mixed");
  ASSERT_EQ(mixed->options.size(), kPlacementScoreNames.size() + 1);
  for (size_t i = 0; i < kPlacementScoreNames.size(); ++i)
    EXPECT_EQ(mixed->options[i].key, kPlacementScoreNames[i]);
}

TEST(PolicyTable, HasEveryPlacementHeuristic) {
  for (const std::string_view name : PlacementHeuristics())
    EXPECT_NE(FindPolicy(TaskKind::kPlace, name), nullptr) << name;
}

TEST(Registry, PoliciesAreCalledAsTheyWereWritten) {
  const MigrationTask task{{}};
  for (std::string_view spec : {"greedy", "lookahead:evaluations=20000", "lookahead:time=10ms",
                                "lookahead:width=256", "lookahead:width=64,patience=2"}) {
    const auto policy = MakePolicy(spec, task);
    ASSERT_TRUE(policy) << policy.error().message;
    EXPECT_EQ((*policy)->name(), spec);
  }
}

TEST(Registry, AnUnknownNameIsRefusedWithTheNearest) {
  EXPECT_THAT(ErrorOf("lokahead"), HasSubstr("`lokahead`; did you mean `lookahead`?"));
  EXPECT_THAT(ErrorOf("kube-defualt"), HasSubstr("`kube-default`"));
  EXPECT_THAT(ErrorOf("xyz"), HasSubstr("the policies of the task move are stay, random"));
  EXPECT_THAT(ErrorOf("hpb:cpu=60", TaskKind::kScale), HasSubstr("`hpb`; did you mean `hpa`?"));
}

TEST(Registry, APolicyOfAnotherTaskIsRefused) {
  EXPECT_THAT(ErrorOf("hpa:cpu=60"), HasSubstr("policy `hpa` is not for the task move"));
  EXPECT_THAT(ErrorOf("exact", TaskKind::kPlace), HasSubstr("not for the task place"));
  EXPECT_THAT(ErrorOf("lookahead", TaskKind::kScale), HasSubstr("not for the task scale"));
}

TEST(Registry, OptionsAreRefusedWithWhatThereIs) {
  EXPECT_EQ(ErrorOf("lookahead:widht=5"),
            "policy `lookahead:widht=5`: unknown option `widht`; did you mean `width`? (there are "
            "width, patience, evaluations, time, directed, run)");
  EXPECT_EQ(ErrorOf("lookahead:width=0"),
            "policy `lookahead:width=0`: `width` is `0`, expected an integer from 1 to 1048576");
  EXPECT_THAT(ErrorOf("lookahead:width=1.5"), HasSubstr("expected an integer"));
  EXPECT_THAT(ErrorOf("lookahead:width=many"), HasSubstr("`many`"));
  EXPECT_THAT(ErrorOf("lookahead:time=10"), HasSubstr("expected a duration from 1us to 24h"));
  EXPECT_THAT(ErrorOf("lookahead:time=0ms"), HasSubstr("expected a duration"));
  EXPECT_THAT(ErrorOf("greedy:width=5"), HasSubstr("greedy takes no options"));
  EXPECT_THAT(ErrorOf("hpa:policies=fest", TaskKind::kScale),
              HasSubstr("expected default or fast or gentle; did you mean `fast`?"));
  EXPECT_THAT(ErrorOf("lookahead:depth=17", TaskKind::kPlace), HasSubstr("from 1 to 16"));
  EXPECT_THAT(ErrorOf("lookahead:depth=4"), HasSubstr("unknown option `depth`"));
  for (const char* value : {"inf", "nan", "1e300"})
    EXPECT_THAT(ErrorOf(fmt::format("mixed:greedy={}", value), TaskKind::kPlace),
                HasSubstr("expected a number from -1000000 to 1000000"));
}

TEST(Registry, JournalsCallALearnedPolicyByItsDigest) {
  EXPECT_EQ(NameOfPolicy("lookahead:width=64,patience=2").value(), "lookahead:width=64,patience=2");
  const std::string path = SourcePath("policies/continuum.safetensors");
  const std::string name = NameOfPolicy(path).value();
  EXPECT_THAT(name, ::testing::StartsWith(path + "@"));
  EXPECT_EQ(name.size(), path.size() + 1 + kDigestTold);
  EXPECT_EQ(NameOfPolicy("best-of:samples=16,run=" + path).value(),
            "best-of:samples=16,run=" + name);
  EXPECT_FALSE(NameOfPolicy("no/such/run"));
}

TEST(Registry, APathIsATrainedPolicy) {
  EXPECT_THAT(ErrorOf("no/such/run"), HasSubstr("no/such/run: no such checkpoint or run folder"));
  EXPECT_THAT(ErrorOf("missing.safetensors"), HasSubstr("no such checkpoint"));
  const std::string shipped = SourcePath("policies/continuum.safetensors");
  EXPECT_EQ(ErrorOf(shipped), "made");
  EXPECT_THAT(ErrorOf(shipped, TaskKind::kPlace), HasSubstr("trained for the task migration"));
  EXPECT_THAT(ErrorOf(shipped, TaskKind::kScale), HasSubstr("trained for the task migration"));
}

}  // namespace
}  // namespace rudderfish
