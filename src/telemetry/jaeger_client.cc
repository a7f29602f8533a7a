// SPDX-License-Identifier: Apache-2.0
#include "telemetry/jaeger_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/escape.h"
#include "base/json.h"
#include "net/http_client.h"
#include "telemetry/span_reader.h"

namespace rudderfish {
namespace {

constexpr std::chrono::milliseconds kBetweenLooksAtStop(100);

Result<std::string> Get(const JaegerQuery& query, const std::string& path, HttpClient* http) {
  std::optional<Result<HttpReply>> answer;
  http->Start({.url = query.url + path,
               .headers = {},
               .body = "",
               .deadline = query.deadline,
               .body_limit_bytes = query.body_limit_bytes,
               .ca_file = ""},
              [&](Result<HttpReply> reply) { answer = std::move(reply); });
  while (!answer.has_value() && !query.stop.stop_requested()) http->Poll(kBetweenLooksAtStop);
  if (!answer.has_value())
    return Fail(ErrorCode::kUnavailable, "{}: stopped", PublicUrl(query.url));
  TRY_ASSIGN(HttpReply reply, *std::move(answer));
  if (reply.status / 100 != 2) {
    return Fail(ErrorCode::kUnavailable, "{}: status {}; is this Jaeger's query service?",
                PublicUrl(query.url), reply.status);
  }
  return std::move(reply.body);
}

Result<std::vector<std::string>> Services(const JaegerQuery& query, HttpClient* http) {
  TRY_ASSIGN(const std::string body, Get(query, "/api/services", http));
  const auto foreign = [&](const std::string& why) {
    return Fail(ErrorCode::kUnavailable, "{}/api/services: {}; is this Jaeger's query service?",
                PublicUrl(query.url), why);
  };
  const Result<Json> json = ParseJson(body, "its answer");
  if (!json) return foreign(json.error().message);
  const JsonReader root(*json, "its answer");
  const auto data = root.Find("data");
  if (!data) return foreign(data.error().message);
  std::vector<std::string> services;
  if (!data->has_value()) return services;  // null: it knows none.
  const auto elements = (*data)->Elements();
  if (!elements) return foreign(elements.error().message);
  for (const JsonReader& one : *elements) {
    Result<std::string> name = one.AsString();
    if (!name) return foreign(name.error().message);
    services.push_back(*std::move(name));
  }
  return services;
}

}  // namespace

Result<JaegerAnswer> FetchSpans(const JaegerQuery& query, SpanSet* set) {
  HttpClient http;
  JaegerQuery asked = query;
  while (asked.url.ends_with('/')) asked.url.pop_back();
  TRY_ASSIGN(std::vector<std::string> services, Services(asked, &http));
  const auto is_preferred = [&](const std::string& one) { return asked.preferred.contains(one); };
  if (std::any_of(services.begin(), services.end(), is_preferred))
    std::erase_if(services, [&](const std::string& one) { return !is_preferred(one); });
  if (static_cast<int>(services.size()) > asked.services_max) services.resize(asked.services_max);
  JaegerAnswer answer{.services = static_cast<int>(services.size()), .cut = {}};
  std::set<TraceId> taken;
  for (const std::string& service : services) {
    const std::string path = fmt::format("/api/traces?service={}&start={:.0f}&end={:.0f}&limit={}",
                                         PercentEncoded(service), 1e6 * asked.from_unix,
                                         1e6 * asked.to_unix, asked.traces_max);
    TRY_ASSIGN(const std::string body, Get(asked, path, &http));
    const size_t before = set->spans.size();
    TRY(ReadSpans(body, fmt::format("{}/api/traces of {}", PublicUrl(asked.url), service), set));
    std::set<TraceId> told;
    std::vector<Span>& spans = set->spans;
    for (size_t i = before; i < spans.size(); ++i) told.insert(spans[i].trace);
    spans.erase(std::remove_if(spans.begin() + static_cast<std::ptrdiff_t>(before), spans.end(),
                               [&](const Span& span) { return taken.contains(span.trace); }),
                spans.end());
    if (static_cast<int>(told.size()) >= asked.traces_max) answer.cut.push_back(service);
    taken.merge(told);
  }
  if (taken.empty()) {
    return Fail(ErrorCode::kFailedPrecondition,
                "{}: no trace of that time; it knows {} services, and there may be none of them "
                "that is asked anything, or sampling leaves out too much",
                PublicUrl(asked.url), services.size());
  }
  return answer;
}

}  // namespace rudderfish
