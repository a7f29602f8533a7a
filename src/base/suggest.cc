// SPDX-License-Identifier: Apache-2.0
#include "base/suggest.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace rudderfish {
namespace {

constexpr size_t kLongestWord = 100;  // A longer word is no typo of a known one.

std::string LowerCase(std::string_view word) {
  std::string lower(word);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

template <class Number>
std::string Range(std::string_view noun, Number low, Number high) {
  const bool any_low = low == std::numeric_limits<Number>::lowest();
  const bool any_high = high == std::numeric_limits<Number>::max();
  if (any_low && any_high) return std::string(noun);
  if (any_high) return fmt::format("{} of at least {}", noun, low);
  if (any_low) return fmt::format("{} of at most {}", noun, high);
  return fmt::format("{} from {} to {}", noun, low, high);
}

}  // namespace

int EditDistance(std::string_view a, std::string_view b) {
  // Rows i - 2, i - 1 and i of the table of distances between prefixes.
  std::vector<int> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, last);
    std::swap(last, row);
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int substituted = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, substituted});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

std::string_view Nearest(std::string_view word, std::span<const std::string_view> known) {
  if (word.size() > kLongestWord) return {};
  const std::string lower = LowerCase(word);
  std::string_view nearest;
  int least = static_cast<int>(kLongestWord);
  for (const std::string_view candidate : known) {
    if (candidate.size() > kLongestWord) continue;
    const int distance = EditDistance(lower, LowerCase(candidate));
    const int length = static_cast<int>(std::max(word.size(), candidate.size()));
    if (3 * distance <= length && distance < least) {
      least = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string DidYouMean(std::string_view word, std::span<const std::string_view> known) {
  const std::string_view nearest = Nearest(word, known);
  return nearest.empty() ? std::string{} : fmt::format("; did you mean `{}`?", nearest);
}

std::string RangeInWords(std::string_view noun, int64_t low, int64_t high) {
  return Range(noun, low, high);
}

std::string RangeInWords(std::string_view noun, double low, double high) {
  return Range(noun, low, high);
}

}  // namespace rudderfish
