// SPDX-License-Identifier: Apache-2.0
#include "scenario/arrivals.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

namespace rudderfish {
namespace {

constexpr double kWeightOfAll = 100'000;

SimTime Rounded(double ns) {
  return SimTime(std::llround(std::clamp(ns, 0.0, static_cast<double>(kLongest.count()))));
}

// As many as an episode has of them, each recorded one as likely where they are drawn.
void AddPodsOfTrace(const Arrivals& arrivals, std::vector<double>* share) {
  if (arrivals.trace_pods == nullptr || arrivals.trace_pods->empty()) return;
  const std::vector<TracePod>& pods = *arrivals.trace_pods;
  const auto until = static_cast<double>(arrivals.until.count());
  const auto recorded = static_cast<double>(pods.size());
  double each = 1;
  if (arrivals.trace.drawn > 0) {
    const double lasts = static_cast<double>((pods.back().at - pods.front().at).count());
    const auto drawn = static_cast<double>(arrivals.trace.drawn);
    each = (lasts > 0 ? std::min(drawn, until / lasts * (recorded - 1) + 1) : drawn) / recorded;
  }
  for (const TracePod& pod : pods) {
    if (arrivals.trace.drawn > 0 || pod.at <= arrivals.until) (*share)[pod.workload] += each;
  }
}

}  // namespace

SimTime TimeLaw::Draw(Rng* rng) const {
  const double first = static_cast<double>(a.count()), second = static_cast<double>(b.count());
  switch (shape) {
    case Shape::kConstant:
      break;
    case Shape::kUniform:
      return Rounded(rng->Uniform(first, second));
    case Shape::kExponential:
      return Rounded(-first * std::log1p(-rng->Uniform()));
    case Shape::kNormal:
      return Rounded(first + second * rng->Normal());
  }
  return a;
}

// The mean of a normal variable that counts as 0 below 0:
//   a Phi(a / b) + b phi(a / b)
double TimeLaw::MeanNs() const {
  const double first = static_cast<double>(a.count()), second = static_cast<double>(b.count());
  switch (shape) {
    case Shape::kConstant:
    case Shape::kExponential:
      break;
    case Shape::kUniform:
      return (first + second) / 2;
    case Shape::kNormal: {
      if (second <= 0) break;
      const double z = first / second;
      return first * std::erfc(-z / std::numbers::sqrt2) / 2 +
             second * std::exp(-z * z / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
    }
  }
  return first;
}

double ExpectedPods(const ArrivalStream& stream, SimTime until) {
  if (stream.start > until) return 0;
  const auto ns = [](SimTime time) { return static_cast<double>(time.count()); };
  // Of those that come `apart` one after another, the first at once.
  const auto within = [](double span, double apart, double most) {
    if (span < 0) return 0.0;
    return apart > 0 ? std::min(most, std::floor(span / apart) + 1) : most;
  };
  constexpr double kEndless = std::numeric_limits<double>::infinity();
  const double span = ns(std::min(until, kLongest) - stream.start);
  const double most = stream.count > 0 ? static_cast<double>(stream.count) : kEndless;
  const double interval = ns(stream.interval.a), pods = stream.pods, hold = ns(stream.hold);
  double expected = 0;
  switch (stream.shape) {
    case ArrivalStream::Shape::kSpaced: {
      const double apart = stream.interval.MeanNs();
      expected = apart > 0 ? span / apart + 1 : kEndless;
      break;
    }
    case ArrivalStream::Shape::kWaves: {
      const double turn = (pods - 1) * interval + hold + ns(stream.pause);
      if (turn <= 0) return most;
      const double waves = std::floor(span / turn);
      expected = waves * pods + within(span - waves * turn, interval, pods);
      break;
    }
    case ArrivalStream::Shape::kRolling:
      expected = within(span, interval, pods) +
                 within(span - pods * interval - hold, hold + ns(stream.pause), kEndless);
      break;
  }
  return std::min(expected, most);
}

std::vector<int64_t> PopularityOfWorkloads(const Arrivals& arrivals, int workloads) {
  std::vector<double> share(workloads, 0.0);
  for (const ArrivalStream& stream : arrivals.streams) {
    const double pods = ExpectedPods(stream, arrivals.until);
    const double weights = std::accumulate(stream.weights.begin(), stream.weights.end(), 0.0);
    for (size_t i = 0; i < stream.workloads.size(); ++i) {
      const double part = stream.weights.empty()
                              ? 1.0 / static_cast<double>(stream.workloads.size())
                              : stream.weights[i] / weights;
      share[stream.workloads[i]] += pods * part;
    }
  }
  AddPodsOfTrace(arrivals, &share);
  const double sum = std::accumulate(share.begin(), share.end(), 0.0);
  std::vector<int64_t> popularity(workloads, 0);
  for (int w = 0; w < workloads; ++w) {
    if (share[w] > 0)
      popularity[w] = std::max<int64_t>(1, std::llround(share[w] / sum * kWeightOfAll));
  }
  return popularity;
}

}  // namespace rudderfish
