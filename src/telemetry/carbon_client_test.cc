// SPDX-License-Identifier: Apache-2.0
#include "telemetry/carbon_client.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <mutex>

#include "base/check.h"
#include "base/files.h"
#include "base/wall_time.h"
#include "net/http_server.h"
#include "tests/support/test_folder.h"

namespace rudderfish {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr CarbonService kMaps = CarbonService::kElectricityMaps;
constexpr CarbonService kSdk = CarbonService::kCarbonAwareSdk;

std::string Refusal(CarbonService service, std::string_view body, const CarbonZone& zone) {
  const auto read = ReadCarbonAnswer(service, body, zone);
  return read ? fmt::format("{}", read->g_per_kwh) : read.error().message;
}

TEST(CarbonAnswer, ThatOfElectricityMapsIsRead) {
  const auto read =
      ReadCarbonAnswer(kMaps,
                       R"({"zone":"DE","carbonIntensity":322,"datetime":"2026-11-27T04:00:00.000Z",
          "updatedAt":"2026-11-27T03:45:00.000Z","emissionFactorType":"lifecycle",
          "isEstimated":true,"estimationMethod":"TIME_SLICER_AVERAGE"})",
                       {"eu", "DE", ""});
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->g_per_kwh, 322);
  EXPECT_EQ(read->unix_seconds, 1795752000);
}

TEST(CarbonAnswer, OfTheSdkTheNewestCounts) {
  const char* body = R"([
    {"location":"PJM","time":"2026-11-27T03:00:00+00:00","rating":400.5,"duration":"01:00:00"},
    {"location":"PJM","time":"2026-11-27T04:00:00+00:00","rating":410,"duration":"01:00:00"}])";
  const auto read = ReadCarbonAnswer(kSdk, body, {"us", "eastus", "PJM"});
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->g_per_kwh, 410);
  EXPECT_THAT(Refusal(kSdk, body, {"us", "eastus", ""}),
              HasSubstr("the answer is of `PJM`, not of `eastus`"));
}

TEST(CarbonAnswer, AnotherZoneAndWhatIsNoNumberAreRefused) {
  const CarbonZone zone{"eu", "DE", ""};
  const auto refused = [&](std::string_view body) { return Refusal(kMaps, body, zone); };
  EXPECT_THAT(refused(R"({"zone":"FR","carbonIntensity":30,"datetime":"2026-11-27T04:00:00Z"})"),
              HasSubstr("the answer is of `FR`, not of `DE`"));
  EXPECT_THAT(refused(R"({"zone":"DE","carbonIntensity":null,"datetime":"2026-11-27T04:00:00Z"})"),
              HasSubstr("carbonIntensity"));
  EXPECT_THAT(refused(R"({"zone":"DE","carbonIntensity":-3,"datetime":"2026-11-27T04:00:00Z"})"),
              HasSubstr("expected"));
  EXPECT_THAT(refused(R"({"zone":"DE","carbonIntensity":3,"datetime":"today"})"),
              HasSubstr("`today` is no date"));
  EXPECT_THAT(refused("<html>"), HasSubstr("its answer:1:1"));
  EXPECT_THAT(Refusal(kSdk, "[]", zone), HasSubstr("it lists no value"));
  EXPECT_THAT(Refusal(kSdk, "{}", zone), HasSubstr("expected"));
}

class CarbonClientTest : public ::testing::Test {
 protected:
  CarbonClientTest() {
    HttpRoutes routes;
    routes.Add("GET", "/v3/carbon-intensity/latest", [this](const HttpRequest& request) {
      const std::lock_guard lock(mutex_);
      queries_.emplace_back(request.query);
      const bool is_german = request.query.find("zone=DE&") != std::string_view::npos;
      return HttpResponse{
          .status = status_,
          .body = fmt::format(R"({{"zone":"{}","carbonIntensity":{},"datetime":"{}"}})",
                              is_german ? "DE" : "FR", is_german ? 322 : 30,
                              Rfc3339(UnixNow() - 600'000))};
    });
    auto server = HttpServer::Start({.listen = {"127.0.0.1:0"}}, std::move(routes));
    CHECK(server.has_value());
    server_ = *std::move(server);
    config_ = {.url = "http://" + server_->addresses()[0] + "/v3/",
               .zones = {{"eu", "DE", ""}, {"fr", "FR", ""}, {"mars", "MARS", ""}}};
  }

  // Until a round has ended.
  void Round(CarbonClient* client) {
    client->Turn();
    for (int i = 0; i < 2000; ++i) {
      if (client->Poll() && !client->column().trouble.empty()) return;
      const timespec pause{.tv_sec = 0, .tv_nsec = 2'000'000};
      ::nanosleep(&pause, nullptr);
    }
  }

  std::mutex mutex_;
  std::vector<std::string> queries_;
  int status_ = 200;
  SystemClock clock_;
  CarbonConfig config_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(CarbonClientTest, EachRegionHasTheValueOfItsZoneAndItsAge) {
  CarbonClient client(config_, &clock_);
  Round(&client);
  const SignalColumn& column = client.column();
  ASSERT_EQ(column.values.size(), 2u);
  EXPECT_EQ(column.values.at("eu").value, 322);
  EXPECT_EQ(column.values.at("fr").value, 30);
  EXPECT_NEAR(Seconds(clock_.Now() - column.values.at("eu").at), 600, 5);
  EXPECT_THAT(column.trouble, HasSubstr("mars: its answer: zone: the answer is of `FR`"));
  EXPECT_THAT(queries_[0], HasSubstr("shouldUseFallbackCallerLookup=false"));
  client.Turn();  // Not before the period is over.
  EXPECT_FALSE(client.Poll());
  EXPECT_EQ(queries_.size(), 3u);
}

TEST_F(CarbonClientTest, WhatIsWrongIsToldAndTheLastValueStays) {
  config_.period = Duration(1);
  CarbonClient client(config_, &clock_);
  Round(&client);
  {
    const std::lock_guard lock(mutex_);
    status_ = 401;
  }
  Round(&client);
  for (int i = 0; i < 1000 && client.column().trouble.find("401") == std::string::npos; ++i)
    Round(&client);
  EXPECT_THAT(client.column().trouble, HasSubstr("status 401"));
  EXPECT_EQ(client.column().values.at("eu").value, 322);
}

TEST_F(CarbonClientTest, ATokenThatCannotBeReadIsToldAndNotShown) {
  const testing::TestFolder folder;
  config_.token_file = folder / "token";
  ASSERT_TRUE(WriteFileAtomically(config_.token_file, "two secret words\n").has_value());
  CarbonClient client(config_, &clock_);
  client.Turn();
  EXPECT_TRUE(client.Poll());
  EXPECT_THAT(client.column().trouble, HasSubstr("expected one token and nothing else"));
  EXPECT_EQ(client.column().trouble.find("secret"), std::string::npos);
  EXPECT_TRUE(queries_.empty());
}

}  // namespace
}  // namespace rudderfish
