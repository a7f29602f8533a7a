// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/text_table.h"
#include "base/units.h"
#include "base/wall_time.h"
#include "cli/commands.h"
#include "cli/controller_client.h"
#include "cli/decision_text.h"
#include "cli/evidence_text.h"
#include "cli/output.h"
#include "cli/placement_story.h"
#include "cli/routing_story.h"
#include "cli/standing_text.h"
#include "cli/terminal.h"
#include "control/journal_reader.h"
#include "control/model_correction.h"
#include "run/config.h"

namespace rudderfish {
namespace {

constexpr Duration kBetweenStatuses = std::chrono::seconds(2);

namespace fs = std::filesystem;

constexpr UnixMillis kCountedMs = 86'400'000;

std::string LeaderText(const OrderedJson& status, std::string_view lease) {
  if (status["leads"].get<bool>())
    return fmt::format("this instance, according to the Lease {}", lease);
  const auto holder = status["leader"].get<std::string>();
  return holder.empty() ? fmt::format("none yet, according to the Lease {}", lease)
                        : fmt::format("{}, according to the Lease {}; this instance is on standby",
                                      holder, lease);
}

std::string ControlText(const OrderedJson& status) {
  const auto problem = status["control_problem"].get<std::string>();
  return problem.empty() ? "" : fmt::format("the ConfigMap: {}\n", problem);
}

std::string JournalText(const OrderedJson& status) {
  const auto problem = status["journal_problem"].get<std::string>();
  return problem.empty() ? "" : fmt::format("journal    {}\n", problem);
}

// Since when a command line has paused it.
std::string PausedText(const OrderedJson& status) {
  const OrderedJson& since = status["paused_since_ms"];
  if (since.is_null()) return "";
  return fmt::format("paused     {} ago, by {}; `resume` ends it\n",
                     Age(since.get<int64_t>(), UnixNow()), status["paused_by"].get<std::string>());
}

std::string BesideText(std::string_view scheduler, int64_t decisions, int64_t different) {
  return fmt::format(
      "also seen  {}: {} decisions, rules different in {}; not counted "
      "(decisions.placement.compare)\n",
      scheduler, decisions, different);
}

// By which placement is promoted.
std::string PlacementEvidenceText(const OrderedJson& evidence, const std::string& objective) {
  const OrderedJson& shadowed = evidence["shadowed"];
  const auto count = [&](const char* what) { return shadowed[what].get<int64_t>(); };
  std::string text = fmt::format(
      "shadowed   {} decisions of other schedulers: rules equal in {}, different in {}; plus {} "
      "unclear, {} not modelled; the same node in {}\n",
      count("decisions"), count("rules_equal"), count("rules_different"), count("rules_unclear"),
      count("unmodelled"), count("same_choice"));
  text += fmt::format("gain       {} of {} per pod, predicted; the model's measured error {}\n",
                      shadowed["predicted_gain"]["text"].get<std::string>(), objective,
                      shadowed["model_error"]["text"].get<std::string>());
  for (const OrderedJson& one : evidence["schedulers"]) {
    if (one["counts"].get<bool>()) continue;
    text += BesideText(one["scheduler"].get<std::string>(), one["decisions"].get<int64_t>(),
                       one["rules_different"].get<int64_t>());
  }
  text += fmt::format("outcome    {} started, {} failed, {} evicted\n", count("started"),
                      count("failed"), count("evicted"));
  if (!evidence.contains("canary")) return text;
  const auto group = [&](const char* name) {
    const OrderedJson& one = evidence["canary"][name];
    return fmt::format("{} pods, {} failed or evicted, {} a pod", one["pods"].dump(),
                       one["failed_or_evicted"].dump(),
                       one["measured_change"]["text"].get<std::string>());
  };
  return text + fmt::format("canary     {}\ncontrol    {}\n", group("canary"), group("control"));
}

// By which migration is promoted.
std::string MigrationEvidenceText(const OrderedJson& evidence) {
  std::string text;
  for (const OrderedJson& one : evidence["applications"]) {
    const auto name = one["application"].get<std::string>();
    text += fmt::format(
        "shadowed   {}: {} plans that ended, {} with moves\n"
        "gain       {}: {} per plan, predicted, {} more than the baseline; the model's measured "
        "error {}\n",
        name, one["plans"].get<int64_t>(), one["plans_with_moves"].get<int64_t>(), name,
        one["predicted_gain"]["text"].get<std::string>(),
        one["gain_over_baseline"]["text"].get<std::string>(),
        one["model_error"]["text"].get<std::string>());
    if (!one.contains("moves")) continue;
    const OrderedJson& moves = one["moves"];
    text += fmt::format(
        "moved      {}: {} pods, {} could not be; measured gain {} beyond half of "
        "what was predicted\n",
        name, moves["moved"].get<int64_t>(), moves["not_moved"].get<int64_t>(),
        moves["gain_beyond_half_of_predicted"]["text"].get<std::string>());
  }
  return text;
}

// What a learned policy takes for granted, and how often kube-default chose in its place.
std::string PolicyText(const OrderedJson& placement) {
  std::string text;
  if (const auto believes = placement["believes"].get<std::string>(); !believes.empty()) {
    std::string types;
    for (const auto& [type, nodes] : placement["types"].items())
      types += fmt::format("{}{} {}", types.empty() ? "; here: " : ", ", nodes.get<int>(), type);
    text += fmt::format("believes   {}{}\n", believes, types);
  }
  std::string reasons;
  for (const auto& [reason, times] : placement["fallbacks"].items()) {
    if (times.get<int64_t>() > 0)
      reasons += fmt::format("{}{} {}", reasons.empty() ? "" : ", ", times.get<int64_t>(), reason);
  }
  if (reasons.empty()) return text;
  return text + fmt::format("fallbacks  of {} choices of the policy kube-default made: {}\n",
                            placement["by_policy"].get<int64_t>(), reasons);
}

std::string ExtenderText(const OrderedJson& extender) {
  const auto count = [&](const char* what) { return extender[what].get<int64_t>(); };
  const auto held = extender["held"].get<std::string>();
  const auto malformed = extender["newest_malformed"].get<std::string>();
  std::string text = fmt::format(
      "extender   {} scores{}; {} answered, {} abstained, {} malformed, {} late; {} pods were "
      "scheduled without asking the extender\n",
      extender["policy"].get<std::string>(), held.empty() ? "" : fmt::format(", held: {}", held),
      count("answered"), count("abstained"), count("malformed"), count("late"), count("bypassed"));
  if (!malformed.empty()) text += fmt::format("malformed  the newest: {}\n", malformed);
  if (count("refused") == 0) return text;
  return text + fmt::format("refused    {} clients, TLS handshake failed; the newest: {}\n",
                            count("refused"), extender["newest_refused"].get<std::string>());
}

// In one cluster: placement, placement/us
std::string PlacementText(const OrderedJson& status, const std::string& kind,
                          const OrderedJson& placement) {
  const bool is_own = placement["cluster"].get<std::string>().empty();
  const auto count = [&](const char* what) { return placement[what].get<int64_t>(); };
  std::string text =
      fmt::format("sees       {} nodes, {} pods that have one\n", count("nodes"), count("pods"));
  if (placement.contains("standing")) {
    text = fmt::format(
        "{:<10} {}; {}\n{}{}"
        "waiting    {} active, {} backing off, {} unschedulable, {} being bound\n"
        "bound      {} since it started; {} conflicts, {} lost races\n",
        kind, ModeText(placement), DeciderText(placement),
        is_own ? "" : fmt::format("cluster    {}\n", placement["server"].get<std::string>()), text,
        count("active"), count("backing_off"), count("unschedulable"), count("binding"),
        count("bound"), count("conflicts"), count("lost_races"));
  }
  text += PolicyText(placement);
  if (is_own && status.contains("extender")) text += ExtenderText(status["extender"]);
  if (placement.contains("standing")) {
    const OrderedJson& standing = placement["standing"];
    text += StandingText(standing, [&](const OrderedJson& evidence) {
      return PlacementEvidenceText(evidence, standing["objective"].get<std::string>());
    });
  }
  const auto problem = placement["problem"].get<std::string>();
  return problem.empty() ? text : text + "\n" + problem + "\n";
}

// Recorded in shadow and advise, or made.
std::string MovesOf(const OrderedJson& application) {
  const auto moved = application["moved"].get<int64_t>();
  const auto not_moved = application["not_moved"].get<int64_t>();
  if (moved + not_moved == 0) {
    const auto recorded = application["moves_recorded"].get<int64_t>();
    return recorded == 0 ? "0" : fmt::format("{} planned", recorded);
  }
  return not_moved == 0 ? fmt::format("{} made", moved)
                        : fmt::format("{} made, {} not", moved, not_moved);
}

std::string TracesText(const std::string& application, const OrderedJson& traces) {
  if (traces.is_null() || traces["traces"].get<int64_t>() == 0) return "";
  const auto changes = traces["changes"].get<int64_t>();
  return fmt::format("calls of {}: from {}, read {} ago; {}\n", application,
                     Counted(traces["traces"].get<int64_t>(), "trace"),
                     Age(traces["read_ms"].get<int64_t>(), UnixNow()),
                     changes == 0 ? "none changed"
                                  : fmt::format("{}, the last: {}", Counted(changes, "change"),
                                                traces["last_change"].get<std::string>()));
}

std::string ApplicationsText(const OrderedJson& applications, std::string* problems) {
  using Align = TextTable::Align;
  TextTable table({{"APPLICATION"},
                   {"NODES", Align::kRight},
                   {"PODS", Align::kRight},
                   {"PENDING", Align::kRight},
                   {"STATE AGE", Align::kRight},
                   {"LATENCY", Align::kRight},
                   {"AFTER PLAN", Align::kRight},
                   {"PLANS", Align::kRight},
                   {"MOVES", Align::kRight},
                   {"CHANGES", Align::kRight}});
  for (const OrderedJson& one : applications) {
    const auto name = one["name"].get<std::string>();
    table.Row({name, one["nodes"].dump(), one["pods"].dump(), one["pending"].dump(),
               fmt::format("{:.1f} s", one["state_age_s"].get<double>()),
               fmt::format("{:.1f} ms", one["seen"]["latency_ms"].get<double>()),
               one["planned"].is_null()
                   ? std::string("-")
                   : fmt::format("{:.1f} ms", one["planned"]["latency_ms"].get<double>()),
               one["plans"].dump(), MovesOf(one), one["changes_seen"].dump()});
    const auto problem = one["problem"].get<std::string>();
    if (!problem.empty()) *problems += fmt::format("{}: {}\n", name, problem);
    if (one["traces"].is_null()) continue;
    const auto trouble = one["traces"]["trouble"].get<std::string>();
    if (!trouble.empty()) *problems += fmt::format("{}: calls not read: {}\n", name, trouble);
  }
  std::string text = table.Text();
  for (const OrderedJson& one : applications) {
    text += TracesText(one["name"].get<std::string>(), one["traces"]);
    const OrderedJson& factors = one["factors"];
    const std::string words = InWords(LatencyFactors{.execution = factors["execution"],
                                                     .network = factors["network"],
                                                     .transfer = factors["transfer"],
                                                     .queueing = factors["queueing"]});
    if (!words.empty())
      text += fmt::format("model of {}: corrected, {}\n", one["name"].get<std::string>(), words);
  }
  return text;
}

// Pods that are being moved.
std::string MovesText(const OrderedJson& moves) {
  if (moves.empty()) return "";
  TextTable table({{"MOVE"}, {"POD"}, {"FROM"}, {"TO"}, {"SINCE"}, {"STEP"}});
  for (const OrderedJson& one : moves) {
    const auto text = [&](const char* what) { return one[what].get<std::string>(); };
    table.Row({text("id"), text("pod"), text("from"), text("to"),
               Age(one["begun_ms"].get<int64_t>(), UnixNow()),
               text("why").empty() ? text("step") : text("why")});
  }
  return "\n" + table.Text();
}

// Outside of its time windows migration moves nothing.
std::string WindowText(const OrderedJson& migration) {
  if (!migration.contains("window") || migration["window"].is_null()) return "";
  const OrderedJson& window = migration["window"];
  const std::string opens =
      window["opens"].is_null() ? "never" : window["opens"].get<std::string>();
  return fmt::format(
      "window     {}; opens {}\n",
      window["open"].get<bool>() ? "open" : "closed: pods are not moved, only advised",
      window["open"].get<bool>() ? "again " + opens : opens);
}

std::string MigrationText(const OrderedJson& migration) {
  const auto baseline = migration["baseline"].get<std::string>();
  std::string problems;
  std::string text =
      fmt::format("migration  {}; policy {}{}\n", ModeText(migration),
                  migration["policy"].get<std::string>(),
                  baseline.empty() ? "" : fmt::format("; baseline for comparison: {}", baseline)) +
      StandingText(migration["standing"], MigrationEvidenceText) + WindowText(migration) + "\n" +
      ApplicationsText(migration["applications"], &problems) + MovesText(migration["moves"]) +
      SignalsText(migration["signals"]);
  for (const OrderedJson& one : migration["signal_troubles"]) {
    problems += fmt::format("signal {}\n", one.get<std::string>());
  }
  const auto missing = migration["not_seen"].get<std::vector<std::string>>();
  if (!missing.empty()) problems += fmt::format("not seen: {}\n", fmt::join(missing, ", "));
  return text + (problems.empty() ? "" : "\n" + problems);
}

std::string StatusText(const OrderedJson& status) {
  std::string text = fmt::format(
      "rudderfish {}, process {}, up {}\n", status["version"].get<std::string>(),
      status["pid"].get<int>(),
      FormatDuration(std::chrono::seconds(static_cast<int64_t>(status["uptime_s"].get<double>()))));
  text += fmt::format("cluster    {}\n", status["cluster"].get<std::string>());
  if (const auto lease = status["lease"].get<std::string>(); !lease.empty()) {
    const auto problem = status["leader_problem"].get<std::string>();
    text += fmt::format("leader     {}\n",
                        LeaderText(status, lease) + (problem.empty() ? "" : "; " + problem));
  }
  text += PausedText(status) + ControlText(status) + JournalText(status);
  const OrderedJson& kinds = status["decisions"];
  for (const auto& [kind, one] : kinds.items()) {
    if (kind.starts_with("placement")) text += PlacementText(status, kind, one);
  }
  if (kinds.contains("migration")) text += MigrationText(kinds["migration"]);
  if (kinds.contains("routing")) text += RoutingText(kinds["routing"]);
  return text;
}

struct Kept {
  std::vector<EvidenceSum> evidence;
  KeptModes modes;
  std::vector<ModelCorrection> corrections;
  std::vector<std::pair<std::string, int64_t>> counts;  // Of the last day.
};

Result<Kept> ReadKept(const fs::path& path) {
  TRY_ASSIGN(const JournalReader journal, JournalReader::Open(path));
  Kept kept;
  TRY_ASSIGN(kept.evidence, journal.Evidence());
  TRY_ASSIGN(kept.modes, journal.Modes());
  TRY_ASSIGN(const std::vector<MeasuredChange> changes, journal.Changes());
  kept.corrections = FitCorrections(changes);
  TRY_ASSIGN(kept.counts, journal.Counts(UnixNow() - kCountedMs));
  return kept;
}

// In which mode each kind was, while nothing runs.
std::string ModesText(const KeptModes& modes) {
  std::string text;
  for (const auto& [kind, one] : modes) {
    text += fmt::format("{:<10} {} when it stopped, since {}: {}\n", kind, ModeName(one.mode),
                        Rfc3339(one.since), one.why);
  }
  return text;
}

OrderedJson ModesJson(const KeptModes& modes) {
  OrderedJson json = OrderedJson::object();
  for (const auto& [kind, one] : modes)
    json[kind] = {{"mode", ModeName(one.mode)}, {"since_ms", one.since}, {"why", one.why}};
  return json;
}

std::string CountsText(const Kept& kept) {
  std::string text;
  for (const auto& [fate, count] : kept.counts) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, fate);
  }
  return fmt::format("decisions  in the last 24 h: {}\n", text.empty() ? "none" : text);
}

