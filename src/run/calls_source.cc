// SPDX-License-Identifier: Apache-2.0
#include "run/calls_source.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/text_table.h"
#include "base/wall_time.h"
#include "net/http_client.h"
#include "telemetry/jaeger_client.h"

namespace rudderfish {
namespace {

constexpr int kTracesOfAService = 500;
constexpr Duration kDeadline = std::chrono::seconds(10);  // Of each request.
constexpr size_t kBodyLimit = 64 << 20;
constexpr Duration kFirstLimit = std::chrono::minutes(1);

}  // namespace

CallsSource::CallsSource(TracesConfig config, const Clock* clock)
    : config_(std::move(config)), clock_(clock) {}

CallsSource::~CallsSource() = default;

bool CallsSource::IsDue() const {
  return is_on() && !thread_.joinable() && (!begun_ || clock_->Now() - *begun_ >= config_.period);
}

bool CallsSource::IsFirstAwaited() const {
  return is_on() && standings_.empty() && (!begun_ || clock_->Now() - *begun_ < kFirstLimit);
}

void CallsSource::Read(std::vector<Asked> applications) {
  CHECK(IsDue());
  begun_ = clock_->Now();
  applications_ = std::move(applications);
  is_done_ = false;
  thread_ = std::jthread([this](const std::stop_token& stop) {
    readings_ = ReadAll(stop);
    is_done_ = true;
  });
}

std::vector<std::shared_ptr<const Application>> CallsSource::Take() {
  std::vector<std::shared_ptr<const Application>> changed;
  if (!thread_.joinable() || !is_done_) return changed;
  thread_.join();
  standings_.resize(readings_.size());
  for (size_t i = 0; i < readings_.size(); ++i) {
    const std::string& name = applications_[i].places.application().name;
    TraceReading& reading = readings_[i];
    TraceStanding& standing = standings_[i];
    if (standing.trouble.empty() != reading.trouble.empty() || !standing.is_read) {
      if (!reading.trouble.empty()) {
        LogWarning("{}: calls not read from traces: {}", name, reading.trouble);
      } else {
        LogInfo("{}: calls read from {}", name, Counted(reading.traces, "trace"));
      }
    }
    standing.is_read = true;
    standing.read_at = UnixNow();
    standing.trouble = std::move(reading.trouble);
    if (standing.trouble.empty()) standing.traces = reading.traces;
    for (std::string& change : reading.update.changes) {
      LogInfo("{}: calls changed, as traces show: {}", name, change);
      ++standing.changes;
      standing.last_change = std::move(change);
    }
    changed.push_back(std::move(reading.update.application));
  }
  applications_.clear();
  return changed;
}

std::vector<CallsSource::TraceReading> CallsSource::ReadAll(const std::stop_token& stop) const {
  JaegerQuery query{.url = config_.jaeger,
                    .to_unix = static_cast<double>(UnixNow()) / 1000,
                    .traces_max = kTracesOfAService,
                    .deadline = kDeadline,
                    .body_limit_bytes = kBodyLimit,
                    .stop = stop};
  query.from_unix = query.to_unix - Seconds(config_.window);
  for (const Asked& one : applications_) {
    for (const auto& [name, workload] : one.places.services()) query.preferred.insert(name);
  }
  std::vector<TraceReading> readings(applications_.size());
  SpanSet set;
  if (const auto answer = FetchSpans(query, &set); !answer) {
    for (TraceReading& one : readings) one.trouble = answer.error().message;
    return readings;
  }
  for (size_t i = 0; i < applications_.size() && !stop.stop_requested(); ++i) {
    const bool is_last = i + 1 == applications_.size();
    readings[i] = ReadOne(applications_[i], is_last ? std::exchange(set, {}) : set);
  }
  return readings;
}

CallsSource::TraceReading CallsSource::ReadOne(const Asked& asked, SpanSet set) const {
  TraceReading reading;
  const auto trouble = [&](const std::string& why) {
    reading.trouble = fmt::format("{}: {}", PublicUrl(config_.jaeger), why);
    return reading;
  };
  std::vector<std::string> unknown;
  const SpanPlaces found = asked.places.Of(set, &unknown);
  const Result<InferredGraph> graph = InferCalls(found, {}, &set);
  if (!graph) return trouble(graph.error().message);
  reading.traces = graph->traces;
  const Application& known = asked.places.application();
  const Result<TracedApplication> traced = WithTracedCalls(known, *graph, config_.sampled);
  if (!traced) return trouble(traced.error().message);
  reading.update = UpdateCalls(known, *traced, *graph, asked.new_endpoints);
  return reading;
}

}  // namespace rudderfish
