// SPDX-License-Identifier: Apache-2.0
#include "control/mode.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/suggest.h"

namespace rudderfish {
namespace {

constexpr std::array<std::string_view, 5> kModes = {"off", "shadow", "advise", "canary", "enforce"};

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

// As people write a value: without the spaces and the newline around it, in lower case.
std::string WordOf(std::string_view value) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t first = value.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return "";
  return Lower(value.substr(first, value.find_last_not_of(kSpace) - first + 1));
}

std::optional<bool> SwitchOf(std::string_view word) {
  static constexpr std::array<std::string_view, 6> kOn = {"true", "t", "yes", "y", "on", "1"};
  static constexpr std::array<std::string_view, 7> kOff = {"false", "f", "no", "n", "off", "0", ""};
  if (std::find(kOn.begin(), kOn.end(), word) != kOn.end()) return true;
  if (std::find(kOff.begin(), kOff.end(), word) != kOff.end()) return false;
  return std::nullopt;
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

StatedWish WishFrom(const std::map<std::string, std::string>& data) {
  static constexpr std::array<std::string_view, 4> kKeys = {"mode", "pause", "resume", "kill"};
  StatedWish stated;
  Wish& wish = stated.wish;
  const auto note = [&](const std::string& problem) {
    stated.problem += (stated.problem.empty() ? "" : "; ") + problem;
  };
  const auto hold = [&](const std::string& problem) {
    wish.paused = true;
    note(problem + ": as `pause` until it can be understood");
  };
  bool is_resumed = false;
  for (const auto& [name, value] : data) {
    const std::string key = Lower(name), word = WordOf(value);
    if (std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end()) {
      note(fmt::format("unknown key `{}`, which changes nothing{}", name.substr(0, 60),
                       DidYouMean(key, kKeys)));
      continue;
    }
    if (key == "mode") {
      const Result<Mode> mode = ModeNamed(word);
      if (mode) {
        wish.mode = std::min(*mode, wish.mode.value_or(*mode));
      } else {
        hold(mode.error().message);
      }
      continue;
    }
    const std::optional<bool> is_on = SwitchOf(word);
    if (is_on) {
      bool* const wished = key == "kill"    ? &wish.killed
                           : key == "pause" ? &wish.paused
                                            : &is_resumed;
      *wished = *wished || *is_on;
      continue;
    }
    const std::string problem =
        fmt::format("`{}`: expected true or false, found \"{}\"", key, value.substr(0, 60));
    if (key == "resume") {
      note(problem);
    } else {
      hold(problem);
    }
  }
  if (wish.paused && is_resumed) note("says both `pause` and `resume`: it is paused");
  return stated;
}

void ModeSwitch::Set(Source source, const Wish& wish) {
  wishes_[static_cast<size_t>(source)] = wish;
  killed_ = killed_ || wish.killed;
}

bool ModeSwitch::paused() const {
  return !held_.empty() ||
         std::any_of(wishes_.begin(), wishes_.end(), [](const Wish& wish) { return wish.paused; });
}

Mode ModeSwitch::Effective(Mode configured) const {
  if (killed_ || paused()) return Mode::kOff;
  Mode mode = configured;
  for (const Wish& wish : wishes_) mode = std::min(mode, wish.mode.value_or(mode));
  return mode;
}

std::string ModeSwitch::Why(Mode configured) const {
  if (killed_) return "killed; restart the program to continue";
  for (size_t i = 0; i < wishes_.size(); ++i) {
    const std::string_view who = SourceName(static_cast<Source>(i));
    if (wishes_[i].paused) return fmt::format("paused by {}", who);
  }
  if (!held_.empty()) return "as paused: " + held_;
  for (size_t i = 0; i < wishes_.size(); ++i) {
    const std::string_view who = SourceName(static_cast<Source>(i));
    if (wishes_[i].mode && *wishes_[i].mode < configured) {
      return fmt::format("held at {} by {}", ModeName(*wishes_[i].mode), who);
    }
  }
  return {};
}

std::string_view SourceName(ModeSwitch::Source source) {
  switch (source) {
    case ModeSwitch::Source::kSocket:
      return "the command line";
    case ModeSwitch::Source::kConfigMap:
      return "the ConfigMap";
    case ModeSwitch::Source::kLease:
      break;
  }
  return "the instance that leads";
}

}  // namespace rudderfish
