// SPDX-License-Identifier: Apache-2.0
#include "telemetry/span_reader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

namespace rudderfish {
namespace {

constexpr std::string_view kJaeger = R"({"data": [{"traceID": "00af", "spans": [
  {"traceID": "00af", "spanID": "1", "operationName": "GET /", "references": [],
   "startTime": 1000000, "duration": 20, "processID": "p1",
   "tags": [{"key": "span.kind", "type": "string", "value": "server"}]},
  {"traceID": "00af", "spanID": "2", "operationName": "call", "startTime": 1000005,
   "duration": 10, "processID": "p1",
   "references": [{"refType": "CHILD_OF", "traceID": "af", "spanID": "0000000000000001"}],
   "tags": [{"key": "span.kind", "value": "client"}, {"key": "peer.service", "value": "db"},
            {"key": "http.request_content_length", "type": "int64", "value": 512}]},
  {"traceID": "00af", "spanID": "3", "startTime": 1000005, "duration": -4, "processID": "p1"},
  {"traceID": "00af", "spanID": "xyz", "startTime": 1000005, "duration": 4, "processID": "p1"},
  {"traceID": "00af", "spanID": "4", "startTime": 1000005, "duration": 4, "processID": "none"},
  {"traceID": "00af", "spanID": "5", "startTime": "soon", "duration": 4, "processID": "p1"}, 17],
 "processes": {"p1": {"serviceName": "web", "tags": [
   {"key": "k8s.pod.name", "value": "web-1"}, {"key": "hostname", "value": "other"},
   {"key": "k8s.node.name", "value": "n1"}]}}}], "errors": null})";

std::string OtlpLine(std::string_view span) {
  return fmt::format(R"({{"resourceSpans":[{{"resource":{{"attributes":[)"
                     R"({{"key":"service.name","value":{{"stringValue":"web"}}}},)"
                     R"({{"key":"host.name","value":{{"stringValue":"n2"}}}}]}},)"
                     R"("scopeSpans":[{{"spans":[{}]}}]}}]}})",
                     span);
}

const std::string kOtlpSpan =
    R"({"traceId":"000000000000000000000000000000af","spanId":"0000000000000002",)"
    R"("parentSpanId":"0000000000000001","name":"op","kind":3,)"
    R"("startTimeUnixNano":"1790000000000000005","endTimeUnixNano":"1790000000000000105",)"
    R"("attributes":[{"key":"http.request.body.size","value":{"intValue":"77"}}]})";

std::string ErrorOf(std::string_view text) {
  SpanSet set;
  const Result<void> read = ReadSpans(text, "t.json", &set);
  return read ? "" : read.error().message;
}

TEST(SpanReader, ReadsWhatJaegerAnswers) {
  SpanSet set;
  ASSERT_TRUE(ReadSpans(kJaeger, "t.json", &set));
  ASSERT_EQ(set.spans.size(), 2u);
  const Span &server = set.spans[0], &client = set.spans[1];
  EXPECT_EQ(server.role, SpanRole::kServer);
  EXPECT_EQ(server.start_ns, 1'000'000'000);
  EXPECT_EQ(set.words[server.name], "GET /");
  EXPECT_EQ(client.role, SpanRole::kClient);
  EXPECT_EQ(client.parent_id, 1u);
  EXPECT_EQ(client.trace, (TraceId{0, 0xaf}));
  EXPECT_EQ(client.request_bytes, 512);
  EXPECT_EQ(set.words[client.peer], "db");
  EXPECT_EQ(set.sources[client.source],
            (SpanSource{.service = "web", .pod = "web-1", .node = "n1"}));
  EXPECT_EQ(set.left_out.at("it ends before it starts"), 1);
  EXPECT_EQ(set.left_out.at("an id of the wrong length, or no hexadecimal number"), 2);
  EXPECT_EQ(set.left_out.at("its service is not given"), 1);
  EXPECT_EQ(set.left_out.at("it has no time"), 1);
}

TEST(SpanReader, ReadsLinesOfOtlp) {
  SpanSet set;
  const std::string text = OtlpLine(kOtlpSpan) + "\n\n" + OtlpLine(kOtlpSpan) + "\n{\"resour";
  ASSERT_TRUE(ReadSpans(text, "t.jsonl", &set));
  ASSERT_EQ(set.spans.size(), 2u);
  EXPECT_EQ(set.spans[0].duration_ns, 100);
  EXPECT_EQ(set.spans[0].role, SpanRole::kClient);
  EXPECT_EQ(set.spans[0].request_bytes, 77);
  EXPECT_EQ(set.sources[0].node, "n2");
  EXPECT_EQ(set.left_out.at("a line that holds no traces"), 1);
  SpanSet whole;
  ASSERT_TRUE(ReadSpans("{\"result\": " + OtlpLine(kOtlpSpan) + "}", "t.json", &whole));
  EXPECT_EQ(whole.spans.size(), 1u);
}

TEST(SpanReader, LeavesOutIdsThatAreNotOfOtlp) {
  for (const char* wrong : {"\"0000000000000002\"", "\"000000000000000000000000000000af\""}) {
    std::string span = kOtlpSpan;
    span.replace(span.find(wrong), std::string_view(wrong).size(), "\"af\"");
    SpanSet set;
    ASSERT_TRUE(ReadSpans(OtlpLine(span), "t.json", &set));
    EXPECT_TRUE(set.spans.empty());
    EXPECT_EQ(set.left_out.size(), 1u);
  }
}

TEST(SpanReader, SaysWhereATextIsNoTrace) {
  EXPECT_EQ(ErrorOf(" \n"), "t.json: is empty; expected traces as JSON");
  EXPECT_EQ(ErrorOf("{\"kind\": \"List\"}"),
            "t.json:1:1: holds no traces: expected Jaeger's {\"data\": [...]} or OTLP's "
            "{\"resourceSpans\": [...]}");
  EXPECT_TRUE(ErrorOf("{\n \"data\": [}").starts_with("t.json:2:11: "))
      << ErrorOf("{\n \"data\": [}");
  EXPECT_TRUE(ErrorOf("{}\n{}\n").starts_with("t.json:1:1: holds no traces"));
  EXPECT_EQ(ErrorOf(R"({"data": null, "errors": [{"code": 500, "msg": "no\nstorage"}]})"),
            "t.json: Jaeger answered with an error: no storage");
  EXPECT_EQ(ErrorOf(R"({"data": []})"), "");
}

TEST(SpanReader, PassesOverWhatIsNestedWithoutEnd) {
  const std::string deep(100'000, '[');
  EXPECT_NE(ErrorOf("{\"data\": " + deep), "");
  const std::string closed = "{\"data\": [], \"more\": " + deep + std::string(100'000, ']') + "}";
  EXPECT_EQ(ErrorOf(closed), "");
}

}  // namespace
}  // namespace rudderfish
