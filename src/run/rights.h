// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/application.h"
#include "run/config.h"

// Whether a configuration's live cluster lets us do what `run` would: asked of the cluster itself,
// which nothing is changed by.

namespace rudderfish {

struct RightsReport {
  std::string text;                  // Lines for people.
  std::vector<std::string> missing;  // Rules to add without which `run` would not start.
};

// A cluster that is not there, or does not answer within 10 s, is a line and no error. Credentials
// that it refuses are one, as is a kubeconfig that is wrong.
Result<RightsReport> ReviewRights(const Config& config,
                                  const std::vector<const Application*>& applications);

}  // namespace rudderfish
