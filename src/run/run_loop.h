// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <string_view>

// What `run` drives until it is told to end: one of several, by what the configuration asks for.
// One thread.

namespace rudderfish {

class RunLoop {
 public:
  virtual ~RunLoop() = default;

  // Lets in what comes from the cluster; waits for it, at most `timeout`, if it can (CanWait).
  virtual void Poll(std::chrono::milliseconds timeout) = 0;
  virtual bool CanWait() const = 0;

  // Looks and decides if that is due. True: more may be done at once.
  virtual bool Turn() = 0;
  virtual std::chrono::milliseconds UntilDue() const = 0;

  // Gives the lead away, if there is one to give. Before the end.
  virtual void Stop() = 0;

  // Answers a request of the socket, in a line of JSON.
  virtual std::string Answer(std::string_view request) = 0;
};

}  // namespace rudderfish
