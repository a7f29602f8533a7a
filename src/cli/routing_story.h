// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/json.h"
#include "control/journal_reader.h"

// What is known of the splits of routes: of decisions that were kept, and of a running controller's
// status. Pure functions; for decisions of all kinds: cli/decision_list.h.

namespace rudderfish {

// "eu 60, us 40": percent. Of a decision about VMs "4 VMs".
std::string SharesText(const RoutingDecision& decision, double RoutedRegion::*share);

// Why each region gets its share.
std::string RoutingStory(const StoredRouting& stored, UnixMillis now);
OrderedJson RoutingDetails(const StoredRouting& stored);

// `decisions.routing` of a controller's status.
std::string RoutingText(const OrderedJson& routing);

}  // namespace rudderfish
