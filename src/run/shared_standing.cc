// SPDX-License-Identifier: Apache-2.0
#include "run/shared_standing.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/log.h"

namespace rudderfish {
namespace {

constexpr const char* kPausedKind = "all";  // A pause holds all kinds back.

}  // namespace

using Source = ModeSwitch::Source;

Result<SharedStanding> SharedStanding::Open(Parts parts) {
  SharedStanding standing(std::move(parts));
  TRY_ASSIGN(const KeptPause kept, standing.parts_.journal->PauseOf(kPausedKind));
  if (!kept.is_on()) return standing;
  // What was said in the Lease may have been taken back there by another instance since.
  const bool is_leases = kept.is_shared && standing.lease() != nullptr;
  (is_leases ? standing.leaders_ : standing.own_) = kept;
  standing.SetPause(is_leases ? Source::kLease : Source::kSocket, kept);
  LogWarning("paused, as it was since {} UTC by {}: `rudderfish resume` ends that",
             DateAndTime(kept.since), kept.by);
  return standing;
}

void SharedStanding::SetPause(Source source, const KeptPause& pause) {
  Wish wish = parts_.switches->wish(source);
  wish.paused = pause.is_on();
  parts_.switches->Set(source, wish);
}

Result<void> SharedStanding::TakeSeat() {
  said_.reset();
  if (Leads()) {
    const Result<void> taken = TakeWord();
    // Who leads is who resumes.
    if (!own_.is_on()) own_ = std::exchange(leaders_, {});
    leaders_ = {};
    SetPause(Source::kSocket, own_);
    SetPause(Source::kLease, {});
    TRY(parts_.journal->KeepPause(kPausedKind, own_));
    TRY(taken);
  } else if (own_.is_on() && own_.is_shared) {
    leaders_ = std::exchange(own_, {});
    SetPause(Source::kLease, leaders_);
    SetPause(Source::kSocket, {});
  }
  return Follow();
}

Result<void> SharedStanding::TakeAgain() {
  if (!Leads()) word_.clear();
  return Follow();
}

Result<void> SharedStanding::Keep() {
  TRY(parts_.journal->KeepPause(kPausedKind, own_));
  for (ModeLadder* ladder : parts_.ladders) TRY(ladder->Keep());
  return {};
}

Result<void> SharedStanding::Follow() {
  if (lease() == nullptr) return {};
  if (!Leads()) return TakeWord();
  Say();
  if (!own_.is_on() || own_.is_shared || !lease()->is_carried()) return {};
  own_.is_shared = true;
  return parts_.journal->KeepPause(kPausedKind, own_);
}

void SharedStanding::Say() {
  LeaseWord word{.modes = modes_, .pause = own_};
  for (const ModeLadder* ladder : parts_.ladders) {
    word.modes.insert_or_assign(std::string(ladder->kind().name), ladder->kept());
  }
  if (said_ == word) return;
  word_ = LeaseWordText(word);
  said_ = std::move(word);
  lease()->Carry(word_);
}

Result<void> SharedStanding::TakeWord() {
  if (lease()->carried().empty() || lease()->carried() == word_) return {};
  word_ = lease()->carried();
  Result<LeaseWord> word = LeaseWordFrom(word_, "the Lease");
  if (!word) {
    LogError("{}: as paused until `rudderfish resume`", word.error().message);
    leaders_ = {
        .since = UnixNow(), .by = "a text of the Lease that is not understood", .is_shared = true};
    SetPause(Source::kLease, leaders_);
    return {};
  }
  leaders_ = word->pause;
  SetPause(Source::kLease, leaders_);
  modes_ = std::move(word->modes);
  return TakeModes();
}

Result<void> SharedStanding::TakeModes() {
  Result<void> taken;
  for (ModeLadder* ladder : parts_.ladders) {
    const auto at = modes_.find(ladder->kind().name);
    if (at == modes_.end()) continue;
    const Mode before = ladder->mode();
    if (Result<void> kept = ladder->Take(at->second); !kept) taken = std::move(kept);
    if (ladder->mode() != before) {
      LogInfo("{}: {}, as the Lease says: {}", ladder->kind().name, ModeName(ladder->mode()),
              ladder->kept().why);
    }
  }
  return taken;
}

Result<void> SharedStanding::NotePause() {
  const bool is_paused = parts_.switches->wish(Source::kSocket).paused;
  if (is_paused == own_.is_on()) return {};
  own_ = {};
  if (is_paused) {
    own_ = {.since = UnixNow(),
            .by = parts_.identity.empty() ? "the command line"
                                          : "the command line of " + parts_.identity};
  }
  TRY(parts_.journal->KeepPause(kPausedKind, own_));
  return Follow();
}

std::string WithWarning(const std::string& answer, const std::string& warning) {
  Result<OrderedJson> json = ParseOrderedJson(answer, "the answer");
  if (!json || !json->is_object()) return answer;
  (*json)["warning"] = warning;
  return json->dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace rudderfish
