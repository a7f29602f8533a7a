// SPDX-License-Identifier: Apache-2.0
#include "model/evaluator.h"

#include <algorithm>
#include <atomic>

#include "base/check.h"

namespace rudderfish {
namespace {

// So many pairs of nodes are summed one by one; of more the lists are sorted, which is faster.
constexpr size_t kFewPairs = 1024;

// Where a workload's pods are: how many on each node, and the inverse of the share that one has.
struct Ends {
  std::span<const NodeId> hosts;
  const uint16_t* pods = nullptr;
  const double* inverse = nullptr;
};

// The sum over all pairs of their pods of the inverse of the share that the two have. Those that
// talk over the loopback need none.
double InverseOfPairs(const LatencyLaw& law, const Ends& callers, const Ends& callees,
                      SumOfMaxima* maxima) {
  const auto of = [&](NodeId from, NodeId to) {
    const double both = 1.0 * callers.pods[from] * callees.pods[to];
    return both * std::max(callers.inverse[from], callees.inverse[to]);
  };
  double inverse = 0;
  if (callers.hosts.size() * callees.hosts.size() <= kFewPairs) {
    for (NodeId from : callers.hosts) {
      for (NodeId to : callees.hosts) {
        if (!law.loopback || from != to) inverse += of(from, to);
      }
    }
    return inverse;
  }
  maxima->Clear();
  for (NodeId from : callers.hosts) maxima->AddLeft(callers.inverse[from], callers.pods[from]);
  for (NodeId to : callees.hosts) maxima->AddRight(callees.inverse[to], callees.pods[to]);
  inverse = maxima->Sum();
  if (!law.loopback) return inverse;
  for (NodeId node : callers.hosts) inverse -= of(node, node);
  return std::max(0.0, inverse);
}

// Only ever compared for equality: no result depends on it.
std::atomic<uint64_t> world_last{0};

}  // namespace

void Evaluator::Reset(const State& state) {
  // The index of calls holds a row for each workload of the catalog, called or not.
  const bool same_calls = calls_ == state.calls && kinds_ == state.catalog->kind_count() &&
                          touching_begin_.size() == state.catalog->workloads.size() + 1;
  state_ = &state;
  world_ = ++world_last;
  calls_ = state.calls;
  kinds_ = state.catalog->kind_count();
  CHECK(calls_ != nullptr);
  CHECK_EQ(calls_->kind_count, kinds_);
  placement_.Reset(state);
  hop_ms_.resize(static_cast<size_t>(kinds_) * kinds_);
  bandwidth_.resize(kinds_);
  for (KindId from = 0; from < kinds_; ++from) {
    const NodeKind& kind = state.catalog->kinds[from];
    bandwidth_[from] = kind.bandwidth_mbytes_per_s;
    for (KindId to = 0; to < kinds_; ++to) {
      hop_ms_[from * kinds_ + to] =
          HopMs(law_, state.network, kind.layer, state.catalog->kinds[to].layer);
    }
  }
  if (!same_calls) IndexCalls();
  IndexPartners();
  ComputeQueueing();

  const int workloads = placement_.workload_count();
  hosts_.resize(workloads);
  for (WorkloadId w = 0; w < workloads; ++w) {
    hosts_[w].clear();
    for (NodeId node = 0; node < placement_.node_count(); ++node) {
      if (placement_.on_node(w, node) > 0) hosts_[w].push_back(node);
    }
  }
  inverse_share_.assign(static_cast<size_t>(workloads) * placement_.node_count(), 0);
  maxima_.Reserve(placement_.node_count());
  pod_traffic_.resize(workloads);
  on_node_.resize(workloads + 1);  // What does not belong is written over.
  for (NodeId node = 0; node < placement_.node_count(); ++node) RefreshShares(node);
  for (CallId call = 0; call < calls_->call_count(); ++call) {
    RefreshCall(call);
    RefreshTransfer(call);
  }
  for (size_t endpoint = 0; endpoint < calls_->endpoints.size(); ++endpoint)
    RefreshEndpoint(endpoint);
  SumEndpoints();
  ForgetHistory();
  gains_valid_ = false;
}

void Evaluator::IndexCalls() {
  const int calls = calls_->call_count();
  const int workloads = placement_.workload_count();
  caller_of_.resize(calls);
  for (CallId call = 0; call < calls; ++call) {
    const CallId caller = calls_->calls[call].caller;
    caller_of_[call] = caller == kNone ? kNone : calls_->calls[caller].workload;
  }
  touching_begin_.assign(workloads + 1, 0);
  touching_.clear();
  for (WorkloadId w = 0; w < workloads; ++w) {
    for (CallId call = 0; call < calls; ++call) {
      if (calls_->calls[call].workload == w || CallerOf(call) == w) touching_.push_back(call);
    }
    touching_begin_[w + 1] = static_cast<int32_t>(touching_.size());
  }
  endpoint_of_.resize(calls);
  sequential_.assign(calls_->endpoints.size(), 1);
  for (size_t endpoint = 0; endpoint < calls_->endpoints.size(); ++endpoint) {
    for (CallId call = calls_->endpoints[endpoint].root; call < calls_->endpoints[endpoint].end;
         ++call) {
      endpoint_of_[call] = static_cast<int32_t>(endpoint);
      if (calls_->calls[call].last_group - calls_->calls[call].first_group > 1)
        sequential_[endpoint] = 0;
    }
  }
  costs_.resize(calls);
  subtree_.resize(calls);
  queueing_ms_.resize(static_cast<size_t>(calls) * kinds_);
  endpoint_terms_.resize(calls_->endpoints.size());
  parallel_.Reset(*calls_, kinds_);
  call_words_ = (calls + 63) / 64;
  touched_bits_.resize(call_words_);
  touching_bits_.assign(static_cast<size_t>(workloads) * call_words_, 0);
  for (WorkloadId w = 0; w < workloads; ++w) {
    uint64_t* bits = touching_bits_.data() + w * call_words_;
    for (CallId call : CallsTouching(w)) bits[call / 64] |= uint64_t{1} << call % 64;
  }
}

// Whom the pods of each workload exchange traffic with, call by call.
void Evaluator::IndexPartners() {
  partners_.clear();
  partners_begin_.assign(placement_.workload_count() + 1, 0);
  for (WorkloadId w = 0; w < placement_.workload_count(); ++w) {
    for (CallId call : CallsTouching(w)) {
      const Call& c = calls_->calls[call];
      const WorkloadId caller = CallerOf(call);
      if (caller == kNone) continue;
      const double pairs = 1.0 * placement_.replicas(caller) * placement_.replicas(c.workload);
      const double rate = calls_->endpoints[endpoint_of_[call]].rate_per_second;
      const double traffic = pairs == 0 ? 0 : rate * c.data_mbytes * law_.traffic_per_mbyte / pairs;
      if (c.workload == w) partners_.push_back({caller, traffic});
      if (caller == w) partners_.push_back({c.workload, traffic});
    }
    partners_begin_[w + 1] = static_cast<int32_t>(partners_.size());
  }
}

void Evaluator::ComputeQueueing() {
  if (!law_.queueing) {
    std::fill(queueing_ms_.begin(), queueing_ms_.end(), 0.0);
    return;
  }
  for (WorkloadId w = 0; w < placement_.workload_count(); ++w) {
    const int replicas = std::max(1, placement_.replicas(w));
    for (KindId kind = 0; kind < kinds_; ++kind) {
      double rho = 0;
      for (CallId call : CallsTouching(w)) {
        if (calls_->calls[call].workload != w) continue;
        const double rate = calls_->endpoints[endpoint_of_[call]].rate_per_second;
        rho += rate / replicas * calls_->ExecutionMs(call, kind) / 1000;
      }
      for (CallId call : CallsTouching(w)) {
        if (calls_->calls[call].workload != w) continue;
        queueing_ms_[call * kinds_ + kind] =
            law_.queueing_factor * QueueingMs(calls_->ExecutionMs(call, kind), rho);
      }
    }
  }
}

double Evaluator::PodTraffic(WorkloadId w, NodeId node) const {
  double traffic = 0;
  for (const Partner& other : PartnersOf(w)) {
    traffic += other.traffic *
               (placement_.replicas(other.workload) - placement_.on_node(other.workload, node));
  }
  return traffic;
}

double Evaluator::NodeUseMbytesPerS(NodeId node) const {
  double use = state_->nodes.background_mbytes_per_s[node];
  for (WorkloadId w = 0; w < placement_.workload_count(); ++w) {
    if (const int here = placement_.on_node(w, node); here > 0) use += here * PodTraffic(w, node);
  }
  return use;
}

// Listed without branches: who is where is as good as random.
std::span<const WorkloadId> Evaluator::WorkloadsOn(NodeId node) {
  const int workloads = placement_.workload_count();
  WorkloadId* next = on_node_.data();
  for (WorkloadId w = 0; w < workloads; ++w) {
    *next = w;
    next += placement_.on_node(w, node) > 0;
  }
  return {on_node_.data(), next};
}

// What each workload's pods on this node get of its bandwidth, given who on the node talks to other
// nodes.
void Evaluator::RefreshShares(NodeId node) {
  const int nodes = placement_.node_count();
  const std::span<const WorkloadId> here = WorkloadsOn(node);
  double use = state_->nodes.background_mbytes_per_s[node];
  for (const WorkloadId w : here) {
    pod_traffic_[w] = PodTraffic(w, node);
    use += placement_.on_node(w, node) * pod_traffic_[w];
  }
  const double bandwidth = bandwidth_[placement_.kind(node)];
  for (const WorkloadId w : here) {
    inverse_share_[w * nodes + node] = 1.0 / ShareMbytesPerS(bandwidth, use - pod_traffic_[w]);
  }
}

void Evaluator::RefreshCall(CallId call) {
  const Call& c = calls_->calls[call];
  const WorkloadId callee = c.workload;
  const WorkloadId caller = CallerOf(call);
  CallCost cost;
  const int replicas = placement_.replicas(callee);
  if (replicas == 0) {  // No pod answers: there is no wait. Availability is not latency.
    costs_[call] = cost;
    return;
  }
  for (KindId kind = 0; kind < kinds_; ++kind) {
    const int here = placement_.on_kind(callee, kind);
    cost.execution_ms += here * ExecutionMs(call, kind);
    cost.queueing_ms += here * queueing_ms_[call * kinds_ + kind];
  }
  cost.execution_ms /= replicas;
  cost.queueing_ms /= replicas;
  if (caller == kNone || placement_.replicas(caller) == 0) {
    costs_[call] = cost;
    return;
  }
  const double pairs = 1.0 * placement_.replicas(caller) * replicas;
  for (KindId from = 0; from < kinds_; ++from) {
    const int callers = placement_.on_kind(caller, from);
    if (callers == 0) continue;
    for (KindId to = 0; to < kinds_; ++to) {
      cost.hop_ms += 1.0 * callers * placement_.on_kind(callee, to) * hop_ms_[from * kinds_ + to];
    }
  }
  if (law_.loopback) {
    for (NodeId node : hosts_[caller]) {
      const KindId kind = placement_.kind(node);
      cost.hop_ms += 1.0 * placement_.on_node(caller, node) * placement_.on_node(callee, node) *
                     (2 * kLoopbackMs - hop_ms_[kind * kinds_ + kind]);
    }
  }
  cost.hop_ms /= pairs;
  costs_[call] = cost;
}

// What the payload takes: it depends on who else is on the nodes of both ends.
void Evaluator::RefreshTransfer(CallId call) {
  const WorkloadId callee = calls_->calls[call].workload;
  const WorkloadId caller = CallerOf(call);
  if (caller == kNone || calls_->calls[call].data_mbytes == 0) return;
  const double pairs = 1.0 * placement_.replicas(caller) * placement_.replicas(callee);
  if (pairs == 0) return;
  const auto nodes = static_cast<size_t>(placement_.node_count());
  const auto ends_of = [&](WorkloadId workload) {
    return Ends{hosts_[workload], placement_.on_nodes(workload),
                inverse_share_.data() + static_cast<size_t>(workload) * nodes};
  };
  costs_[call].transfer_ms = calls_->calls[call].data_mbytes * law_.transfer_ms_per_mbyte *
                             InverseOfPairs(law_, ends_of(caller), ends_of(callee), &maxima_) /
                             pairs;
}

// The recursion of latency.h over one endpoint, with the parts along its slowest path.
void Evaluator::RefreshEndpoint(int endpoint) {
  if (NeedsDistributions(endpoint)) {
    endpoint_terms_[endpoint] = parallel_.OfEndpoint(*this, endpoint);
    return;
  }
  const Endpoint& e = calls_->endpoints[endpoint];
  for (CallId call = e.end - 1; call >= e.root; --call) {
    const Call& c = calls_->calls[call];
    Terms total{.latency_ms = costs_[call].execution_ms + costs_[call].queueing_ms,
                .execution_ms = costs_[call].execution_ms,
                .queueing_ms = costs_[call].queueing_ms};
    Terms slowest;
    for (int g = c.first_group; g < c.last_group; ++g) {
      Terms sum;
      for (int i = calls_->groups[g].first; i < calls_->groups[g].last; ++i) {
        const CallId callee = calls_->sequence[i];
        AddTerms(subtree_[callee], 1, &sum);
        sum.network_ms += costs_[callee].hop_ms;
        sum.transfer_ms += costs_[callee].transfer_ms;
        sum.latency_ms += costs_[callee].hop_ms + costs_[callee].transfer_ms;
      }
      if (g == c.first_group || sum.latency_ms > slowest.latency_ms) slowest = sum;
    }
    AddTerms(slowest, 1, &total);
    subtree_[call] = total;
  }
  endpoint_terms_[endpoint] = subtree_[e.root];
}

void Evaluator::SumEndpoints() {
  terms_ = {};
  for (const Terms& endpoint : endpoint_terms_) AddTerms(endpoint, 1, &terms_);
  const double count = std::max<size_t>(1, endpoint_terms_.size());
  terms_.latency_ms /= count;
  terms_.execution_ms /= count;
  terms_.network_ms /= count;
  terms_.transfer_ms /= count;
  terms_.queueing_ms /= count;
}

void Evaluator::UpdateHosts(const Move& move) {
  auto& hosts = hosts_[move.workload];
  if (placement_.on_node(move.workload, move.from) == 0) {
    hosts.erase(std::lower_bound(hosts.begin(), hosts.end(), move.from));
  }
  const auto at = std::lower_bound(hosts.begin(), hosts.end(), move.to);
  if (at == hosts.end() || *at != move.to) hosts.insert(at, move.to);
}

void Evaluator::TouchWorkload(WorkloadId workload) {
  const uint64_t* bits = touching_bits_.data() + static_cast<size_t>(workload) * call_words_;
  for (int word = 0; word < call_words_; ++word) touched_bits_[word] |= bits[word];
}

void Evaluator::TouchNode(NodeId node) {
  for (const WorkloadId w : WorkloadsOn(node)) TouchWorkload(w);
}

void Evaluator::Commit(const Move& move) {
  CHECK(move.from != move.to);
  frames_.push_back(
      {move, terms_, saved_costs_.size(), saved_shares_.size(), saved_endpoints_.size()});
  MoveTouching(move);
  SaveTouched(move);
  RefreshTouched(move);
}

void Evaluator::CommitForGood(const Move& move) {
  CHECK(move.from != move.to);
  ForgetHistory();
  MoveTouching(move);
  RefreshTouched(move);
}

void Evaluator::MoveTouching(const Move& move) {
  std::fill(touched_bits_.begin(), touched_bits_.end(), 0);
  placement_.Apply(move);
  UpdateHosts(move);
  TouchWorkload(move.workload);
  for (NodeId node : {move.from, move.to}) TouchNode(node);
}

void Evaluator::RefreshTouched(const Move& move) {
  for (NodeId node : {move.from, move.to}) RefreshShares(node);
  RefreshTouchedCalls(move.workload);
  for (int32_t endpoint : touched_endpoints_) RefreshEndpoint(endpoint);
  SumEndpoints();
  gains_valid_ = false;
}

// Recomputes the calls of the workload that moved, and the transfers of calls that share its nodes.
void Evaluator::RefreshTouchedCalls(WorkloadId moved) {
  for (const CallId call : CallsTouching(moved)) RefreshCall(call);
  touched_endpoints_.clear();
  int32_t last_endpoint = kNone;
  for (int word = 0; word < call_words_; ++word) {
    for (uint64_t bits = touched_bits_[word]; bits != 0; bits &= bits - 1) {
      const CallId call = word * 64 + __builtin_ctzll(bits);
      RefreshTransfer(call);
      if (endpoint_of_[call] == last_endpoint) continue;  // Calls stand by endpoint.
      last_endpoint = endpoint_of_[call];
      touched_endpoints_.push_back(last_endpoint);
    }
  }
}

void Evaluator::SaveTouched(const Move& move) {
  const int nodes = placement_.node_count();
  for (NodeId node : {move.from, move.to}) {
    for (WorkloadId w = 0; w < placement_.workload_count(); ++w) {
      if (placement_.on_node(w, node) == 0 && w != move.workload) continue;
      saved_shares_.push_back({w * nodes + node, inverse_share_[w * nodes + node]});
    }
  }
  int32_t last_endpoint = kNone;
  for (int word = 0; word < call_words_; ++word) {
    for (uint64_t bits = touched_bits_[word]; bits != 0; bits &= bits - 1) {
      const CallId call = word * 64 + __builtin_ctzll(bits);
      saved_costs_.push_back({call, costs_[call]});
      if (endpoint_of_[call] == last_endpoint) continue;  // Calls stand by endpoint.
      last_endpoint = endpoint_of_[call];
      saved_endpoints_.push_back({last_endpoint, endpoint_terms_[last_endpoint]});
    }
  }
}

void Evaluator::Undo() {
  CHECK(!frames_.empty());
  const Frame frame = frames_.back();
  frames_.pop_back();
  placement_.Revert(frame.move);
  UpdateHosts({frame.move.workload, frame.move.to, frame.move.from});
  for (; saved_costs_.size() > frame.costs; saved_costs_.pop_back()) {
    costs_[saved_costs_.back().index] = saved_costs_.back().value;
  }
  for (; saved_shares_.size() > frame.shares; saved_shares_.pop_back()) {
    inverse_share_[saved_shares_.back().index] = saved_shares_.back().value;
  }
  for (; saved_endpoints_.size() > frame.endpoints; saved_endpoints_.pop_back()) {
    endpoint_terms_[saved_endpoints_.back().index] = saved_endpoints_.back().value;
  }
  terms_ = frame.terms;
  gains_valid_ = false;
}

const Terms& Evaluator::Try(const Move& move) {
  const bool gains_valid = gains_valid_;
  Commit(move);
  tried_ = terms_;
  Undo();
  gains_valid_ = gains_valid;  // The placement is what it was.
  return tried_;
}

void Evaluator::ForgetHistory() {
  frames_.clear();
  saved_costs_.clear();
  saved_shares_.clear();
  saved_endpoints_.clear();
}

const MoveGains& Evaluator::Gains() {
  if (!gains_valid_) {
    ComputeGains(*this, &gains_);
    gains_valid_ = true;
  }
  return gains_;
}

Move Evaluator::ToMove(const Action& action) const {
  const Migrate& migrate = std::get<Migrate>(action);
  return {state_->pods.workload[migrate.pod], migrate.from, migrate.to};
}

}  // namespace rudderfish
