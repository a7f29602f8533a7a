// SPDX-License-Identifier: Apache-2.0
#include "telemetry/clock_offsets.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace rudderfish {
namespace {

// The share of calls that may be odd: no caller waited, or a clock was set meanwhile.
constexpr double kOdd = 0.02;

// Of clock b over clock a.
struct Bounds {
  std::vector<int64_t> low, high;
};

struct Pair {
  Bounds called;  // By a client, which takes as long there as back.
  Bounds nested;  // Without a client's span: anywhere in the caller's.

  size_t count() const { return called.low.size() + nested.low.size(); }
};

int64_t AtShare(std::vector<int64_t>* values, double share) {
  const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(values->size() - 1));
  std::nth_element(values->begin(), values->begin() + at, values->end());
  return (*values)[at];
}

int64_t Middle(int64_t low, int64_t high) { return low + (high - low) / 2; }

int64_t OffsetOf(Pair* pair) {
  const bool is_called = !pair->called.low.empty();
  Bounds& bounds = is_called ? pair->called : pair->nested;
  const int64_t low = AtShare(&bounds.low, 1 - kOdd), high = AtShare(&bounds.high, kOdd);
  if (is_called || low > high) return Middle(low, high);
  return std::clamp<int64_t>(0, low, high);
}

void Note(const Span& parent, const Span& child, bool is_reversed, Bounds* bounds) {
  const int64_t high = child.start_ns - parent.start_ns, low = child.end_ns() - parent.end_ns();
  bounds->low.push_back(is_reversed ? -high : low);
  bounds->high.push_back(is_reversed ? -low : high);
}

// Clocks in the order of their names, and what lies between two of them.
struct Clocks {
  std::vector<std::string> names;
  std::vector<int> of_source;
  std::vector<int64_t> span_count;
  std::map<std::pair<int, int>, Pair> pairs;
};

Clocks ReadClocks(const SpanSet& set, const std::vector<std::string>& clocks) {
  Clocks read;
  std::map<std::string, int> index;
  for (const std::string& name : clocks) index.emplace(name, 0);
  for (auto& [name, at] : index) {
    at = static_cast<int>(read.names.size());
    read.names.push_back(name);
  }
  for (const std::string& name : clocks) read.of_source.push_back(index[name]);
  read.span_count.assign(read.names.size(), 0);
  for (const Span& span : set.spans) {
    const int b = read.of_source[span.source];
    ++read.span_count[b];
    if (span.parent < 0 || span.follows || span.role == SpanRole::kConsumer) continue;
    const Span& parent = set.spans[span.parent];
    const int a = read.of_source[parent.source];
    if (a == b || parent.role == SpanRole::kProducer) continue;
    Pair& pair = read.pairs[std::minmax(a, b)];
    const bool is_call = parent.role == SpanRole::kClient && span.role == SpanRole::kServer;
    Note(parent, span, a > b, is_call ? &pair.called : &pair.nested);
  }
  return read;
}

struct Edge {
  int a, b;
  int64_t offset_ns;
  size_t count;
};

// The edges of most calls that connect all that can be connected.
std::vector<std::vector<Edge>> SpanningTree(Clocks* clocks) {
  std::vector<Edge> edges;
  for (auto& [ends, pair] : clocks->pairs)
    edges.push_back({ends.first, ends.second, OffsetOf(&pair), pair.count()});
  std::stable_sort(edges.begin(), edges.end(),
                   [](const Edge& x, const Edge& y) { return x.count > y.count; });
  std::vector<int> part(clocks->names.size());
  std::iota(part.begin(), part.end(), 0);
  const auto find = [&](int clock) {
    while (part[clock] != clock) clock = part[clock] = part[part[clock]];
    return clock;
  };
  std::vector<std::vector<Edge>> tree(clocks->names.size());
  for (const Edge& edge : edges) {
    if (find(edge.a) == find(edge.b)) continue;
    part[find(edge.a)] = find(edge.b);
    tree[edge.a].push_back(edge);
    tree[edge.b].push_back({edge.b, edge.a, -edge.offset_ns, edge.count});
  }
  return tree;
}

}  // namespace

std::vector<ClockOffset> EstimateClockOffsets(const SpanSet& set,
                                              const std::vector<std::string>& clocks) {
  Clocks read = ReadClocks(set, clocks);
  std::vector<ClockOffset> offsets;
  for (const std::string& name : read.names) offsets.push_back({.clock = name});
  if (offsets.empty()) return offsets;
  const std::vector<std::vector<Edge>> tree = SpanningTree(&read);
  const auto most = std::max_element(read.span_count.begin(), read.span_count.end());
  std::vector<int> open{static_cast<int>(most - read.span_count.begin())};
  offsets[open.back()].is_known = true;
  while (!open.empty()) {
    const int clock = open.back();
    open.pop_back();
    for (const Edge& edge : tree[clock]) {
      if (offsets[edge.b].is_known) continue;
      offsets[edge.b].offset_ns = offsets[clock].offset_ns + edge.offset_ns;
      offsets[edge.b].is_known = true;
      open.push_back(edge.b);
    }
  }
  return offsets;
}

void RemoveClockOffsets(const std::vector<std::string>& clocks,
                        const std::vector<ClockOffset>& offsets, SpanSet* set) {
  std::map<std::string, int64_t, std::less<>> by_name;
  for (const ClockOffset& one : offsets) by_name[one.clock] = one.offset_ns;
  std::vector<int64_t> of_source;
  for (const std::string& name : clocks) of_source.push_back(by_name[name]);
  for (Span& span : set->spans) span.start_ns -= of_source[span.source];
}

}  // namespace rudderfish
