// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "control/guard.h"
#include "model/latency.h"

// What was decided and why, one row a decision: what was seen, what was considered, what the Model
// predicted, what a baseline would have done, whether the guard allowed it, and its outcome.
// Rows name pods and nodes, because ids are valid for one version of one State. Not thread safe.
// docs/journal.md describes what is kept on disk (control/sqlite_journal.h).

namespace rudderfish {

struct JournalMove {
  std::string pod, from, to;

  bool operator==(const JournalMove&) const = default;
};

// An alternative that could have been chosen.
struct Alternative {
  std::optional<JournalMove> move;  // Nothing: stop.
  std::string workload;             // Whose pod; its pods on move->from are all the same to it.
  Terms predicted;                  // The terms after it.
  std::optional<double> score;      // The policy's, larger is better; nothing if it ranks nothing.
};

// Moves that are not allowed, and why.
struct Refusal {
  std::string workload;  // Empty: all.
  std::string node;      // Empty: all.
  std::string reason;    // In words.
  std::string pod;       // The one of the workload that it is about; empty: all.

  bool operator==(const Refusal&) const = default;
};

enum class Fate {
  kInFlight,  // Submitted; nothing has been heard yet.
  kStayed,    // The policy chose to stop.
  kRefused,   // By the guard.
  kDone,
  kFailed,    // Refused or given up by the cluster.
  kRecorded,  // In shadow: it would have been submitted, and nothing was touched.
  kUnknown,   // The controller ended before it was heard.
};

std::string_view FateName(Fate fate);
std::optional<Fate> FateNamed(std::string_view name);

struct JournalRow {
  std::chrono::nanoseconds at{0};  // Time of the cluster.
  std::string application;         // What was decided for; empty where there is only one.
  std::string kind = "migration";  // Of decision.
  std::string mode;                // shadow, ...
  int64_t plan = 0;                // Plans and steps are counted from 0.
  int step = 0;
  std::string policy, baseline;  // What chose, and what it is compared with; empty: none.
  std::string objective;         // For what it chose.

  uint64_t state_version = 0;
  Terms seen;
  int64_t allowed_cells = 0;            // Stop included.
  std::vector<Alternative> considered;  // The best few, best first.
  std::vector<Refusal> refused;         // What was not allowed, the first few.
  int64_t refused_count = 0;            // All of it.
  std::vector<JournalMove> chosen;      // Empty: stay.
  std::vector<JournalMove> baseline_choice;
  Terms predicted;  // After what was chosen.
  double predicted_gain_ms = 0;
  double step_cost_ms = 0;  // Of this step, had it been made.
  // With the last row of a plan: by how much its moves lower latency, less the cost of its steps;
  // and the same of the baseline's moves from the same state, as many at most.
  std::optional<double> plan_gain_ms, baseline_plan_gain_ms;
  Verdict verdict;

  Fate fate = Fate::kInFlight;
  std::string failure;            // Why kFailed.
  std::optional<Terms> measured;  // In the first state seen after it was done or had failed.
  std::string move;               // The id of the pod's move, where one was begun.
};

// The outcome of a row: its fields of the same names.
struct RowEnd {
  Fate fate = Fate::kDone;
  std::string failure;
  std::optional<Terms> measured;  // None: not measured.
  std::string move = {};
};

// A pod that an earlier process moved.
struct EarlierMove {
  std::string workload, from, to;
  std::chrono::nanoseconds ago{0};
  std::string pod = {};
  bool is_failed = false;  // The pod is where it was, and rests; nothing else counts.
};

class Journal {
 public:
  virtual ~Journal() = default;

  // Returns the row's number; numbers grow. An error means that the row is not there, and that
  // what it says must not be done.
  virtual Result<int64_t> Append(JournalRow row) = 0;

  // The outcome of a row that was in flight. After an error it may be said again.
  virtual Result<void> Conclude(int64_t number, const RowEnd& end) = 0;
};

// Keeps all rows; for the simulated cluster, tests and short runs.
class MemoryJournal final : public Journal {
 public:
  Result<int64_t> Append(JournalRow row) override;  // Counted from 0.
  Result<void> Conclude(int64_t number, const RowEnd& end) override;

  std::span<const JournalRow> rows() const { return rows_; }

 private:
  std::vector<JournalRow> rows_;
};

}  // namespace rudderfish
