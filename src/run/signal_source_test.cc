// SPDX-License-Identifier: Apache-2.0
#include "run/signal_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"

namespace rudderfish {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::string_view kSignals = R"(prometheus: ["http://a:9090", "https://b"]
period: 5s
queries:
  buy_ms: {per: cluster, query: avg(buy_ms)}
  busy: {per: node, query: busy}
latency:
  buy_ms: {application: shop, endpoint: buy, window: 30s}
)";

Result<SignalsConfig> Parsed(std::string_view text) {
  return ParseSignals(ParseYaml(text, "r.yaml").value(), "/etc/rudderfish");
}

std::string Refusal(std::string_view what, std::string_view by) {
  std::string text(kSignals);
  const size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  const Result<SignalsConfig> config = Parsed(text.replace(at, what.size(), by));
  EXPECT_FALSE(config);
  return config ? "" : config.error().message;
}

TEST(SignalSource, ConfigurationHoldsWhatIsAskedAndWhatIsLatency) {
  const SignalsConfig config = Parsed(kSignals).value();
  EXPECT_THAT(config.urls, ElementsAre("http://a:9090", "https://b"));
  EXPECT_EQ(config.period, std::chrono::seconds(5));
  EXPECT_THAT(config.queries, SizeIs(2));
  ASSERT_THAT(config.latencies, SizeIs(1));
  EXPECT_EQ(config.latencies[0].signal, "buy_ms");
  EXPECT_EQ(config.latencies[0].application, "shop");
  EXPECT_EQ(config.latencies[0].endpoint, "buy");
  EXPECT_EQ(config.latencies[0].term, "latency_ms");
  EXPECT_EQ(config.latencies[0].window, std::chrono::seconds(30));
}

TEST(SignalSource, PresetsAddTheirQueries) {
  const auto config = Parsed("{prometheus: [\"http://a\"], presets: [nodes]}").value();
  EXPECT_FALSE(config.queries.empty());
}

TEST(SignalSource, NothingConfiguredAsksNobody) {
  SystemClock clock;
  SignalSource source(ParseSignals(YamlNode(), "").value(), &clock);
  source.Turn({});
  EXPECT_THAT(source.Readings("shop"), IsEmpty());
  EXPECT_THAT(source.Troubles(), IsEmpty());
}

TEST(SignalSource, WhatWasNeverMeasuredIsNoReading) {
  SystemClock clock;
  SignalSource source(Parsed(kSignals).value(), &clock);
  EXPECT_THAT(source.Readings("shop"), IsEmpty());
  EXPECT_THAT(source.Troubles(), SizeIs(2)) << "not asked yet";
}

TEST(SignalSource, FilesAreRelativeToTheConfiguration) {
  const auto config =
      Parsed(
          "{prometheus: [\"https://a\"], headers_file: door, bearer_token_file: /run/token, "
          "ca_file: ca.pem}")
          .value();
  EXPECT_EQ(config.header_files.headers, "/etc/rudderfish/door");
  EXPECT_EQ(config.header_files.bearer_token, "/run/token");
  EXPECT_EQ(config.ca_file, "/etc/rudderfish/ca.pem");
}

TEST(SignalSource, FilesThatAreNotThereOrHoldSomethingElseAreNamed) {
  const std::string folder = testing::TempDir();
  std::filesystem::remove(folder + "/no-ca.pem");
  SignalsConfig config{.urls = {"https://a"}, .ca_file = folder + "/no-ca.pem"};
  EXPECT_THAT(CheckFiles(config).error().message, HasSubstr("no-ca.pem: No such file"));
  ASSERT_TRUE(WriteFileAtomically(config.ca_file, "s3cret"));
  EXPECT_THAT(CheckFiles(config).error().message, HasSubstr("expected certificates in PEM"));
  config = {.urls = {"https://a"}, .header_files = {.headers = folder + "/no-ca.pem"}};
  EXPECT_THAT(CheckFiles(config).error().message, HasSubstr("no-ca.pem:1: expected `Name: value`"));
}

TEST(SignalSource, WhatIsTooOldHoldsDecisionsBackOnlyIfAsked) {
  SystemClock clock;
  EXPECT_EQ(SignalSource(Parsed(kSignals).value(), &clock).WhyTooOld("shop"), "");
  SignalSource source(Parsed(std::string(kSignals) + "staleness: 2min\n").value(), &clock);
  EXPECT_THAT(source.WhyTooOld("shop"), HasSubstr("buy_ms was not measured yet"));
  EXPECT_EQ(source.WhyTooOld("another"), "");
  ASSERT_THAT(source.Standings(), SizeIs(2));
  EXPECT_FALSE(source.Standings()[0].age_s.has_value());
}

TEST(SignalSource, MistakesAreNamedWithTheirPlace) {
  EXPECT_THAT(Refusal("latency:\n  buy_ms: {application: shop, endpoint: buy, window: 30s}",
                      "staleness: 1min"),
              HasSubstr("nothing to hold for"));
  EXPECT_THAT(Refusal("http://a:9090", "a:9090"), HasSubstr("http://prometheus:9090"));
  EXPECT_THAT(Refusal("  buy_ms: {application", "  by_ms: {application"),
              HasSubstr("no signal is called \"by_ms\""));
  EXPECT_THAT(Refusal("  buy_ms: {application", "  busy: {application"), HasSubstr("per: cluster"));
  EXPECT_THAT(Refusal("endpoint: buy", "term: joy"), HasSubstr("one of latency_ms"));
  EXPECT_THAT(Refusal("endpoint: buy", "endpoint: buy, term: network_ms"),
              HasSubstr("only latency_ms"));
  EXPECT_THAT(Refusal("period: 5s", "period: 0s"), HasSubstr("`period`"));
  EXPECT_THAT(Refusal("period:", "perriod:"), HasSubstr("did you mean"));
}

}  // namespace
}  // namespace rudderfish
