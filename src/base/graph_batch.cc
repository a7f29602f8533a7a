// SPDX-License-Identifier: Apache-2.0
#include "base/graph_batch.h"

#include "base/check.h"

namespace rudderfish {
namespace {

template <class Rows>
void CopyRows(const Rows& source, const std::vector<int32_t>& begin, int index, int width,
              Rows* target, std::vector<int32_t>* target_begin) {
  const auto first = source.begin() + static_cast<int64_t>(begin[index]) * width;
  const auto last = source.begin() + static_cast<int64_t>(begin[index + 1]) * width;
  target->insert(target->end(), first, last);
  if (target_begin != nullptr)
    target_begin->push_back(target_begin->back() + begin[index + 1] - begin[index]);
}

}  // namespace

void GraphBatch::Clear() {
  samples = 0;
  for (auto* begin :
       {&candidate_begin, &node_begin, &workload_begin, &placement_begin, &call_begin})
    begin->resize(1);
  for (auto* rows : {&candidates, &nodes, &workloads, &context}) rows->clear();
  ends.clear();
  placements.clear();
  calls.clear();
}

void GraphBatch::Append(const GraphBatch& other, int index) {
  CHECK(widths == other.widths);
  CHECK_LT(index, other.samples);
  CopyRows(other.ends, other.candidate_begin, index, 1, &ends, nullptr);
  CopyRows(other.candidates, other.candidate_begin, index, widths.candidate, &candidates,
           &candidate_begin);
  CopyRows(other.nodes, other.node_begin, index, widths.node, &nodes, &node_begin);
  CopyRows(other.workloads, other.workload_begin, index, widths.workload, &workloads,
           &workload_begin);
  CopyRows(other.placements, other.placement_begin, index, 1, &placements, &placement_begin);
  CopyRows(other.calls, other.call_begin, index, 1, &calls, &call_begin);
  const auto row = other.context.begin() + static_cast<int64_t>(index) * widths.context;
  context.insert(context.end(), row, row + widths.context);
  ++samples;
}

}  // namespace rudderfish
