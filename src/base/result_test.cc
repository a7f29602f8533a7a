// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>

namespace rudderfish {
namespace {

Result<int> Half(int number) {
  if (number % 2 != 0) return Invalid("{} is odd", number);
  return number / 2;
}

Result<void> CheckEven(int number) {
  TRY(Half(number));
  return {};
}

Result<std::string> QuarterInWords(int number) {
  TRY(CheckEven(number));
  TRY_ASSIGN(const int half, Half(number));
  TRY_ASSIGN(const int quarter, Half(half));
  return fmt::format("{}", quarter);
}

TEST(Result, TryPassesTheFirstErrorUp) {
  EXPECT_EQ(QuarterInWords(8).value(), "2");
  EXPECT_EQ(QuarterInWords(7).error().message, "7 is odd");
  EXPECT_EQ(QuarterInWords(6).error().message, "3 is odd");
  EXPECT_EQ(QuarterInWords(6).error().code, ErrorCode::kInvalidArgument);
}

TEST(Result, TryAssignMovesWhatCannotBeCopied) {
  const auto make = []() -> Result<std::unique_ptr<int>> { return std::make_unique<int>(5); };
  const auto take = [&]() -> Result<int> {
    TRY_ASSIGN(const std::unique_ptr<int> owned, make());
    return *owned;
  };
  EXPECT_EQ(take().value(), 5);
}

TEST(Result, FailCarriesItsCode) {
  const Result<void> result = Fail(ErrorCode::kNotFound, "no {}", "pod");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(result.error().message, "no pod");
}

}  // namespace
}  // namespace rudderfish
