// SPDX-License-Identifier: Apache-2.0
#include "run/traced_application.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/one_line.h"
#include "base/text_table.h"
#include "base/wall_time.h"
#include "run/trace_places.h"
#include "scenario/call_tree.h"

namespace rudderfish {
namespace {

constexpr double kLeastMs = 0.001;
constexpr size_t kLongestName = 100;

// To four digits: what traces show is not known better.
double Rounded(double value) {
  if (!(value > 0)) return 0;
  const double unit = std::pow(10.0, 3 - std::floor(std::log10(value)));
  return std::round(value * unit) / unit;
}

// How long the same takes by one cpu_type, over another: by what the application says of it, by
// what traces show of other calls, or 1.
class Ratios {
 public:
  Ratios(const Application& application, const InferredGraph& graph)
      : application_(application), types_(CpuTypes(*application.catalog)) {
    for (const InferredEndpoint& endpoint : graph.endpoints) See(endpoint.client);
  }

  double Of(WorkloadId workload, int type, int other) const {
    const CallGraph& graph = *application_.calls;
    for (CallId call = 0; call < graph.call_count(); ++call) {
      if (graph.calls[call].workload != workload || graph.calls[call].caller == kNone) continue;
      const double here = TimeOf(call, type), there = TimeOf(call, other);
      if (here > 0 && there > 0) return here / there;
    }
    const auto at = seen_.find({type, other});
    return at == seen_.end() ? 1 : std::exp(at->second.first / at->second.second);
  }

  const std::vector<std::string>& types() const { return types_; }

 private:
  double TimeOf(CallId call, int type) const {
    const auto& kinds = application_.catalog->kinds;
    for (KindId k = 0; k < application_.catalog->kind_count(); ++k)
      if (kinds[k].cpu_type == types_[type]) return application_.calls->ExecutionMs(call, k);
    return 0;
  }

  void See(const InferredCall& call) {
    for (const auto& [a, at_a] : call.own_ms) {
      for (const auto& [b, at_b] : call.own_ms) {
        if (a == b || a == kNone || b == kNone || at_a.mean <= 0 || at_b.mean <= 0) continue;
        const auto weight = static_cast<double>(std::min(at_a.count, at_b.count));
        seen_[{a, b}].first += weight * std::log(at_a.mean / at_b.mean);
        seen_[{a, b}].second += weight;
      }
    }
    for (const auto& group : call.groups) {
      for (const InferredCall& callee : group) See(callee);
    }
  }

  const Application& application_;
  const std::vector<std::string> types_;
  std::map<std::pair<int, int>, std::pair<double, double>> seen_;  // Sum of logarithms, weight.
};

std::string OrderText(const InferredCall& call) {
  size_t callees = 0;
  for (const auto& group : call.groups) callees += group.size();
  if (callees < 2) return "";
  return fmt::format("{} {:.0f} %", call.groups.size() > 1 ? "parallel" : "one by one",
                     std::floor(100 * call.certainty));
}

class CallMaker {
 public:
  CallMaker(const Application& application, const InferredGraph& graph)
      : application_(application), ratios_(application, graph) {}

  // REQUIRES: the call has a workload.
  CallTree Make(const InferredCall& call, WorkloadId caller, const std::string& endpoint,
                int depth) {
    CallTree tree{.workload = call.workload};
    tree.execution_ms.assign(application_.catalog->kinds.size(), 0.0);
    if (depth > 0) {
      tree.data_mbytes = DataOf(call, caller);
      SetTimes(call, endpoint, depth, &tree);
    }
    for (const auto& group : call.groups) {
      tree.groups.emplace_back();
      for (const InferredCall& callee : group)
        tree.groups.back().push_back(Make(callee, call.workload, endpoint, depth + 1));
    }
    return tree;
  }

  std::vector<TracedTime> TakeTimes() { return std::move(times_); }

 private:
  double DataOf(const InferredCall& call, WorkloadId caller) const {
    if (call.request_bytes >= 0) return Rounded(call.request_bytes * call.per_request / 1e6);
    const CallGraph& graph = *application_.calls;
    for (const Call& known : graph.calls) {
      if (known.workload == call.workload && known.caller != kNone &&
          graph.calls[known.caller].workload == caller)
        return known.data_mbytes;
    }
    return 0;
  }

