// SPDX-License-Identifier: Apache-2.0
#include "task/scaling.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace rudderfish {
namespace {

// Of the rate that is expected, candidates serve so much.
constexpr double kShares[] = {0.6, 0.75, 0.87, 0.95, 1.02, 1.1, 1.2, 1.32,
                              1.5, 1.75, 2.1,  2.6,  3.3,  4.2, 5.4};
// And the rung it stands on, the one above and the one below.
static_assert(std::size(kShares) + 3 <= ScalingTask::kMostCandidates);

// How likely each quantile of the forecast stands for what comes, and the peak of ten minutes.
constexpr double kChances[kScenarios] = {0.25, 0.34, 0.2, 0.12, 0.07};
constexpr double kPeakChance = 0.02;

constexpr double kLeastAskedPerS = 0.05;  // Requests per second.

int WantedRung(const ScalingRule& rule, const ScalingHistory& history, const ScalingRange& range) {
  double rate = history.far_per_s();
  if (rule.window_s >= 300) rate = std::max(rate, range.peak_5m);
  if (rule.window_s >= 600) rate = std::max(rate, range.peak_10m);
  return history.ladder().RungFor(rate * rule.headroom);
}

}  // namespace

ApplicationEntries::ApplicationEntries(const ServedApplication& application)
    : is_entry(application.workloads.size(), 0) {
  const CallGraph& graph = *application.calls;
  const std::vector<double> shares = application.EndpointShares();
  for (size_t e = 0; e < shares.size(); ++e) {
    const Endpoint& endpoint = graph.endpoints[e];
    for (CallId id = endpoint.root + 1; id < endpoint.end; ++id) {
      if (graph.calls[id].caller == endpoint.root) is_entry[graph.calls[id].workload] = 1;
    }
  }
  // Calls that others make to such a workload are seen there too.
  const std::vector<double> calls = application.CallsPerRequest();
  for (size_t w = 0; w < calls.size(); ++w) {
    if (!application.workloads[w].scaled) is_entry[w] = 0;
    if (is_entry[w] != 0) calls_per_request += calls[w];
  }
}

ScalingTask::ScalingTask(std::shared_ptr<const CapacityLadder> ladder, double interval_s,
                         const ScalingLimits& limits, ScalingRows rows)
    : ladder_(std::move(ladder)), interval_s_(interval_s), limits_(limits) {
  int scaled = 0;
  for (const ServedWorkload& workload : ladder_->application().workloads) {
    if (!workload.scaled) continue;
    ready_s_ += workload.MeanStartS();
    ++scaled;
  }
  ready_s_ /= std::max(1, scaled);
  highest_ = ladder_->HighestWithin(limits);
  if (rows == ScalingRows::kCallGraph) workloads_.emplace(ladder_, interval_s);
}

void ScalingTask::FindRange(const ScalingHistory& history, ScalingRange* range) const {
  const double far = std::max(history.far_per_s(), kLeastAskedPerS);
  range->peak_5m = std::max(history.peak_5m_per_s(), kLeastAskedPerS);
  range->peak_10m = std::max(history.peak_10m_per_s(), kLeastAskedPerS);
  range->peak_30m = std::max(history.peak_30m_per_s(), kLeastAskedPerS);
  range->least_30m = std::max(history.least_30m_per_s(), kLeastAskedPerS);
  range->needed_rung = std::min(ladder_->RungFor(far), highest_);
  range->rungs.clear();
  range->rungs.reserve(std::size(kShares));
  for (const double share : kShares)
    range->rungs.push_back(std::min(ladder_->RungFor(far * share), highest_));
}

