// SPDX-License-Identifier: Apache-2.0
#include "telemetry/call_inference.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/rng.h"

// From a random application to traces of it, by a generator of its own, and back.

namespace rudderfish {
namespace {

struct TrueCall {
  WorkloadId workload = 0;
  double own_ms[2] = {0, 0};  // By speed.
  double per_call = 1;        // 0.4: in so many of its caller's calls; 2.4: two or three times.
  int64_t bytes = -1;
  std::vector<std::vector<TrueCall>> groups;
};

struct TruePod {
  int node;
  int32_t source;
};

// Nodes of two speeds with clocks of their own, and two pods of each workload.
class World {
 public:
  static constexpr int kNodes = 6, kWorkloads = 14;

  World(uint64_t seed, double skew_ms) : rng_(seed) {
    for (int node = 0; node < kNodes; ++node)
      fast_ns_.push_back(static_cast<int64_t>(1e6 * skew_ms * (2 * rng_.Uniform() - 1)));
    for (WorkloadId w = 0; w < kWorkloads; ++w) {
      pods_.emplace_back();
      for (int pod = 0; pod < 3; ++pod) {
        const int node = (w + pod * 2 + (pod == 2 ? 1 : 0)) % kNodes;
        const int32_t source =
            set.SourceOf({.service = fmt::format("w{}", w), .pod = fmt::format("w{}-{}", w, pod)});
        places.sources.push_back(
            {.workload = w, .speed = node % 2, .clock = fmt::format("n{}", node)});
        pods_.back().push_back({node, source});
      }
    }
  }

  TrueCall RandomCall(int depth) {
    TrueCall call{.workload = next_++ % kWorkloads};
    call.own_ms[0] = 0.5 + 8 * rng_.Uniform();
    call.own_ms[1] = call.own_ms[0] * (1 + rng_.Uniform());
    if (rng_.Uniform() < 0.7) call.bytes = static_cast<int64_t>(1000 * rng_.Uniform()) + 1;
    if (depth == 0) return call;
    const auto groups = static_cast<int>(rng_.Uniform() * 3.2);
    for (int g = 0; g < groups; ++g) {
      call.groups.emplace_back();
      const int calls = 1 + static_cast<int>(rng_.Uniform() * 2.5);
      for (int c = 0; c < calls && next_ < kWorkloads; ++c)
        call.groups.back().push_back(RandomCall(depth - 1));
      if (call.groups.back().empty()) call.groups.pop_back();
    }
    return call;
  }

  void Play(const TrueCall& root, int64_t at_ns, double lost) {
    trace_ = {rng_.Next64() | 1, rng_.Next64()};
    lost_ = lost;
    Serve(root, 0, at_ns);
  }

  double Uniform() { return rng_.Uniform(); }

  SpanSet set;
  SpanPlaces places;

 private:
  int64_t Noisy(double ms) { return static_cast<int64_t>(1e6 * ms * (0.7 + 0.6 * rng_.Uniform())); }

  void Note(uint64_t id, uint64_t parent, const TruePod& pod, SpanRole role, int64_t start,
            int64_t end, int64_t bytes) {
    if (rng_.Uniform() < lost_) return;
    set.Add({.trace = trace_,
             .id = id,
             .parent_id = parent,
             .start_ns = start + fast_ns_[pod.node],
             .duration_ns = end - start,
             .request_bytes = bytes,
             .source = pod.source,
             .name = set.WordOf("op"),
             .role = role});
  }

  // Returns when it answers.
  int64_t Serve(const TrueCall& call, uint64_t parent, int64_t start) {
    const TruePod pod = pods_[call.workload][static_cast<size_t>(rng_.Uniform() * 3)];
    const uint64_t outer = rng_.Next64() | 1, inner = rng_.Next64() | 1;
    const bool has_proxy = call.workload % 3 == 0;
    const int64_t computed = start + Noisy(call.own_ms[pod.node % 2]);
    int64_t end = computed;
    for (const auto& group : call.groups) {
      int64_t at = computed;
      for (const TrueCall& callee : group) {
        const double whole = std::floor(callee.per_call);
        const int times =
            static_cast<int>(whole) + (rng_.Uniform() < callee.per_call - whole ? 1 : 0);
        for (int i = 0; i < times; ++i) {
          const uint64_t client = rng_.Next64() | 1;
          const int64_t back = Serve(callee, client, at + Noisy(1)) + Noisy(1);
          Note(client, has_proxy ? inner : outer, pod, SpanRole::kClient, at, back, callee.bytes);
          at = back + 500;
        }
      }
      end = std::max(end, at);
    }
    Note(outer, parent, pod, SpanRole::kServer, start, end, -1);
    if (has_proxy) Note(inner, outer, pod, SpanRole::kServer, start + 10, end - 10, -1);
    return end;
  }

