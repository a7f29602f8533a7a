// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/controller_client.h"
#include "cli/decision_text.h"
#include "cli/placement_story.h"
#include "cli/terminal.h"
#include "cli/text_table.h"
#include "control/sqlite_journal.h"
#include "run/config.h"

namespace rudderfish {
namespace {

namespace fs = std::filesystem;

constexpr UnixMillis kCountedMs = 86'400'000;
constexpr std::string_view kNeverMeasured =
    "evidence: none yet: nothing was measured before and after a change of the cluster";

OrderedJson EvidenceJson(const std::vector<EvidenceSum>& sums) {
  OrderedJson list = OrderedJson::array();
  for (const EvidenceSum& sum : sums) {
    OrderedJson one{{"application", sum.application},
                    {"term", sum.term},
                    {"changes_measured", sum.count},
                    {"mean_error_ms", sum.mean_ms()},
                    {"mean_absolute_error_ms", sum.mean_absolute_ms()}};
    one["mean_error_interval95_ms"] =
        sum.interval_ms()
            ? OrderedJson{sum.mean_ms() - *sum.interval_ms(), sum.mean_ms() + *sum.interval_ms()}
            : OrderedJson(nullptr);
    list.push_back(std::move(one));
  }
  return list;
}

std::string EvidenceText(const std::vector<EvidenceSum>& sums) {
  if (sums.empty()) return fmt::format("{}\n", kNeverMeasured);
  using Align = TextTable::Align;
  TextTable table({{"APPLICATION"},
                   {"TERM"},
                   {"MEASURED", Align::kRight},
                   {"MEAN ERROR", Align::kRight},
                   {"95 % INTERVAL", Align::kRight},
                   {"MEAN SIZE", Align::kRight}},
                  2);
  for (const EvidenceSum& sum : sums) {
    const std::optional<double> half = sum.interval_ms();
    table.Row(
        {sum.application, sum.term.substr(0, sum.term.find("_ms")), std::to_string(sum.count),
         fmt::format("{:+.2f} ms", sum.mean_ms()),
         half ? fmt::format("{:+.2f} to {:+.2f} ms", sum.mean_ms() - *half, sum.mean_ms() + *half)
              : "-",
         fmt::format("{:.2f} ms", sum.mean_absolute_ms())});
  }
  return "evidence: the Model's predictions against what signals measured, when the cluster "
         "changed by itself\n" +
         table.Text();
}

std::string LeaderText(const OrderedJson& status, std::string_view lease) {
  if (status["leads"].get<bool>()) return fmt::format("this one, by the Lease {}", lease);
  const auto holder = status["leader"].get<std::string>();
  return holder.empty() ? fmt::format("nobody yet, by the Lease {}", lease)
                        : fmt::format("{}, by the Lease {}; this one looks on", holder, lease);
}

std::string ControlText(const OrderedJson& status) {
  const auto problem = status["control_problem"].get<std::string>();
  return problem.empty() ? "" : fmt::format("the ConfigMap: {}\n", problem);
}

// Since when a command line has paused it.
std::string PausedText(const OrderedJson& status) {
  const OrderedJson& since = status["paused_since_ms"];
  if (since.is_null()) return "";
  return fmt::format("paused     {} ago, by {}; `resume` ends it\n",
                     Age(since.get<int64_t>(), UnixNow()), status["paused_by"].get<std::string>());
}

std::string SignalsText(const OrderedJson& signals) {
  if (signals.empty()) return "";
  using Align = TextTable::Align;
  TextTable table({{"SIGNAL"}, {"VALUES", Align::kRight}, {"AGE", Align::kRight}});
  for (const OrderedJson& one : signals) {
    const OrderedJson& age = one["age_s"];
    table.Row({one["name"].get<std::string>(), one["values"].dump(),
               age.is_null() ? "never" : fmt::format("{:.1f} s", age.get<double>())});
  }
  return "\n" + table.Text();
}

std::string BesideText(std::string_view scheduler, int64_t decisions, int64_t different) {
  return fmt::format(
      "beside     {}: {} decisions, rules different in {}; it does not count (placement.compare)\n",
      scheduler, decisions, different);
}

// What was shadowed, what that says, and what is missing for the next mode.
std::string StandingText(const OrderedJson& standing) {
  std::string text = fmt::format("standing   {}, {} ago: {}\n", standing["mode"].get<std::string>(),
                                 Age(standing["since_ms"].get<int64_t>(), UnixNow()),
                                 standing["why"].get<std::string>());
  if (!standing.contains("shadowed")) return text;
  const OrderedJson& shadowed = standing["shadowed"];
  const auto count = [&](const char* what) { return shadowed[what].get<int64_t>(); };
  text += fmt::format(
      "shadowed   {} decisions of other schedulers: rules equal in {}, different in {}; beside "
      "them {} unclear, {} not modelled; the same node in {}\n",
      count("decisions"), count("rules_equal"), count("rules_different"), count("rules_unclear"),
      count("unmodelled"), count("same_choice"));
  text += fmt::format("gain       {} of {} a pod, predicted; the Model's measured error {}\n",
                      shadowed["predicted_gain"]["text"].get<std::string>(),
                      standing["objective"].get<std::string>(),
                      shadowed["model_error"]["text"].get<std::string>());
  for (const OrderedJson& one : standing["schedulers"]) {
    if (one["counts"].get<bool>()) continue;
    text += BesideText(one["scheduler"].get<std::string>(), one["decisions"].get<int64_t>(),
                       one["rules_different"].get<int64_t>());
  }
  text += fmt::format("outcome    {} started, {} failed, {} evicted\n", count("started"),
                      count("failed"), count("evicted"));
  if (standing.contains("canary")) {
    const auto group = [&](const char* name) {
      const OrderedJson& one = standing["canary"][name];
      return fmt::format("{} pods, {} failed or evicted, {} a pod", one["pods"].dump(),
                         one["failed_or_evicted"].dump(),
                         one["measured_change"]["text"].get<std::string>());
    };
    text += fmt::format("canary     {}\ncontrol    {}\n", group("canary"), group("control"));
  }
  if (!standing.contains("next")) return text;
  const OrderedJson& next = standing["next"];
  const std::string heading = fmt::format("for {}", next["mode"].get<std::string>());
  if (next["missing"].empty()) return text + fmt::format("{:<11}nothing is missing\n", heading);
  for (const OrderedJson& missing : next["missing"])
    text += fmt::format("{:<11}missing: {}\n", heading, missing.get<std::string>());
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
      "extender   {} grades{}; {} answered, {} abstained, {} malformed, {} late; {} pods were "
      "placed that nobody asked about\n",
      extender["policy"].get<std::string>(), held.empty() ? "" : fmt::format(", held: {}", held),
      count("answered"), count("abstained"), count("malformed"), count("late"), count("bypassed"));
  if (!malformed.empty()) text += fmt::format("malformed  the newest: {}\n", malformed);
  if (count("refused") == 0) return text;
  return text + fmt::format("refused    {} clients, no TLS with them; the newest: {}\n",
                            count("refused"), extender["newest_refused"].get<std::string>());
}

// Of a process that places pods.
std::string PlacementText(const OrderedJson& status) {
  const OrderedJson& placement = status["placement"];
  const auto count = [&](const char* what) { return placement[what].get<int64_t>(); };
  std::string text =
      fmt::format("sees       {} nodes, {} pods that have one\n", count("nodes"), count("pods"));
  if (status.contains("standing")) {
    text = fmt::format(
        "placement  {}; {}\n{}"
        "waiting    {} active, {} backing off, {} unschedulable, {} being bound\n"
        "bound      {} since it started; {} conflicts, {} lost races\n",
        ModeText(status), DeciderText(status), text, count("active"), count("backing_off"),
        count("unschedulable"), count("binding"), count("bound"), count("conflicts"),
        count("lost_races"));
  }
  text += PausedText(status);
  text += PolicyText(placement);
  if (status.contains("extender")) text += ExtenderText(status["extender"]);
  if (status.contains("standing")) text += StandingText(status["standing"]);
  text += ControlText(status);
  const auto problem = placement["problem"].get<std::string>();
  return problem.empty() ? text : text + "\n" + problem + "\n";
}

std::string StatusText(const OrderedJson& status) {
  std::string text = fmt::format(
      "rudderfish {}, process {}, up {}\n", status["version"].get<std::string>(),
      status["pid"].get<int>(),
      FormatDuration(std::chrono::seconds(static_cast<int64_t>(status["uptime_s"].get<double>()))));
  const auto baseline = status["baseline"].get<std::string>();
  text += fmt::format("cluster    {}\n", status["cluster"].get<std::string>());
  if (const auto lease = status["lease"].get<std::string>(); !lease.empty()) {
    const auto problem = status["leader_problem"].get<std::string>();
    text += fmt::format("leader     {}\n",
                        LeaderText(status, lease) + (problem.empty() ? "" : "; " + problem));
  }
  if (status.contains("placement")) return text + PlacementText(status);
  text += fmt::format(
      "migration  {}; {} decides{}\n{}\n", ModeText(status), status["policy"].get<std::string>(),
      baseline.empty() ? "" : fmt::format(", {} is asked beside it", baseline), PausedText(status));
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
  std::string problems;
  for (const OrderedJson& one : status["applications"]) {
    const auto name = one["name"].get<std::string>();
    table.Row({name, one["nodes"].dump(), one["pods"].dump(), one["pending"].dump(),
               fmt::format("{:.1f} s", one["state_age_s"].get<double>()),
               fmt::format("{:.1f} ms", one["seen"]["latency_ms"].get<double>()),
               one["planned"].is_null()
                   ? std::string("-")
                   : fmt::format("{:.1f} ms", one["planned"]["latency_ms"].get<double>()),
               one["plans"].dump(), one["moves_recorded"].dump(), one["changes_seen"].dump()});
    const auto problem = one["problem"].get<std::string>();
    if (!problem.empty()) problems += fmt::format("{}: {}\n", name, problem);
  }
  for (const OrderedJson& one : status["signal_troubles"]) {
    problems += fmt::format("signal {}\n", one.get<std::string>());
  }
  const std::string signals = SignalsText(status["signals"]);
  if (const auto missing = status["not_seen"].get<std::vector<std::string>>(); !missing.empty()) {
    problems += fmt::format("not seen: {}\n", fmt::join(missing, ", "));
  }
  problems += ControlText(status);
  return text + table.Text() + signals + (problems.empty() ? "" : "\n" + problems);
}

struct Kept {
  std::vector<EvidenceSum> evidence;
  std::vector<std::pair<std::string, int64_t>> counts;  // Of the last day.
};

Result<Kept> ReadKept(const fs::path& path) {
  TRY_ASSIGN(const JournalReader journal, JournalReader::Open(path));
  Kept kept;
  TRY_ASSIGN(kept.evidence, journal.Evidence());
  TRY_ASSIGN(kept.counts, journal.Counts(UnixNow() - kCountedMs));
  return kept;
}

std::string CountsText(const Kept& kept) {
  std::string text;
  for (const auto& [fate, count] : kept.counts) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, fate);
  }
  return fmt::format("decisions  in the last 24 h: {}\n", text.empty() ? "none" : text);
}

