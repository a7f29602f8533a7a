// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cloud/weighted_object.h"
#include "kube/api_client.h"

// The number of pods of one Deployment, read and set on its API server. Where a
// HorizontalPodAutoscaler, a controller or another field manager decides about it, that is an
// error.

namespace rudderfish {

struct DeploymentSight {
  int pods = 0;             // That are wanted.
  int ready = 0;            // That serve.
  bool is_current = false;  // Its controller has seen what is wanted.
};

// `json`: of the API server. kFailedPrecondition: somebody else decides how many pods it has.
Result<DeploymentSight> ReadDeployment(std::string_view json, const ObjectChoice& choice);

// Which HorizontalPodAutoscaler of a list scales the Deployment; none: no one does.
Result<std::optional<std::string>> AutoscalerOf(std::string_view json,
                                                const ObjectChoice& deployment);

class DeploymentScale {
 public:
  // REQUIRES: `client` outlives this.
  DeploymentScale(kube::ApiClient* client, ObjectChoice choice);

  Result<DeploymentSight> Look();

  // To have so many from now on, unless that was changed since Look. kConflict: it was. REQUIRES:
  // Look has succeeded.
  Result<void> Set(int pods);

 private:
  Result<std::string> Get(const std::string& path);

  kube::ApiClient* client_;
  ObjectChoice choice_;
  std::string path_;
  int pods_ = 0;  // As they were seen last.
};

}  // namespace rudderfish
