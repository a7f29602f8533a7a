// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "base/progress.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/files.h"
#include "cli/judged_world.h"
#include "cli/output.h"
#include "cli/policy_list.h"
#include "cli/stop_signals.h"
#include "cli/terminal.h"
#include "cluster/task_kind.h"
#include "scenario/task_of.h"

namespace rudderfish {
namespace {

std::string TextOf(const Judgement& judgement, OutputFormat format) {
  if (format == OutputFormat::kJson) return judgement.json();
  return format == OutputFormat::kCsv ? judgement.csv() : judgement.table();
}

Result<ExitStatus> RunEvaluate(const Arguments& arguments, const Session& session) {
  const std::string& path = arguments.operands()[0];
  TRY_ASSIGN(Scenario scenario, LoadScenario(path));
  TRY_ASSIGN(const TaskKind task, TaskFor(arguments.Text("task"), scenario, path));
  TRY(CheckOptionsSuit(arguments, task));
  const JudgedWorld& world = JudgedWorldOf(task);
  TRY_ASSIGN(
      const OutputFormat format,
      OutputFormatOf(arguments, {OutputFormat::kTable, OutputFormat::kJson, OutputFormat::kCsv}));
  TRY_ASSIGN(const int threads, ThreadsOf(arguments));
  TRY_ASSIGN(const uint64_t seed, SeedOf(arguments));
  const std::optional<std::string> report = arguments.Text("report");
  if (report) TRY(CheckCanWrite(*report));
  TRY_ASSIGN(const std::string list,
             arguments.RequiredText("policy",
                                    fmt::format("what to evaluate, such as {}", world.policies)));
  TRY_ASSIGN(std::vector<ListedPolicy> policies, OfOption("policy", ParsePolicies(list)));
  Judgement judgement;
  {
    Progress progress("evaluate", session.verbosity);
    ThreadPool pool(threads);
    TRY_ASSIGN(
        judgement,
        world.evaluate({.arguments = arguments,
                        .session = session,
                        .path = path,
                        .scenario = std::move(scenario),
                        .policies = std::move(policies),
                        .seed = seed,
                        .has_json = format == OutputFormat::kJson,
                        .has_report = report.has_value(),
                        .progress = [&](double fraction,
                                        std::string_view text) { progress.Update(fraction, text); },
                        .pool = &pool,
                        .stop = &StopOnSignals()}));
  }
  TRY(Print(TextOf(judgement, format)));  // First: it is not lost where the page cannot be written.
  if (report) {
    TRY(judgement.write_report(
        {.command = session.command_line, .version = std::string(ProgramVersion())}, *report));
    Say(session, "Wrote {}", *report);
  }
  if (judgement.episodes < judgement.asked)
    return Stopped(session, judgement.episodes, judgement.asked);
  return judgement.is_better ? ExitStatus::kDone : ExitStatus::kNotBetter;
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
           {"--task", kTaskWords,
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
