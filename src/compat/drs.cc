// SPDX-License-Identifier: Apache-2.0
#include "compat/drs.h"

#include <charconv>
#include <cmath>

#include "base/one_line.h"
#include "compat/python_text.h"

namespace rudderfish {
namespace {

constexpr std::string_view kSpaces = " \t\r\n";

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1);
}

std::optional<std::string> PercentDecoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i] == '+' ? ' ' : text[i];
      continue;
    }
    unsigned byte = 0;
    if (i + 2 >= text.size()) return std::nullopt;
    const auto [end, error] = std::from_chars(&text[i] + 1, &text[i] + 3, byte, 16);
    if (error != std::errc{} || end != &text[i] + 3) return std::nullopt;
    decoded += static_cast<char>(byte);
    i += 2;
  }
  return decoded;
}

}  // namespace

std::string DrsStateText(const DrsState& state) {
  std::string text = "(";
  for (const double value : state) {
    if (text.size() > 1) text += ", ";
    text += PythonFloat(PythonRoundedToCents(value));
  }
  return text + ")";
}

Result<DrsState> ParseDrsState(std::string_view text) {
  const auto refuse = [&] {
    return Invalid("`{}`: expected six numbers as (cpu, memory, rx, tx, read, write)",
                   OneLine(text, 100));
  };
  std::string_view rest = Trimmed(text);
  if (!rest.starts_with('(') || !rest.ends_with(')') || rest.size() < 2) return refuse();
  rest = rest.substr(1, rest.size() - 2);
  DrsState state{};
  for (size_t i = 0; i < state.size(); ++i) {
    const size_t comma = rest.find(',');
    if ((comma == std::string_view::npos) != (i + 1 == state.size())) return refuse();
    const std::string_view word = Trimmed(rest.substr(0, comma));
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), state[i]);
    if (word.empty() || error != std::errc{} || end != word.data() + word.size() ||
        !std::isfinite(state[i]) || state[i] < 0) {
      return refuse();
    }
    if (comma != std::string_view::npos) rest.remove_prefix(comma + 1);
  }
  return state;
}

Result<std::string> FormField(std::string_view body, std::string_view name) {
  while (!body.empty()) {
    const size_t end = body.find('&');
    const std::string_view pair = body.substr(0, end);
    body.remove_prefix(end == std::string_view::npos ? body.size() : end + 1);
    const size_t equals = pair.find('=');
    const auto key = PercentDecoded(pair.substr(0, equals));
    const auto value = PercentDecoded(equals == std::string_view::npos ? std::string_view()
                                                                       : pair.substr(equals + 1));
    if (!key || !value) return Invalid("the form has a % that is not followed by two digits");
    if (*key == name) return *value;
  }
  return Invalid("the form has no field `{}`", name);
}

}  // namespace rudderfish
