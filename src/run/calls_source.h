// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/wall_time.h"
#include "run/calls_update.h"
#include "run/trace_places.h"
#include "run/traces_config.h"

// Reads the traces of applications again and again, on a thread of its own, and says what they
// change of what is known of their calls. All else is of the thread that owns it.

namespace rudderfish {

// How the traces of an application stand.
struct TraceStanding {
  bool is_read = false;  // At least once since this began, in vain or not.
  UnixMillis read_at = 0;
  int64_t traces = 0;       // That showed whole requests, when they were read last with success.
  int64_t changes = 0;      // Of its calls.
  std::string last_change;  // In words.
  std::string trouble;      // Why they were not read; empty: they were.
};

class CallsSource {
 public:
  CallsSource(TracesConfig config, const Clock* clock);
  ~CallsSource();  // Gives up a reading that is under way.
  CallsSource(const CallsSource&) = delete;

  bool is_on() const { return !config_.jaeger.empty(); }

  // The period is over, and no reading is under way.
  bool IsDue() const;

  struct Asked {
    TracePlaces places;
    NewEndpoints new_endpoints;
  };

  // Begins one of these applications, which are the same ones each time.
  // REQUIRES: IsDue().
  void Read(std::vector<Asked> applications);

  // Nothing should be decided before it has ended, within reason: a server may be slow.
  bool IsFirstAwaited() const;

  // Once a reading has ended: of each application what it is now; null where nothing changed
  // asked for. Says in the log what has changed.
  std::vector<std::shared_ptr<const Application>> Take();

  // As many as applications were read; none before a reading has ended.
  const std::vector<TraceStanding>& standings() const { return standings_; }

 private:
  // Of one application.
  struct TraceReading {
    int64_t traces = 0;
    CallsUpdate update;
    std::string trouble;
  };

  std::vector<TraceReading> ReadAll(const std::stop_token& stop) const;
  TraceReading ReadOne(const Asked& asked, SpanSet set) const;

  const TracesConfig config_;
  const Clock* clock_;
  std::optional<Instant> begun_;
  std::vector<TraceStanding> standings_;
  // Of the thread while one is under way.
  std::vector<Asked> applications_;
  std::vector<TraceReading> readings_;
  std::atomic<bool> is_done_ = false;
  std::jthread thread_;  // Last: it uses the others.
};

}  // namespace rudderfish
