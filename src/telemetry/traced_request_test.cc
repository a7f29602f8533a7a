// SPDX-License-Identifier: Apache-2.0
#include "telemetry/traced_request.h"

#include <gtest/gtest.h>

namespace rudderfish {
namespace {

constexpr int64_t kBegin = 1'790'000'000'000'000'000;
constexpr int64_t kMilli = 1'000'000;

// Sources 0 to 3 are pods of the workloads 0 to 3; 4 is a proxy of no workload; workload 0 is
// outside.
class OneTrace {
 public:
  OneTrace() {
    for (const char* name : {"users", "web", "cart", "db", "proxy"}) {
      const int32_t source = set_.SourceOf({.service = name});
      places_.sources.push_back({.workload = source == 4 ? kNone : source,
                                 .speed = source,
                                 .is_outside = source == 0,
                                 .clock = ""});
      if (source < 4) places_.services[name] = source;
    }
  }

  // Times are ms from the begin of the trace.
  OneTrace& Add(uint64_t id, uint64_t parent, int32_t source, SpanRole role, int64_t start,
                int64_t end, const char* peer = nullptr, bool follows = false) {
    set_.Add({.trace = {1, 1},
              .id = id,
              .parent_id = parent,
              .start_ns = kBegin + start * kMilli,
              .duration_ns = (end - start) * kMilli,
              .source = source,
              .name = set_.WordOf("op"),
              .peer = peer == nullptr ? kNone : set_.WordOf(peer),
              .role = role,
              .follows = follows});
    return *this;
  }

  std::optional<TracedRequest> Read() {
    LinkSpans(&set_);
    const auto ranges = TracesOf(set_);
    return ReadRequest(set_, ranges.at(0), places_, &reason_);
  }

  // "1(2 3)": workloads by callers.
  std::string Calls() {
    const auto request = Read();
    return request ? Text(*request, 0) : reason_;
  }

  const std::string& reason() const { return reason_; }

 private:
  static std::string Text(const TracedRequest& request, int caller) {
    std::string text;
    for (size_t c = 1; c < request.calls.size(); ++c) {
      if (request.calls[c].caller != caller) continue;
      const std::string inner = Text(request, static_cast<int>(c));
      text += (text.empty() ? "" : " ") + std::to_string(request.calls[c].workload) +
              (inner.empty() ? "" : "(" + inner + ")");
    }
    return text;
  }

