// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/wall_time.h"
#include "control/mode.h"

// The mode that a kind of decision has reached by promotions. The journal keeps it over a restart,
// and of several instances the Lease keeps it for the next leader. It counts for as long as the
// configuration says what it said then: another mode there begins again, and so does another policy
// or objective than the one that earned it.

namespace rudderfish {

struct KeptMode {
  Mode configured = Mode::kShadow;  // What the configuration said.
  Mode mode = Mode::kShadow;
  std::string policy, objective;  // Whose evidence it rests on; a learned policy with its digest.
  UnixMillis since = 0;
  // It has begun to serve: pods that name us are placed whatever the mode, by the policy or not.
  bool serves = false;
  std::string why;  // In words: who or what has set it.

  bool operator==(const KeptMode&) const = default;
};

// That somebody has paused a controller: it holds until it is resumed, even across restarts.
struct KeptPause {
  UnixMillis since = 0;  // 0: it is not paused.
  std::string by;
  bool is_shared = false;  // The Lease says so, and may be told otherwise by who leads next.

  bool is_on() const { return since != 0; }
  bool operator==(const KeptPause&) const = default;
};

// What stands in the Lease for the next leader: one line of JSON.
struct LeaseWord {
  std::map<std::string, KeptMode, std::less<>> modes;  // By kind of decision.
  KeptPause pause;                                     // Without is_shared, which it is.

  bool operator==(const LeaseWord& other) const {
    return modes == other.modes && pause.since == other.pause.since && pause.by == other.pause.by;
  }
};
std::string LeaseWordText(const LeaseWord& word);
// `source` is how messages call where it was read.
Result<LeaseWord> LeaseWordFrom(std::string_view text, std::string_view source);

}  // namespace rudderfish
