// SPDX-License-Identifier: Apache-2.0
#include "cloud/xds_enactor.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/text_table.h"
#include "net/tcp_check.h"

namespace rudderfish {
namespace {

constexpr std::chrono::milliseconds kConnectPatience(1500);  // A lost SYN is sent again after 1 s.
constexpr int kSilentReads = 2;                              // Until a region is not healthy.
constexpr std::chrono::milliseconds kClientPatience(1000);
constexpr std::chrono::milliseconds kBetweenLooks(5);

}  // namespace

Result<SocketAddress> ParseXdsEndpoint(std::string_view text) {
  TRY_ASSIGN(const HostAndPort parts, ParseHostAndPort(text));
  Result<SocketAddress> address = SocketAddress::Of(parts.host, parts.port);
  if (address && parts.has_port && parts.port != 0) return address;
  return Invalid("\"{}\": expected an IP address and a port, such as 10.0.0.7:8080", text);
}

XdsService ServiceOf(const XdsChoice& choice) {
  XdsService service{.name = choice.service, .regions = {}};
  const std::vector<int64_t> weights = Quantise(
      std::vector<double>(choice.regions.size(), 1.0 / static_cast<double>(choice.regions.size())),
      XdsEnactor::kWeightSum);
  for (size_t i = 0; i < choice.regions.size(); ++i) {
    service.regions.push_back({.name = choice.regions[i].region,
                               .endpoints = choice.regions[i].endpoints,
                               .weight = weights[i]});
  }
  return service;
}

XdsEnactor::XdsEnactor(XdsServer* server, XdsChoice choice)
    : server_(server), choice_(std::move(choice)), silent_(choice_.regions.size(), 0) {
  CHECK(server_->board().Find(choice_.service).has_value());
}

Result<StandingWeights> XdsEnactor::Read() {
  const XdsService service = *server_->board().Find(choice_.service);
  StandingWeights standing{
      .target = fmt::format("xds {}", service.name), .backends = {}, .notes = {}};
  std::vector<SocketAddress> all;
  for (const XdsRegion& region : service.regions)
    all.insert(all.end(), region.endpoints.begin(), region.endpoints.end());
  TRY_ASSIGN(const std::vector<char> accepts, AcceptConnections(all, kConnectPatience));
  auto at = accepts.begin();
  for (size_t r = 0; r < service.regions.size(); ++r) {
    const XdsRegion& region = service.regions[r];
    const auto end = at + static_cast<std::ptrdiff_t>(region.endpoints.size());
    const int64_t ready = std::count(at, end, 1);
    at = end;
    silent_[r] = ready > 0 ? 0 : silent_[r] + 1;
    standing.backends.push_back(
        {.name = region.name,
         .weight = region.weight,
         .is_healthy = silent_[r] < kSilentReads,
         .health = fmt::format("{} of {} accept connections", ready,
                               Counted(static_cast<int64_t>(region.endpoints.size()), "endpoint")),
         .ready = ready});
  }
  const std::vector<XdsVerdict> verdicts = server_->board().Verdicts(service.name);
  const int64_t follow = std::count_if(verdicts.begin(), verdicts.end(), [&](const auto& one) {
    return one.version >= service.version && one.refusal.empty();
  });
  standing.notes.push_back(fmt::format("{} connected, {} {} these weights",
                                       Counted(static_cast<int64_t>(verdicts.size()), "client"),
                                       follow, follow == 1 ? "follows" : "follow"));
  return standing;
}

std::string XdsEnactor::Request(const std::vector<int64_t>& weights) const {
  CHECK_EQ(weights.size(), choice_.regions.size());
  std::string text = fmt::format("ClusterLoadAssignment {}\n\n", choice_.service);
  for (size_t i = 0; i < weights.size(); ++i) {
    const XdsRegionChoice& region = choice_.regions[i];
    if (weights[i] == 0) {
      text += fmt::format("locality {{region: {}}}: left out\n", region.region);
      continue;
    }
    text +=
        fmt::format("locality {{region: {}}}: load_balancing_weight {}, {}\n", region.region,
                    weights[i], Counted(static_cast<int64_t>(region.endpoints.size()), "endpoint"));
  }
  return text;
}

Result<void> XdsEnactor::Send(const std::vector<int64_t>& weights) {
  const XdsService before = *server_->board().Find(choice_.service);
  TRY(server_->Set(choice_.service, weights));
  const UnixMillis version = server_->board().Find(choice_.service)->version;
  Result<void> answered = AwaitClients(version);
  if (answered) return {};
  std::vector<int64_t> old;
  for (const XdsRegion& region : before.regions) old.push_back(region.weight);
  TRY(server_->Set(choice_.service, old));
  return answered;
}

Result<void> XdsEnactor::AwaitClients(UnixMillis version) const {
  const SystemClock clock;
  const Instant end = clock.Now() + kClientPatience;
  while (true) {
    const std::vector<XdsVerdict> verdicts = server_->board().Verdicts(choice_.service);
    for (const XdsVerdict& one : verdicts) {
      if (one.version >= version && !one.refusal.empty())
        return Fail(ErrorCode::kFailedPrecondition, "xds {}: a client has {}", choice_.service,
                    one.refusal);
    }
    const bool all = std::all_of(verdicts.begin(), verdicts.end(),
                                 [&](const auto& one) { return one.version >= version; });
    if (all || clock.Now() >= end) return {};
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

}  // namespace rudderfish
