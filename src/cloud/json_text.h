// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

// What cloud/ reads of JSON besides what base/json.h offers.

namespace rudderfish {

// The text of a member, or an empty one where it is missing or null.
inline Result<std::string> TextAt(const JsonReader& object, std::string_view key) {
  TRY_ASSIGN(const auto found, object.Find(key));
  return found ? found->AsString() : std::string();
}

}  // namespace rudderfish
