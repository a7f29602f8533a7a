// SPDX-License-Identifier: Apache-2.0
#include "node/node_usage.h"

#include <algorithm>

namespace rudderfish {
namespace {

constexpr double kKib = 1024;

double KibPerS(uint64_t before, uint64_t now, double seconds) {
  return now < before ? 0 : static_cast<double>(now - before) / kKib / seconds;
}

}  // namespace

void UsageWindow::Add(Instant at, const NodeCounters& counters) {
  if (last_ && at > last_at_) {
    const double seconds = rudderfish::Seconds(at - last_at_);
    const int64_t ticks = counters.cpu.total_ticks - last_->cpu.total_ticks;
    const int64_t busy = counters.cpu.busy_ticks - last_->cpu.busy_ticks;
    const auto total = static_cast<double>(counters.memory.total_bytes);
    NodeUsage usage{
        .cpu_percent = 0,
        .memory_percent =
            100 * (total - static_cast<double>(counters.memory.available_bytes)) / total,
        .received_kib_per_s = KibPerS(last_->received_bytes, counters.received_bytes, seconds),
        .transmitted_kib_per_s =
            KibPerS(last_->transmitted_bytes, counters.transmitted_bytes, seconds),
        .read_kib_per_s = KibPerS(last_->read_bytes, counters.read_bytes, seconds),
        .written_kib_per_s = KibPerS(last_->written_bytes, counters.written_bytes, seconds)};
    if (ticks > 0) {
      usage.cpu_percent =
          std::clamp(100 * static_cast<double>(busy) / static_cast<double>(ticks), 0.0, 100.0);
    }
    samples_.push_back(usage);
    if (samples_.size() > kKept) samples_.pop_front();
  }
  last_ = counters;
  last_at_ = at;
}

std::optional<NodeUsage> UsageWindow::Mean(size_t samples) const {
  const size_t count = std::min(samples, samples_.size());
  if (count == 0) return std::nullopt;
  static constexpr double NodeUsage::*kFields[] = {
      &NodeUsage::cpu_percent,           &NodeUsage::memory_percent, &NodeUsage::received_kib_per_s,
      &NodeUsage::transmitted_kib_per_s, &NodeUsage::read_kib_per_s, &NodeUsage::written_kib_per_s};
  NodeUsage mean;
  for (const auto field : kFields) {
    for (size_t i = samples_.size() - count; i < samples_.size(); ++i)
      mean.*field += samples_[i].*field;
    mean.*field /= static_cast<double>(count);
  }
  return mean;
}

}  // namespace rudderfish
