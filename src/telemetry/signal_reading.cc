// SPDX-License-Identifier: Apache-2.0
#include "telemetry/signal_reading.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

namespace rudderfish {
namespace {

constexpr size_t kProblemsTold = 3;
constexpr std::string_view kNamespaceLabel = "namespace";

// "10.0.0.1:9100" is the node with the address 10.0.0.1, or that name.
std::string NodeOf(std::string_view label, const SignalEntities& entities) {
  const auto search = [&](std::string_view text) -> std::string {
    for (const auto& node : entities.nodes) {
      if (node.name == text || (!node.address.empty() && node.address == text)) return node.name;
    }
    return "";
  };
  std::string found = search(label);
  if (!found.empty()) return found;
  std::string_view host = label.substr(0, label.rfind(':'));
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  return search(host);
}

// The entity of the series; nothing if it is not a known one.
std::optional<std::string> EntityOf(const SignalQuery& query, const SignalEntities& entities,
                                    const PrometheusSeries& series) {
  switch (query.scope) {
    case SignalScope::kCluster:
      return "";
    case SignalScope::kNode: {
      std::string name = NodeOf(series.label(query.labels[0]), entities);
      if (name.empty()) return std::nullopt;
      return name;
    }
    case SignalScope::kWorkload:
      if (query.by_pod) {
        const auto owner = entities.owners.find(
            SignalEntities::PodKey(series.label(kNamespaceLabel), series.label(query.labels[0])));
        if (owner == entities.owners.end()) return std::nullopt;
        return owner->second;
      }
      for (const auto& workload : entities.workloads) {
        if (workload.name == series.label(query.labels[0])) return workload.name;
      }
      return std::nullopt;
    case SignalScope::kEdge:
      for (const auto& [from, to] : entities.edges) {
        if (from == series.label(query.labels[0]) && to == series.label(query.labels[1]))
          return EdgeName(from, to);
      }
      break;
    case SignalScope::kRegion:
      for (const std::string& region : entities.regions) {
        if (region == series.label(query.labels[0])) return region;
      }
      break;
  }
  return std::nullopt;
}

// One sample of a series, as the query wants it; nothing if none is a number.
std::optional<SignalSample> Reduce(const SignalQuery& query, const PrometheusSeries& series) {
  std::optional<SignalSample> reduced;
  double sum = 0;
  int count = 0;
  for (const PrometheusSample& sample : series.samples) {
    const double value = sample.value * query.scale;
    if (!std::isfinite(value)) continue;
    sum += value;
    ++count;
    const bool keeps = reduced.has_value() && query.reduce == SignalReduce::kMax;
    reduced = {.value = keeps ? std::max(reduced->value, value) : value,
               .unix_seconds = sample.unix_seconds};
  }
  if (reduced.has_value() && query.reduce == SignalReduce::kMean) reduced->value = sum / count;
  return reduced;
}

SignalSample Joined(SignalDuplicates duplicates, const std::vector<SignalSample>& samples) {
  SignalSample joined = samples[0];
  for (size_t i = 1; i < samples.size(); ++i) {
    const bool max = duplicates == SignalDuplicates::kMax;
    joined.value = max ? std::max(joined.value, samples[i].value) : joined.value + samples[i].value;
    joined.unix_seconds = std::min(joined.unix_seconds, samples[i].unix_seconds);
  }
  if (duplicates == SignalDuplicates::kMean) joined.value /= static_cast<double>(samples.size());
  return joined;
}

std::string Named(const std::string& entity) { return entity.empty() ? "the cluster" : entity; }

}  // namespace

void ReadAnswer(const SignalQuery& query, const ExpandedQuery& request,
                const SignalEntities& entities, const PrometheusAnswer& answer,
                SignalReading* reading) {
  for (const std::string& warning : answer.warnings)
    reading->problems.push_back("Prometheus warns: " + warning);
  if (answer.left_out > 0) {
    reading->problems.push_back(
        fmt::format("{} series left out, such as {}", answer.left_out, answer.first_left_out));
  }
  std::map<std::string, std::vector<SignalSample>> samples;
  for (const PrometheusSeries& one : answer.series) {
    const auto entity = request.is_batched ? EntityOf(query, entities, one)
                                           : std::optional<std::string>(request.entity);
    const auto sample = Reduce(query, one);
    if (entity.has_value() && sample.has_value()) samples[*entity].push_back(*sample);
  }
  for (const auto& [entity, list] : samples) {
    if (list.size() > 1 && query.duplicates == SignalDuplicates::kRefuse) {
      reading->problems.push_back(
          fmt::format("{} series for {}: aggregate in the query, or say what `duplicates` mean",
                      list.size(), Named(entity)));
      continue;
    }
    const SignalSample joined = Joined(query.duplicates, list);
    if (std::isfinite(joined.value)) reading->values[entity] = joined;
  }
}

void MergeReadings(const std::vector<SignalReading>& replicas,
                   const std::vector<std::string>& entities, double tolerance, Instant now,
                   double unix_now, SignalColumn* column) {
  std::vector<std::string> problems;
  const auto tell = [&](const std::string& problem) {
    if (std::find(problems.begin(), problems.end(), problem) == problems.end())
      problems.push_back(problem);
  };
  for (const SignalReading& replica : replicas) {
    for (const std::string& problem : replica.problems) tell(problem);
  }
  std::vector<std::string> missing;
  for (const std::string& entity : entities) {
    double sum = 0, smallest = 0, largest = 0, oldest = unix_now;
    int count = 0;
    for (const SignalReading& replica : replicas) {
      const auto found = replica.values.find(entity);
      if (found == replica.values.end()) continue;
      const double value = found->second.value;
      smallest = count == 0 ? value : std::min(smallest, value);
      largest = count == 0 ? value : std::max(largest, value);
      oldest = std::min(oldest, found->second.unix_seconds);
      sum += value;
      ++count;
    }
    if (count == 0) {
      missing.push_back(Named(entity));
      continue;
    }
    const double spread = largest - smallest;
    if (spread > tolerance * std::max(std::abs(smallest), std::abs(largest)))
      tell(fmt::format("replicas disagree on {}: {} to {}", Named(entity), smallest, largest));
    const auto age = std::chrono::duration_cast<Duration>(
        std::chrono::duration<double>(std::min(unix_now - oldest, 1e9)));
    column->values[entity] = {.value = sum / count, .at = now - age, .spread = spread};
  }
  if (!missing.empty())
    tell(fmt::format("no data of {} of {}, such as {}", missing.size(), entities.size(),
                     missing[0]));
  const size_t told = std::min(problems.size(), kProblemsTold);
  column->trouble = fmt::format("{}", fmt::join(problems.begin(), problems.begin() + told, "; "));
  if (problems.size() > told)
    column->trouble += fmt::format("; and {} more", problems.size() - told);
}

}  // namespace rudderfish
