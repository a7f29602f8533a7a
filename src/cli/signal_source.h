// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/yaml.h"
#include "cluster/application.h"
#include "cluster/state.h"
#include "control/evidence.h"
#include "telemetry/prometheus_client.h"

// The `signals:` of a configuration: what is asked of Prometheus, and which of it are measured
// latencies, the evidence that the Model is held against. One thread.

namespace rudderfish {

// A signal of the cluster's scope that measures a term of the objective.
struct LatencySignal {
  std::string signal;
  std::string application;
  std::string endpoint;  // Empty: the mean over all.
  std::string term = "latency_ms";
  Duration window = std::chrono::minutes(1);  // Over which the query takes its mean.
};

struct SignalsConfig {
  std::vector<std::string> urls;  // Replicas of one Prometheus; none: nothing is asked.
  Duration period = std::chrono::seconds(15);
  std::vector<SignalQuery> queries;
  std::vector<LatencySignal> latencies;
};

// A null node is no signals. Messages read as those of ParseConfig.
Result<SignalsConfig> ParseSignals(const YamlNode& node);

class SignalSource {
 public:
  SignalSource(SignalsConfig config, const Clock* clock);

  // Takes what has arrived and asks anew when that is due. Never waits.
  void Turn(const SignalEntities& entities);

  // What is known of an application's latencies; the same value again until there is a newer one.
  std::vector<Reading> Readings(std::string_view application) const;

  // What is wrong with which signal, for people.
  std::vector<std::string> Troubles() const;

 private:
  SignalsConfig config_;
  const Clock* clock_;
  PrometheusClient client_;
  Instant asked_;
  bool asked_once_ = false;
};

// Adds what queries may ask about.
void AddEntities(const Application& application, const State& state, SignalEntities* entities);

}  // namespace rudderfish
