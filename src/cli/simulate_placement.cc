// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/check.h"
#include "base/json.h"
#include "base/text_table.h"
#include "cli/judged_worlds.h"
#include "cli/placement_commands.h"
#include "cli/terminal.h"
#include "evaluation/placement_evaluation.h"
#include "policy/registry.h"
#include "sim/held_out.h"
#include "sim/lifecycle.h"

namespace rudderfish {
namespace {

constexpr int kPlacementAlternatives = 3;

// One answer, as the Model sees it.
struct PlacedPod {
  double at_s = 0;
  std::string workload;
  NodeId node = kNone;
  double cost_before = 0;
  int candidates = 0, nodes = 0;               // Unequal and all nodes where it may run.
  std::vector<PlacementCandidate> considered;  // By objective; the chosen one is among them.
  std::vector<std::string_view> best_by;       // Scores by which none is better.
  bool is_beyond_limit = false;                // Of latency; only a blind policy exceeds it.
};

class PlacementNarrator {
 public:
  // A blind policy ignores limits of latency: it chose among nodes beyond them, too.
  PlacementNarrator(std::shared_ptr<const Scenario> scenario, const Objective& objective,
                    const PlacementPolicy& policy, int alternatives)
      : task_(objective, {}, policy.is_blind ? LatencyFilter::kLearned : LatencyFilter::kKept),
        rule_(policy.start()),
        world_(std::move(scenario)),
        alternatives_(alternatives) {}

  Result<void> Start(uint64_t seed) { return world_.Start(seed); }
  const Lifecycle& world() const { return world_; }

  // The next pod's placing; false at the end.
  bool Step(PlacedPod* placed) {
    if (!world_.NextPending()) return false;
    const PlacementQuestion question{world_.state(), world_.totals(), world_.pending_workload(),
                                     world_.next()};
    task_.Space(question, {}, &space_);
    *placed = {.at_s = std::chrono::duration<double>(world_.state().at).count(),
               .workload = world_.state().catalog->workloads[question.workload].name,
               .node = rule_(question),
               .cost_before = space_.cost_now,
               .candidates = space_.count(),
               .nodes = space_.cluster.allowed_nodes};
    if (placed->node != kNone) {
      Rank(space_.candidate_of[placed->node], placed);
      placed->is_beyond_limit = !MayRunOn(question, placed->node);
    }
    world_.Bind(placed->node);
    return true;
  }

 private:
  void Rank(int chosen, PlacedPod* placed) const {
    CHECK_GE(chosen, 0);
    placed->considered = space_.candidates;
    auto& list = placed->considered;
    for (int s = 0; s < kPlacementScores; ++s) {
      const bool differs =
          std::any_of(list.begin(), list.end(), [&](const auto& one) { return one.score[s] < 0; });
      if (differs && list[chosen].score[s] >= 0) placed->best_by.push_back(kPlacementScoreNames[s]);
    }
    const PlacementCandidate made = list[chosen];
    std::stable_sort(list.begin(), list.end(),
                     [](const auto& a, const auto& b) { return a.cost < b.cost; });
    const auto keep = std::min(list.size(), static_cast<size_t>(alternatives_));
    const bool kept = std::any_of(list.begin(), list.begin() + static_cast<ptrdiff_t>(keep),
                                  [&](const auto& one) { return one.node == made.node; });
    list.resize(keep);
    if (!kept) list.push_back(made);
  }

