// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cluster/scheduling.h"

// How much of a pod is heeded: anybody who may make pods may make one that says a megabyte of where
// it wants to be, and one thread places the pods of all.

namespace rudderfish::kube::internal {

// What is beyond a bound (cluster/scheduling.h) is named in `unmodelled`, so that nobody places the
// pod by it, and left out. Where that is what it forbids others, or its ports, its node takes
// nobody else (PodClass::holds_unknown).
void BoundTerms(PodClass* pod);

}  // namespace rudderfish::kube::internal
