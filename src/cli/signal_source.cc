// SPDX-License-Identifier: Apache-2.0
#include "cli/signal_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/units.h"
#include "model/latency.h"

namespace rudderfish {
namespace {

constexpr double kLongestAgeMs = 86'400'000;

Result<Duration> DurationOf(const YamlNode& node) {
  TRY_ASSIGN(const std::string text, node.AsString());
  const Result<double> ms = ParseDurationMs(text);
  if (!ms) return node.Refuse(ms.error().message);
  if (*ms < 1 || *ms > kLongestAgeMs) return node.Expected("from 1ms to 24h");
  return Duration(static_cast<int64_t>(*ms * 1e6));
}

Result<void> ReadPrometheus(const YamlNode& node, SignalsConfig* config) {
  TRY_ASSIGN(const std::vector<YamlNode> urls, node.AsList());
  if (urls.empty()) return node.Expected("at least one address");
  for (const YamlNode& url : urls) {
    TRY_ASSIGN(std::string text, url.AsString());
    if (text.find('@') != std::string::npos) {
      // Shown nowhere: it may hold a password.
      return url.Refuse("expected an address without user and password");
    }
    if (!text.starts_with("http://") && !text.starts_with("https://")) {
      return url.Expected("an address such as http://prometheus:9090");
    }
    config->urls.push_back(std::move(text));
  }
  return {};
}

Result<void> ReadPresets(YamlMap* map, SignalsConfig* config) {
  TRY_ASSIGN(const std::vector<YamlNode> presets, map->OptionalList("presets"));
  for (const YamlNode& preset : presets) {
    TRY_ASSIGN(const std::string name, preset.AsString());
    Result<std::vector<SignalQuery>> queries = SignalPreset(name);
    if (!queries) return preset.Refuse(queries.error().message);
    config->queries.insert(config->queries.end(), queries->begin(), queries->end());
  }
  return {};
}

Result<LatencySignal> LatencyFrom(const std::string& name, const YamlNode& node,
                                  const std::vector<SignalQuery>& queries) {
  const auto query = std::find_if(queries.begin(), queries.end(),
                                  [&](const SignalQuery& one) { return one.name == name; });
  if (query == queries.end()) {
    return node.Refuse(fmt::format("no signal is called \"{}\"", name.substr(0, 60)));
  }
  if (query->scope != SignalScope::kCluster) {
    return node.Refuse("a latency is a signal `per: cluster`: one value");
  }
  LatencySignal latency{.signal = name};
  TRY_ASSIGN(YamlMap map, node.AsMap());
  TRY_ASSIGN(latency.application, map.RequiredString("application"));
  TRY_ASSIGN(latency.endpoint, map.OptionalString("endpoint", ""));
  if (const auto term = map.Optional("term")) {
    TRY_ASSIGN(latency.term, term->AsString());
    const auto& names = TermNames();
    if (std::find(names.begin(), names.end(), latency.term) == names.end()) {
      return term->Expected(fmt::format("one of {}", fmt::join(names, ", ")));
    }
    if (!latency.endpoint.empty() && latency.term != names[0]) {
      return term->Refuse("of one endpoint only latency_ms is compared");
    }
  }
  if (const auto window = map.Optional("window")) {
    TRY_ASSIGN(latency.window, DurationOf(*window));
  }
  TRY(map.Finish());
  return latency;
}

}  // namespace

Result<SignalsConfig> ParseSignals(const YamlNode& node) {
  SignalsConfig config;
  if (node.IsNull()) return config;
  TRY_ASSIGN(YamlMap map, node.AsMap());
  TRY_ASSIGN(const YamlNode prometheus, map.Required("prometheus"));
  TRY(ReadPrometheus(prometheus, &config));
  if (const auto period = map.Optional("period")) {
    TRY_ASSIGN(config.period, DurationOf(*period));
  }
  TRY(ReadPresets(&map, &config));
  if (const auto queries = map.Optional("queries")) {
    TRY_ASSIGN(const std::vector<SignalQuery> own, ParseSignalQueries(*queries));
    config.queries.insert(config.queries.end(), own.begin(), own.end());
  }
  if (const auto latency = map.Optional("latency")) {
    TRY_ASSIGN(YamlMap named, latency->AsMap());
    for (const auto& [name, value] : named.Entries()) {
      TRY_ASSIGN(LatencySignal one, LatencyFrom(name, value, config.queries));
      config.latencies.push_back(std::move(one));
    }
  }
  TRY(map.Finish());
  return config;
}

SignalSource::SignalSource(SignalsConfig config, const Clock* clock)
    : config_(std::move(config)),
      clock_(clock),
      client_({.urls = config_.urls}, config_.queries, clock) {}

void SignalSource::Turn(const SignalEntities& entities) {
  if (config_.urls.empty()) return;
  const bool under_way = client_.Poll(Duration(0));
  const Instant now = clock_->Now();
  if (under_way || (asked_once_ && now - asked_ < config_.period)) return;
  asked_once_ = true;
  asked_ = now;
  client_.Refresh(entities);
}

std::vector<Reading> SignalSource::Readings(std::string_view application) const {
  std::vector<Reading> readings;
  for (const LatencySignal& one : config_.latencies) {
    if (one.application != application) continue;
    const SignalValue* value = client_.signals().Find(one.signal, "");
    if (value == nullptr) continue;
    readings.push_back({.endpoint = one.endpoint,
                        .term = one.term,
                        .value_ms = value->value,
                        .at = value->at.time_since_epoch(),
                        .window = one.window,
                        .source = fmt::format("prometheus {}", one.signal)});
  }
  return readings;
}

std::vector<std::string> SignalSource::Troubles() const {
  std::vector<std::string> troubles;
  for (const auto& [name, column] : client_.signals().columns) {
    if (!column.trouble.empty()) troubles.push_back(fmt::format("{}: {}", name, column.trouble));
  }
  return troubles;
}

void AddEntities(const Application& application, const State& state, SignalEntities* entities) {
  for (const std::string& node : state.names->nodes) {
    const bool known = std::any_of(entities->nodes.begin(), entities->nodes.end(),
                                   [&](const auto& one) { return one.name == node; });
    if (!known) entities->nodes.push_back({.name = node, .address = ""});
  }
  const auto& workloads = application.catalog->workloads;
  for (size_t w = 0; w < workloads.size(); ++w) {
    entities->workloads.push_back(
        {.name = workloads[w].name, .name_space = application.objects[w].object_namespace});
  }
  for (const Call& call : application.calls->calls) {
    if (call.caller == kNone) continue;
    const WorkloadId caller = application.calls->calls[call.caller].workload;
    entities->edges.emplace_back(workloads[caller].name, workloads[call.workload].name);
  }
}

}  // namespace rudderfish
