// SPDX-License-Identifier: Apache-2.0
#include "compat/suggestions.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace rudderfish {
namespace {

using Arrival = SuggestionsServer::Arrival;

std::string Ask(SuggestionsServer* server, std::string_view request) {
  return server->Answer(request, Arrival::kComplete).value_or("no answer");
}

TEST(Suggestions, TheTranscriptIsThatOfTheOriginal) {
  SuggestionsServer server(nullptr);
  const std::pair<const char*, const char*> transcript[] = {
      {"getSuggestion\n", "{}"},
      {"getStep", "false"},
      {"getResourceValues\n",
       R"({"cpuRequest": "0", "memoryRequest": "0", "latencySoftConstraint": -1, )"
       R"("latencyHardConstraint": -1})"},
      {"setResourceValues {\"cpuRequest\":\"250m\",\"memoryRequest\":\"64Mi\",\"other\":1,"
       "\"latencySoftConstraint\":35,\"latencyHardConstraint\":100}\n",
       R"({"status": "success", "message": "Resource values set successfully."})"},
      {"getResourceValues\n",
       R"({"cpuRequest": "250m", "memoryRequest": "64Mi", "latencySoftConstraint": 35, )"
       R"("latencyHardConstraint": 100})"},
      {"getStep", "true"},
      {"setSuggestion {\"172.19.0.7\": 1, \"172.19.0.3\": 10, \"172.19.0.2\": 1}",
       R"({"status": "success", "message": "Suggestion set successfully."})"},
      {"getSuggestion now", R"({"172.19.0.7": 1, "172.19.0.3": 10, "172.19.0.2": 1})"},
      {"setSuggestion {\"172.19.0.3\": 1, \"172.19.0.9\": 10}",
       R"({"status": "success", "message": "Suggestion set successfully."})"},
      {"getSuggestion", R"({"172.19.0.7": 1, "172.19.0.3": 1, "172.19.0.2": 1, "172.19.0.9": 10})"},
      {"setStep false\n", R"({"status": "success", "message": "Step flag set successfully."})"},
      {"getStep", "false"},
      {"setStep\n", R"({"status": "error", "message": "Missing value for setStep command."})"},
      {"setSuggestion ",
       R"({"status": "error", "message": "Missing value for setSuggestion command."})"},
      {"setResourceValues",
       R"({"status": "error", "message": "Missing value for setResourceValues command."})"},
      {"setSuggestion {\"a\": ", R"({"status": "error", "message": "Invalid JSON data."})"},
      {"dance now", R"({"status": "error", "message": "Unknown command: dance"})"},
      {"d\xc3\xa9j\xc3\xa0",
       R"({"status": "error", "message": "Unknown command: d\u00e9j\u00e0"})"},
      {"", R"({"status": "error", "message": "Unknown command: "})"},
  };
  for (const auto& [request, reply] : transcript)
    EXPECT_EQ(Ask(&server, request), reply) << request;
}

TEST(Suggestions, RequestsAreWholeWhenTheyCanBeUnderstood) {
  SuggestionsServer server(nullptr);
  const auto more = [&](std::string_view text) {
    return server.Answer(text, Arrival::kMoreMayCome);
  };
  EXPECT_FALSE(more("get"));
  EXPECT_EQ(more("getStep"), "false");
  EXPECT_FALSE(more("setStep tr"));
  EXPECT_TRUE(more("setStep true"));
  EXPECT_FALSE(more("setSuggestion {\"a\": {}"));
  EXPECT_FALSE(more("setSuggestion {\"a\": 1"));
  EXPECT_TRUE(more("setSuggestion {\"a\": 1}"));
  EXPECT_TRUE(more("dance\n"));
}

TEST(Suggestions, LargeMapsGoBothWays) {
  SuggestionsServer server(nullptr);
  std::string map = "{";
  for (int i = 0; i < 5000; ++i)
    map += fmt::format("{}\"10.1.{}.{}\": {}", i == 0 ? "" : ", ", i / 250, i % 250, i % 10);
  map += "}";
  ASSERT_GT(map.size(), 64u << 10);
  ASSERT_LT(map.size(), SuggestionsServer::kRequestBytesMax);
  EXPECT_TRUE(Ask(&server, "setSuggestion " + map).starts_with(R"({"status": "success")"));
  EXPECT_EQ(Ask(&server, "getSuggestion"), map);
}

TEST(Suggestions, AnAdviserAnswersForThePodThatIsAsked) {
  SuggestedPod asked;
  bool knows = true;
  SuggestionsServer server([&](const SuggestedPod& pod) -> Result<Suggestion> {
    asked = pod;
    if (!knows) return Fail(ErrorCode::kUnavailable, "no node is free");
    return Suggestion{{"172.19.0.7", 1}, {"172.19.0.3", 10}};
  });
  Ask(&server, "setSuggestion {\"172.19.0.99\": 10}");
  Ask(&server,
      "setResourceValues {\"cpuRequest\":\"250m\",\"memoryRequest\":\"Not requested\","
      "\"latencySoftConstraint\":35.5,\"latencyHardConstraint\":0}");
  EXPECT_EQ(asked.cpu_millis, 250);
  EXPECT_EQ(asked.memory_bytes, 0);
  EXPECT_DOUBLE_EQ(asked.soft_ms, 35.5);
  EXPECT_DOUBLE_EQ(asked.hard_ms, 0);
  EXPECT_EQ(Ask(&server, "getStep"), "false");
  EXPECT_EQ(Ask(&server, "getSuggestion"), R"({"172.19.0.7": 1, "172.19.0.3": 10})");
  knows = false;
  EXPECT_TRUE(Ask(&server, "setResourceValues {}").starts_with(R"({"status": "success")"));
  EXPECT_EQ(Ask(&server, "getSuggestion"), "{}");
  EXPECT_EQ(server.last_trouble(), "no node is free");
}

TEST(Suggestions, QuantitiesThatKubernetesHasNotAreNoPod) {
  EXPECT_FALSE(SuggestedPodOf({{"cpuRequest", "many"},
                               {"memoryRequest", "0"},
                               {"latencySoftConstraint", -1},
                               {"latencyHardConstraint", -1}}));
  EXPECT_FALSE(SuggestedPodOf({{"cpuRequest", "1"},
                               {"memoryRequest", "0"},
                               {"latencySoftConstraint", "35"},
                               {"latencyHardConstraint", -1}}));
}

}  // namespace
}  // namespace rudderfish
