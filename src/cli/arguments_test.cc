// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rudderfish {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Arguments With(const std::string& name, const std::string& value) {
  Arguments arguments;
  arguments.SetOption(name, value);
  return arguments;
}

TEST(Arguments, IntegersOutOfRangeAreRefusedWithTheRange) {
  EXPECT_EQ(With("n", "7").Integer("n", 1, 1, 10).value(), 7);
  EXPECT_EQ(Arguments().Integer("n", 3, 1, 10).value(), 3);
  EXPECT_EQ(With("threads", "0").Integer("threads", 1, 1, 10).error().message,
            "--threads: expected an integer from 1 to 10, found `0`");
  for (const char* text : {"", "x", "1x", "1.5", " 1", "99999999999999999999"}) {
    EXPECT_FALSE(With("n", text).Integer("n", 1, 1, 10)) << text;
  }
}

TEST(Arguments, DurationsNeedAUnitAndAreMoreThanZero) {
  EXPECT_DOUBLE_EQ(With("time", "90s").Seconds("time", 1).value(), 90);
  EXPECT_DOUBLE_EQ(With("time", "2min").Seconds("time", 1).value(), 120);
  EXPECT_FALSE(With("time", "90").Seconds("time", 1));
  EXPECT_FALSE(With("time", "0s").Seconds("time", 1));
  EXPECT_THAT(With("time", "5 parsecs").Seconds("time", 1).error().message, HasSubstr("--time"));
}

TEST(Arguments, ChoicesNameWhatIsAcceptedAndTheNearest) {
  constexpr std::string_view kAccepted[] = {"table", "json", "csv"};
  EXPECT_EQ(With("output", "csv").Choice("output", kAccepted, 0).value(), 2);
  EXPECT_EQ(With("output", "jsno").Choice("output", kAccepted, 0).error().message,
            "--output: expected table, json or csv, found `jsno`; did you mean `json`?");
}

TEST(Arguments, ListsAreSplitAtCommasAndHaveNoEmptyParts) {
  EXPECT_THAT(With("p", "a,b").List("p").value(), ElementsAre("a", "b"));
  for (const char* text : {"", ",", "a,", ",a", "a,,b"}) {
    EXPECT_FALSE(With("p", text).List("p")) << text;
  }
}

TEST(Arguments, ChangesAreSplitAtCommasOutsideOfListsMapsAndStrings) {
  const auto changes = [](const std::string& text) {
    std::vector<std::string> found;
    const std::vector<YamlChange> read = ChangesOf(With("set", text), "seed=2").value();
    for (const YamlChange& one : read) found.push_back(one.path + " is " + one.value);
    return found;
  };
  EXPECT_THAT(changes("seed=2"), ElementsAre("seed is 2"));
  EXPECT_THAT(changes("loads=[steady, ramp],train={steps: 8, seeds: 1},seed=2"),
              ElementsAre("loads is [steady, ramp]", "train is {steps: 8, seeds: 1}", "seed is 2"));
  EXPECT_THAT(changes("policies[2]=mixed:greedy=1,name=\"a, [b\",other='}'"),
              ElementsAre("policies[2] is mixed:greedy=1", "name is \"a, [b\"", "other is '}'"));
  EXPECT_TRUE(ChangesOf(Arguments(), "seed=2").value().empty());
  for (const char* text : {"", ",", "a=1,", ",a=1", "a", "=1", "a=[1,2", "a=1]", "a=]1[", "a=\"1"})
    EXPECT_FALSE(ChangesOf(With("set", text), "seed=2")) << text;
  EXPECT_EQ(ChangesOf(With("set", "loads=[steady,ramp"), "seed=2").error().message,
            "--set: brackets or quotes of `loads=[steady,ramp` do not match");
}

TEST(Arguments, MissingTextSaysWhatItIsFor) {
  EXPECT_THAT(Arguments().RequiredText("dir", "the folder of the run").error().message,
              HasSubstr("the folder of the run"));
  EXPECT_FALSE(With("dir", "").RequiredText("dir", "the folder"));
}

TEST(Arguments, OptionsThatExcludeEachOtherAreNamed) {
  Arguments both = With("time", "1s");
  EXPECT_TRUE(both.Exclude("time", "steps"));
  both.SetOption("steps", "5");
  EXPECT_EQ(both.Exclude("time", "steps").error().message,
            "--time and --steps exclude each other; leave one out");
}

}  // namespace
}  // namespace rudderfish
