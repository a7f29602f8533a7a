// SPDX-License-Identifier: Apache-2.0
#include "base/escape.h"

#include <fmt/format.h>

#include <cstdint>
#include <iterator>

namespace rudderfish {
namespace {

// The character at the start of `text`, and how many bytes it takes; 0 bytes: this is no UTF-8.
struct Character {
  uint32_t code = 0;
  size_t bytes = 0;
};

Character FirstOf(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return {first, 1};
  const size_t bytes = first >= 0xF5   ? 0
                       : first >= 0xF0 ? 4
                       : first >= 0xE0 ? 3
                       : first >= 0xC2 ? 2
                                       : 0;
  if (bytes == 0 || text.size() < bytes) return {};
  uint32_t code = first & (0x7FU >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xC0) != 0x80) return {};
    code = code << 6 | (next & 0x3F);
  }
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < kSmallest[bytes] || code > 0x10FFFF || is_surrogate) return {};
  return {code, bytes};
}

// Terminals act on controls, and show what follows a change of direction in another order.
bool IsShown(uint32_t code) {
  const bool is_control = code < 0x20 || (code >= 0x7F && code < 0xA0);
  const bool ends_line = code == 0x2028 || code == 0x2029;
  const bool is_direction = (code >= 0x200B && code <= 0x200F) ||
                            (code >= 0x202A && code <= 0x202E) ||
                            (code >= 0x2060 && code <= 0x2069) || code == 0xFEFF;
  return !is_control && !ends_line && !is_direction;
}

}  // namespace

bool IsPrintable(std::string_view text) {
  while (!text.empty()) {
    const Character first = FirstOf(text);
    if (first.bytes == 0 || !IsShown(first.code)) return false;
    text.remove_prefix(first.bytes);
  }
  return true;
}

std::string Escaped(std::string_view text) {
  std::string line;
  line.reserve(text.size());
  while (!text.empty()) {
    const Character first = FirstOf(text);
    if (first.bytes > 0 && IsShown(first.code)) {
      line += text.substr(0, first.bytes);
    } else if (text[0] == '\n') {
      line += "\\n";
    } else if (text[0] == '\t') {
      line += "\\t";
    } else if (first.bytes <= 1) {
      fmt::format_to(std::back_inserter(line), "\\x{:02x}", static_cast<unsigned char>(text[0]));
    } else {
      fmt::format_to(std::back_inserter(line), "\\u{{{:x}}}", first.code);
    }
    text.remove_prefix(first.bytes == 0 ? 1 : first.bytes);
  }
  return line;
}

std::string PercentEncoded(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.' || c == '~';
    if (is_plain) {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    }
  }
  return encoded;
}

}  // namespace rudderfish
