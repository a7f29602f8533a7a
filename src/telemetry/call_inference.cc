// SPDX-License-Identifier: Apache-2.0
#include "telemetry/call_inference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <tuple>
#include <utility>

#include "telemetry/call_order.h"

namespace rudderfish {
namespace {

constexpr int kMostSlots = 16;       // Calls of one workload by one caller that are told apart.
constexpr size_t kMostCallees = 64;  // Of one call.

// A call as many traces have it.
struct Node {
  WorkloadId workload = kNone;
  int64_t count = 0;
  std::map<int, std::vector<float>> own_ms;
  std::vector<float> network_ms;
  double bytes = 0;
  int64_t bytes_count = 0;
  bool is_from_outside = false;
  std::map<std::pair<WorkloadId, int>, std::unique_ptr<Node>> callees;  // By workload and slot.
  CallOrder order;  // Of the callees, by their keys.
};

struct EndpointNode {
  int64_t traces = 0;
  std::vector<float> duration_ms;
  Node client;
};

int KeyOf(std::pair<WorkloadId, int> callee) { return callee.first * kMostSlots + callee.second; }

class Merger {
 public:
  explicit Merger(InferredGraph* graph) : graph_(graph) {}

  void Add(const TracedRequest& request, EndpointNode* endpoint) {
    ++endpoint->traces;
    endpoint->duration_ms.push_back(static_cast<float>(request.duration_ms));
    callees_.assign(request.calls.size(), {});
    for (size_t call = 1; call < request.calls.size(); ++call)
      callees_[request.calls[call].caller].push_back(static_cast<int>(call));
    endpoint->client.workload = request.calls[0].workload;
    AddCall(request, 0, &endpoint->client);
  }

 private:
  void AddCall(const TracedRequest& request, int index, Node* node) {
    const TracedCall& call = request.calls[index];
    ++node->count;
    if (index > 0) node->own_ms[call.speed].push_back(static_cast<float>(call.own_ms));
    if (call.network_ms >= 0) node->network_ms.push_back(static_cast<float>(call.network_ms));
    if (call.request_bytes >= 0) {
      node->bytes += static_cast<double>(call.request_bytes);
      ++node->bytes_count;
    }
    node->is_from_outside |= call.is_from_outside;
    std::vector<int>& callees = callees_[index];
    std::stable_sort(callees.begin(), callees.end(), [&](int a, int b) {
      return request.calls[a].start_ns < request.calls[b].start_ns;
    });
    std::map<WorkloadId, int> slots;
    std::vector<CallOrder::Seen> seen;
    for (const int callee : callees) {
      const TracedCall& made = request.calls[callee];
      const int slot = std::min(slots[made.workload]++, kMostSlots - 1);
      std::unique_ptr<Node>& child = node->callees[{made.workload, slot}];
      if (child == nullptr) {
        if (node->callees.size() > kMostCallees) {
          node->callees.erase({made.workload, slot});
          ++graph_->folded[fmt::format("calls of more than {} by one caller", kMostCallees)];
          continue;
        }
        child = std::make_unique<Node>();
        child->workload = made.workload;
      }
      seen.push_back({KeyOf({made.workload, slot}), made.start_ns, made.end_ns});
      AddCall(request, callee, child.get());
    }
    node->order.Add(seen);
  }

