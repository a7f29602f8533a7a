// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cluster/application.h"
#include "run/traced_application.h"
#include "telemetry/call_inference.h"

// What newer traces change of what is known of an application's calls. The Model is measured by its
// predictions, so it changes only by what traces show beyond chance:
//
//   calls that are made, or no longer    at once
//   in what order, or at once            if most traces agree on the order
//   an execution time                    by a tenth, and more than three standard errors
//   a payload                            by a fifth
//
// An endpoint of which there are few traces stays as it is, as one does that was not asked for
// anything. A pure function.

namespace rudderfish {

struct CallsUpdate {
  std::shared_ptr<const Application> application;  // Null: nothing has changed.
  std::vector<std::string> changes;                // A line for each endpoint that has.
};

// What becomes of endpoints that are not known. A file that names endpoints says which of them
// count; probes of kubelets and scrapes are requests as well.
enum class NewEndpoints { kAdd, kLeaveOut };

inline constexpr int64_t kFewestTraces = 20;  // Of an endpoint, to change it.

// REQUIRES: `traced` is what WithTracedCalls makes of `known` and `graph`.
CallsUpdate UpdateCalls(const Application& known, const TracedApplication& traced,
                        const InferredGraph& graph, NewEndpoints new_endpoints);

}  // namespace rudderfish
