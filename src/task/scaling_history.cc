// SPDX-License-Identifier: Apache-2.0
#include "task/scaling_history.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace rudderfish {
namespace {

constexpr double kLeastRate = 0.05;  // Requests per second; fewer are as good as none.
// Windows of the past.
constexpr int kWindows = 3;
constexpr double kWindowsS[kWindows] = {300, 600, 1800};
constexpr int kLongAgo = 1000;
// An error that is assumed while few were seen: relative, besides that of counting.
constexpr double kFirstSpread = 0.05;
constexpr double kTrustedSamples = 24;
// Of the normal law, at kScenarioShares.
constexpr double kNormal[kScenarios] = {-1.2816, 0, 0.6745, 1.2816, 1.8808};

// The highest of `count` rates; 0 of none.
double HighestOf(const double* rates, int64_t count) {
  double a = 0, b = 0;  // None is negative.
  int64_t i = 0;
  for (; i + 1 < count; i += 2) {
    a = std::max(a, rates[i]);
    b = std::max(b, rates[i + 1]);
  }
  return i < count ? std::max({a, b, rates[i]}) : std::max(a, b);
}

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
  end_ = 0;
  near_ = far_ = high_share_ = rises_ = capacity_ = backlog_ = least_ = 0;
  std::fill(std::begin(peaks_), std::end(peaks_), 0.0);
  rung_asked_ = rung_ready_ = 0;
  since_up_ = since_down_ = kLongAgo;
  std::fill(std::begin(errors_), std::end(errors_), 0.0);
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
  int64_t counts[kWindows];
  for (int i = 0; i < kWindows; ++i) {
    const auto wanted = std::max<int64_t>(1, std::llround(kWindowsS[i] / interval_s_));
    counts[i] = std::min({wanted, samples_, int64_t{kMostSamples}});
  }
  const double* const end = rates_ + end_;
  peaks_[0] = HighestOf(end - counts[0], counts[0]);
  for (int i = 1; i < kWindows; ++i)
    peaks_[i] = std::max(peaks_[i - 1], HighestOf(end - counts[i], counts[i] - counts[i - 1]));
  const auto count = static_cast<int>(counts[kWindows - 1]);
  const double* const rates = end - count;
  double low = rates[0], other = low;
  for (int i = 0; i + 1 < count; i += 2) {
    low = std::min(low, rates[i]);
    other = std::min(other, rates[i + 1]);
  }
  least_ = std::min({low, other, rates[count - 1]});
  const double middle = (peaks_[kWindows - 1] + least_) / 2;
  int above = rates[0] > middle ? 1 : 0, rises = 0;
  for (int i = 1; i < count; ++i) {
    const int is_above = rates[i] > middle ? 1 : 0, was_above = rates[i - 1] > middle ? 1 : 0;
    above += is_above;
    rises += is_above & ~was_above;
  }
  high_share_ = static_cast<double>(above) / count;
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
    if (end_ == 2 * kMostSamples) {
      std::copy(rates_ + end_ - kMostSamples, rates_ + end_, rates_);
      end_ = kMostSamples;
    }
    rates_[end_++] = rate;
    ++samples_;
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
