// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <memory>

#include "base/files.h"
#include "cli/episode_text.h"
#include "cli/explanation.h"
#include "cli/files.h"
#include "cli/judged_worlds.h"
#include "cli/terminal.h"
#include "control/controller.h"
#include "policy/kube_default.h"
#include "policy/registry.h"
#include "scenario/start_states.h"
#include "sim/held_out.h"
#include "sim/problem.h"
#include "sim/sim_cluster.h"
#include "sim/world.h"

namespace rudderfish {
namespace {

constexpr size_t kLinesNamed = 8;
constexpr int kMovesAlternatives = 5;
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

Result<StartState> StartOf(const SimulationRequest& request, const Problem& problem) {
  const Arguments& arguments = request.arguments;
  TRY(arguments.Require("select", "starts"));
  if (arguments.Has("select")) return SelectedStart(arguments, *problem.scenario, request.episode);
  if (arguments.Has("starts"))
    return LineOf(*arguments.Text("starts"), request.episode, *problem.scenario);
  TRY_ASSIGN(std::vector<StartState> starts, DrawStarts(World(problem.scenario), request.seed,
                                                        static_cast<int>(request.episode) + 1));
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

}  // namespace

Result<ExitStatus> SimulateMoves(const SimulationRequest& request) {
  TRY_ASSIGN(const Problem problem,
             Problem::Of(std::make_shared<const Scenario>(request.scenario)));
  TRY_ASSIGN(const std::unique_ptr<Policy> policy,
             OfOption("policy", MakePolicy(request.policy.spec, *problem.task)));
  TRY_ASSIGN(const std::unique_ptr<Policy> greedy, MakePolicy("greedy", *problem.task));
  TRY_ASSIGN(const StartState start, StartOf(request, problem));
  Episode episode{.scenario = problem.scenario->name,
                  .law = std::string(problem.law.name),
                  .policy = request.policy.name,
                  .seed = request.seed,
                  .start = start.line,
                  .starts_file = request.arguments.Text("starts").value_or(""),
                  .initial = start.state};
  const Policy* baseline = policy->name() == greedy->name() ? nullptr : greedy.get();
  Narrator narrator(problem, *policy, baseline, start.state,
                    request.alternatives.value_or(kMovesAlternatives), request.seed);
  return Tell(&narrator, request.format, &episode);
}

}  // namespace rudderfish
