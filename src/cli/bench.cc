// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text_table.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/files.h"
#include "cli/measures.h"
#include "cli/output.h"
#include "cli/scaling_options.h"
#include "cli/terminal.h"
#include "learn/train_bench.h"
#include "learn/training_worlds.h"
#include "scenario/task_of.h"
#include "sim/problem.h"

namespace rudderfish {
namespace {

using Align = TextTable::Align;

constexpr std::string_view kParts[] = {"env", "train", "decide", "kernel", "scale"};
// All but `scale` take the first.
constexpr const char* kScenarios[] = {
    "scenarios/continuum-7x21.yaml", "scenarios/continuum-12x28.yaml",
    "scenarios/continuum-22x41.yaml", "scenarios/continuum-100x1000.yaml",
    "scenarios/continuum-1000x10000.yaml"};
constexpr int kDecisionsMin = 5;

constexpr const char* kServedScenario = "scenarios/online-boutique.yaml";

struct BenchOptions {
  bool scales = false;
  std::optional<std::string> policy;
  double seconds = 3;
  int threads = 1;
  std::vector<std::filesystem::path> scenarios;
};

// What a part says: its member of the JSON, and the same in words.
struct Measured {
  OrderedJson json;
  std::string text;
};

Result<TrainingWorlds> WorldsOf(const Problem& problem) {
  const std::shared_ptr<const Scenario> scenarios[] = {problem.scenario};
  return TrainingWorlds::Make(scenarios);
}

// Scaling, under all loads of a scenario.
Result<Measured> BenchScalingEnv(const BenchOptions& options) {
  TRY_ASSIGN(Scenario scenario, LoadServedScenario(options.scenarios[0]));
  const std::shared_ptr<const Scenario> scenarios[] = {
      std::make_shared<const Scenario>(std::move(scenario))};
  TRY_ASSIGN(const TrainingWorlds worlds,
             TrainingWorlds::Make(scenarios, 0, options.threads, ScalingTraining()));
  const double advised = MeasureScalingStepsPerSecond(*worlds.first().scaling, scenarios[0]->seed,
                                                      options.seconds / 2);
  const double random =
      MeasureEnvStepsPerSecond(worlds.list(), scenarios[0]->seed, options.seconds / 2);
  return Measured{
      .json = {{"steps_per_second_per_core", advised},
               {"random_steps_per_second_per_core", random}},
      .text = fmt::format("{}: {} scaling steps per second on one core with actions of the model, "
                          "{} with random actions; all loads, features included\n",
                          scenarios[0]->name, Grouped(std::llround(advised)),
                          Grouped(std::llround(random)))};
}

Result<Measured> BenchEnv(const BenchOptions& options) {
  if (options.scales) return BenchScalingEnv(options);
  TRY_ASSIGN(const Problem problem, Problem::Open(options.scenarios[0]));
  TRY_ASSIGN(const TrainingWorlds worlds, WorldsOf(problem));
  const double rate =
      MeasureEnvStepsPerSecond(worlds.list(), problem.scenario->seed, options.seconds);
  return Measured{
      .json = {{"steps_per_second_per_core", rate}},
      .text = fmt::format("{}: {} steps a second on one core, moves at random, features "
                          "included\n",
                          problem.scenario->name, Grouped(std::llround(rate)))};
}

Result<Measured> BenchTrain(const BenchOptions& options) {
  TRY_ASSIGN(const Problem problem, Problem::Open(options.scenarios[0]));
  TRY_ASSIGN(const TrainingWorlds worlds, WorldsOf(problem));
  TrainOptions train;
  train.threads = options.threads;
  const TrainBench bench = MeasureTraining(train, worlds.list(), options.seconds);
  return Measured{.json = {{"env_steps_per_second", bench.env_steps_per_second},
                           {"threads", bench.threads},
                           {"epochs", bench.epochs},
                           {"mflop_per_sample", bench.mflop_per_sample}},
                  .text = fmt::format(
                      "{}: {} steps a second by ppo on {}, each used {}\n"
                      "  network    {:.3f} MFLOP a sample, forward; {:.2f} MFLOP a step in all\n"
                      "  products   {:.0f} % of the threads' time, at {:.1f} GFLOP/s each\n",
                      problem.scenario->name, Grouped(std::llround(bench.env_steps_per_second)),
                      Counted(bench.threads, "thread"),
                      bench.epochs == 1 ? "once" : fmt::format("{} times", bench.epochs),
                      bench.mflop_per_sample, bench.mflop_per_step, 100 * bench.dense_share,
                      bench.dense_gflops)};
}

Result<Measured> BenchDecide(const BenchOptions& options) {
  TRY_ASSIGN(const Problem problem, Problem::Open(options.scenarios[0]));
  TRY_ASSIGN(const BenchPolicy policy, BenchPolicy::Open(options.policy, *problem.task));
  TRY_ASSIGN(const DecideTimes times,
             MeasureDecisions(problem, *policy.policy, options.seconds, kDecisionsMin));
  return Measured{.json = {{"p50_us", times.p50_us}, {"p99_us", times.p99_us}},
                  .text = fmt::format(
                      "{}: a decision of {} takes {:.1f} us, 99 % of {} at most {:.1f} us; {:.0f} "
                      "alternatives each\n",
                      problem.scenario->name, policy.origin, times.p50_us, Grouped(times.decisions),
                      times.p99_us, times.mean_candidates)};
}

Result<Measured> BenchKernel(const BenchOptions& options) {
  TRY_ASSIGN(const Problem problem, Problem::Open(options.scenarios[0]));
  TRY_ASSIGN(const BenchPolicy policy, BenchPolicy::Open(options.policy, *problem.task));
  const nn::CandidateNet& net = policy.policy->net();
  TRY_ASSIGN(const KernelRates rates, MeasureKernels(problem, net, options.seconds));
  return Measured{
      .json = {{"gflops", rates.gflops}, {"peak_gflops", rates.peak_gflops}},
      .text = fmt::format(
          "{} kernels at the shapes of {}: {:.1f} GFLOP/s, {:.0f} % of the {:.1f} that one "
          "core reaches\n",
          net.kernels().name, policy.origin, rates.gflops, 100 * rates.gflops / rates.peak_gflops,
          rates.peak_gflops)};
}

Result<Measured> BenchScale(const BenchOptions& options) {
  Measured finding{.json = OrderedJson::array()};
  TextTable table({{"SCENARIO"},
                   {"NODES", Align::kRight},
                   {"PODS", Align::kRight},
                   {"DECISION ms", Align::kRight},
                   {"STEPS/s OF ONE CORE", Align::kRight}});
  double first_ms = 0, first_cells = 0, growth_ms = 0, growth_cells = 0;
  for (const std::filesystem::path& path : options.scenarios) {
    TRY_ASSIGN(const Problem problem, Problem::Open(path));
    TRY_ASSIGN(const BenchPolicy policy, BenchPolicy::Open(options.policy, *problem.task));
    TRY_ASSIGN(const TrainingWorlds worlds, WorldsOf(problem));
    const double share = options.seconds / static_cast<double>(2 * options.scenarios.size());
    TRY_ASSIGN(const DecideTimes times,
               MeasureDecisions(problem, *policy.policy, share, kDecisionsMin));
    const double rate = MeasureEnvStepsPerSecond(worlds.list(), problem.scenario->seed, share);
    const int nodes = problem.scenario->node_count(), pods = problem.scenario->pod_limit();
    const double ms = times.p50_us / 1000, cells = static_cast<double>(nodes) * pods;
    finding.json.push_back(
        {{"nodes", nodes}, {"pods", pods}, {"decide_ms", ms}, {"env_steps_per_second", rate}});
    table.Row({problem.scenario->name, Grouped(nodes), Grouped(pods), fmt::format("{:.4f}", ms),
               Grouped(std::llround(rate))});
    if (first_ms == 0) first_ms = ms, first_cells = cells;
    growth_ms = ms / first_ms;
    growth_cells = cells / first_cells;
  }
  finding.text = table.Text();
  if (growth_cells > 1) {
    finding.text += fmt::format(
        "nodes x pods grows {}-fold, the time of a decision {:.0f}-fold: as their product to the "
        "power of {:.2f}\n",
        Grouped(std::llround(growth_cells)), growth_ms,
        std::log(growth_ms) / std::log(growth_cells));
  }
  return finding;
}

Result<Measured> Measure(int part, const BenchOptions& options) {
  constexpr Result<Measured> (*kMeasures[])(const BenchOptions&) = {
      BenchEnv, BenchTrain, BenchDecide, BenchKernel, BenchScale};
  return kMeasures[part](options);
}

Result<BenchOptions> OptionsOf(const Arguments& arguments, std::string_view part) {
  BenchOptions options{.policy = arguments.Text("policy")};
  TRY_ASSIGN(options.seconds, arguments.Seconds("time", part == "scale" ? 10 : 3));
  TRY_ASSIGN(options.threads, ThreadsOf(arguments));
  std::optional<TaskKind> task;
  if (const auto scenario = arguments.Text("scenario")) {
    TRY_ASSIGN(const Scenario loaded, LoadScenario(*scenario));
    // Without --task, moves are measured even where the scenario has `load`.
    if (arguments.Has("task")) {
      TRY_ASSIGN(task, TaskFor(arguments.Text("task"), loaded, *scenario));
    }
  } else if (const auto named = arguments.Text("task")) {
    TRY_ASSIGN(task, OfOption("task", TaskNamed(*named)));
  }
  if (task && *task != TaskKind::kMove && *task != TaskKind::kScale)
    return Invalid("--task {}: `bench` measures move, and scale with `bench env`", TaskName(*task));
  options.scales = task == TaskKind::kScale;
  if (options.scales && part != "env")
    return Invalid("--task scale: only `bench env` measures it, not `bench {}`", part);
  if (options.policy && (part == "env" || part == "train"))
    return Invalid("--policy: `bench {}` asks none; decide, kernel and scale do", part);
  if (const auto scenario = arguments.Text("scenario")) {
    options.scenarios = {*scenario};
    return options;
  }
  if (options.scales) {
    TRY_ASSIGN(std::filesystem::path path, ShippedFile(kServedScenario));
    options.scenarios = {std::move(path)};
    return options;
  }
  const bool all = part == "scale";
  for (const char* name : kScenarios) {
    const Result<std::filesystem::path> path = ShippedFile(name);
    if (!path) {
      return Fail(path.error().code, "{}; name a scenario with --scenario FILE",
                  path.error().message);
    }
    options.scenarios.push_back(*path);
    if (!all) break;
  }
  return options;
}

Result<ExitStatus> RunBench(const Arguments& arguments, const Session& session) {
  TRY_ASSIGN(const OutputFormat format, OutputFormatOf(arguments));
  const std::string& part = arguments.operands()[0];
  TRY_ASSIGN(const int chosen, ChoiceOf(part, kParts));
  TRY_ASSIGN(const BenchOptions options, OptionsOf(arguments, part));
  const Machine machine = ThisMachine();
  Progress progress("bench " + part, session.verbosity);
  progress.Update(std::nullopt, "");
  TRY_ASSIGN(Measured finding, Measure(chosen, options));
  progress.Done();
  if (format == OutputFormat::kJson) {
    OrderedJson json;
    json[part] = std::move(finding.json);
    json["machine"] = {{"cpu", machine.cpu}, {"cores", machine.cores}, {"load", machine.load}};
    TRY(Print(json.dump(1, ' ', false, OrderedJson::error_handler_t::replace) + "\n"));
  } else {
    TRY(Print(finding.text + fmt::format("{}, {}, load {:.1f} before\n", machine.cpu,
                                         Counted(machine.cores, "core"), machine.load)));
  }
  return ExitStatus::kDone;
}

}  // namespace

CommandSpec BenchCommand() {
  return {.name = "bench",
          .summary = "Measure how fast this machine simulates, trains and decides",
          .operands = {{.name = "env|train|decide|kernel|scale"}},
          .options = {{"--scenario", "FILE",
                       "scenario to use (default continuum-7x21, or online-boutique when scaling; "
                       "`bench scale` runs all five)"},
                      {"--task", "move|scale", "(env only) kind of decision (default move)"},
                      {"--policy", "RUN", "run or checkpoint to use (default: the shipped policy)"},
                      {"--time", "DURATION", "how long to measure (default 3s, or 10s for scale)"},
                      {"--threads", "N", "(train only) number of threads (default: all cores)"},
                      {"-o,--output", "table|json", "output format (default: table, as text)"}},
          .details =
              "env: steps of the training environment with random actions and all features, on one "
              "core.\ntrain: complete PPO iterations.\ndecide: one decision of a learned policy, "
              "from the state to the answer.\nkernel: the network's matrix products, forward and "
              "backward, compared with the peak of one core.\nscale: decisions and steps from 7 "
              "nodes and 21 pods to 1,000 nodes and 10,000 pods.",
          .examples = {"bench decide", "bench env --task scale",
                       "bench train --threads 2 --time 10s -o json"},
          .run = RunBench};
}

}  // namespace rudderfish
