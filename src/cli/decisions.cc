// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/controller_client.h"
#include "cli/decision_list.h"
#include "cli/decision_text.h"
#include "cli/output.h"
#include "cli/placement_story.h"
#include "cli/terminal.h"
#include "cluster/task_kind.h"
#include "run/config.h"

namespace rudderfish {
namespace {

constexpr int64_t kLimitMax = 1'000'000;
constexpr int64_t kOfOnePlan = 200;    // Rows at most.
constexpr int64_t kSearched = 10'000;  // Rows of which `explain` looks for a workload.

// Kinds of decision about a pod or workload.
constexpr std::array<std::string_view, 2> kSubjectKinds = {"placement", "migration"};
constexpr int kPlacementOnly = 0, kMigrationOnly = 1;

// The journal that --journal names, or else the configuration.
Result<JournalReader> JournalOf(const Arguments& arguments) {
  TRY(arguments.Exclude("journal", "config"));
  if (const auto path = arguments.Text("journal")) return JournalReader::Open(*path);
  TRY_ASSIGN(const RunPlaces places, PlacesOf(arguments));
  return JournalReader::Open(places.journal);
}

constexpr Duration kBetweenLooks = std::chrono::seconds(1);

constexpr OptionSpec kClusterOption{"--cluster", "NAME",
                                    "only pods of this one of decisions.placement.clusters"};

// A move has no namespace in the journal: -n is of placements.
Result<RowFilter> FilterOf(const Arguments& arguments, UnixMillis now) {
  RowFilter filter;
  TRY(arguments.Exclude("namespace", "all-namespaces"));
  TRY(arguments.Exclude("namespace", "application"));
  TRY(arguments.Exclude("cluster", "application"));
  TRY_ASSIGN(filter.limit, arguments.Integer("limit", 100, 1, kLimitMax));
  filter.application = arguments.Text("application").value_or("");
  TRY_ASSIGN(const int kind, arguments.Choice("kind", kDecisionKinds, 0));
  if (arguments.Has("kind")) filter.kind = kDecisionKinds[static_cast<size_t>(kind)];
  if (const auto name_space = arguments.Text("namespace")) {
    if (!filter.kind.empty() && filter.kind != "placement") {
      return Invalid(
          "--namespace: decisions of {} are of an application or a route, not of a namespace; "
          "use --application",
          filter.kind);
    }
    if (name_space->find_first_of("*?[/") != std::string::npos)
      return Invalid("--namespace: `{}` is no name of a namespace", *name_space);
    filter.kind = "placement";
    filter.pod = *name_space + "/*";
  }
  if (const auto cluster = arguments.Text("cluster")) {
    if (!filter.kind.empty() && filter.kind != "placement")
      return Invalid("--cluster: only decisions of placement are of other clusters");
    filter.kind = "placement";
    filter.cluster = *cluster;
  }
  if (arguments.Has("since")) {
    TRY_ASSIGN(const double seconds, arguments.Seconds("since", 0));
    filter.since = now - static_cast<UnixMillis>(seconds * 1000);
  }
  return filter;
}

Result<void> PrintDecisions(std::span<const StoredDecision> rows, OutputFormat output) {
  if (IsStructured(output)) return PrintStructured(DecisionsJson(rows), output);
  if (output == OutputFormat::kName) return PrintNames(DecisionNames(rows));
  const Width width = output == OutputFormat::kWide ? Width::kWide : Width::kNormal;
  return Print(DecisionTable(rows, UnixNow(), width));
}

// Prints decisions as they are recorded, each once.
Result<void> WatchDecisions(const JournalReader& journal, RowFilter filter, UnixMillis last,
                            OutputFormat output) {
  filter.limit = kLimitMax;
  filter.since = last + 1;
  return Watch(kBetweenLooks, [&]() -> Result<void> {
    TRY_ASSIGN(const std::vector<StoredDecision> rows, journal.Decisions(filter));
    if (rows.empty()) return {};
    filter.since = WrittenAt(rows.back()) + 1;
    if (output == OutputFormat::kName) return PrintNames(DecisionNames(rows));
    const Width width = output == OutputFormat::kWide ? Width::kWide : Width::kNormal;
    const std::string table = DecisionTable(rows, UnixNow(), width);
    return Print(std::string_view(table).substr(table.find('\n') + 1));  // Without its head.
  });
}

Result<ExitStatus> RunDecisions(const Arguments& arguments, const Session& session) {
  TRY_ASSIGN(
      const OutputFormat output,
      OutputFormatOf(arguments, {OutputFormat::kTable, OutputFormat::kWide, OutputFormat::kJson,
                                 OutputFormat::kYaml, OutputFormat::kName}));
  const bool watches = arguments.Has("watch");
  if (watches && IsStructured(output))
    return Invalid("--watch: prints lines; choose -o table, wide or name");
  const UnixMillis now = UnixNow();
  TRY_ASSIGN(const RowFilter filter, FilterOf(arguments, now));
  TRY_ASSIGN(const JournalReader journal, JournalOf(arguments));
  TRY_ASSIGN(const std::vector<StoredDecision> rows, journal.Decisions(filter));
  if (!rows.empty() || IsStructured(output)) {
    TRY(PrintDecisions(rows, output));
  } else if (!watches) {
    Say(session, "no decision {}{}",
        filter.application.empty() ? "" : fmt::format("of {} ", filter.application),
        arguments.Has("since") ? "in that time" : "yet");
  }
  if (watches)
    TRY(WatchDecisions(journal, filter, rows.empty() ? now : WrittenAt(rows.back()), output));
  return ExitStatus::kDone;
}

// Whom `explain` is asked about, as kubectl names it.
struct Subject {
  std::string name;
  bool is_workload = false;
  bool is_move = false;   // Of a pod, by its id.
  bool is_route = false;  // Neither: a pod.

