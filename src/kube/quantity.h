// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

// Amounts as the API server writes them: "100m", "1.5Gi", "12e6", exact, in thousandths, which is
// the finest part the API server keeps of a resource; what is finer is rounded up on reading, as it
// does. Sums are exact too: kube-scheduler adds quantities first and rounds once.
//
// Grammar: digits with an optional point, then one of n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or an
// exponent such as e3. A negative amount is refused; one beyond 2^63 - 1 counts as that, as the API
// server reads it.

namespace rudderfish::kube {

class Quantity {
 public:
  constexpr Quantity() = default;

  // The error says what is wrong with the text; the caller says where it stands.
  static Result<Quantity> Parse(std::string_view text);

  // Rounded up to whole units (bytes, pods) and to thousandths (milli-cores); at most 2^63 - 1.
  int64_t Value() const;
  int64_t MilliValue() const;

  Quantity& operator+=(const Quantity& other) {
    millis_ += other.millis_;
    return *this;
  }
  auto operator<=>(const Quantity&) const = default;  // NOLINT(modernize-use-nullptr)

 private:
  explicit constexpr Quantity(__int128 millis) : millis_(millis) {}

  __int128 millis_ = 0;  // A parsed one is below 2^73, so that sums of millions cannot overflow.
};

}  // namespace rudderfish::kube
