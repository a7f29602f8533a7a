// SPDX-License-Identifier: Apache-2.0
#include "scenario/yaml_values.h"

#include <gtest/gtest.h>

#include "base/check.h"

namespace rudderfish {
namespace {

Result<Distribution> Read(std::string_view text, QuantityParser parse) {
  const Result<YamlNode> node = ParseYaml(text, "v.yaml");
  CHECK(node.has_value());
  return DistributionOf(*node, parse);
}

TEST(YamlValues, RangeAndChoiceAndConstantAreToldApart) {
  EXPECT_EQ(*Read("2s", ParseLatencyMs), Distribution::Constant(2000));
  EXPECT_EQ(*Read("1ms to 2s", ParseLatencyMs), Distribution::Uniform(1, 2000));
  EXPECT_EQ(*Read("\"1ms  to  2s\"", ParseLatencyMs), Distribution::Uniform(1, 2000));
  EXPECT_EQ(*Read("[1ms, 2s]", ParseLatencyMs), Distribution::Choice({1, 2000}));
  EXPECT_EQ(*Read("[3, 1, 2]", ParseReplicas), Distribution::Choice({3, 1, 2}));
}

TEST(YamlValues, HalfARangeIsRefused) {
  for (const char* text :
       {"\" to 2s\"", "\"1ms to \"", "1ms to 2s to 3s", "1ms to", "[1ms to 2ms]"}) {
    EXPECT_FALSE(Read(text, ParseLatencyMs).has_value()) << text;
  }
}

TEST(YamlValues, BoundsAreKept) {
  EXPECT_EQ(*ParseReplicas("65535"), 65535);
  EXPECT_FALSE(ParseReplicas("65536").has_value());
  EXPECT_FALSE(ParseReplicas("0").has_value());
  EXPECT_EQ(*ParseFraction("1"), 1);
  EXPECT_FALSE(ParseFraction("1.0001").has_value());
  EXPECT_FALSE(ParseFraction("-0.1").has_value());
  EXPECT_FALSE(ParseFraction("nan").has_value());
  EXPECT_EQ(*ParseMemory("1024Ti"), 1125899906842624.0);
  EXPECT_FALSE(ParseMemory("1025Ti").has_value());
  EXPECT_EQ(*ParseCores("1M"), 1e9);
  EXPECT_FALSE(ParseCores("2M").has_value());
  EXPECT_FALSE(ParseLatencyMs("2000000s").has_value());
}

TEST(YamlValues, PayloadIsReadToTheBit) {
  EXPECT_EQ(*ParsePayloadMbytes("0.1MB"), 0.1);
  EXPECT_EQ(*ParsePayloadMbytes("204.06519558676027MB"), 204.06519558676027);
  EXPECT_EQ(*ParsePayloadMbytes("100kB"), 0.1);
  EXPECT_EQ(*ParsePayloadMbytes("1KiB"), 0.001024);
  EXPECT_FALSE(ParsePayloadMbytes("1Mbit").has_value());
  EXPECT_FALSE(ParsePayloadMbytes("2000000TB").has_value());
}

TEST(YamlValues, NameIsPrintableAndNotTooLong) {
  EXPECT_TRUE(IsName("tb-cloud-vm-8"));
  EXPECT_TRUE(IsName(std::string(200, 'x')));
  EXPECT_FALSE(IsName(std::string(201, 'x')));
  EXPECT_FALSE(IsName(""));
  EXPECT_FALSE(IsName("a\nb"));
}

}  // namespace
}  // namespace rudderfish
