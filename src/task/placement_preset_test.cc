// SPDX-License-Identifier: Apache-2.0
#include "task/placement_preset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "task/placement.h"
#include "tests/support/small_world.h"

namespace rudderfish {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kMib;
using testing::WorldBuilder;

constexpr Objective kAnyObjective{.weight = {1, 0, 0, 0, 0, 0}};

// Three equal nodes of 2 cores and 4,000 MiB; a pod of 500m, one of 250m.
struct SmallPresetWorld {
  explicit SmallPresetWorld(NodeId another_web = kNone) {
    WorldBuilder world;
    const LayerId near = world.Layer("near"), users = world.Layer("users");
    world.LatencyBothWays(users, near, 7);
    const KindId kind = world.Kind("plain", near);
    const WorkloadId video = world.Workload("app-video", 500, 1000);
    const WorkloadId web = world.Workload("web", 250, 500);
    for (int i = 0; i < 3; ++i) world.Node(kind, 2000, 4000);
    world.Pod(video, 1);
    world.Pod(web, 1);
    world.Pod(web, 2);
    if (another_web != kNone) world.Pod(web, another_web);
    state = world.Build();
    laws.users = users;
    totals.Reset(state, laws);
  }

  void Declare(WorkloadId workload, const MeasuredUsage& measured) {
    auto catalog = std::make_shared<Catalog>(*state.catalog);
    catalog->workloads[static_cast<size_t>(workload)].measured = measured;
    state.catalog = catalog;
    totals.Reset(state, laws);
  }

  PlacementQuestion Question(WorkloadId workload) const { return {state, totals, workload}; }

