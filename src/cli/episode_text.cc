// SPDX-License-Identifier: Apache-2.0
#include "cli/episode_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text_table.h"
#include "cli/terminal.h"
#include "evaluation/comparison.h"

namespace rudderfish {
namespace {

constexpr int kEpisodeColumns = 98;
constexpr size_t kWorkloadsShown = 6;  // Of a node, in the table of what changed.
constexpr int kNodesShown = 40;
using Align = TextTable::Align;

// What rounds to zero has no sign.
std::string Ms(double ms) {
  std::string text = fmt::format("{:.1f}", ms);
  return text == "-0.0" ? "0.0" : text;
}

std::string MoveText(const JournalMove& move) {
  return fmt::format("{}  {} -> {}", move.pod, move.from, move.to);
}

// "network 173.1 -> 133.9", for every part that is there before or after.
std::string PartsText(const Terms& before, const Terms& after) {
  const std::pair<const char*, double Terms::*> parts[] = {{"execution", &Terms::execution_ms},
                                                           {"network", &Terms::network_ms},
                                                           {"transfer", &Terms::transfer_ms},
                                                           {"queueing", &Terms::queueing_ms}};
  std::string text;
  for (const auto& [name, part] : parts) {
    text += fmt::format("{}{} {}", text.empty() ? "" : "   ", name, Ms(before.*part));
    if (&before != &after) text += fmt::format(" -> {}", Ms(after.*part));
  }
  return text;
}

std::string AlternativesTable(const Episode& episode, const JournalRow& row) {
  std::vector<TextTable::Column> columns{{""},
                                         {"CONSIDERED"},
                                         {"FROM"},
                                         {"TO"},
                                         {"LATENCY ms", Align::kRight},
                                         {"GAIN ms", Align::kRight}};
  if (episode.has_scores) columns.push_back({"SCORE", Align::kRight});
  TextTable table(std::move(columns), 4);
  bool chosen_shown = false;
  const auto add = [&](const Alternative& alternative) {
    const bool chosen = row.chosen.empty() ? !alternative.move
                                           : alternative.move && *alternative.move == row.chosen[0];
    chosen_shown |= chosen;
    const JournalMove move = alternative.move.value_or(JournalMove{"stop", "", ""});
    std::vector<std::string> cells{
        chosen ? ">" : "",
        move.pod,
        move.from,
        move.to,
        Ms(alternative.predicted.latency_ms),
        SignedText(row.seen.latency_ms - alternative.predicted.latency_ms, 1)};
    if (episode.has_scores)
      cells.push_back(alternative.score ? fmt::format("{:.1f}", *alternative.score) : "");
    table.Row(std::move(cells));
  };
  for (const Alternative& alternative : row.considered) add(alternative);
  if (!chosen_shown) {
    // Policies that plan ahead or draw lots rank nothing; the table then is by gain.
    Alternative choice{.move = std::nullopt, .predicted = row.predicted};
    if (!row.chosen.empty()) choice.move = row.chosen[0];
    table.Row({"", "..."});
    add(choice);
  }
  return table.Text();
}

std::string BaselineLine(const JournalRow& row) {
  if (row.baseline.empty()) return "";
  if (row.baseline_choice == row.chosen)
    return fmt::format("    {} would do the same\n", row.baseline);
  if (row.baseline_choice.empty()) return fmt::format("    {} would stop here\n", row.baseline);
  return fmt::format("    {} would move {}\n", row.baseline, MoveText(row.baseline_choice[0]));
}

std::string Title(const ExplainedStep& step) {
  const JournalRow& row = step.row;
  if (row.chosen.empty()) return fmt::format("{:2}  {}", row.step + 1, Bold("stop"));
  return fmt::format("{:2}  {}   {} -> {} ms   {} {}, a step costs {}", row.step + 1,
                     Bold(MoveText(row.chosen[0])), Ms(row.seen.latency_ms),
                     Ms(row.predicted.latency_ms),
                     row.predicted_gain_ms <= -0.05 ? "loses" : "gains",
                     Ms(std::abs(row.predicted_gain_ms)), Ms(row.step_cost_ms));
}

// Pods of each workload on a node: "2 db, 1 detection".
std::string PodsOn(const State& state, NodeId node) {
  std::map<WorkloadId, int> count;
  for (PodId pod = 0; pod < state.pods.size(); ++pod) {
    if (state.pods.node[pod] == node) ++count[state.pods.workload[pod]];
  }
  std::string text;
  size_t shown = 0;
  for (const auto& [workload, pods] : count) {
    if (++shown > kWorkloadsShown) return text + ", ...";
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", pods,
                        state.catalog->workloads[workload].name);
  }
  return text.empty() ? "-" : text;
}

// Nodes whose pods are others than before.
std::string PlacementTable(const Episode& episode) {
  TextTable table({{"NODE"}, {"LAYER"}, {"PODS BEFORE"}, {"PODS AFTER"}}, 4);
  std::vector<bool> changed(episode.initial.nodes.size(), false);
  for (PodId pod = 0; pod < episode.initial.pods.size(); ++pod) {
    const NodeId from = episode.initial.pods.node[pod], to = episode.final.pods.node[pod];
    if (from != to) changed[from] = changed[to] = true;
  }
  int left = static_cast<int>(std::count(changed.begin(), changed.end(), true));
  for (NodeId node = 0, shown = 0; node < episode.initial.nodes.size(); ++node) {
    if (!changed[node]) continue;
    if (++shown > kNodesShown) {
      table.Row({fmt::format("... and {} more", left)});
      break;
    }
    --left;
    table.Row({NodeName(episode.initial, node),
               episode.initial.catalog->layers[episode.initial.kind_of(node).layer].name,
               PodsOn(episode.initial, node), PodsOn(episode.final, node)});
  }
  return table.empty() ? "" : "\n" + table.Text();
}

double CostOfSteps(const Episode& episode) {
  double costs_ms = 0;
  for (const ExplainedStep& step : episode.steps) {
    if (step.row.fate == Fate::kDone) costs_ms += step.row.step_cost_ms;
  }
  return costs_ms;
}

int64_t Moves(const Episode& episode) {
  return std::count_if(episode.steps.begin(), episode.steps.end(),
                       [](const ExplainedStep& step) { return step.row.fate == Fate::kDone; });
}

std::string EndingText(const Episode& episode) {
  switch (episode.ending) {
    case TurnResult::kStopped:
      return "stopped by decision";
    case TurnResult::kRefused:
      return "stopped by the guard: " + episode.steps.back().row.verdict.reason;
    case TurnResult::kExhausted:
      return "out of steps";
    case TurnResult::kMoved:
    case TurnResult::kThinking:
    case TurnResult::kWaiting:
      break;
  }
  return "not finished";
}

OrderedJson TermsJson(const Terms& terms) {
  OrderedJson json = OrderedJson::object();
  for (int i = 0; i < Terms::kCount; ++i) json[TermNames()[i]] = TermValue(terms, i);
  return json;
}

OrderedJson MoveJson(const JournalMove& move) {
  return {{"kind", "migrate"}, {"pod", move.pod}, {"from", move.from}, {"to", move.to}};
}

OrderedJson ChoiceJson(const std::vector<JournalMove>& moves) {
  return moves.empty() ? OrderedJson{{"kind", "stop"}} : MoveJson(moves[0]);
}

OrderedJson StepJson(const Episode& episode, const ExplainedStep& step) {
  const JournalRow& row = step.row;
  OrderedJson json = ChoiceJson(row.chosen);
  json["step"] = row.step;
  json["predicted"] = row.predicted_gain_ms;
  json["step_cost"] = row.chosen.empty() ? 0 : row.step_cost_ms;
  json["before"] = TermsJson(row.seen);
  json["after"] = TermsJson(row.predicted);
  json["allowed_actions"] = row.allowed_cells;
  json["reason"] = step.reason;
  OrderedJson& considered = json["considered"] = OrderedJson::array();
  for (const Alternative& alternative : row.considered) {
    OrderedJson one =
        alternative.move ? MoveJson(*alternative.move) : OrderedJson{{"kind", "stop"}};
    one["predicted"] = row.seen.latency_ms - alternative.predicted.latency_ms;
    one["after"] = TermsJson(alternative.predicted);
    if (alternative.score && episode.has_scores) one["score"] = *alternative.score;
    considered.push_back(std::move(one));
  }
  if (!row.baseline.empty()) {
    json["baseline"] = {{"name", row.baseline}, {"choice", ChoiceJson(row.baseline_choice)}};
  }
  return json;
}

}  // namespace

