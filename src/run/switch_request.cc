// SPDX-License-Identifier: Apache-2.0
#include "run/switch_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/log.h"

namespace rudderfish {
namespace {

constexpr std::string_view kModeRequest = "mode ";

// What is to be wished for, and in a word what that is; empty: no such request.
Result<std::string> TakeWish(std::string_view request, Wish* wish) {
  if (request == "pause" || request == "resume") {
    wish->paused = request == "pause";
    return std::string(wish->paused ? "paused" : "resumed");
  }
  if (request == "kill") {
    wish->killed = true;
    return std::string("killed");
  }
  if (!request.starts_with(kModeRequest)) {
    return Invalid("unknown request `{}`; there are status, pause, resume, kill, mode MODE",
                   request.substr(0, 60));
  }
  TRY_ASSIGN(wish->mode, ModeNamed(request.substr(kModeRequest.size())));
  return fmt::format("held at {}", ModeName(*wish->mode));
}

}  // namespace

std::string DumpAnswer(const OrderedJson& json) {
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

std::string AnswerSwitch(std::string_view request, std::span<const SwitchedKind> kinds,
                         ModeSwitch* switches) {
  Wish wish = switches->wish(ModeSwitch::Source::kSocket);
  const Result<std::string> what = TakeWish(request, &wish);
  if (!what) return DumpAnswer({{"error", what.error().message}});
  switches->Set(ModeSwitch::Source::kSocket, wish);
  LogInfo("{} by the command line", *what);
  OrderedJson answers = OrderedJson::array();
  for (const SwitchedKind& kind : kinds) {
    answers.push_back({{"kind", kind.name},
                       {"mode", ModeName(switches->Effective(kind.configured))},
                       {"why", switches->Why(kind.configured)}});
  }
  return DumpAnswer({{"ok", true}, {"kinds", std::move(answers)}});
}

std::string ObeyConfigMap(const kube::ConfigMapWatch::Said& said,
                          std::span<const SwitchedKind> kinds, ModeSwitch* switches) {
  const StatedWish stated =
      said
          ? WishFrom(*said)
          : StatedWish{.wish = {.paused = true},
                       .problem = said.error().message + ": as `pause` until it can be understood"};
  if (!stated.problem.empty()) LogError("the ConfigMap: {}", stated.problem);
  if (stated.wish == switches->wish(ModeSwitch::Source::kConfigMap)) return stated.problem;
  switches->Set(ModeSwitch::Source::kConfigMap, stated.wish);
  for (const SwitchedKind& kind : kinds) {
    const std::string why = switches->Why(kind.configured);
    LogInfo("by the ConfigMap: {}: {}{}{}", kind.name,
            ModeName(switches->Effective(kind.configured)), why.empty() ? "" : ", ", why);
  }
  return stated.problem;
}

}  // namespace rudderfish
