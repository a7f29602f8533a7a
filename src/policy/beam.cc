// SPDX-License-Identifier: Apache-2.0
#include "policy/beam.h"

#include <algorithm>
#include <utility>

namespace rudderfish {
namespace {

constexpr int kFirstWidth = 8;
constexpr int kWidening = 8;
constexpr int kDirectedWidth = 4;
constexpr int kDirectedPasses = 16;
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

void Beam::Search(const Evaluator& model, const Task& task, const Question& question,
                  const SearchBudget& budget, const Clock& clock, const Plan& known) {
  clock_ = &clock;
  budget_ = budget;
  deadline_ = budget.time.count() > 0 ? clock.Now() + budget.time : Instant::max();
  plan_count_ = 0;
  plans_.resize(kFinalists + 1);  // One to build the next in.
  guides_.resize(kFinalists + 1);
  for (Plan& plan : plans_) plan.moves.reserve(kPlanMovesReserved);
  guides_[0].plan = known;
  evaluations_ = 0;
  step_costs_ms_.assign(1, 0);
  for (Question here = question; here.step < task.max_steps(); ++here.step) {
    step_costs_ms_.push_back(step_costs_ms_.back() + task.StepCost(here));
  }
  cursor_.Reset(model);
  kinds_ = cursor_.kind_count();
  gains_.resize(static_cast<size_t>(model.placement().workload_count()) * kinds_ * kinds_);
  exhaustive_ = FewMoves();
  RunDirectedPasses(model);
  RunFreePasses();
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

// They end when no target promises more than the best plan so far, and take no more than a quarter
// of the budget.
void Beam::RunDirectedPasses(const Evaluator& model) {
  const Catalog& catalog = *model.state().catalog;
  layer_of_.clear();
  for (const NodeKind& kind : catalog.kinds) layer_of_.push_back(kind.layer);
  const Plan& known = guides_[0].plan;
  double best_ms = cursor_.by_kind().LatencyMs();
  if (!known.moves.empty()) best_ms = std::min(best_ms, known.cost_ms);
  targets_.List(catalog, model.calls(), step_costs_ms_, best_ms, &cursor_);
  const int passes = std::min(targets_.count(), kDirectedPasses);
  for (int i = 0;
       i < passes && targets_.cost_ms(i) < best_ms && evaluations_ < budget_.evaluations / 4; ++i) {
    const int to_the_end = static_cast<int>(step_costs_ms_.size());
    if (!Run({std::min(kDirectedWidth, budget_.width), to_the_end, targets_.layers(i)})) return;
    if (plan_count_ > 0) best_ms = std::min(best_ms, plans_[0].cost_ms);
  }
}

void Beam::RunFreePasses() {
  for (int width = std::min(kFirstWidth, budget_.width);;) {
    const int64_t before = evaluations_;
    const Instant started = budget_.time.count() > 0 ? clock_->Now() : Instant{};
    if (!Run({width, budget_.patience, {}}) || width == budget_.width || !filled_) return;
    // What is left buys this much more width than the pass before had.
    double affordable =
        static_cast<double>(budget_.evaluations - evaluations_) / (evaluations_ - before);
    if (budget_.time.count() > 0) {
      const Instant now = clock_->Now();
      affordable =
          std::min(affordable, Seconds(deadline_ - now) / std::max(1e-9, Seconds(now - started)));
    }
    if (affordable < 2) return;
    width = static_cast<int>(
        std::min<double>(budget_.width, width * std::min<double>(kWidening, affordable)));
  }
}

void Beam::StartPass(const Pass& pass) {
  pass_ = pass;
  width_ = pass.width;
  filled_ = false;
  finalist_count_ = 0;
  offers_.clear();
  later_.clear();
  tree_.assign(1, {.latency_ms = cursor_.by_kind().LatencyMs()});
  walk_.BeginAtRoot();
  level_begin_ = 0;
  level_end_ = 1;
  seen_.Clear();
  seen_.Insert(cursor_.hash());
  guide_count_ = 1;
  for (const Plan& plan : plans()) guides_[guide_count_++].plan = plan;
  for (Guide& guide : guides_) guide.at = 0;
}

bool Beam::Run(const Pass& pass) {
  StartPass(pass);
  double best_ms = tree_[0].latency_ms;
  int patience = pass.patience;
  const int depth_max = static_cast<int>(step_costs_ms_.size()) - 1;
  for (int depth = 1; depth <= depth_max && !OutOfBudget(); ++depth, --patience) {
    if (patience <= 0 && !PairsPromise(best_ms - step_costs_ms_[depth])) break;
    ExpandLevel();
    Select();
    KeepGuides(depth);
    if (level_begin_ == level_end_ && later_.empty()) break;
    for (int32_t node = level_begin_; node < level_end_; ++node) {
      const double cost_ms = tree_[node].latency_ms + step_costs_ms_[depth];
      NoteFinalist(cost_ms, node);
      if (cost_ms >= best_ms - kImprovementMs) continue;
      best_ms = cost_ms;
      patience = pass.patience + 1;
    }
  }
  walk_.GoTo(tree_, 0, &cursor_);
  KeepPlans();
  return !OutOfBudget();
}

// Whether the level to come already holds a placement of less latency.
bool Beam::PairsPromise(double latency_ms) const {
  return std::any_of(later_.begin(), later_.end(), [&](const Offer& offer) {
    return offer.latency_ms < latency_ms - kImprovementMs;
  });
}

void Beam::ExpandLevel() {
  offers_.clear();
  std::swap(offers_, later_);
  order_ = 0;
  std::erase_if(offers_, [&](const Offer& offer) { return !seen_.Insert(offer.hash); });
  for (Offer& offer : offers_) offer.order = order_++;
  bar_ms_ = kNoBar;
  pair_bar_ms_ = kNoBar;
  const int32_t paired = std::max(32, width_ / 4);
  if (level_end_ - level_begin_ > paired) {
    latencies_ms_.clear();
    for (int32_t node = level_begin_; node < level_end_; ++node)
      latencies_ms_.push_back(tree_[node].latency_ms);
    std::nth_element(latencies_ms_.begin(), latencies_ms_.begin() + (paired - 1),
                     latencies_ms_.end());
    pair_bar_ms_ = latencies_ms_[paired - 1];
  }
  for (int32_t node = level_begin_; node < level_end_ && !OutOfBudget(); ++node) Expand(node);
}

bool Beam::OutOfBudget() const {
  if (evaluations_ >= budget_.evaluations) return true;
  return budget_.time.count() > 0 && clock_->Now() >= deadline_;
}

void Beam::Expand(int32_t parent) {
  walk_.GoTo(tree_, parent, &cursor_);
  here_ms_ = cursor_.by_kind().LatencyMs();
  LoadGains();
  if (!exhaustive_) {
    ExpandRepresentatives(parent);
    return;
  }
  ExpandAll(parent);
  if (pass_.direction.empty() && tree_[parent].latency_ms <= pair_bar_ms_) ExpandByPairs(parent);
}

bool Beam::Directed(WorkloadId workload, KindId from) const {
  if (pass_.direction.empty()) return true;
  return pass_.direction[workload] != kNone && layer_of_[from] != pass_.direction[workload];
}

bool Beam::Directed(WorkloadId workload, KindId from, KindId to) const {
  return Directed(workload, from) &&
         (pass_.direction.empty() || layer_of_[to] == pass_.direction[workload]);
}

void Beam::LoadGains() {
  for (WorkloadId w : cursor_.movable()) {
    for (KindId from = 0; from < kinds_; ++from) {
      if (cursor_.by_kind().count(w, from) == 0 || !Directed(w, from)) continue;
      const float* gains = cursor_.by_kind().GainsFrom(w, from);
      std::copy(gains, gains + kinds_, &Gain(w, from, 0));
    }
  }
}

void Beam::ExpandAll(int32_t parent) {
  const int words = cursor_.word_count();
  for (WorkloadId w : cursor_.movable()) {
    for (KindId kind = 0; kind < kinds_; ++kind) {
      if (cursor_.by_kind().count(w, kind) == 0 || !Directed(w, kind)) continue;
      const float* gains = &Gain(w, kind, 0);
      if (here_ms_ - *std::max_element(gains, gains + kinds_) >= bar_ms_) continue;
      ForEachNode(cursor_.Hosts(w), cursor_.OfKind(kind), words, [&](NodeId from) {
        ForEachNode(cursor_.Targets(w), words, [&](NodeId to) {
          const KindId into = cursor_.kind(to);
          if (from != to && Directed(w, kind, into))
            Consider(parent, {w, from, to}, here_ms_ - gains[into]);
        });
      });
    }
  }
}

void Beam::ExpandByPairs(int32_t parent) {
  const int words = cursor_.word_count();
  for (WorkloadId w : cursor_.movable()) {
    for (KindId into = 0; into < kinds_; ++into) {
      if (!cursor_.KindAccepts(into)) continue;
      bool room = false;
      for (int i = 0; i < words; ++i)
        room |= (cursor_.Targets(w)[i] & cursor_.OfKind(into)[i]) != 0;
      if (room) continue;
      KindMove wanted{0, w, kNone, into};
      for (KindId from = 0; from < kinds_; ++from) {
        if (cursor_.by_kind().count(w, from) == 0 || Gain(w, from, into) <= wanted.gain_ms)
          continue;
        wanted.gain_ms = Gain(w, from, into);
        wanted.from = from;
      }
      if (wanted.from == kNone) continue;
      for (WorkloadId other : cursor_.movable()) {
        if (other == w || cursor_.by_kind().count(other, into) == 0) continue;
        for (KindId to = 0; to < kinds_; ++to) {
          if (cursor_.KindAccepts(to)) PairUp(parent, wanted, other, to);
        }
      }
    }
  }
  if (later_.size() >= 2 * static_cast<size_t>(width_) + 64) Prune(&later_);
}

// Makes room for the wanted move: one pod of `other` goes from a node of the wanted kind to the
// tightest node of kind `to`, if the wanted pod then fits and both together gain.
void Beam::PairUp(int32_t parent, const KindMove& wanted, WorkloadId other, KindId to) {
  const int words = cursor_.word_count();
  const WorkloadId w = wanted.workload;
  double latency_ms = kNoBar;  // Of both moves; the same for all nodes.
  ForEachNode(cursor_.Hosts(other), cursor_.OfKind(wanted.to), words, [&](NodeId between) {
    if (!(cursor_.free(between) + cursor_.requests(other)).Fits(cursor_.requests(w))) return;
    NodeId last = kNone, source = kNone;
    ForEachNode(cursor_.Targets(other), cursor_.OfKind(to), words, [&](NodeId node) {
      if (node == between) return;
      if (last == kNone || cursor_.free(node).cpu_millis < cursor_.free(last).cpu_millis)
        last = node;
    });
    if (last == kNone) return;
    ForEachNode(cursor_.Hosts(w), cursor_.OfKind(wanted.from), words, [&](NodeId node) {
      if (source == kNone || cursor_.free(node).cpu_millis < cursor_.free(source).cpu_millis)
        source = node;
    });
    if (source == kNone) return;  // Those that are there are held.
    if (latency_ms == kNoBar) {
      ++evaluations_;
      KindEvaluator& by_kind = cursor_.by_kind();
      if (to != wanted.to) by_kind.Apply(other, wanted.to, to);
      latency_ms = by_kind.LatencyMs() - by_kind.GainsFrom(w, wanted.from)[wanted.to];
      if (to != wanted.to) by_kind.Apply(other, to, wanted.to);
    }
    if (latency_ms >= here_ms_) return;
    const Move first{other, between, last}, second{w, source, between};
    const uint64_t hash =
        cursor_.HashAfter(first) - cursor_.CellHash(w, source) + cursor_.CellHash(w, between);
    later_.push_back(
        {latency_ms, parent, static_cast<int32_t>(later_.size()), second, first, hash});
  });
}

void Beam::ExpandRepresentatives(int32_t parent) {
  const int words = cursor_.word_count();
  kind_moves_.clear();
  for (WorkloadId w : cursor_.movable()) {
    for (KindId from = 0; from < kinds_; ++from) {
      if (cursor_.by_kind().count(w, from) == 0) continue;
      for (KindId to = 0; to < kinds_; ++to) {
        if (cursor_.KindAccepts(to) && Directed(w, from, to))
          kind_moves_.push_back({Gain(w, from, to), w, from, to});
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
  const auto cpu = [&](NodeId node) { return cursor_.free(node).cpu_millis; };
  for (size_t i = 0; i < branches; ++i) {
    const KindMove& move = kind_moves_[i];
    const WorkloadId w = move.workload;
    NodeId fullest = kNone, most = kNone, tightest = kNone, roomiest = kNone;
    ForEachNode(cursor_.Hosts(w), cursor_.OfKind(move.from), words, [&](NodeId node) {
      if (fullest == kNone || cpu(node) < cpu(fullest)) fullest = node;
      if (most == kNone || cursor_.on_node(w, node) > cursor_.on_node(w, most)) most = node;
    });
    ForEachNode(cursor_.Targets(w), cursor_.OfKind(move.to), words, [&](NodeId node) {
      if (tightest == kNone || cpu(node) < cpu(tightest)) tightest = node;
      if (roomiest == kNone || cpu(node) > cpu(roomiest)) roomiest = node;
    });
    if (fullest == kNone) continue;  // Those that are there are held.
    for (NodeId from :
         {fullest, most}) {  // Where both are one node, the second offer has been seen.
      for (NodeId to : {tightest, roomiest}) {
        if (to != kNone && to != from) Consider(parent, {w, from, to}, here_ms_ - move.gain_ms);
      }
    }
  }
}

void Beam::Consider(int32_t parent, const Move& move, double latency_ms) {
  ++evaluations_;
  if (latency_ms >= bar_ms_) return;
  if (!seen_.Insert(cursor_.HashAfter(move))) return;
  offers_.push_back({latency_ms, parent, order_++, move});
  if (offers_.size() < 2 * static_cast<size_t>(width_) + 64) return;
  Prune(&offers_);
  bar_ms_ =
      offers_[width_ - 1].latency_ms;  // What comes later must be better than the last of these.
}

// Keeps the best `width` offers, the worst of them last.
void Beam::Prune(std::vector<Offer>* offers) {
  if (offers->size() <= static_cast<size_t>(width_)) return;
  filled_ = true;
  const auto better = [](const Offer& a, const Offer& b) {
    return a.latency_ms != b.latency_ms ? a.latency_ms < b.latency_ms : a.order < b.order;
  };
  std::nth_element(offers->begin(), offers->begin() + (width_ - 1), offers->end(), better);
  offers->resize(width_);
}

// The survivors become the next level, in the order in which they were offered: children of one
// parent stay together, and going from one to the next is short.
void Beam::Select() {
  Prune(&offers_);
  std::sort(offers_.begin(), offers_.end(),
            [](const Offer& a, const Offer& b) { return a.order < b.order; });
  for (Offer& offer : offers_) {
    if (offer.first.workload == kNone) continue;
    tree_.push_back({offer.parent, offer.first});
    offer.parent = static_cast<int32_t>(tree_.size()) - 1;
  }
  level_begin_ = static_cast<int32_t>(tree_.size());
  for (const Offer& offer : offers_) tree_.push_back({offer.parent, offer.move, offer.latency_ms});
  level_end_ = static_cast<int32_t>(tree_.size());
}

// A plan that is known stays in the beam, however little its beginning promises.
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
    while (node < level_end_ && (tree_[node].parent != guide.at || tree_[node].move != move))
      ++node;
    if (node == level_end_) {
      ++level_end_;
      tree_.push_back({guide.at, move});
      walk_.GoTo(tree_, node, &cursor_);
      seen_.Insert(cursor_.hash());
      tree_[node].latency_ms = cursor_.by_kind().LatencyMs();
    }
    guide.at = node;
  }
}

void Beam::NoteFinalist(double cost_ms, int32_t node) {
  if (finalist_count_ == kFinalists && cost_ms >= finalists_[kFinalists - 1].cost_ms) return;
  int at = finalist_count_ < kFinalists ? finalist_count_++ : kFinalists - 1;
  for (; at > 0 && finalists_[at - 1].cost_ms > cost_ms; --at) finalists_[at] = finalists_[at - 1];
  finalists_[at] = {cost_ms, node};
}

// Adds the pass's best plans to those of the passes before.
void Beam::KeepPlans() {
  for (int i = 0; i < finalist_count_; ++i) {
    Plan& plan = plans_[plan_count_];
    plan.cost_ms = finalists_[i].cost_ms;
    MovesTo(tree_, finalists_[i].node, &plan.moves);
    const auto end = plans_.begin() + plan_count_;
    if (std::any_of(plans_.begin(), end,
                    [&](const Plan& other) { return other.moves == plan.moves; }))
      continue;
    plan_count_ = std::min(plan_count_ + 1, kFinalists);
    for (auto at = end; at != plans_.begin() && at->cost_ms < (at - 1)->cost_ms; --at)
      std::swap(*at, *(at - 1));
  }
}

}  // namespace rudderfish
