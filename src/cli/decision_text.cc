// SPDX-License-Identifier: Apache-2.0
#include "cli/decision_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text_table.h"
#include "cli/explanation.h"
#include "cli/terminal.h"
#include "control/journal_json.h"

namespace rudderfish {
namespace {

constexpr size_t kRefusalsTold = 12;
constexpr int kDecisionColumns = 100;

std::string Milliseconds(double ms) { return fmt::format("{:.1f}", ms); }
std::string Signed(double ms) {
  return std::abs(ms) < kVisibleMs ? "0.0" : fmt::format("{:+.1f}", ms);
}

std::string MoveInWords(const std::vector<JournalMove>& moves) {
  if (moves.empty()) return "stay";
  return fmt::format("{} to {}", moves[0].pod, moves[0].to);
}

bool IsOfWorkload(std::string_view pod, const std::string& workload) {
  return pod.starts_with(workload + "-");
}

// Why the pod asked about is not what was decided about.
std::string StaysHeadline(const JournalRow& row, std::string_view pod) {
  for (const Refusal& one : row.refused) {
    if (one.workload.empty() && one.node.empty()) {
      return fmt::format("nothing is moved: {}", one.reason);
    }
  }
  if (pod.empty()) return "nothing is moved";
  for (const Refusal& one : row.refused) {
    if (!one.pod.empty() && one.pod != pod) continue;
    if (!one.node.empty() || one.workload.empty() || !IsOfWorkload(pod, one.workload)) continue;
    return fmt::format("{} stays: it {}", pod, one.reason);
  }
  return fmt::format("{} stays: nothing is moved", pod);
}

// What was decided, in a sentence.
std::string Headline(const StoredRow& stored, std::string_view pod) {
  const JournalRow& row = stored.row;
  if (row.chosen.empty()) return StaysHeadline(row, pod);
  const JournalMove& move = row.chosen[0];
  const std::string what = fmt::format("{} from {} to {}", move.pod, move.from, move.to);
  switch (row.fate) {
    case Fate::kRecorded:
      return fmt::format("{} would be moved ({}: nothing was touched)", what, row.mode);
    case Fate::kRefused:
      return fmt::format("{} is not moved: {}", what, row.verdict.reason);
    case Fate::kFailed:
      return fmt::format("{} was not moved: {}", what, row.failure);
    case Fate::kDone:
      return fmt::format("{} was moved", what);
    case Fate::kInFlight:
      return fmt::format("{} is being moved", what);
    case Fate::kUnknown:
    case Fate::kStayed:
      break;
  }
  return fmt::format("{}: the controller exited before it learned the outcome", what);
}

// Scores are shown of policies that rank.
std::string AlternativeTable(const JournalRow& row) {
  const bool scored = std::any_of(row.considered.begin(), row.considered.end(),
                                  [](const Alternative& one) { return one.score.has_value(); });
  std::vector<TextTable::Column> columns{{"  ALTERNATIVE"},
                                         {"LATENCY", TextTable::Align::kRight},
                                         {"CHANGE", TextTable::Align::kRight},
                                         {"EXECUTION", TextTable::Align::kRight},
                                         {"NETWORK", TextTable::Align::kRight},
                                         {"TRANSFER", TextTable::Align::kRight},
                                         {"QUEUEING", TextTable::Align::kRight}};
  if (scored) columns.push_back({"SCORE", TextTable::Align::kRight});
  TextTable table(std::move(columns));
  const auto add = [&](const std::string& name, const Terms& terms, const std::string& score) {
    std::vector<std::string> cells{name,
                                   Milliseconds(terms.latency_ms),
                                   Signed(terms.latency_ms - row.seen.latency_ms),
                                   Milliseconds(terms.execution_ms),
                                   Milliseconds(terms.network_ms),
                                   Milliseconds(terms.transfer_ms),
                                   Milliseconds(terms.queueing_ms)};
    if (scored) cells.push_back(score);
    table.Row(std::move(cells));
  };
  const bool stays_unlisted =
      row.chosen.empty() &&
      std::all_of(row.considered.begin(), row.considered.end(),
                  [](const Alternative& one) { return one.move.has_value(); });
  add(stays_unlisted ? "* as it was" : "  as it was", row.seen, "");
  std::vector<Alternative> considered = row.considered;
  std::ranges::stable_sort(considered, {},
                           [](const Alternative& one) { return one.predicted.latency_ms; });
  for (const Alternative& one : considered) {
    const bool chosen =
        one.move ? !row.chosen.empty() && *one.move == row.chosen[0] : row.chosen.empty();
    const std::string name =
        one.move ? fmt::format("{} from {} to {}", one.move->pod, one.move->from, one.move->to)
                 : "stay";
    add(fmt::format("{} {}", chosen ? "*" : " ", name), one.predicted,
        one.score ? fmt::format("{:.3g}", *one.score) : "");
  }
  return table.Text();
}

// "web-1 anywhere", "web to edge-2", "anything to device-3".
std::string WhatIsRefused(const Refusal& one) {
  const std::string& who = one.pod.empty() ? one.workload : one.pod;
  return fmt::format("{} {}", who.empty() ? "anything" : who,
                     one.node.empty() ? "anywhere" : fmt::format("to {}", one.node));
}

std::string RefusalLines(const JournalRow& row, std::string_view pod) {
  std::string text;
  size_t told = 0, fitting = 0;
  for (const Refusal& one : row.refused) {
    if (!pod.empty() && !one.workload.empty() && !IsOfWorkload(pod, one.workload)) continue;
    if (!pod.empty() && !one.pod.empty() && one.pod != pod) continue;
    if (++fitting > kRefusalsTold) continue;
    ++told;
    text += fmt::format("  {}: {}\n", WhatIsRefused(one), one.reason);
  }
  if (fitting > told) text += fmt::format("  and {} more\n", fitting - told);
  const int64_t unkept = row.refused_count - static_cast<int64_t>(row.refused.size());
  if (unkept > 0) text += fmt::format("  {} more were counted, but not kept\n", unkept);
  return text;
}

// That the row speaks of the pod by another one. One that is held is no equal of the others.
std::string StandIn(const JournalRow& row, std::string_view pod) {
  if (pod.empty() || (!row.chosen.empty() && row.chosen[0].pod == pod)) return "";
  for (const Refusal& one : row.refused) {
    if (one.pod == pod) return fmt::format("{} was not considered: it {}.\n", pod, one.reason);
  }
  for (const Alternative& one : row.considered) {
    if (one.move && one.move->pod == pod) return fmt::format("{} was considered.\n", pod);
  }
  for (const Alternative& one : row.considered) {
    if (!one.move || !IsOfWorkload(pod, one.workload)) continue;
    return Paragraph(fmt::format("{} represents {}: pods of one workload on one node are equal.",
                                 one.move->pod, pod),
                     kDecisionColumns);
  }
  return "";
}

}  // namespace

std::string WhyHeld(const JournalRow& row) {
  std::string text;
  int more = 0;
  for (const Refusal& one : row.refused) {
    const bool plan = one.workload.empty() && one.node.empty();
    if (one.pod.empty() && !plan) continue;
    if (text.empty()) {
      text = plan ? one.reason : fmt::format("{} {}", one.pod, one.reason);
    } else {
      ++more;
    }
  }
  return more == 0 ? text : fmt::format("{}, and {} more", text, more);
}

std::string Age(UnixMillis at, UnixMillis now) {
  const int64_t seconds = std::max<int64_t>(now - at, 0) / 1000;
  if (seconds < 120) return fmt::format("{}s", seconds);
  if (seconds < 7200) return fmt::format("{}m", seconds / 60);
  if (seconds < 172'800) return fmt::format("{}h", seconds / 3600);
  return fmt::format("{}d", seconds / 86'400);
}

std::string TermChanges(const Terms& before, const Terms& after) {
  struct Change {
    int term;
    double ms;
  };
  std::vector<Change> changes;
  for (int i = 1; i < Terms::kCount; ++i) {
    const double ms = TermValue(after, i) - TermValue(before, i);
    if (std::abs(ms) >= kVisibleMs) changes.push_back({i, ms});
  }
  std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return std::abs(a.ms) > std::abs(b.ms);
  });
  std::string text;
  for (const Change& change : changes) {
    const std::string& name = TermNames()[static_cast<size_t>(change.term)];
    text +=
        fmt::format("{}{} {:.1f} ms {}", text.empty() ? "" : ", ", name.substr(0, name.size() - 3),
                    std::abs(change.ms), change.ms < 0 ? "less" : "more");
  }
  return text.empty() ? "no term changes by a tenth of a millisecond" : text;
}

OrderedJson MoveDetails(const StoredRow& stored) { return OrderedJson::parse(ToJson(stored.row)); }

std::string MoveStory(const StoredRow& stored, std::string_view pod, UnixMillis now) {
  const JournalRow& row = stored.row;
  std::string text = fmt::format("{}\n", Bold(Headline(stored, pod)));
  text += fmt::format("decision {} of {}, {} ago ({} UTC), by {}, step {} of plan {}\n\n",
                      stored.number, row.application.empty() ? "the cluster" : row.application,
                      Age(stored.written_at, now), DateAndTime(stored.written_at), row.policy,
                      row.step, row.plan);
  if (row.chosen.empty()) {
    text += Paragraph(fmt::format("Why: {}.", WhyStop(row, row.step_cost_ms, Motive::kLatency)),
                      kDecisionColumns);
  } else {
    text += Paragraph(
        fmt::format("Why: latency {} -> {} ms, {} ms {}; {}. A step costs {:.2g} ms.",
                    Milliseconds(row.seen.latency_ms), Milliseconds(row.predicted.latency_ms),
                    Milliseconds(std::abs(row.predicted_gain_ms)),
                    row.predicted_gain_ms >= 0 ? "less" : "more",
                    TermChanges(row.seen, row.predicted), row.step_cost_ms),
        kDecisionColumns);
  }
  text += StandIn(row, pod);
  if (!row.baseline.empty()) {
    text += fmt::format("{} would choose: {}\n", row.baseline, MoveInWords(row.baseline_choice));
  }
  text += fmt::format("\nConsidered, the best of {}, in ms (* chosen):\n{}",
                      Counted(row.allowed_cells, "alternative"), AlternativeTable(row));
  const std::string refusals = RefusalLines(row, pod);
  if (!refusals.empty()) text += fmt::format("\nNot allowed:\n{}", refusals);
  if (row.fate == Fate::kDone && row.measured) {
    text +=
        fmt::format("\nThe cluster as it was afterwards: {} ms by the model, {} ms predicted\n",
                    Milliseconds(row.measured->latency_ms), Milliseconds(row.predicted.latency_ms));
  }
  return text;
}

}  // namespace rudderfish
