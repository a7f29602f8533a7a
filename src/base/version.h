// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

// Which program this is.

namespace rudderfish {

// Of this build, as CHANGELOG.md has it: "0.1.0".
std::string_view ProgramVersion();

}  // namespace rudderfish
