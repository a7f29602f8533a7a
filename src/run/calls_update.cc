// SPDX-License-Identifier: Apache-2.0
#include "run/calls_update.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "base/one_line.h"
#include "scenario/call_tree.h"

namespace rudderfish {
namespace {

constexpr double kLeastShare = 0.1, kStandardErrors = 3;
constexpr double kLeastMs = 0.1;
constexpr double kLeastPayloadShare = 0.2, kLeastPayloadMb = 0.001;
constexpr double kLeastCertainty = 0.75;
constexpr double kDeviationsToP95 = 1.645;  // From the median, of a normal distribution.
constexpr size_t kLongestShape = 100;

// Calls of one group one after another, of several at once.
std::vector<std::vector<CallId>> GroupsOf(const CallGraph& graph, CallId id) {
  std::vector<std::vector<CallId>> groups;
  const Call& call = graph.calls[id];
  for (int g = call.first_group; g < call.last_group; ++g) {
    const CallGroup& group = graph.groups[g];
    groups.emplace_back(graph.sequence.begin() + group.first, graph.sequence.begin() + group.last);
  }
  return groups;
}

// "web(cart, catalog | auth)": what calls what, one after another or at once.
std::string ShapeOf(const Catalog& catalog, const CallGraph& graph, CallId id);

std::string ShapeOf(const Catalog& catalog, const CallGraph& graph,
                    const std::vector<CallId>& group) {
  std::string text;
  for (const CallId call : group)
    text += (text.empty() ? "" : ", ") + ShapeOf(catalog, graph, call);
  return text;
}

std::string ShapeOf(const Catalog& catalog, const CallGraph& graph, CallId id) {
  std::vector<std::string> groups;
  for (const auto& group : GroupsOf(graph, id)) groups.push_back(ShapeOf(catalog, graph, group));
  std::sort(groups.begin(), groups.end());
  const std::string& name = catalog.workloads[graph.calls[id].workload].name;
  return groups.empty() ? name : fmt::format("{}({})", name, fmt::join(groups, " | "));
}

// The same whatever the order of calls.
std::string CallsOf(const Catalog& catalog, const CallGraph& graph, CallId id) {
  std::vector<std::string> calls;
  for (const auto& group : GroupsOf(graph, id)) {
    for (const CallId call : group) calls.push_back(CallsOf(catalog, graph, call));
  }
  std::sort(calls.begin(), calls.end());
  return fmt::format("{}({})", catalog.workloads[graph.calls[id].workload].name,
                     fmt::join(calls, ","));
}

double CertaintyOf(const InferredCall& call) {
  double certainty = call.certainty;
  for (const auto& group : call.groups) {
    for (const InferredCall& callee : group) certainty = std::min(certainty, CertaintyOf(callee));
  }
  return certainty;
}

bool Differs(double before, const TracedTime& now) {
  if (now.seen.count == 0) return before == 0 && now.execution_ms > 0;
  const double by = std::abs(now.execution_ms - before);
  const double deviation = std::max(0.0, now.seen.p95 - now.seen.p50) / kDeviationsToP95;
  const double error = deviation / std::sqrt(static_cast<double>(now.seen.count));
  return by > std::max({kLeastShare * before, kStandardErrors * error * now.per_request, kLeastMs});
}

class EndpointComparison {
 public:
  EndpointComparison(const Application& known, const TracedApplication& traced)
      : catalog_(*known.catalog), known_(*known.calls), seen_(*traced.application->calls) {
    for (const TracedTime& time : traced.times)
      times_.emplace(std::pair(time.call_number, time.cpu_type), &time);
  }

  // What has changed, for people; nothing if that may be chance. `number`: of the endpoint seen.
  std::optional<std::string> Changes(const Endpoint& before, const Endpoint& now, int number,
                                     double certainty) {
    const std::string had = ShapeOf(catalog_, known_, before.root),
                      has = ShapeOf(catalog_, seen_, now.root);
    if (had != has) {
      const bool is_order =
          CallsOf(catalog_, known_, before.root) == CallsOf(catalog_, seen_, now.root);
      if (is_order && certainty < kLeastCertainty) return std::nullopt;
      return fmt::format("{}: {} became {}", before.name, OneLine(had, kLongestShape),
                         OneLine(has, kLongestShape));
    }
    largest_ = "";
    most_ = 0;
    changed_ = 0;
    CompareBelow(before.root, now.root, number);
    if (changed_ == 0) return std::nullopt;
    return fmt::format("{}: {}{}", before.name, largest_,
                       changed_ > 1 ? fmt::format(", and {} more", changed_ - 1) : "");
  }

