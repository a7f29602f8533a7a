// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "evaluation/comparison.h"
#include "tests/support/small_evaluation.h"

namespace rudderfish {
namespace {

using ::testing::HasSubstr;

TEST(EvaluationReader, LatenciesAndWhatIsComparedOfThemAreReadBack) {
  const Evaluation evaluation =
      testing::MadeUpEvaluation({{"base", {{90, 80, 70, 60, 50, 40}}},
                                 {"two", {{50, 40, 30, 20, 10, 5}, {6, 5, 4, 3, 2, 1}}}});
  const std::string text = EvaluationJson(evaluation, Compare(evaluation));
  const Result<Json> json = ParseJson(text, "e.json");
  ASSERT_TRUE(json.has_value());
  const Result<Evaluation> read = EvaluationOf(*json, "e.json");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  for (int p = 0; p < 2; ++p)
    EXPECT_EQ(FinalLatencies(*read, p).values, FinalLatencies(evaluation, p).values);
  EXPECT_EQ(Compare(*read).verdict->paired.difference_ms,
            Compare(evaluation).verdict->paired.difference_ms);
}

TEST(EvaluationReader, WhatIsWrongIsNamedByItsPlace) {
  const Evaluation evaluation = testing::MadeUpEvaluation({{"a", {{9, 8}}}, {"b", {{7, 6}}}});
  Json json = *ParseJson(EvaluationJson(evaluation, Compare(evaluation)), "e.json");
  Json fewer = json, other = json, none = json;
  fewer["policies"][1]["episodes"].erase(1);
  EXPECT_THAT(EvaluationOf(fewer, "e.json").error().message,
              HasSubstr("e.json: policies[1].episodes: expected the starts of the first policy"));
  other["policies"][1]["episodes"][0]["start"] = 77;
  EXPECT_THAT(EvaluationOf(other, "e.json").error().message,
              HasSubstr("policies[1].episodes[0]: another start"));
  none.erase("policies");
  EXPECT_THAT(EvaluationOf(none, "e.json").error().message, HasSubstr("policies"));
}

}  // namespace
}  // namespace rudderfish
