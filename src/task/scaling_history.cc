// SPDX-License-Identifier: Apache-2.0
#include "task/scaling_history.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace rudderfish {
namespace {

constexpr double kLeastRate = 0.05;  // Requests per second; fewer are as good as none.
constexpr double kLookBackS = 1800;
constexpr int kLongAgo = 1000;
// An error that is assumed while few were seen: relative, besides that of counting.
constexpr double kFirstSpread = 0.05;
constexpr double kTrustedSamples = 24;
// Of the normal law, at kScenarioShares.
constexpr double kNormal[kScenarios] = {-1.2816, 0, 0.6745, 1.2816, 1.8808};

}  // namespace

ScalingHistory::ScalingHistory(std::shared_ptr<const CapacityLadder> ladder, double interval_s,
                               double ready_s)
    : ladder_(std::move(ladder)),
      interval_s_(interval_s),
      // Samples are one interval old, and what is asked for serves until the decision after.
      lead_(std::clamp(static_cast<int>(std::ceil(ready_s / interval_s)) + 2, 2, kMostLead)),
      forecast_({.horizon = lead_}) {
  CHECK(interval_s > 0);
  const ServedApplication& application = ladder_->application();
  demand_s_ = application.DemandS();
  for (size_t w = 0; w < demand_s_.size(); ++w) {
    if (!application.workloads[w].scaled) demand_s_[w] = 0;
    slots_.push_back(application.workloads[w].slots);
  }
  Start();
}

void ScalingHistory::Start() {
  forecast_.Reset();
  samples_ = 0;
  near_ = far_ = high_share_ = rises_ = capacity_ = backlog_ = 0;
  rung_asked_ = rung_ready_ = 0;
  since_up_ = since_down_ = kLongAgo;
  std::fill(std::begin(errors_), std::end(errors_), 0.0);
}

// `sign` times the highest of sign * rate.
double ScalingHistory::Extreme(double seconds, int sign) const {
  const auto wanted = std::max<int64_t>(1, std::llround(seconds / interval_s_));
  const int64_t count = std::min({wanted, samples_, int64_t{kMostSamples}});
  double most = count > 0 ? -1e300 : 0;
  for (int64_t i = 1; i <= count; ++i)
    most = std::max(most, sign * rates_[(samples_ - i) % kMostSamples]);
  return most;
}

// What comes, and how far from it the rate may be.
void ScalingHistory::Expect() {
  near_ = forecast_.At(std::min(2, lead_));
  far_ = forecast_.At(lead_);
  const double far = std::max(far_, kLeastRate);
  const double counting = 1 / std::max(1.0, far * interval_s_);
  const double assumed = std::sqrt(kFirstSpread * kFirstSpread + counting);
  const double known = std::min(1.0, static_cast<double>(samples_) / kTrustedSamples);
  for (int s = 0; s < kScenarios; ++s) {
    const double off = forecast_.ErrorQuantile(lead_, kScenarioShares[s]);
    const double seen = std::log(std::max(far + off, kLeastRate) / far);
    errors_[s] = known * seen + (1 - known) * kNormal[s] * assumed;
    // Not nearer than counting alone brings about.
    if (kNormal[s] > 0) errors_[s] = std::max(errors_[s], kNormal[s] * std::sqrt(counting));
  }
}

void ScalingHistory::LookBack() {
  const double high = PeakPerS(kLookBackS), low = LeastPerS(kLookBackS);
  const double middle = (high + low) / 2;
  const auto wanted = static_cast<int64_t>(kLookBackS / interval_s_);
  const int64_t count = std::min({wanted, samples_, int64_t{kMostSamples}});
  int above = 0, rises = 0;
  bool was_above = true;
  for (int64_t i = count; i >= 1; --i) {
    const bool is_above = rates_[(samples_ - i) % kMostSamples] > middle;
    above += is_above ? 1 : 0;
    rises += is_above && !was_above ? 1 : 0;
    was_above = is_above;
  }
  high_share_ = count > 0 ? static_cast<double>(above) / static_cast<double>(count) : 0;
  rises_ = rises;
}

void ScalingHistory::Observe(const ScalingSight& sight) {
  CHECK(sight.replicas.size() == demand_s_.size() && sight.ready.size() == demand_s_.size());
  ++since_up_;
  ++since_down_;
  rung_asked_ = ladder_->RungWithin(sight.replicas);
  rung_ready_ = ladder_->RungWithin(sight.ready);
  double capacity = 1e12;
  for (size_t w = 0; w < demand_s_.size(); ++w) {
    if (demand_s_[w] > 0) capacity = std::min(capacity, sight.ready[w] * slots_[w] / demand_s_[w]);
  }
  if (sight.has_samples) {
    const double rate = sight.requests_per_s;
    forecast_.Observe(rate);
    rates_[samples_++ % kMostSamples] = rate;
    Expect();
    backlog_ = std::max(0.0, backlog_ + (rate - std::min(capacity_, capacity)) * interval_s_);
    LookBack();
  }
  capacity_ = capacity;
}

void ScalingHistory::Decided(int rung_before, int rung) {
  if (rung > rung_before) since_up_ = 0;
  if (rung < rung_before) since_down_ = 0;
}

}  // namespace rudderfish
