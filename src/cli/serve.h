// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/result.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "run/node_chooser.h"
#include "serve/health.h"

// `rudderfish serve SYSTEM`: one function for each system whose requests we answer, and what those
// that place pods on a live cluster share. Options that a system does not take are refused before
// its function is called.

namespace rudderfish {

Result<ExitStatus> ServeReach(const Arguments& arguments, const Session& session);
Result<ExitStatus> ServeDrs(const Arguments& arguments, const Session& session);
Result<ExitStatus> ServeSuggestions(const Arguments& arguments, const Session& session);

// How long an asker may be kept waiting; schedulers place no other pod meanwhile.
inline constexpr Duration kChooserPatience = std::chrono::seconds(2);

// By --policy, --objective, --kubeconfig and --context.
Result<std::unique_ptr<NodeChooser>> ChooserOf(const Arguments& arguments, const Clock* clock);

// /livez and /readyz by what the chooser says; without one all is well. It outlives both.
void AddChooserChecks(const NodeChooser* chooser, HealthChecks* live, HealthChecks* ready);

}  // namespace rudderfish
