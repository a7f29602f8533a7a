// SPDX-License-Identifier: Apache-2.0
#include "base/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace rudderfish {
namespace {

constexpr double kLatencyBounds[] = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                                     0.05,   0.1,     0.25,   0.5,   1,      2.5,   5,    10};

bool IsName(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
  return !text.empty() && letter(text[0]) && std::all_of(text.begin(), text.end(), [&](char c) {
    return letter(c) || (c >= '0' && c <= '9');
  });
}

std::string Escaped(std::string_view text) {
  std::string escaped;
  for (char c : text) {
    if (c == '\\' || c == '"') escaped += '\\';
    escaped += c == '\n' ? "\\n" : std::string(1, c);
  }
  return escaped;
}

// Help texts escape no quotes.
std::string EscapedHelp(std::string_view text) {
  std::string escaped;
  for (char c : text) {
    if (c == '\\') escaped += '\\';
    escaped += c == '\n' ? "\\n" : std::string(1, c);
  }
  return escaped;
}

std::string Number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

// {a="b",le="0.1"}, or nothing. An empty label is as none to Prometheus.
std::string LabelText(const MetricLabels& labels, std::string_view bound = {}) {
  std::string text;
  const auto add = [&](std::string_view name, std::string_view value) {
    text += fmt::format("{}{}=\"{}\"", text.empty() ? "{" : ",", name, Escaped(value));
  };
  for (const auto& [name, value] : labels) {
    if (!value.empty()) add(name, value);
  }
  if (!bound.empty()) add("le", bound);
  return text.empty() ? text : text + "}";
}

}  // namespace

std::span<const double> LatencyBounds() { return kLatencyBounds; }

Histogram::Histogram(std::span<const double> bounds)
    : bounds_(bounds.begin(), bounds.end()), counts_(bounds.size() + 1) {
  CHECK(std::is_sorted(bounds_.begin(), bounds_.end(), std::less_equal<>()));
}

void Histogram::Observe(double value) {
  const size_t i = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
  counts_[i].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

MetricRegistry::Member& MetricRegistry::Find(std::string_view name, std::string_view help,
                                             Kind kind, MetricLabels labels) {
  auto found = families_.find(name);
  if (found == families_.end()) {
    CHECK(IsName(name) && name.starts_with("rudderfish_"));
    CHECK_EQ(name.ends_with("_total"), kind == Kind::kCounter);
    CHECK(!help.empty());
    found = families_.emplace(name, Family{.kind = kind, .help = std::string(help)}).first;
  }
  Family& family = found->second;
  CHECK(family.kind == kind);
  CHECK_EQ(family.help, help);
  std::sort(labels.begin(), labels.end());
  for (const auto& member : family.members) {
    if (member->labels == labels) return *member;
  }
  const MetricLabels& like = family.members.empty() ? labels : family.members[0]->labels;
  CHECK_EQ(like.size(), labels.size());
  for (size_t i = 0; i < labels.size(); ++i) {
    CHECK(IsName(labels[i].first) && labels[i].first != "le");
    CHECK_EQ(labels[i].first, like[i].first);
  }
  family.members.push_back(std::make_unique<Member>());
  family.members.back()->labels = std::move(labels);
  return *family.members.back();
}

Counter& MetricRegistry::AddCounter(std::string_view name, std::string_view help,
                                    MetricLabels labels) {
  const std::lock_guard lock(mutex_);
  Member& member = Find(name, help, Kind::kCounter, std::move(labels));
  if (member.counter == nullptr) member.counter = std::make_unique<Counter>();
  return *member.counter;
}

Gauge& MetricRegistry::AddGauge(std::string_view name, std::string_view help, MetricLabels labels) {
  const std::lock_guard lock(mutex_);
  Member& member = Find(name, help, Kind::kGauge, std::move(labels));
  if (member.gauge == nullptr) member.gauge = std::make_unique<Gauge>();
  return *member.gauge;
}

Histogram& MetricRegistry::AddHistogram(std::string_view name, std::string_view help,
                                        std::span<const double> bounds, MetricLabels labels) {
  const std::lock_guard lock(mutex_);
  Member& member = Find(name, help, Kind::kHistogram, std::move(labels));
  if (member.histogram == nullptr) member.histogram = std::make_unique<Histogram>(bounds);
  return *member.histogram;
}

void MetricRegistry::AddBuild(std::string_view version) {
  AddGauge("rudderfish_build_info", "What is running; always 1.",
           {{"version", std::string(version)}, {"compiler", __VERSION__}})
      .Set(1);
}

void MetricRegistry::Write(std::string_view name, const Member& member, std::string* text) {
  const std::string labels = LabelText(member.labels);
  if (member.counter != nullptr) {
    *text += fmt::format("{}{} {}\n", name, labels, Number(member.counter->value()));
  } else if (member.gauge != nullptr) {
    *text += fmt::format("{}{} {}\n", name, labels, Number(member.gauge->value()));
  } else {
    const Histogram& histogram = *member.histogram;
    uint64_t below = 0;
    for (size_t i = 0; i < histogram.bounds().size(); ++i) {
      below += histogram.count(i);
      *text += fmt::format("{}_bucket{} {}\n", name,
                           LabelText(member.labels, Number(histogram.bounds()[i])), below);
    }
    below += histogram.count(histogram.bounds().size());
    *text += fmt::format("{0}_bucket{1} {2}\n{0}_sum{3} {4}\n{0}_count{3} {2}\n", name,
                         LabelText(member.labels, "+Inf"), below, labels, Number(histogram.sum()));
  }
}

std::string MetricRegistry::Text() const {
  constexpr std::string_view kKinds[] = {"counter", "gauge", "histogram"};
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const auto& [name, family] : families_) {
    text += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, EscapedHelp(family.help),
                        kKinds[static_cast<int>(family.kind)]);
    for (const auto& member : family.members) Write(name, *member, &text);
  }
  return text;
}

}  // namespace rudderfish
