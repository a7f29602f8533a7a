// SPDX-License-Identifier: Apache-2.0
#include "kube/quantity.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>

namespace rudderfish::kube {
namespace {

constexpr __int128 kMax = std::numeric_limits<int64_t>::max();
constexpr size_t kLongest = 256;     // Of a text; the API server never writes more than 40.
constexpr int kMostDigits = 19;      // Of the integer part of what fits 64 bits.
constexpr int kMostExponent = 1000;  // Beyond it nothing but zero is in range.

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// What a suffix multiplies with: 10^ten * 2^two.
struct Scale {
  int ten = 0;
  int two = 0;
};

bool ParseSuffix(std::string_view text, Scale* scale) {
  constexpr std::string_view kDecimal = "kMGTPE", kBinary = "KMGTPE", kFine = "mun";
  if (text.empty()) return true;
  if (text.size() == 2 && text[1] == 'i') {
    const size_t at = kBinary.find(text[0]);
    scale->two = 10 * static_cast<int>(at + 1);
    return at != std::string_view::npos;
  }
  if (text.size() == 1) {
    const size_t big = kDecimal.find(text[0]), fine = kFine.find(text[0]);
    if (big != std::string_view::npos) scale->ten = 3 * static_cast<int>(big + 1);
    if (fine != std::string_view::npos) scale->ten = -3 * static_cast<int>(fine + 1);
    return big != std::string_view::npos || fine != std::string_view::npos;
  }
  if (text[0] != 'e' && text[0] != 'E') return false;
  text.remove_prefix(1);
  const bool minus = text[0] == '-';
  if (minus || text[0] == '+') text.remove_prefix(1);
  if (text.empty() || !std::all_of(text.begin(), text.end(), IsDigit)) return false;
  int exponent = kMostExponent;
  std::from_chars(text.data(), text.data() + text.size(), exponent);  // Out of range: unchanged.
  exponent = std::min(exponent, kMostExponent);
  scale->ten = minus ? -exponent : exponent;
  return true;
}

// The number 0.d1 d2 d3 ... * 10^point; the digits neither begin nor end with a zero.
struct Decimal {
  std::string digits;
  int point = 0;
};

Decimal Normalised(std::string_view whole, std::string_view fraction) {
  Decimal number{std::string(whole) + std::string(fraction), static_cast<int>(whole.size())};
  const size_t first = std::min(number.digits.find_first_not_of('0'), number.digits.size());
  number.digits.erase(0, first);
  number.point -= static_cast<int>(first);
  number.digits.erase(number.digits.find_last_not_of('0') + 1);
  return number;
}

// ceil(number * 2^two), or -1 if that is beyond what fits. Exact: the fraction is doubled digit by
// digit.
__int128 RoundedUp(const Decimal& number, int two) {
  if (number.digits.empty()) return 0;
  if (number.point > kMostDigits + 3) return -1;  // In thousandths.
  unsigned __int128 whole = 0;
  const int digits = static_cast<int>(number.digits.size());
  for (int i = 0; i < number.point; ++i) {
    whole = whole * 10 + (i < digits ? number.digits[i] - '0' : 0);
  }
  constexpr auto kMostMillis = static_cast<unsigned __int128>(kMax) * 1000;
  if (whole > kMostMillis || (whole << std::min(two, 50)) > kMostMillis) return -1;
  whole <<= std::min(two, 50);
  if (two > 50) whole <<= two - 50;
  if (number.point >= digits) return whole > kMostMillis ? -1 : static_cast<__int128>(whole);
  // Less than 10^-60 is more than nothing and less than one, whatever it is multiplied with.
  std::string fraction = number.point > 0
                             ? number.digits.substr(number.point)
                             : std::string(std::min(-number.point, 60), '0') + number.digits;
  uint64_t from_fraction = 0;
  for (int i = 0; i < two; ++i) {
    int carry = 0;
    for (size_t at = fraction.size(); at-- > 0;) {
      const int twice = (fraction[at] - '0') * 2 + carry;
      fraction[at] = static_cast<char>('0' + twice % 10);
      carry = twice / 10;
    }
    from_fraction = from_fraction * 2 + carry;
  }
  const bool rest = fraction.find_first_not_of('0') != std::string::npos;
  whole += from_fraction + (rest ? 1 : 0);
  return whole > kMostMillis ? -1 : static_cast<__int128>(whole);
}

}  // namespace

Result<Quantity> Quantity::Parse(std::string_view text) {
  const auto refuse = [&] {
    return Invalid("expected a quantity such as 500m, 2 or 1.5Gi, found `{}`", text.substr(0, 40));
  };
  if (text.empty() || text.size() > kLongest) return refuse();
  std::string_view rest = text;
  if (rest[0] == '-') return Invalid("expected a quantity of 0 or more, found `{}`", text);
  if (rest[0] == '+') rest.remove_prefix(1);
  const auto take_digits = [&] {
    const size_t count = std::find_if_not(rest.begin(), rest.end(), IsDigit) - rest.begin();
    const std::string_view digits = rest.substr(0, count);
    rest.remove_prefix(count);
    return digits;
  };
  const std::string_view whole = take_digits();
  std::string_view fraction;
  if (!rest.empty() && rest[0] == '.') {
    rest.remove_prefix(1);
    fraction = take_digits();
  }
  Scale scale;
  if ((whole.empty() && fraction.empty()) || !ParseSuffix(rest, &scale)) return refuse();
  Decimal number = Normalised(whole, fraction);
  number.point += scale.ten + 3;
  const __int128 millis = RoundedUp(number, scale.two);
  return Quantity(millis < 0 ? kMax * 1000 : millis);
}

int64_t Quantity::Value() const {
  return static_cast<int64_t>(std::min((millis_ + 999) / 1000, kMax));
}

int64_t Quantity::MilliValue() const { return static_cast<int64_t>(std::min(millis_, kMax)); }

}  // namespace rudderfish::kube
