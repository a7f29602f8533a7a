// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <system_error>

#include "base/escape.h"

namespace rudderfish {
namespace {

bool g_reader_is_gone = false;

bool StdoutHasColors() {
  static const bool has = [] {
    const char* no_color = std::getenv("NO_COLOR");
    const char* kind = std::getenv("TERM");
    if (no_color != nullptr && *no_color != '\0') return false;
    if (kind == nullptr || std::string_view(kind) == "dumb") return false;
    return ::isatty(STDOUT_FILENO) == 1;
  }();
  return has;
}

std::string Styled(std::string_view code, std::string_view text) {
  if (!StdoutHasColors()) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

// Lines and emphasis are ours; all else that a terminal would act on came from outside.
std::string ForTerminal(std::string_view text) {
  constexpr std::string_view kOurs[] = {"\n", "\t", "\x1b[0m", "\x1b[1m", "\x1b[2m"};
  std::string shown;
  while (!text.empty()) {
    const size_t plain = std::min(text.find_first_of("\n\t\x1b"), text.size());
    shown += Escaped(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) break;
    const auto* const ours =
        std::find_if(std::begin(kOurs), std::end(kOurs),
                     [&](std::string_view one) { return text.starts_with(one); });
    const size_t count = ours == std::end(kOurs) ? 1 : ours->size();
    shown += ours == std::end(kOurs) ? Escaped(text.substr(0, count)) : *ours;
    text.remove_prefix(count);
  }
  return shown;
}

}  // namespace

bool IsReaderGone() { return g_reader_is_gone; }

Result<void> Print(std::string_view text) {
  static const bool is_terminal = ::isatty(STDOUT_FILENO) == 1;
  const std::string shown = is_terminal ? ForTerminal(text) : "";
  if (is_terminal) text = shown;
  while (!text.empty() && !g_reader_is_gone) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EPIPE) {
      g_reader_is_gone = true;
    } else if (errno != EINTR) {
      return Fail(ErrorCode::kUnavailable, "standard output: {}",
                  std::generic_category().message(errno));
    }
  }
  return {};
}

void IgnoreBrokenPipes() { ::signal(SIGPIPE, SIG_IGN); }

namespace internal {

void WriteTalk(std::string_view line) {
  const std::string whole = fmt::format("{}\n", Escaped(line));
  std::fwrite(whole.data(), 1, whole.size(), stderr);
}

}  // namespace internal

void Complain(std::string_view message) {
  internal::WriteTalk(fmt::format("rudderfish: {}", message));
}

std::string Bold(std::string_view text) { return Styled("1", text); }
std::string Dim(std::string_view text) { return Styled("2", text); }

std::string ShellWord(std::string_view word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%^";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) {
    return std::string(word);
  }
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

}  // namespace rudderfish
