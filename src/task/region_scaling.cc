// SPDX-License-Identifier: Apache-2.0
#include "task/region_scaling.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "task/feature_rows.h"

namespace rudderfish {
namespace {

// Times the use that is usual: far enough apart that a step changes nodes.
constexpr double kUses[] = {0.62, 0.75, 0.88, 1, 1.1, 1.2, 1.35};
constexpr double kUseMost = 0.97;
constexpr double kSpotShares[] = {0, 0.33, 0.67, 1};

// Demands that are likely, in errors of forecasts, and how likely each is; and one that is rare.
struct Likely {
  double errors, weight;
};
constexpr Likely kDemands[] = {{-1, 0.25}, {0, 0.45}, {1, 0.22}, {2, 0.08}};
constexpr double kRareDemand = 3;
constexpr double kLostAtOnce[] = {0.2, 0.4, 0.6};  // Of spot nodes, where some are taken away.

constexpr double kCalmShare = 0.03;  // Of the hazard, while spot nodes are not scarce.

struct ChoiceView {
  const RegionChoice& c;
  const RegionOutlook& o;
};
using V = const ChoiceView&;
using P = const RegionPair&;
using O = const RegionOutlook&;

float F(double value) { return static_cast<float>(value); }

template <RegionTerm kTerm>
float Term(V v) {
  return F(v.c.cost[static_cast<int>(kTerm)]);
}
template <double RegionPair::*kField>
float Between(P p) {
  return F(p.*kField);
}
template <double RegionOutlook::*kField>
float Seen(O o) {
  return F(o.*kField);
}

constexpr std::array<Feature<RegionOutlook>, 13> kOutlookTable{{
    {"lost", "", 0.1, Seen<&RegionOutlook::lost>, "share of spot nodes lost lately, over 5 min"},
    {"storm", "", 1, Seen<&RegionOutlook::storm>,
     "how scarce spot nodes are taken to be: 1 once some are lost or refused, falling with time"},
    {"refused", "", 0.1, Seen<&RegionOutlook::refused>,
     "share of spot nodes ordered that did not come, over 5 min"},
    {"on_spot", "", 0.5, Seen<&RegionOutlook::on_spot>, "share of its nodes on spot"},
    {"pending", "", 0.1, Seen<&RegionOutlook::pending>, "share of its nodes that have not started"},
    {"price_ratio", "", 0.5, Seen<&RegionOutlook::price_ratio>,
     "price of spot over on-demand nodes"},
    {"start", "", 5, Seen<&RegionOutlook::start>, "intervals until a node serves"},
    {"trend", "", 0.2, Seen<&RegionOutlook::trend>,
     "load to prepare for over the load of now, in logarithms"},
    {"error", "", 0.1, Seen<&RegionOutlook::error>, "error of forecasts, relative"},
    {"surge", "", 0.2, Seen<&RegionOutlook::surge>,
     "load of now over that of the last 30 min, in logarithms"},
    {"size", "", 3, Seen<&RegionOutlook::size>, "nodes, in logarithms"},
    {"lost_elsewhere", "", 0.03, Seen<&RegionOutlook::lost_elsewhere>,
     "share of spot nodes lost lately in all regions"},
    {"notice", "", 0.2, Seen<&RegionOutlook::notice>,
     "share of intervals with a notice of the provider, over 5 min"},
}};

// Of the outlook's feature that is read from this field.
template <double RegionOutlook::*kField>
constexpr float ScaleOf() {
  for (const auto& feature : kOutlookTable) {
    if (std::get<0>(feature.get) == &Seen<kField>) return feature.scale;
  }
  return 1;
}

// A part of a choice, times what was seen of the region in its scale: both are about 1.
template <double RegionChoice::*kOfChoice, double RegionOutlook::*kOfRegion>
float Cross(V v) {
  constexpr float kScale = ScaleOf<kOfRegion>();
  return F(v.c.*kOfChoice * (v.o.*kOfRegion)) / kScale;
}
template <double RegionOutlook::*kOfRegion>
float ReclaimBy(V v) {
  constexpr float kScale = ScaleOf<kOfRegion>();
  return Term<RegionTerm::kReclaim>(v) * F(v.o.*kOfRegion) / kScale;
}

constexpr std::array<Feature<ChoiceView, RegionPair>, 63> kChoiceTable{{
    {"nodes", "units", 1, Term<RegionTerm::kNodes>, "dollars for nodes, in units a request"},
    {"carbon", "units", 1, Term<RegionTerm::kCarbon>, "carbon, likewise"},
    {"late", "units", 1, Term<RegionTerm::kLate>,
     "late requests and waiting at the demands that are likely, likewise"},
    {"reclaim", "units", 1, Term<RegionTerm::kReclaim>,
     "the same while spot nodes are lost, if that happens once an hour"},
    {"change", "units", 1, Term<RegionTerm::kChange>, "price of changes of nodes, likewise"},
    {"late_likely", "units", 1, [](V v) { return F(v.c.late_likely); },
     "late requests at the demands that are likely, whatever the spread"},
    {"late_high", "units", 1, [](V v) { return F(v.c.late_high); },
     "the same at a demand that is rare"},
    {"use", "", 0.3, [](V v) { return F(v.c.direction); }, "log use above the usual"},
    {"use_squared", "", 0.1, [](V v) { return F(v.c.direction * v.c.direction); }, "its square"},
    {"spot", "", 0.5, [](V v) { return F(v.c.spot_share); }, "share of spot nodes"},
    {"spot_squared", "", 0.5, [](V v) { return F(v.c.spot_share * v.c.spot_share); }, "its square"},
    {"shrink", "", 0.2, [](V v) { return F(v.c.shrink); }, "share of its nodes that it gives back"},
    {"grow", "", 0.2, [](V v) { return F(v.c.grow); }, "share of nodes more"},
    {"use_by_lost", "", 0.3, Cross<&RegionChoice::direction, &RegionOutlook::lost>, "times `lost`"},
    {"use_by_storm", "", 0.3, Cross<&RegionChoice::direction, &RegionOutlook::storm>,
     "times `storm`"},
    {"use_by_refused", "", 0.3, Cross<&RegionChoice::direction, &RegionOutlook::refused>,
     "times `refused`"},
    {"use_by_on_spot", "", 0.3, Cross<&RegionChoice::direction, &RegionOutlook::on_spot>,
     "times `on_spot`"},
    {"use_by_pending", "", 0.3, Cross<&RegionChoice::direction, &RegionOutlook::pending>,
     "times `pending`"},
    {"use_by_price_ratio", "", 0.3, Cross<&RegionChoice::direction, &RegionOutlook::price_ratio>,
     "times `price_ratio`"},
    {"use_by_start", "", 0.3, Cross<&RegionChoice::direction, &RegionOutlook::start>,
     "times `start`"},
    {"use_by_trend", "", 0.3, Cross<&RegionChoice::direction, &RegionOutlook::trend>,
     "times `trend`"},
    {"use_by_error", "", 0.3, Cross<&RegionChoice::direction, &RegionOutlook::error>,
     "times `error`"},
    {"use_by_surge", "", 0.3, Cross<&RegionChoice::direction, &RegionOutlook::surge>,
     "times `surge`"},
    {"use_by_size", "", 0.3, Cross<&RegionChoice::direction, &RegionOutlook::size>, "times `size`"},
    {"use_by_lost_elsewhere", "", 0.3,
     Cross<&RegionChoice::direction, &RegionOutlook::lost_elsewhere>, "times `lost_elsewhere`"},
    {"use_by_notice", "", 0.3, Cross<&RegionChoice::direction, &RegionOutlook::notice>,
     "times `notice`"},
    {"spot_by_lost", "", 0.5, Cross<&RegionChoice::spot_share, &RegionOutlook::lost>,
     "times `lost`"},
    {"spot_by_storm", "", 0.5, Cross<&RegionChoice::spot_share, &RegionOutlook::storm>,
     "times `storm`"},
    {"spot_by_refused", "", 0.5, Cross<&RegionChoice::spot_share, &RegionOutlook::refused>,
     "times `refused`"},
    {"spot_by_on_spot", "", 0.5, Cross<&RegionChoice::spot_share, &RegionOutlook::on_spot>,
     "times `on_spot`"},
    {"spot_by_pending", "", 0.5, Cross<&RegionChoice::spot_share, &RegionOutlook::pending>,
     "times `pending`"},
    {"spot_by_price_ratio", "", 0.5, Cross<&RegionChoice::spot_share, &RegionOutlook::price_ratio>,
     "times `price_ratio`"},
    {"spot_by_start", "", 0.5, Cross<&RegionChoice::spot_share, &RegionOutlook::start>,
     "times `start`"},
    {"spot_by_trend", "", 0.5, Cross<&RegionChoice::spot_share, &RegionOutlook::trend>,
     "times `trend`"},
    {"spot_by_error", "", 0.5, Cross<&RegionChoice::spot_share, &RegionOutlook::error>,
     "times `error`"},
    {"spot_by_surge", "", 0.5, Cross<&RegionChoice::spot_share, &RegionOutlook::surge>,
     "times `surge`"},
    {"spot_by_size", "", 0.5, Cross<&RegionChoice::spot_share, &RegionOutlook::size>,
     "times `size`"},
    {"spot_by_lost_elsewhere", "", 0.5,
     Cross<&RegionChoice::spot_share, &RegionOutlook::lost_elsewhere>, "times `lost_elsewhere`"},
    {"spot_by_notice", "", 0.5, Cross<&RegionChoice::spot_share, &RegionOutlook::notice>,
     "times `notice`"},
    {"shrink_by_lost", "", 0.2, Cross<&RegionChoice::shrink, &RegionOutlook::lost>, "times `lost`"},
    {"shrink_by_storm", "", 0.2, Cross<&RegionChoice::shrink, &RegionOutlook::storm>,
     "times `storm`"},
    {"shrink_by_refused", "", 0.2, Cross<&RegionChoice::shrink, &RegionOutlook::refused>,
     "times `refused`"},
    {"shrink_by_on_spot", "", 0.2, Cross<&RegionChoice::shrink, &RegionOutlook::on_spot>,
     "times `on_spot`"},
    {"shrink_by_pending", "", 0.2, Cross<&RegionChoice::shrink, &RegionOutlook::pending>,
     "times `pending`"},
    {"shrink_by_price_ratio", "", 0.2, Cross<&RegionChoice::shrink, &RegionOutlook::price_ratio>,
     "times `price_ratio`"},
    {"shrink_by_start", "", 0.2, Cross<&RegionChoice::shrink, &RegionOutlook::start>,
     "times `start`"},
    {"shrink_by_trend", "", 0.2, Cross<&RegionChoice::shrink, &RegionOutlook::trend>,
     "times `trend`"},
    {"shrink_by_error", "", 0.2, Cross<&RegionChoice::shrink, &RegionOutlook::error>,
     "times `error`"},
    {"shrink_by_surge", "", 0.2, Cross<&RegionChoice::shrink, &RegionOutlook::surge>,
     "times `surge`"},
    {"shrink_by_size", "", 0.2, Cross<&RegionChoice::shrink, &RegionOutlook::size>, "times `size`"},
    {"shrink_by_lost_elsewhere", "", 0.2,
     Cross<&RegionChoice::shrink, &RegionOutlook::lost_elsewhere>, "times `lost_elsewhere`"},
    {"shrink_by_notice", "", 0.2, Cross<&RegionChoice::shrink, &RegionOutlook::notice>,
     "times `notice`"},
    {"reclaim_by_lost", "", 1, ReclaimBy<&RegionOutlook::lost>, "times `lost`"},
    {"reclaim_by_storm", "", 1, ReclaimBy<&RegionOutlook::storm>, "times `storm`"},
    {"reclaim_by_notice", "", 1, ReclaimBy<&RegionOutlook::notice>, "times `notice`"},
    {"pair_foreign", "", 1, Between<&RegionPair::foreign>, "1 for a pair of two regions"},
    {"pair_trip", "", 1, Between<&RegionPair::trip>, "its round trip over the deadline"},
    {"pair_lost", "", 0.1, Between<&RegionPair::lost>,
     "`lost` of the region that serves, times its share of spot nodes"},
    {"pair_storm", "", 0.5, Between<&RegionPair::storm>, "its `storm`, likewise"},
    {"pair_notice", "", 0.1, Between<&RegionPair::notice>, "its `notice`, likewise"},
    {"pair_full", "", 0.5, Between<&RegionPair::full>, "its load over what its ready nodes serve"},
    {"pair_pending", "", 0.1, Between<&RegionPair::pending>, "its `pending`"},
    {"pair_surge", "", 0.2, Between<&RegionPair::surge>, "its `surge`"},
}};
static_assert(kChoiceTable[kChoiceTable.size() - RegionScalingTask::kPairFeatures].name ==
              "pair_foreign");

// std::ceil and std::lround of what is not negative, without a call of a library.
int RoundUp(double value) {
  const int below = static_cast<int>(value);
  return value > below ? below + 1 : below;
}
int RoundToNearest(double value) {
  const int below = static_cast<int>(value);
  return value - below >= 0.5 ? below + 1 : below;
}

double PreparedFor(const RegionScalingQuestion& q) { return std::max(q.load_per_s, 1e-3); }

double& TermOf(RegionTerm term, RegionChoice* choice) {
  return choice->cost[static_cast<int>(term)];
}

// Late requests and waiting with so many ready nodes, in units a request, if demand is so many
// errors of forecasts higher.
double LateAt(const RegionScalingQuestion& q, int nodes, double errors) {
  const double load = PreparedFor(q);
  return q.laws.QueueCost(nodes, std::max(0.0, load * (1 + errors * q.error))) / load;
}

// What choices of one use have in common: all but how many of their nodes are on spot.
RegionChoice WithoutSpot(const RegionScalingQuestion& q, const RegionScalingRule& rule,
                         double use) {
  const RegionLaws& laws = q.laws;
  const RegionNetwork& network = laws.network();
  const RegionService& service = network.service;
  const double load = PreparedFor(q);
  const int most = std::min(network.regions[q.region].nodes_max, laws.queue().nodes_max());
  const int nodes =
      std::clamp(static_cast<int>(std::ceil(load / (service.node_per_s() * use))), 1, most);
  RegionChoice choice{.use = use};
  choice.nodes[kOnDemand] = nodes;
  const double busy = std::min(1.0, load / (nodes * service.node_per_s()));
  const double kw = nodes * service.WattsAt(busy) * network.regions[q.region].pue / 1000;
  TermOf(RegionTerm::kCarbon, &choice) = kw * q.seen.carbon_g_per_kwh / 1000 / 3600 *
                                         network.objective.carbon_per_kg / laws.unit() / load;
  for (const Likely& one : kDemands) {
    const double late = LateAt(q, nodes, one.errors);
    choice.late_likely += one.weight * late;
    TermOf(RegionTerm::kLate, &choice) +=
        one.weight * (rule.spread == 1 ? late : LateAt(q, nodes, one.errors * rule.spread));
  }
  choice.late_high = LateAt(q, nodes, kRareDemand);
  const int now = q.seen.nodes();
  choice.direction = std::log(use / rule.use);
  choice.shrink = std::max(0, now - nodes) / std::max(1.0, static_cast<double>(now));
  choice.grow = std::max(0, nodes - now) / std::max(1.0, static_cast<double>(now));
  return choice;
}

// `before`: LateAt of all nodes, where forecasts do not err.
void OnSpot(const RegionScalingQuestion& q, double spot_share, double before,
            RegionChoice* choice) {
  const RegionLaws& laws = q.laws;
  const double load = PreparedFor(q);
  const int nodes = choice->nodes[kOnDemand], spot = RoundToNearest(spot_share * nodes);
  choice->spot_share = spot_share;
  choice->nodes[kOnDemand] = nodes - spot;
  choice->nodes[kSpot] = spot;
  const double per_h = choice->nodes[0] * q.seen.node_per_h[0] + spot * q.seen.node_per_h[1];
  TermOf(RegionTerm::kNodes, choice) = per_h / 3600 / laws.unit() / load;
  if (spot > 0) {
    const double in_loss = q.interval_s / 3600;  // Until traffic is sent elsewhere.
    for (const double lost : kLostAtOnce) {
      const int left = nodes - RoundUp(lost * spot);
      TermOf(RegionTerm::kReclaim, choice) += in_loss * std::max(0.0, LateAt(q, left, 0) - before) /
                                              static_cast<double>(std::size(kLostAtOnce));
    }
  }
  const int changes =
      std::abs(choice->nodes[0] - q.seen.nodes(0)) + std::abs(spot - q.seen.nodes(1));
  TermOf(RegionTerm::kChange, choice) = changes * laws.network().objective.change *
                                        laws.mean_on_demand_per_h() / 60 / laws.unit() /
                                        (load * q.hold_s);
}

}  // namespace

const FeatureTable& RegionScalingTask::Features() {
  static const auto* table = new FeatureTable{.candidate = Describe(kChoiceTable),
                                              .node = {},
                                              .workload = {},
                                              .context = Describe(kOutlookTable)};
  return *table;
}

std::string RegionScalingTask::FeatureHash() { return HashOfFeatures(kName, Features()); }

std::vector<float> RegionScalingTask::ModelWeights(const RegionScalingRule& rule) {
  std::vector<float> weights(Features().candidate.size());
  // The first features are the terms.
  for (int i = 0; i < kRegionTerms; ++i)
    weights[i] = static_cast<float>(-Features().candidate[i].scale);
  weights[static_cast<int>(RegionTerm::kReclaim)] *=
      static_cast<float>(kCalmShare * rule.hazard_per_h);
  const auto add = [&](std::string_view name, double weight) {
    for (size_t i = 0; i < weights.size(); ++i) {
      const FeatureDescription& feature = Features().candidate[i];
      if (feature.name == name) weights[i] += static_cast<float>(weight * feature.scale);
    }
  };
  add("reclaim_by_storm", -rule.hazard_per_h);
  // (spot - usual)^2, without what is the same for all choices.
  add("use_squared", -rule.pull);
  add("spot_squared", -rule.pull);
  add("spot", 2 * rule.pull * rule.spot_share);
  add("pair_storm", -rule.risk);
  return weights;
}

void RegionScalingTask::WritePair(const RegionPair& pair, float* row) {
  WriteRow<kChoiceTable, kWidths.candidate>(pair, row);
}

void RegionScalingTask::Space(const RegionScalingQuestion& question, const RegionScalingRule& rule,
                              RegionScalingSpace* space) {
  space->choices.clear();
  for (const double times : kUses) {
    const double use = std::min(times * rule.use, kUseMost);
    const RegionChoice without = WithoutSpot(question, rule, use);
    const double late = LateAt(question, without.nodes[kOnDemand], 0);
    for (const double spot : kSpotShares) {
      if (spot > 0 && !question.has_spot) break;
      OnSpot(question, spot, late, &space->choices.emplace_back(without));
    }
  }
}

void RegionScalingTask::Encode(const RegionScalingQuestion& question,
                               const RegionScalingSpace& space, GraphBatch* batch) {
  const auto count = static_cast<int>(space.choices.size());
  float* row = AddRows(count, kWidths.candidate, &batch->candidates);
  CandidateEnds* ends = AddEnds(count, batch);
  for (const RegionChoice& choice : space.choices) {
    WriteRow<kChoiceTable, kWidths.candidate>(ChoiceView{choice, question.outlook}, row);
    row += kWidths.candidate;
    *ends++ = {kNone, kNone, kNone};
  }
  WriteRow<kOutlookTable, kWidths.context>(question.outlook,
                                           AddRows(1, kWidths.context, &batch->context));
  CloseWithoutTables(batch);
}

}  // namespace rudderfish
