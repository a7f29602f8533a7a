// SPDX-License-Identifier: Apache-2.0
#include "task/question_summary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "task/migration.h"
#include "tests/support/small_world.h"

// Every field against the state, the placement and the gains, each written out by itself: no sums
// that are shared, no order.

namespace rudderfish {
namespace {

using testing::CallTree;
using testing::ContinuumWorld;
using testing::RandomWorld;
using testing::WorldBuilder;

constexpr float kNothing = -1e9f;  // The best of nothing.

struct Asked {
  State state;
  Evaluator model{LatencyLaw::Reach()};
  ActionSpace space;
  QuestionSummary q;
  StepCosts costs;

  const Placement& placement() const { return model.placement(); }
  const Catalog& catalog() const { return *state.catalog; }
  const CallGraph& calls() const { return *state.calls; }
  int workloads() const { return catalog().workload_count(); }
  int kinds() const { return catalog().kind_count(); }
  LayerId LayerOf(KindId kind) const { return catalog().kinds[kind].layer; }
  bool Accepts(KindId kind) const { return catalog().layers[LayerOf(kind)].accepts_moves; }
  bool Moves(WorkloadId w) const {
    return catalog().workloads[w].movable && placement().replicas(w) > 0;
  }

  void Summarise(int step, int max_candidates) {
    MigrationTask({.max_candidates = max_candidates}).Space(&model, {step}, &space);
    q.Update(&model, costs, {step}, space.ends, space.candidates);
  }

