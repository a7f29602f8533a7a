// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/graph_batch.h"
#include "base/quad.h"
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

inline float Gib(float bytes) { return bytes * static_cast<float>(1 / kBytesPerGib); }
inline float Cores(float millis) { return millis * 1e-3f; }
inline float Clip(float x, float limit) { return std::min(std::max(x, -limit), limit); }

// Values far outside of what training saw would carry a network anywhere.
inline constexpr float kFeatureLimit = 8;

template <const auto& kTable>
inline constexpr int kFeatureCount =
    static_cast<int>(std::tuple_size_v<std::remove_cvref_t<decltype(kTable)>>);

// Whether the table has a feature there that is read from such a view.
template <const auto& kTable, class View>
constexpr bool ReadsFrom(int index) {
  return index < kFeatureCount<kTable> &&
         std::holds_alternative<float (*)(const View&)>(kTable[index].get);
}
template <const auto& kTable, class View>
constexpr bool AnyReadsFrom(int first) {
  bool any = false;
  for (int i = first; i < first + kQuad; ++i) any |= ReadsFrom<kTable, View>(i);
  return any;
}

// A feature's value and what it is multiplied with; 0 if it is read from another view.
template <const auto& kTable, int kIndex, class View>
float Value(const View& view) {
  if constexpr (ReadsFrom<kTable, View>(kIndex)) {
    constexpr auto kGet = std::get<float (*)(const View&)>(kTable[kIndex].get);
    return kGet(view);
  } else {
    return 0;
  }
}
template <const auto& kTable, int kIndex>
constexpr float PerScale() {
  return kIndex < kFeatureCount<kTable> ? 1.0f / kTable[kIndex].scale : 1.0f;
}

// Features [kFirst, kFirst + kQuad) as a network sees them; 0 for those of other views. Scaled and
// clipped at once.
template <const auto& kTable, int kFirst, class View>
Quad ReadQuad(const View& view) {
  constexpr Quad kPerScale{PerScale<kTable, kFirst>(), PerScale<kTable, kFirst + 1>(),
                           PerScale<kTable, kFirst + 2>(), PerScale<kTable, kFirst + 3>()};
  const Quad values{Value<kTable, kFirst>(view), Value<kTable, kFirst + 1>(view),
                    Value<kTable, kFirst + 2>(view), Value<kTable, kFirst + 3>(view)};
  return Min(Max(values * kPerScale, AllOf(-kFeatureLimit)), AllOf(kFeatureLimit));
}

// Calls visit(std::integral_constant<int, first>) for each quad of a row of `kWidth` floats.
template <int kWidth, class Visit>
void ForEachQuad(Visit&& visit) {
  static_assert(kWidth % kQuad == 0);
  [&]<int... kIndex>(std::integer_sequence<int, kIndex...>) {
    (visit(std::integral_constant<int, kIndex * kQuad>{}), ...);
  }
  (std::make_integer_sequence<int, kWidth / kQuad>{});
}

// Writes a row: the features that are read from `view`, 0 elsewhere.
template <const auto& kTable, int kWidth, class View>
void WriteRow(const View& view, float* row) {
  static_assert(kFeatureCount<kTable> <= kWidth);
  ForEachQuad<kWidth>([&](auto first) {
    if constexpr (AnyReadsFrom<kTable, View>(first)) {
      StoreQuad(ReadQuad<kTable, first>(view), row + first);
    } else {
      StoreQuad(Quad{}, row + first);
    }
  });
}

// Writes of a row the quads with features that are read from `view`.
template <const auto& kTable, int kWidth, class View>
void WritePart(const View& view, float* row) {
  ForEachQuad<kWidth>([&](auto first) {
    if constexpr (AnyReadsFrom<kTable, View>(first)) {
      StoreQuad(ReadQuad<kTable, first>(view), row + first);
    }
  });
}

// Writes a row whose features are read from three views: `a` and `b` are the parts written from
// views A and B, of which only what those features are read.
template <const auto& kTable, int kWidth, class A, class B, class View>
void JoinRows(const View& view, const float* a, const float* b, float* row) {
  static_assert(kFeatureCount<kTable> <= kWidth);
  ForEachQuad<kWidth>([&](auto first) {
    constexpr bool kOfA = AnyReadsFrom<kTable, A>(first), kOfB = AnyReadsFrom<kTable, B>(first);
    Quad features{};
    if constexpr (kOfA && kOfB) {
      features = LoadQuad(a + first) + LoadQuad(b + first);
    } else if constexpr (kOfA || kOfB) {
      features = LoadQuad((kOfA ? a : b) + first);
    }
    if constexpr (AnyReadsFrom<kTable, View>(first)) features += ReadQuad<kTable, first>(view);
    StoreQuad(features, row + first);
  });
}

template <class... Views, size_t kCount>
std::vector<FeatureDescription> Describe(const std::array<Feature<Views...>, kCount>& table) {
  std::vector<FeatureDescription> descriptions;
  for (const auto& f : table) descriptions.push_back({f.name, f.unit, f.scale, f.meaning});
  return descriptions;
}

// Room for `count` more rows, to be written.
float* AddRows(int count, int width, FloatRows* rows);

// Room for the ends of `count` more candidates.
CandidateEnds* AddEnds(int count, GraphBatch* batch);

// Ends a sample whose rows and ends are written: adds who runs where and who calls whom, which are
// the same for every preset.
void CloseSample(const QuestionSummary& q, GraphBatch* batch);

// Closes a sample that has candidates and a context alone.
void CloseWithoutTables(GraphBatch* batch);

}  // namespace rudderfish
