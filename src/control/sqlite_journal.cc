// SPDX-License-Identifier: Apache-2.0
#include "control/sqlite_journal.h"

namespace rudderfish {

Result<std::unique_ptr<SqliteJournal>> SqliteJournal::Open(const std::filesystem::path& path,
                                                           const JournalOptions& options) {
  std::unique_ptr<SqliteJournal> journal(new SqliteJournal(path, options));
  TRY(journal->database_.Open());
  return journal;
}

Result<std::unique_ptr<SqliteJournal>> SqliteJournal::Start(const std::filesystem::path& path,
                                                            const JournalOptions& options) {
  std::unique_ptr<SqliteJournal> journal(new SqliteJournal(path, options));
  const Result<void> started =
      journal->database_.Start([&] { return journal->ReadWhatIsNeeded(); });
  if (!started && started.error().code != ErrorCode::kUnavailable) {
    return tl::unexpected(started.error());
  }
  if (const Result<void> read = journal->ReadUnopened(); !read) {
    return Fail(
        read.error().code,
        "{}; whether it says that decisions are paused cannot be read, so that none is made",
        read.error().message);
  }
  return journal;
}

// Damage is noticed now rather than by a kind of decision that could not begin then.
Result<void> SqliteJournal::ReadWhatIsNeeded() {
  TRY(placements_.Evidence());
  TRY(placements_.UnendedComparisons(""));
  TRY(modes_.ModeOf(""));
  TRY(modes_.PauseOf(""));
  return {};
}

Result<void> SqliteJournal::ReadUnopened() {
  return database_.openings() == 0 ? modes_.ReadUnopened() : Result<void>();
}

Result<void> SqliteJournal::Mind() {
  Result<void> minded = database_.Mind();
  if (!minded && minded.error().code == ErrorCode::kUnavailable) (void)ReadUnopened();
  return minded;
}

Result<JournalExtent> SqliteJournal::Extent() const {
  TRY(database_.CheckOpen());
  return internal::ExtentOf(database_.path(), database_.handle());
}

}  // namespace rudderfish
