// SPDX-License-Identifier: Apache-2.0
#include "base/yaml_writer.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>

namespace rudderfish {
namespace {

TEST(YamlWriter, TextIsReadBackLineByLine) {
  YamlWriter out;
  out.BeginMap("data");
  out.Text("calls", "node a: b\n\ncall # 1\n");
  out.Field("last", 1);
  out.End();
  YamlMap map = ParseYaml(out.Take(), "text.yaml").value().AsMap().value();
  YamlMap data = map.RequiredMap("data").value();
  EXPECT_EQ(data.RequiredString("calls").value(), "node a: b\n\ncall # 1\n");
  EXPECT_EQ(data.RequiredInt("last", 0, 9).value(), 1);
}

TEST(YamlWriter, WritesAsACarefulPersonWould) {
  YamlWriter out;
  out.Comment("Seven nodes.\n\nThree layers.");
  out.Field("name", "continuum-7x21");
  out.Field("seed", 7);
  out.BlankLine();
  out.FlowList("layers", {"cloud", "edge", 3, 0.5, true});
  out.BeginMap("latency");
  out.Field("model", "physical");
  out.FlowMap("rtt", {{"cloud", "46ms"}, {"edge", 2}});
  out.End();
  out.BeginList("services");
  out.Comment("The first.");
  out.BeginItem();
  out.Field("name", "front");
  out.BeginMap("room");
  out.Field("cpu", "700m");
  out.End();
  out.End();
  out.FlowItem({{"name", "back"}});
  out.Item("plain");
  out.End();
  EXPECT_EQ(out.Take(), R"(# Seven nodes.
#
# Three layers.
name: continuum-7x21
seed: 7

layers: [cloud, edge, 3, 0.5, true]
latency:
  model: physical
  rtt: {cloud: 46ms, edge: 2}
services:
  # The first.
  - name: front
    room:
      cpu: 700m
  - {name: back}
  - plain
)");
}

TEST(YamlWriter, WritesEmptyBlocksAsSuch) {
  YamlWriter out;
  out.BeginMap("map");
  out.End();
  out.BeginList("list");
  out.End();
  out.BeginList("items");
  out.BeginItem();
  out.End();
  out.End();
  out.FlowList("flow", {});
  EXPECT_EQ(out.Take(), "map: {}\nlist: []\nitems:\n  - {}\nflow: []\n");
}

TEST(YamlWriter, BreaksLongFlowListsAtAHundredColumns) {
  YamlWriter out;
  std::vector<YamlScalar> numbers;
  for (int i = 0; i < 60; ++i) numbers.emplace_back(1000 + i);
  out.BeginMap("a");
  out.FlowList("numbers", numbers);
  out.End();
  const std::string text = out.Take();
  for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    EXPECT_LE(text.find('\n', at) - at, 100U);
  }
  const auto root = ParseYaml(text, "s.yaml").value();
  const auto list = root.AsMap()->RequiredMap("a")->RequiredList("numbers").value();
  ASSERT_EQ(list.size(), 60U);
  EXPECT_EQ(list[59].AsInt().value(), 1059);
}

std::string WrittenIn(std::string_view flow, const std::string& text) {
  YamlWriter out;
  if (flow == "flow") {
    out.FlowList("key", {YamlScalar(text)});
  } else {
    out.Field("key", text);
  }
  return out.Take();
}

TEST(YamlScalar, QuotesOnlyWhatWouldBeReadAsSomethingElse) {
  for (const char* plain :
       {"front", "700m", "46ms", "a b", "a:b", "x#y", "tb-edge-vm-2", "62.5MB"}) {
    EXPECT_EQ(WrittenIn("block", plain), std::string("key: ") + plain + "\n");
  }
  for (const char* quoted :
       {"",    "7",  "1e3", "true", "No", "null", "~",          "a: b", "a #b", "- a",
        "x,y", "[a", "*a",  " a",   "a ", "0x1f", "2024-01-01", "1:30", ".5",   "a:"}) {
    EXPECT_EQ(WrittenIn("block", quoted), std::string("key: \"") + quoted + "\"\n");
  }
}

RC_GTEST_PROP(YamlScalar, AnyStringReadsBack, ()) {
  const auto text = *rc::gen::container<std::string>(
      rc::gen::elementOf(std::string("abntuyes01.:-?[]{},\"'#&*!|>%@`<=~ \n\t\\\x01\x7f")));
  for (const char* style : {"block", "flow"}) {
    const auto root = ParseYaml(WrittenIn(style, text), "s.yaml");
    RC_ASSERT(root.has_value());
    YamlNode node = root->AsMap()->Required("key").value();
    if (node.IsList()) node = node.AsList()->at(0);
    RC_ASSERT(node.AsString().value() == text);
    RC_ASSERT(!node.AsInt());
  }
}

RC_GTEST_PROP(YamlScalar, NumbersReadBackToTheBit, (uint64_t bits, int64_t integer)) {
  const double number = std::bit_cast<double>(bits);
  RC_PRE(std::isfinite(number));
  YamlWriter out;
  out.Field("d", number);
  out.Field("i", integer);
  YamlMap map = ParseYaml(out.Take(), "s.yaml")->AsMap().value();
  RC_ASSERT(std::bit_cast<uint64_t>(map.Required("d")->AsDouble().value()) == bits);
  RC_ASSERT(map.Required("i")->AsInt().value() == integer);
}

TEST(YamlWriter, CopiesAPartThatWasRead) {
  const std::string text = R"(kind: move
stop: true
weights: {latency: 1, "odd, key": "7"}
rows: [[1, 2], [3]]
presets:
  - name: full
    items: [a, "b, c"]
  - plain, words
  - {}
none:
empty: []
)";
  YamlWriter out;
  out.Field("name", "world");
  out.Node("task", ParseYaml(text, "s.yaml").value());
  EXPECT_EQ(out.Take(), R"(name: world
task:
  kind: move
  stop: true
  weights:
    latency: 1
    "odd, key": "7"
  rows: [[1, 2], [3]]
  presets:
    - name: full
      items: [a, "b, c"]
    - "plain, words"
    - {}
  none: null
  empty: []
)");
}

TEST(YamlWriterDeathTest, RefusesAFieldInAListAndABlockLeftOpen) {
  EXPECT_DEATH(
      {
        YamlWriter out;
        out.BeginList("l");
        out.Field("a", 1);
      },
      "CHECK failed");
  EXPECT_DEATH(
      {
        YamlWriter out;
        out.BeginMap("m");
        out.Take();
      },
      "CHECK failed");
}

}  // namespace
}  // namespace rudderfish
