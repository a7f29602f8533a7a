// SPDX-License-Identifier: Apache-2.0
#include "task/gym_hpa.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace rudderfish {
namespace {

constexpr double kSloP95Ms = 300, kSloPods = 44;

int Ceiling(double value) { return static_cast<int>(std::ceil(std::min(value, 1e6))); }

}  // namespace

const GymHpaApplication& GymHpaApplication::OnlineBoutique() {
  static const auto* application =
      new GymHpaApplication{.name = "online_boutique",
                            .deployments = {{"recommendationservice", 100, 220},
                                            {"productcatalogservice", 100, 64},
                                            {"cartservice", 200, 64},
                                            {"adservice", 200, 180},
                                            {"paymentservice", 100, 64},
                                            {"shippingservice", 100, 64},
                                            {"currencyservice", 100, 64},
                                            {"redis-cart", 70, 200},
                                            {"checkoutservice", 100, 64},
                                            {"frontend", 100, 64},
                                            {"emailservice", 100, 64}}};
  return *application;
}

const GymHpaApplication& GymHpaApplication::Redis() {
  static const auto* application = new GymHpaApplication{
      .name = "redis",
      .deployments = {{"redis-leader", 250, 250}, {"redis-follower", 250, 250}},
      .latency_cap_ms = 250};
  return *application;
}

int GymHpaDesired(const GymHpaDeployment& deployment, double cpu_millis, double memory_mib,
                  int pods_max) {
  const int by_cpu = Ceiling(cpu_millis / std::max(1, deployment.cpu_target()));
  const int by_memory = Ceiling(memory_mib / std::max(1, deployment.memory_target()));
  return std::clamp(Ceiling(0.7 * by_cpu + 0.3 * by_memory), 1, pods_max);
}

int GymHpaDesiredOfLimits(int pods, double cpu_share, double memory_share, int pods_min,
                          int pods_max) {
  if (pods == 0) return pods_min;
  const int desired = std::max(Ceiling(pods * cpu_share / 0.8), Ceiling(pods * memory_share / 0.8));
  return std::clamp(desired, pods_min, pods_max);
}

GymHpaMove GymHpaPairMove(int deployment, int move) {
  CHECK(move >= 0 && move < kGymHpaMoves);
  constexpr int kUp = kGymHpaMoves / 2;
  return {deployment, move <= kUp ? move : kUp - move};
}

GymHpaMove GymHpaFlatMove(int action) {
  CHECK_GE(action, 0);
  if (action == 0) return {};
  constexpr int kDeltas[] = {-3, -2, -1, 1, 2, 3};
  return {(action - 1) / 6, kDeltas[(action - 1) % 6]};
}

void GymHpaRawObservation(std::span<const GymHpaReading> readings, std::span<float> values) {
  CHECK_EQ(values.size(), readings.size() * kGymHpaRawWidth);
  float* value = values.data();
  for (const GymHpaReading& reading : readings) {
    *value++ = static_cast<float>(reading.pods);
    *value++ = static_cast<float>(reading.desired);
    *value++ = static_cast<float>(reading.cpu_millis);
    *value++ = static_cast<float>(reading.memory_mib);
    *value++ = static_cast<float>(reading.traffic_in_kbytes_per_s);
    *value++ = static_cast<float>(reading.traffic_out_kbytes_per_s);
  }
}

void GymHpaNodeObservation(std::span<const GymHpaReading> readings,
                           std::span<const GymHpaShares> shares, int pods_max,
                           std::span<float> values) {
  CHECK_EQ(readings.size(), shares.size());
  CHECK_EQ(values.size(), readings.size() * kGymHpaNodeWidth);
  float* value = values.data();
  for (size_t i = 0; i < readings.size(); ++i) {
    *value++ = static_cast<float>(shares[i].cpu);
    *value++ = static_cast<float>(shares[i].memory);
    *value++ = static_cast<float>(readings[i].pods) / static_cast<float>(pods_max);
    *value++ = static_cast<float>(readings[i].desired) / static_cast<float>(pods_max);
  }
}

GymHpaReward::GymHpaReward(const GymHpaApplication& application, GymHpaGoal goal,
                           double bound_penalty)
    : goal_(goal), latency_cap_ms_(application.latency_cap_ms), bound_penalty_(bound_penalty) {}

int GymHpaTotalPods(std::span<const GymHpaReading> readings) {
  int pods = 0;
  for (const GymHpaReading& reading : readings) pods += reading.pods;
  return pods;
}

double GymHpaReward::SloDistance(int pods, double p95_ms) {
  const double late = p95_ms <= kSloP95Ms ? 0 : std::min((p95_ms - kSloP95Ms) / kSloP95Ms, 1.0);
  return 2 * late + std::min(pods / kSloPods, 1.0);
}

void GymHpaReward::Reset(std::span<const GymHpaReading> readings, double p95_ms) {
  distance_ = SloDistance(GymHpaTotalPods(readings), p95_ms);
}

double GymHpaReward::Of(std::span<const GymHpaReading> readings, double p95_ms, GymHpaBound bound) {
  const bool beyond = bound == GymHpaBound::kPassed;
  switch (goal_) {
    case GymHpaGoal::kCost:
      if (beyond) return -1;
      return static_cast<double>(
          std::count_if(readings.begin(), readings.end(),
                        [](const auto& reading) { return reading.pods == reading.desired; }));
    case GymHpaGoal::kLatency:
      if (beyond) return -latency_cap_ms_;
      return -std::min(readings.front().latency_ms, latency_cap_ms_);
    case GymHpaGoal::kSloDistance:
      break;
  }
  if (beyond) return bound_penalty_;
  const double before = distance_;
  distance_ = SloDistance(GymHpaTotalPods(readings), p95_ms);
  const double larger = std::max(before, distance_);
  return larger > 0 ? std::clamp((before - distance_) / larger, -1.0, 1.0) : 0;
}

}  // namespace rudderfish
