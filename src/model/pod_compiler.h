// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "model/scheduling_rules.h"

// What follows from a class of pods alone, computed when it is first seen, and from class and node,
// computed when it is first asked about: pods that run are of many classes.

namespace rudderfish {

// What pods of the class take, and what they are to others, but for ports and claims. REQUIRES:
// made->pod is set, and `counts` knows the class by `id`.
void CompilePlaced(PodClassId id, NodeTable* nodes, PodCounts* counts, CompiledPod* made);

// The rest. REQUIRES: CompilePlaced has been.
void CompileForQuestions(NodeTable* nodes, PodCounts* counts, CompiledPod* made);

// One node has changed, these images of it among the rest (NodeTable::Replace). REQUIRES:
// CompileForQuestions has been.
void RecompileOnNode(const NodeTable& nodes, NodeId node, std::span<const std::string> images,
                     CompiledPod* made);

}  // namespace rudderfish