// What was seen of placing, while nothing runs.
Result<std::string> ComparedText(const Config& config) {
  if (!config.placement) return std::string("extender   nothing is kept of what it is asked\n");
  TRY_ASSIGN(const LivePolicy policy, LoadPolicy(config.placement->choice));
  const std::string objective = ObjectiveText(policy.objective());
  TRY_ASSIGN(const JournalReader journal, JournalReader::Open(config.journal.path));
  TRY_ASSIGN(const EvidenceTable table, journal.LoadEvidence());
  const std::vector<std::string>& compared = config.placement->compare;
  EvidenceQuestion question{
      .policy = std::string(policy.name()), .objective = objective, .schedulers = compared};
  const ShadowEvidence shadow = table.Shadowed(question);
  std::string beside;
  question.schedulers.clear();
  for (const SchedulerEvidence& one : table.ByScheduler(question)) {
    if (std::find(compared.begin(), compared.end(), one.scheduler) == compared.end())
      beside += BesideText(one.scheduler, one.decisions(), one.different);
  }
  return fmt::format(
      "shadowed   {} decisions of other schedulers beside {}: rules equal in {}, different in {}\n"
      "gain       {} of {} a pod, predicted; the Model's measured error {}\n{}",
      shadow.decisions(), policy.name(), shadow.equal, shadow.different, InMillionths(shadow.gain),
      objective, InMillionths(shadow.error), beside);
}

