// SPDX-License-Identifier: Apache-2.0
#include "cli/placement_story.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text_table.h"
#include "cli/decision_text.h"
#include "cli/terminal.h"

namespace rudderfish {
namespace {

constexpr size_t kNodesTold = 3;
constexpr double kMillionths = 1e6;

std::string Ppm(double fraction) { return fmt::format("{:+.5g}", fraction * kMillionths); }

OrderedJson OrNull(const std::optional<double>& value) {
  return value ? OrderedJson(*value) : OrderedJson(nullptr);
}

// As people call a pod: those of other clusters with their cluster.
std::string PodText(const std::string& key, const std::string& cluster) {
  return cluster.empty() ? key : fmt::format("{} of cluster {}", key, cluster);
}

// Whose choice it was.
std::string ChooserOf(const PlacementComparison& row) {
  switch (row.group) {
    case ComparisonGroup::kCanary:
      return row.policy + ", as one of the canary";
    case ComparisonGroup::kEnforced:
      return row.policy;
    case ComparisonGroup::kControl:
      return "kube-default, as one of the canary's control group";
    case ComparisonGroup::kShadow:
    case ComparisonGroup::kAdvice:
      break;
  }
  return row.scheduler;
}

std::string HeadlineOf(const PlacementComparison& row) {
  const std::string pod = PodText(row.pod.Key(), row.cluster);
  if (row.group == ComparisonGroup::kAdvice) {
    return fmt::format("{} waits for {}; {} would put it on {}", pod, row.scheduler, row.policy,
                       row.policy_node);
  }
  std::string where = fmt::format("{} was put on {} by {}", pod, row.node, ChooserOf(row));
  if (row.policy_node.empty()) return where;
  if (row.policy_node == row.baseline_node)
    return fmt::format("{}; {} chooses the same", where, row.policy);
  const bool is_policys = row.node == row.policy_node;
  return fmt::format("{}; {} would have chosen {}", where, is_policys ? "kube-default" : row.policy,
                     is_policys ? row.baseline_node : row.policy_node);
}

std::string RulesLine(const PlacementComparison& row) {
  switch (row.rules) {
    case RulesVerdict::kEqual:
      return "";
    case RulesVerdict::kDifferent:
      return fmt::format("Our rules would not have allowed {}\n", row.reason);
    case RulesVerdict::kUnclear:
      return fmt::format(
          "Whether our rules allow it is not clear, as the node changed meanwhile: {}\n",
          row.reason);
    case RulesVerdict::kUnmodelled:
      break;
  }
  return fmt::format("Not compared, as this is not modelled: {}\n", row.reason);
}

std::string OutcomeLine(const StoredComparison& stored) {
  const PlacementOutcome& outcome = stored.outcome;
  std::string text =
      fmt::format("Outcome: {}{}", outcome.fate,
                  outcome.failure.empty() ? "" : fmt::format(" ({})", outcome.failure));
  if (outcome.measured_gain)
    text += fmt::format("; asked again later, the Model says {} ppm", Ppm(*outcome.measured_gain));
  return text + "\n";
}

std::string ConsideredTable(const OrderedJson& considered, const PlacementComparison& row,
                            double now) {
  using Align = TextTable::Align;
  std::vector<TextTable::Column> columns{{"  NODE"},
                                         {"KUBE SCORE", Align::kRight},
                                         {"POLICY SCORE", Align::kRight},
                                         {"OBJECTIVE ppm", Align::kRight}};
  std::vector<std::string> plugins;
  if (!considered.empty()) {
    for (const auto& [name, score] : considered[0]["plugins"].items()) plugins.push_back(name);
  }
  for (const std::string& plugin : plugins) columns.push_back({plugin, Align::kRight});
  TextTable table(std::move(columns));
  for (const OrderedJson& one : considered) {
    const auto node = one["node"].get<std::string>();
    const char mark = node == row.node ? '*' : node == row.policy_node ? '+' : ' ';
    std::vector<std::string> cells{fmt::format("{} {}", mark, node), one["kube_score"].dump(),
                                   fmt::format("{:.4g}", one["policy_score"].get<double>()),
                                   Ppm(one["objective"].get<double>() - now)};
    for (const std::string& plugin : plugins) cells.push_back(one["plugins"][plugin].dump());
    table.Row(std::move(cells));
  }
  return table.Text();
}

}  // namespace

Result<std::string> ComparisonStory(const StoredComparison& stored, UnixMillis now) {
  const PlacementComparison& row = stored.row;
  TRY_ASSIGN(const OrderedJson detail, ParseOrderedJson(row.detail, "the journal"));
  std::string text = fmt::format("{}\n", Bold(HeadlineOf(row)));
  text += fmt::format("decision {}, {} ago ({} UTC); {}it waited {:.0f} ms\n\n", stored.number,
                      Age(stored.written_at, now), DateAndTime(stored.written_at),
                      row.rules == RulesVerdict::kUnmodelled
                          ? ""
                          : fmt::format("{} of {} nodes could take it; ", row.feasible, row.nodes),
                      row.waited_ms);
  text += RulesLine(row);
  if (!row.policy_node.empty()) {
    text +=
        fmt::format("Predicted, in ppm of {} (less is better): {} on {}, {} on {}: a gain of {}\n",
                    row.objective, Ppm(row.baseline_change), row.baseline_node,
                    Ppm(row.policy_change), row.policy_node, Ppm(row.gain()));
  }
  if (detail.contains("stepped_back"))
    text += fmt::format("kube-default chose in its place: {}\n",
                        detail["stepped_back"].get<std::string>());
  text += OutcomeLine(stored);
  if (!detail.contains("considered")) return text;
  try {
    text +=
        "\nConsidered, the best by kube-scheduler's scores (* where it is, + where the policy "
        "would put it):\n";
    text += ConsideredTable(detail["considered"], row, detail["objective"].get<double>());
    if (detail["refused"].empty()) return text;
    text += "\nNot allowed:\n";
    for (const OrderedJson& one : detail["refused"])
      text += fmt::format("  {}  {}\n", Counted(one["nodes"].get<int64_t>(), "node"),
                          one["reason"].get<std::string>());
  } catch (const OrderedJson::exception& error) {
    return Fail(ErrorCode::kCorruption, "the journal: comparison {}: {}", stored.number,
                error.what());
  }
  return text;
}

OrderedJson ComparisonDetails(const StoredComparison& stored) {
  const PlacementComparison& row = stored.row;
  return {{"cluster", row.cluster},
          {"namespace", row.pod.object_namespace},
          {"pod", row.pod.name},
          {"uid", row.pod.uid},
          {"scheduler", row.scheduler},
          {"objective", row.objective},
          {"node", row.node},
          {"policy_node", row.policy_node},
          {"baseline_node", row.baseline_node},
          {"policy_change", row.policy_change},
          {"baseline_change", row.baseline_change},
          {"predicted_gain", row.gain()},
          {"rules", NameOf(row.rules)},
          {"reason", row.reason},
          {"nodes", row.nodes},
          {"feasible", row.feasible},
          {"waited_ms", row.waited_ms},
          {"measured_gain", OrNull(stored.outcome.measured_gain)},
          {"measured_change", OrNull(stored.outcome.measured_change)}};
}

std::string PlacementStory(const StoredPlacement& stored, UnixMillis now) {
  const PlacementRow& row = stored.row;
  const std::string pod = PodText(row.pod.Key(), row.cluster);
  const std::string headline =
      row.node.empty() ? fmt::format("{} waits: {}", pod, row.reason)
      : row.reason.empty()
          ? fmt::format("{} was put on {} by {}", pod, row.node, row.policy)
          : fmt::format("{} was put on {} by {}, as {}", pod, row.node, row.policy, row.reason);
  return fmt::format(
      "{}\ndecision {} of the scheduler {}, {} ago ({} UTC), attempt {}; {} of {} nodes could take "
      "it; it waited {:.0f} ms\nOutcome: {}{}\n",
      Bold(headline), row.number, row.scheduler, Age(stored.written_at, now),
      DateAndTime(stored.written_at), row.attempt, row.feasible, row.nodes, row.waited_ms,
      stored.fate, stored.failure.empty() ? "" : fmt::format(" ({})", stored.failure));
}

OrderedJson PlacementDetails(const StoredPlacement& stored) {
  const PlacementRow& row = stored.row;
  return {{"cluster", row.cluster},     {"namespace", row.pod.object_namespace},
          {"pod", row.pod.name},        {"uid", row.pod.uid},
          {"scheduler", row.scheduler}, {"node", row.node},
          {"attempt", row.attempt},     {"waited_ms", row.waited_ms},
          {"nodes", row.nodes},         {"feasible", row.feasible},
          {"reason", row.reason}};
}

std::string PendingStoryText(const OrderedJson& pending) {
  const auto text_of = [&](const char* key) { return pending[key].get<std::string>(); };
  std::string text = Bold(fmt::format("{} waits for {}, for {:.0f} s",
                                      PodText(text_of("pod"), pending.value("cluster", "")),
                                      text_of("scheduler"), pending["waited_s"].get<double>())) +
                     "\n";
  if (const std::string held = text_of("held"); !held.empty())
    text += fmt::format("No scheduler places it now: {}.\n", held);
  if (pending["opted_out"].get<bool>())
    text += "It says rudderfish.io/do-not-place: no policy of ours counts for it.\n";
  for (const OrderedJson& gate : pending["gates"])
    text += fmt::format("It is held by the scheduling gate {}.\n", gate.get<std::string>());
  for (const OrderedJson& what : pending["unmodelled"])
    text += fmt::format("What follows leaves out what is not modelled: the pod {}.\n",
                        what.get<std::string>());
  const std::string message = text_of("message");
  text += message.empty() ? fmt::format("{} of {} nodes may take it{}.\n",
                                        pending["feasible"].dump(), pending["nodes"].dump(),
                                        text_of("choice").empty()
                                            ? ""
                                            : fmt::format("; {} would put it on {}",
                                                          text_of("policy"), text_of("choice")))
                          : message + "\n";
  TextTable table({{""}, {""}, {""}}, 2);
  for (const OrderedJson& group : pending["refused"]) {
    const auto nodes = group["nodes"].get<std::vector<std::string>>();
    std::string names;
    for (size_t i = 0; i < std::min(nodes.size(), kNodesTold); ++i)
      names += (i == 0 ? "" : ", ") + nodes[i];
    if (nodes.size() > kNodesTold) names += fmt::format(" and {} more", nodes.size() - kNodesTold);
    table.Row({Counted(static_cast<int64_t>(nodes.size()), "node"),
               group["reason"].get<std::string>(), names});
  }
  return table.empty() ? text : text + "\n" + table.Text();
}

std::string DeciderText(const OrderedJson& status) {
  const OrderedJson& standing = status["standing"];
  const auto mode = status["mode"].get<std::string>();
  const auto policy = status["policy"].get<std::string>();
  const std::string pods =
      fmt::format("pods of the scheduler `{}`", status["scheduler_name"].get<std::string>());
  if (mode == "enforce") return fmt::format("{} decides about {}", policy, pods);
  if (mode == "canary")
    return fmt::format("{} decides about a share of the {}, kube-default about the others", policy,
                       pods);
  if (mode == "off") return pods + " wait";
  return fmt::format(
      "{}; {} is compared",
      standing["serves"].get<bool>() ? "kube-default decides about " + pods : pods + " wait",
      policy);
}

}  // namespace rudderfish
