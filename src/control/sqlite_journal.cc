// SPDX-License-Identifier: Apache-2.0
#include "control/sqlite_journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/files.h"
#include "control/journal_json.h"
#include "control/sqlite_schema.h"
#include "control/sqlite_statement.h"

namespace rudderfish {
namespace {

using internal::kPlacementsSchema;
using internal::kSchema;
using internal::Statement;

constexpr int kApplicationId = 0x52464a31;  // "RFJ1"
constexpr int kSchemaVersion = 1;
constexpr int kBusyMs = 2000;  // A reader that is in the way of a checkpoint.
constexpr int kAppendsBetweenLooks = 16;
constexpr int kRowBytes = 250;  // About, beside the longest of its texts, with its indexes.
constexpr uintmax_t kDiskBytesMin = 64 << 10;  // Less room than this is none.
constexpr double kFullShare =
    0.7;  // Of the size, at which the oldest rows go; the rest is the log's.

// Some calls of SQLite's fail on a full disk without saying that it is full.
bool IsOnFullDisk(const std::filesystem::path& path) {
  std::error_code failed;
  const std::filesystem::path folder = path.parent_path().empty() ? "." : path.parent_path();
  const std::filesystem::space_info space = std::filesystem::space(folder, failed);
  return !failed && space.available < kDiskBytesMin;
}

// What went wrong, in one line that names the file.
tl::unexpected<Error> Describe(const std::filesystem::path& path, sqlite3* database, int code) {
  const int kind = code & 0xff;
  const bool may_be_full = kind == SQLITE_IOERR || kind == SQLITE_CANTOPEN;
  switch (may_be_full && IsOnFullDisk(path) ? SQLITE_FULL : kind) {
    case SQLITE_FULL:
      return Fail(ErrorCode::kUnavailable,
                  "{}: the disk is full; nothing is decided until it can "
                  "be written again",
                  path.string());
    case SQLITE_IOERR:
      return Fail(ErrorCode::kUnavailable,
                  "{}: cannot be written or read ({}); nothing is decided until it can",
                  path.string(), sqlite3_errstr(code));
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
      return Fail(ErrorCode::kCorruption, "{}: is damaged or no journal ({})", path.string(),
                  sqlite3_errstr(code));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Fail(ErrorCode::kUnavailable, "{}: is locked by another program", path.string());
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
      return Invalid("{}: cannot be opened ({})", path.string(), sqlite3_errstr(code));
    default:
      break;
  }
  return Fail(ErrorCode::kUnavailable, "{}: {}", path.string(),
              database == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(database));
}

Result<internal::Database> OpenDatabase(const std::filesystem::path& path, int flags) {
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &raw, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  internal::Database database(raw);
  if (code != SQLITE_OK) return Describe(path, nullptr, code);
  sqlite3_extended_result_codes(raw, 1);
  sqlite3_busy_timeout(raw, kBusyMs);
  return database;
}

Result<int64_t> Pragma(const std::filesystem::path& path, sqlite3* database, const char* sql) {
  Statement statement(database, sql);
  if (!statement.Step()) return Describe(path, database, statement.code());
  return statement.Integer(0);
}

// Whether the file is a journal of this version; `is_new`: nothing is in it yet.
Result<void> CheckVersion(const std::filesystem::path& path, sqlite3* database, bool* is_new) {
  TRY_ASSIGN(const int64_t application, Pragma(path, database, "PRAGMA application_id"));
  TRY_ASSIGN(const int64_t version, Pragma(path, database, "PRAGMA user_version"));
  TRY_ASSIGN(const int64_t tables, Pragma(path, database, "SELECT count(*) FROM sqlite_master"));
  *is_new = tables == 0;
  if (*is_new) return {};
  if (application != kApplicationId) {
    return Fail(ErrorCode::kFailedPrecondition, "{}: is a database of another program",
                path.string());
  }
  if (version != kSchemaVersion) {
    return Fail(ErrorCode::kFailedPrecondition,
                "{}: is a journal of version {}; this program writes version {}", path.string(),
                version, kSchemaVersion);
  }
  return {};
}

// One process writes a journal. The lock is of another sort than SQLite's own and ends with the
// process, however it ends.
Result<int> Lock(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0640);
  if (file < 0) {
    const bool full = errno == ENOSPC || errno == EDQUOT;
    return Fail(full ? ErrorCode::kUnavailable : ErrorCode::kInvalidArgument, "{}: {}",
                path.string(), std::generic_category().message(errno));
  }
  if (::flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(file);
    return Fail(ErrorCode::kConflict, "{}: another rudderfish is writing it", path.string());
  }
  return file;
}

std::optional<std::string> PodOf(const std::vector<JournalMove>& moves) {
  return moves.empty() ? std::nullopt : std::optional(moves[0].pod);
}

}  // namespace

