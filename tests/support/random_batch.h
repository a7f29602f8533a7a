// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include "base/graph_batch.h"
#include "base/rng.h"
#include "nn/kernel.h"

// Random questions and the list of instruction sets, for the tests and benchmarks of nn/.

namespace rudderfish::nn {

struct QuestionSize {
  int candidates = 0;
  int nodes = 0;
  int workloads = 0;
  int placements = 0;
  int calls = 0;
};

inline void AppendRandomQuestion(const QuestionSize& size, Rng* rng, GraphBatch* batch) {
  const auto fill = [rng](int floats, FloatRows* values) {
    for (int i = 0; i < floats; ++i) values->push_back(static_cast<float>(rng->Normal()));
  };
  const auto pick = [rng](int n) {
    return n == 0 ? -1 : static_cast<int32_t>(rng->Below(static_cast<uint32_t>(n)));
  };
  fill(size.candidates * batch->widths.candidate, &batch->candidates);
  fill(size.nodes * batch->widths.node, &batch->nodes);
  fill(size.workloads * batch->widths.workload, &batch->workloads);
  fill(batch->widths.context, &batch->context);
  for (int i = 0; i < size.candidates; ++i) {
    batch->ends.push_back(
        {.workload = pick(size.workloads), .from = pick(size.nodes), .to = pick(size.nodes)});
  }
  for (int i = 0; i < size.placements; ++i) {
    batch->placements.push_back({pick(size.nodes), pick(size.workloads), rng->UniformFloat()});
  }
  for (int i = 0; i < size.calls; ++i) {
    batch->calls.push_back({pick(size.workloads), pick(size.workloads), rng->UniformFloat()});
  }
  ++batch->samples;
  batch->candidate_begin.push_back(batch->candidate_begin.back() + size.candidates);
  batch->node_begin.push_back(batch->node_begin.back() + size.nodes);
  batch->workload_begin.push_back(batch->workload_begin.back() + size.workloads);
  batch->placement_begin.push_back(batch->placement_begin.back() + size.placements);
  batch->call_begin.push_back(batch->call_begin.back() + size.calls);
}

// As many questions as sizes.
inline GraphBatch RandomBatch(const GraphWidths& widths, const std::vector<QuestionSize>& sizes,
                              uint64_t seed) {
  Rng rng(seed);
  GraphBatch batch;
  batch.widths = widths;
  for (const QuestionSize& size : sizes) AppendRandomQuestion(size, &rng, &batch);
  return batch;
}

// Questions as a small cluster asks them: about `candidates` alternatives on 7 nodes and 5
// workloads.
inline GraphBatch SmallClusterBatch(int samples, int candidates, uint64_t seed) {
  Rng rng(seed);
  GraphBatch batch;
  batch.widths = {.candidate = 48, .node = 32, .workload = 32, .context = 96};
  for (int i = 0; i < samples; ++i) {
    const int more = rng.Between(-3, 3);
    AppendRandomQuestion({std::max(0, candidates + more), 7, 5, 12, 4}, &rng, &batch);
  }
  return batch;
}

inline std::vector<Isa> HostIsas() {
  std::vector<Isa> isas;
  for (const Isa isa : {Isa::kPortable, Isa::kAvx2, Isa::kAvx512}) {
    if (IsSupported(isa)) isas.push_back(isa);
  }
  return isas;
}

}  // namespace rudderfish::nn
