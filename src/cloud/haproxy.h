// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cloud/split_enactor.h"
#include "net/stream_request.h"

// The weights of the servers of one HAProxy backend, by the runtime API: `show servers state` reads
// them, one line of `set server ... weight` commands sets them. HAProxy's own health checks say
// which servers are healthy.

namespace rudderfish {

struct HaproxyServer {
  std::string name;
  int64_t weight = 0;  // Now; 0 to 256.
  bool is_running = false;
  std::string state;  // "running", "stopped", "in maintenance", ...
};

// Of an answer to `show servers state BACKEND`. kNotFound with HAProxy's words if it is none.
Result<std::vector<HaproxyServer>> ParseServersState(std::string_view answer,
                                                     std::string_view backend);

struct HaproxyChoice {
  StreamPeer socket;  // "stats socket ... level admin".
  std::string backend;
};

// kInvalidArgument: a name that would end a command.
Result<void> CheckHaproxyName(std::string_view name);

class HaproxyEnactor final : public SplitEnactor {
 public:
  static constexpr int64_t kWeightMax = 256;

  // REQUIRES: CheckHaproxyName(choice.backend).
  explicit HaproxyEnactor(HaproxyChoice choice);

  Result<StandingWeights> Read() override;
  int64_t weight_sum() const override { return kWeightMax; }
  std::string Request(const std::vector<int64_t>& weights) const override;
  // If one of the commands is refused, those before it are undone.
  Result<void> Send(const std::vector<int64_t>& weights) override;

 private:
  Result<std::vector<HaproxyServer>> ReadServers() const;
  std::string Commands(const std::vector<int64_t>& weights) const;

  HaproxyChoice choice_;
  std::vector<HaproxyServer> read_;
};

}  // namespace rudderfish
