// SPDX-License-Identifier: Apache-2.0
#include "telemetry/call_order.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "telemetry/spans.h"

namespace rudderfish {
namespace {

constexpr size_t kGapsKept = 101;
// Two calls overlap if it is more than what clocks and their resolution make of a hand-over.
constexpr int64_t kTouchNs = 2'000;
constexpr double kTouchShare = 0.05;  // Of the shorter one.
constexpr double kRarely = 0.1;

double Median(std::vector<float> values) {
  if (values.empty()) return std::numeric_limits<double>::infinity();
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

// Of a and b, in that order.
struct CallOrder::Relation {
  int64_t both = 0;
  double overlaps = 0, before = 0;  // Shares of both; a before b.
  double gap_ms = 0;                // Median, where they do not overlap.

  bool IsParallel() const { return both > 0 && overlaps >= 0.5; }
  // Of few times no more is believed than they can show (Laplace's rule of succession).
  double Certainty() const {
    if (both == 0) return 1;
    const auto n = static_cast<double>(both);
    return (std::max(overlaps, 1 - overlaps) * n + 1) / (n + 2);
  }
};

void CallOrder::Add(std::span<const Seen> calls) {
  if (calls.empty()) return;
  std::vector<Seen> once;
  for (const Seen& one : calls) {
    const bool is_new = std::none_of(once.begin(), once.end(),
                                     [&](const Seen& other) { return other.key == one.key; });
    if (is_new) once.push_back(one);
  }
  int64_t begin = once[0].start_ns;
  for (const Seen& one : once) begin = std::min(begin, one.start_ns);
  for (size_t i = 0; i < once.size(); ++i) {
    auto& [sum, count] = ends_ms_[once[i].key];
    sum += static_cast<double>(once[i].end_ns - begin) / kNsPerMs;
    ++count;
    for (size_t j = i + 1; j < once.size(); ++j) {
      const Seen *a = &once[i], *b = &once[j];
      if (a->key > b->key) std::swap(a, b);
      Pair& pair = pairs_[{a->key, b->key}];
      ++pair.both;
      const int64_t shared = std::min(a->end_ns, b->end_ns) - std::max(a->start_ns, b->start_ns);
      const int64_t shorter = std::min(a->end_ns - a->start_ns, b->end_ns - b->start_ns);
      const auto touch =
          std::max(kTouchNs, static_cast<int64_t>(kTouchShare * static_cast<double>(shorter)));
      if (shared > touch || (shared > 0 && shared == shorter)) {
        ++pair.overlaps;
      } else {
        pair.first_before += a->start_ns < b->start_ns;
        if (pair.gaps_ms.size() < kGapsKept)
          pair.gaps_ms.push_back(static_cast<float>(static_cast<double>(-shared) / kNsPerMs));
      }
    }
  }
}

void CallOrder::Merge(const CallOrder& other) {
  for (const auto& [keys, pair] : other.pairs_) {
    Pair& mine = pairs_[keys];
    mine.both += pair.both;
    mine.overlaps += pair.overlaps;
    mine.first_before += pair.first_before;
    mine.gaps_ms.insert(mine.gaps_ms.end(), pair.gaps_ms.begin(), pair.gaps_ms.end());
    if (mine.gaps_ms.size() > kGapsKept) mine.gaps_ms.resize(kGapsKept);
  }
  for (const auto& [key, end] : other.ends_ms_) {
    ends_ms_[key].first += end.first;
    ends_ms_[key].second += end.second;
  }
}

void CallOrder::Forget(int key) {
  std::erase_if(pairs_, [&](const auto& pair) {
    return pair.first.first == key || pair.first.second == key;
  });
  ends_ms_.erase(key);
}

CallOrder::Relation CallOrder::Between(int a, int b) const {
  const auto at = pairs_.find(std::minmax(a, b));
  if (at == pairs_.end()) return {};
  const Pair& pair = at->second;
  const auto both = static_cast<double>(pair.both);
  const auto apart = static_cast<double>(pair.both - pair.overlaps);
  const auto first = static_cast<double>(pair.first_before);
  return {.both = pair.both,
          .overlaps = static_cast<double>(pair.overlaps) / both,
          .before = (a < b ? first : apart - first) / both,
          .gap_ms = Median(pair.gaps_ms)};
}

double CallOrder::EndMs(int key) const {
  const auto at = ends_ms_.find(key);
  return at == ends_ms_.end() ? 0 : at->second.first / static_cast<double>(at->second.second);
}

// What ended last before `key` began.
std::optional<int> CallOrder::RightBefore(int key, const std::vector<int>& keys) const {
  std::optional<int> best;
  double best_gap = std::numeric_limits<double>::infinity();
  for (const int other : keys) {
    if (other == key) continue;
    const Relation relation = Between(other, key);
    const bool is_before =
        relation.both > 0 && relation.overlaps <= kRarely && relation.before >= 1 - 2 * kRarely;
    if (is_before && relation.gap_ms < best_gap) best = other, best_gap = relation.gap_ms;
  }
  return best;
}

// Groups that never overlap are one: calls of which each request makes one or the other.
void CallOrder::Join(std::vector<std::vector<int>>* groups) const {
  const auto are_apart = [&](const std::vector<int>& one, const std::vector<int>& other) {
    for (const int a : one) {
      for (const int b : other) {
        if (Between(a, b).overlaps > kRarely) return false;
      }
    }
    return true;
  };
  for (size_t i = 0; i < groups->size(); ++i) {
    for (size_t j = groups->size(); j-- > i + 1;) {
      std::vector<int>& one = (*groups)[i];
      if (!are_apart(one, (*groups)[j])) continue;
      for (const int key : (*groups)[j]) {
        const auto later = std::find_if(one.begin(), one.end(), [&](int other) {
          const Relation relation = Between(key, other);
          return relation.both > 0 ? relation.before > 0.5 : EndMs(key) < EndMs(other);
        });
        one.insert(later, key);
      }
      groups->erase(groups->begin() + static_cast<std::ptrdiff_t>(j));
    }
  }
}

// Chains from their ends: what ends last first.
OrderedGroups CallOrder::Groups(const std::vector<int>& keys) const {
  OrderedGroups ordered;
  for (const int key : keys) {
    for (const int other : keys) {
      if (other != key)
        ordered.certainty = std::min(ordered.certainty, Between(key, other).Certainty());
    }
  }
  std::vector<int> open = keys;
  while (!open.empty()) {
    const int last = *std::max_element(open.begin(), open.end(), [&](int a, int b) {
      return std::make_pair(EndMs(a), a) < std::make_pair(EndMs(b), b);
    });
    // Among all, not only those that are open: what began with another chain did not wait for this.
    std::vector<int> chain;
    for (std::optional<int> next = last; next && std::erase(open, *next) > 0;) {
      chain.push_back(*next);
      next = RightBefore(*next, keys);
    }
    std::reverse(chain.begin(), chain.end());
    ordered.groups.push_back(std::move(chain));
  }
  Join(&ordered.groups);
  return ordered;
}

}  // namespace rudderfish