  void SetTimes(const InferredCall& call, const std::string& endpoint, int depth, CallTree* tree) {
    int most = kNone;
    int64_t most_count = 0;
    for (const auto& [type, seen] : call.own_ms) {
      if (seen.count > most_count) most = type, most_count = seen.count;
    }
    const TimeSummary& best = call.own_ms.at(most);
    ++call_count_;
    const auto& types = ratios_.types();
    for (int type = 0; type < static_cast<int>(types.size()); ++type) {
      TracedTime time{.endpoint = endpoint,
                      .call_number = call_count_,
                      .call = std::string(2 * static_cast<size_t>(depth - 1), ' ') +
                              application_.catalog->workloads[call.workload].name,
                      .cpu_type = types[type],
                      .per_request = call.per_request,
                      .network_ms = call.network_ms,
                      .order = OrderText(call),
                      .is_from_outside = call.is_from_outside};
      const auto seen = call.own_ms.find(type);
      if (seen != call.own_ms.end()) {
        time.seen = seen->second;
      } else if (most != kNone) {
        time.ratio = ratios_.Of(call.workload, type, most);
      }
      const double mean = time.seen.count > 0 ? time.seen.mean : best.mean * time.ratio;
      time.execution_ms = std::max(kLeastMs, Rounded(mean * call.per_request));
      bool is_of_cluster = false;
      for (KindId k = 0; k < application_.catalog->kind_count(); ++k) {
        if (application_.catalog->kinds[k].cpu_type != types[type]) continue;
        tree->execution_ms[k] = time.execution_ms;
        is_of_cluster |= !IsOutside(k);
      }
      if (is_of_cluster) times_.push_back(std::move(time));
    }
  }

  // A kind of node that stands for the outside runs no call.
  bool IsOutside(KindId kind) const {
    const auto& requirements = application_.kind_nodes[kind].requirements;
    return std::any_of(requirements.begin(), requirements.end(), [](const LabelRequirement& one) {
      return one.op == LabelRequirement::Operator::kIn && one.values.empty();
    });
  }