  PlacementTask task_;
  PlacementRule rule_;
  Lifecycle world_;
  PlacementSpace space_;
  int alternatives_;
};

std::string WhyChosen(const PlacedPod& placed) {
  if (placed.nodes == 1) return "the only node that may take it";
  if (placed.candidates == 1) return fmt::format("all {} nodes are equal", placed.nodes);
  if (placed.best_by.empty())
    return fmt::format("a compromise among {} unequal nodes: best by no single score",
                       placed.candidates);
  return fmt::format("of {} unequal nodes the best by {}", placed.candidates,
                     fmt::join(placed.best_by, ", "));
}

std::string ReasonOf(const PlacedPod& placed) {
  if (placed.node == kNone) return "no node may take it now; it waits";
  return WhyChosen(placed) + (placed.is_beyond_limit
                                  ? "; beyond its hard limit of latency, which the policy ignores"
                                  : "");
}

std::string TextOf(const PlacedPod& placed, const State& state) {
  std::string text =
      fmt::format("{:9.1f} s  {} -> {}: {}\n", placed.at_s, placed.workload,
                  placed.node == kNone ? "-" : NodeName(state, placed.node), ReasonOf(placed));
  if (placed.candidates < 2) return text;
  for (const PlacementCandidate& one : placed.considered) {
    const Resources& all = state.nodes.allocatable[one.node];
    text += fmt::format(
        "             {} {:<16} objective {:+.5f}  left {:3.0f} % cpu {:3.0f} % memory"
        "{}{}\n",
        one.node == placed.node ? '*' : ' ', NodeName(state, one.node),
        one.cost - placed.cost_before, all.cpu_millis > 0 ? 100 * one.free[0] : 0.0,
        all.memory_bytes > 0 ? 100 * one.free[1] : 0.0,
        state.nodes.devices.empty() ? "" : fmt::format(" {:3.0f} % devices", 100 * one.free[2]),
        one.nodes > 1 ? fmt::format("  (and {} equal)", one.nodes - 1) : "");
  }
  return text;
}

OrderedJson JsonOf(const PlacedPod& placed, const State& state) {
  OrderedJson json{{"at_s", placed.at_s},
                   {"workload", placed.workload},
                   {"node", placed.node == kNone ? OrderedJson(nullptr)
                                                 : OrderedJson(NodeName(state, placed.node))},
                   {"reason", ReasonOf(placed)},
                   {"objective_before", placed.cost_before}};
  OrderedJson& list = json["considered"] = OrderedJson::array();
  for (const PlacementCandidate& one : placed.considered) {
    OrderedJson terms = OrderedJson::object();
    for (int i = 0; i < kObjectiveTerms; ++i)
      terms[std::string(kObjectiveTermNames[i])] =
          ObjectiveTermValue(static_cast<ObjectiveTerm>(i), one.after);
    list.push_back({{"node", NodeName(state, one.node)},
                    {"equal_nodes", one.nodes},
                    {"chosen", one.node == placed.node},
                    {"objective_after", one.cost},
                    {"terms_after", std::move(terms)}});
  }
  return json;
}

}  // namespace

Result<ExitStatus> SimulatePlacement(const SimulationRequest& request) {
  TRY_ASSIGN(const std::shared_ptr<const Scenario> scenario,
             WithObjective(request.scenario, request.path, request.arguments));
  const PlacementTask task(*scenario->objective);
  const auto& [name, spec] = request.policy;
  TRY_ASSIGN(const PlacementPolicy policy, OfOption("policy", MakePlacementPolicy(spec, task)));
  TRY(CheckPresetsSuit(*scenario, {{.name = name, .members = {policy}}}));
  PlacementNarrator narrator(
      scenario, task.objective(), policy,
      static_cast<int>(request.alternatives.value_or(kPlacementAlternatives)));
  const uint64_t stream = kHeldOutStream + static_cast<uint64_t>(request.episode);
  TRY(narrator.Start(Rng(request.seed, stream).Next64()));
  const bool as_text = request.format == OutputFormat::kTable;
  OrderedJson steps = OrderedJson::array();
  if (as_text) {
    TRY(Print(fmt::format("{}: objective {}, placed by {}, episode {} of seed {}\n\n",
                          scenario->name, ObjectiveText(task.objective()), name, request.episode,
                          request.seed)));
  }
  for (PlacedPod placed; narrator.Step(&placed);) {
    const State& state = narrator.world().state();
    if (as_text) {
      TRY(Print(TextOf(placed, state)));
    } else {
      steps.push_back(JsonOf(placed, state));
    }
  }
  const std::vector<MetricRow> rows = narrator.world().metrics().Rows();
  if (as_text) {
    TextTable table({{"OVER THE EPISODE"}, {"", TextTable::Align::kRight}, {""}});
    for (const MetricRow& row : rows)
      table.Row({std::string(row.name), fmt::format("{:.5g}", row.value), std::string(row.unit)});
    TRY(Print("\n" + table.Text()));
    return ExitStatus::kDone;
  }
  OrderedJson json{{"schema_version", 1},
                   {"kind", "placement_episode"},
                   {"scenario", scenario->name},
                   {"objective", ObjectiveText(task.objective())},
                   {"policy", name},
                   {"seed", request.seed},
                   {"episode", request.episode},
                   {"steps", std::move(steps)}};
  OrderedJson metrics = OrderedJson::object();
  for (const MetricRow& row : rows) metrics[std::string(row.name)] = row.value;
  json["metrics"] = std::move(metrics);
  TRY(Print(json.dump(1, ' ', false, OrderedJson::error_handler_t::replace) + "\n"));
  return ExitStatus::kDone;
}

}  // namespace rudderfish
