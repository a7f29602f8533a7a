// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/scheduling_rules.h"

// What follows from a class of pods alone, and from class and node: computed once, when the class
// is first seen.

namespace rudderfish {

// Everything of `made` that pods on nodes do not change, ports and claims left out. REQUIRES:
// made->pod is set, and `counts` knows the class by `id`.
void CompilePod(PodClassId id, NodeTable* nodes, PodCounts* counts, CompiledPod* made);

// One node has changed (NodeTable::Replace).
void RecompileOnNode(const NodeTable& nodes, NodeId node, NodeTable::ImagesAre images,
                     CompiledPod* made);

}  // namespace rudderfish
