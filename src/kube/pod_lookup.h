// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

#include "base/result.h"
#include "cluster/scheduling_observer.h"
#include "kube/api_client.h"

// Where a pod is, as the API server says it now: newer than what any watch has told, for the answer
// is of a time after the question. Asked as a list of that name, which needs no right beyond those
// of who watches pods.

namespace rudderfish::kube {

// An error is an answer that says nothing about the pod.
void LookUpPod(ApiClient* client, const PodIdentity& pod,
               std::function<void(const Result<PodStanding>& found)> on_found);

namespace internal {

Result<PodStanding> ReadPodStanding(std::string_view list, const PodIdentity& pod);

}  // namespace internal

}  // namespace rudderfish::kube
