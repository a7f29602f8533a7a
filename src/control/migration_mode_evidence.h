// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/migration_evidence.h"
#include "control/mode_ladder.h"
#include "control/sqlite_moves.h"

// The evidence by which migration is promoted: its plans in shadow, and how right the Model was
// about changes of the cluster (control/migration_evidence.h). Each application counts by itself:
// what one lacks, all of migration lacks. One thread.

namespace rudderfish {

inline constexpr ModeLadder::Kind kMigrationLadder{.name = "migration", .record = "decision"};

class MigrationModeEvidence final : public ModeEvidence {
 public:
  // What the journal keeps of moves outlives it.
  explicit MigrationModeEvidence(SqliteMoves* moves) : moves_(moves) {}

  // Of which applications there is to be evidence.
  void Watch(std::vector<std::string> applications) { applications_ = std::move(applications); }

  Result<std::vector<std::string>> Missing(const KeptMode& now, Mode to, int64_t from) override;
  Result<std::optional<std::string>> WhyWorse(UnixMillis since) override;
  Result<OrderedJson> Describe(const KeptMode& now) override;

 private:
  Result<std::vector<PlanEvidence>> Read(const KeptMode& now, int64_t from) const;
  Result<std::vector<MoveTrial>> ReadTrials(UnixMillis since) const;

  SqliteMoves* moves_;
  std::vector<std::string> applications_;
};

}  // namespace rudderfish
