// SPDX-License-Identifier: Apache-2.0
#include "base/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "base/units.h"

namespace rudderfish {
namespace {

constexpr Duration kRewriteEvery = std::chrono::milliseconds(100);
constexpr Duration kLineEvery = std::chrono::seconds(5);
constexpr Duration kEstimateAfter = std::chrono::seconds(1);
constexpr Duration kLatelyLeast = std::chrono::seconds(10);
constexpr int kLatelyShare = 4;  // Of what has passed: one part in so many counts as lately.
constexpr int kSamplesLately = 32;
constexpr std::string_view kErase = "\r\x1b[K";

std::mutex g_stderr_mutex;
std::atomic<bool> g_line_shown{false};  // On stderr, under the mutex when it changes.

void Write(std::FILE* stream, std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stream);
  std::fflush(stream);
}

bool Unset(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr || *value == '\0';
}

ProgressSink Stderr() {
  const char* kind = std::getenv("TERM");
  const bool dumb = kind == nullptr || std::string_view(kind) == "dumb";
  ProgressSink sink{.stream = stderr, .terminal = !dumb && ::isatty(STDERR_FILENO) == 1};
  sink.color = sink.terminal && Unset("NO_COLOR");
  winsize size = {};
  if (sink.terminal && ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    sink.columns = size.ws_col;
  }
  return sink;
}

// The longest beginning of at most `columns` letters, not cut within a UTF-8 sequence.
std::string_view Clip(std::string_view text, int columns) {
  size_t end = 0;
  for (int letters = 0; end < text.size(); ++end) {
    const bool begins_letter = (static_cast<unsigned char>(text[end]) & 0xC0) != 0x80;
    if (begins_letter && ++letters > columns) break;
  }
  return text.substr(0, end);
}

}  // namespace

Progress::Progress(std::string title, Verbosity verbosity)
    : Progress(std::move(title), verbosity, Stderr()) {}

Progress::Progress(std::string title, Verbosity verbosity, ProgressSink sink)
    : title_(std::move(title)), sink_(sink) {
  static const SystemClock system_clock;
  if (sink_.clock == nullptr) sink_.clock = &system_clock;
  if (sink_.stream == nullptr) sink_.stream = stderr;
  if (verbosity != Verbosity::kQuiet && sink_.terminal) {
    style_ = Style::kRewrite;
  } else if (verbosity == Verbosity::kVerbose) {
    style_ = Style::kLines;
  }
  start_ = sink_.clock->Now();
  next_ = style_ == Style::kLines ? start_ + kLineEvery : start_;
}

Progress::~Progress() { Done(); }

void Progress::Update(std::optional<double> fraction, std::string_view text) {
  if (style_ == Style::kSilent) return;
  const Instant now = sink_.clock->Now();
  if (now < next_) return;
  next_ = now + (style_ == Style::kRewrite ? kRewriteEvery : kLineEvery);
  if (fraction) Note(*fraction, now);
  const std::string line = Line(fraction, text, now);
  const std::lock_guard lock(g_stderr_mutex);
  if (style_ == Style::kLines) {
    Write(sink_.stream, line + '\n');
    return;
  }
  // One column less than there are: a full line would wrap and could not be rewritten.
  const std::string_view clipped = Clip(line, sink_.columns - 1);
  Write(sink_.stream, fmt::format("{}{}{}{}", kErase, sink_.color ? "\x1b[2m" : "", clipped,
                                  sink_.color ? "\x1b[0m" : ""));
  if (sink_.stream == stderr) g_line_shown.store(true, std::memory_order_relaxed);
}

void Progress::Done() {
  if (style_ == Style::kRewrite) {
    const std::lock_guard lock(g_stderr_mutex);
    Write(sink_.stream, kErase);
    if (sink_.stream == stderr) g_line_shown.store(false, std::memory_order_relaxed);
  }
  style_ = Style::kSilent;
}

void Progress::Note(double fraction, Instant now) {
  const Duration lately = std::max<Duration>(kLatelyLeast, (now - start_) / kLatelyShare);
  if (lately_.empty()) lately_.push_back({start_, 0});
  if (fraction < lately_.back().fraction) lately_.assign(1, {now, fraction});  // It began again.
  while (lately_.size() > 1 && lately_[1].at <= now - lately) lately_.pop_front();
  if (now - lately_.back().at >= lately / kSamplesLately) lately_.push_back({now, fraction});
}

// Nothing where nothing was done lately: any number would be a guess.
std::optional<Duration> Progress::Left(double fraction, Instant now) const {
  if (lately_.empty() || now - start_ < kEstimateAfter) return std::nullopt;
  const double done = fraction - lately_.front().fraction;
  if (done <= 0) return std::nullopt;
  const double left_s = Seconds(now - lately_.front().at) * (1 - fraction) / done;
  return std::chrono::seconds(static_cast<int64_t>(std::min(left_s + 0.5, 1e9)));
}

std::string Progress::Line(std::optional<double> fraction, std::string_view text,
                           Instant now) const {
  std::string line = title_;
  if (fraction) {
    const double done = std::clamp(*fraction, 0.0, 1.0);
    line += fmt::format("  {:3.0f} %", 100 * done);
    const std::optional<Duration> left = Left(done, now);
    if (left && *left > Duration::zero()) line += fmt::format("  {} left", FormatDuration(*left));
  } else {
    line +=
        fmt::format("  {}", FormatDuration(std::chrono::floor<std::chrono::seconds>(now - start_)));
  }
  if (!text.empty()) line += fmt::format("  {}", text);
  return line;
}

namespace internal {

void EraseStatusLine() {
  if (!g_line_shown.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(g_stderr_mutex);
  if (g_line_shown.exchange(false, std::memory_order_relaxed)) Write(stderr, kErase);
}

}  // namespace internal
}  // namespace rudderfish
