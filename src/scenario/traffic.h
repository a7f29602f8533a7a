// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "scenario/arrivals.h"
#include "scenario/rate_curve.h"

// How many requests come, over time: a shape of load, from which each episode draws a RateCurve.
// Rates are requests per second of all endpoints together.

namespace rudderfish {

// Recorded arrivals, counted; docs/load.md describes the formats.
struct RequestTrace {
  double bin_s = 60;           // Width of a bin,
  std::vector<double> counts;  // and the arrivals in each; the last may be cut short.

  bool operator==(const RequestTrace&) const = default;
};

struct Traffic {
  // kSteady   `low` all the time.
  // kDiurnal  a sine from `low` to `high` with a period; where it begins is drawn.
  // kRamp     `low` until `begin`, straight to `high` at `end`, and on.
  // kBursty   `low`, and again and again, `every` so often, `high` for `lasts`.
  // kFlash    `low`; at `at`, within `rise`, `high` for `hold`; back to `low` within `fall`.
  // kStaged   users in stages, as the load generator of an earlier system drew them: blocks of
  //           steady load, slow growth, minor and major spikes (after which comes a steady block),
  //           each stage reached within 30 s; `low` requests per second for each of `high` users at
  //           the top of the major spike.
  // kReplay   what a trace recorded.
  enum class Shape { kSteady, kDiurnal, kRamp, kBursty, kFlash, kStaged, kReplay };

  Shape shape = Shape::kSteady;
  double low_per_s = 0, high_per_s = 0;
  SimTime period{0}, begin{0}, end{0};
  TimeLaw every, lasts, at;
  SimTime rise{0}, hold{0}, fall{0};

  // Of kReplay.
  std::string file;           // Relative to the scenario's.
  std::string format;         // One of kRequestTraceFormats.
  SimTime bin{0};             // Arrivals are counted so finely.
  double time_warp = 1;       // They come so many times faster than recorded.
  double scale_per_s = 0;     // The mean over the trace; 0: as recorded, after the warp.
  double from = 0, upto = 1;  // The part of the trace that is replayed,
  double held_out = 0.5;      // and the share of that, at its end, that nothing is learned on.
  std::shared_ptr<const RequestTrace> trace;  // Null: not read.
};

// Sessions of users: so many requests each in the mean, of a geometric law, and an exponential time
// to think after every answer but the last.
struct SessionLaw {
  double requests = 1;  // 1: every request is a user of its own.
  SimTime think{0};

  bool operator==(const SessionLaw&) const = default;
};

inline constexpr std::string_view kTrafficShapes[] = {"steady", "diurnal", "ramp",  "bursty",
                                                      "flash",  "staged",  "replay"};

// What an episode is for: to train, calibrate, validate and choose on, or to evaluate on. A replay
// is split in time, so that no policy is evaluated on minutes it has learned from; the other shapes
// draw the same for both, from seeds that differ.
enum class EpisodeUse { kLearning, kEvaluation };

// Bins [first, last) of a replay's trace, in which its episodes begin, and go round: first those
// for learning, then those for evaluation. REQUIRES: HasPartForEach.
struct TracePart {
  size_t first = 0, last = 0;
};
TracePart PartFor(const Traffic& traffic, EpisodeUse use);
// Whether the trace, which has been read, has at least one bin for each.
bool HasPartForEach(const Traffic& traffic);

// A replay of one episode: the rate at any time since it began, going round in its part of the
// trace. Allocates nothing. REQUIRES: as DrawCurve of kReplay; the traffic outlives it.
class TraceReplay {
 public:
  // `begin` in [0, 1): where in the part it begins.
  TraceReplay(const Traffic& traffic, EpisodeUse use, double begin);

  double PerS(double seconds) const;  // REQUIRES: not negative.

 private:
  std::span<const double> part_;
  double begin_, warp_, bin_s_, scale_;
};

// One episode's curve: a pure function of its arguments, in steps of a second.
// REQUIRES: of kReplay, the trace has been read, and HasPartForEach.
RateCurve DrawCurve(const Traffic& traffic, EpisodeUse use, SimTime duration, uint64_t seed);

// The curve of users who come so often that in the long run as many requests come as `shape` says:
// per_s follows its changes as late as users think. With T users thinking, who all come back to ask
// at the rate 1/think, and s sessions a second that begin, T' = again (s + T/think) - T/think.
RateCurve WithSessions(const RateCurve& shape, const SessionLaw& law);

// Arrivals of a trace in bins. Messages read file:line:column.
//
//   azure-llm     the columns of AzureLLMInferenceTrace: TIMESTAMP,ContextTokens,GeneratedTokens
//   openb         pods of Alibaba's cluster-trace-gpu-v2023, by `creation_time` in seconds
//   google-2019   events of Google's ClusterData2019, by `time` in microseconds: those whose `type`
//                 is SUBMIT, or 0
//
// REQUIRES: `format` is one of these.
inline constexpr std::string_view kRequestTraceFormats[] = {"azure-llm", "openb", "google-2019"};
Result<RequestTrace> ReadRequestTrace(std::string_view text, std::string_view source_name,
                                      std::string_view format, SimTime bin);

}  // namespace rudderfish
