// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Numbers an operator sees, in Prometheus' text format 0.0.4 and by its conventions: names begin
// with rudderfish_, units are base units and stand last (_seconds, _bytes, _ratio), counters end in
// _total. Labels come from small fixed sets: never a pod or a request.
//
// A registry makes metrics once and owns them; the code that counts keeps the reference. Counting
// costs an atomic addition. Any thread may count, also while another reads.

namespace rudderfish {

using MetricLabels = std::vector<std::pair<std::string, std::string>>;

class Counter {
 public:
  // REQUIRES: by >= 0.
  void Add(double by = 1) { value_.fetch_add(by, std::memory_order_relaxed); }
  double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

class Gauge {
 public:
  void Set(double value) { value_.store(value, std::memory_order_relaxed); }
  void Add(double by) { value_.fetch_add(by, std::memory_order_relaxed); }
  double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

class Histogram {
 public:
  // REQUIRES: upper bounds ascend; a last one without end is added.
  explicit Histogram(std::span<const double> bounds);

  void Observe(double value);

  std::span<const double> bounds() const { return bounds_; }
  // Values at most bounds()[i] and above the one before; the last are above all.
  uint64_t count(size_t i) const { return counts_[i].load(std::memory_order_relaxed); }
  double sum() const { return sum_.load(std::memory_order_relaxed); }

 private:
  std::vector<double> bounds_;
  std::vector<std::atomic<uint64_t>> counts_;
  std::atomic<double> sum_{0};
};

// From a tenth of a millisecond to ten seconds, for requests and decisions.
std::span<const double> LatencyBounds();

// Asked again with the same name and labels, it gives the same metric. CHECKs what the conventions
// ask of names, and that one name has one kind, one help text and one set of label names.
class MetricRegistry {
 public:
  Counter& AddCounter(std::string_view name, std::string_view help, MetricLabels labels = {});
  Gauge& AddGauge(std::string_view name, std::string_view help, MetricLabels labels = {});
  Histogram& AddHistogram(std::string_view name, std::string_view help,
                          std::span<const double> bounds, MetricLabels labels = {});

  // rudderfish_build_info, which is 1: version and compiler stand in its labels.
  void AddBuild(std::string_view version);

  // All of it, by name.
  std::string Text() const;

 private:
  enum class Kind { kCounter, kGauge, kHistogram };

  // One of a family, whichever its kind is.
  struct Member {
    MetricLabels labels;
    std::unique_ptr<Counter> counter;
    std::unique_ptr<Gauge> gauge;
    std::unique_ptr<Histogram> histogram;
  };
  struct Family {
    Kind kind = Kind::kGauge;
    std::string help;
    std::vector<std::unique_ptr<Member>> members;
  };

  // REQUIRES: mutex_ is held.
  Member& Find(std::string_view name, std::string_view help, Kind kind, MetricLabels labels);
  static void Write(std::string_view name, const Member& member, std::string* text);

  mutable std::mutex mutex_;
  std::map<std::string, Family, std::less<>> families_;
};

inline constexpr std::string_view kMetricsContentType = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace rudderfish
