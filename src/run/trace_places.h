// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cluster/application.h"
#include "kube/mirror.h"
#include "telemetry/spans.h"
#include "telemetry/traced_request.h"

// Which workload each source of spans is of and what its node computes by: by its pod, as the
// cluster knows it; by the pod's name, where the pod is gone; by the name of its service, where it
// tells no pod. Speeds are cpu_types of the application.

namespace rudderfish {

// Each cpu_type once, in the order of the kinds of node.
std::vector<std::string> CpuTypes(const Catalog& catalog);

// What is to be known of a cluster to tell the places of spans, as it was when this was made: a
// value that another thread may read while the Mirror goes on.
class TracePlaces {
 public:
  TracePlaces(std::shared_ptr<const Application> application, const kube::Mirror& mirror);

  // [source]; the names of the services that were found to be of no workload go to `unknown`.
  SpanPlaces Of(const SpanSet& set, std::vector<std::string>* unknown) const;

  const Application& application() const { return *application_; }

  // By which traces may call the application's workloads.
  const std::map<std::string, WorkloadId, std::less<>>& services() const { return services_; }

 private:
  struct PodPlace {
    WorkloadId workload = kNone;  // kNone: of no workload of the application.
    std::string node;
  };

  void AddName(const std::string& name, WorkloadId workload);
  void AddNames();
  void AddPods(const kube::Mirror& mirror);
  SpanPlace Find(const SpanSource& source) const;
  const PodPlace* PodOf(const SpanSource& source) const;
  WorkloadId WorkloadByPodName(const SpanSource& source) const;
  int SpeedOf(const std::string& node) const;

  std::shared_ptr<const Application> application_;
  std::map<std::string, WorkloadId, std::less<>> services_;
  std::set<std::string> ambiguous_, namespaces_;                  // Of the application's workloads.
  std::map<std::pair<std::string, std::string>, PodPlace> pods_;  // Of these namespaces.
  std::map<std::string, int> nodes_;                              // Speeds.
  std::vector<int> speeds_;                                       // [workload]
};

}  // namespace rudderfish
