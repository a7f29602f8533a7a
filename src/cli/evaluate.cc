// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <optional>

#include "base/files.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/evaluate_routing.h"
#include "cli/evaluate_scaling.h"
#include "cli/files.h"
#include "cli/output.h"
#include "cli/placement_commands.h"
#include "cli/policy_list.h"
#include "cli/stop_signals.h"
#include "cli/terminal.h"
#include "evaluation/comparison.h"
#include "evaluation/evaluation.h"
#include "report/report.h"
#include "scenario/start_states.h"
#include "scenario/task_of.h"
#include "sim/held_out.h"
#include "sim/problem.h"
#include "sim/world.h"

namespace rudderfish {
namespace {

constexpr int64_t kEpisodesDefault = 200;
constexpr int64_t kEpisodesMax = 1'000'000;

Result<std::vector<StartState>> StartsOf(const Arguments& arguments, const Problem& problem,
                                         uint64_t seed) {
  TRY(arguments.Exclude("starts", "episodes"));
  TRY(arguments.Require("select", "starts"));
  if (arguments.Has("starts")) return SelectedStarts(arguments, *problem.scenario);
  TRY_ASSIGN(const int64_t episodes,
             arguments.Integer("episodes", kEpisodesDefault, 1, kEpisodesMax));
  return DrawStarts(World(problem.scenario), seed, static_cast<int>(episodes));
}

Result<std::string> ResultText(OutputFormat format, const Evaluation& evaluation,
                               const Comparison& comparison) {
  switch (format) {
    default:
      return ComparisonTable(evaluation, comparison);
    case OutputFormat::kJson:
      return EvaluationJson(evaluation, comparison);
    case OutputFormat::kCsv:
      break;
  }
  return EpisodesCsv(evaluation);
}

Result<std::vector<PolicyGroup>> GroupsOf(const std::vector<ListedPolicy>& listed,
                                          const Task& task) {
  std::vector<PolicyGroup> groups;
  for (const ListedPolicy& one : listed) {
    TRY_ASSIGN(PolicyGroup group, OfOption("policy", MakePolicyGroup(one, task)));
    groups.push_back(std::move(group));
  }
  return groups;
}

Result<ExitStatus> RunEvaluate(const Arguments& arguments, const Session& session) {
  const std::string& path = arguments.operands()[0];
  TRY_ASSIGN(const Scenario scenario, LoadScenario(path));
  TRY_ASSIGN(const TaskKind task, TaskFor(arguments.Text("task"), scenario, path));
  if (task == TaskKind::kRoute) return EvaluateRoutingPolicies(scenario, arguments, session);
  for (const char* other : {"variant", "regions"}) {
    if (arguments.Has(other)) return Invalid("--{}: requires --task route", other);
  }
  if (task == TaskKind::kScale) return EvaluateScalingPolicies(arguments, session);
  for (const char* other : {"load", "on"}) {
    if (arguments.Has(other)) return Invalid("--{}: requires --task scale", other);
  }
  TRY_ASSIGN(std::shared_ptr<const Scenario> placement, PlacementScenario(path, arguments));
  if (placement != nullptr) return EvaluatePlacement(std::move(placement), arguments, session);
  TRY_ASSIGN(
      const OutputFormat format,
      OutputFormatOf(arguments, {OutputFormat::kTable, OutputFormat::kJson, OutputFormat::kCsv}));
  TRY_ASSIGN(const int threads, ThreadsOf(arguments));
  TRY_ASSIGN(const uint64_t seed, SeedOf(arguments));
  TRY_ASSIGN(const std::string list,
             arguments.RequiredText("policy", "what to evaluate, such as greedy,learned=runs/a"));
  const std::optional<std::string> report = arguments.Text("report");
  if (report) TRY(CheckCanWrite(*report));
  TRY_ASSIGN(const Problem problem, Problem::Open(arguments.operands()[0]));
  TRY_ASSIGN(const std::vector<ListedPolicy> listed, OfOption("policy", ParsePolicies(list)));
  TRY_ASSIGN(const std::vector<PolicyGroup> groups, GroupsOf(listed, *problem.task));
  TRY_ASSIGN(const std::vector<StartState> starts, StartsOf(arguments, problem, seed));
  std::vector<LearningCurve> curves;
  if (report) {
    TRY_ASSIGN(curves, LearningCurvesOf(listed));
  }

  Evaluation evaluation;
  Comparison comparison;
  {
    Progress progress("evaluate", session.verbosity);
    EvaluationOptions options{.scenario = problem.scenario->name,
                              .seed = seed,
                              .progress = [&](double fraction, std::string_view text) {
                                progress.Update(fraction, text);
                              }};
    if (arguments.Has("optimum")) options.optimum = ExactOptimum(problem.law, *problem.task);
    options.stop = &StopOnSignals();
    ThreadPool pool(threads);
    evaluation = Evaluate(problem.law, *problem.task, starts, groups, options, &pool);
    if (evaluation.start_count() == 0) return StoppedTooEarly();
    comparison = Compare(evaluation);
  }
  TRY_ASSIGN(const std::string text, ResultText(format, evaluation, comparison));
  TRY(Print(text));  // First: it is not lost where the page cannot be written.
  if (report) {
    TRY(WriteReport(evaluation, comparison, starts,
                    {.command = session.command_line,
                     .version = std::string(ProgramVersion()),
                     .curves = std::move(curves)},
                    *report));
    Say(session, "Wrote {}", *report);
  }
  if (evaluation.start_count() < static_cast<int>(starts.size()))
    return Stopped(session, evaluation.start_count(), static_cast<int64_t>(starts.size()));
  if (!comparison.verdict || comparison.better()) return ExitStatus::kDone;
  return ExitStatus::kNotBetter;
}

}  // namespace

CommandSpec EvaluateCommand() {
  return {
      .name = "evaluate",
      .summary = "Compare policies on episodes that none of them was trained on",
      .operands = {{.name = "SCENARIO"}},
      .options =
          {{"--policy", "POLICY[,...]",
            "policies to compare. The last one is the candidate; the best of the others is the "
            "baseline"},
           {"--task", "move|place|scale|route",
            "kind of decision (default: route if the scenario has `regions`, place if it has "
            "`arrivals`, scale if it has `load`, else move)"},
           {"--regions", "NAME[,...]", "(routing) regions to use (default: all)"},
           {"--variant", "NAME[,...]", "(routing) variants to evaluate (default: all)"},
           {"--load", "NAME[,...]", "(scaling) loads to evaluate (default: all)"},
           {"--on", "requests|model",
            "(scaling) simulate every request, or use the analytic model, which is about 100 times "
            "faster (default requests)"},
           {"--episodes", "N",
            "number of episodes to draw (default 200, 60 when routing, 20 when placing or "
            "scaling)"},
           {"--objective", "TERM[:WEIGHT,...]",
            "(placement) objective to minimize: balance, energy, utilisation, fragmentation, cost, "
            "latency, calls (default: the scenario's objective)"},
           {"--starts", "FILE",
            "read initial states from a file, one JSON object per line, instead of drawing them"},
           {"--select", "config=C,pattern=P", "use only the matching lines of the --starts file"},
           {"--optimum", "",
            "compute the best possible result and each policy's share of it. Takes about one "
            "second per episode; for small scenarios. For placement: a lower bound on the balance "
            "term, and the best schedule found with knowledge of future arrivals and without "
            "moving pods"},
           {"--seed", "S", "random seed of episodes and policies (default 1)"},
           {"--threads", "N",
            "number of threads; does not change the results (default: all cores)"},
           {"-o,--output", "table|json|csv",
            "output format (default: table); csv has one row per episode"},
           {"--report", "FILE.html", "also write an HTML report with figures"}},
      .details =
          "A policy is a name, a run folder or a checkpoint; `rudderfish policies` lists the names "
          "and the options of each. Options follow a colon and are separated by commas: "
          "lookahead:width=64,patience=2. NAME=POLICY sets the name shown in results. "
          "NAME=RUN1:RUN2, or a run trained with --seeds, groups several training seeds of one "
          "recipe. When scaling, a file of `calibrate` is a policy, too: its best setting.\nWhen "
          "placing, the baseline is chosen on separate episodes.\nThe exit status is 3 if the "
          "candidate is not better than the baseline: the 95 % interval of the paired difference "
          "includes 0 or lies above it, or there are fewer than six episodes. exact is the optimal "
          "plan in small scenarios and the best plan of a wide search in others; --optimum shows "
          "for which episodes it is proven optimal.\nWhen scaling, the candidate is better if it "
          "is cheaper under every load, with at most 0.1 percentage points more violations than "
          "the baseline. -o json includes the data for `plot`.\nWhen routing, the candidate is "
          "better if its objective per request is smaller under every variant, with at most 0.1 "
          "percentage points more late requests than the baseline, which is chosen on separate "
          "episodes.",
      .examples = {"evaluate world.yaml --policy stay,greedy,learned=runs/a",
                   "evaluate world.yaml --policy lookahead,learned=runs/a --report report.html",
                   "evaluate world.yaml --policy greedy,lookahead:width=64,learned=runs/a",
                   "evaluate world.yaml --policy greedy,runs/a --starts starts.jsonl -o json",
                   "evaluate shop.yaml --task scale --policy hold,hpa:cpu=60 --load diurnal",
                   "evaluate scenarios/multicloud-16.yaml --policy locality,lp --variant full"},
      .run = RunEvaluate};
}

}  // namespace rudderfish
