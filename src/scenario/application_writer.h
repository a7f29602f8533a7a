// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "cluster/application.h"

// Application files (scenario/application_file.h): a draft to complete by hand, from what a cluster
// shows (kube/draft_application.h), where who calls whom, latencies and execution times are not
// known and comments say so; and one of an application of which all is known.

namespace rudderfish {

// ParseApplication reads it back to an equal application. REQUIRES: endpoints without calls.
std::string ApplicationDraftText(const Application& application);

// ParseApplication reads it back to an equal application. `comment` stands on top. REQUIRES: kinds
// of node of one cpu_type have equal execution times, as in everything that was parsed.
std::string ApplicationText(const Application& application, std::string_view comment);

}  // namespace rudderfish
