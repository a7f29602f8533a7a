// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

// Time that only goes forward. Code that waits, ages or schedules takes a Clock, so that a
// simulated day passes in a test without waiting. An Instant is meaningful only beside others of
// the same Clock; dates for humans do not come from here. SystemClock may be used by any thread;
// ManualClock by one.

namespace rudderfish {

using Duration = std::chrono::nanoseconds;

// The clock type that names our instants in <chrono>; simulated and real ones share it. Read them
// through a Clock.
struct MonotonicTime {
  using rep = Duration::rep;
  using period = Duration::period;
  using duration = Duration;
  using time_point = std::chrono::time_point<MonotonicTime>;
  static constexpr bool is_steady = true;
};

using Instant = MonotonicTime::time_point;

inline constexpr double Seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Instant Now() const = 0;
};

class SystemClock final : public Clock {
 public:
  Instant Now() const override {
    return Instant(
        std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch()));
  }
};

// Stands still until it is advanced.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(Instant start = Instant{}) : now_(start) {}
  Instant Now() const override { return now_; }

  // REQUIRES: by >= 0.
  void Advance(Duration by);

 private:
  Instant now_;
};

// Seconds since 1970, UTC, for what other machines date: it may jump, so never measure with it.
inline double UnixSeconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace rudderfish
