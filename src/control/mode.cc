// SPDX-License-Identifier: Apache-2.0
#include "control/mode.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/suggest.h"

namespace rudderfish {
namespace {

constexpr std::array<std::string_view, 5> kModes = {"off", "shadow", "advise", "canary", "enforce"};

Result<bool> SwitchOf(std::string_view key, std::string_view value) {
  if (value == "true") return true;
  if (value == "false" || value.empty()) return false;
  return Invalid("`{}`: expected true or false, found \"{}\"", key, value.substr(0, 60));
}

}  // namespace

std::string_view ModeName(Mode mode) { return kModes[static_cast<size_t>(mode)]; }

Result<Mode> ModeNamed(std::string_view name) {
  const auto at = std::find(kModes.begin(), kModes.end(), name);
  if (at != kModes.end()) return static_cast<Mode>(at - kModes.begin());
  const std::string near = DidYouMean(name, kModes);
  return Invalid("no mode is called \"{}\"{}", name.substr(0, 60),
                 near.empty() ? "; there are off, shadow, advise, canary, enforce" : near);
}

Result<Mode> AvailableModeNamed(std::string_view name, Mode highest) {
  TRY_ASSIGN(const Mode mode, ModeNamed(name));
  if (mode > highest) {
    return Fail(ErrorCode::kFailedPrecondition,
                "mode {} is not available in this version, which goes up to {}", name,
                ModeName(highest));
  }
  return mode;
}

Result<Wish> WishFrom(const std::map<std::string, std::string>& data) {
  static constexpr std::array<std::string_view, 4> kKeys = {"mode", "pause", "resume", "kill"};
  Wish wish;
  bool resumed = false;
  for (const auto& [key, value] : data) {
    if (key == "mode") {
      TRY_ASSIGN(wish.mode, ModeNamed(value));
    } else if (key == "pause") {
      TRY_ASSIGN(wish.paused, SwitchOf(key, value));
    } else if (key == "resume") {
      TRY_ASSIGN(resumed, SwitchOf(key, value));
    } else if (key == "kill") {
      TRY_ASSIGN(wish.killed, SwitchOf(key, value));
    } else {
      return Invalid("unknown key `{}`{}", key.substr(0, 60), DidYouMean(key, kKeys));
    }
  }
  if (wish.paused && resumed) return Invalid("says both `pause` and `resume`");
  return wish;
}

void ModeSwitch::Set(Source source, const Wish& wish) {
  wishes_[static_cast<size_t>(source)] = wish;
  killed_ = killed_ || wish.killed;
}

bool ModeSwitch::paused() const {
  return std::any_of(wishes_.begin(), wishes_.end(), [](const Wish& wish) { return wish.paused; });
}

Mode ModeSwitch::Effective(Mode configured) const {
  if (killed_ || paused()) return Mode::kOff;
  Mode mode = configured;
  for (const Wish& wish : wishes_) mode = std::min(mode, wish.mode.value_or(mode));
  return mode;
}

std::string ModeSwitch::Why(Mode configured) const {
  if (killed_) return "killed; start the program anew to go on";
  for (size_t i = 0; i < wishes_.size(); ++i) {
    const std::string_view who = SourceName(static_cast<Source>(i));
    if (wishes_[i].paused) return fmt::format("paused by {}", who);
  }
  for (size_t i = 0; i < wishes_.size(); ++i) {
    const std::string_view who = SourceName(static_cast<Source>(i));
    if (wishes_[i].mode && *wishes_[i].mode < configured) {
      return fmt::format("held at {} by {}", ModeName(*wishes_[i].mode), who);
    }
  }
  return {};
}

std::string_view SourceName(ModeSwitch::Source source) {
  return source == ModeSwitch::Source::kSocket ? "the command line" : "the ConfigMap";
}

}  // namespace rudderfish
