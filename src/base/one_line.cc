// SPDX-License-Identifier: Apache-2.0
#include "base/one_line.h"

namespace rudderfish {

std::string OneLine(std::string_view text, size_t bytes_max) {
  std::string line;
  for (const char c : text.substr(0, bytes_max)) {
    const bool is_plain = static_cast<unsigned char>(c) >= 0x20 && c != 0x7F;
    line += is_plain ? c : ' ';
  }
  if (text.size() > bytes_max) {
    while (!line.empty() && (line.back() & 0xC0) == 0x80) line.pop_back();
    if (!line.empty() && (line.back() & 0x80) != 0) line.pop_back();
    line += "...";
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

}  // namespace rudderfish
