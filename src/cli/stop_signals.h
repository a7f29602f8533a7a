// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <csignal>
#include <optional>

#include "base/clock.h"
#include "base/result.h"
#include "cli/commands.h"

// SIGTERM and SIGINT as something to wait for. Block them before the first thread is made: threads
// inherit it, and the signals then wait for Wait.

namespace rudderfish {

class StopSignals {
 public:
  StopSignals();
  ~StopSignals();  // As before.
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // The number of the signal that came.
  int Wait() const;
  std::optional<int> WaitFor(Duration limit) const;  // Nothing: none came.

 private:
  sigset_t signals_;
  sigset_t before_;
};

// From now on SIGINT and SIGTERM set this flag; the second ends the process as if there were no
// handler. For commands that end early with what they have.
const std::atomic<bool>& StopOnSignals();

// What an evaluation that was stopped early says after its result, and ends with.
ExitStatus Stopped(const Session& session, int64_t complete, int64_t asked);
tl::unexpected<Error> StoppedTooEarly();

// How long a server may take to end once it is told to.
inline constexpr Duration kStopDeadline = std::chrono::seconds(4);

}  // namespace rudderfish
