// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "base/json.h"
#include "base/text_table.h"
#include "cli/episode_text.h"
#include "cli/judged_worlds.h"
#include "cli/scaling_options.h"
#include "cli/terminal.h"
#include "sim/scaling_story.h"

namespace rudderfish {
namespace {

constexpr int64_t kScalingAlternatives = 4, kScalingAlternativesMin = 2;

struct ToldEpisode {
  std::string load, policy;
  uint64_t seed = 0;
  int episode = 0;
  double interval_s = 0;
  ScalingStory story;
};

std::string LateText(double share) { return fmt::format("{:.2f} %", 100 * share); }

std::string WhyText(const ScaledWorkload& change) {
  std::string text =
      fmt::format("{:.0f} % of the slots of {} are busy with {:.4g} calls/s; late, by the Model:",
                  100 * change.busy_share, Counted(change.ready, "ready pod"), change.calls_per_s);
  std::string_view comma;
  for (const ScalingAlternative& one : change.alternatives) {
    text += fmt::format("{} {} with {}", comma, LateText(one.late_share), one.replicas);
    comma = ",";
  }
  return text;
}

std::string TextOf(const ScaledWorkload& change, const ServedApplication& application) {
  std::string text =
      fmt::format("           {} {} -> {}", application.workloads[change.workload].name,
                  change.before, change.after);
  if (change.allowed != change.after) text += fmt::format(" (quota: {})", change.allowed);
  if (change.alternatives.empty()) return text + ": metrics show nothing yet\n";
  return text + ": " + WhyText(change) + "\n";
}

// Decisions that change nothing are told together.
class QuietText {
 public:
  void Add(const ScalingStep& step) {
    if (count_++ == 0) {
      from_s_ = step.moment.at_s;
      low_ = high_ = step.moment.requests_per_s;
      late_ = 0;
    }
    to_s_ = step.moment.at_s;
    low_ = std::min(low_, step.moment.requests_per_s);
    high_ = std::max(high_, step.moment.requests_per_s);
    late_ = std::max(late_, step.moment.late_share);
  }

  std::string Take() {
    if (count_ == 0) return "";
    std::string text =
        fmt::format("  {} to {}  nothing changes: {:.4g} to {:.4g} requests/s, at most {} late\n",
                    EpisodeClock(from_s_), EpisodeClock(to_s_), low_, high_, LateText(late_));
    count_ = 0;
    return text;
  }

