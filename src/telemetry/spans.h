// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cluster/ids.h"

// Spans of distributed traces as plain values, whatever the format they came in. Times are those of
// the clock of the machine that recorded the span, in nanoseconds since 1970. What could not be
// used is counted by reason and never stops the rest. Not thread safe.

namespace rudderfish {

enum class SpanRole { kInternal, kServer, kClient, kProducer, kConsumer };

using TraceId = std::array<uint64_t, 2>;

// Who recorded a span. What is not known is empty.
struct SpanSource {
  std::string service;
  std::string object_namespace;
  std::string pod;
  std::string node;

  auto operator<=>(const SpanSource&) const = default;  // NOLINT(modernize-use-nullptr)
};

inline constexpr int32_t kNoParent = -1;       // The first of its trace.
inline constexpr int32_t kParentMissing = -2;  // Its parent is not among the spans.

struct Span {
  TraceId trace{};
  uint64_t id = 0;
  uint64_t parent_id = 0;  // 0: none.
  int64_t start_ns = 0;
  int64_t duration_ns = 0;
  int64_t request_bytes = -1;  // Of the body; -1: not known.
  int32_t source = 0;          // SpanSet::sources
  int32_t name = 0;            // SpanSet::words
  int32_t peer = kNone;        // SpanSet::words: who a client says that it calls.
  int32_t parent = kNoParent;  // Set by LinkSpans: SpanSet::spans.
  SpanRole role = SpanRole::kInternal;
  bool follows = false;  // Its parent does not wait for it.

  int64_t end_ns() const { return start_ns + duration_ns; }
};

inline constexpr size_t kMostSpans = 5'000'000;
inline constexpr int64_t kLongestSpanNs = 86'400'000'000'000;  // A day.
inline constexpr double kNsPerMs = 1e6;

using Counts = std::map<std::string, int64_t, std::less<>>;

struct SpanSet {
  std::vector<Span> spans;
  std::vector<SpanSource> sources;
  std::vector<std::string> words;  // Each once.
  Counts left_out;                 // Spans, by reason.

  int32_t SourceOf(const SpanSource& source);
  int32_t WordOf(std::string_view word);
  void LeaveOut(std::string_view reason, int64_t count = 1);

  // Takes a span, or leaves it out: no time, a negative duration, too many.
  void Add(const Span& span);

 private:
  std::map<SpanSource, int32_t> source_index_;
  std::unordered_map<std::string, int32_t> word_index_;
};

// Sorts spans by trace, removes those that are there twice and finds the parent of each. A client
// and a server that share an id, as in Zipkin, become parent and child.
void LinkSpans(SpanSet* set);

// Spans of one trace are [first, last) after LinkSpans.
struct SpanRange {
  size_t first = 0, last = 0;
};
std::vector<SpanRange> TracesOf(const SpanSet& set);

}  // namespace rudderfish
