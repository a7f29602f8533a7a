// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cluster/scheduling.h"

// How much a pod may say of where it wants to be: anybody who may make pods may make one that says
// a megabyte, and one thread places the pods of all.

namespace rudderfish::kube::internal {

// What is beyond a bound (cluster/scheduling.h) is named in `unmodelled`: the pod is not placed by
// us. What it is to others, once it has a node, is kept whatever its size.
void BoundTerms(PodClass* pod);

}  // namespace rudderfish::kube::internal