// What was seen of placing in one cluster, while nothing runs.
std::string ComparedIn(const std::string& cluster, const Config& config, const LivePolicy& policy,
                       const EvidenceTable& table) {
  const std::string objective = ObjectiveText(policy.objective());
  const std::vector<std::string>& compared = config.placement->compare;
  EvidenceQuestion question{.policy = std::string(policy.name()),
                            .objective = objective,
                            .cluster = cluster,
                            .schedulers = compared};
  const ShadowEvidence shadow = table.Shadowed(question);
  std::string beside;
  question.schedulers.clear();
  for (const SchedulerEvidence& one : table.ByScheduler(question)) {
    if (std::find(compared.begin(), compared.end(), one.scheduler) == compared.end())
      beside += BesideText(one.scheduler, one.decisions(), one.different);
  }
  return fmt::format(
      "{}shadowed   {} decisions of other schedulers, compared with {}: rules equal in {}, "
      "different in {}\ngain       {} of {} per pod, predicted; the model's measured error {}\n{}",
      cluster.empty() ? "" : fmt::format("cluster    {}\n", cluster), shadow.decisions(),
      policy.name(), shadow.equal, shadow.different, InMillionths(shadow.gain), objective,
      InMillionths(shadow.error), beside);
}

// The same in all clusters.
Result<std::string> ComparedText(const Config& config) {
  if (!config.placement) return std::string("extender   requests are not recorded\n");
  TRY_ASSIGN(const LivePolicy policy, LoadPolicy(config.placement->choice));
  TRY_ASSIGN(const JournalReader journal, JournalReader::Open(config.journal.path));
  TRY_ASSIGN(const EvidenceTable table, journal.LoadEvidence());
  std::string text = ComparedIn("", config, policy, table);
  for (const NamedCluster& one : config.placement->clusters)
    text += ComparedIn(one.name, config, policy, table);
  return text;
}

