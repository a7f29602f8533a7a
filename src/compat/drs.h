// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

// The wires of DRS (doi 10.1002/spe.3284), as its programs read and write them.
//
// Its monitor, TCP 9000: a client sends "getState", again and again on one connection, and gets the
// text of a Python tuple without an end of line:
//
//   (12.34, 56.78, 0.12, 0.34, 0.0, 1.58)
//
// cpu %, memory %, received, transmitted, read and written KiB a second. Its decision maker, TCP
// 1234: POST /choose with a form `podname=NAME`, answered by the name of a node as text.

namespace rudderfish {

inline constexpr std::string_view kDrsGetState = "getState";

// cpu, memory, received, transmitted, read, written.
using DrsState = std::array<double, 6>;

// Rounded to two decimals. REQUIRES: finite.
std::string DrsStateText(const DrsState& state);

// Six finite numbers, none below 0; spaces do not matter.
Result<DrsState> ParseDrsState(std::string_view text);

// A field of an application/x-www-form-urlencoded body, decoded; the first of that name. An error
// says what is wrong with the body, or that there is no such field.
Result<std::string> FormField(std::string_view body, std::string_view name);

}  // namespace rudderfish
