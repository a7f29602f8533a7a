// SPDX-License-Identifier: Apache-2.0
#include "scenario/profile.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/files.h"
#include "base/text_table.h"
#include "base/units.h"
#include "cli/cluster_source.h"
#include "cli/commands.h"
#include "cli/files.h"
#include "cli/terminal.h"
#include "cli/traced_calls.h"
#include "kube/kube_cluster.h"
#include "scenario/start_states.h"

namespace rudderfish {
namespace {

constexpr Duration kStep = std::chrono::milliseconds(200);
constexpr size_t kMostStates = 10'000;  // Kept of one observation.
constexpr int kMostTold = 8;            // Workloads that are not movable.
constexpr double kFewMovable = 0.1;     // Of all pods.

// What is seen now, and with --for each state that differs from the one before.
Result<std::vector<State>> Observe(const Arguments& arguments, const Session& session,
                                   ClusterSource* source, kube::KubeCluster& cluster) {
  State state;
  TRY(source->CheckHoldsPods());
  TRY(cluster.Refresh(&state));
  std::vector<State> states{state};
  if (!arguments.Has("for") || !source->is_live()) return states;
  TRY_ASSIGN(const double seconds, arguments.Seconds("for", 0));
  Say(session, "Watching {} for {}", source->name,
      FormatDuration(std::chrono::duration_cast<std::chrono::nanoseconds>(
          std::chrono::duration<double>(seconds))));
  const Instant end = source->clock->Now() +
                      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
  while (source->clock->Now() < end && states.size() < kMostStates) {
    source->feed->Poll(kStep);
    // A moment in which a workload has no pod, or the server is not heard, is not a state.
    if (!cluster.Refresh(&state) || state.version == states.back().version) continue;
    states.push_back(state);
  }
  return states;
}

Result<void> WriteStarts(const std::string& path, const Profile& profile) {
  std::string lines;
  for (const State& state : profile.starts) {
    lines += StartStateLine(profile.scenario, state) + "\n";
  }
  return WriteFileAtomically(path, lines);
}

// Workloads that a policy cannot move, and a warning where that leaves it almost nothing to decide.
void SayWhatStays(const Session& session, const Application& application,
                  const kube::KubeCluster& cluster, const State& state, bool anonymous) {
  int pods = 0, movable = 0, told = 0, stay = 0;
  for (PodId pod = 0; pod < state.pods.size(); ++pod) {
    if (application.objects[state.pods.workload[pod]].is_external()) continue;
    ++pods;
    movable += state.workload_of(pod).movable;
  }
  for (WorkloadId w = 0; w < state.catalog->workload_count(); ++w) {
    if (cluster.obstacles(w).empty() || ++stay > kMostTold || anonymous) continue;
    ++told;
    Say(session, "Not movable: {} ({})", state.catalog->workloads[w].name,
        fmt::join(cluster.obstacles(w), "; "));
  }
  if (stay > told) {
    Say(session, "Not movable: {}{}", told > 0 ? "and " : "",
        Counted(stay - told, told > 0 ? "further workload" : "workload"));
  }
  if (pods > 0 && movable < kFewMovable * pods) {
    Say(session,
        "Warning: {} of {} can be moved. A policy that is trained on this scenario has almost "
        "nothing to decide.",
        movable, Counted(pods, "pod"));
  }
}

void SayWhatIsMissing(const Session& session, const Profile& profile) {
  if (profile.left_out > 0) {
    Say(session, "Left out: {} with other nodes than the last", Counted(profile.left_out, "state"));
  }
  if (profile.scenario.patterns[0]->call_count() > 1) return;
  Say(session,
      "Not known: who calls whom, latencies, speeds of nodes. No placement is better than another "
      "in this scenario; describe the calls in an application file and give it with "
      "--application.");
}

Result<ExitStatus> RunProfile(const Arguments& arguments, const Session& session) {
  const bool has_traces = arguments.Has("traces");
  if (!IsTraceServer(arguments)) TRY(arguments.Exclude("from", "for"));
  for (const char* option : {"application-out", "sampled"}) {
    TRY(arguments.Require(option, "traces"));
  }
  TRY_ASSIGN(ClusterSource source, OpenCluster(arguments));
  TRY_ASSIGN(
      std::shared_ptr<const Application> application,
      ApplicationOf(arguments, source, has_traces ? CallsInFile::kOptional : CallsInFile::kNeeded));
  const std::string path = arguments.Text("output").value_or("-");
  if (path != "-") TRY(CheckCanWrite(path));
  for (const char* option : {"starts", "application-out"}) {
    if (const auto written = arguments.Text(option)) TRY(CheckCanWrite(*written));
  }
  kube::KubeCluster cluster(source.mirror.get(), application);
  TRY_ASSIGN(std::vector<State> states, Observe(arguments, session, &source, cluster));
  const bool anonymous = arguments.Has("anonymize");
  std::string comment;
  if (has_traces) {
    TRY_ASSIGN(TracedCalls traced, ReadTracedCalls(arguments, session, application, source));
    application = std::move(traced.application);
    for (State& state : states) state.calls = application->calls;
    if (!anonymous) comment = std::move(traced.comment);
  }
  SayWhatStays(session, *application, cluster, states.back(), anonymous);
  TRY_ASSIGN(
      const Profile profile,
      MakeProfile(std::move(states), anonymous ? "cluster" : application->name, application->law,
                  anonymous ? ProfileNames::kAnonymous : ProfileNames::kKept));
  const Scenario& scenario = profile.scenario;
  if (const auto starts = arguments.Text("starts")) {
    TRY(WriteStarts(*starts, profile));
    Say(session, "Wrote {}: {}", *starts,
        Counted(static_cast<int64_t>(profile.starts.size()), "start state"));
  }
  SayWhatIsMissing(session, profile);
  if (path == "-") {
    TRY(Print(comment + ToYaml(scenario)));
    return ExitStatus::kDone;
  }
  TRY(WriteFileAtomically(path, comment + ToYaml(scenario)));
  const auto outside =
      std::count_if(application->objects.begin(), application->objects.end(),
                    [](const WorkloadObject& object) { return object.is_external(); });
  Say(session, "Wrote {}: {}, {}, up to {}{}", path, scenario.name,
      Counted(scenario.node_count(), "node"), Counted(scenario.pod_limit(), "pod"),
      outside == 0 ? ""
                   : fmt::format("; {} of the pods {} for what is outside of the cluster", outside,
                                 outside == 1 ? "stands" : "stand"));
  Say(session, "Next: rudderfish train {} -d runs/{} --time 60s", ShellWord(path),
      ShellWord(scenario.name));
  return ExitStatus::kDone;
}

}  // namespace

CommandSpec ProfileCommand() {
  std::vector<OptionSpec> options = ClusterOptions();
  options.push_back(
      {"--for", "TIME",
       "watch the cluster for this time, for example 10m (default: use only its current state)"});
  options.push_back({"--anonymize", "", "replace all names of the cluster in the output"});
  options.push_back({"--starts", "FILE", "also write the observed states as initial states"});
  options.push_back(
      {"--traces", "FILE|URL",
       "take calls and execution times from traces: a file of Jaeger or of OTLP/JSON, or Jaeger's "
       "address, such as http://jaeger:16686, which is asked for the time of --for (default: 1h)"});
  options.push_back({"--sampled", "RATIO",
                     "share of the requests that is traced, from which their rate follows "
                     "(default 1)"});
  options.push_back(
      {"--application-out", "FILE", "also write the application with what the traces show"});
  options.push_back({"-o,--output", "FILE", "file to write the scenario to (default stdout)"});
  return {.name = "profile",
          .summary = "Create a training scenario from a Kubernetes cluster",
          .operands = {{.name = "DUMP", .min = 0, .max = 100}},
          .options = options,
          .details =
              "Without --application and --traces the call graph is unknown. The scenario then "
              "contains nodes, workloads and replicas, but no placement in it is better than "
              "another. With --traces the application file may lack endpoints and execution times; "
              "docs/traces.md describes what traces must tell.",
          .examples = {"profile --application shop.yaml --for 10m -o shop-scenario.yaml",
                       "profile --from cluster.json --starts seen.jsonl -o cluster.yaml",
                       "profile --application shop.yaml --traces http://jaeger:16686 --for 10m "
                       "--application-out shop-traced.yaml -o shop-scenario.yaml"},
          .run = RunProfile};
}

}  // namespace rudderfish
