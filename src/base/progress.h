// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

// One status line on stderr while something long runs. On a terminal it is rewritten in place, at
// most ten times a second, and gone when done; elsewhere nothing is written, or with kVerbose a
// line every five seconds. NO_COLOR and TERM=dumb are respected. An Update that writes nothing
// costs one reading of the clock. One thread at a time.

namespace rudderfish {

enum class Verbosity { kQuiet, kNormal, kVerbose };

// Where a Progress writes; the defaults are stderr as it is. Tests give their own.
struct ProgressSink {
  std::FILE* stream = nullptr;  // nullptr: stderr.
  bool terminal = false;  // Whether `stream` can rewrite a line; asked of the system for stderr.
  bool color = false;
  int columns = 80;
  const Clock* clock = nullptr;  // nullptr: the system's.
};

class Progress {
 public:
  Progress(std::string title, Verbosity verbosity);
  Progress(std::string title, Verbosity verbosity, ProgressSink sink);
  ~Progress();  // Done().
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `fraction` done in [0, 1], from whose growth lately the time left is estimated: parts of a job
  // may differ in speed. nullopt where the end is not known. `text` is the rate and the figure that
  // matters.
  void Update(std::optional<double> fraction, std::string_view text);

  // Removes the line.
  void Done();

 private:
  enum class Style { kSilent, kRewrite, kLines };

  struct Sample {
    Instant at;
    double fraction = 0;
  };
  void Note(double fraction, Instant now);
  std::optional<Duration> Left(double fraction, Instant now) const;
  std::string Line(std::optional<double> fraction, std::string_view text, Instant now) const;

  std::string title_;
  ProgressSink sink_;
  Style style_ = Style::kSilent;
  Instant start_, next_;
  std::deque<Sample> lately_;  // Oldest first; the first is from before what counts as lately.
};

namespace internal {

// Removes the status line shown on stderr, if there is one; the next Update shows it again. The log
// calls it before it writes, so that the two do not run into each other. Any thread.
void EraseStatusLine();

}  // namespace internal
}  // namespace rudderfish
