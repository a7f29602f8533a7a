// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/rng.h"
#include "cluster/state.h"

// Worlds small enough to work out by hand, built in code for tests of every module above cluster/.
// WorldBuilder lays one out piece by piece; ContinuumWorld and RandomWorld draw whole ones from an
// Rng, so that a property can be checked on many. Memory is given in MiB and rates are one request
// a second unless a test says otherwise.

namespace rudderfish::testing {

inline constexpr int64_t kMib = 1024 * 1024;

// A call with the calls it makes: groups in parallel, calls of a group one after another.
struct CallTree {
  WorkloadId workload = 0;
  double execution_ms = 0;  // On a kind of speed 1; other kinds take speed times as long.
  double data_mbytes = 0.1;
  std::vector<std::vector<CallTree>> groups;
};

class WorldBuilder {
 public:
  LayerId Layer(std::string name, bool accepts_moves = true) {
    catalog_.layers.push_back({std::move(name), accepts_moves});
    return catalog_.layer_count() - 1;
  }

  // `slowness` multiplies execution times: 1 is the fastest kind.
  KindId Kind(std::string name, LayerId layer, double slowness = 1, double mbytes_per_s = 25) {
    catalog_.kinds.push_back({std::move(name), layer, fmt::format("x{}", slowness), mbytes_per_s});
    slowness_.push_back(slowness);
    return catalog_.kind_count() - 1;
  }

  WorkloadId Workload(std::string name, int64_t cpu_millis, int64_t memory_mib,
                      bool movable = true) {
    catalog_.workloads.push_back(
        {.name = std::move(name), .requests = {cpu_millis, memory_mib * kMib}, .movable = movable});
    return catalog_.workload_count() - 1;
  }

  NodeId Node(KindId kind, int64_t cpu_millis, int64_t memory_mib) {
    state_.nodes.kind.push_back(kind);
    state_.nodes.allocatable.push_back({cpu_millis, memory_mib * kMib});
    state_.nodes.free.push_back({cpu_millis, memory_mib * kMib});
    state_.nodes.background_mbytes_per_s.push_back(0);
    names_.nodes.push_back(fmt::format("{}-{}", catalog_.kinds[kind].name, state_.nodes.size()));
    return state_.nodes.size() - 1;
  }

  // A bound pod. REQUIRES: there is room.
  PodId Pod(WorkloadId workload, NodeId node) {
    const Resources& requests = catalog_.workloads[workload].requests;
    CHECK(state_.nodes.free[node].Fits(requests));
    state_.nodes.free[node] -= requests;
    state_.pods.workload.push_back(workload);
    state_.pods.node.push_back(node);
    return state_.pods.size() - 1;
  }

  // One way. Pairs that are not set are 1 ms apart.
  void Latency(LayerId from, LayerId to, double latency_ms) {
    latencies_.push_back({from, to, latency_ms});
  }
  void LatencyBothWays(LayerId a, LayerId b, double latency_ms) {
    Latency(a, b, latency_ms);
    Latency(b, a, latency_ms);
  }

  // `root` is the client's own call.
  void Endpoint(const CallTree& root, double rate_per_second = 1, double qos_ms = 100) {
    const CallId first = calls_.call_count();
    AddCall(root, kNone);
    calls_.endpoints.push_back({.name = fmt::format("endpoint-{}", calls_.endpoints.size() + 1),
                                .root = first,
                                .end = calls_.call_count(),
                                .rate_per_second = rate_per_second,
                                .qos_ms = qos_ms});
  }

  const Resources& free(NodeId node) const { return state_.nodes.free[node]; }
  const Catalog& catalog() const { return catalog_; }
  const Nodes& nodes() const { return state_.nodes; }

  State Build() {
    State state = state_;
    state.network.layers = catalog_.layer_count();
    state.network.latency_ms.assign(state.network.layers * state.network.layers, 1.0);
    for (const Hop& hop : latencies_) {
      state.network.latency_ms[hop.from * state.network.layers + hop.to] = hop.latency_ms;
    }
    CallGraph calls = calls_;
    calls.kind_count = catalog_.kind_count();
    for (CallId call = 0; call < calls.call_count(); ++call) {
      for (double slowness : slowness_) calls.execution_ms.push_back(base_ms_[call] * slowness);
    }
    state.catalog = std::make_shared<const Catalog>(catalog_);
    state.calls = std::make_shared<const CallGraph>(std::move(calls));
    state.names = std::make_shared<const Names>(names_);
    CheckConsistent(state);
    return state;
  }