  InferredGraph* graph_;
  std::vector<std::vector<int>> callees_;  // [call]
};

template <class T>
void Append(std::vector<T>* to, std::vector<T>* from) {
  to->insert(to->end(), from->begin(), from->end());
  from->clear();
}

void MergeInto(Node* to, Node* from) {
  to->count += from->count;
  for (auto& [speed, values] : from->own_ms) Append(&to->own_ms[speed], &values);
  Append(&to->network_ms, &from->network_ms);
  to->bytes += from->bytes;
  to->bytes_count += from->bytes_count;
  to->is_from_outside |= from->is_from_outside;
  for (auto& [key, callee] : from->callees) {
    std::unique_ptr<Node>& same = to->callees[key];
    if (same == nullptr) {
      same = std::move(callee);
    } else {
      MergeInto(same.get(), callee.get());
    }
  }
  to->order.Merge(from->order);
}

// As many calls of each workload as there are on average; what is more goes to the last of them.
void RoundCalls(Node* node) {
  std::map<WorkloadId, int64_t> totals;
  for (const auto& [key, callee] : node->callees) totals[key.first] += callee->count;
  for (auto at = node->callees.begin(); at != node->callees.end();) {
    const auto& [workload, slot] = at->first;
    const double mean = static_cast<double>(totals[workload]) / static_cast<double>(node->count);
    const int kept = static_cast<int>(std::clamp<int64_t>(std::lround(mean), 1, kMostSlots));
    if (slot < kept) {
      ++at;
      continue;
    }
    MergeInto(node->callees.find({workload, kept - 1})->second.get(), at->second.get());
    node->order.Forget(KeyOf(at->first));
    at = node->callees.erase(at);
  }
  for (auto& [key, callee] : node->callees) RoundCalls(callee.get());
}

InferredCall CallOf(Node* node, int64_t traces, const InferenceLimits& limits,
                    InferredGraph* graph) {
  InferredCall call{.workload = node->workload};
  call.per_request = static_cast<double>(node->count) / static_cast<double>(traces);
  for (auto& [speed, values] : node->own_ms) call.own_ms[speed] = Summarise(std::move(values));
  call.network_ms = Summarise(std::move(node->network_ms));
  call.is_from_outside = node->is_from_outside;
  if (node->bytes_count > 0)
    call.request_bytes = node->bytes / static_cast<double>(node->bytes_count);
  std::vector<int> keys;
  std::map<int, Node*> callees;
  for (auto& [key, callee] : node->callees) {
    if (static_cast<double>(callee->count) < limits.least_share * static_cast<double>(traces)) {
      graph->folded["calls that are too rare"] += callee->count;
      continue;
    }
    keys.push_back(KeyOf(key));
    callees[keys.back()] = callee.get();
  }
  const OrderedGroups ordered = node->order.Groups(keys);
  call.certainty = ordered.certainty;
  for (const std::vector<int>& group : ordered.groups) {
    call.groups.emplace_back();
    for (const int key : group)
      call.groups.back().push_back(CallOf(callees[key], traces, limits, graph));
  }
  return call;
}

std::string Reasons(const Counts& counts) {
  std::string text;
  for (const auto& [reason, count] : counts)
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", reason, count);
  return text.empty() ? "there is none" : text;
}

using EndpointKey = std::tuple<WorkloadId, WorkloadId, int32_t>;  // Client, first callee, name.

void ShowEndpoints(std::map<EndpointKey, EndpointNode>* merged, const SpanSet& set,
                   const InferenceLimits& limits, InferredGraph* graph) {
  std::vector<std::pair<EndpointKey, EndpointNode*>> by_traces;
  for (auto& [key, endpoint] : *merged) by_traces.emplace_back(key, &endpoint);
  std::stable_sort(by_traces.begin(), by_traces.end(), [](const auto& a, const auto& b) {
    return a.second->traces > b.second->traces;
  });
  for (auto& [key, endpoint] : by_traces) {
    const double least = limits.least_share * static_cast<double>(graph->traces);
    if (static_cast<int>(graph->endpoints.size()) >= limits.endpoints ||
        static_cast<double>(endpoint->traces) < least) {
      graph->folded["traces of endpoints that are too rare"] += endpoint->traces;
      continue;
    }
    endpoint->client.count = endpoint->traces;
    RoundCalls(&endpoint->client);
    InferredEndpoint shown{.operation = set.words[std::get<2>(key)], .traces = endpoint->traces};
    shown.duration_ms = Summarise(std::move(endpoint->duration_ms));
    shown.client = CallOf(&endpoint->client, endpoint->traces, limits, graph);
    graph->endpoints.push_back(std::move(shown));
  }
}

}  // namespace

TimeSummary Summarise(std::vector<float> values) {
  TimeSummary summary{.count = static_cast<int64_t>(values.size())};
  if (values.empty()) return summary;
  double sum = 0;
  for (const float value : values) sum += value;
  summary.mean = sum / static_cast<double>(values.size());
  const auto at = [&](double share) {
    const std::ptrdiff_t rank = std::lround(share * static_cast<double>(values.size() - 1));
    std::nth_element(values.begin(), values.begin() + rank, values.end());
    return static_cast<double>(values[rank]);
  };
  summary.p50 = at(0.5);
  summary.p95 = at(0.95);
  return summary;
}

Result<InferredGraph> InferCalls(const SpanPlaces& places, const InferenceLimits& limits,
                                 SpanSet* set) {
  LinkSpans(set);
  std::vector<std::string> clocks;
  for (const SpanPlace& place : places.sources) clocks.push_back(place.clock);
  InferredGraph graph;
  graph.clocks = EstimateClockOffsets(*set, clocks);
  RemoveClockOffsets(clocks, graph.clocks, set);
  std::map<EndpointKey, EndpointNode> merged;
  Merger merger(&graph);
  for (const SpanRange& range : TracesOf(*set)) {
    std::string reason;
    const std::optional<TracedRequest> request = ReadRequest(*set, range, places, &reason);
    if (!request) {
      ++graph.traces_left_out[reason];
      continue;
    }
    const WorkloadId first = request->calls[1].workload;
    merger.Add(*request, &merged[{request->calls[0].workload, first, request->operation}]);
    for (const AsynchronousCall& one : request->asynchronous) ++graph.asynchronous[one];
    for (const auto& [why, count] : request->folded) graph.folded[why] += count;
    graph.first_ns =
        graph.traces == 0 ? request->start_ns : std::min(graph.first_ns, request->start_ns);
    graph.last_ns = std::max(graph.last_ns, request->start_ns);
    ++graph.traces;
  }
  if (graph.traces == 0) {
    return Fail(ErrorCode::kFailedPrecondition,
                "no trace shows a whole request: {}; spans left out: {}",
                Reasons(graph.traces_left_out), Reasons(set->left_out));
  }
  ShowEndpoints(&merged, *set, limits, &graph);
  return graph;
}

}  // namespace rudderfish