  // Best gain of moving a pod of the workload to the kind, from a kind that has one.
  float BestIn(WorkloadId w, KindId to) {
    float best = kNothing;
    for (KindId from = 0; from < kinds(); ++from) {
      if (from == to || placement().on_kind(w, from) == 0 || !Accepts(to)) continue;
      best = std::max(best, model.Gains().Gain(w, from, to));
    }
    return best;
  }
  float BestOut(WorkloadId w, KindId from) {
    float best = kNothing;
    for (KindId to = 0; to < kinds(); ++to) {
      if (to != from && Accepts(to)) best = std::max(best, model.Gains().Gain(w, from, to));
    }
    return best;
  }
  double ShareOnLayer(WorkloadId w, LayerId layer) const {
    double pods = 0;
    for (KindId kind = 0; kind < kinds(); ++kind)
      pods += LayerOf(kind) == layer ? placement().on_kind(w, kind) : 0;
    return pods == 0 ? 0 : pods / placement().replicas(w);
  }
};

void ExpectNear(double value, double expected) {
  EXPECT_NEAR(value, expected, 1e-4 + 1e-5 * std::abs(expected));
}

// The same kinds, each in a layer of its own: more layers than go into one quad.
State WithALayerForEachKind(State state, Rng* rng) {
  auto catalog = std::make_shared<Catalog>(*state.catalog);
  const std::vector<NodeKind> kinds = catalog->kinds;
  catalog->layers.clear();
  state.network = {.layers = catalog->kind_count()};
  for (KindId kind = 0; kind < catalog->kind_count(); ++kind) {
    catalog->layers.push_back(state.catalog->layers[kinds[kind].layer]);
    catalog->kinds[kind].layer = kind;
    for (LayerId to = 0; to < catalog->kind_count(); ++to)
      state.network.latency_ms.push_back(rng->Uniform(1, 100));
  }
  state.catalog = catalog;
  return state;
}

// `check` on worlds of many shapes, of both laws, before and after moves; one summary for all.
void ForWorlds(int count, const std::function<void(Asked*)>& check) {
  Asked asked;
  for (int i = 0; i < count && !::testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE(i);
    Rng rng(i, 7);
    asked.state = i % 3 == 2 ? ContinuumWorld({}, &rng) : RandomWorld(&rng);
    if (i % 6 == 1) asked.state = WithALayerForEachKind(asked.state, &rng);
    asked.model = Evaluator(i % 2 == 0 ? LatencyLaw::Reach() : LatencyLaw::Physical());
    asked.model.Reset(asked.state);
    asked.costs = {.next_ms = static_cast<float>(rng.Uniform(0, 20)),
                   .growth_ms = static_cast<float>(rng.Uniform(0, 1))};
    for (int step = 0; step < 3; ++step) {
      asked.Summarise(step, i % 4 == 0 ? 5 : 1024);
      check(&asked);
      if (asked.space.count() == 0) break;
      asked.model.Commit(asked.space.candidates[rng.Below(asked.space.count())].move);
    }
  }
}

TEST(QuestionSummary, KnowsOfAWorkloadWhatItAsksForAndHowFastItCouldRun) {
  ForWorlds(90, [](Asked* a) {
    const double per_endpoint = 1.0 / a->calls().endpoints.size();
    int mover = 0;
    for (WorkloadId w = 0; w < a->workloads(); ++w) {
      const WorkloadSummary& s = a->q.workload(w);
      EXPECT_EQ(s.requests, a->catalog().workloads[w].requests);
      EXPECT_EQ(s.replicas, a->placement().replicas(w));
      EXPECT_EQ(s.movable, a->catalog().workloads[w].movable);
      EXPECT_EQ(s.mover, a->Moves(w) ? mover++ : kNone);
      ExpectNear(s.share * s.replicas, s.replicas > 0 ? 1 : 0);
      ExpectNear(s.per_cpu * s.requests.cpu_millis, 1);
      ExpectNear(static_cast<double>(s.per_byte) * s.requests.memory_bytes, 1);
      std::vector<double> on_kind(a->kinds());
      double taken = 0, execution_now = 0, hop_in = 0, hop_out = 0;
      for (CallId call = 0; call < a->calls().call_count(); ++call) {
        const bool callee = a->calls().calls[call].workload == w;
        const WorkloadId caller = a->model.CallerOf(call);
        if (callee) execution_now += a->model.cost(call).execution_ms * per_endpoint;
        for (KindId kind = 0; callee && kind < a->kinds(); ++kind)
          on_kind[kind] += a->model.SojournMs(call, kind) * per_endpoint;
        if (callee && caller != kNone) {
          taken += per_endpoint;
          hop_in += a->model.cost(call).hop_ms * per_endpoint;
        }
        if (caller == w) hop_out += a->model.cost(call).hop_ms * per_endpoint;
      }
      for (KindId kind = 0; kind < a->kinds(); ++kind)
        ExpectNear(a->q.ExecutionOn(w, kind), on_kind[kind]);
      ExpectNear(s.execution_best, *std::min_element(on_kind.begin(), on_kind.end()));
      ExpectNear(s.calls, taken);
      ExpectNear(s.execution_now, execution_now);
      ExpectNear(s.hop_in, hop_in);
      ExpectNear(s.hop_out, hop_out);
    }
  });
}

TEST(QuestionSummary, KnowsOfAWorkloadWhatItsMovesCouldGain) {
  ForWorlds(120, [](Asked* a) {
    const MoveGains& gains = a->model.Gains();
    double sum = 0;
    for (WorkloadId w = 0; w < a->workloads(); ++w) {
      const WorkloadSummary& s = a->q.workload(w);
      float best = kNothing, all = kNothing, blocked = kNothing;
      KindId best_kind = kNone;
      for (const Candidate& c : a->space.candidates) {
        if (c.move.workload == w) best = std::max(best, c.gain_ms);
      }
      EXPECT_EQ(s.best_gain, best == kNothing ? 0 : best);
      for (KindId to = 0; to < a->kinds() && a->Moves(w); ++to) {
        if (!a->Accepts(to)) continue;
        if (gains.GainOfAll(w, to) > all) all = gains.GainOfAll(w, to), best_kind = to;
        blocked = std::max(blocked, a->BestIn(w, to));
      }
      EXPECT_EQ(s.best_all, all == kNothing ? 0 : all);
      EXPECT_EQ(s.best_blocked, blocked == kNothing ? 0 : blocked);
      EXPECT_EQ(s.best_kind, best_kind);
      sum += std::max(0.0f, s.best_all);
      int hosts = 0;
      for (NodeId node = 0; node < a->placement().node_count(); ++node)
        hosts += a->placement().on_node(w, node) > 0;
      ExpectNear(s.spread, a->Moves(w) ? static_cast<double>(hosts) / s.replicas : 0);
      if (best_kind == kNone) continue;
      const int there = a->placement().on_kind(w, best_kind);
      ExpectNear(s.share_on_best, static_cast<double>(there) / s.replicas);
      const double room = a->q.KindRoom(w, best_kind) / (s.replicas - there);
      ExpectNear(s.room_on_best, there == s.replicas ? 2 : std::min(2.0, room));
    }
    ExpectNear(a->q.sum_best_all, sum);
  });
}

TEST(QuestionSummary, RanksCandidatesOverAllAndOverOtherWorkloads) {
  ForWorlds(150, [](Asked* a) {
    float best = kNothing;
    int paying = 0;
    for (const Candidate& c : a->space.candidates) {
      best = std::max(best, c.gain_ms);
      paying += c.gain_ms > a->costs.next_ms;
    }
    EXPECT_EQ(a->q.best_gain, a->space.count() == 0 ? 0 : best);
    ExpectNear(a->q.paying, static_cast<double>(paying) / std::max(1, a->space.count()));
    ExpectNear(a->q.per_best_gain * std::max({a->q.best_gain, a->costs.next_ms, 1e-3f}), 1);
    for (WorkloadId w = 0; w < a->workloads(); ++w) {
      float others = 0;
      for (const Candidate& c : a->space.candidates) {
        if (c.move.workload != w) others = std::max(others, c.gain_ms);
      }
      EXPECT_EQ(a->q.BestGainOfOthers(w), others);
    }
  });
}

TEST(QuestionSummary, SharesOfLayersAreOfPodsAndAddUpOverCallersAndCallees) {
  ForWorlds(60, [](Asked* a) {
    const int layers = a->catalog().layer_count();
    for (WorkloadId w = 0; w < a->workloads(); ++w) {
      std::vector<double> callers(layers), callees(layers);
      double caller_sum = 0, callee_sum = 0;
      for (LayerId layer = 0; layer < layers; ++layer) {
        ExpectNear(a->q.ShareOnLayer(w, layer), a->ShareOnLayer(w, layer));
        for (CallId call = 0; call < a->calls().call_count(); ++call) {
          const WorkloadId caller = a->model.CallerOf(call);
          const WorkloadId callee = a->calls().calls[call].workload;
          if (caller == kNone) continue;
          if (callee == w) callers[layer] += a->ShareOnLayer(caller, layer);
          if (caller == w) callees[layer] += a->ShareOnLayer(callee, layer);
        }
        caller_sum += callers[layer];
        callee_sum += callees[layer];
      }
      EXPECT_EQ(a->q.ShareOnLayer(w, layers), 0);  // A layer that this world does not have.
      for (LayerId layer = 0; layer < layers; ++layer) {
        ExpectNear(a->q.CallersOnLayer(w, layer), caller_sum > 0 ? callers[layer] / caller_sum : 0);
        ExpectNear(a->q.CalleesOnLayer(w, layer), callee_sum > 0 ? callees[layer] / callee_sum : 0);
      }
    }
  });
}

TEST(QuestionSummary, CallsAreEveryCallerAndCalleeByTheShareOfItsEndpoint) {
  ForWorlds(40, [](Asked* a) {
    std::vector<GraphEdge> edges;
    for (CallId call = 0; call < a->calls().call_count(); ++call) {
      const WorkloadId caller = a->model.CallerOf(call);
      if (caller == kNone) continue;
      edges.push_back({caller, a->calls().calls[call].workload,
                       1.0f / static_cast<float>(a->calls().endpoints.size())});
    }
    ASSERT_EQ(a->q.calls().size(), edges.size());
    for (size_t i = 0; i < edges.size(); ++i) {
      EXPECT_EQ(a->q.calls()[i].a, edges[i].a);
      EXPECT_EQ(a->q.calls()[i].b, edges[i].b);
      ExpectNear(a->q.calls()[i].weight, edges[i].weight);
    }
  });
}

// Whole pods of the workload that fit the node; one less where the division comes out even and
// floats may round it down.
double PodsThatFit(const Resources& free, const Resources& requests, bool rounded_down) {
  const int64_t cpu = free.cpu_millis / requests.cpu_millis;
  const int64_t memory = free.memory_bytes / requests.memory_bytes;
  const int64_t even =
      free.cpu_millis % requests.cpu_millis == 0 || free.memory_bytes % requests.memory_bytes == 0;
  return std::max<int64_t>(1, std::min(cpu, memory) - (rounded_down ? even : 0));
}

TEST(QuestionSummary, CountsRoomOnKindsAndLayersInWholePods) {
  ForWorlds(120, [](Asked* a) {
    for (WorkloadId w = 0; w < a->workloads(); ++w) {
      std::vector<double> on_layer(a->catalog().layer_count());
      for (KindId kind = 0; kind < a->kinds(); ++kind) {
        double least = 0, most = 0;
        for (NodeId node = 0; node < a->placement().node_count(); ++node) {
          if (a->placement().kind(node) != kind || !a->Moves(w) || !a->Accepts(kind)) continue;
          if (!a->placement().Fits(w, node) || a->placement().has_left(w, node)) continue;
          const Resources& requests = a->placement().requests(w);
          least += PodsThatFit(a->placement().free(node), requests, true);
          most += PodsThatFit(a->placement().free(node), requests, false);
        }
        EXPECT_GE(a->q.KindRoom(w, kind), least);
        EXPECT_LE(a->q.KindRoom(w, kind), most);
        on_layer[a->LayerOf(kind)] += a->q.KindRoom(w, kind);
      }
      for (LayerId layer = 0; layer < a->catalog().layer_count() && a->Moves(w); ++layer) {
        const double elsewhere =
            std::round(a->placement().replicas(w) * (1 - a->ShareOnLayer(w, layer)));
        ExpectNear(a->q.LayerRoom(w, layer),
                   elsewhere == 0 ? 2 : std::min(2.0, on_layer[layer] / elsewhere));
      }
    }
  });
}

TEST(QuestionSummary, KindsAreSlowFarAndGoodForEverythingByMeans) {
  ForWorlds(60, [](Asked* a) {
    const MoveGains& gains = a->model.Gains();
    const int nodes = a->placement().node_count();
    double fastest = 0, hop_sum = 0, hop_max = 0, everything = kNothing, each = 0;
    for (WorkloadId w = 0; w < a->workloads(); ++w) fastest += a->q.workload(w).execution_best;
    for (KindId kind = 0; kind < a->kinds(); ++kind) {
      const KindSummary& s = a->q.kind(kind);
      EXPECT_EQ(s.layer, a->LayerOf(kind));
      EXPECT_EQ(s.accepts_moves, a->Accepts(kind) ? 1 : 0);
      double on_kind = 0, execution = 0, hop_in = 0, hop_out = 0;
      for (NodeId node = 0; node < nodes; ++node) {
        const KindId other = a->placement().kind(node);
        on_kind += other == kind;
        hop_in += a->model.HopMsBetween(other, kind) / nodes;
        hop_out += a->model.HopMsBetween(kind, other) / nodes;
      }
      for (WorkloadId w = 0; w < a->workloads(); ++w) execution += a->q.ExecutionOn(w, kind);
      EXPECT_EQ(s.nodes, on_kind);
      ExpectNear(s.slowness, fastest > 0 ? execution / fastest - 1 : 0);
      ExpectNear(s.hop_in, hop_in);
      ExpectNear(s.hop_out, hop_out);
      for (KindId other = 0; other < a->kinds(); ++other) {
        ExpectNear(a->q.Hop(kind, other), a->model.HopMsBetween(kind, other));
        if (other == kind) continue;
        hop_sum += a->model.HopMsBetween(kind, other);
        hop_max = std::max(hop_max, a->model.HopMsBetween(kind, other));
      }
      EXPECT_EQ(s.everything, gains.GainOfEverything(kind));
      int to_go = 0;
      for (WorkloadId w = 0; w < a->workloads(); ++w) {
        if (a->Moves(w)) to_go += a->placement().replicas(w) - a->placement().on_kind(w, kind);
      }
      ExpectNear(s.everything_each, gains.GainOfEverything(kind) / std::max(1, to_go));
      if (!a->Accepts(kind)) continue;
      everything = std::max<double>(everything, gains.GainOfEverything(kind));
      each = std::max<double>(each, s.everything_each);
    }
    ExpectNear(a->q.best_everything, everything);
    ExpectNear(a->q.best_everything_each, each);
    ExpectNear(a->q.hop_mean, hop_sum / (a->kinds() * (a->kinds() - 1)));
    ExpectNear(a->q.hop_max, hop_max);
  });
}

TEST(QuestionSummary, NodesSayWhatFitsAndWhatMovesToAndFromThemGain) {
  ForWorlds(120, [](Asked* a) {
    Resources largest;
    int movable = 0;
    for (const Workload& workload : a->catalog().workloads) {
      if (!workload.movable) continue;
      ++movable;
      largest.cpu_millis = std::max(largest.cpu_millis, workload.requests.cpu_millis);
      largest.memory_bytes = std::max(largest.memory_bytes, workload.requests.memory_bytes);
    }
    double free_cpu = 0, cpu = 0;
    for (int row = 0; row < a->q.node_count(); ++row) {
      const NodeId id = a->space.ends.node(row).id;
      const NodeSummary& n = a->q.node(row);
      const Resources& free = a->placement().free(id);
      const double allocatable = a->state.nodes.allocatable[id].cpu_millis;
      EXPECT_EQ(n.free_millis, static_cast<float>(free.cpu_millis));
      EXPECT_EQ(n.free_bytes, static_cast<float>(free.memory_bytes));
      EXPECT_EQ(n.kind, a->placement().kind(id));
      EXPECT_EQ(a->q.layer(row), a->LayerOf(n.kind));
      ExpectNear(n.used_cpu, 1 - free.cpu_millis / allocatable);
      EXPECT_EQ(n.room_largest, free.Fits(largest) ? 1 : 0);
      float in = 0, blocked = 0, out = 0;
      int pods = 0, fits = 0;
      for (WorkloadId w = 0; w < a->workloads(); ++w) {
        const int here = a->placement().on_node(w, id);
        pods += here;
        if (!a->Moves(w)) continue;
        if (here > 0) out = std::max(out, a->BestOut(w, n.kind));
        if (!a->Accepts(n.kind)) continue;
        const bool fitting = a->placement().Fits(w, id);
        fits += fitting;
        float& best = fitting ? in : blocked;
        best = std::max(best, a->BestIn(w, n.kind));
      }
      EXPECT_EQ(n.pods, pods);
      ExpectNear(n.fits, static_cast<double>(fits) / movable);
      EXPECT_EQ(n.best_in, in);
      EXPECT_EQ(n.best_blocked, blocked);
      EXPECT_EQ(n.best_out, out);
      if (!a->Accepts(n.kind)) continue;
      free_cpu += free.cpu_millis;
      cpu += allocatable;
    }
    ExpectNear(a->q.free_cpu, free_cpu / cpu);
  });
}

TEST(QuestionSummary, AMoveUnlocksItsSourceAndBlocksItsTargetForOthers) {
  ForWorlds(90, [](Asked* a) {
    for (WorkloadId w = 0; w < a->workloads(); ++w) {
      for (int row = 0; row < a->q.node_count(); ++row) {
        const NodeId id = a->space.ends.node(row).id;
        const Resources &free = a->placement().free(id), &requests = a->placement().requests(w);
        if (!a->Accepts(a->placement().kind(id))) {
          EXPECT_EQ(a->q.UnlockedBy(w, row).gain, 0);
          EXPECT_EQ(a->q.UnlockedBy(w, row).workloads, 0);
          continue;
        }
        Sequel unlocked, blocked;
        for (WorkloadId other = 0; other < a->workloads(); ++other) {
          if (!a->Moves(other)) continue;
          const Resources& theirs = a->placement().requests(other);
          const float gain = a->BestIn(other, a->placement().kind(id));
          if (!free.Fits(theirs) && (free + requests).Fits(theirs)) {
            unlocked.gain = std::max(unlocked.gain, gain);
            ++unlocked.workloads;
          }
          if (free.Fits(theirs) && !(free - requests).Fits(theirs)) {
            blocked.gain = std::max(blocked.gain, gain);
            ++blocked.workloads;
          }
        }
        EXPECT_EQ(a->q.UnlockedBy(w, row).gain, unlocked.gain);
        EXPECT_EQ(a->q.UnlockedBy(w, row).workloads, unlocked.workloads);
        EXPECT_EQ(a->q.BlockedBy(w, row).gain, blocked.gain);
        EXPECT_EQ(a->q.BlockedBy(w, row).workloads, blocked.workloads);
      }
    }
  });
}

TEST(QuestionSummary, KnowsThePlanAndTheLatency) {
  ForWorlds(20, [](Asked* a) {
    const Terms& now = a->model.Now();
    ExpectNear(a->q.latency_ms, now.latency_ms);
    ExpectNear(a->q.execution_ms, now.execution_ms);
    ExpectNear(a->q.network_ms, now.network_ms);
    EXPECT_EQ(a->q.step_cost_ms, a->costs.next_ms);
    ExpectNear(a->q.client_cloud_ms, a->state.network.LatencyMs(a->catalog().layer_count() - 1, 0));
    double sum = 0;
    for (int moves = 0; moves < 5; ++moves) {
      ExpectNear(a->q.CostOf(static_cast<float>(moves)), sum);
      sum += a->costs.next_ms + moves * a->costs.growth_ms;
    }
  });
}

TEST(QuestionSummary, WhereNothingMayMoveNothingIsGained) {
  WorldBuilder world;
  const KindId kind = world.Kind("node", world.Layer("fixed", false));
  const WorkloadId client = world.Workload("client", 100, 1, false),
                   web = world.Workload("web", 300, 1);
  const NodeId a = world.Node(kind, 1000, 100);
  world.Node(kind, 1000, 100);
  world.Pod(client, a);
  world.Pod(web, a);
  world.Endpoint({.workload = client, .groups = {{CallTree{web, 10}}}});
  Asked asked;
  asked.state = world.Build();
  asked.model.Reset(asked.state);
  asked.Summarise(0, 1024);
  const WorkloadSummary& s = asked.q.workload(web);
  EXPECT_EQ(asked.space.count(), 0);
  EXPECT_EQ(s.best_gain, 0);
  EXPECT_EQ(s.best_all, 0);
  EXPECT_EQ(s.best_blocked, 0);
  EXPECT_EQ(s.best_kind, kNone);
  EXPECT_EQ(asked.q.best_gain, 0);
  EXPECT_EQ(asked.q.BestGainOfOthers(client), 0);
  EXPECT_EQ(asked.q.best_everything, 0);
  EXPECT_EQ(asked.q.best_everything_each, 0);
  EXPECT_EQ(asked.q.free_cpu, 0);
  EXPECT_EQ(asked.q.paying, 0);
  EXPECT_EQ(asked.q.hop_mean, 0);  // There is one kind.
  for (int row = 0; row < 2; ++row) {
    EXPECT_EQ(asked.q.node(row).fits, 0);
    EXPECT_EQ(asked.q.node(row).best_in, 0);
    EXPECT_EQ(asked.q.node(row).best_out, 0);
  }
  ExpectNear(asked.q.per_best_gain, 1000);  // Neither gain nor cost: a microsecond.
}

// What a pod does not ask for does not limit how many there is room for.
TEST(QuestionSummary, RoomIsLimitedByWhatAPodAsksFor) {
  WorldBuilder world;
  const KindId kind = world.Kind("node", world.Layer("all"));
  const WorkloadId client = world.Workload("client", 100, 1, false);
  const WorkloadId light = world.Workload("light", 0, 30), busy = world.Workload("busy", 300, 0),
                   nothing = world.Workload("nothing", 0, 0);
  const NodeId a = world.Node(kind, 1000, 100);
  world.Node(kind, 1000, 100);
  for (WorkloadId w : {client, light, busy, nothing}) world.Pod(w, a);
  world.Endpoint({.workload = client, .groups = {{CallTree{light, 10}, CallTree{busy, 10}}}});
  Asked asked;
  asked.state = world.Build();
  asked.model.Reset(asked.state);
  asked.Summarise(0, 1024);
  EXPECT_EQ(asked.q.KindRoom(light, kind), 2 + 3);   // 69 and 100 MiB are free,
  EXPECT_EQ(asked.q.KindRoom(busy, kind), 2 + 3);    // 600 and 1000 milli-cores.
  EXPECT_EQ(asked.q.KindRoom(nothing, kind), 2e6f);  // A million a node stand for no limit.
  EXPECT_EQ(asked.q.workload(light).per_cpu, 1e6f);
  EXPECT_EQ(asked.q.workload(nothing).per_byte, 1e6f);
}

}  // namespace
}  // namespace rudderfish
