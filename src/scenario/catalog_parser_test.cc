// SPDX-License-Identifier: Apache-2.0
#include "scenario/catalog_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenario/yaml_values.h"

namespace rudderfish {
namespace {

using ::testing::HasSubstr;

YamlNode Parsed(std::string_view text) { return ParseYaml(text, "c.yaml").value(); }

Result<Distribution> Fixed(const YamlNode& node) { return DistributionOf(node, ParseLatencyMs); }

TEST(CatalogParser, LayersComeInTheirOrder) {
  NameIndex names("layer");
  const auto layers = ParseLayers(Parsed("{b: , a: {accepts_moves: false}}"), &names).value();
  ASSERT_EQ(layers.size(), 2u);
  EXPECT_EQ(layers[0].name, "b");
  EXPECT_TRUE(layers[0].accepts_moves);
  EXPECT_FALSE(layers[1].accepts_moves);
  EXPECT_EQ(names.Find("a"), 1);
}

TEST(CatalogParser, LatencyIsDirectionalAndWholeOrRefused) {
  NameIndex names("layer");
  const auto layers = ParseLayers(Parsed("{a: , b: }"), &names).value();
  const auto ms =
      ParseLatencies(Parsed("{a: {a: 1ms, b: 2ms}, b: {a: 3ms, b: 4ms}}"), layers, names, Fixed)
          .value();
  EXPECT_EQ(ms[1].values()[0], 2);
  EXPECT_EQ(ms[2].values()[0], 3);
  const auto refused =
      ParseLatencies(Parsed("{a: {a: 1ms, b: 2ms}, b: {a: 3ms}}"), layers, names, Fixed);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("missing key `b`: the latency from b to b"));
}

TEST(CatalogParser, KindLeavesOtherKeysToTheCaller) {
  NameIndex names("layer");
  ASSERT_TRUE(ParseLayers(Parsed("{a: }"), &names));
  YamlMap fields = Parsed("{layer: a, cpu_type: 0, bandwidth: 1Gbit, price: 3}").AsMap().value();
  const NodeKind kind = ParseNodeKind("k", &fields, names).value();
  EXPECT_EQ(kind.bandwidth_mbytes_per_s, 125);
  EXPECT_FALSE(fields.Finish()) << "price was not asked for";
  EXPECT_TRUE(fields.Optional("price").has_value());
  EXPECT_TRUE(fields.Finish());
  YamlMap none = Parsed("{layer: a, cpu_type: 0, bandwidth: 0Mbit}").AsMap().value();
  EXPECT_FALSE(ParseNodeKind("k", &none, names));
}

}  // namespace
}  // namespace rudderfish
