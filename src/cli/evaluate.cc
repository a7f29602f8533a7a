// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <optional>

#include "base/files.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/evaluate_scaling.h"
#include "cli/files.h"
#include "cli/placement_commands.h"
#include "cli/policy_spec.h"
#include "cli/terminal.h"
#include "evaluation/comparison.h"
#include "evaluation/evaluation.h"
#include "evaluation/problem.h"
#include "evaluation/report.h"
#include "scenario/start_states.h"
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
    case OutputFormat::kTable:
      return ComparisonTable(evaluation, comparison);
    case OutputFormat::kJson:
      return EvaluationJson(evaluation, comparison);
    case OutputFormat::kCsv:
      break;
  }
  return EpisodesCsv(evaluation);
}

Result<std::vector<PolicyGroup>> GroupsOf(const std::vector<PolicySpec>& specs, const Task& task) {
  std::vector<PolicyGroup> groups;
  for (const PolicySpec& spec : specs) {
    TRY_ASSIGN(PolicyGroup group, OfOption("policy", MakePolicyGroup(spec, task)));
    groups.push_back(std::move(group));
  }
  return groups;
}

Result<ExitStatus> RunEvaluate(const Arguments& arguments, const Session& session) {
  if (const std::optional<std::string> task = arguments.Text("task")) {
    constexpr std::string_view kTasks[] = {"migration", "scaling"};
    TRY_ASSIGN(const int choice, OfOption("task", ChoiceOf(*task, kTasks)));
    if (choice == 1) return EvaluateScalingPolicies(arguments, session);
  }
  for (const char* other : {"load", "on"}) {
    if (arguments.Has(other)) return Invalid("--{}: is of --task scaling", other);
  }
  TRY_ASSIGN(std::shared_ptr<const Scenario> placement,
             PlacementScenario(arguments.operands()[0], arguments));
  if (placement != nullptr) return EvaluatePlacement(std::move(placement), arguments, session);
  TRY_ASSIGN(const OutputFormat format, OutputFormatOf(arguments, 3));
  TRY_ASSIGN(const int threads, ThreadsOf(arguments));
  TRY_ASSIGN(const uint64_t seed, SeedOf(arguments));
  TRY_ASSIGN(const std::string list,
             arguments.RequiredText("policy", "what to evaluate, such as greedy,learned=runs/a"));
  const std::optional<std::string> report = arguments.Text("report");
  if (report) TRY(CheckCanWrite(*report));
  TRY_ASSIGN(const Problem problem, Problem::Open(arguments.operands()[0]));
  TRY_ASSIGN(const std::vector<PolicySpec> specs, OfOption("policy", ParsePolicySpecs(list)));
  TRY_ASSIGN(const std::vector<PolicyGroup> groups, GroupsOf(specs, *problem.task));
  TRY_ASSIGN(const std::vector<StartState> starts, StartsOf(arguments, problem, seed));
  std::vector<LearningCurve> curves;
  if (report) {
    TRY_ASSIGN(curves, LearningCurvesOf(specs));
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
    ThreadPool pool(threads);
    evaluation = Evaluate(problem.law, *problem.task, starts, groups, options, &pool);
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
  if (!comparison.verdict || comparison.better()) return ExitStatus::kDone;
  return ExitStatus::kNotBetter;
}

}  // namespace

CommandSpec EvaluateCommand() {
  return {
      .name = "evaluate",
      .summary = "compare policies on starts that none of them has seen",
      .operands = {{.name = "SCENARIO"}},
      .options = {{"--policy", "POLICY[,...]",
                   "what to compare; the last is the candidate, the best of the "
                   "others the baseline"},
                  {"--task", "migration|scaling",
                   "migration by default; scaling needs `load` in the scenario"},
                  {"--load", "NAME[,...]", "of scaling: which loads; all by default"},
                  {"--on", "requests|model",
                   "of scaling: request by request, or by what the Model believes, which is a "
                   "hundred times as fast; requests by default"},
                  {"--episodes", "N", "how many starts to draw; 200 by default, of scaling 20"},
                  {"--objective", "TERM[:WEIGHT,...]",
                   "where pods come and go: balance, energy, utilisation, fragmentation, cost, "
                   "latency, calls; the scenario's own by default"},
                  {"--starts", "FILE",
                   "start states, one JSON object a line, instead of drawn ones"},
                  {"--select", "config=C,pattern=P", "only those lines of the file"},
                  {"--optimum", "",
                   "prove what can be won at best, and give each policy's share of it; for "
                   "small worlds, a second a start. Of placing: below which balance nothing "
                   "comes, and the best found that moves no pod and knows what comes"},
                  {"--seed", "S", "of the starts drawn and of chance in policies; 1 by default"},
                  {"--threads", "N", "all cores by default; results do not depend on it"},
                  {"-o,--output", "table|json|csv", "a table by default; csv has a row an episode"},
                  {"--report", "FILE.html", "write a page with figures, too"}},
      .details =
          "A policy is stay, random, kube-default, least-allocated, most-allocated, greedy, exact, "
          "lookahead, a run folder or a checkpoint; lookahead+RUN searches with what was learned "
          "as its guide, best-of:16+RUN takes the best of sampled plans. NAME=... gives it another "
          "name, NAME=RUN1:RUN2 is one recipe trained from several seeds, and so is a run of "
          "--seeds.\n"
          "Options of lookahead stand after a colon, apart by commas, as in "
          "lookahead:width=64,patience=2. width=N plans are kept at each depth (512 by default), "
          "patience=N depths without a better plan end the search; without a RUN, evaluations=N or "
          "time=DURATION bound what a plan may cost, and the search is as wide as that allows.\n"
          "Where pods come and go they are placed by kube-default, least-allocated, "
          "most-allocated, round-robin, greedy, lookahead (over the pods that wait; its options "
          "are width=16, depth=8, evaluations=20000), mixed:greedy=1,most-allocated=0.1, a run or "
          "a checkpoint; the baseline is the best of the others on episodes of its own.\n"
          "The exit status is 3 if the candidate is not better than the baseline: if the 95 % "
          "interval of the paired difference does not lie below 0, or comes of fewer than six "
          "starts. exact is the best plan there is where the world is small, and the best of a "
          "wide search elsewhere; --optimum says of which starts it is proven.\n"
          "Of scaling, policies are hold, hpa, keda, autopilot, mpc, static and clairvoyant; "
          "hpa:cpu=60:down=120s has options, hpa:FILE is what calibrate found. Better is cheaper, "
          "with violations at most 0.1 points above the baseline's, on every load. -o json also "
          "holds what `plot` draws.",
      .examples = {"evaluate world.yaml --policy stay,greedy,learned=runs/a",
                   "evaluate world.yaml --policy lookahead,learned=runs/a --report report.html",
                   "evaluate world.yaml --policy greedy,lookahead:width=64,learned=runs/a",
                   "evaluate world.yaml --policy greedy,runs/a --starts starts.jsonl -o json",
                   "evaluate shop.yaml --task scaling --policy hold,hpa:cpu=60 --load diurnal"},
      .run = RunEvaluate};
}

}  // namespace rudderfish
