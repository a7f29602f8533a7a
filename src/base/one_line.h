// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

// What others wrote, in our messages and logs: a file, a server, a command. Whatever it holds, the
// line stays one, and a terminal is not steered by it.

namespace rudderfish {

inline constexpr size_t kOneLineBytes = 400;

// Printable and on one line; of more than `bytes_max` bytes the first, and "...". Letters of UTF-8
// are kept whole; spaces at the end go.
std::string OneLine(std::string_view text, size_t bytes_max = kOneLineBytes);

}  // namespace rudderfish
