// SPDX-License-Identifier: Apache-2.0
#include "cloud/split.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "base/one_line.h"

namespace rudderfish {
namespace {

constexpr double kSumTolerance = 0.01;  // Percent.

Result<RegionShare> ParseShare(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == 0 || equals == std::string_view::npos)
    return Invalid("expected REGION=PERCENT, found `{}`", OneLine(text));
  const std::string_view number = text.substr(equals + 1);
  double percent = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), percent);
  const bool is_number = error == std::errc() && end == number.data() + number.size();
  if (!is_number || !(percent >= 0 && percent <= 100)) {
    return Invalid("expected a percentage from 0 to 100 for {}, found `{}`",
                   OneLine(text.substr(0, equals)), OneLine(number));
  }
  return RegionShare{.region = std::string(text.substr(0, equals)), .share = percent / 100};
}

}  // namespace

Result<std::vector<RegionShare>> ParseSplit(std::string_view text) {
  std::vector<RegionShare> split;
  for (;;) {
    const size_t comma = text.find(',');
    TRY_ASSIGN(RegionShare one, ParseShare(text.substr(0, comma)));
    const bool twice = std::any_of(split.begin(), split.end(),
                                   [&](const auto& other) { return other.region == one.region; });
    if (twice) return Invalid("{} is named twice", OneLine(one.region));
    split.push_back(std::move(one));
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  double sum = 0;
  for (const RegionShare& one : split) sum += 100 * one.share;
  if (std::abs(sum - 100) > kSumTolerance)
    return Invalid("the shares sum to {:.4g} %; they must sum to 100 %", sum);
  for (RegionShare& one : split) one.share *= 100 / sum;
  return split;
}

std::vector<int> WeightsOf(std::span<const double> shares, int total) {
  CHECK_GT(total, 0);
  std::vector<int> weights;
  std::vector<double> remainders;
  for (const double share : shares) {
    CHECK(share >= 0);
    const double exact = share * total;
    weights.push_back(static_cast<int>(exact));
    remainders.push_back(exact - weights.back());
  }
  std::vector<int> order(shares.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return remainders[a] > remainders[b]; });
  int left = total - std::accumulate(weights.begin(), weights.end(), 0);
  CHECK_LE(left, static_cast<int>(shares.size()));
  for (const int i : order) {
    if (left <= 0) break;
    if (shares[i] <= 0) continue;  // A sum that is a hair off leaves no more than rounding does.
    ++weights[i];
    --left;
  }
  return weights;
}

std::string ShareText(double share) { return fmt::format("{:.1f} %", 100 * share); }

}  // namespace rudderfish
