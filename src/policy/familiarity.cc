// SPDX-License-Identifier: Apache-2.0
#include "policy/familiarity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "task/placement.h"

namespace rudderfish {
namespace {

constexpr float kWidthMin = 0.1F;  // Of a range: features are scaled to about 1.
constexpr double kTail = 0.001;    // Of a sample that is left out at either end.
constexpr int kCandidatesOfOne = 4;

size_t CandidateFeatures() { return PlacementTask::Features().candidate.size(); }
size_t ContextFeatures() { return PlacementTask::Features().context.size(); }

void Look(const Familiarity::Ranges& ranges, std::span<const float> row, bool is_of_candidate,
          Strangeness* most) {
  CHECK_LE(ranges.low.size(), row.size());
  for (size_t i = 0; i < ranges.low.size(); ++i) {
    const float low = ranges.low[i], high = ranges.high[i];
    const float outside = std::max(low - row[i], row[i] - high);
    if (outside <= 0) continue;
    const double score = outside / std::max(high - low, kWidthMin);
    if (score <= most->score) continue;
    *most = {.score = score,
             .is_of_candidate = is_of_candidate,
             .feature = static_cast<int>(i),
             .value = row[i],
             .low = low,
             .high = high};
  }
}

Familiarity::Ranges RangesOf(std::span<const float> rows, size_t width) {
  Familiarity::Ranges ranges;
  const size_t count = rows.size() / width;
  if (count == 0) return ranges;
  const auto cut = static_cast<size_t>(kTail * static_cast<double>(count));
  std::vector<float> column(count);
  for (size_t i = 0; i < width; ++i) {
    for (size_t row = 0; row < count; ++row) column[row] = rows[row * width + i];
    std::sort(column.begin(), column.end());
    ranges.low.push_back(column[cut]);
    ranges.high.push_back(column[count - 1 - cut]);
  }
  return ranges;
}

void JoinRanges(const Familiarity::Ranges& more, Familiarity::Ranges* ranges) {
  CHECK_EQ(more.low.size(), ranges->low.size());
  for (size_t i = 0; i < more.low.size(); ++i) {
    ranges->low[i] = std::min(ranges->low[i], more.low[i]);
    ranges->high[i] = std::max(ranges->high[i], more.high[i]);
  }
}

}  // namespace

void Familiarity::Join(const Familiarity& other) {
  if (other.empty()) return;
  if (empty()) {
    *this = other;
    return;
  }
  JoinRanges(other.candidate, &candidate);
  JoinRanges(other.context, &context);
}

Strangeness StrangenessOf(const Familiarity& familiarity, std::span<const float> candidate,
                          std::span<const float> context) {
  Strangeness most;
  Look(familiarity.context, context, false, &most);
  Look(familiarity.candidate, candidate, true, &most);
  return most;
}

std::string StrangenessText(const Strangeness& strangeness) {
  if (strangeness.feature < 0) return "";
  const FeatureTable& table = PlacementTask::Features();
  const auto& features = strangeness.is_of_candidate ? table.candidate : table.context;
  const FeatureDescription& feature = features[static_cast<size_t>(strangeness.feature)];
  const auto real = [&](float value) { return value * feature.scale; };
  return fmt::format("`{}` is {:.3g}{}{}, of {:.3g} to {:.3g} in training", feature.name,
                     real(strangeness.value), feature.unit.empty() ? "" : " ", feature.unit,
                     real(strangeness.low), real(strangeness.high));
}

void FamiliaritySample::Add(const GraphBatch& batch, int chosen) {
  CHECK_EQ(batch.samples, 1);
  const auto add = [](const FloatRows& rows, int width, int row, size_t features,
                      std::vector<float>* to) {
    const auto begin = rows.begin() + static_cast<long>(row) * width;
    to->insert(to->end(), begin, begin + static_cast<long>(features));
  };
  add(batch.context, batch.widths.context, 0, ContextFeatures(), &contexts_);
  const int count = batch.candidate_begin[1];
  add(batch.candidates, batch.widths.candidate, chosen, CandidateFeatures(), &candidates_);
  for (int i = 1; i < std::min(count, kCandidatesOfOne); ++i) {
    const int row = count <= kCandidatesOfOne ? i : i * (count - 1) / (kCandidatesOfOne - 1);
    add(batch.candidates, batch.widths.candidate, row, CandidateFeatures(), &candidates_);
  }
}

void FamiliaritySample::Append(const FamiliaritySample& other) {
  candidates_.insert(candidates_.end(), other.candidates_.begin(), other.candidates_.end());
  contexts_.insert(contexts_.end(), other.contexts_.begin(), other.contexts_.end());
}

Familiarity FamiliaritySample::Ranges() const {
  return {.candidate = RangesOf(candidates_, CandidateFeatures()),
          .context = RangesOf(contexts_, ContextFeatures())};
}

}  // namespace rudderfish
