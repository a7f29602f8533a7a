// SPDX-License-Identifier: Apache-2.0
#include "telemetry/traced_request.h"

#include <algorithm>
#include <utility>

namespace rudderfish {
namespace {

constexpr size_t kMostSpansOfATrace = 20'000;
constexpr int kDeepest = 500;
constexpr int64_t kLateNs = 1'000'000;  // A child ends so much after its parent: it is not awaited,
constexpr double kLateShare = 0.05;     // or so large a part of the parent's time.

struct Interval {
  int64_t start, end;
};

// How much of `whole` is covered.
int64_t Covered(const Interval& whole, std::vector<Interval>* parts) {
  std::sort(parts->begin(), parts->end(),
            [](const Interval& a, const Interval& b) { return a.start < b.start; });
  int64_t covered = 0, until = whole.start;
  for (const Interval& part : *parts) {
    const int64_t start = std::max(part.start, until), end = std::min(part.end, whole.end);
    if (end <= start) continue;
    covered += end - start;
    until = end;
  }
  return covered;
}

class RequestReader {
 public:
  RequestReader(const SpanSet& set, SpanRange range, const SpanPlaces& places)
      : set_(set), range_(range), places_(places), children_(range.last - range.first) {}

  std::optional<TracedRequest> Read(std::string* reason) {
    const char* problem = Link();
    if (problem == nullptr) {
      Begin();
      if (is_too_deep_) problem = "nested too deep";
      if (seen_ < range_.last - range_.first && problem == nullptr)
        problem = "parents that go round in a circle";
      if (request_.calls.size() < 2 && problem == nullptr) problem = "no call of a workload";
    }
    if (problem != nullptr) {
      *reason = problem;
      return std::nullopt;
    }
    Finish();
    return std::move(request_);
  }

 private:
  // A client's span that calls were made through, and which.
  struct Via {
    size_t span = 0;
    std::vector<int> calls;
  };

  const Span& SpanAt(size_t index) const { return set_.spans[index]; }
  const SpanPlace& PlaceOf(const Span& span) const { return places_.sources[span.source]; }

  // Finds children and the root. A caller that does not report its spans hands its id on all the
  // same: one span alone whose parent is missing is the root.
  const char* Link() {
    if (range_.last - range_.first > kMostSpansOfATrace) return "too many spans";
    size_t roots = 0, orphans = 0, orphan = 0;
    for (size_t i = range_.first; i < range_.last; ++i) {
      const int32_t parent = SpanAt(i).parent;
      if (parent == kNoParent) {
        root_ = i;
        ++roots;
      } else if (parent == kParentMissing) {
        orphan = i;
        ++orphans;
      } else {
        children_[static_cast<size_t>(parent) - range_.first].push_back(i);
      }
    }
    if (roots == 0 && orphans == 1) {
      root_ = orphan;
      return nullptr;
    }
    if (roots > 1) return "several first spans";
    if (orphans > 0) return "spans are missing";
    return roots == 0 ? "parents that go round in a circle" : nullptr;
  }

  void Begin() {
    const Span& root = SpanAt(root_);
    const SpanPlace& place = PlaceOf(root);
    request_.operation = root.name;
    request_.start_ns = root.start_ns;
    request_.duration_ms = static_cast<double>(root.duration_ns) / kNsPerMs;
    const bool is_client =
        place.workload == kNone || place.is_outside || root.role == SpanRole::kClient;
    request_.calls.push_back({.workload = is_client ? place.workload : kNone,
                              .start_ns = root.start_ns,
                              .end_ns = root.end_ns()});
    parts_.emplace_back();
    whole_.push_back({root.start_ns, root.end_ns()});
    if (is_client) {
      Visit(root_, 0, root.role == SpanRole::kClient ? OpenVia(root_) : kNone, 0);
    } else {
      Visit(root_, AddCall(root, place, 0, kNone), kNone, 0);
    }
  }

  int OpenVia(size_t span) {
    vias_.push_back({.span = span, .calls = {}});
    return static_cast<int>(vias_.size()) - 1;
  }

  int AddCall(const Span& span, const SpanPlace& place, int caller, int via) {
    const int call = static_cast<int>(request_.calls.size());
    request_.calls.push_back({.workload = place.workload,
                              .speed = place.speed,
                              .caller = caller,
                              .start_ns = span.start_ns,
                              .end_ns = span.end_ns(),
                              .request_bytes = span.request_bytes});
    whole_.push_back({span.start_ns, span.end_ns()});
    parts_.emplace_back();
    if (via != kNone) vias_[via].calls.push_back(call);
    return call;
  }

  // The children of a span that belongs to `call`; `via` is the client's span they are called by.
  void Visit(size_t index, int call, int via, int depth) {
    ++seen_;
    if (depth > kDeepest) {
      is_too_deep_ = true;
      return;
    }
    const size_t calls_before = via == kNone ? 0 : request_.calls.size();
    for (const size_t child : children_[index - range_.first])
      VisitChild(index, child, call, via, depth);
    const bool is_leaf = via != kNone && vias_[via].span == index &&
                         request_.calls.size() == calls_before && vias_[via].calls.empty();
    if (is_leaf) AddUnreported(SpanAt(index), call, via);
  }

