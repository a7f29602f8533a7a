// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

// Text from outside (a name, a request, an answer) as it may be written to a log or a terminal.
// base/one_line.h shortens such text as well.

namespace rudderfish {

// Whether Escaped would leave `text` as it is; allocates nothing.
bool IsPrintable(std::string_view text);

// All of it, on one line: what is not printable is written as \n, \t, \xHH (a byte) or \u{HHHH} (a
// character that no one sees, or that turns the direction of writing).
std::string Escaped(std::string_view text);

// For a part of a URL or of a form: all but letters, digits, - . _ and ~ as %XX.
std::string PercentEncoded(std::string_view text);

}  // namespace rudderfish
