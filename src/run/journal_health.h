// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"

// Whether the journal can be written, as it is told and shown: trouble begins with the first write
// that fails, and ends only after a while without failures at whose end something was really
// written. What had nothing to write has proven nothing; what fails again each few seconds is one
// trouble. While there is some, writing is tried once a second. Not thread safe.

namespace rudderfish {

class JournalHealth {
 public:
  // `probe` writes something of no meaning. Both outlive it.
  JournalHealth(const Clock* clock, std::function<Result<void>()> probe)
      : clock_(clock), probe_(std::move(probe)) {}

  void Failed(const Error& error);

  // Failed, if it is an error.
  void Note(const Result<void>& written) {
    if (!written) Failed(written.error());
  }

  // All that was to be written was, if anything.
  void Worked();

  bool MayTry() const;
  const std::string& trouble() const { return trouble_; }  // Empty: there is none.

 private:
  const Clock* clock_;
  std::function<Result<void>()> probe_;
  std::string trouble_;
  Instant failed_at_;
};

}  // namespace rudderfish
