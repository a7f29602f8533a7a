// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/wall_time.h"
#include "net/socket_address.h"

// What clients of xDS are told of each service: which endpoints its regions have, and which share
// of requests each region gets; and what they answer. Thread safe.

namespace rudderfish {

struct XdsRegion {
  std::string name;
  std::vector<SocketAddress> endpoints;
  int64_t weight = 0;  // 0: it gets nothing.
};

struct XdsService {
  std::string name;  // As clients ask for it: xds:///NAME.
  std::vector<XdsRegion> regions;
  UnixMillis version = 0;  // When the weights were set; 0: never, they are the first ones.
};

// Requests that clients have reported, since the process began.
struct XdsLoad {
  uint64_t issued = 0, succeeded = 0, failed = 0;
};

// What one client says of the version that it was told last.
struct XdsVerdict {
  UnixMillis version = 0;
  std::string refusal;  // Empty: it has accepted it.
};

class XdsBoard {
 public:
  using StreamId = uint64_t;

  // REQUIRES: each service once, each with a region.
  explicit XdsBoard(std::vector<XdsService> services) : services_(std::move(services)) {}

  std::vector<std::string> Services() const;
  std::optional<XdsService> Find(std::string_view service) const;

  // New weights, one for each region. Returns their version.
  UnixMillis Set(std::string_view service, const std::vector<int64_t>& weights);

  // The weights that were ever set, as text; and goes on with those of such a text, of services and
  // regions that are here as well. `source` is what messages call it; an error changes nothing.
  std::string Text() const;
  Result<void> Recall(std::string_view text, std::string_view source);

  // What a client's stream has said of a service's weights, or that it has ended.
  void Note(StreamId stream, const std::string& service, XdsVerdict verdict);
  void Forget(StreamId stream);
  std::vector<XdsVerdict> Verdicts(std::string_view service) const;

  void Count(const std::string& service, const std::string& region, const XdsLoad& more);
  XdsLoad LoadOf(std::string_view service, std::string_view region) const;

 private:
  mutable std::mutex mutex_;
  std::vector<XdsService> services_;
  std::map<StreamId, std::map<std::string, XdsVerdict, std::less<>>> verdicts_;
  std::map<std::pair<std::string, std::string>, XdsLoad> loads_;
};

}  // namespace rudderfish
