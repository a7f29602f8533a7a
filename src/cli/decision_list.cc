// SPDX-License-Identifier: Apache-2.0
#include "cli/decision_list.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <type_traits>

#include "base/json.h"
#include "base/text_table.h"
#include "cli/decision_text.h"
#include "cli/placement_story.h"
#include "cli/routing_story.h"

namespace rudderfish {
namespace {

constexpr int kListSchemaVersion = 2;  // Of the JSON.
constexpr double kPpm = 1e6;

// What all kinds have in common.
struct Head {
  int64_t number = 0;
  UnixMillis written_at = 0;
  std::string kind, mode;
  std::string subject;  // Whom it is about: "pod/NAME".
  std::string of;       // Of which namespace or application.
  std::string cluster;  // Of a pod that was placed; empty: the configuration's own.
  std::string policy;
  std::string from, chosen, baseline;         // Nodes; empty: none.
  std::optional<double> predicted, measured;  // Gain, in `unit`.
  std::string unit, verdict, fate, failure, reason;
  OrderedJson allowed = nullptr;  // By the guard, or by our rules; null: not known.
};

// A node, with the pod if that is not the one that was chosen.
std::string BaselineOf(const JournalRow& row) {
  if (row.baseline_choice.empty()) return "stay";
  const JournalMove& move = row.baseline_choice[0];
  const bool is_same = !row.chosen.empty() && row.chosen[0].pod == move.pod;
  return is_same ? move.to : fmt::format("{} to {}", move.pod, move.to);
}

Head HeadOf(const StoredRow& stored) {
  const JournalRow& row = stored.row;
  Head head{.number = stored.number,
            .written_at = stored.written_at,
            .kind = row.kind,
            .mode = row.mode,
            .subject = row.application.empty() ? "" : "application/" + row.application,
            .of = row.application,
            .policy = row.policy,
            .unit = "ms",
            .verdict = row.verdict.allowed ? "allowed" : "refused",
            .fate = std::string(FateName(row.fate)),
            .failure = row.failure,
            .reason = !row.failure.empty() ? row.failure : row.verdict.reason};
  if (!row.baseline.empty()) head.baseline = BaselineOf(row);
  if (row.chosen.empty()) {
    head.reason = WhyHeld(row);
    return head;
  }
  head.subject = "pod/" + row.chosen[0].pod;
  head.from = row.chosen[0].from;
  head.chosen = row.chosen[0].to;
  head.predicted = row.predicted_gain_ms;
  if (row.measured && row.fate == Fate::kDone)
    head.measured = row.seen.latency_ms - row.measured->latency_ms;
  if (head.reason.empty()) head.reason = TermChanges(row.seen, row.predicted);
  return head;
}

Head HeadOf(const StoredComparison& stored) {
  const PlacementComparison& row = stored.row;
  const PlacementOutcome& outcome = stored.outcome;
  Head head{.number = stored.number,
            .written_at = stored.written_at,
            .kind = "placement",
            .mode = std::string(NameOf(row.group)),
            .subject = "pod/" + row.pod.name,
            .of = row.pod.object_namespace,
            .cluster = row.cluster,
            .policy = row.policy,
            .chosen = row.policy_node,
            .baseline = row.baseline_node,
            .unit = "ppm",
            .verdict = std::string(NameOf(row.rules)),
            .fate = outcome.fate,
            .failure = outcome.failure,
            .reason = outcome.failure.empty() ? row.reason : outcome.failure};
  if (row.rules == RulesVerdict::kEqual || row.rules == RulesVerdict::kDifferent)
    head.allowed = row.rules == RulesVerdict::kEqual;
  if (!row.policy_node.empty()) head.predicted = row.gain() * kPpm;
  if (outcome.measured_gain) head.measured = *outcome.measured_gain * kPpm;
  return head;
}

Head HeadOf(const StoredPlacement& stored) {
  const PlacementRow& row = stored.row;
  return {.number = row.number,
          .written_at = stored.written_at,
          .kind = "placement",
          .mode = "",
          .subject = "pod/" + row.pod.name,
          .of = row.pod.object_namespace,
          .cluster = row.cluster,
          .policy = row.policy,
          .chosen = row.node,
          .unit = "ppm",
          .verdict = "",
          .fate = stored.fate,
          .failure = stored.failure,
          .reason = stored.failure.empty() ? row.reason : stored.failure,
          .allowed = !row.node.empty()};
}

Head HeadOf(const StoredRouting& stored) {
  const RoutingDecision& row = stored.row;
  Head head{.number = stored.number,
            .written_at = stored.written_at,
            .kind = "routing",
            .mode = row.mode,
            .subject = row.capacity ? row.route : "route/" + row.route,
            .of = row.target,
            .policy = row.policy,
            .from = SharesText(row, &RoutedRegion::now),
            .chosen = SharesText(row, &RoutedRegion::allowed),
            .baseline = row.baseline.empty() ? "" : SharesText(row, &RoutedRegion::baseline),
            .unit = "ms",
            .verdict = row.verdict.allowed ? "allowed" : "refused",
            .fate = std::string(FateName(row.fate)),
            .failure = row.failure,
            .reason = !row.failure.empty() ? row.failure : row.verdict.reason,
            .allowed = row.verdict.allowed};
  if (row.predicted_ms > 0) head.predicted = row.predicted_now_ms - row.predicted_ms;
  if (row.measured_ms && row.measured_now_ms)
    head.measured = *row.measured_now_ms - *row.measured_ms;
  return head;
}

OrderedJson DetailsOf(const StoredRow& stored) { return MoveDetails(stored); }
OrderedJson DetailsOf(const StoredComparison& stored) { return ComparisonDetails(stored); }
OrderedJson DetailsOf(const StoredPlacement& stored) { return PlacementDetails(stored); }
OrderedJson DetailsOf(const StoredRouting& stored) { return RoutingDetails(stored); }

Head HeadOf(const StoredDecision& decision) {
  return std::visit([](const auto& stored) { return HeadOf(stored); }, decision);
}

OrderedJson NullIfNone(const std::optional<double>& value) {
  return value ? OrderedJson(*value) : OrderedJson(nullptr);
}

OrderedJson DecisionAsJson(const StoredDecision& decision) {
  const Head head = HeadOf(decision);
  OrderedJson json{{"number", head.number},
                   {"written_at_ms", head.written_at},
                   {"written_at", Rfc3339(head.written_at)},
                   {"kind", head.kind},
                   {"mode", head.mode},
                   {"subject", head.subject},
                   {"policy", head.policy},
                   {"from_node", head.from},
                   {"chosen_node", head.chosen},
                   {"baseline_choice_node", head.baseline},
                   {"gain",
                    {{"predicted", NullIfNone(head.predicted)},
                     {"measured", NullIfNone(head.measured)},
                     {"unit", head.unit}}},
                   {"verdict", {{"allowed", head.allowed}, {"reason", head.reason}}},
                   {"fate", head.fate},
                   {"failure", head.failure}};
  json.update(std::visit([](const auto& stored) { return DetailsOf(stored); }, decision));
  return json;
}

std::string OrDash(const std::string& text) { return text.empty() ? "-" : text; }

std::string GainText(const std::optional<double>& gain, const std::string& unit) {
  return gain ? fmt::format("{:+.5g} {}", *gain, unit) : "-";
}

// Pods of a namespace as kubectl would tell them apart.
std::string SubjectText(const Head& head) {
  if (head.kind != "placement") return OrDash(head.subject);
  return fmt::format("{} -n {}{}", head.subject, head.of,
                     head.cluster.empty() ? "" : " --cluster " + head.cluster);
}

std::string DumpJson(const OrderedJson& json) {
  return json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace

std::string DecisionTable(std::span<const StoredDecision> rows, UnixMillis now, Width width) {
  using Align = TextTable::Align;
  std::vector<TextTable::Column> columns{{"NUMBER", Align::kRight},
                                         {"AGE", Align::kRight},
                                         {"KIND"},
                                         {"MODE"},
                                         {"SUBJECT"},
                                         {"FROM"},
                                         {"CHOSEN"},
                                         {"BASELINE"},
                                         {"GAIN", Align::kRight},
                                         {"MEASURED", Align::kRight},
                                         {"VERDICT"},
                                         {"FATE"}};
  if (width == Width::kWide) {
    for (const char* name : {"POLICY", "OF", "TIME (UTC)", "REASON"}) columns.push_back({name});
  }
  TextTable table(std::move(columns));
  for (const StoredDecision& decision : rows) {
    const Head head = HeadOf(decision);
    std::vector<std::string> cells{std::to_string(head.number),
                                   Age(head.written_at, now),
                                   head.kind,
                                   OrDash(head.mode),
                                   SubjectText(head),
                                   OrDash(head.from),
                                   OrDash(head.chosen),
                                   OrDash(head.baseline),
                                   GainText(head.predicted, head.unit),
                                   GainText(head.measured, head.unit),
                                   OrDash(head.verdict),
                                   OrDash(head.fate)};
    if (width == Width::kWide) {
      for (const std::string& cell :
           {head.policy, OrDash(head.of), DateAndTime(head.written_at), OrDash(head.reason)})
        cells.push_back(cell);
    }
    table.Row(std::move(cells));
  }
  return table.Text();
}

std::string DecisionsJson(std::span<const StoredDecision> rows) {
  OrderedJson json{{"schema_version", kListSchemaVersion}, {"decisions", OrderedJson::array()}};
  for (const StoredDecision& row : rows) json["decisions"].push_back(DecisionAsJson(row));
  return DumpJson(json);
}

std::vector<std::string> DecisionNames(std::span<const StoredDecision> rows) {
  std::vector<std::string> names;
  for (const StoredDecision& row : rows) names.push_back(HeadOf(row).subject);
  return names;
}

Result<std::string> DecisionStory(const StoredDecision& decision, std::string_view pod,
                                  UnixMillis now) {
  if (const auto* move = std::get_if<StoredRow>(&decision)) return MoveStory(*move, pod, now);
  if (const auto* placed = std::get_if<StoredPlacement>(&decision))
    return PlacementStory(*placed, now);
  if (const auto* routed = std::get_if<StoredRouting>(&decision)) return RoutingStory(*routed, now);
  return ComparisonStory(std::get<StoredComparison>(decision), now);
}

Result<std::string> DecisionJson(const StoredDecision& decision) {
  OrderedJson json{{"schema_version", kListSchemaVersion}};
  json.update(DecisionAsJson(decision));
  if (const auto* compared = std::get_if<StoredComparison>(&decision)) {
    TRY_ASSIGN(json["detail"], ParseOrderedJson(compared->row.detail, "the journal"));
  }
  return DumpJson(json);
}

}  // namespace rudderfish
