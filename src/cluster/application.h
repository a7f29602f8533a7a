// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cluster/call_graph.h"
#include "cluster/catalog.h"
#include "cluster/state.h"

// What an API server does not know of an application: which of the cluster's workloads form it, who
// calls whom and how long that takes, which nodes lie where and what they cost. Read from
// application.yaml (scenario/application_file.h), joined with what the API server says by the live
// cluster. Immutable.

namespace rudderfish {

using Labels = std::vector<std::pair<std::string, std::string>>;  // Sorted by key, keys once.

// The value of a label, or nullptr.
const std::string* FindLabel(const Labels& labels, std::string_view key);

// As matchExpressions of Kubernetes: all of them must hold. An empty selector selects everything.
struct LabelRequirement {
  enum class Operator { kIn, kNotIn, kExists, kDoesNotExist };

  std::string key;
  Operator op = Operator::kExists;
  std::vector<std::string> values;  // Of kIn and kNotIn.

  bool operator==(const LabelRequirement&) const = default;
};

struct LabelSelector {
  std::vector<LabelRequirement> requirements;

  bool Matches(const Labels& labels) const;
  bool operator==(const LabelSelector&) const = default;
};

// Where the pods of a workload are found.
struct WorkloadObject {
  std::string kind;  // Deployment, StatefulSet, DaemonSet, ReplicaSet, Job; empty: outside.
  std::string object_namespace;
  std::string name;

  // A workload outside of the cluster, such as the users: it stands for one pod without requests on
  // a node of its own that takes no other.
  bool is_external() const { return kind.empty(); }
  bool operator==(const WorkloadObject&) const = default;
};

struct Application {
  std::string name;
  std::string law = "physical";  // LatencyLaw::Named accepts it.

  // Layers, kinds of node and workloads in the order of the file. Requests and replicas_max of
  // workloads are 0 and 1: those of the pods in the cluster take their place.
  std::shared_ptr<const Catalog> catalog;
  std::shared_ptr<const CallGraph> calls;
  Network network;  // As configured; one way.

  std::vector<LabelSelector> kind_nodes;  // [kind] A node is of the first kind that fits;
                                          // nodes that fit none are not seen.
  std::vector<NodeCosts> kind_costs;      // [kind]
  std::vector<WorkloadObject> objects;    // [workload]
  std::vector<LayerId> external_layers;   // [workload] kNone unless external.
  std::vector<double> warm_up_s;          // [workload] Until a new pod serves as an old one does.
};

// 16 hexadecimal digits of all that the Model's predictions rest on: its law, the calls, their
// execution times and data, the latencies. Not the rates, which differ from hour to hour.
std::string FingerprintOf(const Application& application);

}  // namespace rudderfish
