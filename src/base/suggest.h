// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

// Pieces of messages about input that does not fit: "did you mean ...?" for keys, policies, units
// and commands that we do not know, and the range in which a number is expected.

namespace rudderfish {

// Fewest insertions, deletions, substitutions and swaps of neighbours that turn one word into the
// other, no part edited twice (Damerau 1964; optimal string alignment).
int EditDistance(std::string_view a, std::string_view b);

// The known word at the smallest distance, the first of equals, if at most a third of the longer
// word's letters differ; else empty. Upper and lower case count as equal.
std::string_view Nearest(std::string_view word, std::span<const std::string_view> known);

// "; did you mean `workloads`?" or nothing.
std::string DidYouMean(std::string_view word, std::span<const std::string_view> known);

// "an integer from 0 to 100", "a number of at least 0"; a bound at the end of the type's range is
// none.
std::string RangeInWords(std::string_view noun, int64_t low, int64_t high);
std::string RangeInWords(std::string_view noun, double low, double high);

}  // namespace rudderfish