Result<void> ShowStatus(const Arguments& arguments, const fs::path& socket, OutputFormat output) {
  // A controller has to listen on a socket that was named, but not on that of a configuration.
  std::optional<OrderedJson> status;
  if (arguments.Has("socket")) {
    TRY_ASSIGN(status, AskRunning(socket, "status"));
  } else {
    TRY_ASSIGN(status, AskIfRunning(socket, "status"));
  }
  fs::path journal;
  std::optional<Config> config;  // Where nothing runs.
  std::string standing = "not running";
  if (status) {
    journal = (*status)["journal"].get<std::string>();
  } else {
    const std::string path = arguments.Text("config").value_or("rudderfish.yaml");
    TRY_ASSIGN(const RunPlaces places, FindRunPlaces(path));
    journal = places.journal;
    if (!places.problem.empty()) standing = fmt::format("no controller at {}", socket.string());
    if (Result<Config> loaded = LoadConfig(path)) config = *std::move(loaded);
  }
  const Result<Kept> kept = ReadKept(journal);
  if (!status && !kept) return tl::unexpected(kept.error());
  if (IsStructured(output)) {
    OrderedJson json = status ? *status : OrderedJson{{"schema_version", 1}, {"running", false}};
    if (status) json["running"] = true;
    if (!status) json["modes"] = ModesJson(kept->modes);
    json["evidence"] = kept ? EvidenceJson(kept->evidence) : OrderedJson(nullptr);
    json["corrections"] = kept ? CorrectionsJson(kept->corrections) : OrderedJson(nullptr);
    return PrintStructured(json.dump(2) + "\n", output);
  }
  TRY(Print(status ? StatusText(*status) + "\n"
                   : fmt::format("{}; from its journal ({}):\n", standing, journal.string())));
  if (!status) TRY(Print(ModesText(kept->modes)));
  if (!status && config && config->places()) {
    TRY_ASSIGN(const std::string text, ComparedText(*config));
    TRY(Print(text));
  }
  const bool moves = status ? (*status)["decisions"].contains("migration")
                            : config && config->migration.has_value();
  if (kept && (moves || (!status && !config)))
    TRY(Print(CountsText(*kept) + EvidenceText(kept->evidence) +
              CorrectionsText(kept->corrections)));
  return {};
}

