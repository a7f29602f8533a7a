// SPDX-License-Identifier: Apache-2.0
#include "evaluation/evaluation.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "evaluation/comparison.h"
#include "policy/baselines.h"
#include "policy/greedy.h"
#include "scenario/scenario.h"
#include "sim/held_out.h"
#include "task/migration.h"
#include "tests/support/small_evaluation.h"
#include "tests/support/source_path.h"

namespace rudderfish {
namespace {

using testing::ContinuumStarts;

const MigrationTask kTask({});

std::vector<PolicyGroup> Baselines() {
  return {{"stay", {std::make_shared<StayPolicy>()}},
          {"random", {std::make_shared<RandomPolicy>()}},
          {"greedy", {std::make_shared<GreedyPolicy>()}}};
}

Evaluation RunAll(std::span<const StartState> starts, const std::vector<PolicyGroup>& policies,
                  int threads = 1, const Task& task = kTask) {
  ThreadPool pool(threads);
  return Evaluate(LatencyLaw::Reach(), task, starts, policies, {.scenario = "test", .seed = 3},
                  &pool);
}

PodId PodNamed(const State& state, const std::string& name) {
  for (PodId pod = 0; pod < state.pods.size(); ++pod) {
    if (PodName(state, pod) == name) return pod;
  }
  return kNone;
}

NodeId NodeNamed(const State& state, const std::string& name) {
  const auto& names = state.names->nodes;
  return static_cast<NodeId>(std::find(names.begin(), names.end(), name) - names.begin());
}

// Always the first alternative: goes on until the steps run out.
class TirelessPolicy final : public Policy {
 public:
  std::string_view name() const override { return "tireless"; }
  std::unique_ptr<Memory> NewMemory(uint64_t) const override { return std::make_unique<Memory>(); }
  void Decide(std::span<Ask> asks, std::span<Answer> answers) const override {
    for (size_t i = 0; i < asks.size(); ++i) {
      answers[i].choice = asks[i].space->count() > 0 ? 0 : kStop;
    }
  }
};

// Answers with an alternative that there is not.
class WildPolicy final : public Policy {
 public:
  std::string_view name() const override { return "wild"; }
  std::unique_ptr<Memory> NewMemory(uint64_t) const override { return std::make_unique<Memory>(); }
  void Decide(std::span<Ask> asks, std::span<Answer> answers) const override {
    for (size_t i = 0; i < asks.size(); ++i) answers[i].choice = asks[i].space->count();
  }
};

TEST(Evaluation, ReplayingTheNamedDecisionsEndsAtTheFinalLatency) {
  const std::vector<StartState> starts = ContinuumStarts(12);
  const Evaluation evaluation = RunAll(starts, Baselines());
  int moves = 0;
  for (const EvaluatedPolicy& policy : evaluation.policies) {
    for (const EvaluatedEpisode& episode : policy.episodes) {
      State state = starts[episode.start].state;
      Evaluator model(LatencyLaw::Reach());
      model.Reset(state);
      EXPECT_EQ(model.Now().latency_ms, episode.initial.latency_ms);
      for (const MadeDecision& decision : episode.decisions) {
        const PodId pod = PodNamed(state, decision.pod);
        ASSERT_NE(pod, kNone);
        ASSERT_EQ(state.pods.node[pod], NodeNamed(state, decision.from));
        const NodeId to = NodeNamed(state, decision.to);
        ASSERT_TRUE(state.nodes.free[to].Fits(state.workload_of(pod).requests));
        MovePod(pod, to, &state);
        ++moves;
      }
      model.Reset(state);
      EXPECT_EQ(model.Now().latency_ms, episode.final.latency_ms);
    }
  }
  EXPECT_GT(moves, 50);
}

TEST(Evaluation, PredictedGainsAddUpToTheFallInLatency) {
  const std::vector<StartState> starts = ContinuumStarts(9);
  const Evaluation evaluation = RunAll(starts, Baselines());
  for (const EvaluatedPolicy& policy : evaluation.policies) {
    for (const EvaluatedEpisode& episode : policy.episodes) {
      double predicted_ms = 0;
      for (const MadeDecision& decision : episode.decisions) predicted_ms += decision.predicted_ms;
      EXPECT_NEAR(episode.initial.latency_ms - predicted_ms, episode.final.latency_ms, 1e-9);
    }
  }
}

TEST(Evaluation, ResultsDoNotDependOnTheNumberOfThreads) {
  const std::vector<StartState> starts = ContinuumStarts(40);
  const auto text = [&](int threads) {
    Evaluation evaluation = RunAll(starts, Baselines(), threads);
    for (DecisionTimes& times : evaluation.times) times = {};
    return EvaluationJson(evaluation, Compare(evaluation, {.resamples = 100}));
  };
  const std::string alone = text(1);
  EXPECT_EQ(text(2), alone);
  EXPECT_EQ(text(5), alone);
}

TEST(Evaluation, APlanTakesAtLeastAsLongAsEachOfItsDecisions) {
  const std::vector<StartState> starts = ContinuumStarts(1);
  const Evaluation evaluation = RunAll(starts, Baselines());
  for (const DecisionTimes& times : evaluation.times) {
    EXPECT_GT(times.p50_us, 0);
    EXPECT_GE(times.plan_mean_us, times.p99_us);  // One episode: its plan is all there is.
    EXPECT_EQ(times.plan_p99_us, times.plan_mean_us);
  }
}

TEST(Evaluation, StayEndsWhereItStarted) {
  const std::vector<StartState> starts = ContinuumStarts(3);
  const Evaluation evaluation = RunAll(starts, Baselines());
  for (const EvaluatedEpisode& episode : evaluation.policies[0].episodes) {
    EXPECT_EQ(episode.final.latency_ms, episode.initial.latency_ms);
    EXPECT_TRUE(episode.decisions.empty());
    EXPECT_TRUE(episode.stopped);
    EXPECT_EQ(episode.return_ms, 0);
  }
}

TEST(Evaluation, AllowedActionsAreTheCellsOfTheStartsMaskAndStop) {
  const std::vector<StartState> starts = ContinuumStarts(6);
  const Evaluation evaluation = RunAll(starts, Baselines());
  for (int i = 0; i < evaluation.start_count(); ++i) {
    const State& state = starts[i].state;
    int64_t cells = 1;
    for (PodId pod = 0; pod < state.pods.size(); ++pod) {
      for (NodeId node = 0; node < state.nodes.size(); ++node) {
        const Workload& workload = state.workload_of(pod);
        cells += workload.movable && node != state.pods.node[pod] &&
                 state.catalog->layers[state.kind_of(node).layer].accepts_moves &&
                 state.nodes.free[node].Fits(workload.requests);
      }
    }
    for (const EvaluatedPolicy& policy : evaluation.policies) {
      EXPECT_EQ(policy.episodes[i].allowed_actions, cells);
    }
  }
}

TEST(Evaluation, ReturnIsWhatTheMovesGainLessWhatTheyCost) {
  const std::vector<StartState> starts = ContinuumStarts(6);
  const Evaluation evaluation = RunAll(starts, Baselines());
  for (const EvaluatedPolicy& policy : evaluation.policies) {
    for (const EvaluatedEpisode& episode : policy.episodes) {
      double gain_ms = 0;
      for (size_t step = 0; step < episode.decisions.size(); ++step) {
        gain_ms += episode.decisions[step].predicted_ms - kTask.StepCost({static_cast<int>(step)});
      }
      EXPECT_NEAR(episode.return_ms, gain_ms, 1e-9);
    }
  }
}

TEST(Evaluation, EpisodesEndAtTheTasksLimitOfSteps) {
  const MigrationTask brief({.max_steps = 3});
  const Evaluation evaluation =
      RunAll(ContinuumStarts(2), {{"tireless", {std::make_shared<TirelessPolicy>()}}}, 1, brief);
  for (const EvaluatedEpisode& episode : evaluation.policies[0].episodes) {
    EXPECT_EQ(episode.decisions.size(), 3);
    EXPECT_FALSE(episode.stopped);
  }
}

TEST(Evaluation, EveryTrainingSeedRunsFromEveryStart) {
  const auto greedy = std::make_shared<GreedyPolicy>();
  const Evaluation evaluation =
      RunAll(ContinuumStarts(20),
             {{"stay", {std::make_shared<StayPolicy>()}}, {"group", {greedy, greedy}}}, 2);
  const EvaluatedPolicy& group = evaluation.policies[1];
  ASSERT_EQ(group.training_seeds, 2);
  ASSERT_EQ(group.episodes.size(), 40);
  for (int start = 0; start < 20; ++start) {
    EXPECT_EQ(group.at(1, start, 20).training_seed, 1);
    EXPECT_EQ(group.at(1, start, 20).start, start);
    EXPECT_EQ(group.at(0, start, 20).final.latency_ms, group.at(1, start, 20).final.latency_ms);
  }
}

TEST(Evaluation, AnAnswerThatIsNoAlternativeEndsTheProcess) {
  const std::vector<StartState> starts = ContinuumStarts(1);
  EXPECT_DEATH(RunAll(starts, {{"wild", {std::make_shared<WildPolicy>()}}}), "space_.count");
}

TEST(Evaluation, OptimaAreAskedOfEveryStart) {
  const std::vector<StartState> starts = ContinuumStarts(3);
  ThreadPool pool(2);
  const auto optimum = [](const State& start) -> std::optional<double> {
    if (start.calls->name == "parallel") return std::nullopt;
    return 12.5;
  };
  const std::vector<PolicyGroup> policies = Baselines();
  const Evaluation evaluation = Evaluate(LatencyLaw::Reach(), kTask, starts, policies,
                                         {.scenario = "test", .optimum = optimum}, &pool);
  EXPECT_EQ(evaluation.starts[0].optimum_ms, 12.5);
  EXPECT_EQ(evaluation.starts[1].optimum_ms, 12.5);
  EXPECT_FALSE(evaluation.starts[2].optimum_ms.has_value());
}

TEST(Evaluation, NoEpisodeCostsLessThanTheProvenOptimum) {
  std::vector<StartState> starts;
  for (int i = 0; i < 4; ++i) {
    Rng rng(31, 0, i);
    starts.push_back({i, testing::ContinuumWorld({.edges = 2, .replicas_max = 2}, &rng)});
  }
  ThreadPool pool(2);
  const std::vector<PolicyGroup> policies = Baselines();
  const Evaluation evaluation =
      Evaluate(LatencyLaw::Reach(), kTask, starts, policies,
               {.optimum = ExactOptimum(LatencyLaw::Reach(), kTask)}, &pool);
  int proven = 0;
  for (const EvaluatedPolicy& policy : evaluation.policies) {
    for (const EvaluatedEpisode& episode : policy.episodes) {
      const std::optional<double> optimum_ms = evaluation.starts[episode.start].optimum_ms;
      if (!optimum_ms) continue;
      EXPECT_LE(*optimum_ms, episode.initial.latency_ms - episode.return_ms + 0.01);
      ++proven;
    }
  }
  EXPECT_GT(proven, 0);
}

TEST(Evaluation, ProgressEndsAtAllEpisodes) {
  const std::vector<StartState> starts = ContinuumStarts(4);
  ThreadPool pool(1);
  double last = 0;
  std::string text;
  const auto progress = [&](double fraction, std::string_view line) {
    EXPECT_GT(fraction, last);
    last = fraction;
    text = line;
  };
  const std::vector<PolicyGroup> policies = Baselines();
  Evaluate(LatencyLaw::Reach(), kTask, starts, policies, {.progress = progress}, &pool);
  EXPECT_EQ(last, 1);
  EXPECT_EQ(text, "12 of 12 episodes");
}

class DrawStartsTest : public ::testing::Test {
 protected:
  static std::vector<double> Latencies(uint64_t seed, int episodes) {
    auto scenario = LoadScenario(SourcePath("scenarios/continuum-7x21.yaml"));
    EXPECT_TRUE(scenario.has_value());
    const World world(std::make_shared<const Scenario>(*scenario));
    auto starts = DrawStarts(world, seed, episodes);
    EXPECT_TRUE(starts.has_value());
    std::vector<double> latencies;
    Evaluator model(LatencyLaw::Reach());
    for (const StartState& start : *starts) {
      EXPECT_EQ(start.line, static_cast<int>(latencies.size()));
      model.Reset(start.state);
      latencies.push_back(model.Now().latency_ms);
    }
    return latencies;
  }
};

TEST_F(DrawStartsTest, MoreEpisodesBeginWithTheSameOnes) {
  const std::vector<double> some = Latencies(5, 10), more = Latencies(5, 20);
  EXPECT_TRUE(std::equal(some.begin(), some.end(), more.begin()));
}

TEST_F(DrawStartsTest, AnotherSeedDrawsOtherStarts) {
  const std::vector<double> one = Latencies(1, 10), two = Latencies(2, 10);
  for (double latency : one) EXPECT_EQ(std::count(two.begin(), two.end(), latency), 0);
}

TEST_F(DrawStartsTest, StartsDifferFromEachOther) {
  std::vector<double> latencies = Latencies(1, 50);
  std::sort(latencies.begin(), latencies.end());
  EXPECT_EQ(std::unique(latencies.begin(), latencies.end()), latencies.end());
}

}  // namespace
}  // namespace rudderfish