Result<ExitStatus> RunStatus(const Arguments& arguments, const Session&) {
  TRY_ASSIGN(const OutputFormat output, OutputFormatOf(arguments));
  TRY_ASSIGN(const fs::path socket, SocketOf(arguments));
  Result<OrderedJson> status = AskRunning(socket, "status");
  fs::path journal;
  std::optional<Config> config;  // Where nothing runs.
  if (status) {
    journal = (*status)["journal"].get<std::string>();
  } else if (status.error().code != ErrorCode::kNotFound || arguments.Has("socket")) {
    return tl::unexpected(std::move(status).error());
  } else {
    TRY_ASSIGN(config, LoadConfig(arguments.Text("config").value_or("rudderfish.yaml")));
    journal = config->journal.path;
  }
  const Result<Kept> kept = ReadKept(journal);
  if (!status && !kept) return tl::unexpected(kept.error());
  if (output == OutputFormat::kJson) {
    OrderedJson json = status ? *status : OrderedJson{{"schema_version", 1}, {"running", false}};
    if (status) json["running"] = true;
    json["evidence"] = kept ? EvidenceJson(kept->evidence) : OrderedJson(nullptr);
    TRY(Print(json.dump(2) + "\n"));
    return ExitStatus::kDone;
  }
  TRY(Print(status ? StatusText(*status) + "\n"
                   : fmt::format("not running; what its journal says ({}):\n", journal.string())));
  if (!status && config && config->places()) {
    TRY_ASSIGN(const std::string text, ComparedText(*config));
    TRY(Print(text));
    return ExitStatus::kDone;
  }
  const bool places = status && status->contains("placement");
  if (kept && !places) TRY(Print(CountsText(*kept) + EvidenceText(kept->evidence)));
  return ExitStatus::kDone;
}

