// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/rng.h"
#include "kube/lease.h"
#include "run/config.h"

// How this program stands for election: under which name, for how long.

namespace rudderfish {

// The host's name is the pod's, which people know; a restarted program on the same host has another
// identity.
std::string NewIdentity(Rng rng);

// In which the modes and a pause are kept for the next leader (control/kept_mode.h).
inline constexpr const char* kStandingAnnotation = "rudderfish.io/standing";

// In the proportions of client-go's: 15, 10, 2 s.
kube::LeaseOptions LeaseOptionsOf(const LeaderElectionConfig& config, std::string identity);

}  // namespace rudderfish
