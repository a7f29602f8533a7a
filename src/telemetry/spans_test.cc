// SPDX-License-Identifier: Apache-2.0
#include "telemetry/spans.h"

#include <gtest/gtest.h>

namespace rudderfish {
namespace {

Span LinkedSpan(uint64_t trace, uint64_t id, uint64_t parent, SpanRole role = SpanRole::kInternal) {
  return {.trace = {0, trace},
          .id = id,
          .parent_id = parent,
          .start_ns = 1000,
          .duration_ns = 10,
          .role = role};
}

TEST(Spans, FindTheirParentsWhateverTheOrder) {
  SpanSet set;
  for (const Span& span : {LinkedSpan(2, 7, 0), LinkedSpan(1, 9, 8), LinkedSpan(1, 8, 0),
                           LinkedSpan(1, 3, 99), LinkedSpan(2, 8, 9)})
    set.Add(span);
  LinkSpans(&set);
  ASSERT_EQ(set.spans.size(), 5u);
  EXPECT_EQ(set.spans[0].parent, kParentMissing);  // 1/3
  EXPECT_EQ(set.spans[1].parent, kNoParent);       // 1/8
  EXPECT_EQ(set.spans[2].parent, 1);               // 1/9
  EXPECT_EQ(set.spans[4].parent, kParentMissing);  // 2/8: 9 is of another trace.
  const std::vector<SpanRange> traces = TracesOf(set);
  ASSERT_EQ(traces.size(), 2u);
  EXPECT_EQ(traces[0].last, 3u);
}

TEST(Spans, AreLeftOutWhereTheyMakeNoSense) {
  SpanSet set;
  Span span = LinkedSpan(1, 1, 0);
  set.Add(span);
  set.Add(span);
  span.duration_ns = -1;
  set.Add(span);
  span = LinkedSpan(1, 0, 0);
  set.Add(span);
  span = LinkedSpan(1, 2, 0);
  span.start_ns = 0;
  set.Add(span);
  LinkSpans(&set);
  EXPECT_EQ(set.spans.size(), 1u);
  EXPECT_EQ(set.left_out, (Counts{{"an id of zero", 1},
                                  {"it ends before it starts", 1},
                                  {"its id is there twice", 1},
                                  {"its time is out of range", 1}}));
}

TEST(Spans, OfAClientAndAServerMayShareAnId) {
  SpanSet set;
  set.SourceOf({.service = "a"});
  Span server = LinkedSpan(1, 5, 1, SpanRole::kServer), child = LinkedSpan(1, 6, 5);
  server.source = child.source = set.SourceOf({.service = "b"});
  set.Add(LinkedSpan(1, 1, 0));
  set.Add(server);
  set.Add(LinkedSpan(1, 5, 1, SpanRole::kClient));
  set.Add(child);
  LinkSpans(&set);
  ASSERT_EQ(set.spans.size(), 4u);
  EXPECT_EQ(set.spans[1].role, SpanRole::kClient);
  EXPECT_EQ(set.spans[2].parent, 1);
  EXPECT_EQ(set.spans[3].parent, 2);
}

}  // namespace
}  // namespace rudderfish
