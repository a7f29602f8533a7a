// SPDX-License-Identifier: Apache-2.0
#include "task/migration.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "tests/support/small_world.h"

namespace rudderfish {
namespace {

using testing::ContinuumOptions;
using testing::ContinuumWorld;
using testing::RandomWorld;
using testing::WithPodsHeld;
using testing::WorldBuilder;

// A state with one question asked and encoded.
struct Asked {
  explicit Asked(const State& start, const MigrationOptions& options = {}, int step = 0)
      : state(start), task(options), model(LatencyLaw::Reach()) {
    model.Reset(state);
    task.Space(&model, {step}, &space);
    batch.widths = task.widths();
    task.Encode(&model, {step}, &space, &batch);
  }
  State state;
  MigrationTask task;
  Evaluator model;
  ActionSpace space;
  GraphBatch batch;
};

// REACH's rule, cell by cell.
bool CellAllowed(const State& state, PodId pod, NodeId node) {
  const Workload& workload = state.workload_of(pod);
  return workload.movable && !state.pods.is_held(pod) && state.pods.node[pod] != kNone &&
         state.pods.node[pod] != node &&
         state.catalog->layers[state.kind_of(node).layer].accepts_moves &&
         state.nodes.free[node].cpu_millis >= workload.requests.cpu_millis &&
         state.nodes.free[node].memory_bytes >= workload.requests.memory_bytes;
}

RC_GTEST_PROP(MigrationTask, CandidatesAreTheAllowedCellsMergedByWorkloadAndNode, ()) {
  Rng rng(*rc::gen::arbitrary<uint32_t>());
  const State drawn = RandomWorld(&rng);
  const Asked asked(*rc::gen::arbitrary<bool>() ? drawn : WithPodsHeld(drawn, &rng));
  Decision decision;
  std::map<std::tuple<int, int, int>, int> cells;
  int64_t allowed = 1;
  for (PodId pod = 0; pod < asked.state.pods.size(); ++pod) {
    for (NodeId node = 0; node < asked.state.nodes.size(); ++node) {
      if (!CellAllowed(asked.state, pod, node)) continue;
      ++cells[{asked.state.pods.workload[pod], asked.state.pods.node[pod], node}];
      ++allowed;
    }
  }
  RC_ASSERT(asked.space.exhaustive);
  RC_ASSERT(asked.space.allowed_cells == allowed);
  RC_ASSERT(asked.space.candidates.size() == cells.size());
  for (const Candidate& c : asked.space.candidates) {
    RC_ASSERT(MoveAllowed(asked.state, asked.model.placement(), c.move));
    const auto at = cells.find({c.move.workload, c.move.from, c.move.to});
    RC_ASSERT(at != cells.end());
    RC_ASSERT(at->second == c.pods);
    asked.task.Decode(asked.state, asked.space,
                      static_cast<int>(&c - asked.space.candidates.data()), &decision);
    RC_ASSERT(!asked.state.pods.is_held(std::get<Migrate>(decision[0]).pod));
  }
}

// A network was never shown who is held: it sees the same cluster, and fewer alternatives.
RC_GTEST_PROP(MigrationTask, PodsThatAreHeldTakeAlternativesAwayAndLeaveTheOthersAsTheyAre, ()) {
  Rng rng(*rc::gen::arbitrary<uint32_t>());
  const State state = RandomWorld(&rng);
  const Asked all(state), some(WithPodsHeld(state, &rng));
  RC_ASSERT(some.space.count() <= all.space.count());
  int next = 0;
  for (const Candidate& c : some.space.candidates) {
    while (next < all.space.count() && all.space.candidates[next].move != c.move) ++next;
    RC_ASSERT(next < all.space.count());
    RC_ASSERT(c.gain_ms == all.space.candidates[next].gain_ms);
    RC_ASSERT(c.source == all.space.candidates[next].source);
    RC_ASSERT(c.target == all.space.candidates[next].target);
  }
  RC_ASSERT(some.model.Now().latency_ms == all.model.Now().latency_ms);
  RC_ASSERT(some.batch.nodes.size() == all.batch.nodes.size());
}

RC_GTEST_PROP(MigrationTask, RepresentativesAreAllowedDistinctAndNoMoreThanTheLimit, ()) {
  Rng rng(*rc::gen::arbitrary<uint32_t>());
  const State drawn = RandomWorld(&rng);
  const State state = *rc::gen::arbitrary<bool>() ? drawn : WithPodsHeld(drawn, &rng);
  const int limit = rng.Between(1, 12);
  const Asked all(state), some(state, {.max_candidates = limit});
  RC_ASSERT(some.space.allowed_cells == all.space.allowed_cells);
  RC_ASSERT(some.space.exhaustive == (all.space.count() <= limit));
  RC_ASSERT(some.space.count() <= limit);
  if (all.space.count() > 0) RC_ASSERT(some.space.count() > 0);
  std::set<std::tuple<int, int, int>> seen;
  float best_of_some = -1e9f;
  for (const Candidate& c : some.space.candidates) {
    RC_ASSERT(MoveAllowed(state, some.model.placement(), c.move));
    RC_ASSERT(seen.insert({c.move.workload, c.move.from, c.move.to}).second);
    const MoveEnds& ends = some.space.ends;
    RC_ASSERT(ends.node(ends.hosts()[c.source].row).id == c.move.from);
    RC_ASSERT(ends.node(ends.targets()[c.target].row).id == c.move.to);
    RC_ASSERT(ends.hosts()[c.source].workload == c.move.workload);
    RC_ASSERT(ends.targets()[c.target].workload == c.move.workload);
    best_of_some = std::max(best_of_some, c.gain_ms);
  }
  float best_of_all = -1e9f;
  for (const Candidate& c : all.space.candidates) best_of_all = std::max(best_of_all, c.gain_ms);
  RC_ASSERT(best_of_some == best_of_all);  // The best predicted move is always among them.
}

// Relabels nodes and pods: node i becomes node permutation[i], likewise pods.
State Relabelled(const State& state, const std::vector<int>& nodes, const std::vector<int>& pods) {
  State other = state;
  for (NodeId node = 0; node < state.nodes.size(); ++node) {
    other.nodes.kind[nodes[node]] = state.nodes.kind[node];
    other.nodes.allocatable[nodes[node]] = state.nodes.allocatable[node];
    other.nodes.free[nodes[node]] = state.nodes.free[node];
    other.nodes.background_mbytes_per_s[nodes[node]] = state.nodes.background_mbytes_per_s[node];
  }
  for (PodId pod = 0; pod < state.pods.size(); ++pod) {
    other.pods.workload[pods[pod]] = state.pods.workload[pod];
    other.pods.node[pods[pod]] =
        state.pods.node[pod] == kNone ? kNone : nodes[state.pods.node[pod]];
  }
  return other;
}

std::vector<int> Permutation(int n, Rng* rng) {
  std::vector<int> permutation(n);
  std::iota(permutation.begin(), permutation.end(), 0);
  for (int i = n; i > 1; --i) std::swap(permutation[i - 1], permutation[rng->Below(i)]);
  return permutation;
}

RC_GTEST_PROP(MigrationTask, RelabelledNodesAndPodsEncodeToTheSameBits, ()) {
  Rng rng(*rc::gen::arbitrary<uint32_t>());
  const State state = *rc::gen::arbitrary<bool>() ? RandomWorld(&rng) : ContinuumWorld({}, &rng);
  const std::vector<int> nodes = Permutation(state.nodes.size(), &rng);
  const Asked asked(state), other(Relabelled(state, nodes, Permutation(state.pods.size(), &rng)));
  RC_ASSERT(asked.space.count() == other.space.count());
  RC_ASSERT(asked.batch.candidates == other.batch.candidates);
  RC_ASSERT(asked.batch.nodes == other.batch.nodes);
  RC_ASSERT(asked.batch.workloads == other.batch.workloads);
  RC_ASSERT(asked.batch.context == other.batch.context);
  for (int i = 0; i < asked.space.count(); ++i) {
    const Move& move = asked.space.candidates[i].move;
    const Move& same = other.space.candidates[i].move;
    RC_ASSERT(move.workload == same.workload);
    // Nodes that hold the same are told apart by their label alone; all others are mapped exactly.
    const auto twins = [&](NodeId a, NodeId b) {
      return asked.space.ends.key(a) == other.space.ends.key(b);
    };
    RC_ASSERT(nodes[move.from] == same.from || twins(move.from, same.from));
    RC_ASSERT(nodes[move.to] == same.to || twins(move.to, same.to));
  }
}

RC_GTEST_PROP(MigrationTask, FeaturesAreFiniteAndBounded, ()) {
  Rng rng(*rc::gen::arbitrary<uint32_t>());
  const Asked asked(RandomWorld(&rng),
                    {.features = *rc::gen::arbitrary<bool>() ? FeaturePreset::kModel
                                                             : FeaturePreset::kReachAgent},
                    rng.Between(0, 99));
  for (const auto* rows : {&asked.batch.candidates, &asked.batch.nodes, &asked.batch.workloads,
                           &asked.batch.context}) {
    for (float x : *rows) RC_ASSERT(std::isfinite(x) && std::abs(x) <= 8.001f);
  }
}

TEST(MigrationTask, EncodeAppendsOneSampleWithAllItsRows) {
  Rng rng(7);
  Asked asked(ContinuumWorld({}, &rng));
  asked.task.Encode(&asked.model, {1}, &asked.space, &asked.batch);
  EXPECT_EQ(asked.batch.samples, 2);
  EXPECT_EQ(asked.batch.candidate_count(1), asked.space.count());
  EXPECT_EQ(asked.batch.node_begin[2], 2 * asked.state.nodes.size());
  EXPECT_EQ(asked.batch.workload_begin[2], 2 * asked.state.catalog->workload_count());
  EXPECT_EQ(asked.batch.candidates.size(),
            2u * asked.space.count() * asked.task.widths().candidate);
  EXPECT_EQ(asked.batch.context.size(), 2u * asked.task.widths().context);
  EXPECT_LT(asked.batch.context[3],
            asked.batch.context[asked.task.widths().context + 3]);  // The step cost.
}

TEST(MigrationTask, PlacementEdgesOfAWorkloadSumToOne) {
  Rng rng(8);
  const Asked asked(ContinuumWorld({}, &rng));
  std::vector<float> sums(asked.state.catalog->workload_count());
  for (const GraphEdge& edge : asked.batch.placements) sums[edge.b] += edge.weight;
  for (float sum : sums) EXPECT_NEAR(sum, 1, 1e-6);
}

TEST(MigrationTask, DecodeMovesTheFirstPodOfTheWorkloadOnTheNodeAndStopMovesNone) {
  Rng rng(9);
  const Asked asked(ContinuumWorld({}, &rng));
  ASSERT_GT(asked.space.count(), 0);
  Decision decision;
  for (int i = 0; i < asked.space.count(); ++i) {
    asked.task.Decode(asked.state, asked.space, i, &decision);
    ASSERT_EQ(decision.size(), 1u);
    const Migrate& migrate = std::get<Migrate>(decision[0]);
    EXPECT_EQ(asked.model.ToMove(decision[0]), asked.space.candidates[i].move);
    EXPECT_TRUE(CellAllowed(asked.state, migrate.pod, migrate.to));
    for (PodId pod = 0; pod < migrate.pod; ++pod) {
      EXPECT_FALSE(asked.state.pods.workload[pod] == asked.state.pods.workload[migrate.pod] &&
                   asked.state.pods.node[pod] == migrate.from);
    }
  }
  asked.task.Decode(asked.state, asked.space, kStop, &decision);
  EXPECT_TRUE(decision.empty());
}

TEST(MigrationTask, TheFirstStepCostsThePenaltyAndGrowingLaterOnesMore) {
  const MigrationTask growing({});
  EXPECT_DOUBLE_EQ(growing.StepCost({0}), 0.2);
  EXPECT_DOUBLE_EQ(growing.StepCost({4}), 1.0);
  const MigrationTask constant({.step_penalty_ms = 1.25, .step_penalty = StepPenalty::kConstant});
  EXPECT_DOUBLE_EQ(constant.StepCost({4}), 1.25);
}

TEST(MigrationTask, ANodeThatIsExactlyFullAfterTheMoveIsAllowedAndAMilliCoreMoreIsNot) {
  for (const int64_t room : {300, 299}) {
    WorldBuilder world;
    const KindId kind = world.Kind("node", world.Layer("all"));
    const WorkloadId client = world.Workload("client", 100, 1, false),
                     web = world.Workload("web", 300, 1);
    const NodeId a = world.Node(kind, 1000, 100);
    world.Node(kind, room, 100);
    world.Pod(client, a);
    world.Pod(web, a);
    world.Endpoint({.workload = client, .groups = {{testing::CallTree{web, 1}}}});
    const Asked asked(world.Build());
    EXPECT_EQ(asked.space.count(), room == 300 ? 1 : 0);
    EXPECT_EQ(asked.space.allowed_cells, room == 300 ? 2 : 1);
  }
}

TEST(MigrationTask, FeatureHashTellsPresetsApartAndNamesAreUnique) {
  const MigrationTask model({}), agent({.features = FeaturePreset::kReachAgent});
  EXPECT_NE(model.FeatureHash(), agent.FeatureHash());
  EXPECT_EQ(model.FeatureHash(), MigrationTask({.step_penalty_ms = 3}).FeatureHash());
  for (const Task* task : {static_cast<const Task*>(&model), static_cast<const Task*>(&agent)}) {
    for (const auto* entity : {&task->features().candidate, &task->features().node,
                               &task->features().workload, &task->features().context}) {
      std::set<std::string_view> names;
      for (const FeatureDescription& f : *entity) {
        EXPECT_TRUE(names.insert(f.name).second) << f.name;
        EXPECT_FALSE(f.meaning.empty());
        EXPECT_GT(f.scale, 0);
      }
    }
  }
}

TEST(ParseMigrationOptions, ReadsEveryKeyAndRefusesOthersByPlace) {
  const auto options =
      ParseMigrationOptions(*ParseYaml("kind: migration\nobjective: latency\nstep_penalty_ms: "
                                       "1.25\nstep_penalty: constant\nmax_steps: 15\n"
                                       "features: reach-agent\nmax_candidates: 7\n",
                                       "x.yaml"));
  ASSERT_TRUE(options);
  EXPECT_EQ(options->step_penalty_ms, 1.25);
  EXPECT_EQ(options->step_penalty, StepPenalty::kConstant);
  EXPECT_EQ(options->max_steps, 15);
  EXPECT_EQ(options->features, FeaturePreset::kReachAgent);
  EXPECT_EQ(options->max_candidates, 7);
  const auto misspelt =
      ParseMigrationOptions(*ParseYaml("kind: migration\nmax_stepps: 3\n", "x.yaml"));
  ASSERT_FALSE(misspelt);
  EXPECT_NE(misspelt.error().message.find("x.yaml:2:1"), std::string::npos)
      << misspelt.error().message;
  EXPECT_NE(misspelt.error().message.find("max_steps"), std::string::npos);
  for (const char* text : {"kind: scaling", "objective: cost", "step_penalty: steep",
                           "max_steps: 0", "features: all", "step_penalty_ms: -1"}) {
    EXPECT_FALSE(ParseMigrationOptions(*ParseYaml(text, "x.yaml"))) << text;
  }
  EXPECT_TRUE(ParseMigrationOptions(YamlNode()));
}

}  // namespace
}  // namespace rudderfish
