// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <memory>

#include "base/files.h"
#include "cli/commands.h"
#include "cli/episode_text.h"
#include "cli/explanation.h"
#include "cli/files.h"
#include "cli/output.h"
#include "cli/placement_commands.h"
#include "cli/policy_list.h"
#include "cli/simulate_routing.h"
#include "cli/simulate_scaling.h"
#include "cli/terminal.h"
#include "control/controller.h"
#include "policy/kube_default.h"
#include "policy/registry.h"
#include "scenario/start_states.h"
#include "scenario/task_of.h"
#include "sim/held_out.h"
#include "sim/problem.h"
#include "sim/sim_cluster.h"
#include "sim/world.h"

namespace rudderfish {
namespace {

constexpr int64_t kLineMax = 100'000'000;
constexpr int64_t kDrawsMax = 1'000'000;
constexpr size_t kLinesNamed = 8;
constexpr int64_t kAlternativesMax = 1000;
constexpr double kScoreToleranceMs = 1e-2;

// One line of a file; others are not looked at.
Result<StartState> LineOf(const std::string& path, int64_t line, const Scenario& scenario) {
  TRY_ASSIGN(const std::string text, ReadFile(path));
  size_t begin = 0;
  for (int64_t i = 0; i < line && begin < text.size(); ++i) {
    begin = std::min(text.find('\n', begin), text.size() - 1) + 1;
  }
  if (begin >= text.size()) {
    return Invalid("--line: {} has fewer than {} lines; the first is 0", path, line + 1);
  }
  const std::string one = text.substr(begin, text.find('\n', begin) - begin);
  return ParseStartState(one, path, static_cast<int>(line), scenario);
}

// The first of those selected, or the one that --line names.
Result<StartState> SelectedStart(const Arguments& arguments, const Scenario& scenario,
                                 int64_t line) {
  TRY_ASSIGN(std::vector<StartState> starts, SelectedStarts(arguments, scenario));
  if (!arguments.Has("line")) return std::move(starts.front());
  for (StartState& start : starts) {
    if (start.line == line) return std::move(start);
  }
  std::vector<int> fitting;
  for (size_t i = 0; i < starts.size() && i < kLinesNamed; ++i) fitting.push_back(starts[i].line);
  return Invalid("--line: start {} is not among those that --select picks: {}{}", line,
                 fmt::join(fitting, ", "), starts.size() > kLinesNamed ? " ..." : "");
}

Result<StartState> StartOf(const Arguments& arguments, const Problem& problem, uint64_t seed) {
  const bool from_file = arguments.Has("starts");
  TRY(arguments.Require("select", "starts"));
  TRY_ASSIGN(const int64_t line, arguments.Integer("line", 0, 0, from_file ? kLineMax : kDrawsMax));
  if (arguments.Has("select")) return SelectedStart(arguments, *problem.scenario, line);
  if (from_file) {
    TRY_ASSIGN(const std::string path, arguments.RequiredText("starts", "a file of start states"));
    return LineOf(path, line, *problem.scenario);
  }
  TRY_ASSIGN(std::vector<StartState> starts,
             DrawStarts(World(problem.scenario), seed, static_cast<int>(line) + 1));
  return std::move(starts.back());
}

Motive MotiveOf(const Policy& policy) {
  if (policy.name() == "random") return Motive::kChance;
  const bool scores = dynamic_cast<const NodeScorePolicy*>(&policy) != nullptr;
  return scores ? Motive::kOwnScore : Motive::kLatency;
}

// Nothing new is in scores that are the gains by the Model.
bool SaysMoreThanGains(const JournalRow& row) {
  return std::any_of(row.considered.begin(), row.considered.end(), [&](const Alternative& one) {
    const double gain_ms = row.seen.latency_ms - one.predicted.latency_ms;
    return one.score && one.move && std::abs(*one.score - gain_ms) > kScoreToleranceMs;
  });
}

// Runs an episode with the live driver on the simulated cluster and explains every decision.
class Narrator {
 public:
  Narrator(const Problem& problem, const Policy& policy, const Policy* baseline, const State& start,
           int alternatives, uint64_t seed)
      : problem_(problem),
        policy_(policy),
        cluster_(start),
        controller_(&cluster_, problem.task.get(), problem.law, &policy,
                    {.benefit_factor = std::nullopt, .moves_per_plan = problem.task->max_steps()},
                    &journal_,
                    {.seed = seed, .alternatives_kept = alternatives, .baseline = baseline}) {}

  // Takes one decision and adds it to the episode; false if that was the last.
  Result<bool> Step(Episode* episode) {
    const State before = cluster_.state();
    const size_t told = journal_.rows().size();
    TRY_ASSIGN(episode->ending, controller_.Turn());
    episode->final = cluster_.state();
    if (journal_.rows().size() == told) return false;  // Out of steps: nothing was decided.
    ExplainedStep step{.row = journal_.rows().back()};
    step.next_step_cost_ms = problem_.task->StepCost({step.row.step});
    step.reason = Reason(before, step);
    if (episode->steps.empty()) {
      episode->initial_terms = step.row.seen;
      episode->has_scores = SaysMoreThanGains(step.row);
    }
    episode->final_terms = controller_.terms();
    episode->steps.push_back(std::move(step));
    return episode->ending == TurnResult::kMoved;
  }

 private:
  std::string Reason(const State& before, const ExplainedStep& step) const {
    if (step.row.chosen.empty())
      return WhyStop(step.row, step.next_step_cost_ms, MotiveOf(policy_));
    if (!step.row.verdict.allowed) return step.row.verdict.reason;
    if (step.row.fate == Fate::kFailed) return step.row.failure;
    return WhyMove(step.row, EffectsOf(before, problem_.law, MoveMade(before)), MotiveOf(policy_));
  }

