// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/clock.h"
#include "base/files.h"
#include "base/json.h"
#include "base/text_table.h"
#include "cli/commands.h"
#include "cli/gym_hpa_recorder.h"
#include "cli/output.h"
#include "cli/scaling_options.h"
#include "cli/terminal.h"
#include "compat/gym_hpa_world.h"

namespace rudderfish {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kGymHpaVerbs[] = {"record", "replay"};
constexpr std::string_view kGymHpaAgents[] = {"random", "hold", "desired"};
enum GymHpaAgent { kRandomAgent, kHoldAgent, kDesiredAgent };
constexpr int64_t kMostGymHpaEpisodes = 1'000'000, kMostGymHpaSteps = 100'000;

// What either verb comes to.
struct GymHpaOutcome {
  std::string run;  // Name of the run's folder.
  std::string application;
  std::string agent, goal;
  std::vector<GymHpaResult> results;
  std::string log;
  std::string observations;  // Of record.
};

// run.log dates like Python's logging there: month first, twelve hours.
std::string LogLine(int64_t at_s, std::string_view message) {
  const int64_t seconds = at_s % 86400, hour = seconds / 3600;
  const std::chrono::year_month_day date{std::chrono::sys_days(std::chrono::days(at_s / 86400))};
  return fmt::format("{:02}/{:02}/{:04} {:02}:{:02}:{:02} {} INFO {}\n",
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     static_cast<int>(date.year()), hour % 12 == 0 ? 12 : hour % 12,
                     seconds / 60 % 60, seconds % 60, hour < 12 ? "AM" : "PM", message);
}

std::string GymHpaStepText(int64_t step, std::string_view action, double reward, double total) {
  return fmt::format("[Step {}] | Action {} | Reward: {:.4g} | Total Reward: {:.4g}", step, action,
                     reward, total);
}

// Its steps one after another, the last one closing it.
class GymHpaEpisode {
 public:
  explicit GymHpaEpisode(int number) { result_.episode = number; }

  void Add(std::span<const GymHpaReading> readings, double reward) {
    ++steps_;
    pods_ += GymHpaTotalPods(readings);
    latency_ms_ += readings.front().latency_ms;
    result_.reward += reward;
  }

  double total() const { return result_.reward; }

  GymHpaResult Close(double seconds) {
    result_.avg_pods = pods_ / steps_;
    result_.avg_latency_ms = latency_ms_ / steps_;
    result_.seconds = seconds;
    return result_;
  }