 private:
  struct Hop {
    LayerId from, to;
    double latency_ms;
  };

  CallId AddCall(const CallTree& tree, CallId caller) {
    const CallId call = calls_.call_count();
    const int groups = static_cast<int>(calls_.groups.size());
    calls_.calls.push_back({.workload = tree.workload,
                            .caller = caller,
                            .data_mbytes = tree.data_mbytes,
                            .first_group = groups,
                            .last_group = groups + static_cast<int>(tree.groups.size())});
    base_ms_.push_back(caller == kNone ? 0 : tree.execution_ms);
    calls_.groups.resize(calls_.groups.size() + tree.groups.size());
    for (size_t g = 0; g < tree.groups.size(); ++g) {
      std::vector<CallId> sequence;
      for (const CallTree& callee : tree.groups[g]) sequence.push_back(AddCall(callee, call));
      const int first = static_cast<int>(calls_.sequence.size());
      calls_.sequence.insert(calls_.sequence.end(), sequence.begin(), sequence.end());
      calls_.groups[groups + g] = {first, static_cast<int>(calls_.sequence.size())};
    }
    return call;
  }

  Catalog catalog_;
  State state_;
  CallGraph calls_;
  Names names_;
  std::vector<double> base_ms_, slowness_;
  std::vector<Hop> latencies_;
};

enum class Pattern { kChain, kSequential, kParallel };

// Places `replicas` pods of each workload at random where there is room. False if a pod found none.
inline bool PlaceAtRandom(const std::vector<int>& replicas, const std::vector<NodeId>& allowed,
                          Rng* rng, WorldBuilder* world) {
  for (WorkloadId w = 0; w < static_cast<WorkloadId>(replicas.size()); ++w) {
    for (int i = 0; i < replicas[w]; ++i) {
      std::vector<NodeId> fits;
      for (NodeId node : allowed) {
        if (world->free(node).Fits(world->catalog().workloads[w].requests)) fits.push_back(node);
      }
      if (fits.empty()) return false;
      world->Pod(w, fits[rng->Below(static_cast<uint32_t>(fits.size()))]);
    }
  }
  return true;
}

struct ContinuumOptions {
  Pattern pattern = Pattern::kChain;
  int clouds = 2;        // Nodes of the cloud,
  int edges = 4;         // and of the edge, half of them of the faster kind.
  int replicas_max = 5;  // Of each of the four services; drawn from 1.
};

// The shape of an edge-cloud continuum: a client that calls four services spread over cloud and
// edge, with room, replicas and latencies drawn at random.
inline State ContinuumWorld(const ContinuumOptions& options, Rng* rng) {
  for (;;) {
    WorldBuilder world;
    const LayerId cloud = world.Layer("cloud"), edge = world.Layer("edge");
    const LayerId outside = world.Layer("client", false);
    const KindId kinds[] = {world.Kind("cloud", cloud, 1, 62.5), world.Kind("edge-4", edge, 1.5),
                            world.Kind("edge-2", edge, 2), world.Kind("client", outside, 1.5)};
    for (LayerId from : {cloud, edge, outside}) {
      for (LayerId to : {cloud, edge, outside}) {
        const bool far = from != to && (from == cloud || to == cloud);
        world.Latency(from, to, far ? rng->Uniform(50, 500) : 0.1);
      }
    }
    const WorkloadId services[] = {
        world.Workload("aggregator", 700, 700), world.Workload("detection", 1000, 1000),
        world.Workload("db", 500, 500), world.Workload("learning", 1500, 1500)};
    const WorkloadId client = world.Workload("client", 700, 700, false);
    std::vector<NodeId> allowed;
    // One draw a statement: compilers differ in which argument they evaluate first.
    for (int i = 0; i < options.clouds; ++i) {
      const int mbytes = rng->Between(4096, 27000), millicores = rng->Between(2000, 7000);
      allowed.push_back(world.Node(kinds[0], millicores, mbytes));
    }
    for (int i = 0; i < options.edges; ++i) {
      const KindId kind = kinds[1 + i % 2];
      const int mbytes = rng->Between(1024, 15000),
                millicores = rng->Between(1000, kind == 1 ? 4000 : 2000);
      allowed.push_back(world.Node(kind, millicores, mbytes));
    }
    std::vector<int> replicas;
    for (int i = 0; i < 4; ++i) replicas.push_back(rng->Between(1, options.replicas_max));
    if (!PlaceAtRandom(replicas, allowed, rng, &world)) continue;
    world.Pod(client, world.Node(kinds[3], 2000, 7000));

    const CallTree db{services[2], 2.1}, learning{services[3], 46}, detection{services[1], 12.5};
    CallTree aggregator{services[0], 7};
    switch (options.pattern) {
      case Pattern::kChain: {
        CallTree second = learning, first = detection;
        second.groups = {{db}};
        first.groups = {{second}};
        aggregator.groups = {{first}};
        break;
      }
      case Pattern::kSequential:
        aggregator.groups = {{learning, db, detection}};
        break;
      case Pattern::kParallel:
        aggregator.groups = {{learning}, {db}, {detection}};
        break;
    }
    world.Endpoint({.workload = client, .groups = {{aggregator}}}, 5);
    return world.Build();
  }
}

// A call tree over any of the workloads, the same one several times and calling itself included.
inline CallTree RandomCalls(int workloads, int depth, Rng* rng) {
  CallTree call{static_cast<WorkloadId>(rng->Below(workloads)), rng->Uniform(1, 50),
                rng->Uniform(0, 0.5)};
  const int groups = depth == 0 ? 0 : rng->Between(0, 3);
  for (int g = 0; g < groups; ++g) {
    call.groups.emplace_back();
    for (int i = rng->Between(1, 2); i > 0; --i) {
      call.groups.back().push_back(RandomCalls(workloads, depth - 1, rng));
    }
  }
  return call;
}

// Anything the laws of latency allow: layers, kinds, asymmetric latencies, nested and parallel
// calls, several endpoints, immovable workloads and workloads without pods.
inline State RandomWorld(Rng* rng) {
  for (;;) {
    WorldBuilder world;
    const int layers = rng->Between(2, 4), kinds = rng->Between(2, 6),
              workloads = rng->Between(2, 6);
    for (int i = 0; i < layers; ++i)
      world.Layer(fmt::format("layer-{}", i), i == 0 || rng->Below(4) > 0);
    for (int i = 0; i < kinds; ++i) {
      const double slowness = rng->Uniform(1, 3);
      world.Kind(fmt::format("kind-{}", i), i == 0 ? 0 : rng->Below(layers), slowness);
    }
    for (LayerId from = 0; from < layers; ++from) {
      for (LayerId to = 0; to < layers; ++to) world.Latency(from, to, rng->Uniform(0.1, 200));
    }
    for (int i = 0; i < workloads; ++i) {
      const bool is_movable = i == 0 || rng->Below(5) > 0;
      const int mbytes = rng->Between(100, 1500), millicores = rng->Between(100, 1500);
      world.Workload(fmt::format("workload-{}", i), millicores, mbytes, is_movable);
    }
    std::vector<NodeId> nodes;
    for (int i = rng->Between(kinds, 10); i > 0; --i) {
      const int mbytes = rng->Between(1000, 5000), millicores = rng->Between(1000, 5000);
      nodes.push_back(world.Node(i <= kinds ? i - 1 : rng->Below(kinds), millicores, mbytes));
    }
    std::vector<int> replicas;
    for (int i = 0; i < workloads; ++i) replicas.push_back(rng->Between(i == 0 ? 1 : 0, 4));
    if (!PlaceAtRandom(replicas, nodes, rng, &world)) continue;
    for (int i = rng->Between(1, 3); i > 0; --i)
      world.Endpoint(RandomCalls(workloads, 3, rng), rng->Uniform(1, 5));
    return world.Build();
  }
}

// The same with one pod in three held, at random.
inline State WithPodsHeld(State state, Rng* rng) {
  state.pods.held.resize(state.pods.workload.size());
  for (uint8_t& held : state.pods.held) held = rng->Below(3) == 0;
  return state;
}

}  // namespace rudderfish::testing
