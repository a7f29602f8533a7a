// SPDX-License-Identifier: Apache-2.0
#include "model/traffic_split.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"

namespace rudderfish {

TrafficSplitSolver::TrafficSplitSolver(std::shared_ptr<const RegionLaws> laws)
    : laws_(std::move(laws)) {
  const auto n = static_cast<size_t>(laws_->network().size());
  load_.resize(n);
  price_.resize(n);
  chunks_.resize(n);
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
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (size_t origin = 0; origin < n; ++origin) {
      Place(problem, static_cast<int>(origin), std::span(before_).subspan(origin * n, n),
            shares.subspan(origin * n, n));
    }
  }
}

void TrafficSplitSolver::Place(const Problem& problem, int origin, std::span<const double> before,
                               std::span<double> shares) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  const int n = static_cast<int>(load_.size());
  const double chunk = problem.per_s[origin] / kChunks;
  const double* pair = problem.pair_cost.data() + static_cast<size_t>(origin) * load_.size();
  const auto price_of = [&](int to) {
    if (problem.nodes[to] <= 0 || !std::isfinite(pair[to])) return kInfinite;
    // At the end of the chunk: a small region is not to be overrun by a part of a large one's.
    const double moved = (chunks_[to] + 0.5) / kChunks > before[to] ? problem.moving_cost : 0;
    return pair[to] + moved + laws_->CongestionOf(problem.nodes[to], load_[to] + chunk);
  };
  double least = kInfinite;
  for (int to = 0; to < n; ++to) {
    load_[to] = std::max(0.0, load_[to] - problem.per_s[origin] * shares[to]);
    chunks_[to] = 0;
    price_[to] = price_of(to);
    least = std::min(least, price_[to]);
  }
  if (least == kInfinite) {
    for (int to = 0; to < n; ++to) load_[to] += problem.per_s[origin] * shares[to];
    return;
  }
  for (int i = 0; i < kChunks; ++i) {
    const auto best = std::min_element(price_.begin(), price_.end()) - price_.begin();
    ++chunks_[best];
    load_[best] += chunk;
    price_[best] = price_of(static_cast<int>(best));
  }
  for (int to = 0; to < n; ++to) shares[to] = static_cast<double>(chunks_[to]) / kChunks;
}

}  // namespace rudderfish
