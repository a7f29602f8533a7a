// SPDX-License-Identifier: Apache-2.0
#include "telemetry/spans.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace rudderfish {
namespace {

// A client before its server, where both have one id.
auto Order(const Span& span) {
  return std::make_tuple(span.trace, span.id, span.role == SpanRole::kServer, span.start_ns,
                         span.duration_ns, span.source);
}

bool IsSame(const Span& a, const Span& b) { return a.trace == b.trace && a.id == b.id; }

bool ShareAnId(const Span& client, const Span& server) {
  return IsSame(client, server) && client.role == SpanRole::kClient &&
         server.role == SpanRole::kServer;
}

int32_t ParentOf(const std::vector<Span>& spans, size_t child) {
  const Span& span = spans[child];
  if (child > 0 && ShareAnId(spans[child - 1], span)) return static_cast<int32_t>(child - 1);
  if (span.parent_id == 0) return kNoParent;
  const auto at =
      std::lower_bound(spans.begin(), spans.end(), span, [](const Span& one, const Span& searched) {
        return std::tie(one.trace, one.id) < std::tie(searched.trace, searched.parent_id);
      });
  if (at == spans.end() || at->trace != span.trace || at->id != span.parent_id)
    return kParentMissing;
  size_t parent = at - spans.begin();
  const bool is_shared = parent + 1 < spans.size() && ShareAnId(spans[parent], spans[parent + 1]);
  if (is_shared && spans[parent].source != span.source) ++parent;
  return static_cast<int32_t>(parent);
}

}  // namespace

int32_t SpanSet::SourceOf(const SpanSource& source) {
  const auto [at, is_new] = source_index_.emplace(source, static_cast<int32_t>(sources.size()));
  if (is_new) sources.push_back(source);
  return at->second;
}

int32_t SpanSet::WordOf(std::string_view word) {
  const auto [at, is_new] =
      word_index_.emplace(std::string(word), static_cast<int32_t>(words.size()));
  if (is_new) words.emplace_back(word);
  return at->second;
}

void SpanSet::LeaveOut(std::string_view reason, int64_t count) {
  left_out[std::string(reason)] += count;
}

void SpanSet::Add(const Span& span) {
  constexpr int64_t kLatestNs = std::numeric_limits<int64_t>::max() / 2;
  if (span.duration_ns < 0) return LeaveOut("it ends before it starts");
  if (span.start_ns <= 0 || span.start_ns > kLatestNs || span.duration_ns > kLongestSpanNs)
    return LeaveOut("its time is out of range");
  if (span.id == 0 || span.trace == TraceId{}) return LeaveOut("an id of zero");
  if (spans.size() >= kMostSpans) return LeaveOut("more than 5 million spans");
  spans.push_back(span);
}

void LinkSpans(SpanSet* set) {
  std::vector<Span>& spans = set->spans;
  std::sort(spans.begin(), spans.end(),
            [](const Span& a, const Span& b) { return Order(a) < Order(b); });
  size_t kept = 0;
  for (size_t i = 0; i < spans.size(); ++i) {
    if (kept > 0 && IsSame(spans[kept - 1], spans[i]) && !ShareAnId(spans[kept - 1], spans[i])) {
      set->LeaveOut("its id is there twice");
      continue;
    }
    spans[kept++] = spans[i];
  }
  spans.resize(kept);
  for (size_t i = 0; i < spans.size(); ++i) spans[i].parent = ParentOf(spans, i);
}

std::vector<SpanRange> TracesOf(const SpanSet& set) {
  std::vector<SpanRange> ranges;
  for (size_t i = 0; i < set.spans.size(); ++i) {
    if (ranges.empty() || set.spans[i].trace != set.spans[ranges.back().first].trace)
      ranges.push_back({i, i});
    ranges.back().last = i + 1;
  }
  return ranges;
}

}  // namespace rudderfish
