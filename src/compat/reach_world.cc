// SPDX-License-Identifier: Apache-2.0
#include "compat/reach_world.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <utility>

#include "base/check.h"

namespace rudderfish {
namespace {

constexpr size_t kPodsMax = std::numeric_limits<uint16_t>::max();  // model/placement.h counts so.
constexpr size_t kCellsMax = size_t{1} << 26;

using NodeIds = std::unordered_map<std::string_view, NodeId>;
using PodIds = std::unordered_map<std::string_view, PodId>;

template <class... Args>
tl::unexpected<Error> DoesNotFit(fmt::format_string<Args...> format, Args&&... args) {
  return Fail(ErrorCode::kFailedPrecondition, format, std::forward<Args>(args)...);
}

Result<NodeIds> AddNodes(const ReachWorld& world, const ReachRequest& request, State* state,
                         Names* names, std::vector<std::string>* left_out) {
  NodeIds ids;
  for (const ReachRequest::Node& node : request.nodes) {
    const KindId kind = world.KindOf(node.name);
    if (kind == kNone && world.strangers == ReachStrangers::kIgnore) {
      left_out->push_back(fmt::format(
          "node `{}` is left out: it is no node of the scenario and does not begin with one of its "
          "node types",
          node.name));
      ids.emplace(node.name, kNone);
      continue;
    }
    if (kind == kNone) {
      return DoesNotFit(
          "cluster_state.nodes: `{}` is no node of the scenario and does not begin with one of its "
          "node types",
          node.name);
    }
    ids.emplace(node.name, state->nodes.size());
    state->nodes.kind.push_back(kind);
    // Rounded down as integers: never more room than there is.
    state->nodes.free.push_back(
        {.cpu_millis = static_cast<int64_t>(std::floor(node.cpu_millis)),
         .memory_bytes = static_cast<int64_t>(std::floor(node.memory_gib * kBytesPerGib))});
    state->nodes.background_mbytes_per_s.push_back(
        world.background_mbytes_per_s.empty() ? 0 : world.background_mbytes_per_s[kind]);
    names->nodes.push_back(node.name);
  }
  state->nodes.allocatable = state->nodes.free;
  return ids;
}

Result<void> AddPod(const ReachRequest::Service& service, WorkloadId workload,
                    const ReachRequest::Pod& pod, const NodeIds& nodes, State* state, PodIds* ids,
                    Names* names, std::vector<std::string>* left_out) {
  NodeId node = kNone;
  if (!pod.node.empty()) {
    const auto found = nodes.find(pod.node);
    if (found == nodes.end()) {
      return DoesNotFit(
          "cluster_state.services.{}: pod `{}` runs on `{}`, which is not among the "
          "nodes that are known",
          service.name, pod.name, pod.node);
    }
    node = found->second;
    if (node == kNone) {
      left_out->push_back(
          fmt::format("pods of `{}` on node `{}` are left out: the scenario does "
                      "not know the node",
                      service.name, pod.node));
      return {};
    }
    state->nodes.allocatable[node] += state->catalog->workloads[workload].requests;
  }
  if (!ids->emplace(pod.name, state->pods.size()).second)
    return Invalid("cluster_state.services.{}: pod `{}` is given twice", service.name, pod.name);
  state->pods.workload.push_back(workload);
  state->pods.node.push_back(node);
  names->pods.push_back(pod.name);
  return {};
}

Result<void> CheckServices(const ReachWorld& world, const ReachRequest& request,
                           std::vector<std::string>* left_out) {
  size_t pods = 0;
  for (const ReachRequest::Service& service : request.services) {
    pods += service.pods.size();
    const auto& workloads = world.catalog->workloads;
    const bool known = std::any_of(workloads.begin(), workloads.end(),
                                   [&](const Workload& w) { return w.name == service.name; });
    if (!known && world.strangers == ReachStrangers::kIgnore) {
      left_out->push_back(
          fmt::format("service `{}` is left out: it is no workload of the scenario", service.name));
    }
    if (!known && world.strangers == ReachStrangers::kRefuse) {
      return DoesNotFit("cluster_state.services: `{}` is no workload of the scenario",
                        service.name);
    }
  }
  if (pods > kPodsMax) return DoesNotFit("{} pods; at most {} are served", pods, kPodsMax);
  const size_t rows = std::max(pods, world.catalog->workloads.size());
  if (rows * request.nodes.size() > kCellsMax)
    return DoesNotFit("{} pods on {} nodes are too many", pods, request.nodes.size());
  return {};
}

}  // namespace

KindId ReachWorld::KindOf(std::string_view node) const {
  const auto named = kind_of_node.find(node);
  if (named != kind_of_node.end()) return named->second;
  KindId found = kNone;
  size_t longest = 0;
  for (KindId kind = 0; kind < catalog->kind_count(); ++kind) {
    const std::string& name = catalog->kinds[kind].name;
    const bool begins =
        node.starts_with(name) && (node.size() == name.size() || node[name.size()] == '-');
    if (!begins || (found != kNone && name.size() <= longest)) continue;
    found = kind;
    longest = name.size();
  }
  return found;
}

void ReachMask::Reset(const State& state) {
  nodes_ = state.nodes.size();
  bits_.assign(static_cast<size_t>(state.pods.size()) * nodes_, false);
  const size_t cells = static_cast<size_t>(state.catalog->workload_count()) * nodes_;
  const auto cell = [&](PodId pod) {
    return static_cast<size_t>(state.pods.workload[pod]) * nodes_ + state.pods.node[pod];
  };
  hosts_begin_.assign(cells + 1, 0);
  int bound = 0;
  for (PodId pod = 0; pod < state.pods.size(); ++pod) {
    if (state.pods.node[pod] == kNone) continue;
    ++hosts_begin_[cell(pod) + 1];
    ++bound;
  }
  for (size_t i = 0; i < cells; ++i) hosts_begin_[i + 1] += hosts_begin_[i];
  hosts_.resize(bound);
  // From the last to the first, so that each cell's pods end up ascending and its begin in place.
  for (PodId pod = state.pods.size() - 1; pod >= 0; --pod) {
    if (state.pods.node[pod] != kNone) hosts_[--hosts_begin_[cell(pod) + 1]] = pod;
  }
  hosts_begin_.erase(hosts_begin_.begin());
  hosts_begin_.push_back(bound);
}

PodId ReachMask::PodFor(const State& state, const Move& move) const {
  CHECK_LT(move.to, state.nodes.size());
  const size_t cell = static_cast<size_t>(move.workload) * nodes_ + move.from;
  for (int32_t i = hosts_begin_[cell]; i < hosts_begin_[cell + 1]; ++i) {
    if (Allows(hosts_[i], move.to)) return hosts_[i];
  }
  return kNone;
}

Result<std::vector<std::string>> BuildReachState(const ReachWorld& world,
                                                 const ReachRequest& request, State* state,
                                                 ReachMask* mask) {
  std::vector<std::string> left_out;
  TRY(CheckServices(world, request, &left_out));
  state->catalog = world.catalog;
  state->calls = world.calls;
  state->network = world.network;
  state->nodes = {};
  state->pods = {};
  ++state->version;
  Names names;
  TRY_ASSIGN(const NodeIds nodes, AddNodes(world, request, state, &names, &left_out));
  PodIds pods;
  // In the order of the scenario, as REACH numbers them.
  for (WorkloadId w = 0; w < world.catalog->workload_count(); ++w) {
    for (const ReachRequest::Service& service : request.services) {
      if (service.name != world.catalog->workloads[w].name) continue;
      for (const ReachRequest::Pod& pod : service.pods) {
        TRY(AddPod(service, w, pod, nodes, state, &pods, &names, &left_out));
      }
    }
  }
  state->names = std::make_shared<const Names>(std::move(names));
  mask->Reset(*state);
  for (const ReachRequest::Deployable& deployable : request.deployable) {
    const auto pod = pods.find(deployable.pod);
    if (pod == pods.end()) continue;
    for (const std::string& name : deployable.nodes) {
      const auto node = nodes.find(name);
      if (node == nodes.end() || node->second == kNone) continue;
      mask->Allow(pod->second, node->second);
    }
  }
  return left_out;
}

}  // namespace rudderfish
