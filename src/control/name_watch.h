// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "base/clock.h"

// Whether somebody else serves the name by which pods ask for us: another process without the
// Lease, or a profile of another scheduler. It shows where a pod that names us gets a node that we
// did not give it, while it was ours alone to place.
//
// It is ours alone if it was first seen when we had led for a while: what was there before, another
// leader, or we ourselves before a new start, may have placed. One thread.

namespace rudderfish {

class NameWatch {
 public:
  enum class Standing { kLeads, kLooksOn };

  // To be told whenever it may have changed.
  void Note(Standing standing, Instant now) {
    if (standing == Standing::kLooksOn) {
      leads_since_.reset();
    } else if (!leads_since_) {
      leads_since_ = now;
    }
  }

  bool IsOursAlone(Instant first_seen) const {
    return leads_since_ && first_seen >= *leads_since_ + kGrace;
  }

  // Another one was placed by somebody else: at once, then seldom.
  bool IsToBeTold(Instant now) {
    if (told_ && now < *told_ + kBetweenTelling) return false;
    told_ = now;
    return true;
  }

 private:
  static constexpr Duration kGrace = std::chrono::seconds(10);
  static constexpr Duration kBetweenTelling = std::chrono::minutes(10);

  std::optional<Instant> leads_since_, told_;
};

}  // namespace rudderfish
