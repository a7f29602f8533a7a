// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "cli/commands.h"

// How the program writes. Print writes results to stdout; once the reader has closed it (`| head`),
// Print writes nothing more and reports no error. Say writes messages to stderr; -q leaves them
// out. One thread.

namespace rudderfish {

// An error if stdout cannot be written: a full disk, for instance.
Result<void> Print(std::string_view text);

// Whether a Print found that stdout is closed.
bool IsReaderGone();

// To be called once, at start: writing to a pipe that was closed is an error, not the end.
void IgnoreBrokenPipes();

namespace internal {
void WriteTalk(std::string_view line);
}  // namespace internal

// One line for the user, on stderr.
template <class... Args>
void Say(const Session& session, fmt::format_string<Args...> format, Args&&... args) {
  if (session.verbosity == Verbosity::kQuiet) return;
  internal::WriteTalk(fmt::format(format, std::forward<Args>(args)...));
}

// One line why the program ends, also with -q: "rudderfish: MESSAGE".
void Complain(std::string_view message);

// Emphasis on stdout: nothing unless that is a terminal with colours.
std::string Bold(std::string_view text);
std::string Dim(std::string_view text);

// A word as a shell reads it back: quoted if need be.
std::string ShellWord(std::string_view word);

}  // namespace rudderfish
