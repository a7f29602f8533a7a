// SPDX-License-Identifier: Apache-2.0
#include "telemetry/header_file.h"

#include <algorithm>

#include "base/files.h"

namespace rudderfish {
namespace {

constexpr size_t kHeadersMax = 64;
constexpr size_t kLineBytesMax = 16 << 10;
constexpr std::string_view kNotShown = "; not shown, as it may be a secret";

// RFC 9110, 5.6.2: token.
bool IsTokenCharacter(char c) {
  constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         kOthers.find(c) != std::string_view::npos;
}

bool IsHeaderText(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7F);
  });
}

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return "";
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

// What decides where a request ends is not for others to say.
bool IsOurs(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return lower == "content-length" || lower == "transfer-encoding" || lower == "content-type" ||
         lower == "connection";
}

Result<std::string> HeaderOf(std::string_view line) {
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return Invalid("expected `Name: value`{}", kNotShown);
  const std::string_view name = line.substr(0, colon);
  if (name.empty() || !std::all_of(name.begin(), name.end(), IsTokenCharacter)) {
    return Invalid("expected a header's name before the colon{}", kNotShown);
  }
  const std::string_view value = Trimmed(line.substr(colon + 1));
  if (value.empty()) return Invalid("{}: expected a value after the colon", name);
  if (!IsHeaderText(value) || value.size() > kLineBytesMax) {
    return Invalid("{}: its value is too long or not printable{}", name, kNotShown);
  }
  if (IsOurs(name)) return Invalid("{}: is written by the program itself: leave it out", name);
  return fmt::format("{}: {}", name, value);
}

}  // namespace

Result<std::vector<std::string>> ParseHeaderFile(std::string_view text,
                                                 std::string_view source_name) {
  std::vector<std::string> headers;
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::string_view content = Trimmed(line);
    if (content.empty() || content.starts_with('#')) continue;
    Result<std::string> header = HeaderOf(content);
    if (!header) return Invalid("{}:{}: {}", source_name, number, header.error().message);
    if (headers.size() == kHeadersMax) {
      return Invalid("{}:{}: expected at most {} headers", source_name, number, kHeadersMax);
    }
    headers.push_back(*std::move(header));
  }
  if (headers.empty()) return Invalid("{}: expected `Name: value`, found nothing", source_name);
  return headers;
}

Result<std::string> ParseBearerToken(std::string_view text, std::string_view source_name) {
  const std::string_view token = Trimmed(text);
  if (token.empty()) return Invalid("{}: expected a token, found nothing", source_name);
  const bool is_one_word = token.find_first_of(" \t\r\n") == std::string_view::npos;
  if (!is_one_word || !IsHeaderText(token) || token.size() > kLineBytesMax) {
    return Invalid("{}: expected a token, one word on one line{}", source_name, kNotShown);
  }
  return fmt::format("Authorization: Bearer {}", token);
}

Result<std::vector<std::string>> ReadHeaders(const HeaderFiles& files) {
  std::vector<std::string> headers;
  if (!files.headers.empty()) {
    TRY_ASSIGN(const std::string text, ReadFile(files.headers));
    TRY_ASSIGN(headers, ParseHeaderFile(text, files.headers.native()));
  }
  if (!files.bearer_token.empty()) {
    TRY_ASSIGN(const std::string text, ReadFile(files.bearer_token));
    TRY_ASSIGN(std::string header, ParseBearerToken(text, files.bearer_token.native()));
    headers.push_back(std::move(header));
  }
  return headers;
}

}  // namespace rudderfish
