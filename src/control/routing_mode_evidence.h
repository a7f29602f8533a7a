// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/mode_ladder.h"
#include "control/routing_evidence.h"
#include "control/sqlite_routings.h"

// The evidence by which routing is promoted: its decisions, and how right the Model was about
// response times (control/routing_evidence.h). Each route counts by itself: what one lacks, all of
// routing lacks. One thread.

namespace rudderfish {

inline constexpr ModeLadder::Kind kRoutingLadder{.name = "routing", .record = "decision"};

class RoutingModeEvidence final : public ModeEvidence {
 public:
  // What the journal keeps of routes outlives it.
  explicit RoutingModeEvidence(SqliteRoutings* routings) : routings_(routings) {}

  // Of which routes there is to be evidence.
  void Watch(std::vector<std::string> routes) { routes_ = std::move(routes); }

  Result<std::vector<std::string>> Missing(const KeptMode& now, Mode to, int64_t from) override;
  Result<std::optional<std::string>> WhyWorse(UnixMillis since) override;
  Result<OrderedJson> Describe(const KeptMode& now) override;

 private:
  Result<std::vector<RouteEvidence>> Read(const KeptMode& now, int64_t from) const;
  Result<std::vector<RouteTrial>> ReadTrials(UnixMillis since) const;

  SqliteRoutings* routings_;
  std::vector<std::string> routes_;
};

}  // namespace rudderfish
