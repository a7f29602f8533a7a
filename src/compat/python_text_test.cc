// SPDX-License-Identifier: Apache-2.0
#include "compat/python_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace rudderfish {
namespace {

TEST(PythonText, FloatsAreAsReprWritesThem) {
  const std::pair<double, const char*> cases[] = {{0, "0.0"},
                                                  {-0.0, "-0.0"},
                                                  {12.34, "12.34"},
                                                  {35, "35.0"},
                                                  {1e-5, "1e-05"},
                                                  {0.0001, "0.0001"},
                                                  {1e16, "1e+16"},
                                                  {1e15, "1000000000000000.0"},
                                                  {0.1 + 0.2, "0.30000000000000004"},
                                                  {1.5e300, "1.5e+300"}};
  for (const auto& [value, text] : cases) EXPECT_EQ(PythonFloat(value), text);
}

TEST(PythonText, CentsAreRoundedByTheExactValue) {
  EXPECT_DOUBLE_EQ(PythonRoundedToCents(2.675), 2.67);  // The double is below 2.675.
  EXPECT_DOUBLE_EQ(PythonRoundedToCents(1.005), 1.0);
  EXPECT_DOUBLE_EQ(PythonRoundedToCents(0.125), 0.12);  // A tie goes to the even digit.
  EXPECT_DOUBLE_EQ(PythonRoundedToCents(99.999), 100);
}

TEST(PythonText, JsonIsAsDumpsWritesIt) {
  const auto value = ParseOrderedJson(
      R"({"b":[1,2.5,true,null],"a":{"x":"é\n\u007f","y":{}},"n":-1,"f":35.0,"e":[]})", "test");
  ASSERT_TRUE(value);
  EXPECT_EQ(PythonJson(*value),
            R"({"b": [1, 2.5, true, null], "a": {"x": "\u00e9\n\u007f", "y": {}}, "n": -1, )"
            R"("f": 35.0, "e": []})");
}

}  // namespace
}  // namespace rudderfish
