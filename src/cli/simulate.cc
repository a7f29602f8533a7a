// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <memory>

#include "base/files.h"
#include "cli/commands.h"
#include "cli/episode_text.h"
#include "cli/explanation.h"
#include "cli/files.h"
#include "cli/placement_commands.h"
#include "cli/policy_spec.h"
#include "cli/terminal.h"
#include "control/controller.h"
#include "evaluation/evaluation.h"
#include "evaluation/problem.h"
#include "policy/kube_default.h"
#include "policy/neural.h"
#include "policy/registry.h"
#include "scenario/start_states.h"
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

ScoreMeaning MeaningOf(const Policy& policy, const JournalRow& row) {
  if (dynamic_cast<const NeuralPolicy*>(&policy) != nullptr) return ScoreMeaning::kLogProbability;
  // Nothing new in scores that are the gains by the Model.
  const bool says_more =
      std::any_of(row.considered.begin(), row.considered.end(), [&](const Alternative& one) {
        const double gain_ms = row.seen.latency_ms - one.predicted.latency_ms;
        return one.score && one.move && std::abs(*one.score - gain_ms) > kScoreToleranceMs;
      });
  return says_more ? ScoreMeaning::kOther : ScoreMeaning::kNone;
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
    step.reason = Reason(before, step) + WayBack(before);
    if (episode->steps.empty()) {
      episode->initial_terms = step.row.seen;
      episode->scores = MeaningOf(policy_, step.row);
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

  // Said where all pods are again as they were before an earlier move.
  std::string WayBack(const State& before) {
    placements_.push_back(before.pods.node);
    const auto same = std::find(placements_.begin(), placements_.end(), cluster_.state().pods.node);
    if (same == placements_.end() || before.pods.node == cluster_.state().pods.node) return "";
    return fmt::format("; with it all is as before move {}, and what moved since won nothing",
                       same - placements_.begin() + 1);
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
  std::vector<std::vector<NodeId>> placements_;  // [decision] Before it.
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

Result<ExitStatus> RunSimulate(const Arguments& arguments, const Session&) {
  TRY_ASSIGN(std::shared_ptr<const Scenario> placement,
             PlacementScenario(arguments.operands()[0], arguments));
  if (placement != nullptr) return SimulatePlacement(std::move(placement), arguments);
  TRY_ASSIGN(const OutputFormat format, OutputFormatOf(arguments));
  TRY_ASSIGN(const uint64_t seed, SeedOf(arguments));
  TRY_ASSIGN(const int64_t alternatives, arguments.Integer("alternatives", 5, 1, kAlternativesMax));
  TRY_ASSIGN(const std::string typed,
             arguments.RequiredText("policy", "who decides, such as greedy or runs/a"));
  TRY_ASSIGN(const Problem problem, Problem::Open(arguments.operands()[0]));
  TRY_ASSIGN(const PolicySpec spec, OfOption("policy", ParsePolicySpec(typed)));
  TRY_ASSIGN(const std::unique_ptr<Policy> policy,
             OfOption("policy", MakePolicy(spec.members[0], *problem.task)));
  TRY_ASSIGN(const std::unique_ptr<Policy> greedy, MakePolicy("greedy", *problem.task));
  TRY_ASSIGN(const StartState start, StartOf(arguments, problem, seed));

  Episode episode{.scenario = problem.scenario->name,
                  .law = std::string(problem.law.name),
                  .policy = spec.name,
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
      .summary = "one episode, move by move, with the reasons",
      .operands = {{.name = "SCENARIO"}},
      .options = {{"--policy", "POLICY",
                   "who decides: a name, a run folder, a checkpoint (see `help "
                   "evaluate`)"},
                  {"--seed", "S", "of the start drawn and of chance in the policy; 1 by default"},
                  {"--objective", "TERM[:WEIGHT,...]",
                   "where pods come and go: what is made small; the scenario's own by default"},
                  {"--starts", "FILE", "take the start from a file, one JSON object a line"},
                  {"--line", "K",
                   "which start, from 0: a line of the file, or of those that `evaluate` "
                   "draws with the same seed"},
                  {"--select", "config=C,pattern=P",
                   "of the file, the first line that fits, if --line names none"},
                  {"--alternatives", "N", "how many to show of what was considered; 5 by default"},
                  {"-o,--output", "table|json", "text by default"}},
      .examples =
          {"simulate scenarios/continuum-7x21.yaml --policy runs/a --seed 7",
           "simulate chain.yaml --policy lookahead --starts starts.jsonl --line 12 -o json"},
      .run = RunSimulate};
}

}  // namespace rudderfish
