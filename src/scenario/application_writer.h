// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cluster/application.h"

// An application file (scenario/application_file.h) to complete by hand, from what a cluster shows
// (kube/draft_application.h): who calls whom, latencies and execution times are not known, and
// comments say so.

namespace rudderfish {

// ParseApplication reads it back to an equal application. REQUIRES: endpoints without calls.
std::string ApplicationDraftText(const Application& application);

}  // namespace rudderfish
