// SPDX-License-Identifier: Apache-2.0
#include "scenario/name_index.h"

#include <gtest/gtest.h>

namespace rudderfish {
namespace {

NameIndex Greek() {
  NameIndex index("letter");
  for (const char* name : {"alpha", "beta", "gamma"}) index.Add(name);
  return index;
}

TEST(NameIndex, PositionsAreInTheOrderOfAdding) {
  const NameIndex index = Greek();
  EXPECT_EQ(index.Find("alpha"), 0);
  EXPECT_EQ(index.Find("gamma"), 2);
  EXPECT_EQ(index.Find("delta"), kNone);
  EXPECT_EQ(index.size(), 3);
}

TEST(NameIndex, NameThatIsTakenIsNotAddedAgain) {
  NameIndex index = Greek();
  EXPECT_FALSE(index.Add("beta"));
  EXPECT_EQ(index.size(), 3);
}

TEST(NameIndex, UnknownNameIsAnsweredWithTheNearestOrWithAllOfAFew) {
  NameIndex index = Greek();
  EXPECT_EQ(index.Unknown("bata"), "no letter is called \"bata\"; did you mean `beta`?");
  EXPECT_EQ(index.Unknown("omicron"),
            "no letter is called \"omicron\"; there are alpha, beta, gamma");
  for (char c = 'a'; c <= 'z'; ++c) index.Add(std::string(1, c));
  EXPECT_EQ(index.Unknown("omicron"), "no letter is called \"omicron\"");
  EXPECT_EQ(NameIndex("letter").Unknown("x"), "no letter is called \"x\"");
}

TEST(NameIndex, HugeNameIsCutShort) {
  EXPECT_EQ(
      Greek().Unknown(std::string(100'000, 'a')),
      "no letter is called \"" + std::string(60, 'a') + "...\"; there are alpha, beta, gamma");
}

}  // namespace
}  // namespace rudderfish
