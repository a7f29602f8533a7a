// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <vector>

#include "base/graph_batch.h"
#include "task/region_sight.h"
#include "task/task.h"

// How busy the nodes of one region are to be for the next minutes, and which share of them is on
// spot: a choice among some of both. Each is described by what the Model predicts of it (dollars,
// carbon, requests that are late at the demands that are likely and while spot nodes are lost), by
// how it differs from now, and by what was seen of the region. No feature names a region or a
// price: they are ratios, so that one set of weights serves any regions.

namespace rudderfish {

// The parts of a choice's cost, in units a request (RegionNetwork::unit_dollars); kReclaim is that
// of one loss of spot nodes an hour.
enum class RegionTerm { kNodes, kCarbon, kLate, kReclaim, kChange };
inline constexpr int kRegionTerms = 5;

// What choices are made of.
struct RegionScalingRule {
  double use = 0.6;         // The usual one: choices are multiples of it.
  double spot_share = 0.5;  // Likewise.
  double pull = 0;          // Price of differing from both: of the square of the difference.
  double spread = 1;        // Times the errors of forecasts so far.
  double hazard_per_h = 4;  // How often spot nodes are taken away while they are scarce.
  double notice = 8;  // How many times likelier a notice is while they are; 1: it says nothing.
  // Price of a request that a region serves on spot nodes alone while they are surely scarce, in
  // units; by the share of them and the belief else.
  double risk = 0;
};

// What was seen of a region. Shares and ratios; logarithms where the table says so.
struct RegionOutlook {
  double lost = 0, storm = 0, refused = 0, on_spot = 0, pending = 0, price_ratio = 0;
  double start = 0, trend = 0, error = 0, surge = 0, size = 0, lost_elsewhere = 0;
  double notice = 0;
};

struct RegionScalingQuestion {
  const RegionLaws& laws;
  const RegionSight& seen;
  int region = 0;
  bool has_spot = false;
  double interval_s = 60;
  double load_per_s = 0;  // To prepare for.
  double error = 0;       // Root mean square error of forecasts of it, relative.
  double hold_s = 300;    // How long the answer holds.
  RegionOutlook outlook;
};

struct RegionChoice {
  double use = 0, spot_share = 0;
  int nodes[kNodePrices] = {};
  std::array<double, kRegionTerms> cost{};
  double late_likely = 0;  // As kLate, without the rule's spread,
  double late_high = 0;    // and at a demand that is rare.
  double direction = 0;    // ln(use over the usual one).
  double shrink = 0, grow = 0;
};

// Requests of one region's users that another region may serve, as a learned price sees them: what
// the Model's own price of them leaves out. Shares and ratios, of the region that serves but for
// the first two.
struct RegionPair {
  double foreign = 0;                      // 1 where it is another region.
  double trip = 0;                         // Round trip, over the deadline.
  double lost = 0, storm = 0, notice = 0;  // As RegionOutlook, times its share of spot nodes.
  double full = 0;                         // Load over what its ready nodes serve.
  double pending = 0, surge = 0;           // As RegionOutlook.
};

struct RegionScalingSpace {
  std::vector<RegionChoice> choices;
};

class RegionScalingTask {
 public:
  static constexpr std::string_view kName = "region-scaling";
  static constexpr GraphWidths kWidths{.candidate = 64, .node = 0, .workload = 0, .context = 16};
  static constexpr int kChoicesMax = 28;
  static const FeatureTable& Features();
  static std::string FeatureHash();

  // The last features of candidates are those of pairs: 0 for choices, as all others are for pairs.
  // With them one set of weights has both tiers, where requests go and what regions have for them.
  static constexpr int kPairFeatures = 8;
  // One row, of kWidths.candidate.
  static void WritePair(const RegionPair& pair, float* row);

  // Of each feature, by which the score of a choice is minus its predicted cost, and minus what
  // differing from the usual costs; of a pair, minus its price of risk.
  static std::vector<float> ModelWeights(const RegionScalingRule& rule);

  // Only on-demand ones where there is no spot.
  static void Space(const RegionScalingQuestion& question, const RegionScalingRule& rule,
                    RegionScalingSpace* space);

  // Appends the question, candidates in the order of the choices.
  static void Encode(const RegionScalingQuestion& question, const RegionScalingSpace& space,
                     GraphBatch* batch);
};

}  // namespace rudderfish
