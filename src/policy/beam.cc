// SPDX-License-Identifier: Apache-2.0
#include "policy/beam.h"

#include <algorithm>
#include <array>
#include <cstdlib>
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
                  const Clock& clock, const Plan& known) {
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
  guides_.resize(kFinalists + 2);
  guides_[0].plan = known;
  if (getenv("DIR")) {
    ListTargets(model);
    int n = 0;
    double root = cursor_.by_kind().LatencyMs();
    int maxn = atoi(getenv("DIR"));
    for (auto& t : targets_) {
      double best = plan_count_ ? std::min(root, plans_[0].cost_ms) : root;
      if (known.moves.size()) best = std::min(best, known.cost_ms);
      if (t.cost >= best || n++ >= maxn) break;
      directed_ = true; direction_ = t.dir;
      int pat = budget_.patience; budget_.patience = 1000;
      RunPass(getenv("DW") ? atoi(getenv("DW")) : 4, depth_max);
      budget_.patience = pat;
      directed_ = false;
    }
  }
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

void Beam::ListTargets(const Evaluator& model) {
  const Catalog& cat = *model.state().catalog;
  layer_of_kind_.clear();
  for (auto& k : cat.kinds) layer_of_kind_.push_back(k.layer);
  std::vector<int> layers;
  for (int l = 0; l < cat.layer_count(); ++l) if (cat.layers[l].accepts_moves) layers.push_back(l);
  const int base = layers.size() + 1;
  int W = cursor_.movable().size();
  int64_t total = 1; for (int i = 0; i < W; ++i) total *= base;
  targets_.clear();
  std::vector<Resources> cap(cat.layer_count());
  std::vector<std::vector<int>> on(cat.workload_count(), std::vector<int>(cat.layer_count()));
  for (int n = 0; n < cursor_.node_count(); ++n) {
    cap[layer_of_kind_[cursor_.kind(n)]] += cursor_.free(n);
    for (int w : cursor_.movable()) { on[w][layer_of_kind_[cursor_.kind(n)]] += cursor_.on_node(w, n);
      for (int k = 0; k < cursor_.on_node(w, n); ++k) cap[layer_of_kind_[cursor_.kind(n)]] += cursor_.requests(w); }
  }
  auto& ke = cursor_.by_kind();
  for (int64_t code = 1; code < total; ++code) {
    int64_t c = code; std::vector<int32_t> dir(cat.workload_count(), -1); int dist = 0; auto left = cap;
    for (int w : cursor_.movable()) { int d = c % base; c /= base; if (d) dir[w] = layers[d - 1];
      for (int l = 0; l < cat.layer_count(); ++l) { int to = dir[w] < 0 ? l : dir[w]; if (to != l) dist += on[w][l]; for (int k = 0; k < on[w][l]; ++k) left[to] -= cursor_.requests(w); } }
    if (dist == 0) continue;
    bool redundant = false;
    for (int w : cursor_.movable()) if (dir[w] >= 0 && on[w][dir[w]] == cursor_.replicas(w)) redundant = true;
    if (redundant) continue;
    bool ok = true; for (auto& r : left) ok &= r.cpu_millis >= 0 && r.memory_bytes >= 0;
    if (!ok && !getenv("NOCAP")) continue;
    std::vector<std::array<int,3>> log;
    for (int w : cursor_.movable()) if (dir[w] >= 0) for (int i = 0; i < cat.kind_count(); ++i) { if (layer_of_kind_[i] == dir[w]) continue;
      while (ke.count(w, i) > 0) { const float* g = ke.GainsFrom(w, i); int b = -1; for (int j = 0; j < cat.kind_count(); ++j) if (layer_of_kind_[j] == dir[w] && cursor_.KindAccepts(j) && (b < 0 || g[j] > g[b])) b = j; ke.Apply(w, i, b); log.push_back({w, i, b}); } }
    double L = ke.LatencyMs();
    for (auto it = log.rbegin(); it != log.rend(); ++it) ke.Apply((*it)[0], (*it)[2], (*it)[1]);
    if (dist >= (int)step_costs_ms_.size()) continue;
    targets_.push_back({L + step_costs_ms_[dist], dir});
  }
  std::stable_sort(targets_.begin(), targets_.end(), [](auto& a, auto& b) { return a.cost < b.cost; });
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
  guide_count_ = 1;
  for (int i = 0; i < plan_count_; ++i) guides_[guide_count_++].plan = plans_[i];
  for (int i = 0; i < guide_count_; ++i) guides_[i].at = 0;
  width_ = width;
  filled_ = false;
  later_[0].clear(); later_[1].clear();
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
  for (int depth = 1; depth <= depth_max && (level_begin_ < level_end_ || !later_[0].empty()) && within_budget && patience > 0; ++depth) {
    offers_.swap(later_[0]); later_[0].swap(later_[1]); later_[1].clear();
    order_ = 0;
    for (auto& o : offers_) o.order = order_++;
    bar_ms_ = kNoBar;
    for (int32_t node = level_begin_; node < level_end_ && within_budget; ++node) {
      Expand(node);
      within_budget = !OutOfBudget();
    }
    Select();
    KeepGuides(depth);
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
  KeepPlans();
  return within_budget;
}

// Adds the pass's best plans to those of the passes before.
void Beam::KeepPlans() {
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
}

// A plan that is known already stays in the beam, however little its beginning promises.
void Beam::KeepGuides(int depth) {
  for (int i = 0; i < guide_count_; ++i) {
    Guide& guide = guides_[i];
    if (guide.at == kNone) continue;
    if (static_cast<int>(guide.plan.moves.size()) < depth) {
      guide.at = kNone;
      continue;
    }
    const Move& move = guide.plan.moves[depth - 1];
    int32_t node = level_begin_;
    while (node < level_end_ && !(tree_[node].parent == guide.at && tree_[node].move == move)) ++node;
    if (node == level_end_) {
      ++level_end_;
      tree_.push_back({guide.at, move, 0});
      GoTo(node);
      seen_.Insert(cursor_.hash());
      tree_[node].latency_ms = cursor_.by_kind().LatencyMs();
    }
    guide.at = node;
  }
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
    static bool ej = getenv("EJ");
    if (ej && !directed_) Eject(parent, latency_ms);
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
      if (directed_ && (direction_[w] < 0 || layer_of_kind_[i] == direction_[w])) continue;
      const float* gains = cursor_.by_kind().GainsFrom(w, i);
      ForEachNode(cursor_.Hosts(w), cursor_.OfKind(i), words, [&](NodeId from) {
        ForEachNode(cursor_.Targets(w), words, [&](NodeId to) {
          if (directed_ && layer_of_kind_[cursor_.kind(to)] != direction_[w]) return;
          if (from != to) Consider(parent, {w, from, to}, latency_ms - gains[cursor_.kind(to)]);
        });
      });
    }
  }
}

