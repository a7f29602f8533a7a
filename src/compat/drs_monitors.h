// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "compat/drs.h"
#include "net/socket_address.h"

// Asks DRS's monitors for the state of their nodes, all at once, over connections that stay open as
// its own client's do. One that does not answer in time is connected to again the next time, and
// its node is left out. Any thread may ask; one asks at a time.

namespace rudderfish {

struct DrsMonitorAddress {
  std::string node;
  SocketAddress address;
};

struct DrsNodeState {
  std::string node;
  DrsState state{};
};

class DrsMonitors {
 public:
  // `clock` outlives it.
  DrsMonitors(std::vector<DrsMonitorAddress> monitors, const Clock* clock);
  ~DrsMonitors();
  DrsMonitors(const DrsMonitors&) = delete;
  DrsMonitors& operator=(const DrsMonitors&) = delete;

  // Of those that answered; kUnavailable with the reasons where none did.
  Result<std::vector<DrsNodeState>> Ask(Duration limit);

 private:
  struct Monitor {
    DrsMonitorAddress where;
    int file = -1;
    std::string received;
    bool is_sent = false, is_done = false;
    Result<DrsState> state;
  };

  void Begin(Monitor* monitor) const;
  void GoOn(Monitor* monitor) const;
  static void Fail(Monitor* monitor, std::string why);

  std::mutex mutex_;
  std::vector<Monitor> monitors_;
  const Clock* clock_;
};

// The node that is best by the reward of DRS's code once the pod is there, with the profile that
// it gives pods by their names; the first of several. REQUIRES: there are nodes.
const std::string& DrsBestNode(std::string_view pod, std::span<const DrsNodeState> nodes);

}  // namespace rudderfish
