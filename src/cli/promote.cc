// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/controller_client.h"
#include "cli/terminal.h"
#include "cluster/task_kind.h"
#include "control/mode.h"

namespace rudderfish {
namespace {

Result<std::string> LadderRequest(const Arguments& arguments, std::string_view verb) {
  const std::string& kind = arguments.operands()[0];
  if (std::ranges::count(kDecisionKinds, kind) == 0 && !kind.starts_with("placement/")) {
    return Invalid("unknown kind of decision `{}`; the kinds are {} and placement/CLUSTER", kind,
                   fmt::join(kDecisionKinds, ", "));
  }
  std::string request = fmt::format("{} {}", verb, kind);
  if (const auto to = arguments.Text("to")) {
    if (const Result<Mode> mode = ModeNamed(*to); !mode)
      return Invalid("--to: {}", mode.error().message);
    request += " " + *to;
  }
  return request;
}

Result<ExitStatus> ChangeMode(const Arguments& arguments, const Session& session,
                              const std::string& request) {
  TRY_ASSIGN(const std::filesystem::path socket, SocketOf(arguments));
  TRY_ASSIGN(const OrderedJson answer, AskRunning(socket, request));
  Say(session, "{}: {} -> {}", arguments.operands()[0], answer["from"].get<std::string>(),
      answer["mode"].get<std::string>());
  for (const OrderedJson& missing : answer["missing"])
    Say(session, "promoted although missing: {}", missing.get<std::string>());
  if (answer.contains("warning")) Say(session, "warning: {}", answer["warning"].get<std::string>());
  return ExitStatus::kDone;
}

Result<ExitStatus> RunPromote(const Arguments& arguments, const Session& session) {
  TRY_ASSIGN(std::string request, LadderRequest(arguments, "promote"));
  if (arguments.Has("from")) {
    TRY_ASSIGN(const int64_t from,
               arguments.Integer("from", 1, 1, std::numeric_limits<int64_t>::max()));
    request += fmt::format(" from {}", from);
  }
  if (arguments.Has("force")) request += " force";
  return ChangeMode(arguments, session, request);
}

Result<ExitStatus> RunDemote(const Arguments& arguments, const Session& session) {
  TRY_ASSIGN(const std::string request, LadderRequest(arguments, "demote"));
  return ChangeMode(arguments, session, request);
}

constexpr std::string_view kModeNames = "off|shadow|advise|canary|enforce";

}  // namespace

CommandSpec PromoteCommand() {
  return {
      .name = "promote",
      .summary = "Advance the running controller to the next mode if the evidence supports it",
      .operands = {{.name = "KIND"}},
      .options = {{"--to", kModeNames, "mode to advance to (default: the next mode)"},
                  {"--from", "NUMBER",
                   "ignore comparisons (placement) or decisions (migration) before NUMBER, for "
                   "example those recorded before a mismatch was fixed"},
                  {"--force", "", "advance without the evidence; prints what is missing"},
                  kRunningConfigOption,
                  kSocketOption},
      .details =
          "KIND is placement, migration or routing, or placement/NAME for one of "
          "decisions.placement.clusters. The modes are shadow, advise, canary and enforce. "
          "Leaving shadow requires a "
          "predicted gain larger than the measured error of the model. Placement also requires "
          "500 shadowed decisions, 30 of them measured, with equal scheduling rules in all of "
          "them; for enforce, the canary must do no worse than its control group "
          "(docs/placement.md). Migration also requires, for each application, 100 shadowed "
          "plans, 30 measured changes, and plans that gain no less than the baseline "
          "(docs/shadow.md), and for enforce moves that gained what was predicted in a canary "
          "(docs/moving.md). Routing requires 100 decisions and 30 measured ones for each route, "
          "and for enforce splits that were no slower than predicted in a canary "
          "(docs/routing.md). `status` shows what is missing.",
      .examples = {"promote placement", "promote placement --from 812",
                   "promote placement --to canary --force", "promote placement/us",
                   "promote migration"},
      .run = RunPromote};
}

CommandSpec DemoteCommand() {
  return {.name = "demote",
          .summary = "Move the running controller back to a safer mode",
          .operands = {{.name = "KIND"}},
          .options = {{"--to", kModeNames, "mode to go back to (default: the previous mode)"},
                      kRunningConfigOption,
                      kSocketOption},
          .examples = {"demote placement --to shadow"},
          .run = RunDemote};
}

}  // namespace rudderfish
