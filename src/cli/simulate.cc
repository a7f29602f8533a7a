// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/judged_world.h"
#include "cli/output.h"
#include "cli/policy_list.h"
#include "cluster/task_kind.h"
#include "scenario/task_of.h"

namespace rudderfish {
namespace {

constexpr int64_t kSimulatedEpisodeMax = 1'000'000;
constexpr int64_t kStartLineMax = 100'000'000;  // Of a --starts file.
constexpr int64_t kSimulatedAlternativesMax = 1000;

Result<ExitStatus> RunSimulate(const Arguments& arguments, const Session& session) {
  const std::string& path = arguments.operands()[0];
  TRY_ASSIGN(Scenario scenario, LoadScenario(path));
  TRY_ASSIGN(const TaskKind task, TaskFor(arguments.Text("task"), scenario, path));
  TRY(CheckOptionsSuit(arguments, task));
  const JudgedWorld& world = JudgedWorldOf(task);
  TRY_ASSIGN(const OutputFormat format, OutputFormatOf(arguments));
  TRY_ASSIGN(const uint64_t seed, SeedOf(arguments));
  const int64_t line_max = arguments.Has("starts") ? kStartLineMax : kSimulatedEpisodeMax;
  TRY_ASSIGN(const int64_t episode, arguments.Integer("line", 0, 0, line_max));
  std::optional<int64_t> alternatives;
  if (arguments.Has("alternatives")) {
    TRY_ASSIGN(alternatives, arguments.Integer("alternatives", 1, 1, kSimulatedAlternativesMax));
  }
  TRY_ASSIGN(
      const std::string typed,
      arguments.RequiredText("policy", fmt::format("who decides, such as {}", world.policy)));
  TRY_ASSIGN(OnePolicy policy, OfOption("policy", ParseOnePolicy(typed)));
  return world.simulate({.arguments = arguments,
                         .session = session,
                         .path = path,
                         .scenario = std::move(scenario),
                         .policy = std::move(policy),
                         .seed = seed,
                         .episode = episode,
                         .alternatives = alternatives,
                         .format = format});
}

}  // namespace

CommandSpec SimulateCommand() {
  return {
      .name = "simulate",
      .summary = "Play one episode and show every decision with its reasons",
      .operands = {{.name = "SCENARIO"}},
      .options = {{"--policy", "POLICY",
                   "policy: a name, a run folder or a checkpoint (see `rudderfish policies`)"},
                  {"--task", kTaskWords,
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
                  {"-o,--output", "table|json", "output format (default: table, as text)"}},
      .examples = {"simulate scenarios/continuum-7x21.yaml --policy runs/a --seed 7",
                   "simulate chain.yaml --policy lookahead --starts starts.jsonl --line 12 -o json",
                   "simulate scenarios/redis.yaml --policy hpa:cpu=60 --load ramp",
                   "simulate scenarios/multicloud-16.yaml --policy mpc --variant spot"},
      .run = RunSimulate};
}

}  // namespace rudderfish