  State state;
  PlacementLaws laws;
  ClusterTotals totals;
};

// What a network is shown of the candidates, without padding.
std::vector<std::vector<float>> Shown(const SmallPresetWorld& world, PlacementPreset preset,
                                      WorkloadId workload, std::vector<float>* context = nullptr) {
  const PlacementTask task(kAnyObjective, preset);
  const PlacementQuestion question = world.Question(workload);
  PlacementSpace space;
  task.Space(question, {}, &space);
  GraphBatch batch{.widths = PlacementTask::Widths(preset)};
  batch.Clear();
  task.Encode(question, space, &batch);
  const FeatureTable& table = PlacementTask::Features(preset);
  std::vector<std::vector<float>> rows;
  for (int i = 0; i < space.count(); ++i) {
    const auto begin = batch.candidates.begin() + static_cast<long>(i) * batch.widths.candidate;
    rows.emplace_back(begin, begin + static_cast<long>(table.candidate.size()));
    for (size_t f = 0; f < table.candidate.size(); ++f)
      rows.back()[f] *= static_cast<float>(table.candidate[f].scale);
  }
  for (size_t f = table.context.size(); f < batch.context.size(); ++f)
    EXPECT_EQ(batch.context[f], 0) << f;
  if (context != nullptr) {
    for (size_t f = 0; f < table.context.size(); ++f)
      context->push_back(batch.context[f] * static_cast<float>(table.context[f].scale));
  }
  return rows;
}

TEST(PlacementPreset, IsNamedAndRefusedWithTheNearest) {
  for (const std::string_view name : PlacementPresetNames())
    EXPECT_EQ(PlacementPresetName(*PlacementPresetNamed(name)), name);
  EXPECT_THAT(PlacementPresetNamed("thesis-elrl").error().message,
              HasSubstr("did you mean `thesis-el-rl`?"));
}

TEST(PlacementPreset, EveryNodeIsACandidateEvenIfEqualToAnother) {
  SmallPresetWorld world;
  const PlacementQuestion question = world.Question(1);
  PlacementSpace space;
  PlacementTask(kAnyObjective, PlacementPreset::kThesisLb).Space(question, {}, &space);
  EXPECT_THAT(space.candidate_of, ElementsAre(0, 1, 2));
  for (const PlacementCandidate& candidate : space.candidates) EXPECT_EQ(candidate.nodes, 1);
}

TEST(PlacementPreset, ShowsPodsAsTheThesisCountsThem) {
  const SmallPresetWorld world;
  EXPECT_THAT(Shown(world, PlacementPreset::kThesisEe, 0),
              ElementsAre(ElementsAre(0), ElementsAre(2), ElementsAre(1)));
  EXPECT_EQ(PlacementTask::FeatureHash(PlacementPreset::kThesisEe),
            PlacementTask::FeatureHash(PlacementPreset::kThesisLb));
  EXPECT_NE(PlacementTask::FeatureHash(PlacementPreset::kThesisEe),
            PlacementTask::FeatureHash(PlacementPreset::kThesisLc));
}

TEST(PlacementPreset, ShowsConnectionsOfThePodsThere) {
  SmallPresetWorld world;
  world.Declare(1, {.connections = 5});
  EXPECT_THAT(Shown(world, PlacementPreset::kThesisLc, 0),
              ElementsAre(ElementsAre(0), ElementsAre(5), ElementsAre(5)));
}

TEST(PlacementPreset, ShowsPodsCpuMemoryAndLatencyOfANode) {
  const SmallPresetWorld world;
  const auto rows = Shown(world, PlacementPreset::kThesisElRl, 0);
  ASSERT_EQ(rows.size(), 3u);
  ASSERT_EQ(rows[1].size(), 4u);
  EXPECT_FLOAT_EQ(rows[1][0], 2);
  EXPECT_FLOAT_EQ(rows[1][1], 37.5);                                      // 750m of 2.
  EXPECT_NEAR(rows[1][2], 2500 * static_cast<double>(kMib) / 1e9, 1e-4);  // What is left, in GB.
  EXPECT_FLOAT_EQ(rows[1][3], 14);                                        // There and back.
}

TEST(PlacementPreset, ShowsTheSixMetricsOfDrsAndThePodsProfile) {
  SmallPresetWorld world;
  world.Declare(1, {.received_kb_per_s = 10, .read_kb_per_s = 1024});
  std::vector<float> pod;
  const auto rows = Shown(world, PlacementPreset::kDrsCode, 0, &pod);
  ASSERT_EQ(rows.size(), 3u);
  // 37.5 % of CPU is above what it takes for full; a video pod receives 11.25, a web pod 25.
  const std::vector<float> expected = {100, 37.5, 36.25, 2.49F, 10, 1.54F};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(rows[1][i], expected[i], 1e-3) << i;
  EXPECT_NEAR(rows[2][0], 50, 1e-3);  // 250m of 2 cores are 12.5 %.
  const presets::DrsRow video = presets::DrsProfileOf("video");
  for (size_t i = 0; i < video.size(); ++i) EXPECT_NEAR(pod[i], video[i], 1e-3) << i;
  // One that it does not know by name: what it would add to the mean node.
  pod.clear();
  Shown(world, PlacementPreset::kDrsPaper, 1, &pod);
  const std::vector<float> of_web = {50, 12.5, 25, 0, 10, 0};
  for (size_t i = 0; i < of_web.size(); ++i) EXPECT_NEAR(pod[i], of_web[i], 1e-3) << i;
}

// Theirs put all nodes into one row, feature by feature or node by node; ours has a row a node.
TEST(PlacementPreset, ShowsWhatEachSystemSawInItsOrder) {
  const auto names = [](const std::vector<FeatureDescription>& features) {
    std::vector<std::string> all;
    for (const FeatureDescription& one : features) all.emplace_back(one.name);
    return all;
  };
  const auto of_node = [&](PlacementPreset preset) {
    return names(PlacementTask::Features(preset).candidate);
  };
  const auto of_pod = [&](PlacementPreset preset) {
    return names(PlacementTask::Features(preset).context);
  };
  for (const PlacementPreset preset : {PlacementPreset::kThesisEe, PlacementPreset::kThesisLb})
    EXPECT_THAT(of_node(preset), ElementsAre("worker_pods"));
  EXPECT_THAT(of_node(PlacementPreset::kThesisLc), ElementsAre("worker_connections"));
  EXPECT_THAT(of_node(PlacementPreset::kThesisElRl),
              ElementsAre("worker_pods", "worker_cpu", "worker_memory_free", "worker_latency"));
  EXPECT_THAT(of_pod(PlacementPreset::kThesisElRl), IsEmpty());
  for (const PlacementPreset preset : {PlacementPreset::kDrsCode, PlacementPreset::kDrsPaper}) {
    EXPECT_THAT(of_node(preset), ElementsAre("drs_cpu", "drs_memory", "drs_received", "drs_sent",
                                             "drs_read", "drs_written"));
    EXPECT_THAT(of_pod(preset), ElementsAre("pod_cpu", "pod_memory", "pod_received", "pod_sent",
                                            "pod_read", "pod_written"));
  }
}

TEST(PlacementPreset, HardLimitsCanBeLeftToTheReward) {
  SmallPresetWorld world;
  auto catalog = std::make_shared<Catalog>(*world.state.catalog);
  catalog->workloads[1].latency_limits = {.soft_ms = 5, .hard_ms = 10};
  world.state.catalog = catalog;
  world.totals.Reset(world.state, world.laws);
  PlacementSpace space;
  const PlacementPreset preset = PlacementPreset::kThesisElRl;
  PlacementTask(kAnyObjective, preset).Space(world.Question(1), {}, &space);
  EXPECT_EQ(space.count(), 0);
  PlacementTask(kAnyObjective, preset, LatencyFilter::kLearned)
      .Space(world.Question(1), {}, &space);
  EXPECT_EQ(space.count(), 3);
  PresetJudge judge(preset);
  // Two of four nodes on, three pods on them, and 14 ms is more than 10.
  EXPECT_EQ(judge.Judge(world.Question(1), space, 0), (presets::Reward{0.5 + 1.5 / 50, true}));
}

presets::Reward JudgeOf(const SmallPresetWorld& world, PlacementPreset preset, NodeId node) {
  const PlacementQuestion question = world.Question(1);
  PlacementSpace space;
  PlacementTask(kAnyObjective, preset).Space(question, {}, &space);
  return PresetJudge(preset).Judge(question, space, node);
}

TEST(PlacementPreset, RewardsLookAtEveryNode) {
  SmallPresetWorld world;
  const std::vector<double> pods = {0, 2, 1}, connections = {0, 5, 5};
  world.Declare(1, {.connections = 5});
  for (NodeId node = 0; node < 3; ++node) {
    EXPECT_EQ(JudgeOf(world, PlacementPreset::kThesisLb, node), presets::LoadBalancing(pods, node));
    EXPECT_EQ(JudgeOf(world, PlacementPreset::kThesisEe, node),
              presets::EnergyEfficient(pods, node, 1));
    EXPECT_EQ(JudgeOf(world, PlacementPreset::kThesisLc, node),
              presets::LeastConnections(connections, node));
  }
  EXPECT_NE(presets::LoadBalancing(pods, 2), presets::LoadBalancing(std::vector{2.0, 1.0}, 1));
}

TEST(PlacementPreset, DrsRewardsAreOfTheNodesAsTheyWillBe) {
  const MeasuredUsage measured{.received_kb_per_s = 10, .read_kb_per_s = 1024};
  SmallPresetWorld before;
  before.Declare(1, measured);
  for (NodeId node = 0; node < 3; ++node) {
    SmallPresetWorld after(node);
    after.Declare(1, measured);
    PresetSight sight;
    sight.Look(PlacementPreset::kDrsCode, after.Question(1));
    std::vector<presets::DrsRow> rows;
    for (const WorkerSight& worker : sight.workers) rows.push_back(worker.drs);
    EXPECT_EQ(JudgeOf(before, PlacementPreset::kDrsCode, node).reward,
              presets::DrsCodeReward(rows));
    EXPECT_EQ(JudgeOf(before, PlacementPreset::kDrsPaper, node).reward,
              presets::DrsPaperReward(rows, {}));
    rows.erase(rows.begin());
    EXPECT_NE(JudgeOf(before, PlacementPreset::kDrsCode, node).reward,
              presets::DrsCodeReward(rows));
  }
}

TEST(PlacementPreset, WorldsThatDoNotSayWhatItLooksAtAreRefused) {
  SmallPresetWorld world;
  const std::vector<int64_t> arriving = {0, 1};
  const auto refusal = [&](PlacementPreset preset) {
    const Result<void> suits =
        CheckPresetSuits(preset, *world.state.catalog, world.laws, arriving, "here");
    return suits ? std::string() : suits.error().message;
  };
  EXPECT_EQ(refusal(PlacementPreset::kThesisEe), "");
  EXPECT_EQ(refusal(PlacementPreset::kThesisLb), "");
  EXPECT_THAT(refusal(PlacementPreset::kThesisLc), HasSubstr("measured: {connections: N}"));
  EXPECT_THAT(refusal(PlacementPreset::kThesisElRl), HasSubstr("web `latency_soft`"));
  EXPECT_THAT(refusal(PlacementPreset::kDrsCode), HasSubstr("video, net or disk"));
  world.laws.users = kNone;
  EXPECT_THAT(refusal(PlacementPreset::kThesisElRl), HasSubstr("arrivals.users"));
  world.Declare(1, {.connections = 2, .sent_kb_per_s = 1});
  EXPECT_EQ(refusal(PlacementPreset::kThesisLc), "");
  EXPECT_EQ(refusal(PlacementPreset::kDrsPaper), "");
}

}  // namespace
}  // namespace rudderfish