  const Application& application_;
  const Ratios ratios_;
  std::vector<TracedTime> times_;
  int call_count_ = 0;
};

// Who calls where the traces do not tell: who does so in the application, or what is outside.
WorkloadId ClientOf(const Application& application) {
  const CallGraph& graph = *application.calls;
  std::set<WorkloadId> clients;
  for (const Endpoint& endpoint : graph.endpoints)
    clients.insert(graph.calls[endpoint.root].workload);
  if (clients.size() == 1) return *clients.begin();
  const auto& objects = application.objects;
  const auto at = std::find_if(objects.begin(), objects.end(),
                               [](const WorkloadObject& object) { return object.is_external(); });
  return at == objects.end() ? kNone : static_cast<WorkloadId>(at - objects.begin());
}

WorkloadId FirstCallee(const CallGraph& graph, const Endpoint& endpoint) {
  return endpoint.end > endpoint.root + 1 ? graph.calls[endpoint.root + 1].workload : kNone;
}

WorkloadId FirstCallee(const InferredEndpoint& endpoint) {
  const auto& groups = endpoint.client.groups;
  return groups.empty() || groups[0].empty() ? kNone : groups[0][0].workload;
}

// The endpoint that the application has of this: of the same name, or the only one that calls the
// same workload first.
const Endpoint* KnownEndpoint(const Application& application, const InferredGraph& graph,
                              const InferredEndpoint& endpoint) {
  const CallGraph& known = *application.calls;
  const Endpoint* same = nullptr;
  int count = 0;
  for (const Endpoint& one : known.endpoints) {
    if (one.name == endpoint.operation) return &one;
    if (FirstCallee(known, one) == FirstCallee(endpoint)) same = &one, ++count;
  }
  const auto traced = std::count_if(
      graph.endpoints.begin(), graph.endpoints.end(),
      [&](const InferredEndpoint& one) { return FirstCallee(one) == FirstCallee(endpoint); });
  if (count == 1 && traced == 1) return same;
  const bool is_only = known.endpoints.size() == 1 && graph.endpoints.size() == 1 &&
                       FirstCallee(known, known.endpoints[0]) == kNone;
  return is_only ? &known.endpoints[0] : nullptr;
}

std::string UniqueName(const std::string& operation, std::set<std::string>* taken) {
  std::string name = OneLine(operation, kLongestName);
  if (name.empty()) name = "request";
  std::string made = name;
  for (int n = 2; !taken->insert(made).second; ++n) made = fmt::format("{} ({})", name, n);
  return made;
}

}  // namespace

Result<TracedApplication> WithTracedCalls(const Application& application,
                                          const InferredGraph& graph, double sampled) {
  CallMaker maker(application, graph);
  std::vector<EndpointTree> endpoints;
  std::set<std::string> names;
  const double seconds = static_cast<double>(graph.last_ns - graph.first_ns) / 1e9;
  for (const InferredEndpoint& endpoint : graph.endpoints) {
    const Endpoint* known = KnownEndpoint(application, graph, endpoint);
    EndpointTree tree;
    tree.name = UniqueName(known == nullptr ? endpoint.operation : known->name, &names);
    const auto traces = static_cast<double>(endpoint.traces);
    tree.rate_per_second = known != nullptr ? known->rate_per_second
                           : seconds > 0    ? Rounded(traces / seconds / sampled)
                                            : 1;
    tree.qos_ms =
        known != nullptr ? known->qos_ms : std::max(kLeastMs, Rounded(endpoint.duration_ms.p95));
    InferredCall client = endpoint.client;
    if (client.workload == kNone) client.workload = ClientOf(application);
    if (client.workload == kNone) {
      return Fail(
          ErrorCode::kFailedPrecondition,
          "who calls the endpoint {}? Its traces begin in the cluster; add a workload that is "
          "`external` to the application",
          tree.name);
    }
    tree.root = maker.Make(client, kNone, tree.name, 0);
    endpoints.push_back(std::move(tree));
  }
  Application made = application;
  made.calls =
      BuildCallGraph(application.calls->name, application.catalog->kind_count(), endpoints);
  return TracedApplication{std::make_shared<const Application>(std::move(made)), maker.TakeTimes()};
}

std::string TracedTimesText(const TracedApplication& traced) {
  using Align = TextTable::Align;
  TextTable table({{"CALL"},
                   {"PER REQUEST", Align::kRight},
                   {"CPU TYPE"},
                   {"WRITTEN MS", Align::kRight},
                   {"SPANS", Align::kRight},
                   {"MEAN", Align::kRight},
                   {"P50", Align::kRight},
                   {"P95", Align::kRight},
                   {"NETWORK", Align::kRight},
                   {"ITS CALLS"}});
  const TracedTime* before = nullptr;
  for (const TracedTime& time : traced.times) {
    if (before == nullptr || before->endpoint != time.endpoint) table.Row({time.endpoint});
    const bool is_first = before == nullptr || before->call_number != time.call_number;
    before = &time;
    std::vector<std::string> row{is_first ? "  " + time.call : "",
                                 is_first ? fmt::format("{:.2f}", time.per_request) : "",
                                 time.cpu_type, fmt::format("{}", time.execution_ms)};
    const auto ms = [](double value) { return fmt::format("{}", Rounded(value)); };
    if (time.seen.count > 0) {
      row.insert(row.end(), {Grouped(time.seen.count), ms(time.seen.mean), ms(time.seen.p50),
                             ms(time.seen.p95)});
    } else {
      row.insert(row.end(), {"none", fmt::format("x {:.2f}", time.ratio), "", ""});
    }
    row.push_back(is_first && time.network_ms.count > 0 ? ms(time.network_ms.mean) : "");
    row.push_back(is_first ? time.order : "");
    if (time.is_from_outside) row.back() += " (timed by its caller)";
    table.Row(std::move(row));
  }
  return table.Text();
}

std::string TracesText(const InferredGraph& graph, const Counts& spans_left_out) {
  std::string text =
      fmt::format("{} from {} to {} UTC\n", Counted(graph.traces, "trace"),
                  DateAndTime(graph.first_ns / 1'000'000), DateAndTime(graph.last_ns / 1'000'000));
  const auto add = [&](std::string_view noun, const Counts& counts) {
    for (const auto& [reason, count] : counts)
      text += fmt::format("Left out: {}: {}\n", Counted(count, noun), reason);
  };
  add("trace", graph.traces_left_out);
  add("span", spans_left_out);
  for (const auto& [reason, count] : graph.folded)
    text += fmt::format("Not shown: {}: {}\n", Grouped(count), reason);
  return text;
}

}  // namespace rudderfish
