// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/cluster_totals.h"
#include "model/objective.h"
#include "task/placement_preset.h"

// What a policy of placement was trained to believe beside what a cluster tells of itself: which
// types of node there are, what each draws and costs, and which pods come. A live cluster says none
// of it, so a checkpoint carries it, and its policy believes the same when live. Plain values.

namespace rudderfish {

struct PlacementFacts {
  std::vector<std::string> types;  // Of nodes; empty: they are unknown and do not matter.
  PlacementLaws laws;              // Kinds of node are positions in `types`.
  bool has_calls = false;          // Whether pods call each other.

  // Whether the laws tell one type from another: then each node's must be known.
  bool TypesMatter() const;
  // Position in `types`, or kNone.
  int TypeNamed(std::string_view name) const;

  bool operator==(const PlacementFacts&) const = default;
};

// Whether a live cluster and the facts together say what this term is. Latency to users they do
// for pods that wait, not for those already there; who calls whom they do not.
bool IsKnownLive(ObjectiveTerm term, const PlacementFacts& facts);

// JSON in one line, and back. Errors name `source` and the way to what is wrong.
std::string FactsText(const PlacementFacts& facts);
Result<PlacementFacts> ParseFacts(std::string_view text, std::string_view source);

// What a checkpoint says that it was trained for.
struct LearnedPlacement {
  std::filesystem::path checkpoint;
  std::string digest;  // SHA-256 of the file.
  Objective objective;
  std::optional<PlacementPreset> preset;
  std::optional<PlacementFacts> facts;  // Of an older version, or of several worlds: none.
};

// `path`: a checkpoint or a run folder. kFailedPrecondition if it is of another task.
Result<LearnedPlacement> ReadLearnedPlacement(const std::filesystem::path& path);

}  // namespace rudderfish