void Beam::Eject(int32_t parent, double latency_ms) {
  const int words = cursor_.word_count();
  const int K = cursor_.kind_count();
  int W = cursor_.movable().back() + 1;
  gain_rows_.resize(W * K * K);
  for (WorkloadId w : cursor_.movable()) for (KindId i = 0; i < K; ++i) {
    if (cursor_.by_kind().count(w, i) == 0) continue;
    const float* g = cursor_.by_kind().GainsFrom(w, i);
    for (int j = 0; j < K; ++j) gain_rows_[(w * K + i) * K + j] = g[j];
  }
  auto& out = later_[0];
  for (WorkloadId w : cursor_.movable()) for (KindId j = 0; j < K; ++j) {
    if (!cursor_.KindAccepts(j)) continue;
    bool room = false;
    for (int x = 0; x < words; ++x) room |= (cursor_.Targets(w)[x] & cursor_.OfKind(j)[x]) != 0;
    if (room) continue;
    float best = 0; int bi = -1;
    for (KindId i = 0; i < K; ++i) if (i != j && cursor_.by_kind().count(w, i) > 0 && gain_rows_[(w * K + i) * K + j] > best) { best = gain_rows_[(w * K + i) * K + j]; bi = i; }
    if (bi < 0) continue;
    NodeId a = kNone;
    ForEachNode(cursor_.Hosts(w), cursor_.OfKind(bi), words, [&](NodeId n) { if (a == kNone || cursor_.free(n).cpu_millis < cursor_.free(a).cpu_millis) a = n; });
    ForEachNode(cursor_.OfKind(j), words, [&](NodeId b) {
      for (WorkloadId q : cursor_.movable()) {
        if (q == w || cursor_.on_node(q, b) == 0) continue;
        if (!(cursor_.free(b) + cursor_.requests(q)).Fits(cursor_.requests(w))) continue;
        for (KindId k = 0; k < K; ++k) {
          if (!cursor_.KindAccepts(k)) continue;
          const float total = best + gain_rows_[(q * K + j) * K + k];
          if (total <= 0) continue;
          NodeId c = kNone;
          ForEachNode(cursor_.Targets(q), cursor_.OfKind(k), words, [&](NodeId n) { if (n != b && (c == kNone || cursor_.free(n).cpu_millis < cursor_.free(c).cpu_millis)) c = n; });
          if (c == kNone) continue;
          ++evaluations_;
          const Move first{q, b, c}, second{w, a, b};
          uint64_t h = cursor_.HashAfter(first) - cursor_.CellHash(w, a) + cursor_.CellHash(w, b);
          if (!seen_.Insert(h)) continue;
          out.push_back({latency_ms - total, parent, second, 0, first});
        }
      }
    });
  }
  if (out.size() >= 2 * static_cast<size_t>(width_) + 64) {
    std::nth_element(out.begin(), out.begin() + width_ - 1, out.end(), [](const Offer& a, const Offer& b) { return a.latency_ms < b.latency_ms; });
    out.resize(width_);
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
  for (Offer& offer : offers_) if (offer.first.workload != kNone) { tree_.push_back({offer.parent, offer.first, 0}); offer.parent = tree_.size() - 1; }
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
