// SPDX-License-Identifier: Apache-2.0
#include "base/yaml_change.h"

#include <gtest/gtest.h>

namespace rudderfish {
namespace {

constexpr std::string_view kText =
    "name: a\nlatency: {near: 1ms, far: 30ms}\nservices:\n  - {cpu: 1}\n  - {cpu: 2}\nrest:\n";

Result<YamlNode> Changed(const std::string& path, const std::string& value) {
  return ChangeYaml(ParseYaml(kText, "f.yaml").value(), {path, value});
}

TEST(YamlChange, ReplacesTheValueAtAPathAndNothingElse) {
  YamlMap map = Changed("services[1].cpu", "7").value().AsMap().value();
  const std::vector<YamlNode> services = map.RequiredList("services").value();
  EXPECT_EQ(services[0].AsMap().value().RequiredInt("cpu", 0, 9).value(), 1);
  EXPECT_EQ(services[1].AsMap().value().RequiredInt("cpu", 0, 9).value(), 7);
  EXPECT_EQ(map.RequiredString("name").value(), "a");
}

TEST(YamlChange, LeavesTheDocumentItCameFromAsItWas) {
  const YamlNode root = ParseYaml(kText, "f.yaml").value();
  ASSERT_TRUE(ChangeYaml(root, {"name", "b"}).has_value());
  EXPECT_EQ(root.AsMap().value().RequiredString("name").value(), "a");
}

TEST(YamlChange, TakesWholeListsAndMaps) {
  YamlMap map = Changed("latency", "{near: [1, 2], new: {x: y}}").value().AsMap().value();
  YamlMap latency = map.RequiredMap("latency").value();
  EXPECT_EQ(latency.RequiredList("near").value().size(), 2u);
  EXPECT_EQ(latency.RequiredMap("new").value().RequiredString("x").value(), "y");
  EXPECT_FALSE(latency.Optional("far").has_value());
}

TEST(YamlChange, AddsAKeyToAMapAndToNothing) {
  YamlMap map = Changed("latency.other", "5ms").value().AsMap().value();
  EXPECT_EQ(map.RequiredMap("latency").value().RequiredString("other").value(), "5ms");
  map = Changed("rest.key", "5").value().AsMap().value();
  EXPECT_EQ(map.RequiredMap("rest").value().RequiredInt("key", 0, 9).value(), 5);
}

TEST(YamlChange, MessagesAboutTheNewValueNameThePlaceOfTheOld) {
  YamlMap map = Changed("services[1].cpu", "fast").value().AsMap().value();
  const YamlNode cpu =
      map.RequiredList("services").value()[1].AsMap().value().Required("cpu").value();
  EXPECT_EQ(cpu.AsInt().error().message,
            "f.yaml:5:11: `services[1].cpu`: expected an integer, found \"fast\"");
}

TEST(YamlChange, RefusesPathsThatAreNotThere) {
  EXPECT_EQ(Changed("latncy.near", "1").error().message,
            "f.yaml: `latncy.near`: there is no `latncy`; did you mean `latency`?");
  EXPECT_EQ(Changed("services[2].cpu", "1").error().message,
            "f.yaml: `services[2].cpu`: there is no element 2");
  EXPECT_EQ(Changed("name.first", "1").error().message,
            "f.yaml: `name.first`: there is nothing below which `first` could stand");
  for (const char* path : {"", ".", "a..b", "[", "[x]", "[]", "a[1", "a[1]b", "a."}) {
    const Result<YamlNode> changed = Changed(path, "1");
    ASSERT_FALSE(changed.has_value()) << path;
    EXPECT_NE(changed.error().message.find("is no path such as"), std::string::npos)
        << path << changed.error().message;
  }
}

TEST(YamlChange, RefusesValuesThatAreNoYaml) {
  EXPECT_NE(Changed("name", "[1, 2").error().message.find("name:1"), std::string::npos);
}

}  // namespace
}  // namespace rudderfish
