// SPDX-License-Identifier: Apache-2.0
#include "compat/drs.h"

#include <gtest/gtest.h>

#include <limits>

namespace rudderfish {
namespace {

TEST(Drs, StatesAreTheTextOfAPythonTuple) {
  EXPECT_EQ(DrsStateText({12.34, 56.78, 0.12, 0.34, 0, 1.58}),
            "(12.34, 56.78, 0.12, 0.34, 0.0, 1.58)");
  EXPECT_EQ(DrsStateText({100, 0.001, 1e6, 33.333333, 2.675, 1}),
            "(100.0, 0.0, 1000000.0, 33.33, 2.67, 1.0)");
}

TEST(Drs, StatesAreReadAsTheirClientReadsThem) {
  const auto state = ParseDrsState("(12.34, 56.78, 0.12, 0.34, 0.0, 1.58)");
  ASSERT_TRUE(state);
  EXPECT_EQ(*state, (DrsState{12.34, 56.78, 0.12, 0.34, 0, 1.58}));
  EXPECT_TRUE(ParseDrsState(" (1,2, 3 ,4,5,6)\n"));
  for (const char* bad : {"", "(", "()", "(1, 2, 3, 4, 5)", "(1, 2, 3, 4, 5, 6, 7)",
                          "(1, 2, 3, 4, 5, x)", "(1, 2, 3, 4, 5, nan)", "(1, 2, 3, 4, 5, inf)",
                          "(1, 2, 3, 4, 5, -1)", "1, 2, 3, 4, 5, 6", "(1, 2, 3, 4, 5, 6 7)"})
    EXPECT_FALSE(ParseDrsState(bad)) << bad;
}

TEST(Drs, FormsAreDecoded) {
  EXPECT_EQ(*FormField("podname=app-video-1", "podname"), "app-video-1");
  EXPECT_EQ(*FormField("a=1&podname=app%2Dnet+x&podname=b", "podname"), "app-net x");
  EXPECT_EQ(*FormField("podname=", "podname"), "");
  EXPECT_EQ(*FormField("podname", "podname"), "");
  for (const char* bad : {"", "name=x", "podname=%", "podname=%2", "podname=%zz"})
    EXPECT_FALSE(FormField(bad, "podname")) << bad;
}

}  // namespace
}  // namespace rudderfish
