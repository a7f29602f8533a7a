// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/result.h"
#include "control/sqlite_journal.h"
#include "run/placement_config.h"

// How far placing pods has come: the mode of the configuration, raised and lowered by `promote` and
// `demote`, and lowered by itself where a canary does worse than its control group. Kept in the
// journal, and in the Lease by who drives this; what a promotion rests on is read from the journal.
// One thread.

namespace rudderfish {

class PlacementModes {
 public:
  // The journal outlives it. `policy` and `objective` say of whose comparisons evidence is.
  static Result<std::unique_ptr<PlacementModes>> Open(const PlacementConfig& config,
                                                      std::string policy, std::string objective,
                                                      SqliteJournal* journal);

  Mode mode() const { return kept_.mode; }
  const KeptMode& kept() const { return kept_; }

  // What another instance has come to, which leads or has led: goes on from there, unless the files
  // of both name another mode. An error is the journal's, and changes nothing of that.
  Result<void> Take(const KeptMode& kept);
  // Pods that name us are placed, whatever the mode.
  bool serves() const { return kept_.serves; }

  // "promote" or "demote", one step unless a mode follows; after "promote" also "from NUMBER", the
  // first comparison that counts, and "force". A line of JSON; a refusal has `missing`.
  std::string Answer(std::string_view request);

  // Now and then while a canary runs: why it has been ended, if it has.
  Result<std::optional<std::string>> LookAtCanary(Instant now);

  // For `status`: mode, evidence, what is missing for the next.
  OrderedJson Describe() const;

 private:
  PlacementModes(const PlacementConfig& config, std::string policy, std::string objective,
                 SqliteJournal* journal);
  struct Request {  // Understood.
    bool is_up = false, is_forced = false;
    Mode to = Mode::kOff;
    int64_t from = 0;
  };
  Result<Request> Understand(std::string_view request) const;
  struct Evidence {
    ShadowEvidence shadow;
    TrialEvidence trial;
  };
  EvidenceQuestion QuestionFrom(int64_t number) const;
  Result<Evidence> Read(int64_t from) const;
  OrderedJson SchedulersJson() const;
  KeptMode Next(Mode mode, std::string why) const;
  Result<void> Set(Mode mode, std::string why);

  PlacementConfig config_;
  std::string policy_, objective_;
  SqliteJournal* journal_;
  KeptMode kept_;
  Instant looked_at_;
};

}  // namespace rudderfish
