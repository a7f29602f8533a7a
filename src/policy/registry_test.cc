// SPDX-License-Identifier: Apache-2.0
#include "policy/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/lookahead.h"
#include "task/migration.h"

namespace rudderfish {
namespace {

using ::testing::HasSubstr;

class Registry : public ::testing::Test {
 protected:
  std::string ErrorOf(std::string_view spec) {
    const auto policy = MakePolicy(spec, task_);
    return policy ? std::string("no error") : policy.error().message;
  }

  MigrationTask task_{{}};
};

TEST_F(Registry, MakesEveryPolicyByItsName) {
  for (std::string_view name : PolicyNames()) {
    const auto policy = MakePolicy(name, task_);
    ASSERT_TRUE(policy) << policy.error().message;
    EXPECT_EQ((*policy)->name(), name);
  }
}

TEST_F(Registry, TakesBudgetsOfTheSearch) {
  for (std::string_view spec : {"lookahead:evaluations=20000", "lookahead:time=10ms",
                                "lookahead:width=256", "lookahead:width=64,patience=2"}) {
    const auto policy = MakePolicy(spec, task_);
    ASSERT_TRUE(policy) << policy.error().message;
    EXPECT_EQ((*policy)->name(), spec);
  }
}

TEST_F(Registry, NamesTheNearestPolicy) {
  EXPECT_THAT(ErrorOf("lokahead"), HasSubstr("`lookahead`"));
  EXPECT_THAT(ErrorOf("kube-defualt"), HasSubstr("`kube-default`"));
  EXPECT_THAT(ErrorOf("xyz"), HasSubstr("there are stay, random"));
}

TEST_F(Registry, SaysWhatIsWrongWithAnOption) {
  EXPECT_THAT(ErrorOf("lookahead:widht=5"), HasSubstr("did you mean `width`"));
  EXPECT_THAT(ErrorOf("lookahead:width=0"), HasSubstr("from 1"));
  EXPECT_THAT(ErrorOf("lookahead:width=many"), HasSubstr("many"));
  EXPECT_THAT(ErrorOf("lookahead:time=10"), HasSubstr("10"));
  EXPECT_THAT(ErrorOf("lookahead:time=0ms"), HasSubstr("more than 0"));
  EXPECT_THAT(ErrorOf("lookahead:"), HasSubstr("width=256"));
  EXPECT_THAT(ErrorOf("greedy:width=5"), HasSubstr("no options"));
  EXPECT_THAT(ErrorOf("stay+runs/a"), HasSubstr("no options"));
  for (const char* spec : {"lookahead:time=1ms+runs/a", "lookahead:evaluations=9+runs/a"})
    EXPECT_THAT(ErrorOf(spec), HasSubstr("bounds look-ahead alone"));
}

TEST_F(Registry, ASearchWithALearnedPolicyNeedsOne) {
  EXPECT_THAT(ErrorOf("best-of"), HasSubstr("best-of:16+RUN"));
  EXPECT_THAT(ErrorOf("best-of:16"), HasSubstr("best-of:16+RUN"));
  EXPECT_THAT(ErrorOf("lookahead+"), HasSubstr("missing after `+`"));
  EXPECT_THAT(ErrorOf("lookahead+no/such/run"), HasSubstr("no/such/run"));
  EXPECT_THAT(ErrorOf("best-of:16+no/such/run"), HasSubstr("no/such/run"));
}

TEST_F(Registry, APathIsALearnedPolicy) {
  EXPECT_THAT(ErrorOf("no/such/run"), HasSubstr("no/such/run: no such checkpoint or run folder"));
  EXPECT_THAT(ErrorOf("missing.safetensors"), HasSubstr("no such checkpoint"));
}

}  // namespace
}  // namespace rudderfish