  void VisitChild(size_t index, size_t child, int call, int via, int depth) {
    const Span& span = SpanAt(child);
    const SpanPlace& place = PlaceOf(span);
    const WorkloadId own = request_.calls[call].workload;
    const bool is_other = place.workload != kNone && place.workload != own;
    if (!is_other) {  // Folded: of this workload, or of none.
      const bool is_client = span.role == SpanRole::kClient || span.role == SpanRole::kProducer;
      int next = place.workload == kNone ? via : kNone;
      if (is_client) next = via == kNone ? OpenVia(child) : via;
      return Visit(child, call, next, depth + 1);
    }
    if (IsNotAwaited(index, span, call, via)) {
      request_.asynchronous.push_back({own, place.workload});
      return Skip(child, depth);
    }
    if (IsWaiting(place.workload, call)) {
      ++request_.folded["calls of a workload that waits for their answer itself"];
      parts_[call].push_back({span.start_ns, span.end_ns()});
      return Skip(child, depth);
    }
    Visit(child, AddCall(span, place, call, via), kNone, depth + 1);
  }

  bool IsNotAwaited(size_t parent, const Span& span, int call, int via) const {
    if (span.follows || span.role == SpanRole::kConsumer) return true;
    if (SpanAt(parent).role == SpanRole::kProducer) return true;
    const Span& awaited = via == kNone ? span : SpanAt(vias_[via].span);
    const Interval& whole = whole_[call];
    const int64_t late =
        kLateNs + static_cast<int64_t>(kLateShare * static_cast<double>(whole.end - whole.start));
    return awaited.end_ns() > whole.end + late;
  }

  bool IsWaiting(WorkloadId workload, int call) const {
    for (; call != kNone; call = request_.calls[call].caller)
      if (request_.calls[call].workload == workload) return true;
    return false;
  }

  // Counted as seen, and no more.
  void Skip(size_t index, int depth) {
    ++seen_;
    if (depth > kDeepest) {
      is_too_deep_ = true;
      return;
    }
    for (const size_t child : children_[index - range_.first]) Skip(child, depth + 1);
  }

  // A client's span whose server reports none.
  void AddUnreported(const Span& client, int call, int via) {
    const WorkloadId callee = PeerOf(client);
    if (client.role == SpanRole::kProducer) {
      if (callee != kNone) request_.asynchronous.push_back({request_.calls[call].workload, callee});
      return;
    }
    if (callee == kNone || IsWaiting(callee, call)) {
      // It waits, for whom is not known.
      parts_[call].push_back({client.start_ns, client.end_ns()});
      if (client.peer != kNone && callee == kNone)
        ++request_.folded["calls of what is no workload here"];
      return;
    }
    const int made = AddCall(client, {.workload = callee, .clock = {}}, call, via);
    request_.calls[made].is_from_outside = true;
  }

  // "redis", "redis.shop.svc.cluster.local:6379"
  WorkloadId PeerOf(const Span& client) const {
    if (client.peer == kNone) return kNone;
    std::string name = set_.words[client.peer];
    name = name.substr(0, name.find(':'));
    const auto find = [&](const std::string& text) {
      const auto at = places_.services.find(text);
      return at == places_.services.end() ? kNone : at->second;
    };
    for (;;) {
      const WorkloadId found = find(name);
      const size_t dot = name.rfind('.');
      if (found != kNone || dot == std::string::npos) return found;
      name.resize(dot);
    }
  }

  // A client's span with one call is what its caller saw of it; with several it says of none when.
  void Finish() {
    for (const Via& via : vias_) {
      const Span& client = SpanAt(via.span);
      for (const int call : via.calls) {
        TracedCall& made = request_.calls[call];
        if (made.request_bytes < 0) made.request_bytes = client.request_bytes;
        if (via.calls.size() > 1) continue;
        if (!made.is_from_outside) {
          const int64_t network = client.duration_ns - (whole_[call].end - whole_[call].start);
          made.network_ms = network < 0 ? -1 : static_cast<double>(network) / kNsPerMs;
        }
        made.start_ns = client.start_ns;
        made.end_ns = client.end_ns();
      }
    }
    for (size_t call = 1; call < request_.calls.size(); ++call) {
      const TracedCall& made = request_.calls[call];
      parts_[made.caller].push_back({made.start_ns, made.end_ns});
    }
    for (size_t call = 1; call < request_.calls.size(); ++call) {
      const Interval& whole = whole_[call];
      request_.calls[call].own_ms =
          static_cast<double>(whole.end - whole.start - Covered(whole, &parts_[call])) / kNsPerMs;
    }
  }

  const SpanSet& set_;
  const SpanRange range_;
  const SpanPlaces& places_;
  std::vector<std::vector<size_t>> children_;  // [span of the trace]
  size_t root_ = 0, seen_ = 0;
  bool is_too_deep_ = false;
  TracedRequest request_;
  std::vector<Interval> whole_;               // [call] Its own span.
  std::vector<std::vector<Interval>> parts_;  // [call] When it waits for others.
  std::vector<Via> vias_;
};

}  // namespace

std::optional<TracedRequest> ReadRequest(const SpanSet& set, SpanRange range,
                                         const SpanPlaces& places, std::string* reason) {
  return RequestReader(set, range, places).Read(reason);
}

}  // namespace rudderfish
