// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/controller_client.h"
#include "cli/terminal.h"
#include "control/mode.h"

namespace rudderfish {
namespace {

Result<std::string> LadderRequest(const Arguments& arguments, std::string_view verb) {
  const std::string& kind = arguments.operands()[0];
  if (kind != "placement") {
    return Invalid("`{}`: placement alone can be promoted and demoted in this version", kind);
  }
  std::string request(verb);
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
  Say(session, "placement: {} -> {}", answer["from"].get<std::string>(),
      answer["mode"].get<std::string>());
  for (const OrderedJson& missing : answer["missing"])
    Say(session, "without: {}", missing.get<std::string>());
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
  return {.name = "promote",
          .summary = "lets the controller that runs dare a step more, if the evidence is there",
          .operands = {{.name = "placement"}},
          .options = {{"--to", kModeNames, "as far as this; the next mode by default"},
                      {"--from", "NUMBER",
                       "counts only comparisons from this number on: what came after a difference "
                       "was mended"},
                      {"--force", "", "without evidence; what was missing is said"},
                      kRunningConfigOption,
                      kSocketOption},
          .details =
              "Above shadow it takes 500 shadowed decisions, 30 of them measured, rules equal in "
              "all of them, and a predicted gain beyond the Model's own measured error; for "
              "enforce also a canary that does no worse than its control group. `status` shows "
              "what is missing, and names comparisons whose rules differ (docs/placement.md).",
          .examples = {"promote placement", "promote placement --from 812",
                       "promote placement --to canary --force"},
          .run = RunPromote};
}

CommandSpec DemoteCommand() {
  return {.name = "demote",
          .summary = "lets the controller that runs dare less",
          .operands = {{.name = "placement"}},
          .options = {{"--to", kModeNames, "as far as this; one mode lower by default"},
                      kRunningConfigOption,
                      kSocketOption},
          .examples = {"demote placement --to shadow"},
          .run = RunDemote};
}

}  // namespace rudderfish
