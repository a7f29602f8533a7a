// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cloud/data_path.h"

// Weights of the servers of one backend of HAProxy, by its Runtime API (HAProxy management guide,
// section 9.3, "Unix Socket commands"): a stats socket with `level admin`, a file or TCP. Weights
// are from 0 to 256; they are sent in one line, and hold until HAProxy restarts. A server is
// healthy while its checks say so, or while it has none and is not in maintenance.

namespace rudderfish {

struct HaproxyServer {
  std::string name;
  int weight = 0;
  RegionState state = RegionState::kUnseen;

  bool operator==(const HaproxyServer&) const = default;
};

// The answer to `show servers state BACKEND`. kNotFound for the words that HAProxy has for a
// backend that it does not know.
Result<std::vector<HaproxyServer>> ReadHaproxyServers(std::string_view answer,
                                                      const std::string& backend);

struct HaproxyOptions {
  std::string socket;  // A path, or HOST:PORT.
  std::string backend;
  std::map<std::string, std::string> regions;  // Of servers by name; none: the server's name.
  Duration limit = std::chrono::seconds(5);    // Of one exchange.
};

class HaproxyPath final : public DataPath {
 public:
  explicit HaproxyPath(HaproxyOptions options) : options_(std::move(options)) {}

  std::string name() const override { return "haproxy/" + options_.backend; }
  int weight_total() const override { return 256; }
  Result<std::vector<WeightedBackend>> Read() override;
  Result<std::string> RequestOf(const std::vector<int>& weights) const override;
  Result<void> Write(const std::vector<int>& weights) override;

 private:
  Result<std::string> Ask(const std::string& command) const;

  HaproxyOptions options_;
  std::vector<HaproxyServer> read_;
};

}  // namespace rudderfish
