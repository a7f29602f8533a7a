// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "task/region_sight.h"

// What the Model says of a split of requests between regions that are seen as they are now: what
// decisions are explained by, guarded by and held against. The laws are those of the simulator
// (RunQueue), without chance and without caches.

namespace rudderfish {

// A request in the mean over those that were looked at. Parts of the objective are in units of
// RegionNetwork::unit_dollars.
struct SplitPrediction {
  enum Part { kNodes, kEgress, kCarbon, kLate, kWait, kParts };

  std::array<double, kParts> parts{};
  double response_s = 0;  // From the user and back,
  double queue_s = 0;     // of which in queues.
  double late_share = 0;

  double objective() const;
};

std::string_view SplitPartName(int part);  // nodes, egress, carbon, late, wait

// Predicts what requests of origins meet under `shares` [origin][target]. Only those of `origin`
// are looked at, of all if it is negative; all load the regions. Nodes are priced at the use that
// they are usually kept at (kUnitUse), as they follow the load. Regions that are not reachable or
// have no ready node turn requests away: those are late.
SplitPrediction PredictSplit(const RoutingQuestion& question, std::span<const double> shares,
                             int origin);

// One request more of `origin` in region `to`, where `shares` hold: the parts of its cost,
// congestion of others included. Infinite where the region does not serve.
SplitPrediction PredictOneMore(const RoutingQuestion& question, std::span<const double> shares,
                               int origin, int to);

}  // namespace rudderfish
