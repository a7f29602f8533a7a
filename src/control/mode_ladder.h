// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/result.h"
#include "control/sqlite_modes.h"

// How far one kind of decision may go: off < shadow < advise < canary < enforce. It begins in the
// mode of the configuration. `promote` raises it where the evidence allows that, `demote` lowers
// it, and a canary that does worse than it should is lowered to shadow without a request.
// The journal keeps the mode over a restart; run/shared_standing.h carries it to other instances.
//
// The ladder is the same for every kind; each brings its evidence. One thread.

namespace rudderfish {

// What a kind of decision has recorded, as far as its ladder asks. An error is the journal's.
class ModeEvidence {
 public:
  virtual ~ModeEvidence() = default;

  // What a promotion to `to` lacks, one line each; empty: nothing. `now` says whose evidence
  // counts and since when its mode holds; only records numbered `from` or later count.
  virtual Result<std::vector<std::string>> Missing(const KeptMode& now, Mode to, int64_t from) = 0;

  // Why what was done since then, in canary or enforce, does worse than it should, in a sentence;
  // nothing: it does not, or there is too little of it to say.
  virtual Result<std::optional<std::string>> WhyWorse(UnixMillis since) = 0;

  // The evidence so far, for `status`.
  virtual Result<OrderedJson> Describe(const KeptMode& now) = 0;
};

class ModeLadder {
 public:
  struct Kind {
    std::string_view name;    // placement, migration
    std::string_view record;  // What "from NUMBER" numbers, as `decisions` lists it: comparison.
  };
  // Of the configuration. Evidence counts for one policy and one objective.
  struct Settings {
    Mode mode = Mode::kShadow;
    std::string policy, objective;
  };

  // Evidence and what the journal keeps of modes outlive it.
  static Result<std::unique_ptr<ModeLadder>> Open(const Kind& kind, Settings settings,
                                                  ModeEvidence* evidence, SqliteModes* modes);

  // The configuration was reloaded: as after a restart with it. The new mode holds even where the
  // journal cannot be written, which is the error.
  Result<void> Configure(Settings settings);

  const Kind& kind() const { return kind_; }
  Mode mode() const { return kept_.mode; }
  const KeptMode& kept() const { return kept_; }
  // It has acted before, and goes on for those that rely on it in lower modes: pods that name us.
  bool serves() const { return kept_.serves; }

  // Continues in the mode of another instance that leads or has led, unless the configurations of
  // both name another mode. An error is the journal's; what was taken holds.
  Result<void> Take(const KeptMode& kept);

  // Writes the mode to the journal once more, as to one that lacks it.
  Result<void> Keep();
  // Why the mode is not in the journal; empty: it is.
  const std::string& unkept() const { return unkept_; }

  // "promote" or "demote", one step unless a mode follows; after "promote" also "from NUMBER", the
  // first record that counts, and "force". A line of JSON; a refusal has `missing`.
  // `missing_rights`: what the cluster would have to allow for a mode, one line each.
  using MissingRights = std::function<std::vector<std::string>(Mode to)>;
  std::string Answer(std::string_view request, const MissingRights& missing_rights = nullptr);

  // Now and then in canary and enforce: why it has gone back to shadow, if it has. What was done
  // more than kTrialWindow ago no longer counts, so that it shows when what was right goes wrong.
  static constexpr std::chrono::hours kTrialWindow{24 * 7};
  Result<std::optional<std::string>> LookAtActing(Instant now);

  // For `status`: mode, evidence, what the next mode lacks.
  OrderedJson Describe() const;

 private:
  struct Request {  // Understood.
    bool is_up = false, is_forced = false;
    Mode to = Mode::kOff;
    int64_t from = 0;
  };

  ModeLadder(const Kind& kind, ModeEvidence* evidence, SqliteModes* modes)
      : kind_(kind), evidence_(evidence), modes_(modes) {}
  Result<void> Begin(Settings settings, const std::optional<KeptMode>& before);
  Result<Request> Understand(std::string_view request) const;
  Result<std::vector<std::string>> Missing(Mode to, int64_t from) const;
  KeptMode Next(Mode mode, std::string why) const;
  Result<void> Set(Mode mode, std::string why);

  Kind kind_;
  Settings settings_;
  ModeEvidence* evidence_;
  SqliteModes* modes_;
  KeptMode kept_;
  std::string unkept_;
  Instant looked_at_;
};

}  // namespace rudderfish
