// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cloud/split_enactor.h"
#include "cloud/xds_server.h"

// A split that clients of xDS follow by themselves: each region is a locality with a weight. What
// stands is what our own server tells them. A region is healthy if an endpoint of it accepts
// connections from here, or did so when it was read before: one that is lost drains no region.

namespace rudderfish {

struct XdsRegionChoice {
  std::string region;
  std::vector<SocketAddress> endpoints;
};

struct XdsChoice {
  std::string service;
  std::vector<XdsRegionChoice> regions;  // At least one, each with an endpoint.
};

// "10.0.0.7:8080": xDS names endpoints by address. kInvalidArgument otherwise.
Result<SocketAddress> ParseXdsEndpoint(std::string_view text);

// With equal weights, until others are set.
XdsService ServiceOf(const XdsChoice& choice);

class XdsEnactor final : public SplitEnactor {
 public:
  static constexpr int64_t kWeightSum = 10'000;

  // REQUIRES: `server` has the service, and outlives this.
  XdsEnactor(XdsServer* server, XdsChoice choice);

  Result<StandingWeights> Read() override;
  int64_t weight_sum() const override { return kWeightSum; }
  std::string Request(const std::vector<int64_t>& weights) const override;
  // Returns once all clients that are connected have answered, after a second at most. One that
  // refuses makes it set what stood before: kFailedPrecondition.
  Result<void> Send(const std::vector<int64_t>& weights) override;

 private:
  Result<void> AwaitClients(UnixMillis version) const;

  XdsServer* server_;
  XdsChoice choice_;
  std::vector<int> silent_;  // [region] Reads in a row in which no endpoint has accepted.
};

}  // namespace rudderfish
