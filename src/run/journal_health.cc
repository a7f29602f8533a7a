// SPDX-License-Identifier: Apache-2.0
#include "run/journal_health.h"

#include "base/log.h"

namespace rudderfish {
namespace {

constexpr Duration kRetry = std::chrono::seconds(1);
constexpr Duration kCalm = std::chrono::seconds(15);  // Longer than a pod waits for its next try.

}  // namespace

void JournalHealth::Failed(const Error& error) {
  if (trouble_.empty()) LogError("{}", error.message);
  trouble_ = error.message;
  failed_at_ = clock_->Now();
}

void JournalHealth::Worked() {
  if (trouble_.empty() || clock_->Now() - failed_at_ < kCalm) return;
  if (const Result<void> written = probe_(); !written) return Failed(written.error());
  trouble_.clear();
  LogInfo("the journal can be written again");
}

bool JournalHealth::MayTry() const {
  return trouble_.empty() || clock_->Now() - failed_at_ >= kRetry;
}

}  // namespace rudderfish
