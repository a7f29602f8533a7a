// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "control/mode_ladder.h"
#include "control/placement_evidence.h"
#include "control/sqlite_placements.h"

// The evidence by which placement is promoted: comparisons with other schedulers, and what canary
// and control group have changed (control/placement_evidence.h). One thread.

namespace rudderfish {

inline constexpr ModeLadder::Kind kPlacementLadder{.name = "placement", .record = "comparison"};

class PlacementModeEvidence final : public ModeEvidence {
 public:
  struct Options {
    std::vector<std::string> schedulers;  // Whose choices count, as pods name them.
    double canary = 0;                    // Its share of pods.
    std::string cluster;                  // Of which evidence counts.
  };

  // Reads all of the journal's comparisons, which is better done before pods wait. What the
  // journal keeps of placements outlives it.
  static Result<std::unique_ptr<PlacementModeEvidence>> Open(Options options,
                                                             SqlitePlacements* placements);

  Result<std::vector<std::string>> Missing(const KeptMode& now, Mode to, int64_t from) override;
  Result<std::optional<std::string>> WhyWorse(UnixMillis since) override;
  Result<OrderedJson> Describe(const KeptMode& now) override;

 private:
  struct Evidence {
    ShadowEvidence shadow;
    TrialEvidence trial;
  };

  PlacementModeEvidence(Options options, SqlitePlacements* placements)
      : options_(std::move(options)), placements_(placements) {}
  EvidenceQuestion QuestionFrom(const KeptMode& now, int64_t number) const;
  Result<Evidence> Read(const KeptMode& now, int64_t from) const;
  Result<OrderedJson> SchedulersJson(const KeptMode& now) const;

  Options options_;
  SqlitePlacements* placements_;
};

}  // namespace rudderfish
