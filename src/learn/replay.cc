// SPDX-License-Identifier: Apache-2.0
#include "learn/replay.h"

#include <algorithm>

#include "base/check.h"
#include "base/rng.h"
#include "nn/softmax.h"

namespace rudderfish {
namespace {

constexpr uint64_t kExploreStream = uint64_t{4}
                                    << 40;  // Of the seed; see kChoiceStream in rollout.cc.

template <class T, class Allocator>
int64_t Bytes(const std::vector<T, Allocator>& values) {
  return static_cast<int64_t>(values.capacity() * sizeof(T));
}

int64_t Bytes(const GraphBatch& batch) {
  return Bytes(batch.candidates) + Bytes(batch.nodes) + Bytes(batch.workloads) +
         Bytes(batch.context) + Bytes(batch.ends) + Bytes(batch.placements) + Bytes(batch.calls);
}

}  // namespace

Replay::Replay(std::span<const TrainingWorld> worlds, uint64_t seed, const ReplayOptions& options)
    : options_(options), seed_(seed), may_stop_(worlds[0].moves()) {
  CHECK_EQ(options.envs % options.envs_per_slice, 0);
  widths_ = worlds[0].widths();
  for (int first = 0; first < options.envs; first += envs()) {
    slices_.emplace_back(worlds, seed, first, envs(), options.episode_steps_max);
  }
}

// Makes room for one page more and returns its slot.
int Replay::NewSlot() {
  if (pages_max_ > 0 && pages_ == pages_max_) {
    first_ = (first_ + 1) % pages_max_;
  } else {
    ++pages_;
  }
  const int slot = pages_max_ > 0 ? SlotOf(pages_ - 1) : 0;
  for (Slice& slice : slices_) {
    if (static_cast<int>(slice.ring.size()) <= slot) slice.ring.resize(slot + 1);
    Segment& segment = slice.ring[slot];
    segment.questions.Clear();
    segment.beyond.Clear();
    segment.questions.widths = segment.beyond.widths = widths_;
    segment.choices.resize(segment_samples());
    segment.rewards.resize(segment_samples());
    segment.discounts.resize(segment_samples());
    segment.ends.resize(segment_samples());
    segment.beyond_of.resize(segment_samples());
    segment.start.resize(envs());
  }
  return slot;
}

void Replay::LimitPages() {
  int64_t bytes = 0;
  for (const Slice& slice : slices_)
    bytes += Bytes(slice.ring[0].questions) + Bytes(slice.ring[0].beyond);
  pages_max_ = std::max<int64_t>(2, std::min(options_.samples_max / page_samples(),
                                             options_.bytes_max / std::max<int64_t>(1, bytes)));
}

// Plays a slice's part of a page: choose(step) puts what is chosen at a step into the segment, or
// fails.
template <class Chooser>
Result<void> Replay::PlayPage(Slice* slice, Segment* segment, Chooser&& choose) const {
  for (int i = 0; i < envs(); ++i) segment->start[i] = slice->envs[i]->cursor();
  for (int step = 0; step < options_.steps; ++step) {
    for (const auto& env : slice->envs) env->Encode(&segment->questions);
    TRY(choose(step));
    Record(step, segment, slice);
  }
  return {};
}

void Replay::Collect(const nn::CandidateNet& net, uint64_t iteration, float epsilon,
                     ThreadPool* pool) {
  const int slot = NewSlot();
  const Exploration exploration{&net, iteration, epsilon};
  pool->ParallelFor(static_cast<int>(slices_.size()), [&](int index, int) {
    Slice& slice = slices_[index];
    Segment& segment = slice.ring[slot];
    slice.totals = {};
    const Result<void> played = PlayPage(&slice, &segment, [&](int step) -> Result<void> {
      Choose(exploration, index, step, &segment);
      return {};
    });
    CHECK(played.has_value());
  });
  totals_ = {};
  for (const Slice& slice : slices_) totals_.Add(slice.totals);
  if (pages_max_ == 0) LimitPages();
}

void Replay::Choose(const Exploration& exploration, int index, int step, Segment* segment) {
  Slice& slice = slices_[index];
  const int first = step * envs();
  const std::span<const int32_t> begin(segment->questions.candidate_begin.data() + first,
                                       envs() + 1);
  const size_t candidates = begin.back() - begin.front();
  slice.logits.resize(std::max(slice.logits.size(), candidates));
  exploration.net->Forward(segment->questions, first, envs(), slice.workspace.get(),
                           std::span(slice.logits.data(), candidates), slice.stop, slice.value);
  if (!may_stop_) std::fill(slice.stop.begin(), slice.stop.end(), nn::kForbidden);
  for (int i = 0; i < envs(); ++i) {
    Rng rng(seed_, kExploreStream + index * envs() + i,
            exploration.iteration * options_.steps + step);
    const int count = begin[i + 1] - begin[i];
    const std::span<const float> advantages(slice.logits.data() + (begin[i] - begin[0]), count);
    const bool explore = rng.UniformFloat() < exploration.epsilon;
    segment->choices[first + i] =
        explore ? static_cast<int32_t>(rng.Below(static_cast<uint32_t>(count + may_stop_)))
                : nn::ArgmaxOrStop(advantages, slice.stop[i]);
  }
}

// Takes the choices of one step, which stand in the segment.
void Replay::Record(int step, Segment* segment, Slice* slice) const {
  for (int i = 0; i < envs(); ++i) {
    Environment& env = *slice->envs[i];
    const int at = step * envs() + i;
    const int choice = segment->choices[at];
    const StepResult result = env.Step(choice == env.candidate_count() ? kStop : choice);
    segment->rewards[at] = static_cast<float>(result.reward);
    segment->discounts[at] = static_cast<float>(result.discount);
    segment->ends[at] = result.terminated  ? StepEnd::kTerminated
                        : result.truncated ? StepEnd::kTruncated
                                           : StepEnd::kGoesOn;
    if (result.truncated) {
      segment->beyond_of[at] = segment->beyond.samples;
      env.Encode(&segment->beyond);
    }
    slice->EndStep(i, result);
  }
}

bool Replay::Find(int64_t sample, int n, float gamma, Transition* transition) const {
  int64_t page = sample / page_samples();
  const int64_t within = sample % page_samples();
  const Slice& slice = slices_[within / segment_samples()];
  int at = static_cast<int>(within % segment_samples());
  const Segment* segment = &slice.ring[SlotOf(page)];
  gamma *= static_cast<float>(slice.envs[at % envs()]->Discount());
  *transition = {.questions = &segment->questions,
                 .question = at,
                 .choice = segment->choices[at],
                 .discount = 1};
  for (int k = 0; k < n; ++k) {
    transition->reward += transition->discount * segment->rewards[at];
    transition->discount *= gamma * segment->discounts[at];
    if (segment->ends[at] == StepEnd::kTerminated) {
      transition->discount = 0;
      return true;
    }
    if (segment->ends[at] == StepEnd::kTruncated) {
      transition->next_questions = &segment->beyond;
      transition->next = segment->beyond_of[at];
      return true;
    }
    at += envs();
    if (at >= segment_samples()) {
      if (++page == pages_) return false;
      segment = &slice.ring[SlotOf(page)];
      at -= static_cast<int>(segment_samples());
    }
  }
  transition->next_questions = &segment->questions;
  transition->next = at;
  return true;
}

std::vector<EnvCursor> Replay::OldestCursors() const {
  std::vector<EnvCursor> cursors;
  for (const Slice& slice : slices_) {
    for (int i = 0; i < envs(); ++i) {
      cursors.push_back(pages_ > 0 ? slice.ring[SlotOf(0)].start[i] : slice.envs[i]->cursor());
    }
  }
  return cursors;
}

std::vector<int32_t> Replay::Choices() const {
  std::vector<int32_t> choices;
  for (int64_t page = 0; page < pages_; ++page) {
    for (const Slice& slice : slices_) {
      const std::vector<int32_t>& part = slice.ring[SlotOf(page)].choices;
      choices.insert(choices.end(), part.begin(), part.end());
    }
  }
  return choices;
}

bool Replay::IsPossible(const Segment& segment, const Slice& slice, int step) const {
  for (int i = 0; i < envs(); ++i) {
    const int32_t choice = segment.choices[step * envs() + i];
    if (choice < 0 || choice >= slice.envs[i]->candidate_count() + may_stop_) return false;
  }
  return true;
}

Result<void> Replay::Refill(std::span<const EnvCursor> cursors, std::span<const int32_t> choices,
                            int64_t pages_max, ThreadPool* pool) {
  CHECK_EQ(cursors.size(), static_cast<size_t>(options_.envs));
  const auto pages = static_cast<int64_t>(choices.size()) / page_samples();
  if (choices.size() % page_samples() != 0 || pages_max < (pages > 0 ? 2 : 0) ||
      pages > pages_max ||
      pages_max > std::max<int64_t>(2, options_.samples_max / page_samples())) {
    return Fail(ErrorCode::kCorruption,
                "the replay memory of {} choices in at most {} pages is none of these options",
                choices.size(), pages_max);
  }
  pages_ = first_ = 0;
  pages_max_ = pages_max;
  for (int64_t page = 0; page < pages; ++page) NewSlot();
  std::vector<Result<void>> results(slices_.size());
  pool->ParallelFor(static_cast<int>(slices_.size()), [&](int index, int) {
    Slice& slice = slices_[index];
    results[index] = slice.Restore(cursors.subspan(index * envs(), envs()));
    for (int64_t page = 0; page < pages && results[index]; ++page) {
      Segment& segment = slice.ring[SlotOf(page)];
      const auto part =
          choices.subspan(page * page_samples() + index * segment_samples(), segment_samples());
      segment.choices.assign(part.begin(), part.end());
      results[index] = PlayPage(&slice, &segment, [&](int step) -> Result<void> {
        if (IsPossible(segment, slice, step)) return {};
        return Fail(ErrorCode::kCorruption,
                    "replay.choices has a choice that its question does not offer");
      });
    }
  });
  for (Result<void>& result : results) TRY(std::move(result));
  return {};
}

void Replay::AddWorkspaces(std::vector<nn::Workspace*>* all) {
  for (Slice& slice : slices_) all->push_back(slice.workspace.get());
}

}  // namespace rudderfish
