// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "control/mode.h"
#include "run/config.h"
#include "run/rights.h"

// What `run` would do by a configuration, and whether its clusters allow it. Starts nothing.

namespace rudderfish {

// Gives each kind of decision the mode that it begins in: that which promotions have reached, where
// the journal keeps it and the file names the same mode as then. Says which, a line each.
std::string TakeKeptModes(Config* config);

// For people: --dry-run. Errors as of Host::Start; asks no cluster.
Result<std::string> DescribeRun(const Config& config);

// Whether the cluster allows what all kinds of the configuration need.
Result<RightsReport> ReviewRunRights(const Config& config);

// What the cluster would have to allow for this kind to be in this mode, one line each. A cluster
// that does not answer is no reason to refuse: the evidence says whether it may be done.
std::vector<std::string> MissingRights(const Config& config, std::string_view kind, Mode mode);

}  // namespace rudderfish
