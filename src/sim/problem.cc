// SPDX-License-Identifier: Apache-2.0
#include "sim/problem.h"

#include <utility>

namespace rudderfish {

Result<Problem> Problem::Of(std::shared_ptr<const Scenario> scenario) {
  TRY_ASSIGN(const LatencyLaw law, LatencyLaw::Named(scenario->law));
  TRY_ASSIGN(const MigrationOptions options, ParseMigrationOptions(scenario->task));
  return Problem{.scenario = std::move(scenario),
                 .task = std::make_shared<const MigrationTask>(options),
                 .law = law};
}

Result<Problem> Problem::Open(const std::filesystem::path& path) {
  TRY_ASSIGN(Scenario scenario, LoadScenario(path));
  TRY(CheckMovesPods(scenario, path.string()));
  return Of(std::make_shared<const Scenario>(std::move(scenario)));
}

}  // namespace rudderfish