// Those of the range, the held one and its neighbours; rising, each once.
ScalingTask::Rungs ScalingTask::RungsFrom(const ScalingRange& range, int held,
                                          int intervals) const {
  Rungs all;
  if (intervals * interval_s_ <= limits_.cool_down_s) {
    all.rung[all.count++] = held;
    return all;
  }
  int more[3], more_count = 0;
  if (held > 0) more[more_count++] = std::min(held - 1, highest_);
  more[more_count++] = held;
  if (held < highest_) more[more_count++] = held + 1;
  if (more_count > 1 && more[0] > more[1]) std::swap(more[0], more[1]);
  const auto add = [&](int rung) {
    if (all.count == 0 || all.rung[all.count - 1] != rung) all.rung[all.count++] = rung;
  };
  int next = 0;
  for (const int rung : range.rungs) {
    while (next < more_count && more[next] <= rung) add(more[next++]);
    add(rung);
  }
  while (next < more_count) add(more[next++]);
  return all;
}

void ScalingTask::Space(const ScalingHistory& history, double price, ScalingSpace* space) const {
  CHECK(history.has_samples());
  const CapacityLadder& ladder = *ladder_;
  FindRange(history, space);
  const double far = std::max(history.far_per_s(), kLeastAskedPerS);
  const double near = std::max(history.near_per_s(), kLeastAskedPerS);
  space->price = price;
  const int held = history.rung_asked();
  const Rungs rungs = RungsFrom(*space, held, history.steps_since_change());
  space->candidates.clear();
  space->candidates.reserve(kMostCandidates);
  for (int i = 0; i < rungs.count; ++i) {
    if (rungs.rung[i] == held) space->hold = i;
    space->candidates.push_back({.rung = rungs.rung[i]});
  }
  const double cost = ladder.cores(space->needed_rung);
  double rates[kScenarios];
  for (int s = 0; s < kScenarios; ++s) rates[s] = far * std::exp(history.error(s));
  double least = std::numeric_limits<double>::infinity();
  for (ScalingCandidate& one : space->candidates) {
    one.cost = ladder.cores(one.rung) / cost;
    for (int s = 0; s < kScenarios; ++s) {
      one.late[s] = ladder.LateShare(one.rung, rates[s]);
      one.late_mean += kChances[s] * one.late[s];
    }
    one.late_peak = ladder.LateShare(one.rung, space->peak_10m);
    one.late_near = ladder.LateShare(std::min(one.rung, history.rung_ready()), near);
    one.late_mean += kPeakChance * one.late_peak;
    one.late_mean = 0.5 * (one.late_mean + one.late_near);
    one.regret = one.cost + price * one.late_mean;
    least = std::min(least, one.regret);
  }
  for (ScalingCandidate& one : space->candidates) one.regret -= least;
}

void ScalingTask::Decode(const ScalingSpace& space, int choice, std::span<int> replicas) const {
  CHECK(choice >= 0 && choice < space.count());
  const int rung = space.candidates[choice].rung;
  if (choice == space.hold && rung <= highest_) return;
  DecodeRung(rung, replicas);
}

void ScalingTask::DecodeRung(int rung, std::span<int> replicas) const {
  const std::span<const int> wanted = ladder_->Replicas(std::min(rung, highest_));
  const ServedApplication& application = ladder_->application();
  CHECK(replicas.size() == wanted.size());
  for (size_t w = 0; w < replicas.size(); ++w) {
    if (application.workloads[w].scaled) replicas[w] = wanted[w];
  }
}

int ScalingTask::ChoiceOf(const ScalingRule& rule, const ScalingHistory& history,
                          const ScalingSpace& space) {
  const int wanted = WantedRung(rule, history, space);
  int best = 0;
  for (int i = 1; i < space.count(); ++i) {
    if (std::abs(space.candidates[i].rung - wanted) <=
        std::abs(space.candidates[best].rung - wanted))
      best = i;
  }
  return best;
}

int ScalingTask::RungOf(const ScalingRule& rule, const ScalingHistory& history,
                        const ScalingRange& range, int held, int intervals) const {
  const int wanted = WantedRung(rule, history, range);
  const Rungs rungs = RungsFrom(range, held, intervals);
  int best = rungs.rung[0];
  for (int i = 1; i < rungs.count; ++i) {
    if (std::abs(rungs.rung[i] - wanted) <= std::abs(best - wanted)) best = rungs.rung[i];
  }
  return best;
}

}  // namespace rudderfish
