// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "cluster/scheduling_observer.h"
#include "kube/api_client.h"

// What a scheduler writes about a pod: its Binding, and the condition that says why it has none.

namespace rudderfish::kube {

// Binds exactly that pod, and no other of its name. 409: it has a node, or is another one.
// `may_go` as ApiRequest's: a caller that may not bind any more holds back what is not sent yet.
void BindPod(ApiClient* client, const PodIdentity& pod, const std::string& node,
             std::function<bool()> may_go, ApiClient::OnAnswer on_answer);

// Since when the condition is what it is: from now on, or as it was before, which is kept.
enum class Transition { kNow, kBefore };

// PodScheduled=False, reason Unschedulable. `may_go` as above.
ApiClient::Id MarkUnschedulable(ApiClient* client, const PodIdentity& pod,
                                const std::string& message, Transition since,
                                std::function<bool()> may_go, ApiClient::OnAnswer on_answer);

namespace internal {

std::string BindingBody(const PodIdentity& pod, const std::string& node);
// `now`: empty: the time of its transition stays.
std::string UnschedulableBody(const PodIdentity& pod, const std::string& message,
                              const std::string& now);

}  // namespace internal

}  // namespace rudderfish::kube
