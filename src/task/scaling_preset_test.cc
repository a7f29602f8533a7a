// SPDX-License-Identifier: Apache-2.0
#include "task/scaling_preset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace rudderfish {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;
using ::testing::Pointwise;

// A client and one workload that it calls, half a megabyte a call.
ServedApplication OneDeployment() {
  ServedApplication application = SingleStation({.name = "api",
                                                 .slots = 2,
                                                 .replicas_min = 2,
                                                 .replicas_max = 6,
                                                 .cpu_millis = 400,
                                                 .memory_bytes = int64_t{100} << 20},
                                                10);
  auto calls = std::make_shared<CallGraph>(*application.calls);
  calls->calls[1].data_mbytes = 0.5;
  application.calls = std::move(calls);
  return application;
}

// Of the client too, whose values are never read.
struct ApiMetrics {
  std::vector<int> replicas = {0, 3}, ready = {0, 2};
  std::vector<double> calls_per_s = {0, 8}, busy_slots = {0, 3};

  operator GymHpaMetrics() const { return {replicas, ready, calls_per_s, busy_slots}; }
};

TEST(GymHpaReader, MeasuresADeploymentAsGymHpaDid) {
  const GymHpaReader reader(OneDeployment(), "my-shop");
  EXPECT_EQ(reader.application().name, "my_shop");
  ASSERT_EQ(reader.application().count(), 1);
  EXPECT_EQ(reader.application().pods_max, 6);
  EXPECT_EQ(reader.application().latency_cap_ms, 3000);
  EXPECT_EQ(GymHpaApplicationOf(OneDeployment(), "redis").latency_cap_ms, 250);
  EXPECT_EQ(reader.workload(0), 1);
  // Three of four slots' worth of pods busy; targets of 300 m and 75 MiB.
  const GymHpaReading reading = reader.Read(0, ApiMetrics());
  EXPECT_EQ(reading.pods, 3);
  EXPECT_EQ(reading.cpu_millis, 600);
  EXPECT_EQ(reading.memory_mib, 225);
  EXPECT_EQ(reading.desired, 3);  // ceil(0.7 * 2 + 0.3 * 3)
  EXPECT_EQ(reading.traffic_in_kbytes_per_s, 4000);
  EXPECT_EQ(reading.traffic_out_kbytes_per_s, 0);
  const GymHpaShares shares = reader.SharesOf(0, ApiMetrics());
  EXPECT_EQ(shares.cpu, 0.75);  // Of the two pods that serve.
  EXPECT_EQ(shares.memory, 0.375);
}

TEST(GymHpaReader, DesiresNoMoreAndNoFewerThanTheWorkloadMayHave) {
  ServedApplication application = OneDeployment();
  application.workloads.push_back(application.workloads[1]);
  application.workloads.back().name = "batch";
  application.workloads.back().replicas_max = 16;
  for (const ScalingPreset preset : {ScalingPreset::kGymHpaCost, ScalingPreset::kGraphGymHpaSlo}) {
    const ScalingPresetTask task(preset, application, "shop");
    ASSERT_EQ(task.application().pods_max, 16);
    ScalingPresetSight sight;
    const std::vector<int> pods = {0, 6, 16};
    const std::vector<double> calls_per_s = {0, 80, 80}, idle = {0, 0, 0}, busy = {0, 12, 32};
    task.Look({pods, pods, calls_per_s, busy}, &sight);
    EXPECT_EQ(sight.readings[0].desired, 6);
    EXPECT_EQ(sight.readings[1].desired, 16);
    const std::vector<int> few = {0, 2, 2};
    task.Look({few, few, calls_per_s, idle}, &sight);
    EXPECT_EQ(sight.readings[0].desired, 2);
    EXPECT_EQ(sight.readings[1].desired, 2);
  }
}

TEST(ScalingPreset, IsKnownByItsNameAndTheNearestIsSaid) {
  for (const std::string_view name : ScalingPresetNames())
    EXPECT_EQ(ScalingPresetName(ScalingPresetNamed(name).value()), name);
  EXPECT_EQ(GoalOf(ScalingPresetNamed("gym-hpa-cost").value()), GymHpaGoal::kCost);
  EXPECT_EQ(GoalOf(ScalingPresetNamed("gym-hpa-latency").value()), GymHpaGoal::kLatency);
  EXPECT_EQ(GoalOf(ScalingPresetNamed("graph-gym-hpa-slo").value()), GymHpaGoal::kSloDistance);
  EXPECT_THAT(ScalingPresetNamed("gym-hpa-cst").error().message,
              HasSubstr("did you mean `gym-hpa-cost`?"));
}

