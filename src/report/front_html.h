// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/json.h"

// What a weight of carbon buys, as part of a page.

namespace rudderfish {

// `fronts`, each of FrontJson (evaluation/carbon_front.h) with "scenario" and "place": a figure and
// a table for each; empty without any.
std::string FrontsHtml(const OrderedJson& fronts);

}  // namespace rudderfish
