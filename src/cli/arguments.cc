// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <thread>

#include "base/suggest.h"
#include "base/units.h"

namespace rudderfish {
namespace {

constexpr int64_t kThreadsMax = 1024;
constexpr double kSecondsMax = 1e9;

std::string Joined(std::span<const std::string_view> words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 < words.size() ? ", " : " or ";
    text += words[i];
  }
  return text;
}

}  // namespace

std::optional<std::string> Arguments::Text(std::string_view name) const {
  const auto found = options_.find(std::string(name));
  if (found == options_.end()) return std::nullopt;
  return found->second;
}

Result<std::string> Arguments::RequiredText(std::string_view name, std::string_view what) const {
  std::optional<std::string> text = Text(name);
  if (!text) return Invalid("--{} is missing: {}", name, what);
  if (text->empty()) return Invalid("--{}: is empty; expected {}", name, what);
  return *std::move(text);
}

Result<int64_t> Arguments::Integer(std::string_view name, int64_t fallback, int64_t low,
                                   int64_t high) const {
  const std::optional<std::string> text = Text(name);
  if (!text) return fallback;
  int64_t value = 0;
  const char* end = text->data() + text->size();
  const auto [stopped, error] = std::from_chars(text->data(), end, value);
  if (error == std::errc{} && stopped == end && value >= low && value <= high) return value;
  return Invalid("--{}: expected {}, found `{}`", name, RangeInWords("an integer", low, high),
                 *text);
}

Result<double> Arguments::Seconds(std::string_view name, double fallback) const {
  const std::optional<std::string> text = Text(name);
  if (!text) return fallback;
  TRY_ASSIGN(const double ms, OfOption(name, ParseDurationMs(*text)));
  const double seconds = ms / 1000;
  if (seconds > 0 && seconds <= kSecondsMax) return seconds;
  return Invalid("--{}: expected more than 0 and at most {:.0f} s, found `{}`", name, kSecondsMax,
                 *text);
}

Result<int> Arguments::Choice(std::string_view name, std::span<const std::string_view> accepted,
                              int fallback) const {
  const std::optional<std::string> text = Text(name);
  if (!text) return fallback;
  return OfOption(name, ChoiceOf(*text, accepted));
}

Result<std::vector<std::string>> Arguments::List(std::string_view name) const {
  const std::optional<std::string> text = Text(name);
  if (!text) return std::vector<std::string>{};
  return OfOption(name, SplitList(*text, ','));
}

Result<void> Arguments::Exclude(std::string_view name, std::string_view other) const {
  if (!Has(name) || !Has(other)) return {};
  return Invalid("--{} and --{} exclude each other; leave one out", name, other);
}

Result<void> Arguments::Require(std::string_view name, std::string_view other) const {
  if (!Has(name) || Has(other)) return {};
  return Invalid("--{0} goes with --{1}; add --{1}", name, other);
}

Result<std::vector<std::string>> SplitList(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    if (end == begin) return Invalid("a part of `{}` is empty", text);
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

namespace {

// At commas, but not within the brackets and quotes of YAML's lists, maps and strings.
Result<std::vector<std::string>> SplitChanges(std::string_view text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',' && depth == 0) {
      parts.emplace_back();
      continue;
    }
    if (depth < 0) break;
    parts.back() += c;
  }
  if (depth != 0 || quote != 0) return Invalid("brackets or quotes of `{}` do not match", text);
  for (const std::string& part : parts) {
    if (part.empty()) return Invalid("a part of `{}` is empty", text);
  }
  return parts;
}

}  // namespace

Result<std::vector<YamlChange>> ChangesOf(const Arguments& arguments, std::string_view example) {
  std::vector<YamlChange> changes;
  const std::optional<std::string> list = arguments.Text("set");
  if (!list) return changes;
  TRY_ASSIGN(const std::vector<std::string> pieces, OfOption("set", SplitChanges(*list)));
  for (const std::string& piece : pieces) {
    const size_t sign = piece.find('=');
    if (sign == 0 || sign == std::string::npos)
      return Invalid("--set: expected KEY=VALUE, such as {}, found \"{}\"", example, piece);
    changes.push_back({piece.substr(0, sign), piece.substr(sign + 1)});
  }
  return changes;
}

Result<int> ChoiceOf(std::string_view word, std::span<const std::string_view> accepted) {
  const auto found = std::find(accepted.begin(), accepted.end(), word);
  if (found != accepted.end()) return static_cast<int>(found - accepted.begin());
  return Invalid("expected {}, found `{}`{}", Joined(accepted), word, DidYouMean(word, accepted));
}

Result<double> ShareOf(const Arguments& arguments, std::string_view option) {
  const std::string text = arguments.Text(option).value_or("1");
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = error == std::errc{} && end == text.data() + text.size();
  if (!is_number || !(value > 0) || value > 1)
    return Invalid("--{}: expected a number above 0 and up to 1, found `{}`", option, text);
  return value;
}

Result<int> ThreadsOf(const Arguments& arguments) {
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  TRY_ASSIGN(const int64_t threads, arguments.Integer("threads", cores, 1, kThreadsMax));
  return static_cast<int>(threads);
}

Result<uint64_t> SeedOf(const Arguments& arguments) {
  TRY_ASSIGN(const int64_t seed,
             arguments.Integer("seed", 1, 0, std::numeric_limits<int64_t>::max()));
  return static_cast<uint64_t>(seed);
}

}  // namespace rudderfish
