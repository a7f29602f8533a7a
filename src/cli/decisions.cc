// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/controller_client.h"
#include "cli/decision_text.h"
#include "cli/placement_story.h"
#include "cli/terminal.h"
#include "run/config.h"

namespace rudderfish {
namespace {

constexpr std::array<std::string_view, 3> kOutputs = {"table", "wide", "json"};
constexpr int64_t kLimitMax = 1'000'000;
constexpr int64_t kOfOnePlan = 200;    // Rows at most.
constexpr int64_t kSearched = 10'000;  // Rows of which `explain` looks for a workload.

// The journal that --journal names, or else the configuration.
Result<JournalReader> JournalOf(const Arguments& arguments) {
  TRY(arguments.Exclude("journal", "config"));
  if (const auto path = arguments.Text("journal")) return JournalReader::Open(*path);
  TRY_ASSIGN(const Config config, LoadConfig(arguments.Text("config").value_or("rudderfish.yaml")));
  return JournalReader::Open(config.journal.path);
}

Result<std::vector<StoredComparison>> ComparisonsSince(const JournalReader& journal,
                                                       const RowFilter& filter) {
  TRY_ASSIGN(std::vector<StoredComparison> rows, journal.Comparisons("", filter.limit));
  const UnixMillis since = filter.since.value_or(0);
  std::erase_if(rows, [&](const StoredComparison& row) { return row.written_at < since; });
  return rows;
}

Result<ExitStatus> RunDecisions(const Arguments& arguments, const Session& session) {
  TRY_ASSIGN(const int output, arguments.Choice("output", kOutputs, 0));
  RowFilter filter;
  TRY_ASSIGN(filter.limit, arguments.Integer("limit", 100, 1, kLimitMax));
  filter.application = arguments.Text("application").value_or("");
  const UnixMillis now = UnixNow();
  if (arguments.Has("since")) {
    TRY_ASSIGN(const double seconds, arguments.Seconds("since", 0));
    filter.since = now - static_cast<UnixMillis>(seconds * 1000);
  }
  TRY_ASSIGN(const JournalReader journal, JournalOf(arguments));
  TRY_ASSIGN(const std::vector<StoredRow> rows, journal.Rows(filter));
  if (rows.empty()) {  // A process that places pods moves none.
    TRY_ASSIGN(const std::vector<StoredComparison> placed, ComparisonsSince(journal, filter));
    if (!placed.empty()) {
      TRY(Print(output == 2 ? ComparisonsJson(placed) : ComparisonTable(placed, now)));
      return ExitStatus::kDone;
    }
  }
  if (output == 2) {
    TRY(Print(DecisionsJson(rows)));
  } else if (rows.empty()) {
    Say(session, "no decision {}{}",
        filter.application.empty() ? "" : fmt::format("of {} ", filter.application),
        arguments.Has("since") ? "in that time" : "yet");
  } else {
    TRY(Print(DecisionTable(rows, now, output == 1 ? Width::kWide : Width::kNormal)));
  }
  return ExitStatus::kDone;
}

// "pod/NAME" or NAME.
Result<std::string> PodNameOf(const std::string& operand) {
  const size_t slash = operand.find('/');
  if (slash == std::string::npos) return operand;
  const std::string kind = operand.substr(0, slash);
  if (kind != "pod" && kind != "pods" && kind != "po") {
    return Invalid("`{}`: decisions are about pods; expected pod/NAME", operand);
  }
  return operand.substr(slash + 1);
}

// The newest row that speaks of the pod, or else one in which its workload was considered.
Result<StoredRow> RowAbout(const JournalReader& journal, RowFilter filter, const std::string& pod) {
  filter.pod = pod;
  filter.limit = kOfOnePlan;
  TRY_ASSIGN(std::vector<StoredRow> rows, journal.Rows(filter));
  if (!rows.empty()) {
    // Of the newest plan, rather what it does with the pod than what it thought of later.
    const JournalRow& newest = rows.back().row;
    const auto moved = std::find_if(rows.rbegin(), rows.rend(), [&](const StoredRow& stored) {
      const JournalRow& row = stored.row;
      return row.plan == newest.plan && row.application == newest.application &&
             !row.chosen.empty() && row.chosen[0].pod == pod;
    });
    return std::move(moved == rows.rend() ? rows.back() : *moved);
  }
  filter.pod.clear();
  filter.limit = kSearched;
  TRY_ASSIGN(rows, journal.Rows(filter));
  const auto speaks = [&](const StoredRow& stored) {
    const auto is_its = [&](const std::string& workload) {
      return !workload.empty() && pod.starts_with(workload + "-");
    };
    const auto& row = stored.row;
    return std::any_of(row.considered.begin(), row.considered.end(),
                       [&](const Alternative& one) { return is_its(one.workload); }) ||
           std::any_of(row.refused.begin(), row.refused.end(),
                       [&](const Refusal& one) { return is_its(one.workload); });
  };
  const auto found = std::find_if(rows.rbegin(), rows.rend(), speaks);
  if (found != rows.rend()) return std::move(*found);
  return Fail(ErrorCode::kNotFound, "no decision in the journal speaks of pod {}", pod);
}

// Why the pod waits, if it does and a controller that places pods runs and sees it.
Result<std::optional<OrderedJson>> PendingOf(const Arguments& arguments, const std::string& key) {
  if (arguments.Has("journal")) return std::optional<OrderedJson>();
  TRY_ASSIGN(const Config config, LoadConfig(arguments.Text("config").value_or("rudderfish.yaml")));
  if (!config.places()) return std::optional<OrderedJson>();
  Result<OrderedJson> answer = AskRunning(config.server.socket, "explain " + key);
  if (!answer && answer.error().code == ErrorCode::kNotFound) return std::optional<OrderedJson>();
  if (!answer) return tl::unexpected(std::move(answer).error());
  if (!answer->contains("pending") || (*answer)["pending"].is_null())
    return std::optional<OrderedJson>();
  return std::optional((*answer)["pending"]);
}

// Whether there was anything to say of the pod as one that is placed rather than moved.
Result<bool> ExplainPlacement(const Arguments& arguments, const JournalReader& journal,
                              const std::string& key, OutputFormat output) {
  const bool is_json = output == OutputFormat::kJson;
  TRY_ASSIGN(const std::optional<OrderedJson> pending, PendingOf(arguments, key));
  if (pending) {
    TRY(Print(is_json ? OrderedJson{{"schema_version", 1}, {"pending", *pending}}.dump(2) + "\n"
                      : PendingStoryText(*pending)));
    return true;
  }
  TRY_ASSIGN(const std::vector<StoredComparison> compared, journal.Comparisons(key, 1));
  if (!compared.empty()) {
    TRY_ASSIGN(const std::string text,
               is_json ? ComparisonJson(compared[0]) : ComparisonStory(compared[0], UnixNow()));
    TRY(Print(text));
    return true;
  }
  TRY_ASSIGN(const std::vector<StoredPlacement> placed, journal.Placements(key, 1));
  if (placed.empty()) {
    TRY_ASSIGN(const std::vector<StoredComparison> any, journal.Comparisons("", 1));
    TRY_ASSIGN(const std::vector<StoredPlacement> one, journal.Placements("", 1));
    if (any.empty() && one.empty()) return false;
    return Fail(ErrorCode::kNotFound,
                "nothing in the journal speaks of pod {} (-n names another namespace), and it "
                "does not wait",
                key);
  }
  TRY(Print(is_json ? PlacementJson(placed[0]) : PlacementStory(placed[0], UnixNow())));
  return true;
}

Result<ExitStatus> RunExplain(const Arguments& arguments, const Session&) {
  TRY_ASSIGN(const OutputFormat output, OutputFormatOf(arguments));
  TRY_ASSIGN(const std::string pod, PodNameOf(arguments.operands()[0]));
  TRY_ASSIGN(const JournalReader journal, JournalOf(arguments));
  const std::string key =
      fmt::format("{}/{}", arguments.Text("namespace").value_or("default"), pod);
  TRY_ASSIGN(const bool is_told, ExplainPlacement(arguments, journal, key, output));
  if (is_told) return ExitStatus::kDone;
  RowFilter filter;
  filter.application = arguments.Text("application").value_or("");
  TRY_ASSIGN(const StoredRow row, RowAbout(journal, filter, pod));
  TRY(Print(output == OutputFormat::kJson ? DecisionJson(row)
                                          : DecisionStory(row, pod, UnixNow())));
  return ExitStatus::kDone;
}

constexpr OptionSpec kJournalConfigOption{
    "-c,--config", "FILE",
    "the configuration that names the journal; rudderfish.yaml by "
    "default"};
constexpr OptionSpec kJournalOption{"--journal", "FILE", "the journal itself, instead"};
constexpr OptionSpec kApplicationOption{"--application", "NAME", "only of this application"};

}  // namespace

CommandSpec DecisionsCommand() {
  return {.name = "decisions",
          .summary = "what the controller decided, from its journal, live or afterwards",
          .options = {kJournalConfigOption,
                      kJournalOption,
                      {"--since", "TIME", "no older than this, such as 1h"},
                      {"-n,--limit", "N", "the newest N; 100 by default"},
                      kApplicationOption,
                      {"-o,--output", "table|wide|json", "a table by default"}},
          .examples = {"decisions --since 1h", "decisions --journal rudderfish.db -o json"},
          .run = RunDecisions};
}

CommandSpec ExplainCommand() {
  return {.name = "explain",
          .summary = "why a pod is where it is, would be moved, stays or waits",
          .operands = {{.name = "pod/NAME"}},
          .options = {kJournalConfigOption,
                      kJournalOption,
                      kApplicationOption,
                      {"-n,--namespace", "NS",
                       "of the pod, where pods are placed; `default` by default"},
                      {"-o,--output", "table|json", "text by default"}},
          .examples = {"explain pod/detection-2", "explain pod/detection-2 -o json"},
          .run = RunExplain};
}

}  // namespace rudderfish
