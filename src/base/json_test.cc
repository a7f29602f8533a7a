// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>

namespace rudderfish {
namespace {

std::string ErrorOf(std::string_view text) {
  const auto result = ParseJson(text, "a.json");
  return result ? "no error" : result.error().message;
}

TEST(ParseJson, ReadsEveryKindOfValue) {
  const auto result = ParseJson(R"({"b": [1, -2, 2.5, "x\n", true, null], "a": {}})", "a.json");
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->dump(), R"({"a":{},"b":[1,-2,2.5,"x\n",true,null]})");
  EXPECT_EQ(ParseJson("3", "a.json").value(), 3);
}

TEST(ParseJson, OrderedKeepsTheOrderOfTheFile) {
  const std::string text = R"({"z":1,"a":{"y":[{"k":2}],"b":3},"m":4})";
  EXPECT_EQ(ParseOrderedJson(text, "a.json")->dump(), text);
}

TEST(ParseJson, ErrorsHaveLineAndColumn) {
  EXPECT_EQ(ErrorOf("{\n  \"a\": 1,\n  \"b\" 2\n}").substr(0, 13), "a.json:3:7: s");
  EXPECT_EQ(ErrorOf("{\"a\": nan}").substr(0, 12), "a.json:1:8: ");
  EXPECT_EQ(ErrorOf("[1, 2").substr(0, 12), "a.json:1:6: ");
  EXPECT_EQ(ErrorOf("[1] 2").substr(0, 12), "a.json:1:5: ");
  EXPECT_NE(ErrorOf("[1e999]").find("number overflow"), std::string::npos) << ErrorOf("[1e999]");
}

TEST(ParseJson, EmptyTextIsCalledEmpty) {
  EXPECT_EQ(ErrorOf(""), "a.json: is empty; expected JSON");
  EXPECT_EQ(ErrorOf(" \n"), "a.json: is empty; expected JSON");
}

TEST(ParseJson, RefusesAKeyGivenTwice) {
  EXPECT_EQ(ErrorOf("{\"a\": 1,\n \"bc\": 2, \"bc\": 3}"),
            "a.json:2:11: the key \"bc\" is given twice");
  EXPECT_EQ(ErrorOf(R"({"a": {"b": 1}, "c": {"b": 1}})"), "no error");
  EXPECT_FALSE(ParseOrderedJson(R"([{"a": 1, "a": 1}])", "a.json"));
}

TEST(ParseJson, RefusesDeepNesting) {
  EXPECT_EQ(ErrorOf(std::string(256, '[') + std::string(256, ']')), "no error");
  EXPECT_EQ(ErrorOf(std::string(257, '[') + std::string(257, ']')),
            "a.json:1:257: nested more than 256 deep");
  EXPECT_EQ(ErrorOf(std::string(5000000, '[')), "a.json:1:257: nested more than 256 deep");
}

TEST(ParseJson, RefusesInvalidUtf8) { EXPECT_NE(ErrorOf("[\"\xff\"]"), "no error"); }

RC_GTEST_PROP(ParseJson, AnyTextIsReadOrRefused, (const std::string& text)) {
  const auto result = ParseJson(text, "a.json");
  RC_ASSERT(result.has_value() == Json::accept(text) || !result);
}

RC_GTEST_PROP(ParseJson, ReadsWhatWasDumped, (const std::map<std::string, std::vector<int>>& map)) {
  Json json = Json::object();
  int key = 0;
  for (const auto& [name, list] : map) json["k" + std::to_string(++key)] = list;
  RC_ASSERT(ParseJson(json.dump(), "a.json").value() == json);
}

class JsonReaderTest : public testing::Test {
 protected:
  OrderedJson json_ =
      ParseOrderedJson(
          R"({"edge": {"vm-2": {"count": "x", "cpu": 1.5, "on": true, "none": null}},
                              "list": [10, 20.0, 9223372036854775808], "name": "n"})",
          "nodes.json")
          .value();
  OrderedJsonReader root_{json_, "nodes.json"};
};

TEST_F(JsonReaderTest, MessagesCarryTheWay) {
  const auto vm = root_.At("edge")->At("vm-2").value();
  EXPECT_EQ(vm.At("count")->AsInt(0, 100).error().message,
            "nodes.json: edge.vm-2.count: expected an integer from 0 to 100, found \"x\"");
  EXPECT_EQ(vm.At("pods").error().message, "nodes.json: edge.vm-2: missing key \"pods\"");
  EXPECT_EQ(vm.AsString().error().message,
            "nodes.json: edge.vm-2: expected a string, found an object");
  EXPECT_EQ(root_.Elements().error().message, "nodes.json: expected an array, found an object");
  EXPECT_EQ(root_.At("list")->Elements()->at(1).AsInt(0, 5).error().message,
            "nodes.json: list[1]: expected an integer from 0 to 5, found 20.0");
}

TEST_F(JsonReaderTest, ReadsTypedValues) {
  const auto vm = root_.At("edge")->At("vm-2").value();
  EXPECT_EQ(vm.At("cpu")->AsDouble().value(), 1.5);
  EXPECT_TRUE(vm.At("on")->AsBool().value());
  EXPECT_EQ(root_.At("name")->AsString().value(), "n");
  const auto list = root_.At("list")->Elements().value();
  EXPECT_EQ(list[0].AsInt().value(), 10);
  EXPECT_EQ(list[1].AsInt().value(), 20);
  EXPECT_FALSE(list[2].AsInt());  // 2^63.
  EXPECT_EQ(list[2].AsDouble().value(), 0x1p63);
  EXPECT_FALSE(vm.At("cpu")->AsInt());
  EXPECT_FALSE(vm.At("cpu")->AsDouble(2, 3));
  EXPECT_TRUE(vm.IsObject() && root_.At("list")->IsArray() && root_.At("name")->IsString());
}

TEST_F(JsonReaderTest, FindTreatsNullAsAbsent) {
  const auto vm = root_.At("edge")->At("vm-2").value();
  EXPECT_TRUE(vm.Find("cpu")->has_value());
  EXPECT_FALSE(vm.Find("none")->has_value());
  EXPECT_FALSE(vm.Find("other")->has_value());
  EXPECT_FALSE(root_.At("name")->Find("x"));
}

TEST_F(JsonReaderTest, MembersComeInTheOrderOfTheFile) {
  const auto members = root_.Members().value();
  ASSERT_EQ(members.size(), 3U);
  EXPECT_EQ(members[1].first, "list");
  EXPECT_EQ(members[1].second.path(), "list");
}

TEST_F(JsonReaderTest, UnknownKeyIsRefusedWithTheNearest) {
  EXPECT_TRUE(root_.CheckKeys({"edge", "list", "name"}));
  EXPECT_EQ(root_.CheckKeys({"edges", "list", "name"}).error().message,
            "nodes.json: unknown key \"edge\"; did you mean `edges`?");
}

}  // namespace
}  // namespace rudderfish