 private:
  int count_ = 0;
  double from_s_ = 0, to_s_ = 0, low_ = 0, high_ = 0, late_ = 0;
};

std::string FootText(const ScalingFigures& figures) {
  return fmt::format(
      "\n{:.2f} pod-hours, {:.3f} core-hours, {:.2f} node-hours; {} of {} requests late or failed, "
      "p95 {}; {} changes\n",
      figures.pod_hours, figures.core_hours, figures.node_hours,
      LateText(figures.violation_share()), figures.requests,
      std::isinf(figures.p95_ms) ? "no answer" : fmt::format("{:.1f} ms", figures.p95_ms),
      figures.changes);
}

std::string StoryText(const ToldEpisode& told, const Scenario& scenario,
                      const ServedApplication& application) {
  std::string text =
      fmt::format("{}, {}: scaled by {} every {:g} s, episode {} of seed {}\n\n", scenario.name,
                  told.load, told.policy, told.interval_s, told.episode, told.seed);
  QuietText quiet;
  for (const ScalingStep& step : told.story.steps) {
    if (step.changes.empty()) {
      quiet.Add(step);
      continue;
    }
    text += quiet.Take();
    const ScalingMoment& moment = step.moment;
    text +=
        fmt::format("  {}  {:.4g} requests/s, p95 {:.1f} ms, {} late\n", EpisodeClock(moment.at_s),
                    moment.requests_per_s, moment.p95_ms, LateText(moment.late_share));
    for (const ScaledWorkload& change : step.changes) text += TextOf(change, application);
  }
  return text + quiet.Take() + FootText(told.story.figures);
}

OrderedJson JsonOf(const ScaledWorkload& change, const ServedApplication& application) {
  OrderedJson json{{"workload", application.workloads[change.workload].name},
                   {"before", change.before},
                   {"after", change.after},
                   {"allowed", change.allowed},
                   {"ready", change.ready},
                   {"calls_per_s", change.calls_per_s},
                   {"busy_share", change.busy_share}};
  OrderedJson& list = json["considered"] = OrderedJson::array();
  for (const ScalingAlternative& one : change.alternatives) {
    list.push_back({{"replicas", one.replicas},
                    {"chosen", one.replicas == change.after},
                    {"late_share", one.late_share}});
  }
  return json;
}

OrderedJson JsonOf(const ScalingStep& step, const ServedApplication& application) {
  OrderedJson json{{"at_s", step.moment.at_s},
                   {"requests_per_s", step.moment.requests_per_s},
                   {"p95_ms", step.moment.p95_ms},
                   {"violation_share", step.moment.late_share},
                   {"metrics_requests_per_s",
                    step.has_samples ? OrderedJson(step.requests_per_s) : OrderedJson(nullptr)}};
  OrderedJson& replicas = json["replicas"] = OrderedJson::object();
  OrderedJson& changes = json["changes"] = OrderedJson::array();
  for (WorkloadId w = 0; w < application.workload_count(); ++w) {
    if (application.workloads[w].scaled)
      replicas[application.workloads[w].name] = step.moment.replicas[w];
  }
  for (const ScaledWorkload& change : step.changes) changes.push_back(JsonOf(change, application));
  return json;
}

std::string StoryJson(const ToldEpisode& told, const Scenario& scenario,
                      const ServedApplication& application) {
  const ScalingFigures& figures = told.story.figures;
  OrderedJson json{{"schema_version", 1},       {"kind", "scaling_episode"},
                   {"scenario", scenario.name}, {"load", told.load},
                   {"policy", told.policy},     {"seed", told.seed},
                   {"episode", told.episode},   {"interval_s", told.interval_s}};
  OrderedJson& steps = json["steps"] = OrderedJson::array();
  for (const ScalingStep& step : told.story.steps) steps.push_back(JsonOf(step, application));
  // JSON has no infinity: null where that percentile is of requests that were not answered.
  const auto percentile = [](double ms) {
    return std::isinf(ms) ? OrderedJson(nullptr) : OrderedJson(ms);
  };
  json["figures"] = {{"requests", figures.requests},
                     {"violation_share", figures.violation_share()},
                     {"failures", figures.failures},
                     {"pod_hours", figures.pod_hours},
                     {"core_hours", figures.core_hours},
                     {"node_hours", figures.node_hours},
                     {"energy_wh", figures.energy_wh},
                     {"mean_ms", figures.mean_ms},
                     {"p95_ms", percentile(figures.p95_ms)},
                     {"p99_ms", percentile(figures.p99_ms)},
                     {"changes", figures.changes}};
  return json.dump(2) + "\n";
}

}  // namespace

Result<ExitStatus> SimulateScaling(const SimulationRequest& request) {
  const Scenario& scenario = request.scenario;
  TRY(CheckIsServed(scenario, request.path));
  const int64_t alternatives = request.alternatives.value_or(kScalingAlternatives);
  if (alternatives < kScalingAlternativesMin)
    return Invalid("--alternatives: must be at least {} for --task scale", kScalingAlternativesMin);
  const auto& [name, spec] = request.policy;
  TRY_ASSIGN(const ScalingPolicies policies,
             OfOption("policy", ScalingPoliciesOf({{name, {spec}}}, request.path)));
  for (const std::string& note : policies.notes) Say(request.session, "{}", note);
  TRY_ASSIGN(const std::vector<int> loads, LoadsOf(request.arguments, *scenario.load));
  if (request.arguments.Has("load") && loads.size() > 1)
    return Invalid("--load: name one load; an episode is of one");
  ToldEpisode told{.load = scenario.load->loads[loads[0]].name,
                   .policy = name,
                   .seed = request.seed,
                   .episode = static_cast<int>(request.episode),
                   .interval_s = std::chrono::duration<double>(scenario.load->interval).count()};
  told.story = TellScaling(*policies.list[0].members[0], scenario, loads[0], told.seed,
                           told.episode, static_cast<int>(alternatives));
  const ServedApplication application = ApplicationOf(scenario, 0);
  TRY(Print(request.format == OutputFormat::kTable ? StoryText(told, scenario, application)
                                                   : StoryJson(told, scenario, application)));
  return ExitStatus::kDone;
}

}  // namespace rudderfish
