// SPDX-License-Identifier: Apache-2.0
#include "telemetry/prometheus_client.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/escape.h"
#include "telemetry/prometheus_response.h"

namespace rudderfish {
namespace {

constexpr size_t kGetLimit = 2000;  // Longer queries are posted: proxies cut long URLs.

}  // namespace

PrometheusClient::PrometheusClient(PrometheusOptions options, std::vector<SignalQuery> queries,
                                   const Clock* clock)
    : options_(std::move(options)), queries_(std::move(queries)), clock_(clock) {
  for (std::string& url : options_.urls) {
    while (url.ends_with('/')) url.pop_back();
  }
  for (const SignalQuery& query : queries_) {
    signals_.columns[query.name] = {
        .scope = query.scope, .source = "prometheus", .trouble = "not asked yet", .values = {}};
  }
}

void PrometheusClient::Refresh(const SignalEntities& entities) {
  if (http_.in_flight() > 0) return;
  entities_ = entities;
  asked_.assign(queries_.size(), {});
  for (size_t query = 0; query < queries_.size(); ++query) {
    Asked& asked = asked_[query];
    asked.entities = EntityNames(queries_[query].scope, entities_);
    asked.replicas.resize(options_.urls.size());
    const std::set<std::string, std::less<>> known(asked.entities.begin(), asked.entities.end());
    std::erase_if(signals_.columns[queries_[query].name].values,
                  [&](const auto& value) { return !known.contains(value.first); });
    if (asked.entities.empty()) continue;
    for (const ExpandedQuery& request : ExpandQuery(queries_[query], entities_)) {
      for (size_t replica = 0; replica < options_.urls.size(); ++replica)
        Ask(query, replica, request);
    }
  }
}

void PrometheusClient::Ask(size_t query, size_t replica, const ExpandedQuery& request) {
  const SignalQuery& signal = queries_[query];
  std::string form = "query=" + PercentEncoded(request.text);
  const bool is_range = signal.range.count() > 0;
  if (is_range) {
    const double end = UnixSeconds();
    form += fmt::format("&start={:.3f}&end={:.3f}&step={:.3f}", end - Seconds(signal.range), end,
                        Seconds(signal.step));
  }
  HttpFetch fetch{
      .url = options_.urls[replica] + (is_range ? "/api/v1/query_range" : "/api/v1/query"),
      .headers = options_.headers,
      .body = "",
      .deadline = options_.deadline,
      .body_limit_bytes = options_.body_limit_bytes,
      .ca_file = options_.ca_file};
  if (form.size() <= kGetLimit) {
    fetch.url += "?" + form;
  } else {
    fetch.body = std::move(form);
  }
  ++asked_[query].pending;
  http_.Start(std::move(fetch), [this, query, replica, request](const Result<HttpReply>& reply) {
    Take(query, replica, request, reply);
  });
}

void PrometheusClient::Take(size_t query, size_t replica, const ExpandedQuery& request,
                            const Result<HttpReply>& reply) {
  Asked& asked = asked_[query];
  SignalReading& reading = asked.replicas[replica];
  if (!reply) {
    reading.problems.push_back(reply.error().message);
  } else {
    const auto answer = ParsePrometheusResponse(reply->body);
    if (answer) {
      ReadAnswer(queries_[query], request, entities_, *answer, &reading);
    } else {
      // A proxy's error page is no JSON: its status says more.
      const bool foreign = answer.error().code == ErrorCode::kCorruption && reply->status != 200;
      reading.problems.push_back(
          foreign ? fmt::format("{}: status {}", PublicUrl(options_.urls[replica]), reply->status)
                  : answer.error().message);
    }
  }
  SignalColumn& column = signals_.columns[queries_[query].name];
  std::string trouble = column.trouble;
  MergeReadings(asked.replicas, asked.entities, options_.tolerance, clock_->Now(), UnixSeconds(),
                &column);
  // What has not come yet is not missing.
  if (--asked.pending > 0) column.trouble = std::move(trouble);
}

bool PrometheusClient::Poll(Duration wait) { return http_.Poll(wait) > 0; }

}  // namespace rudderfish
