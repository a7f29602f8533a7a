// SPDX-License-Identifier: Apache-2.0
#include "scenario/traffic.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <span>

#include "base/check.h"

namespace rudderfish {
namespace {

constexpr uint64_t kCurveChance = 0x6C6F6164;  // A stream of its own.

double SecondsOf(SimTime time) { return static_cast<double>(time.count()) / 1e9; }

void FillDiurnal(const Traffic& traffic, Rng* rng, RateCurve* curve) {
  const double phase = rng->Uniform(), period_s = SecondsOf(traffic.period);
  for (size_t i = 0; i < curve->per_s.size(); ++i) {
    const double turn = static_cast<double>(i) / period_s + phase;
    const double share = (1 - std::cos(2 * std::numbers::pi * turn)) / 2;
    curve->per_s[i] = traffic.low_per_s + share * (traffic.high_per_s - traffic.low_per_s);
  }
}

// Straight lines through corners (time, rate), the first value before and the last after them.
void FillCorners(std::span<const std::array<double, 2>> corners, RateCurve* curve) {
  size_t next = 0;
  for (size_t i = 0; i < curve->per_s.size(); ++i) {
    const auto t = static_cast<double>(i);
    while (next < corners.size() && corners[next][0] <= t) ++next;
    if (next == 0) {
      curve->per_s[i] = corners[0][1];
    } else if (next == corners.size()) {
      curve->per_s[i] = corners.back()[1];
    } else {
      const auto& [from_s, from] = corners[next - 1];
      const auto& [to_s, to] = corners[next];
      curve->per_s[i] = from + (t - from_s) / (to_s - from_s) * (to - from);
    }
  }
}

void FillRamp(const Traffic& traffic, RateCurve* curve) {
  const std::array<double, 2> corners[] = {{SecondsOf(traffic.begin), traffic.low_per_s},
                                           {SecondsOf(traffic.end), traffic.high_per_s}};
  FillCorners(corners, curve);
}

void FillFlash(const Traffic& traffic, Rng* rng, RateCurve* curve) {
  const double at_s = SecondsOf(traffic.at.Draw(rng));
  const double up_s = at_s + SecondsOf(traffic.rise), down_s = up_s + SecondsOf(traffic.hold);
  const std::array<double, 2> corners[] = {{at_s, traffic.low_per_s},
                                           {up_s, traffic.high_per_s},
                                           {down_s, traffic.high_per_s},
                                           {down_s + SecondsOf(traffic.fall), traffic.low_per_s}};
  FillCorners(corners, curve);
}

void FillBursts(const Traffic& traffic, Rng* rng, RateCurve* curve) {
  const auto size = static_cast<double>(curve->per_s.size());
  std::fill(curve->per_s.begin(), curve->per_s.end(), traffic.low_per_s);
  // At least a second each, or the loop would not end.
  for (double at_s = 0; at_s < size;) {
    at_s += std::max(1.0, SecondsOf(traffic.every.Draw(rng)));
    const double end_s = at_s + std::max(1.0, SecondsOf(traffic.lasts.Draw(rng)));
    for (double t = std::ceil(at_s); t < std::min(end_s, size); ++t)
      curve->per_s[static_cast<size_t>(t)] = traffic.high_per_s;
    at_s = end_s;
  }
}

struct Stage {
  double seconds, users;
};

// Facts of the shape: gym-hpa's successor drew these blocks, a spike always followed by a steady
// one; the most users are 700.
constexpr Stage kSteadyBlock[] = {{300, 100}},
                kGrowthBlock[] = {{420, 300}, {480, 300}, {900, 100}},
                kMinorSpike[] = {{60, 500}, {300, 100}}, kMajorSpike[] = {{120, 700}, {420, 100}};
constexpr double kStageRampS = 30, kUsersAtPeak = 700;

void FillStages(const Traffic& traffic, Rng* rng, RateCurve* curve) {
  constexpr std::span<const Stage> kBlocks[] = {kSteadyBlock, kGrowthBlock, kMinorSpike,
                                                kMajorSpike};
  const double per_user = traffic.low_per_s * traffic.high_per_s / kUsersAtPeak;
  std::vector<std::array<double, 2>> corners;
  double at_s = 0, users = -1;
  uint32_t block = 0;
  while (at_s < static_cast<double>(curve->per_s.size())) {
    block = block >= 2 ? 0 : rng->Below(4);
    for (const Stage& stage : kBlocks[block]) {
      if (users < 0) users = stage.users;  // It begins as it goes on, not from nothing.
      corners.push_back({at_s, users * per_user});
      corners.push_back({at_s + kStageRampS, stage.users * per_user});
      users = stage.users;
      at_s += stage.seconds;
    }
  }
  FillCorners(corners, curve);
}

// Bins of the part of the trace that is replayed, for whatever use.
TracePart WholePartOf(const Traffic& traffic) {
  CHECK(traffic.trace != nullptr && !traffic.trace->counts.empty());
  const size_t count = traffic.trace->counts.size();
  const auto bins = static_cast<double>(count);
  const size_t first = std::min(static_cast<size_t>(std::floor(traffic.from * bins)), count - 1);
  const auto last = static_cast<size_t>(std::ceil(traffic.upto * bins));
  return {first, std::clamp(last, first + 1, count)};
}

}  // namespace

bool HasPartForEach(const Traffic& traffic) {
  const TracePart whole = WholePartOf(traffic);
  return whole.last - whole.first >= 2;
}

TracePart PartFor(const Traffic& traffic, EpisodeUse use) {
  CHECK(HasPartForEach(traffic));
  const TracePart whole = WholePartOf(traffic);
  const auto bins = static_cast<double>(whole.last - whole.first);
  const size_t held_out = std::clamp(static_cast<size_t>(std::llround(traffic.held_out * bins)),
                                     size_t{1}, whole.last - whole.first - 1);
  const size_t middle = whole.last - held_out;
  return use == EpisodeUse::kLearning ? TracePart{whole.first, middle}
                                      : TracePart{middle, whole.last};
}

TraceReplay::TraceReplay(const Traffic& traffic, EpisodeUse use, double begin) {
  const TracePart bins_of = PartFor(traffic, use);
  const RequestTrace& trace = *traffic.trace;
  const auto bins = static_cast<double>(trace.counts.size());
  part_ = {trace.counts.data() + bins_of.first, bins_of.last - bins_of.first};
  double sum = 0;
  for (const double count : trace.counts) sum += count;
  const double mean_per_s = sum / bins / trace.bin_s * traffic.time_warp;
  scale_ = traffic.scale_per_s > 0 && mean_per_s > 0 ? traffic.scale_per_s / mean_per_s : 1;
  begin_ = begin * static_cast<double>(part_.size());
  warp_ = traffic.time_warp;
  bin_s_ = trace.bin_s;
}

double TraceReplay::PerS(double seconds) const {
  // A bin's count stands in its middle; between middles, straight lines.
  const double position =
      begin_ + seconds * warp_ / bin_s_ + static_cast<double>(part_.size()) - 0.5;
  const auto before = static_cast<size_t>(position);
  const double share = position - static_cast<double>(before);
  const double count =
      (1 - share) * part_[before % part_.size()] + share * part_[(before + 1) % part_.size()];
  return count / bin_s_ * warp_ * scale_;
}

RateCurve DrawCurve(const Traffic& traffic, EpisodeUse use, SimTime duration, uint64_t seed) {
  Rng rng(seed, kCurveChance);
  RateCurve curve;
  curve.per_s.assign(static_cast<size_t>(std::ceil(SecondsOf(duration))) + 1, traffic.low_per_s);
  switch (traffic.shape) {
    case Traffic::Shape::kSteady:
      curve.per_s.resize(1);
      break;
    case Traffic::Shape::kDiurnal:
      FillDiurnal(traffic, &rng, &curve);
      break;
    case Traffic::Shape::kRamp:
      FillRamp(traffic, &curve);
      break;
    case Traffic::Shape::kBursty:
      FillBursts(traffic, &rng, &curve);
      break;
    case Traffic::Shape::kFlash:
      FillFlash(traffic, &rng, &curve);
      break;
    case Traffic::Shape::kStaged:
      FillStages(traffic, &rng, &curve);
      break;
    case Traffic::Shape::kReplay: {
      const TraceReplay replay(traffic, use, rng.Uniform());
      for (size_t i = 0; i < curve.per_s.size(); ++i)
        curve.per_s[i] = replay.PerS(static_cast<double>(i));
      break;
    }
  }
  return curve;
}

RateCurve WithSessions(const RateCurve& shape, const SessionLaw& law) {
  if (law.requests <= 1) return shape;
  const double again = 1 - 1 / law.requests, think_s = SecondsOf(law.think);
  RateCurve curve = shape;
  ReturningUsers& users = curve.users;
  users = {.again = again,
           .think_s = think_s,
           .thinking = again * shape.per_s[0] * think_s,
           .starts_per_s = shape.per_s};
  for (double& starts : users.starts_per_s) starts *= 1 - again;
  // Exact where as many come throughout a step as in its middle.
  const double kept = std::exp(-(1 - again) * shape.step_s / think_s);
  double thinking = users.thinking;
  for (size_t i = 0; i < curve.per_s.size(); ++i) {
    curve.per_s[i] = users.starts_per_s[i] + thinking / think_s;
    if (i + 1 == curve.per_s.size()) break;
    const double come = (users.starts_per_s[i] + users.starts_per_s[i + 1]) / 2;
    const double settled = again * come * think_s / (1 - again);
    thinking = settled + kept * (thinking - settled);
  }
  return curve;
}

}  // namespace rudderfish
