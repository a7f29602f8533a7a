// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "base/files.h"
#include "cli/commands.h"
#include "cli/controller_client.h"
#include "cli/reach_experiment.h"
#include "cli/stop_signals.h"
#include "cli/terminal.h"
#include "kube/kubeconfig.h"
#include "run/config.h"
#include "scenario/application_file.h"

// `reach`: the experiments of REACH's migrator, with its options, its .env file and its CSV
// columns, around a controller that runs.

namespace rudderfish {
namespace {

constexpr std::string_view kReachModes[] = {"monitoring", "test", "pod_distribution", "nodefailed",
                                            "autoscaling"};
enum class ReachMode { kMonitoring, kTest, kPodDistribution, kNodeFailed, kAutoscaling };

constexpr std::string_view kReachStrategies[] = {"rl", "be"};
constexpr double kMostReachSeconds = 1e6;

struct ReachOptions {
  ReachMode mode = ReachMode::kMonitoring;
  ReachExperimentPlan plan;
  Duration length = Duration::max();  // --for
  Duration stable_start{}, experiment_waiting{}, before_failure{}, after_failure{};
  Duration measured{}, settled{};
  std::vector<std::string> failing;
  WorkloadId scaled = kNone;
  int64_t target_replicas = 0;
};

// Whole seconds, as REACH takes them, or a duration with its unit.
Result<Duration> ReachSeconds(const Arguments& arguments, std::string_view name, double default_s) {
  const std::string text = arguments.Text(name).value_or("");
  double seconds = default_s;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, seconds);
  if (!text.empty() && (read.ec != std::errc() || read.ptr != end)) {
    TRY_ASSIGN(seconds, arguments.Seconds(name, default_s));
  }
  if (!(seconds >= 0 && seconds <= kMostReachSeconds))
    return Invalid("--{}: expected seconds from 0 to {:g}, found `{}`", name, kMostReachSeconds,
                   text);
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

Result<ReachSettings> SettingsOf(const Arguments& arguments) {
  const std::string path = arguments.Text("env").value_or(".env");
  Result<std::string> text = ReadFile(path);
  if (!text && text.error().code == ErrorCode::kNotFound && !arguments.Has("env")) text = "";
  if (!text) return tl::unexpected(text.error());
  return ParseReachSettings(*text, path, [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return name == "KUBECONFIG" ? "" : value;  // It is found as kubectl finds it.
  });
}

Result<WorkloadId> WorkloadNamed(const Application& application, const std::string& name) {
  const auto& workloads = application.catalog->workloads;
  for (size_t w = 0; w < workloads.size(); ++w) {
    if (workloads[w].name == name && !application.objects[w].is_external())
      return static_cast<WorkloadId>(w);
  }
  return Invalid("--workload: {} has no workload `{}`", application.name, name);
}

// What only one of the modes takes.
Result<void> ReadModeOptions(const Arguments& arguments, ReachOptions* options) {
  if (options->mode == ReachMode::kNodeFailed) {
    for (const char* name : {"target_node_a", "target_node_b"}) {
      if (const auto node = arguments.Text(name)) options->failing.push_back(*node);
    }
    if (options->failing.empty())
      return Invalid("--target_node_a: nodefailed needs the name of a node");
  }
  if (options->mode != ReachMode::kAutoscaling) return {};
  TRY(arguments.RequiredText("target_replica", "how many replicas the workload gets"));
  TRY_ASSIGN(options->target_replicas, arguments.Integer("target_replica", 1, 0, 10'000));
  TRY_ASSIGN(options->scaled, WorkloadNamed(*options->plan.application,
                                            arguments.Text("workload").value_or("aggregator")));
  return {};
}

Result<void> CheckWhatMeasures(const ReachOptions& options) {
  const ReachSettings& settings = options.plan.settings;
  const bool needs_entry = options.mode == ReachMode::kTest
                               ? settings.jaeger_url.empty()
                               : options.mode != ReachMode::kPodDistribution;
  if (!needs_entry || !settings.entry_url.empty()) return {};
  return Invalid("ENTRY_SERVICE_URL{} is not set; write it into the .env file",
                 options.mode == ReachMode::kTest ? " or JAEGER_URL" : "");
}

Result<ReachOptions> ReachOptionsOf(const Arguments& arguments, const Config& config) {
  ReachOptions options;
  TRY_ASSIGN(const int mode, ChoiceOf(arguments.operands()[0], kReachModes));
  options.mode = static_cast<ReachMode>(mode);
  TRY_ASSIGN(const int strategy, arguments.Choice("strategy", kReachStrategies, 0));
  options.plan.strategy = static_cast<ReachStrategy>(strategy);
  if (config.cluster.is_simulated())
    return Invalid("{}: `reach` needs a live cluster", config.path.string());
  if (config.applications.size() != 1) {
    return Invalid("{}: `reach` watches one application, and `applications` lists {}",
                   config.path.string(), config.applications.size());
  }
  TRY_ASSIGN(Application application, LoadApplication(config.applications[0]));
  options.plan.application = std::make_shared<const Application>(std::move(application));
  options.plan.socket = config.server.socket;
  if (const auto socket = arguments.Text("socket")) options.plan.socket = *socket;
  TRY_ASSIGN(options.plan.settings, SettingsOf(arguments));
  TRY_ASSIGN(const int64_t qos_ms, arguments.Integer("qos", 250, 0, 1'000'000));
  options.plan.qos_ms = static_cast<double>(qos_ms);
  TRY_ASSIGN(options.stable_start, ReachSeconds(arguments, "stable_start_time", 60));
  TRY_ASSIGN(options.experiment_waiting, ReachSeconds(arguments, "experiment_waiting_time", 60));
  TRY_ASSIGN(options.before_failure, ReachSeconds(arguments, "t", 120));
  TRY_ASSIGN(options.after_failure, ReachSeconds(arguments, "after_wait_time", 200));
  TRY_ASSIGN(options.measured, ReachSeconds(arguments, "measure", 60));
  TRY_ASSIGN(options.settled, ReachSeconds(arguments, "settle", 20));
  if (arguments.Has("for")) {
    TRY_ASSIGN(options.length, ReachSeconds(arguments, "for", 0));
  }
  TRY(ReadModeOptions(arguments, &options));
  TRY(CheckWhatMeasures(options));
  return options;
}

std::vector<std::string> ServicesOf(const ReachOptions& options,
                                    const ReachExperiment& experiment) {
  std::vector<std::string> services;
  for (const WorkloadId w : experiment.Workloads())
    services.push_back(ReachServiceName(
        options.plan.application->catalog->workloads[static_cast<size_t>(w)].name));
  return services;
}

// Until --for is over, or a signal comes.
Result<void> Monitor(const ReachOptions& options, ReachExperiment* experiment) {
  experiment->FollowLatency();
  constexpr Duration kALongTime = std::chrono::hours(24 * 365);
  TRY(experiment->Spend(std::min(options.length, kALongTime)));
  return {};
}

Result<void> Compare(const ReachOptions& options, ReachExperiment* experiment, ReachCsv* csv) {
  TRY_ASSIGN(const ReachLatencies start, experiment->Average(options.measured));
  if (options.plan.strategy == ReachStrategy::kBestEffort) return csv->Add(BestEffortCells(start));
  TRY_ASSIGN(const int steps, experiment->Episode());
  TRY_ASSIGN(const bool goes_on, experiment->Spend(options.settled));
  if (!goes_on) return Fail(ErrorCode::kCancelled, "stopped by a signal");
  TRY_ASSIGN(const ReachLatencies end, experiment->Average(options.measured));
  return csv->Add(LearnedCells(start, end, steps));
}

Result<void> Distribute(const ReachOptions& options, ReachExperiment* experiment,
                        ReachCluster* cluster, ReachCsv* csv) {
  if (options.plan.strategy == ReachStrategy::kLearned) TRY(experiment->Episode());
  CsvRow row;
  for (const WorkloadId w : experiment->Workloads()) {
    for (const std::string& node : cluster->Nodes())
      row.push_back(std::to_string(cluster->PodsOn(w, node)));
  }
  return csv->Add(row);
}

// Ends early, and in order, where a signal comes.
Result<void> FailNodes(const ReachOptions& options, ReachExperiment* experiment,
                       const ReachCluster& cluster) {
  for (const std::string& node : options.failing) TRY(cluster.CheckOpen(node));
  TRY_ASSIGN(bool goes_on, experiment->Spend(options.stable_start));
  if (!goes_on) return {};
  TRY(experiment->Write({.event = "experiment_start"}));
  TRY_ASSIGN(goes_on, experiment->Spend(options.experiment_waiting));
  if (!goes_on) return {};
  experiment->FollowLatency();
  TRY_ASSIGN(goes_on, experiment->Spend(options.before_failure));
  if (!goes_on) return {};
  experiment->FollowNothing();
  TRY(experiment->Hold());
  for (const std::string& node : options.failing) TRY(experiment->FailNode(node));
  TRY(experiment->WaitReady());
  // The nodes stay closed while pods are moved between the others.
  experiment->FollowLatency();
  TRY(experiment->Spend(options.after_failure));
  return experiment->RecoverNodes();
}

// After the first plan has ended; without a controller after a time.
Result<void> ScaleUp(const ReachOptions& options, ReachExperiment* experiment,
                     ReachCluster* cluster, const Session& session) {
  experiment->FollowLatency();
  bool goes_on = true;
  if (options.plan.strategy == ReachStrategy::kBestEffort) {
    TRY_ASSIGN(goes_on, experiment->Spend(options.experiment_waiting));
  }
  while (goes_on && options.plan.strategy == ReachStrategy::kLearned &&
         experiment->plans_ended() == 0) {
    TRY_ASSIGN(goes_on, experiment->Spend(options.plan.settings.polling_period));
  }
  if (!goes_on) return {};
  TRY_ASSIGN(const int64_t before, cluster->Scale(options.scaled, options.target_replicas));
  Say(session, "{} had {} replicas, and has {} from now on",
      options.plan.application->catalog->workloads[static_cast<size_t>(options.scaled)].name,
      before, options.target_replicas);
  TRY(experiment->Write({.event = "autoscaling"}));
  TRY_ASSIGN(goes_on, experiment->Spend(options.plan.settings.polling_period));
  if (goes_on) TRY(experiment->WaitReady());
  TRY(experiment->Write({.event = "autoscaling"}));
  return goes_on ? Monitor(options, experiment) : Result<void>();
}

CsvRow ColumnsOf(const ReachOptions& options, const ReachExperiment& experiment,
                 const ReachCluster& cluster) {
  const std::vector<std::string> services = ServicesOf(options, experiment);
  if (options.mode == ReachMode::kTest) {
    return options.plan.strategy == ReachStrategy::kBestEffort ? ReachBestEffortColumns(services)
                                                               : ReachLearnedColumns(services);
  }
  if (options.mode != ReachMode::kPodDistribution) return ReachTimeColumns();
  std::vector<std::string> nodes;
  for (const std::string& node : cluster.Nodes()) nodes.push_back(ReachNodeName(node));
  return ReachDistributionColumns(services, nodes);
}

Result<void> RunReachMode(const ReachOptions& options, ReachExperiment* experiment,
                          ReachCluster* cluster, ReachCsv* csv, const Session& session) {
  switch (options.mode) {
    case ReachMode::kMonitoring:
      return Monitor(options, experiment);
    case ReachMode::kTest:
      return Compare(options, experiment, csv);
    case ReachMode::kPodDistribution:
      return Distribute(options, experiment, cluster, csv);
    case ReachMode::kNodeFailed:
      return FailNodes(options, experiment, *cluster);
    case ReachMode::kAutoscaling:
      return ScaleUp(options, experiment, cluster, session);
  }
  return {};
}

Result<ExitStatus> RunReach(const Arguments& arguments, const Session& session) {
  TRY_ASSIGN(const Config config, LoadConfig(arguments.Text("config").value_or("rudderfish.yaml")));
  TRY_ASSIGN(const ReachOptions options, ReachOptionsOf(arguments, config));
  const std::string kubeconfig = config.cluster.kubeconfig.string();
  const kube::KubeconfigChoice choice{
      .kubeconfig = kubeconfig.empty() ? options.plan.settings.kubeconfig : kubeconfig,
      .context = config.cluster.context};
  TRY_ASSIGN(kube::ClusterAccess access,
             kube::FindCluster(choice, kube::KubeEnvironment::OfProcess()));
  const std::atomic<bool>& is_stopped = StopOnSignals();
  TRY_ASSIGN(const std::unique_ptr<ReachCluster> cluster,
             ReachCluster::Open(std::move(access), options.plan.application));
  std::optional<ReachCsv> csv;
  const bool has_times =
      options.mode != ReachMode::kTest && options.mode != ReachMode::kPodDistribution;
  ReachExperiment experiment(options.plan, cluster.get(), has_times ? &csv : nullptr, &session);
  TRY_ASSIGN(csv, ReachCsv::Open(arguments.Text("output").value_or("-"),
                                 ColumnsOf(options, experiment, *cluster)));
  TRY(experiment.Begin());
  Result<void> done = RunReachMode(options, &experiment, cluster.get(), &*csv, session);
  if (!done && done.error().code != ErrorCode::kCancelled) return tl::unexpected(done.error());
  Say(session, "{}", experiment.EndText());
  const bool is_endless =
      has_times && options.mode != ReachMode::kNodeFailed && options.length == Duration::max();
  return is_stopped && !is_endless ? ExitStatus::kInterrupted : ExitStatus::kDone;
}

}  // namespace

CommandSpec ReachCommand() {
  return {
      .name = "reach",
      .summary = "Run an experiment of REACH's migrator around the running controller",
      .operands = {{.name = "monitoring|test|pod_distribution|nodefailed|autoscaling"}},
      .options =
          {{"--strategy", "rl|be",
            "rl: the controller moves pods; be (best effort): it is paused, and kube-scheduler "
            "alone places them (default rl)"},
           {"--output", "FILE", "CSV file to append rows to (default stdout)"},
           {"--qos", "MS",
            "mean latency above which the controller may move pods (default 250; with test and "
            "pod_distribution it always may)"},
           {"--env", "FILE",
            "REACH's .env file, with ENTRY_SERVICE_URL, JAEGER_URL, POLLING_PERIOD, ALPHA, "
            "MAX_STEP and MAX_POD_WAITING_RETRIES (default .env, if it exists); environment "
            "variables take precedence"},
           {"--for", "TIME", "monitoring, autoscaling: end after this time (default: on Ctrl-C)"},
           {"--measure", "TIME", "test: time that is measured before and after (default 60s)"},
           {"--settle", "TIME",
            "test: time between the last move and the measurement (default 20s)"},
           {"--target_node_a", "NODE", "nodefailed: node that fails"},
           {"--target_node_b", "NODE", "nodefailed: second node that fails"},
           {"--stable_start_time", "SECONDS", "nodefailed: wait before the start (default 60)"},
           {"--experiment_waiting_time", "SECONDS",
            "nodefailed: then wait before pods are moved; autoscaling with be: wait before "
            "scaling (default 60)"},
           {"--t", "SECONDS", "nodefailed: then wait before the nodes fail (default 120)"},
           {"--after_wait_time", "SECONDS",
            "nodefailed: wait before the nodes recover (default 200)"},
           {"--target_replica", "COUNT", "autoscaling: replicas after scaling"},
           {"--workload", "NAME", "autoscaling: workload that is scaled (default aggregator)"},
           kRunningConfigOption,
           kSocketOption},
      .details =
          "monitoring writes latency over time, test the mean latencies before and after the "
          "moves, pod_distribution how many pods of each service run on each node; nodefailed "
          "lets nodes fail and recover, autoscaling changes the replicas of a workload. The "
          "controller of the configuration must run and its migration must be in canary or "
          "enforce. It is paused whenever the experiment wants no move, and at the end left as it "
          "was found (docs/serve-reach.md).",
      .examples = {"reach monitoring --output latency.csv --qos 250 --for 10m",
                   "reach test --strategy be --output be.csv",
                   "reach nodefailed --target_node_a edge-1 --target_node_b edge-2 --output f.csv"},
      .run = RunReach};
}

}  // namespace rudderfish