std::string EpisodeClock(double at_s) {
  const auto seconds = static_cast<int64_t>(std::llround(at_s));
  return fmt::format("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

std::string EpisodeHead(const Episode& episode) {
  const State& state = episode.initial;
  const std::string start = episode.starts_file.empty()
                                ? fmt::format("start {} of seed {}", episode.start, episode.seed)
                                : fmt::format("line {} of {}", episode.start, episode.starts_file);
  return fmt::format(
      "{}: {}\n{}, {}, pattern {}, latency by the {} law; policy {}\n\n"
      "    latency {} ms:   {}\n",
      Bold(episode.scenario), start, Counted(state.nodes.size(), "node"),
      Counted(state.pods.size(), "pod"), state.calls->name, episode.law, episode.policy,
      Ms(episode.initial_terms.latency_ms),
      PartsText(episode.initial_terms, episode.initial_terms));
}

std::string StepText(const Episode& episode, const ExplainedStep& step) {
  std::string text = "\n" + Title(step) + "\n";
  if (!step.row.chosen.empty())
    text += "    " + PartsText(step.row.seen, step.row.predicted) + "\n";
  text += Paragraph("why: " + step.reason, kEpisodeColumns, 4);
  return text + AlternativesTable(episode, step.row) + BaselineLine(step.row);
}

std::string EpisodeFoot(const Episode& episode) {
  const double before = episode.initial_terms.latency_ms, after = episode.final_terms.latency_ms;
  std::string text = fmt::format("\n{}   {} -> {} ms ({:.0f} % less), steps cost {} ms; {}\n",
                                 Bold(Counted(Moves(episode), "move")), Ms(before), Ms(after),
                                 before > 0 ? 100 * (before - after) / before : 0.0,
                                 Ms(CostOfSteps(episode)), EndingText(episode));
  text += "    " + PartsText(episode.initial_terms, episode.final_terms) + "\n";
  return text + PlacementTable(episode);
}

std::string EpisodeJson(const Episode& episode) {
  OrderedJson json{{"schema_version", 1},      {"scenario", episode.scenario},
                   {"model", episode.law},     {"seed", episode.seed},
                   {"start", episode.start},   {"pattern", episode.initial.calls->name},
                   {"policy", episode.policy}, {"initial", TermsJson(episode.initial_terms)}};
  OrderedJson& decisions = json["decisions"] = OrderedJson::array();
  for (const ExplainedStep& step : episode.steps) decisions.push_back(StepJson(episode, step));
  json["final"] = TermsJson(episode.final_terms);
  json["return"] =
      episode.initial_terms.latency_ms - episode.final_terms.latency_ms - CostOfSteps(episode);
  json["ending"] = EndingText(episode);
  return json.dump(1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace rudderfish
