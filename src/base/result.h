// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <string>
#include <tl/expected.hpp>
#include <utility>

// Result<T> is what a function returns that can fail for reasons outside the program: a file, an
// input, a network. A bug is a CHECK (base/check.h); "no" as an answer is a Verdict
// (control/guard.h). No exception crosses a module.

namespace rudderfish {

// The canonical codes of gRPC and Abseil that this project needs. The command line maps
// kInvalidArgument, kNotFound, kFailedPrecondition and kCorruption to exit status 2 (bad input),
// all others to 1.
enum class ErrorCode {
  kInvalidArgument,     // The input is wrong in itself.
  kNotFound,            // A file or an object is not there.
  kFailedPrecondition,  // Right in itself, but not for this state: a checkpoint of another task.
  kConflict,            // What we wanted to change has changed meanwhile.
  kUnavailable,         // Disk full, no connection: the same call may work later.
  kDeadlineExceeded,
  kCorruption,  // A file of ours that is damaged.
  kCancelled,
};

struct Error {
  ErrorCode code = ErrorCode::kInvalidArgument;
  std::string message;  // One line: what, where, how to mend it.
};

template <class T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;
};

template <class... Args>
tl::unexpected<Error> Fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  return tl::unexpected<Error>(Error{code, fmt::format(format, std::forward<Args>(args)...)});
}

template <class... Args>
tl::unexpected<Error> Invalid(fmt::format_string<Args...> format, Args&&... args) {
  return Fail(ErrorCode::kInvalidArgument, format, std::forward<Args>(args)...);
}

}  // namespace rudderfish

#define RUDDERFISH_CONCAT_INNER(a, b) a##b
#define RUDDERFISH_CONCAT(a, b) RUDDERFISH_CONCAT_INNER(a, b)

// TRY(expression): returns the error of a Result<...> from the enclosing function, if there is one.
#define TRY(expression)                                                    \
  do {                                                                     \
    auto try_result = (expression);                                        \
    if (!try_result) return tl::unexpected(std::move(try_result).error()); \
  } while (false)

// TRY_ASSIGN(auto x, expression): the same, and binds the value.
#define TRY_ASSIGN(declaration, expression) \
  TRY_ASSIGN_IMPL(RUDDERFISH_CONCAT(try_result_, __LINE__), declaration, expression)
#define TRY_ASSIGN_IMPL(result, declaration, expression)         \
  auto result = (expression);                                    \
  if (!result) return tl::unexpected(std::move(result).error()); \
  declaration = *std::move(result)
