// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "control/kept_mode.h"
#include "control/mode.h"
#include "control/mode_ladder.h"
#include "control/sqlite_modes.h"
#include "kube/lease.h"

// How far a process may go, as it outlives it: whether it is paused, and the mode that each kind of
// decision has reached. Kept in its journal, and where instances share a Lease in that, for all of
// them: who leads says in it what holds, the others follow, and who leads next has read the last of
// it before it acts. A text of the Lease that is not understood is as a pause.
//
// A pause that is said to an instance that does not lead is its own, until it leads. One thread.

namespace rudderfish {

class SharedStanding {
 public:
  struct Parts {
    SqliteModes* journal = nullptr;
    ModeSwitch* switches = nullptr;
    std::vector<ModeLadder*> ladders;
    kube::LeaseElection* lease = nullptr;  // None: no other instance shares it.
    std::string identity;                  // Ours, where there is a Lease.
  };

  // All outlive it. A pause that was kept holds from now on.
  static Result<SharedStanding> Open(Parts parts);

  // This instance has begun or ceased to lead.
  Result<void> TakeSeat();

  // Takes what the leader has said, or says it. Cheap where nothing has changed. An error is the
  // journal's; what was taken holds.
  Result<void> Follow();

  // The configuration was reloaded: the mode that the leader has said may count now. Errors as of
  // Follow.
  Result<void> TakeAgain();

  // The command line has had its say: a pause, or the end of one, is kept.
  Result<void> NotePause();

  // Keeps the mode and the pause once more, as in a journal that has neither.
  Result<void> Keep();

  // What was said last stands in the Lease, if there is one and we lead.
  bool is_said() const { return !Leads() || lease() == nullptr || lease()->is_carried(); }

  // Since when, and by whom, it is paused by a command line, this one or the leader's.
  const KeptPause& pause() const { return own_.is_on() ? own_ : leaders_; }

 private:
  explicit SharedStanding(Parts parts) : parts_(std::move(parts)) {}
  kube::LeaseElection* lease() const { return parts_.lease; }
  bool Leads() const { return lease() == nullptr || lease()->IsLeader(); }
  Result<void> TakeWord();
  Result<void> TakeModes();
  void Say();
  void SetPause(ModeSwitch::Source source, const KeptPause& pause);

  Parts parts_;
  KeptPause own_, leaders_;
  std::string word_;  // Of the Lease, as it was taken or said last.
  // The last that was understood: also of kinds that this instance does not decide.
  decltype(LeaseWord::modes) modes_;
  std::optional<LeaseWord> said_;  // Since we lead.
};

// An answer of the socket, with a warning to the one who asked.
std::string WithWarning(const std::string& answer, const std::string& warning);

}  // namespace rudderfish
