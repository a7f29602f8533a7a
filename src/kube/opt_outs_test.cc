// SPDX-License-Identifier: Apache-2.0
#include "kube/opt_outs.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/kube_json.h"

namespace rudderfish::kube {
namespace {

using testing::ParsedJson;

std::vector<OptOut> OptOutsOf(const std::string& key, const std::string& value) {
  const ParsedJson json(R"({"metadata":{"annotations":{")" + key + R"(":")" + value + R"("}}})");
  return ReadOptOuts(Fields(json.root())).value();
}

TEST(OptOuts, OnlyAPlainConsentIsNone) {
  EXPECT_TRUE(OptOutsOf("rudderfish.io/do-not-move", "false").empty());
  EXPECT_TRUE(OptOutsOf("karpenter.sh/do-not-disrupt", "false").empty());
  EXPECT_TRUE(OptOutsOf("cluster-autoscaler.kubernetes.io/safe-to-evict", "true").empty());
  EXPECT_TRUE(OptOutsOf("example.com/unknown", "true").empty());
  for (const char* value : {"true", "True", "yes", "", "flase", "30 minutes", "-5m", "1e3s", "m"}) {
    for (const char* key : {"rudderfish.io/do-not-move", "karpenter.sh/do-not-disrupt"}) {
      const auto found = OptOutsOf(key, value);
      ASSERT_EQ(found.size(), 1u) << key << " " << value;
      EXPECT_TRUE(found[0].HoldsAt(1, 1'000'000'000)) << key << " " << value;
    }
  }
  EXPECT_EQ(OptOutsOf("cluster-autoscaler.kubernetes.io/safe-to-evict", "maybe").size(), 1u);
  EXPECT_EQ(OptOutsOf("descheduler.alpha.kubernetes.io/request-evict-only", "false").size(), 1u);
  EXPECT_EQ(OptOutsOf("karpenter.sh/do-not-disrupt", "30m")[0].why,
            "is annotated karpenter.sh/do-not-disrupt=30m");
}

TEST(OptOuts, ADurationHoldsFromTheStartOfThePod) {
  struct Case {
    const char* text;
    int64_t seconds;
  };
  for (const Case& one : {Case{"30m", 1800},
                          {"1h30m", 5400},
                          {"1.5h", 5400},
                          {"90s", 90},
                          {"1500ms", 2},
                          {"0s", 0}}) {
    const auto found = OptOutsOf("karpenter.sh/do-not-disrupt", one.text);
    ASSERT_EQ(found.size(), 1u) << one.text;
    EXPECT_EQ(found[0].for_s, one.seconds) << one.text;
    EXPECT_EQ(found[0].HoldsAt(1000, 1000 + one.seconds - 1), true) << one.text;
    EXPECT_FALSE(found[0].HoldsAt(1000, 1000 + one.seconds)) << one.text;
    EXPECT_TRUE(found[0].HoldsAt(0, 1'000'000'000)) << "it has not started";
  }
}

}  // namespace
}  // namespace rudderfish::kube
