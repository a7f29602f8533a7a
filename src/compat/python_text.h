// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/json.h"

// Values as Python writes them, for clients that compare text: repr() of a float, and json.dumps()
// with its defaults (": " and ", ", ASCII alone, keys in the order in which they were set).

namespace rudderfish {

// 12.34, 0.0, 1e-05, 1e+16. REQUIRES: finite.
std::string PythonFloat(double value);

// round(value, 2). REQUIRES: finite.
double PythonRoundedToCents(double value);

std::string PythonJson(const OrderedJson& value);

}  // namespace rudderfish
