// SPDX-License-Identifier: Apache-2.0
#include "policy/guided_beam.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "policy/tree_walk.h"

namespace rudderfish {
namespace {

uint64_t MoveHash(const Move& move) {
  return PlacementCursor::CellHash(move.workload, move.to) -
         PlacementCursor::CellHash(move.workload, move.from);
}

}  // namespace

void GuidedBeam::Search(Evaluator* model, const Task& task, const Question& question,
                        const GuidedOptions& options) {
  AddSlots(*model, options.width, &level_);
  AddSlots(*model, options.width, &next_);
  tree_.assign(1, {});
  seen_.Clear();
  seen_.Insert(0);  // Hashes are relative to the root.
  *level_[0].model = *model;
  level_[0].node = 0;
  level_[0].log_probability = 0;
  level_[0].hash = 0;
  level_size_ = 1;
  plan_.moves.clear();
  plan_.latency_ms = plan_.cost_ms = model->Now().latency_ms;
  double steps_ms = 0;
  int patience = options.patience;
  for (Question here = question; here.step < task.max_steps() && patience > 0 && level_size_ > 0;
       ++here.step) {
    AskPrior(task, here);
    offers_.clear();
    for (int slot = 0; slot < level_size_; ++slot) OfferChildren(slot, options);
    Survive(options);
    MakeNextLevel();
    steps_ms += task.StepCost(here);
    --patience;
    for (int slot = 0; slot < level_size_; ++slot) {
      const double latency_ms = level_[slot].model->Now().latency_ms;
      if (latency_ms + steps_ms >= plan_.cost_ms) continue;
      plan_.latency_ms = latency_ms;
      plan_.cost_ms = latency_ms + steps_ms;
      MovesTo(tree_, level_[slot].node, &plan_.moves);
      patience = options.patience;
    }
  }
}

void GuidedBeam::AddSlots(const Evaluator& model, int count, std::vector<Slot>* slots) {
  while (static_cast<int>(slots->size()) < count) {
    slots->emplace_back();
    slots->back().model = std::make_unique<Evaluator>(model.law());
    slots->back().memory = prior_.NewMemory(0);
  }
}

void GuidedBeam::AskPrior(const Task& task, const Question& question) {
  asks_.clear();
  if (static_cast<int>(answers_.size()) < level_size_) answers_.resize(level_.size());
  for (int i = 0; i < level_size_; ++i) {
    Slot& slot = level_[i];
    task.Space(slot.model.get(), question, &slot.space);
    asks_.push_back({slot.model.get(), &task, question, &slot.space, slot.memory.get()});
  }
  prior_.Decide(asks_, {answers_.data(), asks_.size()});
}

void GuidedBeam::OfferChildren(int index, const GuidedOptions& options) {
  Slot& slot = level_[index];
  const std::vector<float>& scores = answers_[index].scores;
  const int count = slot.space.count();
  CHECK_EQ(static_cast<int>(scores.size()), count + 1);
  chosen_.assign(count, 0);
  order_.resize(count);
  for (int i = 0; i < count; ++i) order_[i] = i;
  const auto take = [&](int most, auto value) {
    const int taken = std::min(most, count);
    std::partial_sort(order_.begin(), order_.begin() + taken, order_.end(), [&](int a, int b) {
      return value(a) != value(b) ? value(a) > value(b) : a < b;
    });
    for (int i = 0; i < taken; ++i) chosen_[order_[i]] = 1;
  };
  take(options.moves_by_prior, [&](int i) { return scores[i]; });
  take(options.moves_by_gain, [&](int i) { return slot.space.candidates[i].gain_ms; });
  const double latency_ms = slot.model->Now().latency_ms;
  for (int i = 0; i < count; ++i) {
    if (!chosen_[i]) continue;
    const Candidate& candidate = slot.space.candidates[i];
    const uint64_t hash = slot.hash + MoveHash(candidate.move);
    if (!seen_.Insert(hash)) continue;
    offers_.push_back({index, candidate.move, latency_ms - candidate.gain_ms,
                       slot.log_probability + scores[i], hash});
  }
}

// The first half of the width by latency, the rest by likelihood.
void GuidedBeam::Survive(const GuidedOptions& options) {
  const size_t width = std::min<size_t>(options.width, offers_.size());
  const size_t half = std::min<size_t>((options.width + 1) / 2, offers_.size());
  const auto by_parent = [](const Offer& a, const Offer& b) {
    return std::pair(a.parent_slot, a.hash) < std::pair(b.parent_slot, b.hash);
  };
  std::partial_sort(
      offers_.begin(), offers_.begin() + half, offers_.end(), [&](const Offer& a, const Offer& b) {
        return a.latency_ms != b.latency_ms ? a.latency_ms < b.latency_ms : by_parent(a, b);
      });
  std::partial_sort(offers_.begin() + half, offers_.begin() + width, offers_.end(),
                    [&](const Offer& a, const Offer& b) {
                      return a.log_probability != b.log_probability
                                 ? a.log_probability > b.log_probability
                                 : by_parent(a, b);
                    });
  offers_.resize(width);
}

void GuidedBeam::MakeNextLevel() {
  level_size_ = 0;
  for (const Offer& offer : offers_) {
    const Slot& parent = level_[offer.parent_slot];
    Slot& slot = next_[level_size_++];
    *slot.model = *parent.model;
    slot.model->CommitForGood(offer.move);
    slot.node = static_cast<int32_t>(tree_.size());
    slot.log_probability = offer.log_probability;
    slot.hash = offer.hash;
    slot.memory->Restart();
    tree_.push_back({parent.node, offer.move});
  }
  std::swap(level_, next_);
}

}  // namespace rudderfish
