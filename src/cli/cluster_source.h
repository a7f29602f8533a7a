// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "kube/mirror.h"

// The cluster that --from names, as one mirror: dumps of `kubectl get -o json`.

namespace rudderfish {

struct ClusterSource {
  std::string name;  // For people: "nodes.json, pods.json".
  std::unique_ptr<Clock> clock;
  std::unique_ptr<kube::Mirror> mirror;
  std::vector<std::string> missing;  // Resources that were not to be seen, for people.
};

// The options that OpenCluster reads.
const std::vector<OptionSpec>& ClusterOptions();

// Operands are further dumps, so that --from may be followed by several.
Result<ClusterSource> OpenCluster(const Arguments& arguments);

}  // namespace rudderfish
