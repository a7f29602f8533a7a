// SPDX-License-Identifier: Apache-2.0
#include "policy/beam.h"

#include <algorithm>
#include <limits>
#include <utility>


namespace rudderfish {
namespace {

constexpr int kFirstWidth = 8;
constexpr int kWidening = 8;
constexpr double kNoBar = std::numeric_limits<double>::infinity();
// Plans nearer each other than this are equal by kind.
constexpr double kImprovementMs = 1e-6;

}  // namespace

void SeenSet::Clear() {
  if (slots_.empty()) slots_.resize(1024);
  std::fill(slots_.begin(), slots_.end(), 0);
  used_ = 0;
}

bool SeenSet::Insert(uint64_t hash) {
  hash += hash == 0;  // 0 marks a free slot.
  const size_t mask = slots_.size() - 1;
  size_t slot = hash & mask;
  for (; slots_[slot] != 0; slot = (slot + 1) & mask) {
    if (slots_[slot] == hash) return false;
  }
  slots_[slot] = hash;
  if (2 * ++used_ > slots_.size()) Grow();
  return true;
}

void SeenSet::Grow() {
  std::vector<uint64_t> old(2 * slots_.size());
  old.swap(slots_);
  used_ = 0;
  for (uint64_t hash : old) {
    if (hash != 0) Insert(hash);
  }
}

void Beam::Search(const Evaluator& model, const Task& task, const Question& question, const SearchBudget& budget,
                  const Clock& clock) {
  clock_ = &clock;
  budget_ = budget;
  deadline_ = budget.time.count() > 0 ? clock.Now() + budget.time : Instant::max();
  plan_count_ = 0;
  plans_.resize(kFinalists + 1);
  evaluations_ = 0;
  const int depth_max = std::max(0, task.max_steps() - question.step);
  step_costs_ms_.assign(1, 0);
  for (int i = 0; i < depth_max; ++i) {
    step_costs_ms_.push_back(step_costs_ms_.back() + task.StepCost({question.step + i}));
  }
  cursor_.Reset(model);
  exhaustive_ = FewMoves();
  for (int width = std::min(kFirstWidth, budget.width);;) {
    const int64_t before = evaluations_;
    const Instant started = budget.time.count() > 0 ? clock.Now() : Instant{};
    if (!RunPass(width, depth_max) || width == budget.width || !filled_) return;
    // What is left buys this much more width than the pass before had.
    double affordable = static_cast<double>(budget.evaluations - evaluations_) / (evaluations_ - before);
    if (budget.time.count() > 0) {
      const Instant now = clock.Now();
      affordable = std::min(affordable, Seconds(deadline_ - now) / std::max(1e-9, Seconds(now - started)));
    }
    if (affordable < 2) return;
    width = static_cast<int>(std::min<double>(budget.width, width * std::min<double>(kWidening, affordable)));
  }
}

bool Beam::FewMoves() const {
  int64_t moves = 0;
  for (WorkloadId w : cursor_.movable()) {
    int64_t hosts = 0, targets = 0;
    ForEachNode(cursor_.Hosts(w), cursor_.word_count(), [&](NodeId) { ++hosts; });
    ForEachNode(cursor_.Targets(w), cursor_.word_count(), [&](NodeId) { ++targets; });
    moves += hosts * targets;
  }
  return moves <= kExhaustiveMoves;
}

bool Beam::RunPass(int width, int depth_max) {
  width_ = width;
  filled_ = false;
  finalist_count_ = 0;
  tree_.assign(1, {.latency_ms = cursor_.by_kind().LatencyMs()});
  at_ = 0;
  level_begin_ = 0;
  level_end_ = 1;
  seen_.Clear();
  seen_.Insert(cursor_.hash());
  double best_ms = tree_[0].latency_ms;
  bool within_budget = true;
  int patience = budget_.patience;
  for (int depth = 1; depth <= depth_max && level_begin_ < level_end_ && within_budget && patience > 0; ++depth) {
    offers_.clear();
    order_ = 0;
    bar_ms_ = kNoBar;
    for (int32_t node = level_begin_; node < level_end_ && within_budget; ++node) {
      Expand(node);
      within_budget = !OutOfBudget();
    }
    Select();
    --patience;
    for (int32_t node = level_begin_; node < level_end_; ++node) {
      const double cost_ms = tree_[node].latency_ms + step_costs_ms_[depth];
      NoteFinalist(cost_ms, node);
      if (cost_ms >= best_ms - kImprovementMs) continue;
      best_ms = cost_ms;
      patience = budget_.patience;
    }
  }
  GoTo(0);
  for (int i = 0; i < finalist_count_; ++i) {
    Plan& plan = plans_[plan_count_];
    plan.cost_ms = finalists_[i].cost_ms;
    plan.moves.clear();
    for (int32_t node = finalists_[i].node; node != 0; node = tree_[node].parent) plan.moves.push_back(tree_[node].move);
    std::reverse(plan.moves.begin(), plan.moves.end());
    const auto end = plans_.begin() + plan_count_;
    if (std::any_of(plans_.begin(), end, [&](const Plan& other) { return other.moves == plan.moves; })) continue;
    plan_count_ = std::min(plan_count_ + 1, kFinalists);
    for (auto at = end; at != plans_.begin() && at->cost_ms < (at - 1)->cost_ms; --at) std::swap(*at, *(at - 1));
  }
  return within_budget;
}

bool Beam::OutOfBudget() {
  if (evaluations_ >= budget_.evaluations) return true;
  return budget_.time.count() > 0 && clock_->Now() >= deadline_;
}

void Beam::Expand(int32_t parent) {
  GoTo(parent);
  const double latency_ms = cursor_.by_kind().LatencyMs();
  if (exhaustive_) {
    ExpandAll(parent, latency_ms);
  } else {
    ExpandRepresentatives(parent, latency_ms);
  }
}

// A parent stands before its children in the tree, so of two nodes the later one is never above the other.
void Beam::GoTo(int32_t node) {
  path_.clear();
  int32_t from = at_, to = node;
  while (from != to) {
    if (from > to) {
      cursor_.Revert(tree_[from].move);
      from = tree_[from].parent;
    } else {
      path_.push_back(to);
      to = tree_[to].parent;
    }
  }
  for (; !path_.empty(); path_.pop_back()) cursor_.Apply(tree_[path_.back()].move);
  at_ = node;
}

void Beam::ExpandAll(int32_t parent, double latency_ms) {
  const int words = cursor_.word_count();
  for (WorkloadId w : cursor_.movable()) {
    for (KindId i = 0; i < cursor_.kind_count(); ++i) {
      if (cursor_.by_kind().count(w, i) == 0) continue;
      const float* gains = cursor_.by_kind().GainsFrom(w, i);
      ForEachNode(cursor_.Hosts(w), cursor_.OfKind(i), words, [&](NodeId from) {
        ForEachNode(cursor_.Targets(w), words, [&](NodeId to) {
          if (from != to) Consider(parent, {w, from, to}, latency_ms - gains[cursor_.kind(to)]);
        });
      });
    }
  }
}

void Beam::ExpandRepresentatives(int32_t parent, double latency_ms) {
  const int words = cursor_.word_count();
  kind_moves_.clear();
  for (WorkloadId w : cursor_.movable()) {
    for (KindId i = 0; i < cursor_.kind_count(); ++i) {
      if (cursor_.by_kind().count(w, i) == 0) continue;
      const float* gains = cursor_.by_kind().GainsFrom(w, i);
      for (KindId j = 0; j < cursor_.kind_count(); ++j) {
        if (cursor_.KindAccepts(j)) kind_moves_.push_back({gains[j], w, i, j});
      }
    }
  }
  evaluations_ += static_cast<int64_t>(kind_moves_.size());
  const auto better = [](const KindMove& a, const KindMove& b) {
    if (a.gain_ms != b.gain_ms) return a.gain_ms > b.gain_ms;
    if (a.workload != b.workload) return a.workload < b.workload;
    return a.from != b.from ? a.from < b.from : a.to < b.to;
  };
  const size_t branches = std::min<size_t>(kind_moves_.size(), kBranches);
  std::partial_sort(kind_moves_.begin(), kind_moves_.begin() + branches, kind_moves_.end(), better);
  for (size_t b = 0; b < branches; ++b) {
    const KindMove& move = kind_moves_[b];
    const WorkloadId w = move.workload;
    NodeId fullest = kNone, most = kNone, tightest = kNone, roomiest = kNone;
    const auto cpu = [&](NodeId node) { return cursor_.free(node).cpu_millis; };
    ForEachNode(cursor_.Hosts(w), cursor_.OfKind(move.from), words, [&](NodeId node) {
      if (fullest == kNone || cpu(node) < cpu(fullest)) fullest = node;
      if (most == kNone || cursor_.on_node(w, node) > cursor_.on_node(w, most)) most = node;
    });
    ForEachNode(cursor_.Targets(w), cursor_.OfKind(move.to), words, [&](NodeId node) {
      if (tightest == kNone || cpu(node) < cpu(tightest)) tightest = node;
      if (roomiest == kNone || cpu(node) > cpu(roomiest)) roomiest = node;
    });
    for (NodeId from : {fullest, most}) {  // Where both are one node, the second offer has been seen.
      if (from == kNone) continue;
      for (NodeId to : {tightest, roomiest}) {
        if (to != kNone && to != from) Consider(parent, {w, from, to}, latency_ms - move.gain_ms);
      }
    }
  }
}

void Beam::Consider(int32_t parent, const Move& move, double latency_ms) {
  ++evaluations_;
  if (latency_ms >= bar_ms_) return;
  if (!seen_.Insert(cursor_.HashAfter(move))) return;
  offers_.push_back({latency_ms, parent, move, order_++});
  if (offers_.size() >= 2 * static_cast<size_t>(width_) + 64) Prune();
}

// Keeps the best `width` offers; what comes later must be better than the last of them.
void Beam::Prune() {
  filled_ = true;
  const auto last = offers_.begin() + (width_ - 1);
  std::nth_element(offers_.begin(), last, offers_.end(), [](const Offer& a, const Offer& b) {
    return a.latency_ms != b.latency_ms ? a.latency_ms < b.latency_ms : a.order < b.order;
  });
  bar_ms_ = last->latency_ms;
  offers_.resize(width_);
}

// The survivors become the next level, in the order in which they were offered: children of one parent stay together,
// and going from one to the next is short.
void Beam::Select() {
  if (offers_.size() > static_cast<size_t>(width_)) Prune();
  std::sort(offers_.begin(), offers_.end(), [](const Offer& a, const Offer& b) { return a.order < b.order; });
  level_begin_ = static_cast<int32_t>(tree_.size());
  for (const Offer& offer : offers_) tree_.push_back({offer.parent, offer.move, offer.latency_ms});
  level_end_ = static_cast<int32_t>(tree_.size());
}

void Beam::NoteFinalist(double cost_ms, int32_t node) {
  if (finalist_count_ == kFinalists && cost_ms >= finalists_[kFinalists - 1].cost_ms) return;
  int at = finalist_count_ < kFinalists ? finalist_count_++ : kFinalists - 1;
  for (; at > 0 && finalists_[at - 1].cost_ms > cost_ms; --at) finalists_[at] = finalists_[at - 1];
  finalists_[at] = {cost_ms, node};
}

}  // namespace rudderfish
