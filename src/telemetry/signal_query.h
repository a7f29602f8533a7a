// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/yaml.h"
#include "cluster/signals.h"

// Which signals to ask of Prometheus and how: any PromQL. In a configuration:
//
//   signals:
//     cpu_busy_ratio:
//       per: node                 # or cluster, workload, edge, region
//       query: 1 - avg by (instance) (rate(node_cpu_seconds_total{mode="idle"}[1m]))
//       label: instance           # which label says the node; by default its scope's name
//     request_rate:
//       per: edge
//       query: sum by (app, to) (rate(requests_total{app=~"{{workloads}}"}[1m]))
//       labels: [app, to]         # by default source_workload and destination_workload
//
//     memory_bytes:
//       per: workload
//       by: pod                   # series are of pods; by default of workloads
//       query: sum by (namespace, pod) (container_memory_working_set_bytes)
//
// One query that answers for all at once is best, and is what these are: a label says which node,
// workload, edge or region a series is of. A query that holds {{node}}, {{address}}, {{workload}},
// {{namespace}}, {{from}}, {{to}} or {{region}} is sent once for each. {{nodes}}, {{addresses}},
// {{workloads}} and {{namespaces}} stand for all names, as =~ takes them.

namespace rudderfish {

// What the names stand for at the moment.
struct SignalEntities {
  struct Node {
    std::string name;
    std::string address;  // Its InternalIP; may be empty.
  };
  struct Workload {
    std::string name;
    std::string name_space;
  };

  // Names a pod among all namespaces.
  static std::string PodKey(std::string_view name_space, std::string_view pod) {
    return std::string(name_space) + "/" + std::string(pod);
  }

  std::vector<Node> nodes;
  std::vector<Workload> workloads;
  std::map<std::string, std::string, std::less<>> owners;  // Of pods, by PodKey: workloads.
  std::vector<std::pair<std::string, std::string>> edges;  // From, to: names of workloads.
  std::vector<std::string> regions;
};

// What to make of several series of one entity.
enum class SignalDuplicates { kRefuse, kSum, kMean, kMax };

// What to make of the samples of a range.
enum class SignalReduce { kLast, kMean, kMax };

struct SignalQuery {
  std::string name;
  SignalScope scope = SignalScope::kNode;
  std::string query;
  std::vector<std::string> labels;  // Of an edge two, from and to; of the cluster none.
  // Of a workload: whether the label names one of its pods, whose owner the cluster knows. The
  // label `namespace` says where the pod is.
  bool by_pod = false;
  double scale = 1;  // The answer is multiplied by this.
  SignalDuplicates duplicates = SignalDuplicates::kRefuse;
  Duration range{0};  // More than 0: a range query that ends now.
  Duration step{0};   // Of the range.
  SignalReduce reduce = SignalReduce::kLast;
};

// One request that a query becomes.
struct ExpandedQuery {
  std::string text;
  std::string entity;       // Whose it is alone;
  bool is_batched = false;  // unless the labels of its answer say.
};

std::vector<ExpandedQuery> ExpandQuery(const SignalQuery& query, const SignalEntities& entities);

// All entities of the scope, by name.
std::vector<std::string> EntityNames(SignalScope scope, const SignalEntities& entities);

// The map under `signals:`.
Result<std::vector<SignalQuery>> ParseSignalQueries(const YamlNode& node);

// Queries that users of earlier systems need, ready made:
//
//   nodes       CPU, memory, disk, network and connections of nodes, from node-exporter; what the
//               DQN scheduler of a thesis and REACH's migrator look at
//   agents      the same of our own agents, where there is no node-exporter, and round trips from a
//               node to the others and to users
//   workloads   CPU, memory and traffic of workloads, from the kubelets' cAdvisor: graph-gym-hpa
//   istio       requests a second and latency between workloads, from Istio: graph-gym-hpa
//   mubench     latency of the services of that benchmark
//   opencost    prices of nodes by region, as routing takes them
//   kepler, scaphandre   watts of nodes
std::vector<std::string_view> SignalPresetNames();
Result<std::vector<SignalQuery>> SignalPreset(std::string_view name);

}  // namespace rudderfish
