// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "policy/beam.h"
#include "policy/plan.h"

// Beam search with a learned prior: a narrow beam that looks only at moves that the prior holds
// likely or that gain most at once. Half of the width is for the placements of lowest latency, half
// for those that the prior, over the whole way there, holds most likely: the second half finds
// plans that first climb.
//
// All states of a level are put to the prior as one batch. Each has an Evaluator of its own, so
// latency is exact; the gain of a child that is not expanded is by kind. Allocates nothing once it
// has run a search as large.

namespace rudderfish {

struct GuidedOptions {
  int width = 16;
  int moves_by_prior = 4;  // Children of a state: the most likely,
  int moves_by_gain = 4;   // and those with the largest gain.
  int patience = 3;
};

class GuidedBeam {
 public:
  explicit GuidedBeam(const Policy& prior) : prior_(prior) {}

  // Searches from the model's placement, which is left as found.
  void Search(Evaluator* model, const Task& task, const Question& question,
              const GuidedOptions& options);

  // The best plan; empty if nothing is better than staying.
  const Plan& plan() const { return plan_; }

 private:
  struct TreeNode {
    int32_t parent = kNone;
    Move move;
  };
  // A child that has been thought of.
  struct Offer {
    int parent_slot = 0;
    Move move;
    double latency_ms = 0;       // By kind.
    double log_probability = 0;  // Of the moves from the root to here, by the prior.
    uint64_t hash = 0;
  };
  // A placement of the level at hand.
  struct Slot {
    std::unique_ptr<Evaluator> model;
    std::unique_ptr<Memory> memory;
    ActionSpace space;
    int32_t node = 0;
    double log_probability = 0;
    uint64_t hash = 0;
  };

  void AddSlots(const Evaluator& model, int count, std::vector<Slot>* slots);
  void AskPrior(const Task& task, const Question& question);
  void OfferChildren(int slot, const GuidedOptions& options);
  void Survive(const GuidedOptions& options);
  void MakeNextLevel();

  const Policy& prior_;
  std::vector<TreeNode> tree_;
  std::vector<Slot> level_, next_;
  int level_size_ = 0;
  std::vector<Ask> asks_;
  std::vector<Answer> answers_;
  std::vector<int32_t> order_;
  std::vector<uint8_t> chosen_;
  std::vector<Offer> offers_;
  SeenSet seen_;
  Plan plan_;
};

}  // namespace rudderfish
