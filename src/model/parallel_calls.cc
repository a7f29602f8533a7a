// SPDX-License-Identifier: Apache-2.0
#include "model/parallel_calls.h"

#include <algorithm>
#include <cmath>

#include "model/evaluator.h"

namespace rudderfish {
namespace {

// Points of Gauss and Hermite's rule for a normal distribution, in standard deviations.
constexpr double kOuterPoint = 1.7320508075688772, kOuterWeight = 1.0 / 6;
constexpr double kNoVariance = 1e-12;

}  // namespace

void ParallelCalls::Reset(const CallGraph& calls, int kinds) {
  calls_ = &calls;
  kinds_ = kinds;
  replies_.resize(static_cast<size_t>(calls.call_count()) * kinds);
  fixed_ms_.resize(calls.call_count());
  loopback_ms_.resize(calls.call_count());
  sites_.resize(calls.call_count());
  listed_.reserve(replies_.size());
  int most = 0;
  for (const Call& call : calls.calls) most = std::max(most, call.last_group - call.first_group);
  groups_.resize(most);
  below_.resize(most);
  first_.resize(most);
  atoms_.reserve(static_cast<size_t>(most) * std::max(3, 2 * kinds));
}

void ParallelCalls::ListSites(const Evaluator& model, CallId call) {
  const WorkloadId workload = calls_->calls[call].workload;
  const int replicas = model.placement().replicas(workload);
  Sites& sites = sites_[call];
  sites.first = static_cast<int32_t>(listed_.size());
  if (replicas == 0) listed_.push_back({0, 1});
  for (KindId kind = 0; replicas > 0 && kind < kinds_; ++kind) {
    const int here = model.placement().on_kind(workload, kind);
    if (here > 0) listed_.push_back({kind, 1.0 * here / replicas});
  }
  sites.last = static_cast<int32_t>(listed_.size());
}

double ParallelCalls::HopMs(const Evaluator& model, CallId call, KindId from, KindId to) const {
  const WorkloadId caller = model.CallerOf(call);
  const bool travels = model.placement().replicas(caller) > 0 &&
                       model.placement().replicas(calls_->calls[call].workload) > 0;
  return travels ? model.HopMsBetween(from, to) : 0;
}

double ParallelCalls::LoopbackMs(const Evaluator& model, CallId call) {
  const WorkloadId caller = model.CallerOf(call);
  const WorkloadId callee = model.calls().calls[call].workload;
  if (caller == kNone || model.placement().replicas(caller) == 0 ||
      model.placement().replicas(callee) == 0) {
    return 0;
  }
  if (!model.law().loopback) return 0;
  const Placement& placement = model.placement();
  double sum = 0;
  for (const NodeId node : model.HostsOf(caller)) {
    const int both = placement.on_node(caller, node) * placement.on_node(callee, node);
    const KindId kind = placement.kind(node);
    if (both > 0) sum += both * (2 * kLoopbackMs - model.HopMsBetween(kind, kind));
  }
  return sum / (1.0 * placement.replicas(caller) * placement.replicas(callee));
}

Terms ParallelCalls::OfEndpoint(const Evaluator& model, int endpoint) {
  const Endpoint& e = calls_->endpoints[endpoint];
  listed_.clear();
  for (CallId call = e.end - 1; call >= e.root; --call) {
    loopback_ms_[call] = LoopbackMs(model, call);
    fixed_ms_[call] = loopback_ms_[call] + model.cost(call).transfer_ms;
    ListSites(model, call);
    for (const Site& site : SitesOf(call))
      replies_[static_cast<size_t>(call) * kinds_ + site.kind] = OfCall(model, call, site.kind);
  }
  Terms terms;
  for (const Site& site : SitesOf(e.root))
    AddTerms(replies_[static_cast<size_t>(e.root) * kinds_ + site.kind].mean, site.share, &terms);
  return terms;
}

ParallelCalls::Reply ParallelCalls::OfCall(const Evaluator& model, CallId call, KindId kind) {
  const Call& c = calls_->calls[call];
  Reply reply;
  if (model.placement().replicas(c.workload) > 0) {
    reply.mean.execution_ms = model.ExecutionMs(call, kind);
    reply.mean.latency_ms = model.SojournMs(call, kind);
    reply.mean.queueing_ms = reply.mean.latency_ms - reply.mean.execution_ms;
  }
  const int groups = c.last_group - c.first_group;
  if (groups == 0) return reply;
  for (int g = 0; g < groups; ++g) groups_[g] = OfGroup(model, c.first_group + g, kind);
  Reply slowest = groups_[0];
  if (groups > 1) {
    atoms_.clear();
    for (int g = 0; g < groups; ++g) ListAtoms(model, {c.first_group + g, g}, kind);
    slowest = Slowest(groups);
  }
  AddTerms(slowest.mean, 1, &reply.mean);
  reply.variance = slowest.variance;
  return reply;
}

ParallelCalls::Reply ParallelCalls::Seen(const Evaluator& model, CallId call, KindId from) const {
  Reply seen;
  double square = 0;
  for (const auto& [to, share] : SitesOf(call)) {
    const Reply& there = replies_[static_cast<size_t>(call) * kinds_ + to];
    const double hop_ms = HopMs(model, call, from, to);
    AddTerms(there.mean, share, &seen.mean);
    seen.mean.network_ms += share * hop_ms;
    seen.mean.latency_ms += share * hop_ms;
    const double ms = there.mean.latency_ms + hop_ms;
    square += share * (ms * ms + there.variance);
  }
  seen.variance = std::max(0.0, square - seen.mean.latency_ms * seen.mean.latency_ms);
  seen.mean.network_ms += loopback_ms_[call];
  seen.mean.transfer_ms += model.cost(call).transfer_ms;
  seen.mean.latency_ms += fixed_ms_[call];
  return seen;
}

// One call after another.
ParallelCalls::Reply ParallelCalls::OfGroup(const Evaluator& model, int group, KindId from) const {
  Reply sum;
  for (int i = calls_->groups[group].first; i < calls_->groups[group].last; ++i) {
    const Reply seen = Seen(model, calls_->sequence[i], from);
    AddTerms(seen.mean, 1, &sum.mean);
    sum.variance += seen.variance;
  }
  return sum;
}

void ParallelCalls::AddAtom(double ms, double weight, int place) {
  atoms_.push_back({ms, weight, place, static_cast<int32_t>(atoms_.size())});
}

void ParallelCalls::ListAtoms(const Evaluator& model, Group group, KindId from) {
  const int first = calls_->groups[group.id].first, last = calls_->groups[group.id].last;
  if (last - first != 1) {
    const Reply& sum = groups_[group.place];
    const double ms = sum.mean.latency_ms, outer_ms = kOuterPoint * std::sqrt(sum.variance);
    AddAtom(ms - outer_ms, kOuterWeight, group.place);
    AddAtom(ms, 1 - 2 * kOuterWeight, group.place);
    AddAtom(ms + outer_ms, kOuterWeight, group.place);
    return;
  }
  const CallId call = calls_->sequence[first];
  for (const auto& [to, share] : SitesOf(call)) {
    const Reply& there = replies_[static_cast<size_t>(call) * kinds_ + to];
    const double ms = there.mean.latency_ms + HopMs(model, call, from, to) + fixed_ms_[call];
    if (there.variance < kNoVariance) {
      AddAtom(ms, share, group.place);
      continue;
    }
    const double around_ms = std::sqrt(there.variance);
    AddAtom(ms - around_ms, share / 2, group.place);
    AddAtom(ms + around_ms, share / 2, group.place);
  }
}

// The greatest is at most x as often as all of them are: the product of the shares below x.
ParallelCalls::Reply ParallelCalls::Slowest(int groups) {
  std::sort(atoms_.begin(), atoms_.end(), [](const Atom& a, const Atom& b) {
    return a.ms != b.ms ? a.ms < b.ms : a.order < b.order;
  });
  std::fill_n(below_.begin(), groups, 0);
  std::fill_n(first_.begin(), groups, 0);
  double below_all = 0, mean_ms = 0, square = 0;
  for (const Atom& atom : atoms_) {
    below_[atom.place] += atom.weight;
    double product = 1;
    for (int g = 0; g < groups; ++g) product *= below_[g];
    const double weight = product - below_all;
    below_all = product;
    first_[atom.place] += weight;
    mean_ms += weight * atom.ms;
    square += weight * atom.ms * atom.ms;
  }
  Reply slowest;
  for (int g = 0; g < groups; ++g) AddTerms(groups_[g].mean, first_[g], &slowest.mean);
  slowest.mean.network_ms += mean_ms - slowest.mean.latency_ms;
  slowest.mean.latency_ms = mean_ms;
  slowest.variance = std::max(0.0, square - mean_ms * mean_ms);
  return slowest;
}

}  // namespace rudderfish
