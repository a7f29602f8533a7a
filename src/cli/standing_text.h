// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "base/json.h"

// Parts of `status` that kinds of decision have in common, from a controller's answer.

namespace rudderfish {

// The mode that a kind has reached, the evidence so far, and what is missing for the next mode.
std::string StandingText(const OrderedJson& standing,
                         const std::function<std::string(const OrderedJson&)>& evidence_text);

// A table of signals with their ages, after an empty line; empty: there are none.
std::string SignalsText(const OrderedJson& signals);

}  // namespace rudderfish