 private:
  // REQUIRES: both are of one shape.
  void CompareBelow(CallId old_call, CallId call, int number) {
    const auto sorted = [&](const CallGraph& graph, CallId id) {
      std::vector<std::pair<std::string, std::vector<CallId>>> groups;
      for (auto& group : GroupsOf(graph, id))
        groups.emplace_back(ShapeOf(catalog_, graph, group), std::move(group));
      std::stable_sort(groups.begin(), groups.end(),
                       [](const auto& a, const auto& b) { return a.first < b.first; });
      return groups;
    };
    const auto had = sorted(known_, old_call), has = sorted(seen_, call);
    for (size_t g = 0; g < has.size(); ++g) {
      for (size_t i = 0; i < has[g].second.size(); ++i) {
        CompareTimes(had[g].second[i], has[g].second[i], number);
        ComparePayload(had[g].second[i], has[g].second[i]);
        CompareBelow(had[g].second[i], has[g].second[i], number);
      }
    }
  }

  void CompareTimes(CallId old_call, CallId call, int number) {
    for (KindId k = 0; k < catalog_.kind_count(); ++k) {
      const std::string& type = catalog_.kinds[k].cpu_type;
      const auto at = times_.find({call - number, type});  // Clients are not counted.
      const double ms = known_.ExecutionMs(old_call, k);
      if (at == times_.end() || !Differs(ms, *at->second)) continue;
      const double now = at->second->execution_ms;
      Note(std::abs(now - ms) / std::max(ms, kLeastMs), call,
           fmt::format("{:.4g} -> {:.4g} ms on {}", ms, now, type));
    }
  }

  void ComparePayload(CallId old_call, CallId call) {
    const double had = known_.calls[old_call].data_mbytes, has = seen_.calls[call].data_mbytes;
    if (std::abs(has - had) <= std::max(kLeastPayloadShare * had, kLeastPayloadMb)) return;
    Note(0, call, fmt::format("{:.4g} -> {:.4g} MB of payload", had, has));
  }

  void Note(double by, CallId call, const std::string& what) {
    if (++changed_ > 1 && by <= most_) return;
    most_ = by;
    largest_ = fmt::format("{} {}", catalog_.workloads[seen_.calls[call].workload].name, what);
  }

  const Catalog& catalog_;
  const CallGraph& known_;
  const CallGraph& seen_;
  std::map<std::pair<int, std::string>, const TracedTime*> times_;
  std::string largest_;  // Of the changes, in words.
  double most_ = 0;      // By how much of what it was.
  int changed_ = 0;
};

const Endpoint* EndpointNamed(const CallGraph& graph, const std::string& name) {
  const auto at = std::find_if(graph.endpoints.begin(), graph.endpoints.end(),
                               [&](const Endpoint& one) { return one.name == name; });
  return at == graph.endpoints.end() ? nullptr : &*at;
}

}  // namespace

CallsUpdate UpdateCalls(const Application& known, const TracedApplication& traced,
                        const InferredGraph& graph, NewEndpoints new_endpoints) {
  EndpointComparison comparison(known, traced);
  const CallGraph& seen = *traced.application->calls;
  CallsUpdate update;
  std::map<std::string, EndpointTree> changed;
  std::vector<EndpointTree> added;
  for (size_t i = 0; i < graph.endpoints.size(); ++i) {
    const Endpoint& now = seen.endpoints[i];
    if (graph.endpoints[i].traces < kFewestTraces) continue;
    const Endpoint* before = EndpointNamed(*known.calls, now.name);
    if (before == nullptr && new_endpoints == NewEndpoints::kLeaveOut) continue;
    if (before == nullptr) {
      const std::string shape = ShapeOf(*known.catalog, seen, now.root);
      update.changes.push_back(fmt::format("{}: new, {}", now.name, OneLine(shape, kLongestShape)));
      added.push_back(TreeOf(seen, now));
      continue;
    }
    auto change = comparison.Changes(*before, now, static_cast<int>(i),
                                     CertaintyOf(graph.endpoints[i].client));
    if (!change) continue;
    update.changes.push_back(*std::move(change));
    changed.emplace(now.name, TreeOf(seen, now));
  }
  if (update.changes.empty()) return update;
  std::vector<EndpointTree> endpoints;
  for (const Endpoint& one : known.calls->endpoints) {
    const auto at = changed.find(one.name);
    endpoints.push_back(at == changed.end() ? TreeOf(*known.calls, one) : std::move(at->second));
  }
  std::move(added.begin(), added.end(), std::back_inserter(endpoints));
  Application made = known;
  made.calls = BuildCallGraph(known.calls->name, known.catalog->kind_count(), endpoints);
  update.application = std::make_shared<const Application>(std::move(made));
  return update;
}

}  // namespace rudderfish
