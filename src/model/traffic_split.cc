// SPDX-License-Identifier: Apache-2.0
#include "model/traffic_split.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"

namespace rudderfish {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

}  // namespace

TrafficSplitSolver::TrafficSplitSolver(std::shared_ptr<const RegionLaws> laws)
    : laws_(std::move(laws)) {
  const auto n = static_cast<size_t>(laws_->network().size());
  load_.resize(n);
  price_.resize(n);
  chunks_.resize(n);
  open_.resize(n);
  congestion_.resize(n);
  before_.resize(n * n);
}

void TrafficSplitSolver::Solve(const Problem& problem, std::span<double> shares) {
  const size_t n = load_.size();
  CHECK(problem.per_s.size() == n && problem.nodes.size() == n);
  CHECK(problem.pair_cost.size() == n * n && shares.size() == n * n);
  std::copy(shares.begin(), shares.end(), before_.begin());
  if (problem.standing_per_s.empty()) {
    std::fill(load_.begin(), load_.end(), 0);
  } else {
    std::copy(problem.standing_per_s.begin(), problem.standing_per_s.end(), load_.begin());
  }
  for (size_t origin = 0; origin < n; ++origin) {
    for (size_t to = 0; to < n; ++to) load_[to] += problem.per_s[origin] * shares[origin * n + to];
  }
  for (size_t to = 0; to < n; ++to) {
    if (problem.nodes[to] > 0) congestion_[to] = laws_->CongestionRow(problem.nodes[to]);
  }
  for (size_t origin = 0; origin < n; ++origin) {
    Place(problem, static_cast<int>(origin), std::span(before_).subspan(origin * n, n),
          shares.subspan(origin * n, n));
  }
}

void TrafficSplitSolver::Place(const Problem& problem, int origin, std::span<const double> before,
                               std::span<double> shares) {
  const int n = static_cast<int>(load_.size());
  const double per_s = problem.per_s[origin], chunk = per_s / kChunks;
  const double* pair = problem.pair_cost.data() + static_cast<size_t>(origin) * load_.size();
  const auto price_of = [&](int to) {
    // At the end of the chunk: a small region is not to be overrun by a part of a large one's.
    const double moved = (chunks_[to] + 0.5) / kChunks > before[to] ? problem.moving_cost : 0;
    return pair[to] + moved + congestion_[to].At(load_[to] + chunk);
  };
  int open = 0;
  for (int to = 0; to < n; ++to) {
    if (problem.nodes[to] > 0 && std::isfinite(pair[to])) open_[open++] = to;
  }
  if (open == 0) return;
  for (int to = 0; to < n; ++to) {
    load_[to] = std::max(0.0, load_[to] - per_s * shares[to]);
    chunks_[to] = 0;
  }
  for (int i = 0; i < open; ++i) price_[i] = price_of(open_[i]);
  for (int chunks = 0; chunks < kChunks;) {
    int best = 0;
    double least = price_[0], next = kInfinite;
    for (int i = 1; i < open; ++i) {
      const bool less = price_[i] < least;
      next = std::min(next, less ? least : price_[i]);
      best = less ? i : best;
      least = less ? price_[i] : least;
    }
    // It remains the cheapest until it costs more than the next one.
    const int to = open_[best];
    do {
      ++chunks_[to];
      load_[to] += chunk;
      price_[best] = price_of(to);
    } while (++chunks < kChunks && (price_[best] < next || open == 1));
  }
  for (int to = 0; to < n; ++to) shares[to] = static_cast<double>(chunks_[to]) / kChunks;
}

}  // namespace rudderfish
