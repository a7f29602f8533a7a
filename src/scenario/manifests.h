// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cluster/application.h"

// An application as objects of Kubernetes that play it: each workload is pods of one small image
// (testbed/native/app.c) that execute and call as the call graph says, so that what the Model
// predicts can be measured. Text in, text out; any thread.

namespace rudderfish {

// What an application does not say of its workloads.
struct PlayedWorkload {
  int replicas = 1;
  Resources requests{.cpu_millis = 100, .memory_bytes = 64 << 20};  // Of one pod.

  bool operator==(const PlayedWorkload&) const = default;
};

struct ManifestPlan {
  std::vector<PlayedWorkload> workloads;  // [workload]; those that are external are not read.
  std::string image = "localhost/app:1";
  int start_ms = 0;         // How long a pod takes to become ready.
  int drain_s = 5;          // How long it serves after SIGTERM; 0: it ends at once.
  bool burns = false;       // Executing takes a processor instead of time only.
  std::string otlp;         // Where pods report spans, "http://jaeger:4318"; empty: nowhere.
  double traced_share = 1;  // Of requests that come without a trace of their own.
  // Beginnings of the names of nodes, and what kind they are. A pod learns the name of its node and
  // nothing of its labels.
  std::vector<std::pair<std::string, KindId>> node_names;
};

// The host names that each kind's selector lists, or the value that it asks of another label and
// "-": on a testbed of layers nodes are called so. kInvalidArgument, with the advice to name them,
// where that says nothing or makes no difference.
Result<std::vector<std::pair<std::string, KindId>>> NodeNamesOf(const Application& application);

// The calls as the image reads them.
std::string CallsText(const Application& application, const ManifestPlan& plan);

// Documents of YAML, in the order in which they are to be applied. kInvalidArgument if a workload
// is of a kind that cannot be written, or the workloads are in several namespaces.
Result<std::string> ManifestsText(const Application& application, const ManifestPlan& plan);

}  // namespace rudderfish
