// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/yaml.h"
#include "cluster/call_graph.h"
#include "cluster/catalog.h"
#include "scenario/name_index.h"
#include "scenario/scenario.h"

// The `patterns:` part of a scenario file. A pattern is a map of endpoints, an endpoint a client, a
// rate, a target and what it calls:
//
//   calls:       [a, b]        one after another
//   parallel:    [a, b]        at once, the slowest counts;
//                              `- calls: [c, d]` is a branch of several
//
// A call is the name of a workload, alone or with `data`, `execution` and calls of its own.

namespace rudderfish {

struct PatternContext {
  const Catalog* catalog;
  const NameIndex* workloads;
  std::span<const WorkloadStart> starts;  // [workload]
  std::span<const std::vector<double>>
      executions;  // [workload][kind] defaults; empty if the workload has none.
};

// Time per kind of node from `{"0": 7ms, "1": 10.5ms}` by cpu_type, or from one value for all.
Result<std::vector<double>> ParseExecution(const YamlNode& node, const Catalog& catalog,
                                           WorkloadId workload, const WorkloadStart& start);

// Whether pods of the workload can come to run on nodes of the kind, so that it needs an execution
// time there.
bool CanRunOn(const Catalog& catalog, WorkloadId workload, const WorkloadStart& start, KindId kind);

Result<std::shared_ptr<const CallGraph>> ParsePattern(std::string name, const YamlNode& node,
                                                      const PatternContext& context);

}  // namespace rudderfish
