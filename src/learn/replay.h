// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/graph_batch.h"
#include "base/result.h"
#include "base/thread_pool.h"
#include "learn/env_slice.h"
#include "nn/candidate_net.h"

// The memory of off-policy learning: the last questions of many environments, with what was chosen
// and its outcome. It is a ring of pages; a page holds `steps` steps of every environment, and
// a step's next question is simply the next one of its environment.
//
// Memory: `samples_max` questions (a continuum-7x21 question is about 6 kB), fewer if the first
// page shows that they would take more than `bytes_max`; at least two pages. A checkpoint keeps
// none of it: only where the oldest page began and the choices since, from which the same questions
// come again, to the bit (Refill).
//
// Slices of environments (env_slice.h) run on any thread; results do not depend on which.

namespace rudderfish {

struct ReplayOptions {
  int envs = 128;
  int envs_per_slice = 16;
  int steps = 8;  // A page is envs · steps samples.
  int episode_steps_max = 100;
  int samples_max = 32768;
  int64_t bytes_max = int64_t{512} << 20;
};

enum class StepEnd : uint8_t { kGoesOn, kTerminated, kTruncated };

// One sample with n steps of reward: choice at `question`, then `reward` = Σ γ^k r_k, then, unless
// discount is 0, the question `next`, worth discount · its value. Where time passes between
// questions, γ^k also holds the discounts of the steps before (StepResult::discount).
struct Transition {
  const GraphBatch* questions = nullptr;
  int question = 0;
  int choice = 0;  // Alternative: candidate index, or the candidate count for stop.
  float reward = 0;
  float discount = 0;
  const GraphBatch* next_questions = nullptr;
  int next = 0;
};

class Replay {
 public:
  Replay(std::span<const TrainingWorld> worlds, uint64_t seed, const ReplayOptions& options);

  // Whether stop is among the alternatives of these worlds.
  bool may_stop() const { return may_stop_; }

  // Plays one page: with probability epsilon any alternative, else the one with the largest
  // advantage. It takes the place of the oldest page once the memory is full.
  void Collect(const nn::CandidateNet& net, uint64_t iteration, float epsilon, ThreadPool* pool);

  // Samples held, oldest first.
  int64_t samples() const { return pages_ * page_samples(); }

  // False if the n steps from `sample` on are not over yet. `gamma` is multiplied by the task's own
  // discount.
  bool Find(int64_t sample, int n, float gamma, Transition* transition) const;

  const ReplayOptions& options() const { return options_; }
  int64_t page_samples() const { return static_cast<int64_t>(options_.envs) * options_.steps; }
  int64_t pages_max() const { return pages_max_; }
  const EpisodeTotals& totals() const { return totals_; }  // Of the last Collect.

  // What a checkpoint keeps: where environments stood before the oldest page, and the choices of
  // all pages since, page by page, each by slice, step, environment.
  std::vector<EnvCursor> OldestCursors() const;
  std::vector<int32_t> Choices() const;
  Result<void> Refill(std::span<const EnvCursor> cursors, std::span<const int32_t> choices,
                      int64_t pages_max, ThreadPool* pool);

  void AddWorkspaces(std::vector<nn::Workspace*>* all);

 private:
  // A page's part of one slice, time-major.
  struct Segment {
    GraphBatch questions;
    GraphBatch beyond;  // Questions after a truncation.
    std::vector<int32_t> choices;
    std::vector<float> rewards, discounts;
    std::vector<StepEnd> ends;
    std::vector<int32_t> beyond_of;  // Where truncated: index into `beyond`.
    std::vector<EnvCursor> start;    // [environment]
  };
  struct Slice : EnvSlice {
    using EnvSlice::EnvSlice;

    std::vector<Segment> ring;
  };
  struct Exploration {
    const nn::CandidateNet* net;
    uint64_t iteration;
    float epsilon;
  };

  int envs() const { return options_.envs_per_slice; }
  int64_t segment_samples() const { return static_cast<int64_t>(envs()) * options_.steps; }
  int SlotOf(int64_t page) const { return static_cast<int>((first_ + page) % pages_max_); }
  int NewSlot();
  void LimitPages();
  template <class Chooser>
  Result<void> PlayPage(Slice* slice, Segment* segment, Chooser&& choose) const;
  void Choose(const Exploration& exploration, int slice, int step, Segment* segment);
  void Record(int step, Segment* segment, Slice* slice) const;
  bool IsPossible(const Segment& segment, const Slice& slice, int step) const;

  ReplayOptions options_;
  uint64_t seed_;
  bool may_stop_;
  GraphWidths widths_;
  std::vector<Slice> slices_;
  EpisodeTotals totals_;
  int64_t pages_max_ = 0;  // Known after the first page.
  int64_t pages_ = 0;
  int64_t first_ = 0;  // Slot of the oldest page.
};

}  // namespace rudderfish