  // Whether the name of a pod is one that a controller gives: of a Deployment with the hash of its
  // template, of others without.
  bool MayOwn(std::string_view pod) const {
    if (!pod.starts_with(name + "-")) return false;
    const std::string_view suffix = pod.substr(name.size() + 1);
    return !suffix.empty() && std::count(suffix.begin(), suffix.end(), '-') <= 1;
  }
};

// "KIND/NAME", or NAME of a pod.
Result<Subject> SubjectOf(const std::string& operand) {
  constexpr std::string_view kPods[] = {"pod", "pods", "po"};
  constexpr std::string_view kWorkloads[] = {
      "deployment", "deployments", "deploy",     "statefulset", "statefulsets", "sts", "daemonset",
      "daemonsets", "ds",          "replicaset", "replicasets", "rs",           "job", "jobs"};
  const size_t slash = operand.find('/');
  if (slash == std::string::npos) return Subject{.name = operand};
  if (slash + 1 == operand.size()) return Invalid("`{}`: a name is missing after /", operand);
  const std::string kind = operand.substr(0, slash);
  if (kind == "move" || kind == "moves")
    return Subject{.name = operand.substr(slash + 1), .is_move = true};
  if (kind == "route" || kind == "routes")
    return Subject{.name = operand.substr(slash + 1), .is_route = true};
  if (kind == "capacity") return Subject{.name = operand, .is_route = true};
  const bool is_workload =
      std::find(std::begin(kWorkloads), std::end(kWorkloads), kind) != std::end(kWorkloads);
  if (!is_workload && std::find(std::begin(kPods), std::end(kPods), kind) == std::end(kPods)) {
    return Invalid(
        "`{}`: expected pod/NAME, move/ID, route/NAME, capacity/REGION, or a workload such as "
        "deployment/NAME",
        operand);
  }
  return Subject{.name = operand.substr(slash + 1), .is_workload = is_workload};
}

// The newest move that speaks of the pod.
Result<std::optional<StoredRow>> MoveOfPod(const JournalReader& journal, RowFilter filter,
                                           const std::string& pod) {
  filter.pod = pod;
  filter.limit = kOfOnePlan;
  TRY_ASSIGN(std::vector<StoredRow> rows, journal.Rows(filter));
  if (rows.empty()) return std::optional<StoredRow>();
  // Of the newest plan, rather what it does with the pod than what it thought of later.
  const JournalRow& newest = rows.back().row;
  const auto moved = std::find_if(rows.rbegin(), rows.rend(), [&](const StoredRow& stored) {
    const JournalRow& row = stored.row;
    return row.plan == newest.plan && row.application == newest.application &&
           !row.chosen.empty() && row.chosen[0].pod == pod;
  });
  return std::optional(std::move(moved == rows.rend() ? rows.back() : *moved));
}

// The newest in which a workload was considered: the one that is asked about, or the pod's.
Result<std::optional<StoredRow>> MoveOfWorkload(const JournalReader& journal, RowFilter filter,
                                                const Subject& subject) {
  filter.limit = kSearched;
  TRY_ASSIGN(std::vector<StoredRow> rows, journal.Rows(filter));
  const auto is_its = [&](const std::string& workload) {
    if (workload.empty()) return false;
    return subject.is_workload ? workload == subject.name
                               : subject.name.starts_with(workload + "-");
  };
  const auto speaks = [&](const StoredRow& stored) {
    const auto& row = stored.row;
    return std::any_of(row.considered.begin(), row.considered.end(),
                       [&](const Alternative& one) { return is_its(one.workload); }) ||
           std::any_of(row.refused.begin(), row.refused.end(),
                       [&](const Refusal& one) { return is_its(one.workload); });
  };
  const auto found = std::find_if(rows.rbegin(), rows.rend(), speaks);
  if (found == rows.rend()) return std::optional<StoredRow>();
  return std::optional(std::move(*found));
}

// The newest placement of the pod, or of one of the workload's pods; a comparison has its detail.
Result<std::optional<StoredDecision>> PlacementOf(const JournalReader& journal,
                                                  const std::optional<std::string>& cluster,
                                                  const std::string& name_space,
                                                  const Subject& subject) {
  RowFilter filter{
      .limit = subject.is_workload ? kSearched : 1,
      .kind = "placement",
      .pod = fmt::format("{}/{}{}", name_space, subject.name, subject.is_workload ? "-*" : ""),
      .cluster = cluster};
  TRY_ASSIGN(std::vector<StoredDecision> found, journal.Decisions(filter));
  if (!subject.is_workload) {
    return found.empty() ? std::nullopt : std::optional(std::move(found.back()));
  }
  const auto name_of = [](const StoredDecision& decision) -> const std::string& {
    const auto* placed = std::get_if<StoredPlacement>(&decision);
    return placed != nullptr ? placed->row.pod.name
                             : std::get<StoredComparison>(decision).row.pod.name;
  };
  const auto newest = std::find_if(found.rbegin(), found.rend(), [&](const auto& decision) {
    return subject.MayOwn(name_of(decision));
  });
  if (newest == found.rend()) return std::optional<StoredDecision>();
  return PlacementOf(journal, cluster, name_space, {.name = name_of(*newest)});
}

// The newest decision of any kind that speaks of the subject.
Result<StoredDecision> DecisionAbout(const JournalReader& journal, const Arguments& arguments,
                                     const std::string& name_space, const Subject& subject) {
  RowFilter filter;
  filter.application = arguments.Text("application").value_or("");
  TRY_ASSIGN(const int kind, arguments.Choice("kind", kSubjectKinds, -1));
  std::optional<StoredRow> move;  // In the configuration's own cluster alone.
  const bool may_move = !arguments.Has("cluster") && kind != kPlacementOnly;
  if (!subject.is_workload && may_move) {
    TRY_ASSIGN(move, MoveOfPod(journal, filter, subject.name));
  }
  std::optional<StoredDecision> placed;
  if (filter.application.empty() && kind != kMigrationOnly) {
    TRY_ASSIGN(placed, PlacementOf(journal, arguments.Text("cluster"), name_space, subject));
  }
  // That its workload was considered says less than what was done with the pod itself.
  if (may_move && (subject.is_workload || (!move && !placed))) {
    TRY_ASSIGN(move, MoveOfWorkload(journal, filter, subject));
  }
  if (placed && (!move || WrittenAt(*placed) >= move->written_at)) return *std::move(placed);
  if (move) return StoredDecision(*std::move(move));
  return Fail(ErrorCode::kNotFound,
              "no recorded decision about {} {}/{}; use -n NAMESPACE for another namespace",
              subject.is_workload ? "workload" : "pod", name_space, subject.name);
}

// Why the pod waits, if it does and a controller that places pods runs and sees it.
Result<std::optional<OrderedJson>> PendingOf(const Arguments& arguments, const std::string& key) {
  if (arguments.Has("journal")) return std::optional<OrderedJson>();
  const Result<RunPlaces> places =
      FindRunPlaces(arguments.Text("config").value_or("rudderfish.yaml"));
  if (!places) return std::optional<OrderedJson>();
  const std::string cluster = arguments.Has("cluster") ? *arguments.Text("cluster") + ":" : "";
  TRY_ASSIGN(const std::optional<OrderedJson> answer,
             AskIfRunning(places->socket, "explain " + cluster + key));
  if (!answer || !answer->contains("pending") || (*answer)["pending"].is_null())
    return std::optional<OrderedJson>();
  return std::optional((*answer)["pending"]);
}

// The move among those that a running controller makes now; nothing: it makes no such move.
Result<std::optional<OrderedJson>> MoveUnderWay(const Arguments& arguments, const std::string& id) {
  if (arguments.Has("journal")) return std::optional<OrderedJson>();
  TRY_ASSIGN(const RunPlaces places,
             FindRunPlaces(arguments.Text("config").value_or("rudderfish.yaml")));
  TRY_ASSIGN(const std::optional<OrderedJson> status, AskIfRunning(places.socket, "status"));
  if (!status) return std::optional<OrderedJson>();
  const OrderedJson kinds = status->value("decisions", OrderedJson::object());
  const OrderedJson migration = kinds.value("migration", OrderedJson::object());
  for (const OrderedJson& move : migration.value("moves", OrderedJson::array())) {
    if (move.value("id", "") == id) return std::optional(move);
  }
  return std::optional<OrderedJson>();
}

// A move that has ended is found by its id, one that is under way by its pod.
Result<ExitStatus> ExplainMove(const Arguments& arguments, const JournalReader& journal,
                               const std::string& id, OutputFormat output) {
  TRY_ASSIGN(const std::vector<StoredRow> rows, journal.Rows({.limit = 1, .move = id}));
  std::optional<StoredRow> row;
  std::string text;
  if (!rows.empty()) {
    row = rows.front();
    const std::string& failure = row->row.failure;
    text = fmt::format("move {} {}\n\n", id,
                       failure.empty() ? FateName(row->row.fate) : "was given up: " + failure);
  } else {
    TRY_ASSIGN(const std::optional<OrderedJson> move, MoveUnderWay(arguments, id));
    if (move) {
      const std::string pod = (*move)["pod"].get<std::string>();
      text = fmt::format("move {} is under way since {}: {}\n\n", id,
                         Age((*move)["begun_ms"].get<int64_t>(), UnixNow()),
                         (*move)["why"].get<std::string>());
      TRY_ASSIGN(row, MoveOfPod(journal, {}, pod.substr(pod.find('/') + 1)));
    }
  }
  if (!row) {
    return Fail(
        ErrorCode::kNotFound,
        "no decision in the journal made the move {}; `rudderfish moves` lists the pods that "
        "are being moved, also those that a person moves",
        id);
  }
  const StoredDecision decision(*std::move(row));
  TRY_ASSIGN(const std::string story, IsStructured(output)
                                          ? DecisionJson(decision)
                                          : DecisionStory(decision, "", UnixNow()));
  TRY(IsStructured(output) ? PrintStructured(story, output) : Print(text + story));
  return ExitStatus::kDone;
}

// The newest decision about a route.
Result<StoredDecision> DecisionAboutRoute(const JournalReader& journal, const std::string& route) {
  TRY_ASSIGN(std::vector<StoredRouting> rows,
             journal.Routings({.limit = kOfOnePlan, .application = route}));
  if (rows.empty()) {
    return Fail(ErrorCode::kNotFound, "no recorded decision about {}{}",
                route.starts_with("capacity/") ? "" : "route/", route);
  }
  return StoredDecision(std::move(rows.back()));
}

Result<ExitStatus> RunExplain(const Arguments& arguments, const Session&) {
  TRY_ASSIGN(
      const OutputFormat output,
      OutputFormatOf(arguments, {OutputFormat::kTable, OutputFormat::kJson, OutputFormat::kYaml}));
  const bool is_structured = IsStructured(output);
  const auto print = [&](const std::string& text) {
    return is_structured ? PrintStructured(text, output) : Print(text);
  };
  TRY_ASSIGN(const Subject subject, SubjectOf(arguments.operands()[0]));
  TRY_ASSIGN(const JournalReader journal, JournalOf(arguments));
  if (subject.is_move) return ExplainMove(arguments, journal, subject.name, output);
  if (subject.is_route) {
    TRY_ASSIGN(const StoredDecision decision, DecisionAboutRoute(journal, subject.name));
    TRY_ASSIGN(const std::string text,
               is_structured ? DecisionJson(decision) : DecisionStory(decision, "", UnixNow()));
    TRY(print(text));
    return ExitStatus::kDone;
  }
  const std::string name_space = arguments.Text("namespace").value_or("default");
  if (!subject.is_workload) {
    TRY_ASSIGN(const std::optional<OrderedJson> pending,
               PendingOf(arguments, name_space + "/" + subject.name));
    if (pending) {
      TRY(print(is_structured
                    ? OrderedJson{{"schema_version", 2}, {"pending", *pending}}.dump(2) + "\n"
                    : PendingStoryText(*pending)));
      return ExitStatus::kDone;
    }
  }
  TRY_ASSIGN(const StoredDecision decision, DecisionAbout(journal, arguments, name_space, subject));
  TRY_ASSIGN(const std::string text,
             is_structured
                 ? DecisionJson(decision)
                 : DecisionStory(decision, subject.is_workload ? "" : subject.name, UnixNow()));
  TRY(print(text));
  return ExitStatus::kDone;
}

constexpr OptionSpec kJournalConfigOption{
    "-c,--config", "FILE", "configuration file that names the journal (default rudderfish.yaml)"};
constexpr OptionSpec kJournalOption{"--journal", "FILE",
                                    "journal file; overrides the configuration"};
constexpr OptionSpec kApplicationOption{"--application", "NAME", "show only this application"};

}  // namespace

CommandSpec DecisionsCommand() {
  return {
      .name = "decisions",
      .summary = "List recorded decisions from the journal",
      .options = {kJournalConfigOption,
                  kJournalOption,
                  {"--since", "TIME", "show only decisions newer than this, for example 1h"},
                  {"--limit", "N", "show at most the N newest decisions (default 100)"},
                  {"--kind", "placement|migration|routing", "show only this kind of decision"},
                  kApplicationOption,
                  {"-n,--namespace", "NS", "show only placements of pods of this namespace"},
                  kAllNamespacesOption,
                  kClusterOption,
                  {"-w,--watch", "", "show new decisions as they are recorded"},
                  {"-o,--output", "table|wide|json|yaml|name", "output format (default: table)"}},
      .examples = {"decisions --since 1h", "decisions -n shop -w",
                   "decisions --journal rudderfish.db -o json"},
      .run = RunDecisions};
}

CommandSpec ExplainCommand() {
  return {
      .name = "explain",
      .summary =
          "Explain why a pod runs on its node, is pending, or would be moved, or why a region "
          "gets its share of a route",
      .operands = {{.name = "KIND/NAME"}},
      .options = {kJournalConfigOption,
                  kJournalOption,
                  {"--kind", "placement|migration",
                   "explain the newest decision of this kind (default: the newest of both)"},
                  kApplicationOption,
                  {"-n,--namespace", "NS",
                   "namespace of the pod or workload, for placement (default `default`)"},
                  kClusterOption,
                  {"-o,--output", "table|json|yaml", "output format (default: table, as text)"}},
      .details =
          "KIND is pod, move, route, capacity, deployment, statefulset, daemonset, replicaset or "
          "job. For a workload, the newest decision about one of its pods is explained; for a "
          "move, the decision that made it, its step, or why it was given up.",
      .examples = {"explain pod/detection-2", "explain pod/detection-2 -o json",
                   "explain deployment/cart -n shop", "explain move/5f0c2ad1b3e4",
                   "explain route/shop"},
      .run = RunExplain};
}

}  // namespace rudderfish
