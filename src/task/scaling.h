// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/graph_batch.h"
#include "model/capacity_ladder.h"
#include "task/scaling_history.h"
#include "task/scaling_workloads.h"
#include "task/task.h"

// How many replicas all workloads of an application are to have: a choice among rungs of its
// CapacityLadder, from far too few for the rate that is expected to far too many, and the one it
// stands on. A candidate is described by what the Model predicts of it: late requests and
// utilisation at quantiles of the forecast, cost, how fast what waits is served. No feature names a
// workload or counts pods, so one set of weights serves applications of any size.
//
// What late requests cost is the price: in shares of what the pods cost that serve everything, for
// a share of late requests; the network sees it, so that one network serves any limit.
//
// A question is rungs and a context; with ScalingRows::kCallGraph it shows the workloads and their
// calls too, each as the Model believes it at the rungs that are asked for, ready and needed.
//
// ScalingTask is immutable; any thread may use it, each with its own ScalingSpace. Nothing
// allocates once a space has been used.

namespace rudderfish {

struct ScalingCandidate {
  int rung = 0;
  double cost = 0;               // Of its pods, over those of the rung that is needed.
  double late[kScenarios] = {};  // Once its pods are ready, at the quantiles of the forecast.
  double late_peak = 0;          // At the peak of the last ten minutes.
  double late_near = 0;          // Until then, with what serves already.
  double late_mean = 0;          // Over what may come.
  double regret = 0;             // cost + price * late_mean, less the least of all candidates.
};

// Which rungs may be picked, whatever is asked for now: what the rates say.
struct ScalingRange {
  int needed_rung = 0;                                            // For the rate that is expected.
  std::vector<int> rungs;                                         // For multiples of it, rising.
  double peak_5m = 0, peak_10m = 0, peak_30m = 0, least_30m = 0;  // Requests per second.
};

struct ScalingSpace : ScalingRange {
  std::vector<ScalingCandidate> candidates;  // By rung, from low to high.
  int hold = 0;                              // Which of them changes nothing.
  double price = 0;

  int count() const { return static_cast<int>(candidates.size()); }
};

// Enough for a multiple of what is expected, and of the peak of a window: a simple rule of scaling,
// and what learning starts from.
struct ScalingRule {
  double headroom = 1;
  int window_s = 0;  // 0, 300 or 600.

  bool operator==(const ScalingRule&) const = default;
};

// What a network is shown besides the context: rungs alone, or the call graph of workloads too.
enum class ScalingRows { kRungs, kCallGraph };

class ScalingTask {
 public:
  // Within the limits of the ladder's application, or these.
  ScalingTask(const std::shared_ptr<const CapacityLadder>& ladder, double interval_s,
              ScalingRows rows = ScalingRows::kRungs)
      : ScalingTask(ladder, interval_s, ladder->application().limits, rows) {}
  ScalingTask(std::shared_ptr<const CapacityLadder> ladder, double interval_s,
              const ScalingLimits& limits, ScalingRows rows = ScalingRows::kRungs);

  static constexpr std::string_view kName = "scaling";
  static constexpr GraphWidths Widths(ScalingRows rows) {
    return {.candidate = 32,
            .node = 0,
            .workload = rows == ScalingRows::kCallGraph ? ScalingWorkloads::kWidth : 0,
            .context = 32};
  }
  static const FeatureTable& Features(ScalingRows rows = ScalingRows::kRungs);
  static std::string FeatureHash(ScalingRows rows = ScalingRows::kRungs);
  ScalingRows rows() const { return workloads_ ? ScalingRows::kCallGraph : ScalingRows::kRungs; }

  const CapacityLadder& ladder() const { return *ladder_; }
  double interval_s() const { return interval_s_; }
  ScalingHistory NewHistory() const { return {ladder_, interval_s_, ready_s_}; }

  // REQUIRES: the history has samples.
  void Space(const ScalingHistory& history, double price, ScalingSpace* space) const;

  void Encode(const ScalingHistory& history, const ScalingSpace& space, GraphBatch* batch) const;

  // Writes the replicas to ask for; those of workloads that are not scaled stay. To change nothing
  // is to change nothing, whatever the rungs are.
  void Decode(const ScalingSpace& space, int choice, std::span<int> replicas) const;

  // Which candidate the rule takes.
  static int ChoiceOf(const ScalingRule& rule, const ScalingHistory& history,
                      const ScalingSpace& space);

  // The rung of that candidate, where others are asked for, by `held`, and `intervals` have passed
  // since that changed: for many of one application, under one load.
  int RungOf(const ScalingRule& rule, const ScalingHistory& history, const ScalingRange& range,
             int held, int intervals) const;

  // As Decode, of a rung.
  void DecodeRung(int rung, std::span<int> replicas) const;

  static constexpr int kMostCandidates = 18;

 private:
  struct Rungs {
    int count = 0;
    int rung[kMostCandidates];
  };

  void FindRange(const ScalingHistory& history, ScalingRange* range) const;
  Rungs RungsFrom(const ScalingRange& range, int held, int intervals) const;

  std::shared_ptr<const CapacityLadder> ladder_;
  double interval_s_, ready_s_ = 0;
  ScalingLimits limits_;
  int highest_;  // Rung within the quota.
  std::optional<ScalingWorkloads> workloads_;
};

// [workload] Whether clients call it; and of the calls to such ones, how many a request makes.
struct ApplicationEntries {
  explicit ApplicationEntries(const ServedApplication& application);

  std::vector<uint8_t> is_entry;
  double calls_per_request = 0;
};

}  // namespace rudderfish
