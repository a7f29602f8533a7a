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

constexpr double kSumTolerance = 1e-6;  // Of percent, which people write with few digits.

}  // namespace

Result<Split> ParseSplit(std::string_view text) {
  Split split;
  double sum = 0;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    begin = end + 1;
    const size_t equals = part.find('=');
    double percent = 0;
    const char* const last = part.data() + part.size();
    if (equals == 0 || equals == std::string_view::npos)
      return Invalid("`{}`: expected REGION=PERCENT, as in eu=60,us=40", OneLine(part));
    const auto [stop, error] = std::from_chars(part.data() + equals + 1, last, percent);
    if (error != std::errc() || stop != last || !(percent >= 0 && percent <= 100)) {
      return Invalid("`{}`: expected a percentage from 0 to 100 after `{}=`", OneLine(part),
                     OneLine(part.substr(0, equals)));
    }
    const std::string_view region = part.substr(0, equals);
    for (const RegionShare& other : split) {
      if (other.region == region)
        return Invalid("region `{}` is given twice; give each region one share", OneLine(region));
    }
    split.push_back({std::string(region), percent});
    sum += percent;
  }
  if (std::abs(sum - 100) > kSumTolerance)
    return Invalid("the shares sum to {:.6g} %; they must sum to 100 %", sum);
  for (RegionShare& one : split) one.share /= sum;
  return split;
}

std::string SplitText(const Split& split) {
  std::string text;
  for (const RegionShare& one : split) {
    text += fmt::format("{}{} {:.4g} %", text.empty() ? "" : ", ", OneLine(one.region),
                        one.share * 100);
  }
  return text;
}

std::vector<int64_t> Quantise(std::span<const double> shares, int64_t total) {
  CHECK_GE(total, 0);
  std::vector<int64_t> weights(shares.size());
  std::vector<double> remainders(shares.size());
  int64_t left = total;
  for (size_t i = 0; i < shares.size(); ++i) {
    CHECK_GE(shares[i], 0);
    const double exact = shares[i] * static_cast<double>(total);
    weights[i] = static_cast<int64_t>(exact);
    remainders[i] = exact - static_cast<double>(weights[i]);
    left -= weights[i];
  }
  std::vector<size_t> order(shares.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return remainders[a] > remainders[b]; });
  CHECK_GE(left, 0);
  CHECK_LE(left, static_cast<int64_t>(shares.size()));
  for (int64_t i = 0; i < left; ++i) ++weights[order[static_cast<size_t>(i)]];
  return weights;
}

}  // namespace rudderfish
