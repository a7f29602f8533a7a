// SPDX-License-Identifier: Apache-2.0
#include "policy/region_planner.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace rudderfish {
namespace {

constexpr double kFastS = 300, kSlowS = 1800;  // Of smoothing.
// Of how scarce spot nodes are taken to be: how long that is remembered, what is a sign of it, and
// how much of it is left once an order is met.
constexpr double kStormS = 2700, kSomeLost = 0.05, kSomeRefused = 0.3, kAfterGrant = 0.3;
// How likely scarcity is before a notice, and how often there is one without it.
constexpr double kUsuallyScarce = 0.05, kFalseNotices = 0.02;
constexpr double kSmallestLoad = 1;
constexpr double kCompetes = 0.3;  // Units: within so much of the cheapest, a price may decide.

double Smoothed(double before, double now, double memory_s, double interval_s) {
  const double kept = std::exp(-interval_s / memory_s);
  return kept * before + (1 - kept) * now;
}

// Bayes' rule: what a notice, or that there is none, makes of a probability of scarcity. A notice
// is `ratio` times likelier under it.
double AfterNotice(double before, bool notice, double ratio) {
  const double likelier =
      notice ? ratio : std::max(0.0, 1 - ratio * kFalseNotices) / (1 - kFalseNotices);
  const double scarce = std::clamp(before, kUsuallyScarce, 1 - kUsuallyScarce) * likelier;
  return scarce / (scarce + 1 - std::clamp(before, kUsuallyScarce, 1 - kUsuallyScarce));
}

double LogRatio(double a, double b) {
  return std::log(std::max(a, kSmallestLoad) / std::max(b, kSmallestLoad));
}

size_t FirstPairFeature() {
  return RegionScalingTask::Features().candidate.size() - RegionScalingTask::kPairFeatures;
}

std::span<const float> PairWeights(const RegionPlanning& planning) {
  return std::span(planning.weights).subspan(FirstPairFeature());
}

}  // namespace

RegionPlanner::RegionPlanner(std::shared_ptr<const RegionPlanning> planning, int regions)
    : planning_(std::move(planning)),
      history_(static_cast<size_t>(regions)),
      batch_{.widths = RegionScalingTask::kWidths} {
  CHECK_EQ(planning_->weights.size(), RegionScalingTask::Features().candidate.size());
  space_.choices.reserve(RegionScalingTask::kChoicesMax);
  scores_.reserve(RegionScalingTask::kChoicesMax);
  batch_.candidates.reserve(size_t{RegionScalingTask::kChoicesMax} *
                            size_t{RegionScalingTask::kWidths.candidate});
  batch_.context.reserve(static_cast<size_t>(RegionScalingTask::kWidths.context));
  batch_.ends.reserve(RegionScalingTask::kChoicesMax);
  const std::span<const float> of_pairs = PairWeights(*planning_);
  looks_at_pairs_ = planning_->seen != nullptr ||
                    std::any_of(of_pairs.begin(), of_pairs.end(), [](float w) { return w != 0; });
  pair_rows_.resize(history_.size() * size_t{RegionScalingTask::kWidths.candidate});
  pair_scores_.resize(history_.size());
  pairs_.resize(history_.size());
  for (auto* begin : {&batch_.candidate_begin, &batch_.node_begin, &batch_.workload_begin,
                      &batch_.placement_begin, &batch_.call_begin}) {
    begin->reserve(2);
  }
}

void RegionPlanner::Plan(const RoutingQuestion& question, const Needs& needs,
                         std::span<const int> asked, RegionAutoscaler* autoscaler) {
  Remember(question, asked);
  const int turns =
      std::max(1, static_cast<int>(std::lround(planning_->hold_s / question.interval_s)));
  for (int r = 0; r < question.laws->network().size(); ++r) {
    if (question.step > 0 && (question.step + r) % turns != 0) continue;
    Ask(question, needs, r);
    if (planning_->seen) planning_->seen({scores_, Row(0), 0});
    const RegionChoice& best = space_.choices[Best()];
    autoscaler->Aim(r, best.use, best.spot_share);
  }
}

void RegionPlanner::Remember(const RoutingQuestion& question, std::span<const int> asked) {
  double lost = 0, had = 0;
  for (size_t r = 0; r < history_.size(); ++r) {
    const RegionSight& seen = question.regions[r];
    Seen& own = history_[r];
    const double spot = seen.ready[kSpot] + seen.lost;
    const double share = spot > 0 ? seen.lost / spot : 0;
    own.lost = Smoothed(own.lost, share, kFastS, question.interval_s);
    // What was ordered an interval ago, and how much of that did not come.
    const int ordered = std::max(0, asked[r * kNodePrices + kSpot] - own.had);
    const int missing =
        std::clamp(asked[r * kNodePrices + kSpot] - seen.nodes(kSpot) - seen.lost, 0, ordered);
    const double refused = ordered > 0 ? static_cast<double>(missing) / ordered : 0;
    own.refused = Smoothed(own.refused, refused, kFastS, question.interval_s);
    own.had = seen.nodes(kSpot);
    own.storm *= std::exp(-question.interval_s / kStormS);
    if (share > kSomeLost || refused > kSomeRefused) {
      own.storm = 1;
    } else if (ordered > 1) {  // All came.
      own.storm *= kAfterGrant;
    }
    own.notice = Smoothed(own.notice, seen.notice ? 1 : 0, kFastS, question.interval_s);
    if (question.has_notices && planning_->rule.notice > 1)
      own.storm = AfterNotice(own.storm, seen.notice, planning_->rule.notice);
    own.load = question.step == 0
                   ? seen.load_per_s
                   : Smoothed(own.load, seen.load_per_s, kSlowS, question.interval_s);
    lost += seen.lost;
    had += spot;
  }
  lost_everywhere_ =
      Smoothed(lost_everywhere_, had > 0 ? lost / had : 0, kFastS, question.interval_s);
}

