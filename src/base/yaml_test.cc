// SPDX-License-Identifier: Apache-2.0
#include "base/yaml.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/yaml_tree.h"

namespace rudderfish {
namespace {

std::string ErrorOf(std::string_view text) {
  const auto result = ParseYaml(text, "s.yaml");
  return result ? "no error" : result.error().message;
}

YamlMap MapOf(std::string_view text) { return ParseYaml(text, "s.yaml")->AsMap().value(); }

constexpr std::string_view kScenario = R"(# A small world.
name: small
seed: 7
load: 0.5
fast: true
nothing:
services:
  - name: front
    cpu: 700m
    calls: [back, "7"]
  - {name: back, cpu: fast}
task:
  kind: move
)";

TEST(YamlMap, ReadsTypedFields) {
  YamlMap map = MapOf(kScenario);
  EXPECT_EQ(map.RequiredString("name").value(), "small");
  EXPECT_EQ(map.RequiredInt("seed", 0, 10).value(), 7);
  EXPECT_EQ(map.RequiredDouble("load", 0, 1).value(), 0.5);
  EXPECT_TRUE(map.RequiredBool("fast").value());
  EXPECT_FALSE(map.Optional("nothing").has_value());
  const auto services = map.RequiredList("services").value();
  ASSERT_EQ(services.size(), 2U);
  YamlMap front = services[0].AsMap().value();
  EXPECT_EQ(front.RequiredString("cpu").value(), "700m");
  EXPECT_EQ(front.RequiredList("calls")->at(1).AsString().value(), "7");
  EXPECT_TRUE(map.RequiredMap("task"));
  EXPECT_TRUE(map.Finish());
}

TEST(YamlMap, OptionalFieldsFallBackOnlyWhenAbsent) {
  YamlMap map = MapOf("a: 1\nb: x\n");
  EXPECT_EQ(map.OptionalInt("a", 0, 5, 3).value(), 1);
  EXPECT_EQ(map.OptionalInt("c", 0, 5, 3).value(), 3);
  EXPECT_FALSE(map.OptionalInt("b", 0, 5, 3));
  EXPECT_EQ(map.OptionalString("d", "e").value(), "e");
  EXPECT_EQ(map.OptionalDouble("d", 0, 1, 0.25).value(), 0.25);
  EXPECT_TRUE(map.OptionalBool("d", true).value());
  EXPECT_TRUE(map.OptionalList("d")->empty());
}

TEST(YamlMap, WrongValueNamesPlaceKeyAndExpectation) {
  YamlMap map = MapOf(kScenario);
  YamlMap back = map.RequiredList("services")->at(1).AsMap().value();
  EXPECT_EQ(back.RequiredDouble("cpu", 0, 64).error().message,
            "s.yaml:11:23: `services[1].cpu`: expected a number from 0 to 64, found \"fast\"");
  EXPECT_EQ(map.RequiredInt("seed", 10, 20).error().message,
            "s.yaml:3:7: `seed`: expected an integer from 10 to 20, found \"7\"");
  EXPECT_EQ(map.RequiredString("services").error().message,
            "s.yaml:8:3: `services`: expected a string, found a list");
}

TEST(YamlNode, TextThatIsNoYamlIsSaidToBeNone) {
  EXPECT_EQ(ErrorOf("a: 1\nb: c: d\n").substr(0, 32), "s.yaml:2:5: cannot be read as YA");
  EXPECT_EQ(ErrorOf("a:\n  b: 1\n\tc: 2\n"), "s.yaml:3:1: YAML is indented by spaces, found a tab");
}

TEST(YamlMap, UnknownKeyIsRefusedWithTheNearest) {
  YamlMap map = MapOf("name: x\nwrokloads: 3\n");
  ASSERT_TRUE(map.RequiredString("name"));
  EXPECT_FALSE(map.Optional("workloads").has_value());
  EXPECT_EQ(map.Finish().error().message,
            "s.yaml:2:1: unknown key `wrokloads`; did you mean `workloads`?");
}

TEST(YamlMap, UnknownKeyLikeNoneIsRefusedWithAll) {
  YamlMap map = MapOf("a:\n  zzz: 3\n").RequiredMap("a").value();
  EXPECT_FALSE(map.Optional("cpu").has_value());
  EXPECT_FALSE(map.Optional("memory").has_value());
  EXPECT_EQ(map.Finish().error().message,
            "s.yaml:2:3: `a`: unknown key `zzz`; known here: cpu, memory");
}

TEST(YamlMap, MissingKeyPointsAtAMisspeltOne) {
  YamlMap map = MapOf("name: x\nserviecs: []\n");
  EXPECT_EQ(map.Required("services").error().message,
            "s.yaml:2:1: missing key `services`; is `serviecs` meant to be that?");
  EXPECT_EQ(map.Required("seed").error().message, "s.yaml:1:1: missing key `seed`");
}

TEST(YamlMap, EntriesAreInTheOrderOfTheFileAndAllKnown) {
  YamlMap map = MapOf("z: 1\na: 2\n");
  const auto entries = map.Entries();
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].first, "z");
  EXPECT_EQ(entries[1].second.AsInt().value(), 2);
  EXPECT_TRUE(map.Finish());
}

TEST(YamlNode, KeepsItsDocumentAlive) {
  YamlNode task;
  {
    YamlMap map = MapOf(kScenario);
    task = map.Required("task").value();
  }
  EXPECT_EQ(task.Location(), "s.yaml:13:3");
  EXPECT_EQ(task.AsMap()->RequiredString("kind").value(), "move");
}

