// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/graph_batch.h"
#include "task/question_summary.h"
#include "task/task.h"

// How tables of features become rows of a batch. A table is known to the compiler: each feature is
// read in line, from the view that its reader takes, and those of other views are left out.

namespace rudderfish {

template <class... Views>
struct Feature {
  std::string_view name;
  std::string_view unit;
  float scale;
  std::variant<float (*)(const Views&)...> get;
  std::string_view meaning;
};

inline float Gib(int64_t bytes) {
  return static_cast<float>(bytes) * static_cast<float>(1 / kBytesPerGib);
}
inline float Cores(int64_t millis) { return static_cast<float>(millis) * 1e-3f; }
inline float Clip(float x, float limit) { return std::min(std::max(x, -limit), limit); }

// Values far outside of what training saw would carry a network anywhere.
inline constexpr float kFeatureLimit = 8;

enum class Others { kZero, kKeep };  // What becomes of features that are read from other views.

// Writes the features that are read from `view`, in line: the table is known to the compiler.
template <const auto& kTable, Others kOthers, size_t kIndex, class View>
void WriteFeature(const View& view, float* row) {
  using Get = float (*)(const View&);
  constexpr const auto& kFeature = kTable[kIndex];
  if constexpr (std::holds_alternative<Get>(kFeature.get)) {
    constexpr Get kGet = std::get<Get>(kFeature.get);
    row[kIndex] = Clip(kGet(view) * (1.0f / kFeature.scale), kFeatureLimit);
  } else if constexpr (kOthers == Others::kZero) {
    row[kIndex] = 0;
  }
}

template <const auto& kTable, Others kOthers = Others::kZero, class View>
void WriteRow(const View& view, float* row) {
  constexpr size_t kCount = std::tuple_size_v<std::remove_cvref_t<decltype(kTable)>>;
  [&]<size_t... kIndex>(std::index_sequence<kIndex...>) {
    (WriteFeature<kTable, kOthers, kIndex>(view, row), ...);
  }
  (std::make_index_sequence<kCount>{});
}

template <class... Views, size_t kCount>
std::vector<FeatureDescription> Describe(const std::array<Feature<Views...>, kCount>& table) {
  std::vector<FeatureDescription> descriptions;
  for (const auto& f : table) descriptions.push_back({f.name, f.unit, f.scale, f.meaning});
  return descriptions;
}

// Room for `count` more rows of zeros.
float* AddRows(int count, int width, std::vector<float>* rows);

// Room for the ends of `count` more candidates.
CandidateEnds* AddEnds(int count, GraphBatch* batch);

// Ends a sample whose rows and ends are written: adds who runs where and who calls whom, which are
// the same for every preset.
void CloseSample(const QuestionSummary& q, GraphBatch* batch);

}  // namespace rudderfish
