// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/application.h"
#include "kube/access_review.h"
#include "run/config.h"

// Whether a configuration's live cluster lets us do what `run` would: asked of the cluster itself,
// which nothing is changed by.

namespace rudderfish {

// What the configuration's cluster says of rights. A cluster that is not there, or does not answer
// within 10 s, is no error: `not_reached` says why it was not asked. Credentials that it refuses
// are one, as is a kubeconfig that is wrong.
struct AllowedRights {
  std::string server;         // Its URL.
  std::string not_reached;    // Empty: it was asked,
  std::vector<bool> allowed;  // of each.
};

Result<AllowedRights> AskForRights(const Config& config, const std::vector<kube::Right>& rights);

struct RightsReport {
  std::string text;                  // Lines for people.
  std::vector<std::string> missing;  // Rules to add without which `run` would not start.
};

// Errors as of AskForRights; a cluster that was not reached is a line.
Result<RightsReport> ReviewRights(const Config& config,
                                  const std::vector<const Application*>& applications);

}  // namespace rudderfish
