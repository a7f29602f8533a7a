// SPDX-License-Identifier: Apache-2.0
#include "compat/gym_hpa_world.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace rudderfish {

GymHpaWorld::GymHpaWorld(const GymHpaApplication* application, const GymHpaTable* table,
                         const GymHpaWorldOptions& options)
    : application_(application),
      table_(table),
      options_(options),
      reward_(*application, options.goal) {
  CHECK_EQ(application->count(), table->deployments());
  CHECK_GT(options.steps, 0);
}

void GymHpaWorld::Reset(uint64_t seed) {
  rng_ = Rng(seed);
  steps_ = 0;
  readings_ = table_->rows[rng_.Below(static_cast<uint32_t>(table_->rows.size()))].readings;
  before_.clear();
  for (GymHpaReading& reading : readings_) {
    reading.pods = std::clamp(reading.pods, application_->pods_min, application_->pods_max);
    before_.push_back(reading.pods);
  }
  Observe();
  // There is no p95 in the rows: the mean stands for it.
  reward_.Reset(readings_, readings_.front().latency_ms);
}

bool GymHpaWorld::IsLegal(const GymHpaMove& move) const {
  const int pods = readings_[move.deployment].pods + move.delta;
  return pods >= application_->pods_min && pods <= application_->pods_max;
}

GymHpaStep GymHpaWorld::Step(const GymHpaMove& move) {
  CHECK(!readings_.empty() && steps_ < options_.steps);
  CHECK(move.deployment >= 0 && move.deployment < application_->count());
  ++steps_;
  for (size_t i = 0; i < before_.size(); ++i) before_[i] = readings_[i].pods;
  GymHpaStep step{.beyond_bound = !IsLegal(move), .over = steps_ == options_.steps};
  if (!step.beyond_bound) readings_[move.deployment].pods += move.delta;
  Observe();
  step.reward = reward_.Of(readings_, readings_.front().latency_ms,
                           step.beyond_bound ? GymHpaBound::kPassed : GymHpaBound::kKept);
  return step;
}

std::vector<int> GymHpaWorld::Alike(int deployment, const std::vector<int>& from) const {
  const int pods = readings_[deployment].pods, change = pods - before_[deployment];
  std::vector<int> same_pods, same_both;
  for (const int row : from) {
    const auto at = [&](int r) { return table_->rows[r].readings[deployment].pods; };
    if (at(row) != pods) continue;
    same_pods.push_back(row);
    if (row > 0 && at(row) - at(row - 1) == change) same_both.push_back(row);
  }
  return same_both.empty() ? same_pods : same_both;
}

void GymHpaWorld::Observe() {
  std::vector<int> rows(table_->rows.size());
  std::iota(rows.begin(), rows.end(), 0);
  const int last = application_->count() - 1;
  const bool progressive = options_.sampling == GymHpaSampling::kProgressive;
  for (int d = progressive ? 0 : last; d <= last; ++d) {
    std::vector<int> kept = Alike(d, rows);
    if (!kept.empty()) rows = std::move(kept);
  }
  const GymHpaRow& drawn = table_->rows[rows[rng_.Below(static_cast<uint32_t>(rows.size()))]];
  for (size_t d = 0; d < readings_.size(); ++d) {
    const int pods = readings_[d].pods;
    readings_[d] = drawn.readings[d];
    readings_[d].pods = pods;
    readings_[d].desired = GymHpaDesired(application_->deployments[d], readings_[d].cpu_millis,
                                         readings_[d].memory_mib, application_->pods_max);
  }
}

}  // namespace rudderfish
