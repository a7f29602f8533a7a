// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/yaml.h"

namespace rudderfish {
namespace {

Arguments WithOutput(const std::string& value) {
  Arguments arguments;
  arguments.SetOption("output", value);
  return arguments;
}

TEST(Output, FormatsAreThoseThatACommandAccepts) {
  using enum OutputFormat;
  EXPECT_EQ(OutputFormatOf(Arguments()).value(), kTable);
  EXPECT_EQ(OutputFormatOf(WithOutput("csv"), {kTable, kJson, kCsv}).value(), kCsv);
  EXPECT_EQ(OutputFormatOf(WithOutput("name"), {kTable, kWide, kJson, kYaml, kName}).value(),
            kName);
  EXPECT_EQ(OutputFormatOf(WithOutput("jsno")).error().message,
            "--output: expected table or json, found `jsno`; did you mean `json`?");
}

TEST(Output, YamlSaysTheSameAsJson) {
  EXPECT_EQ(
      YamlOfJson(R"({"b":1,"a":{"list":[{"x":"word","z":[]},{"on":"off"},[1,2],"s"],"none":null},)"
                 R"("text":"a: b","number":"12","empty":{},"line":"a\nb"})")
          .value(),
      "b: 1\n"
      "a:\n"
      "  list:\n"
      "    - x: word\n"
      "      z: []\n"
      "    - \"on\": \"off\"\n"
      "    - \n"
      "      - 1\n"
      "      - 2\n"
      "    - s\n"
      "  none: null\n"
      "text: \"a: b\"\n"
      "number: \"12\"\n"
      "empty: {}\n"
      "line: \"a\\nb\"\n");
  EXPECT_EQ(YamlOfJson("[]").value(), "[]\n");
}

TEST(Output, YamlIsReadAgain) {
  const std::string text =
      YamlOfJson(R"({"a":[{"b":{"c":["d","e"]}},{"f":-1.5}],"g":true})").value();
  const auto root = ParseYaml(text, "text");
  ASSERT_TRUE(root.has_value()) << root.error().message << text;
  YamlMap map = root->AsMap().value();
  const std::vector<YamlNode> list = map.RequiredList("a").value();
  ASSERT_EQ(list.size(), 2u) << text;
  EXPECT_EQ(list[0].AsMap()->RequiredMap("b")->RequiredList("c")->size(), 2u);
  EXPECT_TRUE(map.RequiredBool("g").value());
}

}  // namespace
}  // namespace rudderfish