TEST(YamlNode, FromNowhereIsNull) {
  const YamlNode node;
  EXPECT_TRUE(node.IsNull());
  EXPECT_FALSE(node.IsMap() || node.IsList() || node.IsScalar());
  EXPECT_EQ(node.AsString().error().message, "(nowhere): expected a string, found nothing");
}

TEST(YamlNode, NumbersAreDecimalAndFinite) {
  for (const char* text : {"0x10", "1_000", "nan", ".nan", "inf", ".inf", "1e999", "1:30", "1.5.2",
                           "'7'", "--1", "+-1", "+", "99999999999999999999"}) {
    const auto list = ParseYaml(std::string("[") + text + "]", "s.yaml")->AsList().value();
    EXPECT_FALSE(list.at(0).AsInt()) << text;
  }
  for (const char* text : {"nan", ".nan", "inf", "-inf", ".inf", "1e999", "'7.5'", "1.5x"}) {
    const auto list = ParseYaml(std::string("[") + text + "]", "s.yaml")->AsList().value();
    EXPECT_FALSE(list.at(0).AsDouble()) << text;
  }
  EXPECT_EQ(ParseYaml("+5", "s.yaml")->AsInt().value(), 5);
  EXPECT_EQ(ParseYaml("-5", "s.yaml")->AsInt().value(), -5);
  EXPECT_EQ(ParseYaml("1e3", "s.yaml")->AsDouble().value(), 1000);
}

TEST(YamlNode, BoolIsTrueOrFalseUnquoted) {
  EXPECT_FALSE(ParseYaml("false", "s.yaml")->AsBool().value());
  for (const char* text : {"yes", "1", "'true'", "TRUE"}) {
    EXPECT_FALSE(ParseYaml(text, "s.yaml")->AsBool()) << text;
  }
}

TEST(ParseYaml, RefusesWhatIsNoSingleDocument) {
  EXPECT_EQ(ErrorOf(""), "s.yaml: is empty; expected YAML");
  EXPECT_EQ(ErrorOf("# only a comment\n"), "s.yaml: is empty; expected YAML");
  EXPECT_EQ(ErrorOf("a: 1\n---\nb: 2\n"), "s.yaml:3:1: a second document; expected one");
  EXPECT_EQ(ErrorOf("---\na: 1\n...\n"), "no error");
}

TEST(ParseYaml, RefusesAKeyGivenTwice) {
  EXPECT_EQ(ErrorOf("a: 1\nb:\n  c: 1\n  d: 2\n  c: 3\n"), "s.yaml:5:3: `c` is given twice");
}

TEST(ParseYaml, RefusesAliasesAnchorsAndTags) {
  EXPECT_EQ(ErrorOf("a: &x 1\nb: *x\n"), "s.yaml:1:4: anchors (&name) are not supported");
  EXPECT_NE(ErrorOf("a: *x\n"), "no error");
  EXPECT_EQ(ErrorOf("a: !!int 1\n"),
            "s.yaml:1:4: tags are not supported, found `tag:yaml.org,2002:int`");
  EXPECT_NE(ErrorOf("a: !python/object {}\n"), "no error");
}

TEST(ParseYaml, RefusesKeysThatAreNoWords) {
  EXPECT_EQ(ErrorOf("? [a]\n: 1\n"),
            "s.yaml:1:3: a key must be a plain word, found a list or a map");
  EXPECT_NE(ErrorOf(": 1\n"), "no error");
}

TEST(ParseYaml, RefusesDeepNesting) {
  EXPECT_EQ(ErrorOf(std::string(100, '[') + std::string(100, ']')), "no error");
  EXPECT_EQ(ErrorOf(std::string(101, '[') + std::string(101, ']')),
            "s.yaml:1:101: nested more than 100 deep");
  EXPECT_NE(ErrorOf(std::string(100000, '[')), "no error");
  EXPECT_NE(ErrorOf(std::string(100000, '{')), "no error");
  std::string dashes;
  for (int i = 0; i < 5000; ++i) dashes += "- ";
  EXPECT_NE(ErrorOf(dashes), "no error");
}

TEST(ParseYaml, SyntaxErrorsHaveLineAndColumn) {
  EXPECT_EQ(ErrorOf("a: 1\nb: [1, 2\n").substr(0, 7), "s.yaml:");
  EXPECT_EQ(ErrorOf("a: 1\n  b: 2\n").substr(0, 9), "s.yaml:2:");
  EXPECT_NE(ErrorOf(std::string("a: \0", 4)), "no error");
}

TEST(YamlNode, MessagesAreOneLineWhateverKeysAndValuesHold) {
  const YamlNode root = ParseYaml("\"two\\nlines\": \"a\\nb\"", "s.yaml").value();
  YamlMap map = root.AsMap().value();
  const YamlNode value = map.Entries()[0].second;
  EXPECT_EQ(value.Expected("a number").value().message,
            "s.yaml:1:15: `two lines`: expected a number, found \"a b\"");
  EXPECT_EQ(value.Refuse("no\nway").value().message, "s.yaml:1:15: `two lines`: no way");
}

RC_GTEST_PROP(ParseYaml, AnyTextIsReadOrRefused, ()) {
  const auto text = *rc::gen::container<std::string>(
      rc::gen::elementOf(std::string("ab1.:-?[]{},\"'#&*!|>%@ \n\n  \t\\")));
  const auto result = ParseYaml(text, "s.yaml");
  RC_ASSERT(result || result.error().message.starts_with("s.yaml:"));
}

}  // namespace
}  // namespace rudderfish
