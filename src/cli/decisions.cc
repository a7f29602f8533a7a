// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/commands.h"
#include "cli/config.h"
#include "cli/decision_text.h"
#include "cli/terminal.h"

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

Result<ExitStatus> RunExplain(const Arguments& arguments, const Session&) {
  TRY_ASSIGN(const OutputFormat output, OutputFormatOf(arguments));
  TRY_ASSIGN(const std::string pod, PodNameOf(arguments.operands()[0]));
  TRY_ASSIGN(const JournalReader journal, JournalOf(arguments));
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
          .summary = "why a pod is or would be moved, or stays: the newest decision about it",
          .operands = {{.name = "pod/NAME"}},
          .options = {kJournalConfigOption,
                      kJournalOption,
                      kApplicationOption,
                      {"-o,--output", "table|json", "text by default"}},
          .examples = {"explain pod/detection-2", "explain pod/detection-2 -o json"},
          .run = RunExplain};
}

}  // namespace rudderfish
