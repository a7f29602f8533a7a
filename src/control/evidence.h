// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/state.h"
#include "model/evaluator.h"

// What the real world says of the Model. Whenever the cluster changes by itself (pods rescheduled,
// scaled, moved by hand) the Model predicts, from nothing but the two States, by how much each
// latency changes; later the signals tell by how much it did. The difference is the Model's error,
// kept by term. Nothing here is the Model's word about itself: no reading, no evidence.
//
// Where the Model is corrected (control/model_correction.h), the error is that of the corrected
// one; what it says without correction is kept beside it, by part, so that the next correction does
// not rest on the last one.
//
// A change is settled when every endpoint that was read before it was read again with a window that
// begins at least `settle` after it. Changes that come before that are one change. A change before
// which nothing was read is not measured, and is no part of the next one. Not thread safe.

namespace rudderfish {

// One value that a signal measured.
struct Reading {
  std::string endpoint;             // Of the call graph; empty: the mean over all of them.
  std::string term = "latency_ms";  // TermNames; of one endpoint only latency_ms.
  double value_ms = 0;
  std::chrono::nanoseconds at{0};      // Time of the cluster, at the end of the window.
  std::chrono::nanoseconds window{0};  // Over which it is a mean.
  std::string source;                  // prometheus, ...
};

struct EvidenceRow {
  std::string application;
  std::string change;  // In words: "detection-7 from edge-1 to cloud-2"; the first few.
  std::string endpoint, term, source;
  double predicted_change_ms = 0;
  double measured_change_ms = 0;
  // What the Model was made of, so that evidence of another one can be told apart.
  std::string model;
  // The predicted change without correction; only the part that `term` names, or all of latency_ms.
  Terms uncorrected;

  double error_ms() const { return predicted_change_ms - measured_change_ms; }
};

// The quantile of Student's t at 0.975: a table for 1 to 30 degrees of freedom, then the normal one
// with a correction of first order (Abramowitz and Stegun 26.7.5), right to 0.002.
double StudentQuantile(int64_t freedom);

// Everything known of one term's errors.
struct EvidenceSum {
  std::string application, term;
  int64_t count = 0;
  double error_sum = 0, error_squares = 0, absolute_sum = 0;

  void Add(double error_ms);
  double mean_ms() const { return count == 0 ? 0 : error_sum / static_cast<double>(count); }
  double mean_absolute_ms() const {
    return count == 0 ? 0 : absolute_sum / static_cast<double>(count);
  }
  // Half the width of the 95 % interval of the mean error (Student's t); nothing below 2.
  std::optional<double> interval_ms() const;
};

class EvidenceSink {
 public:
  virtual ~EvidenceSink() = default;
  virtual Result<void> AppendEvidence(const EvidenceRow& row) = 0;
};

struct EvidenceOptions {
  std::chrono::nanoseconds settle = std::chrono::seconds(30);
  std::chrono::nanoseconds patience = std::chrono::minutes(10);  // Then a change goes unmeasured.
  std::string model;                                             // EvidenceRow::model.
};

class EvidenceWatch {
 public:
  EvidenceWatch(std::string application, const LatencyLaw& law, const EvidenceOptions& options,
                EvidenceSink* sink);

  // The corrected law, by which changes are predicted from now on.
  void SetLaw(const LatencyLaw& law) { model_ = Evaluator(law); }

  // What the cluster looks like now, and what was read since the last call.
  Result<void> Observe(const State& state, std::span<const Reading> readings);

  int64_t changes_seen() const { return changes_seen_; }
  int64_t changes_measured() const { return changes_measured_; }
  int64_t changes_unmeasured() const { return changes_unmeasured_; }
  bool waiting() const { return waiting_; }

 private:
  struct Change {  // Of latencies.
    Terms mean;
    std::vector<Terms> endpoints;

    // None of an endpoint that there is not.
    std::optional<Terms> Of(const CallGraph& calls, const Reading& reading) const;
  };
  struct Track {  // Readings of one endpoint and term.
    Reading newest;
    std::optional<Reading> before;  // The last one before the change that is being watched.
    std::optional<Reading> after;   // The first that has settled.
  };

  Change Predict(const State& state, Evaluator* model) const;
  void NoteChange(const State& state);
  bool ReadBefore(const State& state);  // False: nothing was.
  void Take(const Reading& reading);
  bool Settled() const;
  Result<void> Conclude();

  std::string application_;
  Evaluator model_, uncorrected_;
  EvidenceOptions options_;
  EvidenceSink* sink_;

  State last_, changed_from_;
  bool seen_ = false;
  bool waiting_ = false;
  bool has_changed_ = false;
  std::chrono::nanoseconds changed_at_{0};  // The last time, if it has.
  Change predicted_, predicted_uncorrected_;
  std::string change_;
  std::vector<Track> tracks_;
  size_t told_ = 0;  // Tracks of the settled change that are in the sink already.
  int64_t changes_seen_ = 0;
  int64_t changes_measured_ = 0;
  int64_t changes_unmeasured_ = 0;
};

// Which pods run elsewhere in the second state, in words, the first few; empty: none.
std::string DescribeChange(const State& before, const State& after);

}  // namespace rudderfish