template <const char* const& kRequest>
Result<ExitStatus> RunSwitch(const Arguments& arguments, const Session& session) {
  TRY_ASSIGN(const fs::path socket, SocketOf(arguments));
  TRY_ASSIGN(const OrderedJson answer, AskRunning(socket, kRequest));
  Say(session, "{}: {}", answer["kind"].get<std::string>(), ModeText(answer));
  if (answer.contains("warning")) Say(session, "warning: {}", answer["warning"].get<std::string>());
  return ExitStatus::kDone;
}

constexpr const char* kPause = "pause";
constexpr const char* kResume = "resume";

}  // namespace

CommandSpec StatusCommand() {
  return {.name = "status",
          .summary = "what the controller sees and does, and how well its Model predicts",
          .options = {kRunningConfigOption,
                      kSocketOption,
                      {"-o,--output", "table|json", "text by default"}},
          .examples = {"status", "status -c rudderfish.yaml -o json"},
          .run = RunStatus};
}

CommandSpec PauseCommand() {
  return {.name = "pause",
          .summary = "the controller looks on, but decides nothing until `resume`",
          .options = {kRunningConfigOption, kSocketOption},
          .examples = {"pause"},
          .run = RunSwitch<kPause>};
}

CommandSpec ResumeCommand() {
  return {.name = "resume",
          .summary = "the controller goes on after `pause`",
          .options = {kRunningConfigOption, kSocketOption},
          .examples = {"resume"},
          .run = RunSwitch<kResume>};
}

}  // namespace rudderfish
