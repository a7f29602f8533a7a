// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/result.h"
#include "base/yaml.h"
#include "cluster/application.h"
#include "cluster/state.h"
#include "control/evidence.h"
#include "telemetry/carbon_client.h"
#include "telemetry/header_file.h"
#include "telemetry/prometheus_client.h"

// The `signals:` of a configuration: what is asked of Prometheus and of a service that knows carbon
// intensities, and which of it are measured latencies, the evidence that the Model is held against.
// One thread.

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
  HeaderFiles header_files;           // Reloaded for each round.
  std::filesystem::path ca_file;      // For https; empty: the system's.
  std::optional<Duration> staleness;  // Of latencies; none: decisions do not ask for them.
  std::vector<SignalQuery> queries;
  std::vector<LatencySignal> latencies;
  std::optional<CarbonConfig> carbon;  // Of regions, where Prometheus does not know it.

  // What one kind of decision reads of them.
  enum class Whose { kCluster, kRegions };
  SignalsConfig Of(Whose whose) const;
};

// A null node is no signals; files that it names are relative to `folder`. Messages read as those
// of ParseConfig. Looks at no file.
Result<SignalsConfig> ParseSignals(const YamlNode& node, const std::filesystem::path& folder);

// That the files it names are there and hold what they should.
Result<void> CheckFiles(const SignalsConfig& config);

// How a signal stands: what is known of it, and how old the oldest of that is.
struct SignalStanding {
  std::string name;
  int64_t values = 0;
  std::optional<double> age_s;  // None: never measured.
  std::string trouble;          // Empty: all is well.
};

class SignalSource {
 public:
  SignalSource(SignalsConfig config, const Clock* clock);

  // Takes what has arrived and asks again when that is due. Never waits.
  void Turn(const SignalEntities& entities);

  // Sends and takes what can be sent and taken; true while a round is under way. To be called much
  // more often than the deadline of a query (PrometheusOptions), however rare turns are.
  bool Poll();

  // What is known of an application's latencies; the same value again until there is a newer one.
  std::vector<Reading> Readings(std::string_view application) const;

  // Why nothing should be decided for an application: what it is measured by is too old.
  std::string WhyTooOld(std::string_view application) const;

  std::vector<SignalStanding> Standings() const;
  const Signals& values() const { return carbon_ ? merged_ : client_.signals(); }
  bool has_answers() const { return has_answers_; }  // A round has ended.

  // What is wrong with which signal, for people.
  std::vector<std::string> Troubles() const;

 private:
  void RenewHeaders();
  void Merge();

  SignalsConfig config_;
  const Clock* clock_;
  PrometheusClient client_;
  std::optional<CarbonClient> carbon_;
  Signals merged_;  // Of both; regions are few.
  Instant asked_;
  bool asked_once_ = false, was_under_way_ = false;
  bool has_answers_ = false;
  std::string file_trouble_;  // Of the header files.
};

// Of `status`.
OrderedJson JsonOf(const std::vector<SignalStanding>& standings);

// Adds what queries may ask about.
void AddEntities(const Application& application, const State& state, SignalEntities* entities);

}  // namespace rudderfish