 private:
  GymHpaResult result_;
  double steps_ = 0, pods_ = 0, latency_ms_ = 0;
};

// Who acts in a replay.
GymHpaMove Choose(int agent, const GymHpaWorld& world, Rng* rng) {
  const std::vector<GymHpaReading>& readings = world.readings();
  if (agent == kHoldAgent) return {};
  if (agent == kRandomAgent) {
    const auto deployment = static_cast<int>(rng->Below(static_cast<uint32_t>(readings.size())));
    return GymHpaPairMove(deployment, static_cast<int>(rng->Below(kGymHpaMoves)));
  }
  GymHpaMove move;
  for (size_t d = 0; d < readings.size(); ++d) {
    const int delta = readings[d].desired - readings[d].pods;
    if (std::abs(delta) > std::abs(move.delta)) move = {static_cast<int>(d), delta};
  }
  return move;
}

Result<GymHpaApplication> ReplayedApplication(const Arguments& arguments, const GymHpaTable& table,
                                              const fs::path& path) {
  if (const std::optional<std::string> scenario = arguments.Text("scenario")) {
    TRY_ASSIGN(const Scenario served, LoadServedScenario(*scenario));
    GymHpaApplication application = GymHpaApplicationOf(ApplicationOf(served, 0), served.name);
    if (application.count() == table.deployments()) return application;
    return Invalid("{}: has {}, but {} scales {}", path.string(),
                   Counted(table.deployments(), "deployment"), *scenario, application.count());
  }
  for (const GymHpaApplication* known :
       {&GymHpaApplication::OnlineBoutique(), &GymHpaApplication::Redis()}) {
    if (known->count() == table.deployments()) return *known;
  }
  return Invalid(
      "{}: has {}, neither Online Boutique's 11 nor the 2 of Redis; --scenario says what "
      "they request",
      path.string(), Counted(table.deployments(), "deployment"));
}

Result<GymHpaOutcome> ReplayObservations(const Arguments& arguments, const Session& session) {
  for (const char* other : {"policy", "load"}) {
    if (arguments.Has(other)) return Invalid("--{}: is for `record`", other);
  }
  const fs::path path = arguments.operands()[1];
  TRY_ASSIGN(const int agent, arguments.Choice("agent", kGymHpaAgents, kRandomAgent));
  TRY_ASSIGN(const int goal, arguments.Choice("goal", kGymHpaGoals, 0));
  TRY_ASSIGN(const int sampling, arguments.Choice("sampling", kGymHpaSamplings, 0));
  TRY_ASSIGN(const int64_t episodes, arguments.Integer("episodes", 100, 1, kMostGymHpaEpisodes));
  TRY_ASSIGN(const int64_t steps, arguments.Integer("steps", 25, 1, kMostGymHpaSteps));
  TRY_ASSIGN(const uint64_t seed, SeedOf(arguments));
  TRY_ASSIGN(const std::string text, ReadFile(path));
  TRY_ASSIGN(const GymHpaTable table, ReadGymHpaTable(text, path.string()));
  TRY_ASSIGN(const GymHpaApplication application, ReplayedApplication(arguments, table, path));
  GymHpaWorld world(&application, &table,
                    {.sampling = static_cast<GymHpaSampling>(sampling),
                     .goal = static_cast<GymHpaGoal>(goal),
                     .steps = static_cast<int>(steps)});
  GymHpaOutcome outcome{
      .run = GymHpaRunName(kGymHpaAgents[agent], application.name, episodes * steps),
      .application = application.name,
      .agent = std::string(kGymHpaAgents[agent]),
      .goal = std::string(kGymHpaGoals[goal])};
  Progress progress("replay", session.verbosity);
  const SystemClock clock;
  int64_t step = 0;
  for (int64_t episode = 1; episode <= episodes; ++episode) {
    const Instant begin = clock.Now();
    Rng rng(seed, static_cast<uint64_t>(episode));
    world.Reset(rng.Next64());
    GymHpaEpisode sums(static_cast<int>(episode));
    for (bool over = false; !over;) {
      const GymHpaMove move = Choose(agent, world, &rng);
      const GymHpaStep made = world.Step(move);
      over = made.over;
      sums.Add(world.readings(), made.reward);
      const std::string action =
          move.delta == 0 ? "none"
                          : fmt::format("{} {:+}{}", application.deployments[move.deployment].name,
                                        move.delta, made.beyond_bound ? " (beyond a bound)" : "");
      ++step;
      outcome.log += LogLine(step, GymHpaStepText(step, action, made.reward, sums.total()));
    }
    outcome.results.push_back(sums.Close(Seconds(clock.Now() - begin)));
    progress.Update(static_cast<double>(episode) / static_cast<double>(episodes), "");
  }
  return outcome;
}

// What a decision changed, as the log tells it.
std::string ChangesText(const GymHpaApplication& application, const GymHpaRow& before,
                        const GymHpaRow& after) {
  std::string text;
  for (size_t d = 0; d < after.readings.size(); ++d) {
    const int delta = after.readings[d].pods - before.readings[d].pods;
    if (delta == 0) continue;
    text +=
        fmt::format("{}{} {:+}", text.empty() ? "" : ", ", application.deployments[d].name, delta);
  }
  return text.empty() ? "none" : text;
}

void AddEpisode(const GymHpaApplication& application, const GymHpaRecorder& recorder,
                GymHpaGoal goal, double seconds, GymHpaOutcome* outcome) {
  GymHpaReward rewards(application, goal);
  GymHpaEpisode sums(static_cast<int>(outcome->results.size()) + 1);
  const std::vector<GymHpaRow>& rows = recorder.rows();
  rewards.Reset(rows[0].readings, recorder.p95_ms(0));
  for (size_t i = 0; i < rows.size(); ++i) {
    outcome->observations += GymHpaLine(rows[i]);
    if (i == 0) continue;  // Nothing had been decided.
    const double reward = rewards.Of(rows[i].readings, recorder.p95_ms(i), GymHpaBound::kKept);
    sums.Add(rows[i].readings, reward);
    outcome->log +=
        LogLine(rows[i].at_s, GymHpaStepText(static_cast<int64_t>(i),
                                             ChangesText(application, rows[i - 1], rows[i]), reward,
                                             sums.total()));
  }
  if (rows.size() > 1) outcome->results.push_back(sums.Close(seconds));
}

Result<GymHpaOutcome> RecordObservations(const Arguments& arguments, const Session& session) {
  for (const char* other : {"agent", "sampling", "steps", "scenario"}) {
    if (arguments.Has(other)) return Invalid("--{}: is for `replay`", other);
  }
  const fs::path path = arguments.operands()[1];
  TRY_ASSIGN(const int goal, arguments.Choice("goal", kGymHpaGoals, 0));
  TRY_ASSIGN(const int64_t episodes, arguments.Integer("episodes", 1, 1, kMostGymHpaEpisodes));
  TRY_ASSIGN(const uint64_t seed, SeedOf(arguments));
  TRY(arguments.RequiredText("dir", "where the observations go, such as results"));
  TRY_ASSIGN(const Scenario scenario, LoadServedScenario(path));
  TRY_ASSIGN(const std::string text,
             arguments.RequiredText("policy", "whom to record, such as hpa"));
  TRY_ASSIGN(const std::vector<ListedPolicy> listed, OfOption("policy", ParsePolicies(text)));
  TRY_ASSIGN(const ScalingPolicies policies, OfOption("policy", ScalingPoliciesOf(listed, path)));
  if (policies.list.size() != 1 || policies.list[0].members.size() != 1)
    return Invalid("--policy: expected one policy to record");
  TRY_ASSIGN(const std::vector<int> loads, LoadsOf(arguments, *scenario.load));
  const auto served = std::make_shared<const ServedApplication>(ApplicationOf(scenario, 0));
  const GymHpaReader reader(*served, scenario.name);
  const GymHpaApplication& application = reader.application();
  const EpisodeStart start(served);
  EventSimulator simulator(served);
  const int64_t interval_s = std::max<int64_t>(1, scenario.load->interval.count() / 1'000'000'000);
  const int64_t duration_s = scenario.load->duration.count() / 1'000'000'000;
  const std::string& name = policies.list[0].name;
  GymHpaOutcome outcome{
      .run = GymHpaRunName(name.substr(0, name.find_first_of(":/")), application.name,
                           episodes * static_cast<int64_t>(loads.size()) * duration_s / interval_s),
      .application = application.name,
      .agent = name,
      .goal = std::string(kGymHpaGoals[goal])};
  Progress progress("record", session.verbosity);
  const SystemClock clock;
  const auto all = static_cast<int64_t>(loads.size()) * episodes;
  for (int64_t i = 0; i < all; ++i) {
    const Instant begin = clock.Now();
    const int position = loads[i / episodes];
    GymHpaRecorder recorder(&reader, i * duration_s);
    const ScalingEpisodeDraw draw = DrawScalingEpisode(
        *scenario.load, EpisodeUse::kLearning, position, seed, static_cast<int>(i % episodes));
    RunScaling(*policies.list[0].members[0], *scenario.load, draw.curve, draw.seed, start,
               &simulator, &recorder);
    AddEpisode(application, recorder, static_cast<GymHpaGoal>(goal), Seconds(clock.Now() - begin),
               &outcome);
    progress.Update(static_cast<double>(i + 1) / static_cast<double>(all), "");
  }
  if (outcome.results.empty())
    return Invalid("{}: an episode has one interval; nothing is decided in it", path.string());
  return outcome;
}

struct GymHpaMeans {
  double reward = 0, pods = 0, latency_ms = 0;

  explicit GymHpaMeans(const std::vector<GymHpaResult>& results) {
    const auto n = static_cast<double>(results.size());
    for (const GymHpaResult& one : results) {
      reward += one.reward / n;
      pods += one.avg_pods / n;
      latency_ms += one.avg_latency_ms / n;
    }
  }
};

std::string OutcomeText(const GymHpaOutcome& outcome, OutputFormat format) {
  if (format == OutputFormat::kCsv) return GymHpaResultsCsv(outcome.results);
  const GymHpaMeans means(outcome.results);
  if (format == OutputFormat::kJson) {
    return OrderedJson{{"schema_version", 1},
                       {"kind", "gym_hpa"},
                       {"application", outcome.application},
                       {"agent", outcome.agent},
                       {"goal", outcome.goal},
                       {"episodes", outcome.results.size()},
                       {"reward_mean", means.reward},
                       {"avg_pods", means.pods},
                       {"avg_latency_ms", means.latency_ms}}
               .dump(1) +
           "\n";
  }
  TextTable table({{"agent", TextTable::Align::kLeft},
                   {"goal", TextTable::Align::kLeft},
                   {"episodes", TextTable::Align::kRight},
                   {"reward", TextTable::Align::kRight},
                   {"pods", TextTable::Align::kRight},
                   {"latency", TextTable::Align::kRight}});
  table.Row({outcome.agent, outcome.goal, Grouped(static_cast<int64_t>(outcome.results.size())),
             fmt::format("{:.2f}", means.reward), fmt::format("{:.1f}", means.pods),
             fmt::format("{:.1f} ms", means.latency_ms)});
  return table.Text();
}

Result<ExitStatus> RunGymHpa(const Arguments& arguments, const Session& session) {
  TRY_ASSIGN(const int verb, ChoiceOf(arguments.operands()[0], kGymHpaVerbs));
  TRY_ASSIGN(
      const OutputFormat format,
      OutputFormatOf(arguments, {OutputFormat::kTable, OutputFormat::kJson, OutputFormat::kCsv}));
  TRY_ASSIGN(const GymHpaOutcome outcome, verb == 0 ? RecordObservations(arguments, session)
                                                    : ReplayObservations(arguments, session));
  TRY(Print(OutcomeText(outcome, format)));
  const std::optional<std::string> folder = arguments.Text("dir");
  if (!folder) return ExitStatus::kDone;
  const fs::path run = fs::path(*folder) / "runs" / outcome.run;
  TRY(MakeDirectories(run));
  TRY(WriteFileAtomically(run / "results.csv", GymHpaResultsCsv(outcome.results)));
  TRY(WriteFileAtomically(run / "run.log", outcome.log));
  const fs::path observations = run / (outcome.application + "_observation.csv");
  if (!outcome.observations.empty()) TRY(WriteFileAtomically(observations, outcome.observations));
  Say(session, "Wrote {}", run.string());
  if (!outcome.observations.empty())
    Say(session, "Next: rudderfish gym-hpa replay {}", ShellWord(observations.string()));
  return ExitStatus::kDone;
}

}  // namespace

CommandSpec GymHpaCommand() {
  return {
      .name = "gym-hpa",
      .summary = "Record and replay observations in the format of gym-hpa and graph-gym-hpa",
      .operands = {{.name = "record|replay"}, {.name = "FILE"}},
      .options = {{"--policy", "POLICY", "(record) scaling policy, as for `evaluate --task scale`"},
                  {"--load", "NAME[,...]", "(record) loads to record (default: all)"},
                  {"--agent", "random|hold|desired", "(replay) agent that acts (default random)"},
                  {"--sampling", "progressive|last",
                   "(replay) how similar rows are found (default progressive; last is the "
                   "original's way)"},
                  {"--steps", "N", "(replay) steps per episode (default 25)"},
                  {"--scenario", "FILE",
                   "(replay) scenario with the requests of the Deployments, if they are not those "
                   "of Online Boutique or Redis"},
                  {"--goal", "cost|latency|slo", "reward (default cost)"},
                  {"--episodes", "N", "episodes per load (default 1, or 100 for replay)"},
                  {"--seed", "S", "random seed (default 1)"},
                  {"-d,--dir", "FOLDER",
                   "write runs/NAME/{results.csv,run.log,..._observation.csv} to this folder"},
                  {"-o,--output", "table|json|csv",
                   "output format (default: table); csv is results.csv"}},
      .details =
          "`record` runs a scaling policy on the event simulator and writes what gym-hpa would "
          "have observed: one line per interval, with 78 columns for Online Boutique or 15 for "
          "Redis. `replay` builds an environment from such lines, in which each step draws a row "
          "similar to the state, and lets a simple agent act in it. docs/gym-hpa.md lists the "
          "differences from the original.",
      .examples = {"gym-hpa record scenarios/redis.yaml --policy hpa:cpu=60 --load ramp -d results",
                   "gym-hpa replay observations.csv --agent desired --goal cost",
                   "gym-hpa replay observations.csv --sampling last --goal latency -d results"},
      .run = RunGymHpa};
}

}  // namespace rudderfish
