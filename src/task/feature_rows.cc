// SPDX-License-Identifier: Apache-2.0
#include "task/feature_rows.h"

namespace rudderfish {
namespace {

void AppendEdges(const QuestionSummary& q, GraphBatch* batch) {
  const auto hosts = q.ends().hosts();
  const size_t at = batch->placements.size();
  batch->placements.resize(at + hosts.size());
  GraphEdge* edge = batch->placements.data() + at;
  for (const MoveEnds::End& host : hosts) {
    const float share = q.workload(host.workload).share;
    *edge++ = {host.row, host.workload, static_cast<float>(host.pods) * share};
  }
  batch->calls.insert(batch->calls.end(), q.calls().begin(), q.calls().end());
}

}  // namespace

float* AddRows(int count, int width, FloatRows* rows) {
  const size_t at = rows->size();
  rows->resize(at + static_cast<size_t>(count) * width);
  return rows->data() + at;
}

CandidateEnds* AddEnds(int count, GraphBatch* batch) {
  const size_t at = batch->ends.size();
  batch->ends.resize(at + count);
  return batch->ends.data() + at;
}

void CloseSample(const QuestionSummary& q, GraphBatch* batch) {
  AppendEdges(q, batch);
  batch->candidate_begin.push_back(static_cast<int32_t>(batch->ends.size()));
  batch->node_begin.push_back(batch->node_begin.back() + q.node_count());
  batch->workload_begin.push_back(batch->workload_begin.back() + q.workload_count());
  batch->placement_begin.push_back(static_cast<int32_t>(batch->placements.size()));
  batch->call_begin.push_back(static_cast<int32_t>(batch->calls.size()));
  ++batch->samples;
}

void CloseWithoutTables(GraphBatch* batch) {
  batch->candidate_begin.push_back(static_cast<int32_t>(batch->ends.size()));
  for (auto* begin :
       {&batch->node_begin, &batch->workload_begin, &batch->placement_begin, &batch->call_begin}) {
    begin->push_back(begin->back());
  }
  ++batch->samples;
}

}  // namespace rudderfish
