// SPDX-License-Identifier: Apache-2.0
#include "telemetry/carbon_config.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rudderfish {
namespace {

using ::testing::HasSubstr;

Result<CarbonConfig> ParseCarbon(std::string_view text) {
  TRY_ASSIGN(const YamlNode node, ParseYaml(text, "x.yaml"));
  return ParseCarbonConfig(node, "/etc/r");
}

TEST(CarbonConfig, AllOfItIsRead) {
  const auto config = ParseCarbon(
      "service: carbon-aware-sdk\nurl: http://carbon:8080\nperiod: 10min\ntoken_file: token\n"
      "zones: {eu: westeurope, us: {zone: eastus, answer: PJM}}");
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->service, CarbonService::kCarbonAwareSdk);
  EXPECT_EQ(config->url, "http://carbon:8080");
  EXPECT_EQ(config->period, std::chrono::minutes(10));
  EXPECT_EQ(config->token_file, "/etc/r/token");
  ASSERT_EQ(config->zones.size(), 2u);
  EXPECT_EQ(config->zones[0].zone, "westeurope");
  EXPECT_EQ(config->zones[1].region, "us");
  EXPECT_EQ(config->zones[1].answer, "PJM");
}

TEST(CarbonConfig, WhatIsWrongNamesThePlace) {
  const std::string begin = "service: electricity-maps\nurl: https://x/v3\n";
  const auto message = [](const std::string& text) {
    const auto config = ParseCarbon(text);
    return config ? std::string() : config.error().message;
  };
  EXPECT_EQ(message(begin + "zones: {eu: DE}"), "");
  EXPECT_THAT(message(begin), HasSubstr("zones"));
  EXPECT_THAT(message(begin + "zones: {}"), HasSubstr("a zone of the service for each region"));
  EXPECT_THAT(message(begin + "zones: {eu: ''}"), HasSubstr("a name of 1 to 200 letters"));
  EXPECT_THAT(message(begin + "zones: {eu: {answer: DE}}"), HasSubstr("zone"));
  EXPECT_THAT(message(begin + "period: 1ms\nzones: {eu: DE}"), HasSubstr("from 1s to 24h"));
  EXPECT_THAT(message(begin + "key: 1\nzones: {eu: DE}"), HasSubstr("key"));
  EXPECT_THAT(message("service: watts\nurl: http://x\nzones: {eu: DE}"),
              HasSubstr("one of electricity-maps, carbon-aware-sdk"));
  const std::string secret = message("service: electricity-maps\nurl: 'http://a:b@x'\nzones: {}");
  EXPECT_THAT(secret, HasSubstr("without user and password"));
  EXPECT_EQ(secret.find("a:b"), std::string::npos);
  EXPECT_THAT(message("service: electricity-maps\nurl: 'http://x?a=b'\nzones: {eu: DE}"),
              HasSubstr("an address without a query"));
}

}  // namespace
}  // namespace rudderfish
