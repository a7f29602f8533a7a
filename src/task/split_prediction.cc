// SPDX-License-Identifier: Apache-2.0
#include "task/split_prediction.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace rudderfish {
namespace {

int ServingNodes(const RoutingQuestion& question, int region) {
  const RegionSight& seen = question.regions[static_cast<size_t>(region)];
  if (!seen.reachable) return 0;
  return std::min(seen.ready_nodes(), question.laws->queue().nodes_max());
}

// Of a node, by how many of each price serve.
double NodePerHour(const RegionSight& seen) {
  const int ready = seen.ready_nodes();
  if (ready == 0) return seen.node_per_h[kOnDemand];
  return (seen.ready[kOnDemand] * seen.node_per_h[kOnDemand] +
          seen.ready[kSpot] * seen.node_per_h[kSpot]) /
         ready;
}

double LoadOf(const RoutingQuestion& question, std::span<const double> shares, int to) {
  const RegionNetwork& network = question.laws->network();
  double load = 0;
  for (int from = 0; from < network.size(); ++from) {
    load += question.regions[static_cast<size_t>(from)].demand_per_s * shares[network.At(from, to)];
  }
  return load;
}

// What a request costs but for the queue.
void AddServing(const RoutingQuestion& question, int from, int to, double requests,
                SplitPrediction* sum) {
  const RegionLaws& laws = *question.laws;
  const RegionSight& seen = question.regions[static_cast<size_t>(to)];
  const double node_per_h = NodePerHour(seen);
  const double nodes = laws.ServingCost(to, kUnitUse, node_per_h, 0);
  const double both = laws.ServingCost(to, kUnitUse, node_per_h, seen.carbon_g_per_kwh);
  sum->parts[SplitPrediction::kNodes] += requests * nodes;
  sum->parts[SplitPrediction::kCarbon] += requests * (both - nodes);
  sum->parts[SplitPrediction::kEgress] +=
      requests * laws.network().EgressOf(to, from) / laws.unit();
}

void AddPair(const RoutingQuestion& question, int from, int to, double requests,
             const QueueInterval& queue, SplitPrediction* sum) {
  const RegionNetwork& network = question.laws->network();
  const RegionService& service = network.service;
  AddServing(question, from, to, requests, sum);
  const double trip_s = network.TripS(from, to), left_s = service.deadline_s - trip_s;
  const double served = std::exp(-service.pod_per_s * std::max(0.0, left_s));
  const double late = queue.LateShare(service.pod_per_s, left_s, served);
  // Who gives up has waited as long as patience lasts, unless nothing was there to wait for.
  const double gave_up_s = queue.spare_per_s > 0 ? service.patience_s : 0;
  const double queue_s = (1 - queue.gave_up) * queue.mean_wait_s + queue.gave_up * gave_up_s;
  sum->late_share += requests * late;
  sum->response_s += requests * (trip_s + queue_s + (1 - queue.gave_up) / service.pod_per_s);
  sum->queue_s += requests * queue_s;
}

double WaitCost(const RoutingObjective& objective, const SplitPrediction& of) {
  return of.response_s * objective.wait_per_s + of.queue_s * objective.queue_per_s;
}

}  // namespace

double SplitPrediction::objective() const {
  return std::accumulate(parts.begin(), parts.end(), 0.0);
}

std::string_view SplitPartName(int part) {
  constexpr std::string_view kNames[] = {"nodes", "egress", "carbon", "late", "wait"};
  return kNames[part];
}

SplitPrediction PredictSplit(const RoutingQuestion& question, std::span<const double> shares,
                             int origin) {
  const RegionNetwork& network = question.laws->network();
  SplitPrediction sum;
  double requests = 0;
  for (int to = 0; to < network.size(); ++to) {
    double backlog = question.regions[static_cast<size_t>(to)].backlog;
    const QueueInterval queue =
        RunQueue(*question.laws, ServingNodes(question, to), LoadOf(question, shares, to),
                 question.interval_s, &backlog);
    for (int from = 0; from < network.size(); ++from) {
      const double flow =
          question.regions[static_cast<size_t>(from)].demand_per_s * shares[network.At(from, to)];
      if (flow <= 0 || (origin >= 0 && from != origin)) continue;
      AddPair(question, from, to, flow, queue, &sum);
      requests += flow;
    }
  }
  if (requests <= 0) return {};
  for (double& part : sum.parts) part /= requests;
  sum.late_share /= requests;
  sum.response_s /= requests;
  sum.queue_s /= requests;
  sum.parts[SplitPrediction::kLate] = sum.late_share * network.objective.late;
  sum.parts[SplitPrediction::kWait] = WaitCost(network.objective, sum);
  return sum;
}

SplitPrediction PredictOneMore(const RoutingQuestion& question, std::span<const double> shares,
                               int origin, int to) {
  const RegionNetwork& network = question.laws->network();
  const int nodes = ServingNodes(question, to);
  SplitPrediction one;
  if (nodes == 0) {
    one.parts[SplitPrediction::kLate] = std::numeric_limits<double>::infinity();
    one.late_share = 1;
    return one;
  }
  const double load = LoadOf(question, shares, to);
  double backlog = question.regions[static_cast<size_t>(to)].backlog;
  const QueueInterval queue = RunQueue(*question.laws, nodes, load, question.interval_s, &backlog);
  AddPair(question, origin, to, 1, queue, &one);
  // What it makes others wait and be late is not told apart: it counts as waiting.
  one.parts[SplitPrediction::kLate] = one.late_share * network.objective.late;
  one.parts[SplitPrediction::kWait] =
      WaitCost(network.objective, one) + question.laws->CongestionOf(nodes, load);
  return one;
}

}  // namespace rudderfish
