// SPDX-License-Identifier: Apache-2.0
#include "policy/policy_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rudderfish {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

PolicySpec Spec(std::string_view text) {
  const Result<PolicySpec> spec = ParsePolicySpec(text);
  EXPECT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->text(), text);
  return *spec;
}

std::string RefusalOf(std::string_view list) {
  const auto policies = ParsePolicyList(list);
  return policies ? "none" : policies.error().message;
}

std::vector<std::string> NamesOf(std::string_view list) {
  const auto policies = ParsePolicyList(list);
  EXPECT_TRUE(policies) << policies.error().message;
  std::vector<std::string> names;
  for (const NamedPolicySpec& one : *policies)
    names.push_back(one.name == one.policy.text() ? one.name
                                                  : one.name + " is " + one.policy.text());
  return names;
}

TEST(PolicySpec, IsANameWithOptions) {
  EXPECT_EQ(Spec("greedy").name, "greedy");
  const PolicySpec hpa = Spec("hpa:cpu=60,down=120s");
  EXPECT_EQ(hpa.name, "hpa");
  EXPECT_THAT(hpa.options, ElementsAre(Pair("cpu", "60"), Pair("down", "120s")));
  EXPECT_EQ(hpa.path(), "");
}

TEST(PolicySpec, IsElseAPath) {
  for (const char* path : {"runs/a", "a.safetensors", "./greedy", "greedy/a", "hpb:cpu=60"}) {
    EXPECT_EQ(Spec(path).name, "");
    EXPECT_EQ(Spec(path).path(), path);
  }
}

TEST(PolicySpec, HasThePathOfItsRunReplaced) {
  PolicySpec best = Spec("best-of:run=runs/a,samples=4");
  EXPECT_EQ(best.path(), "runs/a");
  best.SetPath("runs/b");
  EXPECT_EQ(best.text(), "best-of:run=runs/b,samples=4");
  PolicySpec run = Spec("runs/a");
  run.SetPath("runs/b");
  EXPECT_EQ(run.text(), "runs/b");
}

TEST(PolicySpec, RefusesWhatIsNoOption) {
  for (const char* text : {"hpa:", "hpa:cpu", "hpa:cpu=", "hpa:=60", "hpa:cpu=60,", "hpa:,cpu=60"})
    EXPECT_THAT(ParsePolicySpec(text).error().message, HasSubstr("expected options")) << text;
  EXPECT_THAT(ParsePolicySpec("hpa:cpu=60,cpu=70").error().message, HasSubstr("given twice"));
  EXPECT_THAT(ParsePolicySpec("").error().message, HasSubstr("missing"));
}

TEST(PolicySpec, IsRelativeToAFolderWhereItIsAPath) {
  const auto within = [](std::string_view text) { return WithinFolder(Spec(text), "f").text(); };
  EXPECT_EQ(within("greedy"), "greedy");
  EXPECT_EQ(within("runs/a"), "f/runs/a");
  EXPECT_EQ(within("mixed:cost=1,run=a"), "mixed:cost=1,run=f/a");
  EXPECT_EQ(within("../runs/a"), "runs/a");
  EXPECT_EQ(within("gredy"), "gredy");  // A misspelt name is told by its own.
}

TEST(PolicyList, CommasPartPoliciesAndOptions) {
  EXPECT_THAT(NamesOf("stay,greedy,runs/a"), ElementsAre("stay", "greedy", "runs/a"));
  EXPECT_THAT(NamesOf("stay,lookahead:width=8,patience=2,fast=greedy"),
              ElementsAre("stay", "lookahead:width=8,patience=2", "fast is greedy"));
  EXPECT_THAT(NamesOf("x=hpa:cpu=60,down=120s,policies=fast,keda"),
              ElementsAre("x is hpa:cpu=60,down=120s,policies=fast", "keda"));
  EXPECT_THAT(NamesOf("lookahead:width=4,learned=./8,runs/9"),
              ElementsAre("lookahead:width=4", "learned is ./8", "runs/9"));
  EXPECT_THAT(NamesOf("greedy,mixed:greedy=1,most-allocated=0.1,most-allocated"),
              ElementsAre("greedy", "mixed:greedy=1,most-allocated=0.1", "most-allocated"));
}

// `patience` is an option of lookahead, but of none that is written without options.
TEST(PolicyList, APolicyWithoutOptionsTakesNoneLater) {
  EXPECT_THAT(NamesOf("lookahead,patience=greedy"), ElementsAre("lookahead", "patience is greedy"));
}

TEST(PolicyList, OptionsOfNoPolicyAreRefused) {
  for (const char* text : {"width=8", "greedy,width=8", "lookahead,width=8"})
    EXPECT_THAT(RefusalOf(text), HasSubstr("neither a policy nor an option of one")) << text;
  EXPECT_THAT(RefusalOf("x=lookahead:width=8,patence=3"),
              HasSubstr("unknown option `patence`; did you mean `patience`?"));
}

TEST(PolicyList, EmptyPartsAreRefused) {
  for (const char* text : {"", "stay,,greedy", "stay,", ",stay"})
    EXPECT_THAT(RefusalOf(text), HasSubstr("empty")) << text;
  EXPECT_THAT(RefusalOf("=runs/a"), HasSubstr("name is missing"));
  EXPECT_THAT(RefusalOf("learned="), HasSubstr("policy is missing"));
}

TEST(PolicyList, NamesThatAreEqualAreRefused) {
  EXPECT_THAT(RefusalOf("greedy,stay,greedy"), HasSubstr("`greedy` is named twice"));
  EXPECT_THAT(RefusalOf("a=greedy,a=stay"), HasSubstr("other=stay"));
}

}  // namespace
}  // namespace rudderfish
