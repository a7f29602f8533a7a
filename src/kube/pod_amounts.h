// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "cluster/scheduling.h"
#include "kube/fields.h"
#include "kube/quantity.h"

// What a pod requests, as kube-scheduler adds it up: containers and the sidecars beside them, or
// the most that init containers need in their order, whichever is more; what is given for the pod
// as a whole in place of that; overhead on top. Quantities are added exactly and rounded once. More
// than any node has counts as 2^50.

namespace rudderfish::kube {

using ResourceList = std::map<std::string, Quantity, std::less<>>;

// A map of names to quantities; names may have points.
Result<ResourceList> ReadResourceList(const Fields& object, std::string_view path);

// Of a node or a pod: what is not cpu, memory, ephemeral-storage or pods, is counted at all, and is
// not 0.
ScalarAmounts ScalarsOf(const ResourceList& list);

Result<PodAmounts> ReadPodAmounts(const Fields& pod);

}  // namespace rudderfish::kube
