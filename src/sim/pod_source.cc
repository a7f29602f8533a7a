// SPDX-License-Identifier: Apache-2.0
#include "sim/pod_source.h"

#include <algorithm>

namespace rudderfish {
namespace {

constexpr SimTime kLatest = 4 * kLongest;  // Beyond every end, and far from overflow.

}  // namespace

void PodSource::Start(const Rng& rng) {
  rng_ = rng;
  number_ = 0;
  at_ = stream_ != nullptr ? stream_->start : SimTime(0);
}

bool PodSource::Next(ArrivingPod* pod) {
  *pod = {};
  if (trace_ != nullptr && drawn_ > 0) return DrawFromTrace(pod);
  if (trace_ != nullptr) {
    if (number_ == static_cast<int64_t>(trace_->size())) return false;
    const TracePod& recorded = (*trace_)[number_++];
    *pod = {.at = recorded.at, .lifetime = recorded.lifetime, .workload = recorded.workload};
    return true;
  }
  if (stream_->count > 0 && number_ == stream_->count) return false;
  switch (stream_->shape) {
    case ArrivalStream::Shape::kSpaced:
      if (number_ > 0) at_ = std::min(at_ + stream_->interval.Draw(&rng_), kLatest);
      pod->at = at_;
      break;
    case ArrivalStream::Shape::kWaves:
      NextOfWaves(pod);
      break;
    case ArrivalStream::Shape::kRolling:
      NextOfRolling(pod);
      break;
  }
  pod->workload = DrawWorkload();
  if (stream_->lifetime) pod->lifetime = stream_->lifetime->Draw(&rng_);
  ++number_;
  return true;
}

// A pod, and apart from it a time since the one before.
bool PodSource::DrawFromTrace(ArrivingPod* pod) {
  if (number_ == drawn_) return false;
  const auto recorded = static_cast<uint32_t>(trace_->size());
  if (number_++ > 0 && recorded > 1) {
    const uint32_t gap = rng_.Below(recorded - 1);
    at_ = std::min(at_ + (*trace_)[gap + 1].at - (*trace_)[gap].at, kLatest);
  }
  const TracePod& drawn = (*trace_)[rng_.Below(recorded)];
  *pod = {.at = at_, .lifetime = drawn.lifetime, .workload = drawn.workload};
  return true;
}

void PodSource::NextOfWaves(ArrivingPod* pod) const {
  const int64_t wave = number_ / stream_->pods, in_wave = number_ % stream_->pods;
  const SimTime filling = (stream_->pods - 1) * stream_->interval.a;
  const SimTime start = stream_->start + wave * (filling + stream_->hold + stream_->pause);
  pod->at = start + in_wave * stream_->interval.a;
  pod->deleted_at = start + filling + stream_->hold;
}

// Pod i < pods arrives at i intervals; from pods intervals on, every hold + pause, pod j is
// deleted, and `hold` after it the pod comes that takes its place.
void PodSource::NextOfRolling(ArrivingPod* pod) const {
  const SimTime turn = stream_->hold + stream_->pause;
  const SimTime first_deleted = stream_->start + stream_->pods * stream_->interval.a;
  const int64_t replaces = number_ - stream_->pods;
  pod->at = replaces < 0 ? stream_->start + number_ * stream_->interval.a
                         : first_deleted + replaces * turn + stream_->hold;
  pod->deleted_at = first_deleted + number_ * turn;
}

WorkloadId PodSource::DrawWorkload() {
  const auto& workloads = stream_->workloads;
  if (stream_->weights.empty()) return workloads[number_ % workloads.size()];
  double sum = 0;
  for (const double weight : stream_->weights) sum += weight;
  double at = rng_.Uniform() * sum;
  for (size_t i = 0; i + 1 < workloads.size(); ++i) {
    at -= stream_->weights[i];
    if (at < 0) return workloads[i];
  }
  return workloads.back();
}

}  // namespace rudderfish
