// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/json.h"
#include "base/one_line.h"
#include "base/text_table.h"
#include "base/wall_time.h"
#include "cli/cluster_source.h"
#include "cli/commands.h"
#include "cli/decision_text.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "kube/move_api.h"
#include "run/pod_mover.h"
#include "run/rights.h"
#include "run/target_check.h"

// `move` moves one pod by hand; `moves` lists the pods that are being moved, and finishes or undoes
// what a killed process has left.

namespace rudderfish {
namespace {

constexpr Duration kBetweenMoveLooks = std::chrono::milliseconds(500);
constexpr Duration kBetweenSteps = std::chrono::milliseconds(250);
constexpr Duration kCheckLimit = std::chrono::seconds(30);
constexpr Duration kSilenceLimit = std::chrono::minutes(1);  // Of the API server.
constexpr double kDefaultLimitS = 120, kDefaultSettleS = 3;

volatile std::sig_atomic_t g_interrupted = 0;

void NoteInterrupt(int /*signal*/) { g_interrupted = 1; }

// The name of "KIND/NAME" or "NAME".
Result<std::string> BareName(std::string_view operand, std::string_view kind) {
  const std::string_view name = operand.starts_with(kind) ? operand.substr(kind.size()) : operand;
  constexpr std::string_view kOfNames = "abcdefghijklmnopqrstuvwxyz0123456789-.";
  if (!name.empty() && name.find_first_not_of(kOfNames) == std::string_view::npos)
    return std::string(name);
  return Invalid("`{}`: expected {}NAME", OneLine(operand), kind);
}

void CatchInterrupts() {
  struct sigaction action {};
  action.sa_handler = NoteInterrupt;
  for (const int signal : {SIGINT, SIGTERM}) ::sigaction(signal, &action, nullptr);
}

// Takes steps until the move is over. An API server that does not answer is asked again for a
// while; then the move stays as it is, for `moves resume`.
Result<MoveAction> FollowMove(PodMover* mover, kube::ApiClient* client, const Session& session) {
  CatchInterrupts();
  std::string said;
  Instant answered = client->clock().Now();
  for (;;) {
    if (g_interrupted != 0) mover->Abort("interrupted");
    const Result<MoveAction> action = mover->Step();
    if (!action) {
      if (client->clock().Now() - answered > kSilenceLimit) {
        return Fail(action.error().code, "{}; `rudderfish moves resume {}` continues the move",
                    action.error().message, mover->move().id);
      }
      if (std::exchange(said, action.error().message) != action.error().message)
        Say(session, "{}", said);
    } else {
      answered = client->clock().Now();
      if (action->outcome) return *action;
      const std::string text = fmt::format("{}: {}", StepName(action->step), action->why);
      if (std::exchange(said, text) != text) Say(session, "{}", text);
    }
    const Instant next = client->clock().Now() + kBetweenSteps;
    while (client->clock().Now() < next) client->Poll(next - client->clock().Now());
  }
}

OrderedJson MoveJson(const PodMove& move, const PodIdentity& pod, const std::string& node) {
  return {{"id", move.id},
          {"namespace", pod.object_namespace},
          {"pod", pod.name},
          {"workload", move.workload},
          {"from", node},
          {"to", move.target},
          {"step", StepName(move.step)},
          {"begun", Rfc3339(move.begun)},
          {"aborting", move.aborting.empty() ? OrderedJson(nullptr) : OrderedJson(move.aborting)}};
}

Result<ExitStatus> ReportMove(const PodMover& mover, const MoveAction& end, const std::string& from,
                              OutputFormat format) {
  const bool is_moved = end.outcome == MoveOutcome::kMoved;
  const double took_s = static_cast<double>(UnixNow() - mover.move().begun) / 1000;
  if (format == OutputFormat::kJson) {
    OrderedJson json = MoveJson(mover.move(), mover.pod().id, from);
    json["outcome"] = is_moved                               ? "moved"
                      : end.outcome == MoveOutcome::kAborted ? "aborted"
                                                             : "ended";
    json["why"] = end.why;
    json["replacement"] =
        mover.replacement().empty() ? OrderedJson(nullptr) : OrderedJson(mover.replacement());
    json["seconds"] = took_s;
    TRY(Print(json.dump(1) + "\n"));
  } else if (is_moved) {
    TRY(Print(fmt::format("pod/{} moved from {} to {} in {:.1f} s: pod/{} serves\n",
                          mover.pod().id.name, from, mover.move().target, took_s,
                          mover.replacement())));
  } else {
    TRY(Print(fmt::format("pod/{} was not moved: {}\n", mover.pod().id.name, end.why)));
  }
  return is_moved ? ExitStatus::kDone : ExitStatus::kFailed;
}

Result<MoveOptions> MoveOptionsOf(const Arguments& arguments) {
  MoveOptions options;
  TRY_ASSIGN(const double settle_s, arguments.Seconds("settle", kDefaultSettleS));
  options.settle = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(settle_s));
  return options;
}

Result<ExitStatus> RunMove(const Arguments& arguments, const Session& session) {
  TRY_ASSIGN(const OutputFormat format, OutputFormatOf(arguments));
  TRY_ASSIGN(const std::string pod, BareName(arguments.operands()[0], "pod/"));
  TRY_ASSIGN(const std::string to,
             arguments.RequiredText("to", "the node that the pod is moved to"));
  TRY_ASSIGN(const std::string target, OfOption("to", BareName(to, "node/")));
  TRY_ASSIGN(const MoveOptions options, MoveOptionsOf(arguments));
  TRY_ASSIGN(const double limit_s, arguments.Seconds("timeout", kDefaultLimitS));
  TRY_ASSIGN(const ClusterConnection connection, ConnectToCluster(arguments));
  TRY(CheckMoveRights(connection.client.get(), connection.name_space, kCheckLimit));
  PodMover mover(connection.client.get(), options);
  TRY(mover.Plan(connection.name_space, pod, target,
                 std::chrono::duration_cast<Duration>(std::chrono::duration<double>(limit_s))));
  const std::string from = mover.pod().node;
  TRY_ASSIGN(const std::string refusal,
             TargetCheck(connection.client.get())
                 .WhyRefuses(mover.pod(), mover.move().target, kCheckLimit));
  if (!refusal.empty()) {
    return Fail(ErrorCode::kFailedPrecondition, "pod {} cannot be moved to {}: {}",
                mover.pod().id.Key(), mover.move().target, refusal);
  }
  if (arguments.Has("dry-run")) {
    TRY(Print(fmt::format("pod/{} of {} would be moved from {} to {}; nothing was written\n",
                          mover.pod().id.name, mover.move().workload, from, mover.move().target)));
    return ExitStatus::kDone;
  }
  TRY(mover.Begin());
  Say(session, "move {}: pod/{} from {} to {}", mover.move().id, mover.pod().id.name, from,
      mover.move().target);
  TRY_ASSIGN(const MoveAction end, FollowMove(&mover, connection.client.get(), session));
  return ReportMove(mover, end, from, format);
}

TextTable MovesTable() {
  return TextTable({{"ID"}, {"POD"}, {"FROM"}, {"TO"}, {"STEP"}, {"SINCE"}, {"NOTE"}});
}

void AddRow(const kube::MoveApi::Listed& one, UnixMillis now, TextTable* table) {
  if (!one.move) {
    table->Row({"-", one.pod.Key(), one.node, "-", "-", "-", one.unreadable});
    return;
  }
  const std::string note = !one.move->aborting.empty() ? "undone: " + one.move->aborting
                           : now > one.move->deadline  ? "past its deadline"
                                                       : "";
  table->Row({one.move->id, one.pod.Key(), one.node, one.move->target,
              std::string(StepName(one.move->step)), Age(one.move->begun, now), note});
}

// A line for each move whenever its step changes, and one when it has ended.
Result<void> WatchMoves(kube::MoveApi* api, const std::optional<std::string>& name_space) {
  struct Seen {
    kube::MoveApi::Listed listed;
    bool is_there = false;
  };
  std::map<std::string, Seen> seen;  // By id.
  bool has_head = false;
  return Watch(kBetweenMoveLooks, [&]() -> Result<void> {
    TRY_ASSIGN(const std::vector<kube::MoveApi::Listed> listed, api->List());
    const UnixMillis now = UnixNow();
    TextTable table = MovesTable();
    bool has_rows = false;
    for (auto& [id, one] : seen) one.is_there = false;
    for (const kube::MoveApi::Listed& one : listed) {
      if (!one.move || (name_space && one.pod.object_namespace != *name_space)) continue;
      Seen& known = seen[one.move->id];
      known.is_there = true;
      if (known.listed.move && *known.listed.move == *one.move) continue;
      known.listed = one;
      AddRow(one, now, &table);
      has_rows = true;
    }
    for (const auto& [id, one] : seen) {
      if (one.is_there) continue;
      const kube::MoveApi::Listed& ended = one.listed;
      const Result<MovedPod> pod = api->FindPod(ended.pod.object_namespace, ended.pod.name);
      if (!pod && pod.error().code != ErrorCode::kNotFound) return tl::unexpected(pod.error());
      const bool is_undone = pod && pod->id.uid == ended.pod.uid;
      table.Row({id, ended.pod.Key(), ended.node, ended.move->target,
                 is_undone ? "undone" : "ended", Age(ended.move->begun, now),
                 ended.move->aborting});
      has_rows = true;
    }
    std::erase_if(seen, [](const auto& one) { return !one.second.is_there; });
    if (!has_rows) return {};
    const std::string text = table.Text();
    return Print(std::exchange(has_head, true) ? std::string_view(text).substr(text.find('\n') + 1)
                                               : std::string_view(text));
  });
}

Result<ExitStatus> ListMoves(const std::vector<kube::MoveApi::Listed>& listed,
                             const std::vector<kube::MoveApi::LeftPin>& left, OutputFormat format) {
  if (format == OutputFormat::kJson) {
    OrderedJson moves = OrderedJson::array();
    for (const kube::MoveApi::Listed& one : listed) {
      if (one.move) moves.push_back(MoveJson(*one.move, one.pod, one.node));
    }
    OrderedJson lines = OrderedJson::array();
    for (const kube::MoveApi::LeftPin& pin : left) {
      lines.push_back(
          {{"id", pin.move_id}, {"replica_set_uid", pin.replica_set_uid}, {"to", pin.hostname}});
    }
    TRY(Print(OrderedJson{{"schema_version", 1}, {"moves", moves}, {"left", lines}}.dump(1) +
              "\n"));
    return ExitStatus::kDone;
  }
  if (listed.empty() && left.empty()) {
    TRY(Print("no pod is being moved\n"));
    return ExitStatus::kDone;
  }
  TextTable table = MovesTable();
  const UnixMillis now = UnixNow();
  for (const kube::MoveApi::Listed& one : listed) AddRow(one, now, &table);
  for (const kube::MoveApi::LeftPin& pin : left) {
    table.Row(
        {pin.move_id, "-", "-", pin.hostname, "-", "-",
         fmt::format("its pod has ended; `moves abort {}` removes what is left", pin.move_id)});
  }
  TRY(Print(table.Text()));
  return ExitStatus::kDone;
}

Result<ExitStatus> RunMoves(const Arguments& arguments, const Session& session) {
  constexpr std::string_view kVerbs[] = {"list", "resume", "abort"};
  TRY_ASSIGN(const OutputFormat format, OutputFormatOf(arguments));
  TRY_ASSIGN(const MoveOptions options, MoveOptionsOf(arguments));
  const auto& operands = arguments.operands();
  const std::string verb = operands.empty() ? "list" : operands[0];
  TRY(ChoiceOf(verb, kVerbs));
  if (verb == "list" && operands.size() > 1) return Invalid("`moves list` takes no ID");
  if (verb != "list" && operands.size() < 2) return Invalid("name the move: `moves {} ID`", verb);
  const bool watches = arguments.Has("watch");
  if (watches && (verb != "list" || format == OutputFormat::kJson))
    return Invalid("--watch: prints a table of the moves; leave out `{}`",
                   verb != "list" ? verb : "-o json");
  TRY_ASSIGN(const ClusterConnection connection, ConnectToCluster(arguments));
  kube::MoveApi api(connection.client.get());
  if (watches) {
    TRY(WatchMoves(&api, arguments.Text("namespace")));
    return ExitStatus::kDone;
  }
  TRY_ASSIGN(std::vector<kube::MoveApi::Listed> listed, api.List());
  TRY_ASSIGN(const std::vector<kube::MoveApi::LeftPin> left, api.LeftPins());
  if (verb == "list") {
    if (arguments.Has("namespace")) {
      std::erase_if(listed, [&](const kube::MoveApi::Listed& one) {
        return one.pod.object_namespace != connection.name_space;
      });
    }
    return ListMoves(listed, left, format);
  }
  for (const kube::MoveApi::LeftPin& pin : left) {
    if (pin.move_id != operands[1]) continue;
    TRY(api.Remove(pin));
    Say(session, "move {}: its pod has ended; removed what was left of it", pin.move_id);
    return ExitStatus::kDone;
  }
  const auto found = std::find_if(listed.begin(), listed.end(), [&](const auto& one) {
    return one.move && one.move->id == operands[1];
  });
  if (found == listed.end())
    return Fail(ErrorCode::kNotFound, "no pod is in the move {}; `moves` lists them", operands[1]);
  PodMover mover(connection.client.get(), options);
  mover.TakeOver(*found);
  const std::string from = found->node;
  if (verb == "abort") mover.Abort("by `moves abort`");
  TRY_ASSIGN(const MoveAction end, FollowMove(&mover, connection.client.get(), session));
  TRY_ASSIGN(const ExitStatus status, ReportMove(mover, end, from, format));
  const bool is_as_asked = verb == "abort" && end.outcome == MoveOutcome::kAborted;
  return is_as_asked ? ExitStatus::kDone : status;
}

constexpr OptionSpec kMoveKubeconfig = {"--kubeconfig", "FILE",
                                        "kubeconfig file (default $KUBECONFIG or ~/.kube/config)"};
constexpr OptionSpec kMoveContext = {"--context", "NAME",
                                     "context of the kubeconfig (default: the current context)"};
constexpr OptionSpec kSettle = {"--settle", "DURATION",
                                "time between the pod leaving the endpoints of its Services and "
                                "its eviction (default 3s)"};
constexpr OptionSpec kMoveOutput = {"-o,--output", "table|json", "output format (default: table)"};

}  // namespace

