// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "control/guard.h"
#include "model/latency.h"

// What was decided and why, one row a decision: what was seen, what was considered, what the Model
// predicted, what a baseline would have done, whether the guard allowed it, and what came of it.
// Rows name pods and nodes, because ids are valid for one version of one State. Not thread safe.

namespace rudderfish {

struct JournalMove {
  std::string pod, from, to;

  bool operator==(const JournalMove&) const = default;
};

// An alternative that could have been chosen.
struct Alternative {
  std::optional<JournalMove> move;  // Nothing: stop.
  Terms predicted;                  // The terms after it.
  double score = 0;                 // The policy's, larger is better; 0 if it ranks nothing.
};

enum class Fate {
  kInFlight,  // Submitted; nothing has been heard yet.
  kStayed,    // The policy chose to stop.
  kRefused,   // By the guard.
  kDone,
  kFailed,  // Refused or given up by the cluster.
};

std::string_view FateName(Fate fate);

struct JournalRow {
  std::chrono::nanoseconds at{0};  // Time of the cluster.
  int64_t plan = 0;                // Plans and steps are counted from 0.
  int step = 0;
  std::string policy, baseline;  // Who chose, and who was asked beside it; empty: nobody.

  uint64_t state_version = 0;
  Terms seen;
  int64_t allowed_cells = 0;            // Stop included.
  std::vector<Alternative> considered;  // The best few, best first.
  std::vector<JournalMove> chosen;      // Empty: stay.
  std::vector<JournalMove> baseline_choice;
  Terms predicted;  // After what was chosen.
  double predicted_gain_ms = 0;
  double step_cost_ms = 0;
  Verdict verdict;

  Fate fate = Fate::kInFlight;
  std::string failure;            // Why kFailed.
  std::optional<Terms> measured;  // In the first state seen after it was done or had failed.
};

class Journal {
 public:
  virtual ~Journal() = default;

  // Returns the row's number, counted from 0.
  virtual int64_t Append(JournalRow row) = 0;

  // What came of a row that was in flight.
  virtual void Conclude(int64_t number, Fate fate, std::string_view failure,
                        const Terms& measured) = 0;
};

// Keeps all rows; for the simulated cluster, tests and short runs.
class MemoryJournal final : public Journal {
 public:
  int64_t Append(JournalRow row) override;
  void Conclude(int64_t number, Fate fate, std::string_view failure,
                const Terms& measured) override;

  std::span<const JournalRow> rows() const { return rows_; }

 private:
  std::vector<JournalRow> rows_;
};

}  // namespace rudderfish