namespace internal {
void CloseDatabase::operator()(sqlite3* database) const { sqlite3_close_v2(database); }
}  // namespace internal

tl::unexpected<Error> JournalReader::Failed(int code) const {
  return Describe(path_, database_.get(), code);
}

Result<std::unique_ptr<SqliteJournal>> SqliteJournal::Open(const std::filesystem::path& path,
                                                           const JournalOptions& options) {
  CHECK_GE(options.size_bytes, kJournalSizeMin);
  TRY_ASSIGN(const int lock, Lock(path));
  Result<internal::Database> database =
      OpenDatabase(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  if (!database) {
    ::close(lock);
    return tl::unexpected(std::move(database).error());
  }
  std::unique_ptr<SqliteJournal> journal(
      new SqliteJournal(path, options, lock, *std::move(database)));
  TRY(journal->Prepare());
  TRY(journal->Trim());
  return journal;
}

SqliteJournal::SqliteJournal(std::filesystem::path path, const JournalOptions& options, int lock,
                             internal::Database database)
    : path_(std::move(path)), options_(options), lock_(lock), database_(std::move(database)) {}

SqliteJournal::~SqliteJournal() {
  database_.reset();  // Before the file: closing that would end SQLite's own locks.
  ::close(lock_);
}

tl::unexpected<Error> SqliteJournal::Failed(int code) {
  return Describe(path_, database_.get(), code);
}

Result<void> SqliteJournal::Exec(const char* sql) {
  const int code = sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return Failed(code);
  return {};
}

Result<void> SqliteJournal::Prepare() {
  bool is_new = false;
  TRY(CheckVersion(path_, database_.get(), &is_new));
  if (is_new) TRY(Exec("PRAGMA auto_vacuum = INCREMENTAL"));
  TRY(Exec("PRAGMA journal_mode = WAL"));
  TRY(Exec("PRAGMA synchronous = FULL"));
  if (is_new) {
    const std::string sql = fmt::format(
        "BEGIN IMMEDIATE; {} PRAGMA application_id = {}; PRAGMA user_version = {}; "
        "COMMIT",
        kSchema, kApplicationId, kSchemaVersion);
    TRY(Exec(sql.c_str()));
  }
  TRY_ASSIGN(page_bytes_, Pragma(path_, database_.get(), "PRAGMA page_size"));
  // The log beside the database is emptied when it holds an eighth of the size.
  const int64_t log_pages = std::max<int64_t>(options_.size_bytes / 8 / page_bytes_, 16);
  TRY(Exec(fmt::format("PRAGMA wal_autocheckpoint = {0}; PRAGMA journal_size_limit = {1}",
                       std::min<int64_t>(log_pages, 1000),
                       std::min<int64_t>(log_pages, 1000) * page_bytes_)
               .c_str()));
  TRY(Exec(kPlacementsSchema));
  return Exec("UPDATE decisions SET fate = 'unknown' WHERE fate = 'in flight'");
}

Result<int64_t> SqliteJournal::Append(JournalRow row) {
  TRY(MindSize());
  const std::string detail = ToJson(row);
  TRY(Insert(row, detail));
  return sqlite3_last_insert_rowid(database_.get());
}

Result<void> SqliteJournal::Insert(const JournalRow& row, const std::string& detail) {
  std::optional<std::string> from, to, baseline_to;
  if (!row.chosen.empty()) {
    from = row.chosen[0].from;
    to = row.chosen[0].to;
  }
  if (!row.baseline_choice.empty()) baseline_to = row.baseline_choice[0].to;
  std::optional<std::string> measured;
  if (row.measured) measured = ToJson(*row.measured);
  Statement insert(
      database_.get(),
      "INSERT INTO decisions (written_at, application, kind, mode, policy, plan, step, pod, "
      "from_node, to_node, latency_ms, predicted_gain_ms, step_cost_ms, allowed, reason, baseline, "
      "baseline_pod, baseline_to_node, fate, failure, measured, detail) VALUES "
      "(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
  insert.Bind(options_.now()).Bind(row.application).Bind(row.kind).Bind(row.mode).Bind(row.policy);
  insert.Bind(row.plan).Bind(int64_t{row.step}).Bind(PodOf(row.chosen)).Bind(from).Bind(to);
  insert.Bind(row.seen.latency_ms).Bind(row.predicted_gain_ms).Bind(row.step_cost_ms);
  insert.Bind(int64_t{row.verdict.allowed}).Bind(row.verdict.reason).Bind(row.baseline);
  insert.Bind(PodOf(row.baseline_choice)).Bind(baseline_to).Bind(FateName(row.fate));
  insert.Bind(row.failure).Bind(measured).Bind(detail);
  if (const int code = insert.Run(); code != SQLITE_OK) return Failed(code);
  return {};
}

Result<void> SqliteJournal::Conclude(int64_t number, Fate fate, std::string_view failure,
                                     const Terms& measured) {
  Statement update(database_.get(),
                   "UPDATE decisions SET fate = ?, failure = ?, measured = ? "
                   "WHERE number = ? AND fate = 'in flight'");
  update.Bind(FateName(fate)).Bind(failure).Bind(std::string_view(ToJson(measured))).Bind(number);
  if (const int code = update.Run(); code != SQLITE_OK) return Failed(code);
  return {};
}

Result<void> SqliteJournal::AppendEvidence(const EvidenceRow& row) {
  TRY(MindSize());
  Statement insert(database_.get(),
                   "INSERT INTO evidence (written_at, application, change, endpoint, term, source, "
                   "predicted_change_ms, measured_change_ms) VALUES (?,?,?,?,?,?,?,?)");
  insert.Bind(options_.now()).Bind(row.application).Bind(row.change).Bind(row.endpoint);
  insert.Bind(row.term).Bind(row.source).Bind(row.predicted_change_ms).Bind(row.measured_change_ms);
  if (const int code = insert.Run(); code != SQLITE_OK) return Failed(code);
  return {};
}

Result<void> SqliteJournal::AppendPlacements(std::span<PlacementRow> rows,
                                             std::span<const PlacementEnd> ends) {
  return CommitUnawaited([&] { return InsertPlacements(rows, ends); });
}

// A pod does not wait for the disk: what is committed outlives this process, and after a power
// failure the cluster itself knows where pods are.
Result<void> SqliteJournal::CommitUnawaited(const std::function<Result<void>()>& insert) {
  TRY(MindSize());
  TRY(Exec("PRAGMA synchronous = NORMAL"));
  Result<void> written = Exec("BEGIN IMMEDIATE");
  if (written) written = insert();
  if (written) written = Exec("COMMIT");
  // A commit that failed, on a full disk say, may have left the transaction open.
  if (!written) sqlite3_exec(database_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
  TRY(Exec("PRAGMA synchronous = FULL"));
  return written;
}

Result<void> SqliteJournal::InsertPlacements(std::span<PlacementRow> rows,
                                             std::span<const PlacementEnd> ends) {
  Statement insert(database_.get(),
                   "INSERT INTO placements (written_at, namespace, pod, uid, node, scheduler, "
                   "policy, priority, attempt, waited_ms, nodes, feasible, best, reason, fate, "
                   "failure) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,'')");
  const UnixMillis now = options_.now();
  for (PlacementRow& row : rows) {
    insert.Reset();
    insert.Bind(now).Bind(row.pod.object_namespace).Bind(row.pod.name).Bind(row.pod.uid);
    insert.Bind(row.node.empty() ? std::nullopt : std::optional(row.node));
    insert.Bind(row.scheduler).Bind(row.policy).Bind(row.priority).Bind(int64_t{row.attempt});
    insert.Bind(row.waited_ms).Bind(int64_t{row.nodes}).Bind(int64_t{row.feasible});
    insert.Bind(ToJson(row.best)).Bind(row.reason).Bind(FateName(row.fate));
    if (const int code = insert.Run(); code != SQLITE_OK) return Failed(code);
    row.number = sqlite3_last_insert_rowid(database_.get());
  }
  Statement update(database_.get(),
                   "UPDATE placements SET fate = ?, failure = ? WHERE number = ? AND "
                   "fate = 'in flight'");
  for (const PlacementEnd& end : ends) {
    update.Reset();
    update.Bind(FateName(end.fate)).Bind(end.failure).Bind(end.number);
    if (const int code = update.Run(); code != SQLITE_OK) return Failed(code);
  }
  return {};
}

Result<void> SqliteJournal::Probe() {
  const Result<void> written = Exec(
      fmt::format("BEGIN IMMEDIATE; PRAGMA user_version = {}; COMMIT", kSchemaVersion).c_str());
  if (!written) sqlite3_exec(database_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
  return written;
}

Result<void> SqliteJournal::Trim() {
  const UnixMillis oldest =
      options_.now() -
      std::chrono::duration_cast<std::chrono::milliseconds>(options_.retention).count();
  for (const char* sql : {"DELETE FROM decisions WHERE written_at < ? AND fate <> 'in flight'",
                          "DELETE FROM placements WHERE written_at < ? AND fate <> 'in flight'",
                          "DELETE FROM comparisons WHERE written_at < ?",
                          "DELETE FROM evidence WHERE written_at < ?"}) {
    Statement remove(database_.get(), sql);
    remove.Bind(oldest);
    if (const int code = remove.Run(); code != SQLITE_OK) return Failed(code);
  }
  if (evidence_) evidence_->RemoveOlder(oldest);
  appended_ = 0;
  return MindSize();
}

Result<void> SqliteJournal::MindSize() {
  if (appended_++ % kAppendsBetweenLooks != 0) return {};
  const auto most = static_cast<int64_t>(static_cast<double>(options_.size_bytes) * kFullShare);
  for (int round = 0; round < 100; ++round) {
    TRY_ASSIGN(const int64_t pages, Pragma(path_, database_.get(), "PRAGMA page_count"));
    TRY_ASSIGN(const int64_t unused, Pragma(path_, database_.get(), "PRAGMA freelist_count"));
    if ((pages - unused) * page_bytes_ <= most) break;
    TRY(RemoveOldestTenth());
  }
  return {};
}

// About, by how many numbers there are and how long the newest rows are: to read all would hold up
// decisions.
Result<const char*> SqliteJournal::LargestTable() const {
  struct Table {
    const char *name, *text;  // What of a row differs most in length.
  };
  constexpr Table kTables[] = {{"decisions", "length(detail)"},
                               {"placements", "length(best) + length(reason)"},
                               {"comparisons", "length(detail)"},
                               {"evidence", "length(change)"}};
  const char* largest = kTables[0].name;
  int64_t most = 0;
  for (const auto& [name, text] : kTables) {
    const std::string sql = fmt::format(
        "SELECT CAST(((SELECT max(number) FROM {0}) - (SELECT min(number) FROM {0}) + 1) * "
        "(SELECT {2} + avg({1}) FROM (SELECT * FROM {0} ORDER BY number DESC LIMIT 100)) "
        "AS INTEGER)",
        name, text, kRowBytes);
    TRY_ASSIGN(const int64_t bytes, Pragma(path_, database_.get(), sql.c_str()));
    if (bytes <= most) continue;
    most = bytes;
    largest = name;
  }
  return largest;
}

// Of one table: a busy one does not push out what others hold.
Result<void> SqliteJournal::RemoveOldestTenth() {
  TRY_ASSIGN(const char* const table, LargestTable());
  const std::string sql = fmt::format(
      "DELETE FROM {0} WHERE number <= (SELECT min(number) + (max(number) - min(number)) / 10 "
      "FROM {0})",
      table);
  TRY(Exec(sql.c_str()));
  TRY(FollowRemoval());
  return Exec("PRAGMA incremental_vacuum");
}

Result<JournalReader> JournalReader::Open(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    return Fail(ErrorCode::kNotFound, "{}: there is no journal", path.string());
  }
  TRY_ASSIGN(internal::Database database, OpenDatabase(path, SQLITE_OPEN_READONLY));
  bool is_new = false;
  TRY(CheckVersion(path, database.get(), &is_new));
  if (is_new) return Fail(ErrorCode::kFailedPrecondition, "{}: holds nothing yet", path.string());
  return JournalReader(path, std::move(database));
}

Result<std::vector<StoredRow>> JournalReader::Rows(const RowFilter& filter) const {
  // Names stand in quotes in `detail`, so that a part of a name does not count.
  Statement select(database_.get(),
                   "SELECT number, written_at, fate, failure, measured, detail FROM decisions "
                   "WHERE written_at >= ? AND (? = '' OR application = ?) "
                   "AND (? = '' OR instr(detail, ?)) ORDER BY number DESC LIMIT ?");
  const std::string quoted = fmt::format("\"pod\":\"{}\"", filter.pod);
  select.Bind(filter.since.value_or(0)).Bind(filter.application).Bind(filter.application);
  select.Bind(filter.pod).Bind(quoted).Bind(filter.limit);
  std::vector<StoredRow> rows;
  while (select.Step()) {
    StoredRow stored{.number = select.Integer(0), .written_at = select.Integer(1)};
    const std::string name = fmt::format("{}, row {}", path_.string(), stored.number);
    TRY_ASSIGN(stored.row, JournalRowFrom(select.Text(5), name));
    const std::optional<Fate> fate = FateNamed(select.Text(2));
    if (!fate) return Fail(ErrorCode::kCorruption, "{}: unknown fate", name);
    stored.row.fate = *fate;
    stored.row.failure = select.Text(3);
    if (!select.IsNull(4)) {
      TRY_ASSIGN(stored.row.measured, TermsFrom(select.Text(4), name));
    }
    rows.push_back(std::move(stored));
  }
  if (select.code() != SQLITE_OK) return Describe(path_, database_.get(), select.code());
  std::reverse(rows.begin(), rows.end());
  return rows;
}

Result<std::vector<StoredPlacement>> JournalReader::Placements(std::string_view pod,
                                                               int64_t limit) const {
  TRY_ASSIGN(const int64_t tables,
             Pragma(path_, database_.get(),
                    "SELECT count(*) FROM sqlite_master WHERE name = 'placements'"));
  if (tables == 0) return std::vector<StoredPlacement>();
  Statement select(database_.get(),
                   "SELECT number, written_at, namespace, pod, uid, coalesce(node, ''), scheduler, "
                   "policy, priority, attempt, waited_ms, nodes, feasible, reason, fate, failure "
                   "FROM placements WHERE ? = '' OR namespace || '/' || pod = ? "
                   "ORDER BY number DESC LIMIT ?");
  select.Bind(pod).Bind(pod).Bind(limit);
  std::vector<StoredPlacement> rows;
  while (select.Step()) {
    StoredPlacement& stored = rows.emplace_back();
    stored.written_at = select.Integer(1);
    stored.row = {.pod = {select.Text(2), select.Text(3), select.Text(4)},
                  .node = select.Text(5),
                  .scheduler = select.Text(6),
                  .policy = select.Text(7),
                  .priority = select.Integer(8),
                  .attempt = static_cast<int>(select.Integer(9)),
                  .waited_ms = select.Real(10),
                  .nodes = static_cast<int>(select.Integer(11)),
                  .feasible = static_cast<int>(select.Integer(12)),
                  .reason = select.Text(13),
                  .number = select.Integer(0)};
    stored.fate = select.Text(14);
    stored.failure = select.Text(15);
  }
  if (select.code() != SQLITE_OK) return Describe(path_, database_.get(), select.code());
  std::reverse(rows.begin(), rows.end());
  return rows;
}

Result<std::vector<EvidenceSum>> JournalReader::Evidence() const {
  Statement select(database_.get(),
                   "SELECT application, term, count(*), sum(e), sum(e * e), sum(abs(e)) FROM "
                   "(SELECT application, term, predicted_change_ms - measured_change_ms AS e FROM "
                   "evidence) GROUP BY application, term ORDER BY application, term");
  std::vector<EvidenceSum> sums;
  while (select.Step()) {
    sums.push_back({.application = select.Text(0),
                    .term = select.Text(1),
                    .count = select.Integer(2),
                    .error_sum = select.Real(3),
                    .error_squares = select.Real(4),
                    .absolute_sum = select.Real(5)});
  }
  if (select.code() != SQLITE_OK) return Describe(path_, database_.get(), select.code());
  return sums;
}

Result<JournalExtent> JournalReader::Extent() const {
  JournalExtent extent;
  TRY_ASSIGN(extent.decisions, Pragma(path_, database_.get(), "SELECT count(*) FROM decisions"));
  TRY_ASSIGN(extent.evidence, Pragma(path_, database_.get(), "SELECT count(*) FROM evidence"));
  for (const char* suffix : {"", "-wal", "-shm"}) {
    std::error_code ignored;
    const auto bytes = std::filesystem::file_size(path_.string() + suffix, ignored);
    if (!ignored) extent.bytes += static_cast<int64_t>(bytes);
  }
  return extent;
}

Result<std::vector<std::pair<std::string, int64_t>>> JournalReader::Counts(UnixMillis since) const {
  Statement select(database_.get(),
                   "SELECT fate, count(*) FROM decisions WHERE written_at >= ? GROUP BY fate "
                   "ORDER BY fate");
  select.Bind(since);
  std::vector<std::pair<std::string, int64_t>> counts;
  while (select.Step()) counts.emplace_back(select.Text(0), select.Integer(1));
  if (select.code() != SQLITE_OK) return Describe(path_, database_.get(), select.code());
  return counts;
}

}  // namespace rudderfish
