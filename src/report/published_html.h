// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/json.h"

// The figures of earlier works next to ours, as part of a page.

namespace rudderfish {

// `quotes`, of QuotesOf (evaluation/published.h), as part of a page, with their cells if they are
// of several; empty without any.
std::string PublishedHtml(const OrderedJson& quotes);

}  // namespace rudderfish
