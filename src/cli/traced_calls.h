// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "cli/arguments.h"
#include "cli/cluster_source.h"
#include "cli/commands.h"
#include "cluster/application.h"

// `profile --traces`: reads the traces, puts what they show into the application, says so, and
// writes it to --application-out.

namespace rudderfish {

struct TracedCalls {
  std::shared_ptr<const Application> application;
  std::string comment;  // Lines of YAML that say what comes from how many spans.
};

// Whether --traces is the address of a server, which is asked for the time of --for.
bool IsTraceServer(const Arguments& arguments);

// REQUIRES: --traces was given.
Result<TracedCalls> ReadTracedCalls(const Arguments& arguments, const Session& session,
                                    const std::shared_ptr<const Application>& application,
                                    const ClusterSource& source);

}  // namespace rudderfish
