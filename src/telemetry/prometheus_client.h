// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "cluster/signals.h"
#include "net/http_client.h"
#include "telemetry/signal_query.h"
#include "telemetry/signal_reading.h"

// Signals from Prometheus. Nothing here waits: Refresh sends the queries, Poll takes what has
// arrived, and signals() has the newest value of everything with the time it was measured. What
// happens where something is wrong:
//
//   NaN, infinity            no number: as no data
//   no data, or down or slow the last value stays and ages; SignalColumn::trouble says why
//   several series of one    by `duplicates`; refused by default, as no data
//   two replicas disagree    the mean, with its spread; told beyond a tolerance
//
// Not thread safe.

namespace rudderfish {

struct PrometheusOptions {
  std::vector<std::string> urls;  // "http://prometheus:9090"; several are replicas of one.
  std::vector<std::string> headers;
  std::string ca_file;
  Duration deadline = std::chrono::seconds(5);  // Of each query.
  size_t body_limit_bytes = 32 << 20;
  double tolerance = 0.1;  // Of replicas' disagreement, relative.
};

class PrometheusClient {
 public:
  PrometheusClient(PrometheusOptions options, std::vector<SignalQuery> queries, const Clock* clock);

  // Asks for everything, of these entities; nothing where the last round is still under way. Values
  // of entities that are gone are forgotten.
  void Refresh(const SignalEntities& entities);

  // From the next round on; secrets change while programs run.
  void SetHeaders(std::vector<std::string> headers) { options_.headers = std::move(headers); }

  // Takes what has arrived, waiting for it at most so long. Returns whether a round is under way.
  bool Poll(Duration wait);

  const Signals& signals() const { return signals_; }

 private:
  // One query in the round that is under way.
  struct Asked {
    std::vector<std::string> entities;
    std::vector<SignalReading> replicas;  // By url.
    int pending = 0;                      // Requests without an answer yet.
  };

  void Ask(size_t query, size_t replica, const ExpandedQuery& request);
  void Take(size_t query, size_t replica, const ExpandedQuery& request,
            const Result<HttpReply>& reply);

  PrometheusOptions options_;
  std::vector<SignalQuery> queries_;
  const Clock* clock_;
  SignalEntities entities_;
  std::vector<Asked> asked_;  // [query]
  Signals signals_;
  HttpClient http_;  // Last: what is in flight refers to the others.
};

}  // namespace rudderfish
