// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "control/kept_mode.h"
#include "control/mode.h"
#include "control/sqlite_journal.h"
#include "kube/lease.h"
#include "run/placement_modes.h"

// How far a controller may go, as it outlives the process: whether it is paused, and of placing the
// mode that it has come to. Kept in its journal, and where instances share a Lease in that, for all
// of them: who leads says in it what holds, the others follow, and who leads next has read the last
// of it before it acts.
//
// A pause that is said to an instance that does not lead is its own, until it leads. One thread.

namespace rudderfish {

class SharedStanding {
 public:
  struct Parts {
    std::string kind;  // placement, migration
    SqliteJournal* journal = nullptr;
    ModeSwitch* switches = nullptr;
    PlacementModes* modes = nullptr;       // None: there is no mode to keep.
    kube::LeaseElection* lease = nullptr;  // None: nobody shares it.
    std::string identity;                  // Ours, where there is a Lease.
  };

  // All outlive it. A pause that was kept holds from now on.
  static Result<SharedStanding> Open(Parts parts);

  // Whoever leads has changed.
  Result<void> TakeSeat();

  // Takes what the leader has said, or says it. Cheap where nothing has changed. An error is the
  // journal's; what was taken holds.
  Result<void> Follow();

  // The command line has had its say: a pause, or the end of one, is kept.
  Result<void> NotePause();

  // What was said last stands in the Lease, if there is one and we lead.
  bool is_said() const { return !Leads() || lease() == nullptr || lease()->is_carried(); }

  // Since when, and by whom, it is paused by a command line, this one or the leader's.
  const KeptPause& pause() const { return own_.is_on() ? own_ : leaders_; }

 private:
  explicit SharedStanding(Parts parts) : parts_(std::move(parts)) {}
  kube::LeaseElection* lease() const { return parts_.lease; }
  bool Leads() const { return lease() == nullptr || lease()->IsLeader(); }
  Result<void> TakeWord();
  void Say();
  void SetPause(ModeSwitch::Source source, const KeptPause& pause);

  Parts parts_;
  KeptPause own_, leaders_;
  std::string word_;               // Of the Lease, as it was taken or said last.
  std::optional<LeaseWord> said_;  // Since we lead.
};

// An answer of the socket, with a warning to the one who asked.
std::string WithWarning(const std::string& answer, const std::string& warning);

}  // namespace rudderfish
