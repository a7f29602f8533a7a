// SPDX-License-Identifier: Apache-2.0
#include "telemetry/signal_query.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rudderfish {
namespace {

using ::testing::HasSubstr;

Result<std::vector<SignalQuery>> Parse(std::string_view text) {
  TRY_ASSIGN(const YamlNode node, ParseYaml(text, "signals.yaml"));
  return ParseSignalQueries(node);
}

SignalEntities Entities() {
  return {.nodes = {{"n.1", "10.0.0.1"}, {"n\"2", "10.0.0.2"}},
          .workloads = {{"shop", "demo"}, {"cart", "demo"}},
          .edges = {{"shop", "cart"}, {"cart", "shop"}}};
}

TEST(SignalQuery, OneQueryForAllIsSentOnce) {
  const auto queries =
      Parse(R"(x: {per: node, query: 'a{node=~"{{nodes}}",ns=~"{{namespaces}}"}'})");
  ASSERT_TRUE(queries.has_value()) << queries.error().message;
  const auto expanded = ExpandQuery((*queries)[0], Entities());
  ASSERT_EQ(expanded.size(), 1u);
  EXPECT_TRUE(expanded[0].is_batched);
  EXPECT_EQ(expanded[0].text, R"(a{node=~"n\"2|n\\.1",ns=~"demo"})");
}

TEST(SignalQuery, QueryOfOneIsSentForEach) {
  const auto queries = Parse("x: {per: edge, query: 'a{from=\"{{from}}\",to=\"{{to}}\"}'}");
  ASSERT_TRUE(queries.has_value()) << queries.error().message;
  const auto expanded = ExpandQuery((*queries)[0], Entities());
  ASSERT_EQ(expanded.size(), 2u);
  EXPECT_EQ(expanded[1].text, R"(a{from="cart",to="shop"})");
  EXPECT_EQ(expanded[1].entity, "cart->shop");
  EXPECT_FALSE(expanded[1].is_batched);
  const auto nodes = Parse("x: {per: node, query: 'a{n=\"{{node}}\"}'}");
  EXPECT_EQ(ExpandQuery((*nodes)[0], Entities())[1].text, R"(a{n="n\"2"})");
}

TEST(SignalQuery, HasDefaultsForWhatIsNotSaid) {
  const auto queries =
      Parse("a: {query: up}\nb: {per: edge, query: up, range: 2min, reduce: mean}");
  ASSERT_TRUE(queries.has_value()) << queries.error().message;
  EXPECT_EQ((*queries)[0].scope, SignalScope::kCluster);
  EXPECT_EQ((*queries)[0].duplicates, SignalDuplicates::kRefuse);
  EXPECT_EQ((*queries)[1].labels,
            (std::vector<std::string>{"source_workload", "destination_workload"}));
  EXPECT_EQ((*queries)[1].range, std::chrono::minutes(2));
  EXPECT_EQ((*queries)[1].step, std::chrono::seconds(6));
}

TEST(SignalQuery, RefusesWhatMeansNothing) {
  const std::pair<const char*, const char*> cases[] = {
      {"x: {per: node}", "query"},
      {"x: {per: nodes, query: up}", "`x.per`: expected one of cluster, node"},
      {"x: {per: node, query: 'a{{workload}}'}", "unknown placeholder {{workload}}"},
      {"x: {per: node, query: 'a{{nod}}'}", "did you mean"},
      {"x: {per: node, query: up, labels: [a, b]}", "one label"},
      {"x: {per: edge, query: up, label: a}", "labels: [FROM, TO]"},
      {"x: {per: cluster, query: up, label: a}", "no label"},
      {"x: {query: up, step: 5s}", "without range"},
      {"x: {query: up, range: 1h, step: 1ms}", "11000 steps"},
      {"x: {query: up, range: soon}", "a duration such as 30s"},
      {"x: {query: up, duplicates: first}", "refuse, sum, mean, max"},
      {"x: {query: up, every: 5s}", "every"}};
  for (const auto& [text, says] : cases) {
    const auto queries = Parse(text);
    ASSERT_FALSE(queries.has_value()) << text;
    EXPECT_THAT(queries.error().message, HasSubstr(says));
  }
}

TEST(SignalQuery, PresetsAreQueriesForAllAtOnce) {
  for (std::string_view name : SignalPresetNames()) {
    const auto queries = SignalPreset(name);
    ASSERT_TRUE(queries.has_value()) << queries.error().message;
    EXPECT_FALSE(queries->empty());
    for (const SignalQuery& query : *queries) {
      const auto expanded = ExpandQuery(query, Entities());
      ASSERT_EQ(expanded.size(), 1u) << query.name;
      EXPECT_EQ(expanded[0].text.find("{{"), std::string::npos) << query.name;
    }
  }
  EXPECT_THAT(SignalPreset("nodez").error().message, HasSubstr("nodes"));
}

}  // namespace
}  // namespace rudderfish
