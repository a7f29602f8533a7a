// SPDX-License-Identifier: Apache-2.0
#include <signal.h>

#include <atomic>
#include <cmath>
#include <limits>

#include "base/text_table.h"
#include "base/units.h"
#include "base/version.h"
#include "base/yaml_change.h"
#include "cli/commands.h"
#include "cli/placement_commands.h"
#include "cli/stop_signals.h"
#include "cli/terminal.h"
#include "cli/trained_world.h"
#include "cluster/task_kind.h"
#include "learn/trainer.h"

namespace rudderfish {
namespace {

constexpr int64_t kSeedsMax = 1000;

Result<void> SetOptions(const Arguments& arguments, TrainOptions* options) {
  TRY(arguments.Exclude("time", "steps"));
  TRY(arguments.Exclude("seed", "seeds"));
  const bool is_preset = options->scaling && options->scaling->preset;  // With figures of its own.
  if (arguments.Has("algorithm")) {
    TRY_ASSIGN(options->algorithm,
               OfOption("algorithm", AlgorithmNamed(*arguments.Text("algorithm"))));
    if (options->algorithm == Algorithm::kA2c && !arguments.Has("resume") && !is_preset)
      UseA2cDefaults(options);
    if (options->algorithm == Algorithm::kEvolution && !arguments.Has("resume") &&
        !options->routing)
      UseEvolutionDefaults(options);
  }
  if (arguments.Has("encoder")) {
    TRY_ASSIGN(options->encoder, OfOption("encoder", nn::EncoderNamed(*arguments.Text("encoder"))));
    if (options->scaling && !is_preset) options->scaling->rows = ScalingRows::kCallGraph;
  }
  if (arguments.Has("time")) {
    options->steps = 0;
    TRY_ASSIGN(options->seconds, arguments.Seconds("time", options->seconds));
  }
  if (arguments.Has("steps")) {
    const int fewest = options->from.empty() ? 1 : 0;
    TRY_ASSIGN(options->steps,
               arguments.Integer("steps", 0, fewest, std::numeric_limits<int64_t>::max()));
    if (options->steps == 0) options->seconds = 0;
  }
  if (arguments.Has("seed")) {
    TRY_ASSIGN(options->seed, SeedOf(arguments));
  }
  TRY_ASSIGN(options->threads, ThreadsOf(arguments));
  return {};
}

// Values of what config.yaml will say.
Result<void> ChangeOptions(const Arguments& arguments, TrainOptions* options) {
  TRY_ASSIGN(const std::vector<YamlChange> changes,
             ChangesOf(arguments, "dqn.learning_rate_start=1e-3"));
  if (changes.empty()) return {};
  YamlWriter out;
  WriteTrainOptions(*options, &out);
  TRY_ASSIGN(YamlNode root, ParseYaml(out.Take(), "--set"));
  for (const YamlChange& change : changes) {
    TRY_ASSIGN(root, ChangeYaml(root, change));
  }
  TRY_ASSIGN(YamlMap map, root.AsMap());
  TRY_ASSIGN(TrainOptions changed, ReadTrainOptions(&map));
  TRY(map.Finish());
  changed.threads = options->threads;
  *options = std::move(changed);
  return {};
}

// Scaling as an earlier system did.
Result<void> SetScalingPreset(const Arguments& arguments, TrainOptions* options) {
  const std::string name = *arguments.Text("preset");
  if (PlacementPresetNamed(name))
    return Invalid("--preset: {} is a preset for placement; remove --task scale", name);
  TRY_ASSIGN(const ScalingPreset preset, OfOption("preset", ScalingPresetNamed(name)));
  for (const char* other : {"violations", "hpa"}) {
    if (arguments.Has(other))
      return Invalid("--{}: {} has no limit", other, ScalingPresetName(preset));
  }
  Algorithm algorithm = Algorithm::kPpo;
  if (arguments.Has("algorithm")) {
    TRY_ASSIGN(algorithm, OfOption("algorithm", AlgorithmNamed(*arguments.Text("algorithm"))));
  }
  if (algorithm == Algorithm::kDqn) {
    return Invalid("--algorithm: {} learns by ppo, a2c or recurrent-ppo, as it did",
                   ScalingPresetName(preset));
  }
  const int episodes = options->validation_starts;
  UseScalingPreset(preset, algorithm, options);
  options->validation_starts = arguments.Has("episodes") ? episodes : 4;
  return {};
}

// As an earlier system did: placing pods, if it is not scaling.
Result<void> SetPreset(const Arguments& arguments, TrainOptions* options) {
  if (options->scaling) return SetScalingPreset(arguments, options);
  const std::string name = *arguments.Text("preset");
  if (ScalingPresetNamed(name))
    return Invalid("--preset: {} is a preset for scaling; add --task scale", name);
  TRY_ASSIGN(const PlacementPreset preset, OfOption("preset", PlacementPresetNamed(name)));
  UsePreset(preset, options);
  return {};
}

Result<TrainJob> MakeJob(const Arguments& arguments, const Session& session) {
  const bool resume = arguments.Has("resume");
  // What a run was begun with; it would be ignored.
  for (const char* fixed : {"preset", "set", "from", "load", "violations", "hpa", "episodes",
                            "variant", "regions", "rule"})
    TRY(arguments.Exclude("resume", fixed));
  TRY(arguments.Exclude("preset", "from"));
  if (!resume && arguments.operands().empty()) {
    return Invalid("a scenario is missing, for example: rudderfish train scenario.yaml -d runs/a");
  }
  TRY_ASSIGN(const std::string folder,
             arguments.RequiredText("dir", "the folder of the run, as in -d runs/a"));
  TrainJob job{.folder = folder};
  if (resume) {
    TRY_ASSIGN(job, TrainJob::ToResume(folder));
  }
  if (!arguments.operands().empty()) job.scenarios.clear();
  TRY_ASSIGN(const std::optional<Objective> objective, ObjectiveOf(arguments));
  for (const std::string& path : arguments.operands()) {
    TRY_ASSIGN(TrainScenario scenario, TrainScenario::Open(path, objective));
    if (scenario.scenario->places_pods() && scenario.scenario->objective)
      TRY(CheckObjective(*scenario.scenario));
    job.scenarios.push_back(std::move(scenario));
  }
  if (!resume) TRY(PrepareTraining(arguments, *job.scenarios[0].scenario, &job.options));
  if (arguments.Has("preset")) TRY(SetPreset(arguments, &job.options));
  if (!resume) job.options.from = arguments.Text("from").value_or("");
  TRY(SetOptions(arguments, &job.options));
  TRY(ChangeOptions(arguments, &job.options));
  if (!resume) {
    job.provenance = {.version = std::string(ProgramVersion()), .command = session.command_line};
  }
  job.start = session.start;
  return job;
}

std::string ProgressText(const TrainProgress& report, bool has_objective) {
  std::string text =
      fmt::format("{} steps/s", FormatCount(std::round(report.env_steps_per_second)));
  if (report.validation) {
    text += has_objective
                ? fmt::format("  objective {:.5f}", report.validation->final_ms)
                : fmt::format("  latency after the plan {:.1f} ms", report.validation->final_ms);
  }
  return text;
}

// The scenario of a command to try next: as typed, or the run's own copy.
std::string ScenarioToEvaluate(const Arguments& arguments, const TrainJob& job, bool seeds) {
  if (!arguments.operands().empty()) return ShellWord(arguments.operands()[0]);
  const RunPaths paths = seeds ? RunPaths{job.folder}.seed(1) : RunPaths{job.folder};
  return ShellWord(paths.scenario(0, static_cast<int>(job.scenarios.size())).string());
}

// What steps are made in.
std::string EnvironmentsOf(const TrainOptions& options) {
  if (options.algorithm == Algorithm::kEvolution) {
    const int each = 2 * options.es.pairs + 1;
    return Counted(options.es.episodes * each, "episode") + " an iteration";
  }
  return Counted(
      options.algorithm == Algorithm::kDqn ? options.dqn.replay.envs : options.rollout.envs,
      "environment");
}

std::string LineOf(const TrainSummary& summary, const TrainJob& job) {
  const TrainOptions& options = job.options;
  std::string line = fmt::format("seed {}: {}, {} steps of {}", summary.seed,
                                 Counted(summary.iterations, "iteration"),
                                 Grouped(summary.env_steps), EnvironmentsOf(options));
  // A run by steps does not keep the time that earlier processes took.
  if ((job.resume == Resume::kYes && options.by_steps()) || summary.seconds <= 0) return line;
  return line +
         fmt::format(
             "; {}, {} steps/s",
             FormatDuration(std::chrono::milliseconds(std::llround(summary.seconds * 1000))),
             FormatCount(std::round(static_cast<double>(summary.env_steps) / summary.seconds)));
}

std::string ValidationLine(const TrainSummary& summary, int starts, bool has_objective) {
  if (std::isnan(summary.best_final_ms)) return "  not evaluated yet: stopped too early";
  const double last_ms = summary.last ? summary.last->final_ms : summary.best_final_ms;
  if (has_objective) {
    return fmt::format("  objective on validation episodes: {:.5f} at best, {:.5f} at the end",
                       summary.best_final_ms, last_ms);
  }
  return fmt::format(
      "  latency after the plan, on {} validation starts: {:.1f} ms at best, {:.1f} ms at the end",
      starts, summary.best_final_ms, last_ms);
}

// What goes on with the run.
std::string ResumeCommand(const Arguments& arguments, const TrainJob& job, bool seeds) {
  return fmt::format(
      "rudderfish train --resume -d {}{}", ShellWord(job.folder.string()),
      seeds ? fmt::format(" --seeds {}", arguments.Text("seeds").value_or("N")) : std::string{});
}

Result<ExitStatus> Report(const Arguments& arguments, const Session& session, const TrainJob& job,
                          const std::vector<TrainSummary>& summaries, bool seeds) {
  const std::string folder = ShellWord(job.folder.string());
  const int starts = job.options.validation_starts * static_cast<int>(job.scenarios.size());
  for (const TrainSummary& summary : summaries) {
    Say(session, "{}", LineOf(summary, job));
    Say(session, "{}", ValidationLine(summary, starts, TrainedWorldOf(TaskOf(job)).has_objective));
  }
  const bool stopped = !summaries.empty() && summaries.back().ending == TrainEnding::kStopped;
  if (stopped) {
    Say(session, "Stopped; everything is saved in {}", job.folder.string());
    Say(session, "Next: {}", ResumeCommand(arguments, job, seeds));
    return ExitStatus::kDone;
  }
  if (!summaries.empty() && summaries.back().ending == TrainEnding::kWasFinished) {
    Say(session, "This run is already finished; increase --time or --steps to continue it");
  }
  const TrainedWorld& world = TrainedWorldOf(TaskOf(job));
  for (int number = 1; world.verdict && number <= static_cast<int>(summaries.size()); ++number) {
    const RunPaths paths = seeds ? RunPaths{job.folder}.seed(number) : RunPaths{job.folder};
    TRY_ASSIGN(const std::string verdict, world.verdict(paths.best()));
    Say(session, "{}{}", seeds ? fmt::format("seed {}: ", number) : "", verdict);
  }
  Say(session, "Next: rudderfish evaluate {} {},learned={}",
      ScenarioToEvaluate(arguments, job, seeds), world.comparison(arguments, job.options), folder);
  return ExitStatus::kDone;
}

// After a full disk: what was saved before is whole.
Error WithWayOn(Error error, const std::string& resume, const TrainJob& job) {
  if (error.code == ErrorCode::kUnavailable && HasRun(job.folder))
    error.message += fmt::format("; the last save is complete: continue with {}", resume);
  return error;
}

Result<ExitStatus> RunTrain(const Arguments& arguments, const Session& session) {
  TRY_ASSIGN(TrainJob job, MakeJob(arguments, session));
  const int earlier_seeds = job.resume == Resume::kYes ? SeedFolders(job.folder) : 0;
  TRY_ASSIGN(const int64_t seed_count, arguments.Integer("seeds", earlier_seeds, 1, kSeedsMax));
  const bool seeds = arguments.Has("seeds") || earlier_seeds > 0;
  const std::atomic<bool>& stop = StopOnSignals();
  std::vector<TrainSummary> summaries;
  {
    Progress progress("train", session.verbosity);
    const bool has_objective = TrainedWorldOf(TaskOf(job)).has_objective;
    const TrainCallback show = [&](const TrainProgress& report) {
      const double fraction = (report.seed_number - 1 + report.fraction) / report.seed_count;
      progress.Update(fraction,
                      report.seed_count == 1
                          ? ProgressText(report, has_objective)
                          : fmt::format("seed {} of {}  {}", report.seed_number, report.seed_count,
                                        ProgressText(report, has_objective)));
    };
    const auto train = [&]() -> Result<std::vector<TrainSummary>> {
      if (seeds) return TrainSeeds(job, static_cast<int>(seed_count), &stop, show);
      TRY_ASSIGN(const std::unique_ptr<Trainer> trainer, Trainer::Open(job));
      TRY_ASSIGN(const TrainSummary summary, trainer->Run(&stop, show));
      return std::vector<TrainSummary>{summary};
    };
    Result<std::vector<TrainSummary>> trained = train();
    if (!trained) {
      return tl::unexpected(
          WithWayOn(std::move(trained).error(), ResumeCommand(arguments, job, seeds), job));
    }
    summaries = *std::move(trained);
  }
  return Report(arguments, session, job, summaries, seeds);
}

std::vector<OptionSpec> TrainOptionSpecs() {
  return {
      {"-d,--dir", "FOLDER", "run folder; must not exist, except with --resume"},
      {"--objective", "TERM[:WEIGHT,...]",
       "(placement) objective to minimize; overrides the scenario's objective (see `help "
       "evaluate`)"},
      {"--task", kTaskWords,
       "kind of decision to learn; of regions `route` (where requests go), `scale` (what regions "
       "have for them), or `route,scale` (default: both if the scenario has `regions`, place if it "
       "has `arrivals`, scale if it has `load`, else move)"},
      {"--variant", "NAME[,...]", "(routing) variants to train on (default: all)"},
      {"--regions", "NAME[,...]", "(routing) regions to train on (default: all)"},
      {"--rule", "POLICY[,...]",
       "(routing) policies to beat, by name or as written by `calibrate`; the first mpc among "
       "them is what training begins with (default mpc)"},
      {"--preset",
       "thesis-ee|thesis-lb|thesis-lc|thesis-el-rl|drs-code|drs-paper|gym-hpa-cost|"
       "gym-hpa-latency|graph-gym-hpa-slo",
       "reproduce a published system: use its reward, episodes, observations and algorithm. "
       "Presets place pods, or scale workloads with --task scale. Other options still "
       "apply"},
      {"--load", "NAME[,...]", "(scaling) loads to train on (default: all)"},
      {"--violations", "SHARE",
       "(scaling) maximum share of late or failed requests (default: the scenario's limit, "
       "else 1%)"},
      {"--episodes", "N",
       "(scaling) validation episodes per load (default 16, or 4 with --preset); (routing) "
       "per variant (default 64)"},
      {"--hpa", "FILE.yaml",
       "(scaling) autoscaler to beat, as written by `calibrate`; compared on the episodes of "
       "its calibration"},
      {"--from", "RUN",
       "start from the network of a run or checkpoint; with --seeds, from that of the same "
       "seed. For scaling, --steps 0 skips training: it only calibrates the penalty for late "
       "requests on this application, and decides whether to fall back to the autoscaler"},
      {"--algorithm", "ppo|dqn|a2c|recurrent-ppo|es",
       "learning algorithm (default ppo; of routing, es). recurrent-ppo (scaling only) uses a "
       "network with memory; es (placement and routing) is an evolution strategy scored on "
       "whole episodes"},
      {"--encoder", "relational|gcn|gatv2|deepsets|mlp",
       "message passing between nodes and workloads (default relational). For scaling, "
       "messages also pass along the call graph"},
      {"--time", "DURATION",
       "training time, counted from the start of the program, for example 10min (default "
       "60s)"},
      {"--steps", "N",
       "train for this number of environment steps instead; equal seeds then give equal "
       "bytes"},
      {"--set", "KEY=VALUE[,...]", "override values of config.yaml, for example dqn.minibatch=64"},
      {"--seed", "S", "random seed (default 1)"},
      {"--seeds", "K", "train K times, with seeds 1 to K, into the subfolders seed-1, seed-2 ..."},
      {"--threads", "N", "number of threads; does not change the results (default: all cores)"},
      {"--resume", "", "continue the run in the folder; --time and --steps may be increased"}};
}

}  // namespace

CommandSpec TrainCommand() {
  constexpr const char* kElsewhere =
      "train scenarios/edge-pipeline.yaml --task scale --load ramp --from runs/ramp --steps 0 "
      "-d runs/edge";
  return {
      .name = "train",
      .summary = "Train a policy for one or more scenarios",
      .operands = {{.name = "SCENARIO", .min = 0, .max = 64}},
      .options = TrainOptionSpecs(),
      .details =
          "With several scenarios, one network learns all of them; each gets an equal share of the "
          "environments. Ctrl-C and SIGTERM save and stop; --resume continues. The folder contains "
          "best.safetensors (the policy), last.safetensors, metrics.csv, timing.csv, config.yaml "
          "and TensorBoard events.",
      .examples = {"train scenarios/continuum-7x21.yaml -d runs/a --time 60s",
                   "train scenarios/continuum-7x21.yaml -d runs/b --steps 2000000 --seed 7",
                   "train scenarios/continuum-7x21.yaml -d runs/c --time 30s --seeds 5",
                   "train --resume -d runs/a --time 5min",
                   "train scenarios/redis.yaml --task scale --load ramp -d runs/ramp", kElsewhere,
                   "train scenarios/redis.yaml --task scale --preset gym-hpa-cost -d runs/gym"},
      .run = RunTrain};
}

}  // namespace rudderfish
