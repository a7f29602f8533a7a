// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "base/check.h"
#include "kube/quantity.h"

// Any bytes as a quantity: refused, or an amount that is the same when written in thousandths.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using rudderfish::kube::Quantity;
  const auto quantity = Quantity::Parse({reinterpret_cast<const char*>(data), size});
  if (!quantity) {
    CHECK(!quantity.error().message.empty());
    return 0;
  }
  const int64_t value = quantity->Value(), millis = quantity->MilliValue();
  CHECK(value >= 0);
  CHECK(millis >= value);
  if (millis < std::numeric_limits<int64_t>::max()) {
    CHECK(*Quantity::Parse(fmt::format("{}m", millis)) == *quantity);
    CHECK_EQ(value, millis / 1000 + (millis % 1000 != 0));
  }
  return 0;
}
