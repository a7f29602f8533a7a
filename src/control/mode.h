// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

// How far a controller may go, for each kind of decision, and the switches by which people hold it
// back while it runs. The most careful wish of all counts: the mode that the kind has reached
// (control/mode_ladder.h), what was said on the local socket, what a ConfigMap of the cluster says,
// what was said to the instance that leads. Not thread safe.

namespace rudderfish {

// From the one that may do least to the one that may do most.
enum class Mode {
  kOff,      // Decides nothing.
  kShadow,   // Decides and records; touches nothing.
  kAdvise,   // The same, and tells the cluster what it would do.
  kCanary,   // Acts on a part.
  kEnforce,  // Acts.
};

std::string_view ModeName(Mode mode);
Result<Mode> ModeNamed(std::string_view name);  // The nearest name in the message.

// What one source asks for.
struct Wish {
  std::optional<Mode> mode;  // At most this.
  bool paused = false;
  bool killed = false;  // Off until the program is restarted, whatever is wished later.

  bool operator==(const Wish&) const = default;
};

// What is wished for, and what of the words could not be understood, in words; empty: nothing.
struct StatedWish {
  Wish wish;
  std::string problem;
};

// From key and value pairs as a ConfigMap holds them: mode, pause: "true", resume: "true",
// kill: "true"; upper and lower case count as equal, and yes, on and 1 are as true. A user who
// holds a program back is in a hurry: a value of `kill`, `pause` or `mode` that is not understood
// counts as `pause`, and an unknown key is told and changes nothing else.
StatedWish WishFrom(const std::map<std::string, std::string>& data);

class ModeSwitch {
 public:
  enum class Source { kSocket, kConfigMap, kLease };

  void Set(Source source, const Wish& wish);
  const Wish& wish(Source source) const { return wishes_[static_cast<size_t>(source)]; }

  // As paused, as what a source wishes for is not known, until `why` is empty again.
  void Hold(std::string why) { held_ = std::move(why); }

  // The mode that holds for a decision kind that is configured as `configured`.
  Mode Effective(Mode configured) const;

  bool paused() const;
  bool killed() const { return killed_; }

  // Why the effective mode is lower than configured, in words; empty if it is not.
  std::string Why(Mode configured) const;

 private:
  std::array<Wish, 3> wishes_;
  std::string held_;
  bool killed_ = false;
};

std::string_view SourceName(ModeSwitch::Source source);

}  // namespace rudderfish
