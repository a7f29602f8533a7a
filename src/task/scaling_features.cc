// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <numbers>

#include "base/float_log.h"
#include "task/feature_rows.h"
#include "task/scaling.h"

// What a network sees of a scaling question. Rates are compared as logarithms of their ratio, costs
// with that of the rung that is needed: neither the size of an application nor its load shows.

namespace rudderfish {
namespace {

constexpr double kLeastSeenPerS = 0.05;
constexpr double kLeastLate = 1e-4;

float LogRate(double rate) { return FloatLog(static_cast<float>(std::max(rate, kLeastSeenPerS))); }

// Logarithms of what all features are made of.
struct LoadLogs {
  explicit LoadLogs(const ScalingHistory& h, const ScalingRange& range)
      : near(LogRate(h.near_per_s())),
        far(LogRate(h.far_per_s())),
        peak_5m(LogRate(range.peak_5m)),
        peak_10m(LogRate(range.peak_10m)),
        peak_30m(LogRate(range.peak_30m)),
        least_30m(LogRate(range.least_30m)),
        capacity(LogRate(h.capacity_per_s())) {}

  float near, far, peak_5m, peak_10m, peak_30m, least_30m, capacity;
};

// Of a candidate: late requests at each of kScenarios, and these. Pods: one more than come or go.
enum RungLog { kLatePeak = kScenarios, kLateNear, kServes, kCapacity, kCost, kPods, kRungLogs };

struct RungView {
  const ScalingHistory& h;
  const ScalingSpace& space;
  const LoadLogs& load;
  const ScalingCandidate& c;
  const float* logs;  // [RungLog]
};
using R = const RungView&;

struct LoadView {
  const ScalingHistory& h;
  const ScalingSpace& space;
  const LoadLogs& load;
};
using L = const LoadView&;

// From 0, no request late, to 1, all late; a tenth of the share is a quarter less.
float LateFeature(float log) { return 1 + log * static_cast<float>(0.25 / std::numbers::ln10); }

const CapacityLadder& LadderOf(R v) { return v.h.ladder(); }
double Capacity(R v) { return LadderOf(v).CapacityPerS(v.c.rung); }
template <int kScenario>
float LateAt(R v) {
  return LateFeature(v.logs[kScenario]);
}
int PodsMore(const ScalingHistory& h, const ScalingCandidate& c) {
  return h.ladder().pods(c.rung) - h.ladder().pods(h.rung_asked());
}

// [candidate][RungLog], all at once.
void FindLogs(const ScalingHistory& h, const ScalingSpace& space, float* all) {
  const CapacityLadder& ladder = h.ladder();
  const auto late = [](double share) { return static_cast<float>(share + kLeastLate); };
  const auto rate = [](double x) { return static_cast<float>(std::max(x, kLeastSeenPerS)); };
  float* logs = all;
  for (const ScalingCandidate& c : space.candidates) {
    for (int s = 0; s < kScenarios; ++s) logs[s] = late(c.late[s]);
    logs[kLatePeak] = late(c.late_peak);
    logs[kLateNear] = late(c.late_near);
    logs[kServes] = rate(ladder.ServesPerS(c.rung));
    logs[kCapacity] = rate(ladder.CapacityPerS(c.rung));
    logs[kCost] = static_cast<float>(c.cost);
    logs[kPods] = 1 + static_cast<float>(std::abs(PodsMore(h, c)));
    logs += kRungLogs;
  }
  const int count = space.count() * kRungLogs;
  for (int i = 0; i < count; ++i) all[i] = FloatLog(all[i]);
}

float IntervalsToDrain(R v) {
  const double spare = Capacity(v) - v.h.near_per_s();
  if (v.h.backlog_requests() <= 0) return 0;
  return spare <= 0 ? 8.0f
                    : static_cast<float>(v.h.backlog_requests() / (spare * v.h.interval_s()));
}
constexpr std::array<Feature<RungView>, 27> kCandidateTable{{
    {"regret", "", 0.05F, [](R v) { return static_cast<float>(v.c.regret); },
     "cost and price of late requests, predicted, above the best candidate's"},
    {"cost", "log", 0.25F, [](R v) { return v.logs[kCost]; },
     "of its pods, over what is needed for the rate that is expected"},
    {"cost_more", "", 0.25F,
     [](R v) {
       return static_cast<float>(
           (LadderOf(v).cores(v.c.rung) - LadderOf(v).cores(v.h.rung_asked())) /
           LadderOf(v).cores(v.space.needed_rung));
     },
     "than now, likewise"},
    {"serves_near", "log", 0.25F, [](R v) { return v.logs[kServes] - v.load.near; },
     "rate it serves within the limit, over the next interval's"},
    {"serves_far", "log", 0.25F, [](R v) { return v.logs[kServes] - v.load.far; },
     "over that expected when its pods are ready"},
    {"serves_peak", "log", 0.25F, [](R v) { return v.logs[kServes] - v.load.peak_10m; },
     "over the peak of ten minutes"},
    {"serves_peak_long", "log", 0.25F, [](R v) { return v.logs[kServes] - v.load.peak_30m; },
     "over the peak of half an hour"},
    {"late_10", "log", 1, LateAt<0>, "late requests at the forecast's 10th percentile"},
    {"late_50", "log", 1, LateAt<1>, "at its median"},
    {"late_75", "log", 1, LateAt<2>, "at its 75th"},
    {"late_90", "log", 1, LateAt<3>, "at its 90th"},
    {"late_97", "log", 1, LateAt<4>, "at its 97th"},
    {"late_peak", "log", 1, [](R v) { return LateFeature(v.logs[kLatePeak]); },
     "at the peak of ten minutes"},
    {"late_near", "log", 1, [](R v) { return LateFeature(v.logs[kLateNear]); },
     "until its pods are ready"},
    {"late_price", "", 0.25F, [](R v) { return static_cast<float>(v.space.price * v.c.late_mean); },
     "of late requests, over all that may come"},
    {"use_near", "", 0.5F, [](R v) { return static_cast<float>(v.h.near_per_s() / Capacity(v)); },
     "of its tightest workload in the next interval"},
    {"use_far", "", 0.5F, [](R v) { return static_cast<float>(v.h.far_per_s() / Capacity(v)); },
     "likewise when its pods are ready"},
    {"drains", "intervals", 4, IntervalsToDrain, "until no request waits"},
    {"holds", "", 1, [](R v) { return v.c.rung == v.h.rung_asked() ? 1.0f : 0.0f; },
     "whether nothing changes"},
    {"goes_up", "", 1, [](R v) { return v.c.rung > v.h.rung_asked() ? 1.0f : 0.0f; },
     "whether there are more"},
    {"goes_down", "", 1, [](R v) { return v.c.rung < v.h.rung_asked() ? 1.0f : 0.0f; },
     "whether there are fewer"},
    {"pods_more", "log pods", 2,
     [](R v) { return PodsMore(v.h, v.c) < 0 ? -v.logs[kPods] : v.logs[kPods]; },
     "than now; negative if fewer"},
    {"is_needed", "", 1, [](R v) { return v.c.rung == v.space.needed_rung ? 1.0f : 0.0f; },
     "whether it just serves what is expected"},
    {"drops_starting", "", 1,
     [](R v) {
       return v.c.rung < v.h.rung_asked() && v.h.rung_ready() < v.h.rung_asked() ? 1.0f : 0.0f;
     },
     "whether pods go that have not served yet"},
    {"is_highest", "", 1, [](R v) { return v.c.rung == LadderOf(v).rungs() - 1 ? 1.0f : 0.0f; },
     "whether there is nothing more"},
    {"over_ready", "log", 0.25F, [](R v) { return v.logs[kCapacity] - v.load.capacity; },
     "its capacity, over what serves now"},
    {"serves_peak_short", "log", 0.25F, [](R v) { return v.logs[kServes] - v.load.peak_5m; },
     "over the peak of five minutes"},
}};

template <int kScenario>
float Error(L v) {
  return static_cast<float>(v.h.error(kScenario));
}
float LogSteps(int steps) { return FloatLog(1 + static_cast<float>(steps)); }

constexpr std::array<Feature<LoadView>, 24> kContextTable{{
    {"price", "log", 1, [](L v) { return static_cast<float>(std::log10(v.space.price + 1)); },
     "of late requests"},
    {"trend", "log", 0.25F, [](L v) { return v.load.far - v.load.near; },
     "rate expected when pods are ready, over the next interval's"},
    {"error_10", "log", 0.25F, Error<0>, "actual over expected arrivals, 10th percentile"},
    {"error_50", "log", 0.25F, Error<1>, "median"},
    {"error_75", "log", 0.25F, Error<2>, "75th"},
    {"error_90", "log", 0.25F, Error<3>, "90th"},
    {"error_97", "log", 0.25F, Error<4>, "97th"},
    {"peak_short", "log", 0.5F, [](L v) { return v.load.peak_5m - v.load.near; },
     "of five minutes, over the next interval's rate"},
    {"peak", "log", 0.5F, [](L v) { return v.load.peak_10m - v.load.near; }, "of ten"},
    {"peak_long", "log", 0.5F, [](L v) { return v.load.peak_30m - v.load.near; }, "of thirty"},
    {"least", "log", 0.5F, [](L v) { return v.load.least_30m - v.load.near; },
     "least of thirty minutes, likewise"},
    {"high_share", "", 0.5F, [](L v) { return static_cast<float>(v.h.high_share()); },
     "of half an hour above the middle of its range"},
    {"rises", "", 4, [](L v) { return static_cast<float>(v.h.rises()); }, "through that middle"},
    {"ready_over_near", "log", 0.25F, [](L v) { return v.load.capacity - v.load.near; },
     "capacity that serves, over the next interval's rate"},
    {"asked_over_near", "log", 0.25F,
     [](L v) { return LogRate(v.h.ladder().ServesPerS(v.h.rung_asked())) - v.load.near; },
     "rate that what is asked for serves within the limit, likewise"},
    {"starting", "log", 0.25F,
     [](L v) {
       return LogRate(v.h.ladder().CapacityPerS(v.h.rung_asked())) -
              LogRate(v.h.ladder().CapacityPerS(v.h.rung_ready()));
     },
     "capacity asked for, over that which serves"},
    {"backlog", "intervals", 2,
     [](L v) {
       return static_cast<float>(v.h.backlog_requests() /
                                 (std::max(v.h.near_per_s(), kLeastSeenPerS) * v.h.interval_s()));
     },
     "requests that wait, over those of an interval"},
    {"since_up", "log decisions", 3, [](L v) { return LogSteps(v.h.steps_since_up()); },
     "since there were more pods"},
    {"since_down", "log decisions", 3, [](L v) { return LogSteps(v.h.steps_since_down()); },
     "since there were fewer"},
    {"grain", "", 0.1F,
     [](L v) {
       const CapacityLadder& ladder = v.h.ladder();
       const int rung = v.space.needed_rung, next = std::min(rung + 1, ladder.rungs() - 1);
       return static_cast<float>(ladder.cores(next) / ladder.cores(rung) - 1);
     },
     "what one pod more costs"},
    {"lead", "intervals", 4, [](L v) { return static_cast<float>(v.h.lead_steps()); },
     "from a sample until pods asked for by it are ready"},
    {"samples", "log", 3, [](L v) { return FloatLog(1 + static_cast<float>(v.h.samples())); },
     "seen so far"},
    {"is_least", "", 1, [](L v) { return v.space.needed_rung == 0 ? 1.0f : 0.0f; },
     "whether the fewest pods are enough"},
    {"candidates", "", 8, [](L v) { return static_cast<float>(v.space.count()); }, "how many"},
}};

}  // namespace

const FeatureTable& ScalingTask::Features(ScalingRows rows) {
  static const auto* rungs = new FeatureTable{.candidate = Describe(kCandidateTable),
                                              .node = {},
                                              .workload = {},
                                              .context = Describe(kContextTable)};
  static const auto* graph = new FeatureTable{.candidate = Describe(kCandidateTable),
                                              .node = {},
                                              .workload = ScalingWorkloads::Features(),
                                              .context = Describe(kContextTable)};
  return rows == ScalingRows::kCallGraph ? *graph : *rungs;
}

std::string ScalingTask::FeatureHash(ScalingRows rows) {
  return HashOfFeatures(kName, Features(rows));
}

void ScalingTask::Encode(const ScalingHistory& history, const ScalingSpace& space,
                         GraphBatch* batch) const {
  constexpr GraphWidths kRowWidths = Widths(ScalingRows::kRungs);
  float* row = AddRows(space.count(), kRowWidths.candidate, &batch->candidates);
  CandidateEnds* ends = AddEnds(space.count(), batch);
  const LoadLogs load(history, space);
  float logs[kMostCandidates * kRungLogs];
  FindLogs(history, space, logs);
  for (int i = 0; i < space.count(); ++i) {
    WriteRow<kCandidateTable, kRowWidths.candidate>(
        RungView{history, space, load, space.candidates[i], logs + ptrdiff_t{i} * kRungLogs}, row);
    row += kRowWidths.candidate;
    *ends++ = {kNone, kNone, kNone};
  }
  WriteRow<kContextTable, kRowWidths.context>(LoadView{history, space, load},
                                              AddRows(1, kRowWidths.context, &batch->context));
  batch->candidate_begin.push_back(static_cast<int32_t>(batch->ends.size()));
  for (auto* begin : {&batch->node_begin, &batch->placement_begin}) begin->push_back(begin->back());
  if (workloads_) {
    workloads_->Encode(history, space, batch);
  } else {
    for (auto* begin : {&batch->workload_begin, &batch->call_begin})
      begin->push_back(begin->back());
  }
  ++batch->samples;
}

}  // namespace rudderfish
