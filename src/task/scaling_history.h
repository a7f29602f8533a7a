// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "model/capacity_ladder.h"
#include "model/forecast.h"

// What metrics have shown of an application so far, as far as scaling it needs: how many requests
// come, how many will when pods that are asked for now are ready, how wrong that was before, what
// may wait in line. The same for training and for running: fed with one sight an interval.
//
// Allocates nothing once made. One a running application, and one thread at a time.

namespace rudderfish {

// As metrics show an application at a decision.
struct ScalingSight {
  bool has_samples = false;
  double requests_per_s = 0;      // That came, over an interval that ended one interval ago.
  std::span<const int> replicas;  // [workload] Asked for now,
  std::span<const int> ready;     // [workload] of which so many serve.
};

// Relative to the forecast, as logarithms.
inline constexpr double kScenarioShares[] = {0.1, 0.5, 0.75, 0.9, 0.97};
inline constexpr int kScenarios = 5;

class ScalingHistory {
 public:
  // `ready_s`: from when a pod is asked for until it serves, about.
  ScalingHistory(std::shared_ptr<const CapacityLadder> ladder, double interval_s, double ready_s);

  void Start();  // A new run.

  // Once an interval, before deciding.
  void Observe(const ScalingSight& sight);

  // What was decided after the last Observe.
  void Decided(int rung_before, int rung);

  bool has_samples() const { return samples_ > 0; }
  int64_t samples() const { return samples_; }
  int lead_steps() const { return lead_; }

  double near_per_s() const { return near_; }  // Expected until the next decision,
  double far_per_s() const { return far_; }    // and once pods asked for now are ready.
  // Log of the rate over what was expected of it, in each of kScenarios.
  double error(int scenario) const { return errors_[scenario]; }

  // Of the samples of so many last minutes; those of the whole run, if it is shorter.
  double peak_5m_per_s() const { return peaks_[0]; }
  double peak_10m_per_s() const { return peaks_[1]; }
  double peak_30m_per_s() const { return peaks_[2]; }
  double least_30m_per_s() const { return least_; }
  // Of the last half hour: share of samples above the middle of its range, and how often the rate
  // rose through it.
  double high_share() const { return high_share_; }
  double rises() const { return rises_; }

  int rung_asked() const { return rung_asked_; }        // Of which all pods are asked for,
  int rung_ready() const { return rung_ready_; }        // and are ready.
  double capacity_per_s() const { return capacity_; }   // Of what is ready.
  double backlog_requests() const { return backlog_; }  // That wait, about.
  int steps_since_up() const { return since_up_; }      // Decisions.
  int steps_since_down() const { return since_down_; }
  int steps_since_change() const { return since_up_ < since_down_ ? since_up_ : since_down_; }
  double interval_s() const { return interval_s_; }

  const CapacityLadder& ladder() const { return *ladder_; }

 private:
  void Expect();
  void LookBack();

  static constexpr int kMostSamples = 128, kMostLead = 24;

  std::shared_ptr<const CapacityLadder> ladder_;
  double interval_s_;
  int lead_;
  std::vector<double> demand_s_;  // [workload] Of scaled ones; else 0.
  std::vector<int> slots_;
  Forecast forecast_;
  int64_t samples_ = 0;
  double rates_[2 * kMostSamples] =
      {};  // The last kMostSamples end at end_; moved when it is full.
  int end_ = 0;
  double peaks_[3] = {}, least_ = 0;
  double near_ = 0, far_ = 0;
  double errors_[kScenarios] = {};
  double high_share_ = 0, rises_ = 0;
  int rung_asked_ = 0, rung_ready_ = 0;
  double capacity_ = 0, backlog_ = 0;
  int since_up_ = 0, since_down_ = 0;
};

}  // namespace rudderfish