  Migrate MoveMade(const State& before) const {
    for (PodId pod = 0; pod < before.pods.size(); ++pod) {
      const NodeId from = before.pods.node[pod], to = cluster_.state().pods.node[pod];
      if (from != to) return {pod, from, to};
    }
    return {};
  }

  const Problem& problem_;
  const Policy& policy_;
  SimCluster cluster_;
  MemoryJournal journal_;
  Controller controller_;
};

Result<ExitStatus> Tell(Narrator* narrator, OutputFormat format, Episode* episode) {
  const bool as_text = format == OutputFormat::kTable;
  for (bool goes_on = true; goes_on;) {
    const size_t told = episode->steps.size();
    TRY_ASSIGN(goes_on, narrator->Step(episode));
    if (!as_text || episode->steps.size() == told) continue;
    if (told == 0) TRY(Print(EpisodeHead(*episode)));
    TRY(Print(StepText(*episode, episode->steps.back())));
  }
  TRY(Print(as_text ? EpisodeFoot(*episode) : EpisodeJson(*episode)));
  return ExitStatus::kDone;
}

Result<ExitStatus> RunSimulate(const Arguments& arguments, const Session& session) {
  const std::string& path = arguments.operands()[0];
  TRY_ASSIGN(const Scenario scenario, LoadScenario(path));
  TRY_ASSIGN(const TaskKind task, TaskFor(arguments.Text("task"), scenario, path));
  if (task == TaskKind::kRoute) return SimulateRouting(scenario, arguments);
  for (const std::string_view option : {"variant", "regions"}) {
    if (arguments.Has(option)) return Invalid("--{}: requires --task route", option);
  }
  if (task == TaskKind::kScale) return SimulateScaling(scenario, arguments, session);
  if (arguments.Has("load")) return Invalid("--load: requires --task scale");
  TRY_ASSIGN(std::shared_ptr<const Scenario> placement, PlacementScenario(path, arguments));
  if (placement != nullptr) return SimulatePlacement(std::move(placement), arguments);
  TRY_ASSIGN(const OutputFormat format, OutputFormatOf(arguments));
  TRY_ASSIGN(const uint64_t seed, SeedOf(arguments));
  TRY_ASSIGN(const int64_t alternatives, arguments.Integer("alternatives", 5, 1, kAlternativesMax));
  TRY_ASSIGN(const std::string typed,
             arguments.RequiredText("policy", "who decides, such as greedy or runs/a"));
  TRY_ASSIGN(const Problem problem, Problem::Open(arguments.operands()[0]));
  TRY_ASSIGN(const OnePolicy one, OfOption("policy", ParseOnePolicy(typed)));
  TRY_ASSIGN(const std::unique_ptr<Policy> policy,
             OfOption("policy", MakePolicy(one.spec, *problem.task)));
  TRY_ASSIGN(const std::unique_ptr<Policy> greedy, MakePolicy("greedy", *problem.task));
  TRY_ASSIGN(const StartState start, StartOf(arguments, problem, seed));

  Episode episode{.scenario = problem.scenario->name,
                  .law = std::string(problem.law.name),
                  .policy = one.name,
                  .seed = seed,
                  .start = start.line,
                  .starts_file = arguments.Text("starts").value_or(""),
                  .initial = start.state};
  const Policy* baseline = policy->name() == greedy->name() ? nullptr : greedy.get();
  Narrator narrator(problem, *policy, baseline, start.state, static_cast<int>(alternatives), seed);
  return Tell(&narrator, format, &episode);
}

}  // namespace

CommandSpec SimulateCommand() {
  return {
      .name = "simulate",
      .summary = "Play one episode and show every decision with its reasons",
      .operands = {{.name = "SCENARIO"}},
      .options = {{"--policy", "POLICY",
                   "policy: a name, a run folder or a checkpoint (see `rudderfish policies`)"},
                  {"--task", "move|place|scale|route",
                   "kind of decision (default: route if the scenario has `regions`, place if it "
                   "has `arrivals`, scale if it has `load`, else move)"},
                  {"--regions", "NAME[,...]", "(routing) regions to use (default: all)"},
                  {"--variant", "NAME", "(routing) variant to play (default: the first)"},
                  {"--load", "NAME", "(scaling) load to play (default: the first)"},
                  {"--seed", "S", "random seed of the episode and the policy (default 1)"},
                  {"--objective", "TERM[:WEIGHT,...]",
                   "(placement) objective to minimize (default: the scenario's objective)"},
                  {"--starts", "FILE",
                   "read the initial state from a file, one JSON object per line"},
                  {"--line", "K",
                   "index of the initial state, from 0: a line of the --starts file, or an "
                   "episode that `evaluate` draws with the same seed"},
                  {"--select", "config=C,pattern=P",
                   "use the first matching line of the --starts file, if --line is not set"},
                  {"--alternatives", "N",
                   "number of alternatives to show of a decision; of shares that a route moves "
                   "(default: 5 for moves, 4 for replicas, 3 for others)"},
                  {"-o,--output", "table|json", "output format (default: text)"}},
      .examples = {"simulate scenarios/continuum-7x21.yaml --policy runs/a --seed 7",
                   "simulate chain.yaml --policy lookahead --starts starts.jsonl --line 12 -o json",
                   "simulate scenarios/redis.yaml --policy hpa:cpu=60 --load ramp",
                   "simulate scenarios/multicloud-16.yaml --policy mpc --variant spot"},
      .run = RunSimulate};
}

}  // namespace rudderfish
