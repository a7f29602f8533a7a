// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

// The one shape in which a question reaches a network: written by task/, read by nn/, stored by
// learn/. It knows neither clusters nor layers.
//
// A batch holds `samples` questions of any sizes, one after another. Each question has
//
//   candidates  [C][candidate_width]  the alternatives; each names the workload and the two nodes
//                                     that it joins
//   nodes       [N][node_width]       entity table
//   workloads   [W][workload_width]   entity table
//   context     [context_width]       one row
//   placements  edges (node, workload, weight): how much of a workload runs on a node
//   calls       edges (caller, callee, weight) between workloads
//
// Indices are local to their question, so that questions are copied between batches with memcpy.
// X_begin has samples + 1 entries; question i owns rows [X_begin[i], X_begin[i + 1]).

namespace rudderfish {

struct GraphWidths {
  int candidate = 0;  // Floats a row; multiples of 16.
  int node = 0;
  int workload = 0;
  int context = 0;

  bool operator==(const GraphWidths&) const = default;
};

struct CandidateEnds {
  int32_t workload = 0;
  int32_t from = 0;
  int32_t to = 0;
};

struct GraphEdge {
  int32_t a = 0;  // placements: node; calls: caller workload.
  int32_t b = 0;  // placements: workload; calls: callee workload.
  float weight = 0;
};

// Resizing does not fill new elements with zeros: the code that resizes writes all of them.
template <class T>
struct UnfilledAllocator : std::allocator<T> {
  template <class U>
  struct rebind {
    using other = UnfilledAllocator<U>;
  };
  template <class U>
  void construct(U* at) {
    ::new (static_cast<void*>(at)) U;
  }
  template <class U, class... Args>
  void construct(U* at, Args&&... args) {
    ::new (static_cast<void*>(at)) U(std::forward<Args>(args)...);
  }
};
using FloatRows = std::vector<float, UnfilledAllocator<float>>;

struct GraphBatch {
  GraphWidths widths;
  int samples = 0;

  std::vector<int32_t> candidate_begin{0}, node_begin{0}, workload_begin{0}, placement_begin{0},
      call_begin{0};
  FloatRows candidates, nodes, workloads, context;
  std::vector<CandidateEnds> ends;  // One per candidate.
  std::vector<GraphEdge> placements, calls;

  // Empties the batch and keeps its memory: a batch that has once held the largest question
  // allocates no more.
  void Clear();

  // Appends question `index` of `other`. REQUIRES: equal widths.
  void Append(const GraphBatch& other, int index);

  int candidate_count(int sample) const {
    return candidate_begin[sample + 1] - candidate_begin[sample];
  }
};

}  // namespace rudderfish