  Rng rng_;
  WorkloadId next_ = 0;
  TraceId trace_{};
  double lost_ = 0;
  std::vector<int64_t> fast_ns_;
  std::vector<std::vector<TruePod>> pods_;
};

// Groups have no order; calls of one have.
std::string Shape(const TrueCall& call) {
  std::vector<std::string> groups;
  for (const auto& group : call.groups) {
    std::string text;
    for (const TrueCall& callee : group) {
      for (int i = 0; i < std::max(1, static_cast<int>(callee.per_call + 0.5)); ++i)
        text += Shape(callee) + ",";
    }
    groups.push_back(text);
  }
  std::sort(groups.begin(), groups.end());
  return fmt::format("{}[{}]", call.workload, fmt::join(groups, "|"));
}

std::string Shape(const InferredCall& call) {
  std::vector<std::string> groups;
  for (const auto& group : call.groups) {
    std::string text;
    for (const InferredCall& callee : group) text += Shape(callee) + ",";
    groups.push_back(text);
  }
  std::sort(groups.begin(), groups.end());
  return fmt::format("{}[{}]", call.workload, fmt::join(groups, "|"));
}

// REQUIRES: every workload is called by one call.
void CompareTimes(const TrueCall& truth, const InferredCall& call, double tolerance) {
  for (int speed = 0; speed < 2; ++speed) {
    const auto seen = call.own_ms.find(speed);
    ASSERT_NE(seen, call.own_ms.end());
    EXPECT_NEAR(seen->second.mean / truth.own_ms[speed], 1, tolerance) << truth.workload;
    EXPECT_LE(seen->second.p50, seen->second.p95);
  }
  if (truth.bytes >= 0) {
    EXPECT_DOUBLE_EQ(call.request_bytes, static_cast<double>(truth.bytes));
  }
  for (const auto& group : truth.groups) {
    for (const TrueCall& callee : group) {
      for (const auto& inferred : call.groups) {
        for (const InferredCall& other : inferred) {
          if (other.workload != callee.workload) continue;
          EXPECT_NEAR(other.network_ms.mean, 2, 0.1);
          CompareTimes(callee, other, tolerance);
        }
      }
    }
  }
}

TEST(CallInference, BringsBackRandomApplications) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    World world(seed, seed % 2 == 0 ? 1500 : 5);
    TrueCall root = world.RandomCall(3);
    root.bytes = -1;  // Only the span of a client would tell, and users are not traced.
    const int64_t traces = 700;
    for (int64_t i = 0; i < traces; ++i)
      world.Play(root, 1'790'000'000'000'000'000 + i * 10'000'000, seed % 3 == 0 ? 0.003 : 0);
    const Result<InferredGraph> graph = InferCalls(world.places, {}, &world.set);
    ASSERT_TRUE(graph) << graph.error().message;
    ASSERT_EQ(graph->endpoints.size(), 1u);
    const InferredCall& client = graph->endpoints[0].client;
    ASSERT_EQ(client.groups.size(), 1u);
    const InferredCall& first = client.groups[0][0];
    EXPECT_EQ(Shape(first), Shape(root));
    CompareTimes(root, first, 0.05);
    EXPECT_GT(graph->traces, traces * 3 / 5);
  }
}

TEST(CallInference, TellsHowOftenACallIsMade) {
  World world(5, 100);
  TrueCall root{.workload = 0, .own_ms = {1, 2}};
  TrueCall rare{.workload = 1, .own_ms = {3, 3}, .per_call = 0.3};
  TrueCall often{.workload = 2, .own_ms = {2, 2}, .per_call = 2.4};
  TrueCall never{.workload = 3, .own_ms = {2, 2}, .per_call = 0.002};
  root.groups = {{rare, often, never}};
  for (int i = 0; i < 3000; ++i) world.Play(root, 1'790'000'000'000'000'000 + i, 0);
  const Result<InferredGraph> graph = InferCalls(world.places, {}, &world.set);
  ASSERT_TRUE(graph);
  const auto& groups = graph->endpoints.at(0).client.groups.at(0).at(0).groups;
  ASSERT_EQ(groups.size(), 1u);
  ASSERT_EQ(groups[0].size(), 3u);
  EXPECT_EQ(groups[0][0].workload, 1);
  EXPECT_NEAR(groups[0][0].per_request, 0.3, 0.03);
  EXPECT_NEAR(groups[0][0].own_ms.at(0).mean, 3, 0.1);
  EXPECT_EQ(groups[0][1].workload, 2);
  EXPECT_DOUBLE_EQ(groups[0][1].per_request, 1);
  EXPECT_NEAR(groups[0][2].per_request, 1.4, 0.05);
  EXPECT_GT(graph->folded.at("calls that are too rare"), 0);
}

TEST(CallInference, SaysWhyThereIsNothing) {
  SpanSet set;
  const Result<InferredGraph> none = InferCalls({}, {}, &set);
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("no trace shows a whole request"), std::string::npos);
}

TEST(CallInference, SummarisesTimes) {
  std::vector<float> values;
  for (int i = 100; i >= 1; --i) values.push_back(static_cast<float>(i));
  const TimeSummary summary = Summarise(values);
  EXPECT_EQ(summary.count, 100);
  EXPECT_DOUBLE_EQ(summary.mean, 50.5);
  EXPECT_NEAR(summary.p50, 50.5, 0.6);
  EXPECT_NEAR(summary.p95, 95, 1);
  EXPECT_EQ(Summarise({}).count, 0);
}

}  // namespace
}  // namespace rudderfish
