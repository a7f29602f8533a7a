// SPDX-License-Identifier: Apache-2.0
#include "scenario/arrivals.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace rudderfish {
namespace {

constexpr double kWeightOfAll = 100'000;

SimTime Rounded(double ns) {
  return SimTime(std::llround(std::clamp(ns, 0.0, static_cast<double>(kLongest.count()))));
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

std::vector<int64_t> PopularityOfWorkloads(const Arrivals& arrivals, int workloads) {
  std::vector<double> share(workloads, 0.0);
  for (const ArrivalStream& stream : arrivals.streams) {
    // Streams count by their pods, or by their pace where they have no end.
    const double pace = stream.count > 0
                            ? static_cast<double>(stream.count)
                            : 1e12 / static_cast<double>(std::max<int64_t>(
                                         stream.interval.a.count() + stream.interval.b.count(), 1));
    const double weights = std::accumulate(stream.weights.begin(), stream.weights.end(), 0.0);
    for (size_t i = 0; i < stream.workloads.size(); ++i) {
      const double part = stream.weights.empty()
                              ? 1.0 / static_cast<double>(stream.workloads.size())
                              : stream.weights[i] / weights;
      share[stream.workloads[i]] += pace * part;
    }
  }
  if (arrivals.trace_pods != nullptr) {
    for (const TracePod& pod : *arrivals.trace_pods) share[pod.workload] += 1;
  }
  const double sum = std::accumulate(share.begin(), share.end(), 0.0);
  std::vector<int64_t> popularity(workloads, 0);
  for (int w = 0; w < workloads; ++w) {
    if (share[w] > 0)
      popularity[w] = std::max<int64_t>(1, std::llround(share[w] / sum * kWeightOfAll));
  }
  return popularity;
}

}  // namespace rudderfish
