// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/wall_time.h"
#include "control/mode.h"

// The mode that a kind of decision has come to by promotions, kept in the journal, so that a start
// anew changes nothing, and of several instances in the Lease, so that whoever leads next goes on in
// it. It counts for as long as the configuration says what it said then: whoever writes another
// mode there begins anew, and so does another policy, or objective, than the one that earned it.

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

// One line of JSON, as it stands in the Lease. `source` is how messages call where it was read.
std::string KeptModeText(const KeptMode& kept);
Result<KeptMode> KeptModeFrom(std::string_view text, std::string_view source);

}  // namespace rudderfish
