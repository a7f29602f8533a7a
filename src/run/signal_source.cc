// SPDX-License-Identifier: Apache-2.0
#include "run/signal_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/files.h"
#include "base/units.h"
#include "model/latency.h"

namespace rudderfish {

namespace fs = std::filesystem;

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

Result<void> ReadPath(YamlMap* map, std::string_view key, const fs::path& folder, fs::path* path) {
  const std::optional<YamlNode> node = map->Optional(key);
  if (!node) return {};
  TRY_ASSIGN(const std::string text, node->AsString());
  if (text.empty() || text.size() > 4096) return node->Expected("a path of 1 to 4096 letters");
  *path = folder / text;
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

Result<SignalsConfig> ParseSignals(const YamlNode& node, const fs::path& folder) {
  SignalsConfig config;
  if (node.IsNull()) return config;
  TRY_ASSIGN(YamlMap map, node.AsMap());
  TRY_ASSIGN(const YamlNode prometheus, map.Required("prometheus"));
  TRY(ReadPrometheus(prometheus, &config));
  if (const auto period = map.Optional("period")) {
    TRY_ASSIGN(config.period, DurationOf(*period));
  }
  if (const auto staleness = map.Optional("staleness")) {
    TRY_ASSIGN(config.staleness, DurationOf(*staleness));
  }
  TRY(ReadPath(&map, "headers_file", folder, &config.header_files.headers));
  TRY(ReadPath(&map, "bearer_token_file", folder, &config.header_files.bearer_token));
  TRY(ReadPath(&map, "ca_file", folder, &config.ca_file));
  TRY(ReadPresets(&map, &config));
  if (const auto queries = map.Optional("queries")) {
    TRY_ASSIGN(const std::vector<SignalQuery> own, ParseSignalQueries(*queries));
    config.queries.insert(config.queries.end(), own.begin(), own.end());
  }
  if (const auto carbon = map.Optional("carbon")) {
    TRY_ASSIGN(config.carbon, ParseCarbonConfig(*carbon, folder));
    const bool is_twice =
        std::any_of(config.queries.begin(), config.queries.end(),
                    [](const SignalQuery& one) { return one.name == kCarbonSignal; });
    if (is_twice) return carbon->Refuse(fmt::format("`queries` has {} as well", kCarbonSignal));
  }
  if (const auto latency = map.Optional("latency")) {
    TRY_ASSIGN(YamlMap named, latency->AsMap());
    for (const auto& [name, value] : named.Entries()) {
      TRY_ASSIGN(LatencySignal one, LatencyFrom(name, value, config.queries));
      config.latencies.push_back(std::move(one));
    }
  }
  if (config.staleness && config.latencies.empty()) {
    return node.Refuse("`staleness` is of what `latency` names: it has nothing to hold for here");
  }
  TRY(map.Finish());
  return config;
}

SignalsConfig SignalsConfig::Of(Whose whose) const {
  SignalsConfig own = *this;
  std::erase_if(own.queries, [&](const SignalQuery& one) {
    return (one.scope == SignalScope::kRegion) != (whose == Whose::kRegions);
  });
  if (whose == Whose::kRegions) {
    own.latencies.clear();
  } else {
    own.carbon.reset();
  }
  return own;
}

Result<void> CheckFiles(const SignalsConfig& config) {
  if (!config.header_files.empty()) TRY(ReadHeaders(config.header_files));
  if (config.carbon && !config.carbon->token_file.empty())
    TRY(ReadCarbonToken(config.carbon->token_file));
  if (config.ca_file.empty()) return {};
  TRY_ASSIGN(const std::string pem, ReadFile(config.ca_file));
  if (pem.find("-----BEGIN CERTIFICATE-----") == std::string::npos) {
    return Invalid("{}: expected certificates in PEM, found none", config.ca_file.native());
  }
  return {};
}

SignalSource::SignalSource(SignalsConfig config, const Clock* clock)
    : config_(std::move(config)),
      clock_(clock),
      client_({.urls = config_.urls, .ca_file = config_.ca_file.native()}, config_.queries, clock) {
  if (config_.carbon) carbon_.emplace(*config_.carbon, clock);
}

void SignalSource::Turn(const SignalEntities& entities) {
  if (config_.urls.empty()) return;
  if (carbon_) carbon_->Turn();
  const bool under_way = Poll();
  const Instant now = clock_->Now();
  if (under_way || (asked_once_ && now - asked_ < config_.period)) return;
  asked_once_ = true;
  asked_ = now;
  RenewHeaders();
  client_.Refresh(entities);
  was_under_way_ = true;
}

bool SignalSource::Poll() {
  const bool under_way = client_.Poll(Duration(0));
  const bool is_new = carbon_ && (carbon_->Poll() || (was_under_way_ && !under_way));
  was_under_way_ = under_way;
  if (is_new) Merge();
  has_answers_ = has_answers_ || (asked_once_ && !under_way);
  return under_way;
}

void SignalSource::Merge() {
  merged_ = client_.signals();
  merged_.columns.insert_or_assign(std::string(kCarbonSignal), carbon_->column());
}

// What was read last stays good while a file is being replaced.
void SignalSource::RenewHeaders() {
  if (config_.header_files.empty()) return;
  Result<std::vector<std::string>> headers = ReadHeaders(config_.header_files);
  file_trouble_ = headers ? "" : headers.error().message;
  if (headers) client_.SetHeaders(*std::move(headers));
}

std::string SignalSource::WhyTooOld(std::string_view application) const {
  if (!config_.staleness) return "";
  for (const LatencySignal& one : config_.latencies) {
    if (one.application != application) continue;
    const SignalValue* value = client_.signals().Find(one.signal, "");
    if (value == nullptr) {
      return fmt::format("the signal {} was not measured yet: nothing is decided without it",
                         one.signal);
    }
    const Duration age = clock_->Now() - value->at;
    if (age <= *config_.staleness) continue;
    return fmt::format(
        "the signal {} was measured {} ago, more than the limit of {}: nothing is decided on it",
        one.signal, FormatDuration(age), FormatDuration(*config_.staleness));
  }
  return "";
}

std::vector<SignalStanding> SignalSource::Standings() const {
  std::vector<SignalStanding> standings;
  const Instant now = clock_->Now();
  for (const auto& [name, column] : values().columns) {
    SignalStanding one{.name = name,
                       .values = static_cast<int64_t>(column.values.size()),
                       .age_s = std::nullopt,
                       .trouble = column.trouble};
    for (const auto& [unused, value] : column.values) {
      one.age_s = std::max(one.age_s.value_or(0), Seconds(now - value.at));
    }
    standings.push_back(std::move(one));
  }
  return standings;
}

OrderedJson JsonOf(const std::vector<SignalStanding>& standings) {
  OrderedJson list = OrderedJson::array();
  for (const SignalStanding& one : standings) {
    list.push_back({{"name", one.name},
                    {"values", one.values},
                    {"age_s", one.age_s ? OrderedJson(*one.age_s) : OrderedJson(nullptr)},
                    {"trouble", one.trouble}});
  }
  return list;
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
  if (!file_trouble_.empty()) troubles.push_back(file_trouble_);
  for (const auto& [name, column] : values().columns) {
    if (!column.trouble.empty()) troubles.push_back(fmt::format("{}: {}", name, column.trouble));
  }
  return troubles;
}

namespace {

// Prometheus knows no node that stands for users outside of the cluster.
bool HoldsUsers(const Application& application, const State& state, NodeId node) {
  for (PodId pod = 0; pod < state.pods.size(); ++pod) {
    if (state.pods.node[pod] == node && application.objects[state.pods.workload[pod]].is_external())
      return true;
  }
  return false;
}

void AddNodes(const Application& application, const State& state, SignalEntities* entities) {
  const Names& names = *state.names;
  for (NodeId node = 0; node < state.nodes.size(); ++node) {
    const std::string& name = names.nodes[node];
    const bool known = std::any_of(entities->nodes.begin(), entities->nodes.end(),
                                   [&](const auto& one) { return one.name == name; });
    if (known || HoldsUsers(application, state, node)) continue;
    entities->nodes.push_back(
        {.name = name, .address = names.addresses.empty() ? "" : names.addresses[node]});
  }
}

void AddOwners(const Application& application, const State& state, SignalEntities* entities) {
  for (PodId pod = 0; pod < state.pods.size(); ++pod) {
    const WorkloadObject& object = application.objects[state.pods.workload[pod]];
    if (object.is_external()) continue;
    const std::string name = PodName(state, pod);
    entities->owners.insert_or_assign(
        SignalEntities::PodKey(object.object_namespace, name.substr(name.rfind('/') + 1)),
        state.workload_of(pod).name);
  }
}

}  // namespace

void AddEntities(const Application& application, const State& state, SignalEntities* entities) {
  AddNodes(application, state, entities);
  AddOwners(application, state, entities);
  const auto& workloads = application.catalog->workloads;
  for (size_t w = 0; w < workloads.size(); ++w) {
    if (application.objects[w].is_external()) continue;
    entities->workloads.push_back(
        {.name = workloads[w].name, .name_space = application.objects[w].object_namespace});
  }
  for (const Call& call : application.calls->calls) {
    if (call.caller == kNone) continue;
    const WorkloadId caller = application.calls->calls[call.caller].workload;
    if (application.objects[caller].is_external()) continue;
    entities->edges.emplace_back(workloads[caller].name, workloads[call.workload].name);
  }
}

}  // namespace rudderfish
