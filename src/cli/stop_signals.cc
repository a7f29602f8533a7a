// SPDX-License-Identifier: Apache-2.0
#include "cli/stop_signals.h"

#include "cli/terminal.h"

namespace rudderfish {

StopSignals::StopSignals() {
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGTERM);
  sigaddset(&signals_, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals_, &before_);
}

StopSignals::~StopSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

int StopSignals::Wait() const {
  int signal = 0;
  while (sigwait(&signals_, &signal) != 0) {
  }
  return signal;
}

std::optional<int> StopSignals::WaitFor(Duration limit) const {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(limit);
  const timespec time{.tv_sec = seconds.count(), .tv_nsec = (limit - seconds).count()};
  const int signal = ::sigtimedwait(&signals_, nullptr, &time);
  return signal < 0 ? std::nullopt : std::optional(signal);
}

ExitStatus Stopped(const Session& session, int64_t complete, int64_t asked) {
  Say(session, "Stopped; the result is that of the first {} of {} episodes", complete, asked);
  return ExitStatus::kInterrupted;
}

tl::unexpected<Error> StoppedTooEarly() {
  return Fail(ErrorCode::kFailedPrecondition, "stopped before an episode was complete");
}

const std::atomic<bool>& StopOnSignals() {
  static std::atomic<bool> stop = false;
  struct sigaction action = {};
  action.sa_handler = [](int) { stop.store(true, std::memory_order_relaxed); };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  return stop;
}

}  // namespace rudderfish