TEST(ScalingPresetTask, HasTheActionsOfItsGeneration) {
  const ScalingPresetTask first(ScalingPreset::kGymHpaCost, OneDeployment(), "shop");
  const ScalingPresetTask graph(ScalingPreset::kGraphGymHpaSlo, OneDeployment(), "shop");
  ASSERT_EQ(first.actions(), 15);
  ASSERT_EQ(graph.actions(), 7);
  EXPECT_EQ(first.move(7), (GymHpaMove{0, 7}));
  EXPECT_EQ(first.move(14), (GymHpaMove{0, -7}));
  EXPECT_EQ(graph.move(0).delta, 0);
  EXPECT_EQ(graph.move(1), (GymHpaMove{0, -3}));
}

TEST(ScalingPresetTask, AMoveBeyondABoundOfItsWorkloadIsNotMade) {
  const ScalingPresetTask task(ScalingPreset::kGymHpaCost, OneDeployment(), "shop");
  std::vector<int> replicas = {0, 3};
  EXPECT_EQ(task.Apply({0, 4}, replicas), GymHpaBound::kPassed);
  EXPECT_EQ(task.Apply({0, -2}, replicas), GymHpaBound::kPassed);
  EXPECT_THAT(replicas, ElementsAre(0, 3));
  EXPECT_EQ(task.Apply({0, 3}, replicas), GymHpaBound::kKept);
  EXPECT_THAT(replicas, ElementsAre(0, 6));
  EXPECT_EQ(task.Apply({0, -4}, replicas), GymHpaBound::kKept);
  EXPECT_EQ(task.Apply({0, 0}, replicas), GymHpaBound::kKept);
  EXPECT_THAT(replicas, ElementsAre(0, 2));
}

// Numbers of the row of the only deployment, undone by their scales.
std::vector<float> RowSeenBy(ScalingPreset preset) {
  const ScalingPresetTask task(preset, OneDeployment(), "shop");
  ScalingPresetSight sight;
  task.Look(ApiMetrics(), &sight);
  GraphBatch batch{.widths = ScalingPresetTask::kWidths};
  task.Encode(sight, &batch);
  EXPECT_EQ(batch.samples, 1);
  EXPECT_EQ(batch.candidate_count(0), task.actions());
  EXPECT_EQ(batch.workload_begin.back(), 1);
  EXPECT_EQ(batch.workloads.size(), 16u);
  EXPECT_EQ(batch.context.size(), 16u);
  const std::vector<FeatureDescription>& features = ScalingPresetTask::Features(preset).workload;
  std::vector<float> values;
  for (size_t i = 0; i < features.size(); ++i)
    values.push_back(batch.workloads[i] * static_cast<float>(features[i].scale));
  for (size_t i = features.size(); i < batch.workloads.size(); ++i)
    EXPECT_EQ(batch.workloads[i], 0) << i;
  return values;
}

TEST(ScalingPresetTask, ShowsWhatItsGenerationSaw) {
  EXPECT_THAT(RowSeenBy(ScalingPreset::kGymHpaLatency),
              Pointwise(FloatEq(), std::vector<float>{3, 3, 600, 225, 4000, 0}));
  // Two run of six; ceil(2 * 0.75 / 0.8) are desired.
  EXPECT_THAT(RowSeenBy(ScalingPreset::kGraphGymHpaSlo),
              Pointwise(FloatEq(), std::vector<float>{0.75F, 0.375F, 2 / 6.0F, 2 / 6.0F}));
}

TEST(ScalingPresetTask, ActionsNameTheirDeploymentAndNothingNamesNone) {
  const ScalingPresetTask first(ScalingPreset::kGymHpaCost, OneDeployment(), "shop");
  const ScalingPresetTask graph(ScalingPreset::kGraphGymHpaSlo, OneDeployment(), "shop");
  ScalingPresetSight sight;
  first.Look(ApiMetrics(), &sight);
  GraphBatch of_first{.widths = ScalingPresetTask::kWidths}, of_graph = of_first;
  first.Encode(sight, &of_first);
  graph.Encode(sight, &of_graph);
  for (const CandidateEnds& ends : of_first.ends) EXPECT_EQ(ends.workload, 0);
  EXPECT_EQ(of_graph.ends[0].workload, kNone);
  EXPECT_EQ(of_graph.ends[1].workload, 0);
  EXPECT_EQ(of_graph.candidates[16] * 4, -3);  // The change of the second action.
}

TEST(ScalingPresetTask, LatenciesStayWhereMetricsDoNotSayThem) {
  const ScalingPresetTask task(ScalingPreset::kGymHpaLatency, OneDeployment(), "shop");
  ScalingPresetSight sight;
  task.Look(ApiMetrics(), &sight);
  sight.readings[0].latency_ms = 42;
  task.Look(ApiMetrics(), &sight);
  EXPECT_EQ(sight.readings[0].latency_ms, 42);
}

}  // namespace
}  // namespace rudderfish