Result<ExitStatus> RunStatus(const Arguments& arguments, const Session&) {
  TRY_ASSIGN(
      const OutputFormat output,
      OutputFormatOf(arguments, {OutputFormat::kTable, OutputFormat::kJson, OutputFormat::kYaml}));
  TRY_ASSIGN(const fs::path socket, SocketOf(arguments));
  if (!arguments.Has("watch")) {
    TRY(ShowStatus(arguments, socket, output));
    return ExitStatus::kDone;
  }
  bool is_first = true;
  TRY(Watch(kBetweenStatuses, [&]() -> Result<void> {
    if (!std::exchange(is_first, false)) TRY(Print(IsStructured(output) ? "---\n" : "\n"));
    return ShowStatus(arguments, socket, output);
  }));
  return ExitStatus::kDone;
}

template <const char* const& kRequest>
Result<ExitStatus> RunSwitch(const Arguments& arguments, const Session& session) {
  TRY_ASSIGN(const fs::path socket, SocketOf(arguments));
  TRY_ASSIGN(const OrderedJson answer, AskRunning(socket, kRequest));
  for (const OrderedJson& kind : answer["kinds"])
    Say(session, "{}: {}", kind["kind"].get<std::string>(), ModeText(kind));
  if (answer.contains("warning")) Say(session, "warning: {}", answer["warning"].get<std::string>());
  return ExitStatus::kDone;
}

constexpr const char* kPause = "pause";
constexpr const char* kResume = "resume";

}  // namespace

CommandSpec StatusCommand() {
  return {
      .name = "status",
      .summary = "Show the state of the running controller and how well its model predicts",
      .options = {kRunningConfigOption,
                  kSocketOption,
                  {"-w,--watch", "", "show it again every two seconds"},
                  {"-o,--output", "table|json|yaml", "output format (default: table, as text)"}},
      .examples = {"status", "status -c rudderfish.yaml -o json"},
      .run = RunStatus};
}

CommandSpec PauseCommand() {
  return {.name = "pause",
          .summary = "Pause decisions of the running controller until `resume`",
          .options = {kRunningConfigOption, kSocketOption},
          .examples = {"pause"},
          .run = RunSwitch<kPause>};
}

CommandSpec ResumeCommand() {
  return {.name = "resume",
          .summary = "Resume decisions after `pause`",
          .options = {kRunningConfigOption, kSocketOption},
          .examples = {"resume"},
          .run = RunSwitch<kResume>};
}

}  // namespace rudderfish