  SpanSet set_;
  SpanPlaces places_;
  std::string reason_;
};

using enum SpanRole;

TEST(TracedRequest, HasTheTimeOfEachCallLessThatOfItsOwnCalls) {
  OneTrace trace;
  trace.Add(1, 0, 1, kServer, 0, 100)
      .Add(2, 1, 1, kClient, 10, 40)
      .Add(3, 2, 2, kServer, 12, 37)
      .Add(4, 1, 1, kClient, 30, 60)  // At once with the one before.
      .Add(5, 4, 3, kServer, 32, 58);
  EXPECT_EQ(trace.Calls(), "1(2 3)");
  const TracedRequest request = *trace.Read();
  EXPECT_EQ(request.calls[0].workload, kNone);
  EXPECT_DOUBLE_EQ(request.calls[1].own_ms, 50);
  EXPECT_DOUBLE_EQ(request.calls[2].own_ms, 25);
  EXPECT_DOUBLE_EQ(request.calls[2].network_ms, 5);
  EXPECT_EQ(request.calls[2].end_ns, kBegin + 40 * kMilli);
  EXPECT_DOUBLE_EQ(request.duration_ms, 100);
}

TEST(TracedRequest, FoldsProxiesAndWhatIsOfTheSameWorkload) {
  OneTrace trace;
  trace
      .Add(1, 0, 4, kServer, 0, 100)  // An ingress of no workload.
      .Add(2, 1, 1, kServer, 5, 95)   // The proxy beside web, and web.
      .Add(3, 2, 1, kServer, 6, 94)
      .Add(4, 3, 1, kInternal, 10, 90)
      .Add(5, 4, 1, kClient, 20, 60)
      .Add(6, 5, 1, kClient, 21, 59)  // The proxy of web calls that of cart.
      .Add(7, 6, 2, kServer, 22, 58)
      .Add(8, 7, 2, kServer, 23, 57);
  EXPECT_EQ(trace.Calls(), "1(2)");
  const TracedRequest request = *trace.Read();
  EXPECT_DOUBLE_EQ(request.calls[1].own_ms, 50);
  EXPECT_DOUBLE_EQ(request.calls[2].own_ms, 36);
  EXPECT_DOUBLE_EQ(request.calls[2].network_ms, 4);
}

TEST(TracedRequest, BeginsWithAClientThatReportsSpans) {
  OneTrace trace;
  trace.Add(1, 0, 0, kInternal, 0, 100).Add(2, 1, 0, kClient, 10, 90).Add(3, 2, 1, kServer, 20, 80);
  EXPECT_EQ(trace.Calls(), "1");
  EXPECT_EQ(trace.Read()->calls[0].workload, 0);
  OneTrace in_cluster;
  in_cluster.Add(1, 0, 1, kClient, 0, 100).Add(2, 1, 2, kServer, 20, 80);
  EXPECT_EQ(in_cluster.Calls(), "2");
  EXPECT_EQ(in_cluster.Read()->calls[0].workload, 1);
}

TEST(TracedRequest, NamesCallsThatNoCallerWaitsFor) {
  OneTrace trace;
  trace.Add(1, 0, 1, kServer, 0, 100)
      .Add(2, 1, 1, kProducer, 10, 12)
      .Add(3, 2, 2, kConsumer, 500, 600)
      .Add(4, 1, 3, kServer, 50, 200);  // Outlives its parent.
  EXPECT_EQ(trace.Calls(), "1");
  const TracedRequest request = *trace.Read();
  EXPECT_EQ(request.asynchronous.size(), 2u);
  EXPECT_EQ(request.asynchronous[0], (AsynchronousCall{1, 2}));
  EXPECT_DOUBLE_EQ(request.calls[1].own_ms, 100);
  OneTrace follows;
  follows.Add(1, 0, 1, kServer, 0, 100).Add(2, 1, 2, kServer, 10, 20, nullptr, true);
  EXPECT_EQ(follows.Calls(), "1");
}

TEST(TracedRequest, KnowsACalleeWithoutSpansByItsName) {
  OneTrace trace;
  trace.Add(1, 0, 1, kServer, 0, 100)
      .Add(2, 1, 1, kClient, 10, 30, "db.shop.svc.cluster.local:6379")
      .Add(3, 1, 1, kClient, 40, 50, "mail.example.org")
      .Add(4, 1, 1, kClient, 60, 70);
  EXPECT_EQ(trace.Calls(), "1(3)");
  const TracedRequest request = *trace.Read();
  EXPECT_TRUE(request.calls[2].is_from_outside);
  EXPECT_DOUBLE_EQ(request.calls[2].own_ms, 20);
  EXPECT_EQ(request.folded.at("calls of what is no workload here"), 1);
}

TEST(TracedRequest, LeavesOutCallsThatGoRoundInACircle) {
  OneTrace trace;
  trace.Add(1, 0, 1, kServer, 0, 100)
      .Add(2, 1, 2, kServer, 10, 90)
      .Add(3, 2, 1, kServer, 20, 80)
      .Add(4, 3, 3, kServer, 30, 40);
  EXPECT_EQ(trace.Calls(), "1(2)");
  EXPECT_DOUBLE_EQ(trace.Read()->calls[2].own_ms, 20);
}

TEST(TracedRequest, IsNoneWhereATraceIsNotWhole) {
  OneTrace loop;
  loop.Add(1, 2, 1, kServer, 0, 100).Add(2, 1, 2, kServer, 10, 90);
  EXPECT_EQ(loop.Calls(), "parents that go round in a circle");
  OneTrace beside;
  beside.Add(9, 0, 1, kServer, 0, 100).Add(1, 2, 1, kServer, 0, 100).Add(2, 1, 2, kServer, 1, 9);
  EXPECT_EQ(beside.Calls(), "parents that go round in a circle");
  OneTrace self;
  self.Add(1, 1, 1, kServer, 0, 100);
  EXPECT_EQ(self.Calls(), "parents that go round in a circle");
  OneTrace orphan;
  orphan.Add(1, 0, 1, kServer, 0, 100).Add(2, 77, 2, kServer, 10, 90);
  EXPECT_EQ(orphan.Calls(), "spans are missing");
  OneTrace roots;
  roots.Add(1, 0, 1, kServer, 0, 100).Add(2, 0, 2, kServer, 10, 90);
  EXPECT_EQ(roots.Calls(), "several first spans");
  OneTrace strangers;
  strangers.Add(1, 0, 4, kServer, 0, 100);
  EXPECT_EQ(strangers.Calls(), "no call of a workload");
  OneTrace unreported;  // Its caller hands on an id, and reports nothing.
  unreported.Add(1, 77, 1, kServer, 0, 100);
  EXPECT_EQ(unreported.Calls(), "1");
}

TEST(TracedRequest, IsNoneWhereItIsTooDeep) {
  OneTrace trace;
  for (uint64_t id = 1; id < 2000; ++id) trace.Add(id, id - 1, 1, kInternal, 0, 100);
  EXPECT_EQ(trace.Calls(), "nested too deep");
}

}  // namespace
}  // namespace rudderfish