// Without what only the question about its nodes knows.
RegionOutlook RegionPlanner::OutlookOf(const RoutingQuestion& question, int region) const {
  const RegionSight& seen = question.regions[region];
  const Seen& own = history_[region];
  const double nodes = std::max(1, seen.nodes());
  return {.lost = own.lost,
          .storm = own.storm,
          .refused = own.refused,
          .on_spot = seen.nodes(kSpot) / nodes,
          .pending = (seen.pending[0] + seen.pending[1]) / nodes,
          .price_ratio = seen.node_per_h[kSpot] / std::max(1e-9, seen.node_per_h[kOnDemand]),
          .start = question.laws->network().regions[region].start_high_s / question.interval_s,
          .surge = LogRatio(seen.load_per_s, own.load),
          .size = std::log(nodes),
          .lost_elsewhere = lost_everywhere_,
          .notice = own.notice};
}

void RegionPlanner::PricePairs(const RoutingQuestion& question, std::span<double> costs) {
  const RegionNetwork& network = question.laws->network();
  for (size_t to = 0; to < pairs_.size(); ++to) {
    const RegionSight& seen = question.regions[to];
    const RegionOutlook outlook = OutlookOf(question, static_cast<int>(to));
    const double serves = std::max(1, seen.ready_nodes()) * network.service.node_per_s();
    pairs_[to] = {.lost = outlook.lost * outlook.on_spot,
                  .storm = outlook.storm * outlook.on_spot,
                  .notice = outlook.notice * outlook.on_spot,
                  .full = seen.load_per_s / serves,
                  .pending = outlook.pending,
                  .surge = outlook.surge};
  }
  const size_t n = pairs_.size();
  for (size_t from = 0; from < n; ++from)
    PriceFrom(question, static_cast<int>(from), costs.subspan(from * n, n));
}

void RegionPlanner::PriceFrom(const RoutingQuestion& question, int origin,
                              std::span<double> costs) {
  const RegionNetwork& network = question.laws->network();
  const std::span<const float> weights = PairWeights(*planning_);
  constexpr auto kWidth = static_cast<size_t>(RegionScalingTask::kWidths.candidate);
  for (size_t to = 0; to < costs.size(); ++to) {
    const auto target = static_cast<int>(to);
    RegionPair pair = pairs_[to];
    pair.foreign = target == origin ? 0.0 : 1.0;
    pair.trip = network.TripS(origin, target) / network.service.deadline_s;
    float* row = pair_rows_.data() + to * kWidth;
    RegionScalingTask::WritePair(pair, row);
    const float* features = row + FirstPairFeature();
    double gain = 0;
    for (size_t f = 0; f < weights.size(); ++f) gain += weights[f] * features[f];
    costs[to] -= gain;
  }
  if (!planning_->seen || question.step % network.size() != origin) return;
  // What is far dearer than the cheapest, or not there, no price brings near.
  const double dearest = *std::min_element(costs.begin(), costs.end()) + kCompetes;
  for (size_t to = 0; to < costs.size(); ++to)
    pair_scores_[to] = static_cast<float>(-std::min(costs[to], dearest));
  if (std::isfinite(dearest))
    planning_->seen({pair_scores_, pair_rows_.data(), FirstPairFeature()});
}

void RegionPlanner::Ask(const RoutingQuestion& question, const Needs& needs, int region) {
  const RegionSight& seen = question.regions[region];
  const double load = needs.load_per_s[region];
  RegionScalingQuestion asked{.laws = *question.laws,
                              .seen = seen,
                              .region = region,
                              .has_spot = question.has_spot,
                              .interval_s = question.interval_s,
                              .load_per_s = load,
                              .error = needs.error[region],
                              .hold_s = planning_->hold_s,
                              .outlook = OutlookOf(question, region)};
  asked.outlook.trend = LogRatio(load, seen.load_per_s);
  asked.outlook.error = needs.error[region];
  RegionScalingTask::Space(asked, planning_->rule, &space_);
  batch_.Clear();
  RegionScalingTask::Encode(asked, space_, &batch_);
  scores_.assign(space_.choices.size(), 0);
  // Feature by feature: sums of different choices do not wait for each other.
  constexpr auto kWidth = static_cast<size_t>(RegionScalingTask::kWidths.candidate);
  for (size_t f = 0; f < FirstPairFeature(); ++f) {
    const float weight = planning_->weights[f];
    if (weight == 0) continue;
    const float* feature = batch_.candidates.data() + f;
    for (size_t i = 0; i < scores_.size(); ++i) scores_[i] += weight * feature[i * kWidth];
  }
}

int RegionPlanner::Best() const {
  return static_cast<int>(std::max_element(scores_.begin(), scores_.end()) - scores_.begin());
}

}  // namespace rudderfish
