// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>

#include "base/clock.h"

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

 private:
  sigset_t signals_;
  sigset_t before_;
};

// How long a server may take to end once it is told to.
inline constexpr Duration kStopDeadline = std::chrono::seconds(4);

}  // namespace rudderfish
