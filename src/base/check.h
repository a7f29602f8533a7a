// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <string>

// CHECKs state preconditions and invariants. They are on in every build: a broken invariant prints
// the place and both values and ends the process, because nothing computed after it could be
// trusted. Failures that are expected (files, input, network) are a Result instead (base/result.h).

namespace rudderfish::internal {

[[noreturn]] void CheckFailed(const char* file, int line, const char* condition,
                              const std::string& detail);

}  // namespace rudderfish::internal

#define CHECK(condition)                             \
  (__builtin_expect(static_cast<bool>(condition), 1) \
       ? void(0)                                     \
       : ::rudderfish::internal::CheckFailed(__FILE__, __LINE__, #condition, std::string{}))

#define RUDDERFISH_CHECK_OP(a, op, b)                                               \
  (__builtin_expect(static_cast<bool>((a)op(b)), 1)                                 \
       ? void(0)                                                                    \
       : ::rudderfish::internal::CheckFailed(__FILE__, __LINE__, #a " " #op " " #b, \
                                             fmt::format("{} against {}", (a), (b))))

#define CHECK_EQ(a, b) RUDDERFISH_CHECK_OP(a, ==, b)
#define CHECK_NE(a, b) RUDDERFISH_CHECK_OP(a, !=, b)
#define CHECK_LT(a, b) RUDDERFISH_CHECK_OP(a, <, b)
#define CHECK_LE(a, b) RUDDERFISH_CHECK_OP(a, <=, b)
#define CHECK_GT(a, b) RUDDERFISH_CHECK_OP(a, >, b)
#define CHECK_GE(a, b) RUDDERFISH_CHECK_OP(a, >=, b)