CommandSpec MoveCommand() {
  return {.name = "move",
          .summary = "Move a running pod to another node without taking it out of service first",
          .operands = {{.name = "pod/NAME"}},
          .options = {{"--to", "NODE", "node that the pod is moved to"},
                      {"-n,--namespace", "NS",
                       "namespace of the pod (default: that of the kubeconfig's context)"},
                      {"--dry-run", "", "check whether the pod can be moved; write nothing"},
                      {"--timeout", "DURATION",
                       "undo the move if the pod is not evicted within this time (default 2m)"},
                      kSettle,
                      kMoveKubeconfig,
                      kMoveContext,
                      kMoveOutput},
          .details =
              "The ReplicaSet of the pod creates a replacement on NODE. When the replacement is "
              "Ready and serves behind every Service, the pod leaves the Services and is evicted. "
              "Until then the move can be undone: Ctrl-C undoes it. If the process is killed, "
              "`moves` lists what it left, and `moves resume` and `moves abort` end it "
              "(docs/moving.md). The cluster needs deploy/moves.",
          .examples = {"move pod/cart-6fd8ddf58b-4tvdw --to edge-2",
                       "move pod/cart-6fd8ddf58b-4tvdw -n shop --to edge-2 --dry-run"},
          .run = RunMove};
}

CommandSpec MovesCommand() {
  return {
      .name = "moves",
      .summary = "List the pods that are being moved; finish or undo a move",
      .operands = {{.name = "list|resume|abort", .min = 0}, {.name = "ID", .min = 0}},
      .options = {{"-n,--namespace", "NS", "only pods of this namespace (default: all)"},
                  {"-w,--watch", "", "show a move again whenever its step changes"},
                  kSettle,
                  kMoveKubeconfig,
                  kMoveContext,
                  kMoveOutput},
      .details =
          "`resume` takes over a move whose process was killed and finishes it; `abort` gives "
          "the pod its labels back, so that its ReplicaSet keeps it and deletes the "
          "replacement.",
      .examples = {"moves", "moves -w", "moves resume 5f0c2ad1b3e4", "moves abort 5f0c2ad1b3e4"},
      .run = RunMoves};
}

}  // namespace rudderfish
