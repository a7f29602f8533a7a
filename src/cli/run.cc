// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <functional>

#include "base/log.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/files.h"
#include "cli/program.h"
#include "cli/terminal.h"
#include "run/control_loop.h"
#include "run/control_server.h"
#include "run/control_socket.h"
#include "run/placement_loop.h"
#include "run/rights.h"

namespace rudderfish {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kLongestWait(1000);
constexpr std::chrono::milliseconds kClusterSlice(100);  // Until the socket is looked at.
constexpr unsigned kGraceSeconds = 4;  // For what is being decided when the end is asked for.

volatile std::sig_atomic_t g_ending = 0;
volatile std::sig_atomic_t g_reload = 0;
int g_wake[2] = {-1, -1};

// All that is decided is in the journal at once, so that nothing is lost by ending here.
void OnAlarm(int) { ::_exit(0); }

void OnSignal(int signal) {
  const int error = errno;
  if (signal == SIGHUP) {
    g_reload = 1;
  } else {
    if (g_ending != 0) ::_exit(0);  // Whoever asks twice does not want to wait.
    g_ending = 1;
    ::alarm(kGraceSeconds);
  }
  const char byte = 0;
  [[maybe_unused]] const ssize_t written = ::write(g_wake[1], &byte, 1);
  errno = error;
}

Result<void> CatchSignals() {
  if (::pipe2(g_wake, O_CLOEXEC | O_NONBLOCK) != 0) {
    return Fail(ErrorCode::kUnavailable, "no pipe can be made");
  }
  struct sigaction action {};
  action.sa_handler = OnSignal;
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) ::sigaction(signal, &action, nullptr);
  action.sa_handler = OnAlarm;
  ::sigaction(SIGALRM, &action, nullptr);
  return {};
}

void DrainWake() {
  char bytes[64];
  while (::read(g_wake[0], bytes, sizeof bytes) > 0) {
  }
}

// The command line before the file, as everywhere: where the cluster is, what of it counts, who
// decides.
struct Overrides {
  std::string kubeconfig, context;
  std::vector<std::string> namespaces;
  std::string policy;

  bool names_a_cluster() const {
    return !kubeconfig.empty() || !context.empty() || !namespaces.empty();
  }
};

Result<Overrides> OverridesFrom(const Arguments& arguments) {
  Overrides given{.kubeconfig = arguments.Text("kubeconfig").value_or(""),
                  .context = arguments.Text("context").value_or(""),
                  .namespaces = {},
                  .policy = arguments.Text("policy").value_or("")};
  if (arguments.Has("namespace")) {
    TRY_ASSIGN(given.namespaces, arguments.List("namespace"));
  }
  return given;
}

Result<Config> ConfigFrom(const fs::path& path, const Overrides& given) {
  TRY_ASSIGN(Config config, LoadConfig(path));
  if (config.cluster.is_simulated() && given.names_a_cluster()) {
    return Invalid(
        "--kubeconfig, --context and --namespace are of a live cluster; {} names a "
        "simulated one",
        path.string());
  }
  if (!given.kubeconfig.empty()) config.cluster.kubeconfig = given.kubeconfig;
  if (!given.context.empty()) config.cluster.context = given.context;
  if (!given.namespaces.empty()) config.scope.namespaces = given.namespaces;
  if (!given.policy.empty()) {
    config.migration.policy = given.policy;
    config.migration.policy_node = {};
  }
  return config;
}

Result<ControlPlan> PlanFrom(const fs::path& path, const Overrides& given) {
  TRY_ASSIGN(const Config config, ConfigFrom(path, given));
  return ControlPlan::Make(config);
}

// A new file that is wrong changes nothing.
void Reload(const fs::path& path, const Overrides& given, ControlLoop* loop) {
  Result<ControlPlan> plan = PlanFrom(path, given);
  if (!plan) {
    LogError("the configuration stays as it was: {}", plan.error().message);
    return;
  }
  const std::string fixed = WhatNeedsARestart(loop->config(), plan->config());
  if (!fixed.empty()) {
    LogError(
        "the configuration stays as it was: {} cannot change while the program runs; start "
        "it anew",
        fixed);
    return;
  }
  loop->Reload(*std::move(plan));
  LogInfo("{} was read anew", path.string());
}

Result<void> Drive(RunLoop* loop, ControlSocket* socket, const std::function<void()>& reload) {
  const auto answer = [&](std::string_view request) { return loop->Answer(request); };
  bool goes_on = false;
  while (g_ending == 0) {
    const auto wait =
        goes_on ? std::chrono::milliseconds(0) : std::min(loop->UntilDue(), kLongestWait);
    if (loop->CanWait()) {  // The cluster has more to say than the socket.
      loop->Poll(std::min(wait, kClusterSlice));
      socket->Poll(std::chrono::milliseconds(0), g_wake[0], answer);
    } else {
      socket->Poll(wait, g_wake[0], answer);
      loop->Poll(std::chrono::milliseconds(0));
    }
    DrainWake();
    if (g_reload != 0) {
      g_reload = 0;
      reload();
    }
    if (g_ending != 0) break;
    goes_on = loop->UntilDue().count() == 0 && loop->Turn();
  }
  return {};
}

// Says what would be done, and asks the cluster whether it may be.
Result<ExitStatus> DryRun(const ControlPlan& plan) {
  const Config& config = plan.config();
  TRY(Print(plan.Describe()));
  TRY(CheckCanWrite(config.journal.path));
  if (config.cluster.is_simulated()) return ExitStatus::kDone;
  std::vector<const Application*> applications;
  for (const ControlPlan::Part& part : plan.parts()) {
    applications.push_back(part.watched.application.get());
  }
  TRY_ASSIGN(const RightsReport report, ReviewRights(config, applications));
  TRY(Print(report.text));
  if (report.missing.empty()) return ExitStatus::kDone;
  return Fail(ErrorCode::kFailedPrecondition, "rights are missing; add to {}",
              fmt::join(report.missing, ", and to "));
}

// Of a configuration that has pods placed.
Result<ExitStatus> RunPlacement(const Config& config, const Arguments& arguments) {
  if (!arguments.Text("policy").value_or("").empty())
    return Invalid("--policy is of migration; name the policy in `placement` of {}",
                   config.path.string());
  if (arguments.Has("namespace"))
    return Invalid("--namespace is of migration; pods are placed in all namespaces");
  if (arguments.Has("dry-run")) {
    TRY_ASSIGN(const std::string description, DescribePlacement(config));
    TRY(Print(description));
    TRY(CheckCanWrite(config.journal.path));
    TRY_ASSIGN(const RightsReport report, ReviewPlacementRights(config));
    TRY(Print(report.text));
    if (report.missing.empty()) return ExitStatus::kDone;
    return Fail(ErrorCode::kFailedPrecondition, "rights are missing; add to {}",
                fmt::join(report.missing, ", and to "));
  }
  TRY(CatchSignals());
  TRY_ASSIGN(const std::unique_ptr<ControlSocket> socket,
             ControlSocket::Listen(config.server.socket));
  const SystemClock clock;
  TRY_ASSIGN(const std::unique_ptr<ControlServer> server,
             ControlServer::Start(config.server.listen, &clock));
  if (!server->addresses().empty()) {
    LogInfo("/livez, /readyz and /metrics at {}", fmt::join(server->addresses(), ", "));
  }
  TRY_ASSIGN(const std::unique_ptr<PlacementLoop> loop,
             PlacementLoop::Start(config, &clock, server.get()));
  LogInfo("rudderfish {} runs: {}, journal {}", ProgramVersion(), loop->Describe(),
          config.journal.path.string());
  TRY(Drive(loop.get(), socket.get(), [] {
    LogError(
        "the configuration stays as it was: placement cannot change while the program runs; "
        "start it anew");
  }));
  ::alarm(static_cast<unsigned>(PlacementLoop::kStopLimit.count()) + 1);
  loop->Stop();
  ::alarm(0);
  LogInfo("rudderfish ends; everything decided is in the journal");
  return ExitStatus::kDone;
}

Result<ExitStatus> RunController(const Arguments& arguments) {
  const fs::path path = arguments.Text("config").value_or("rudderfish.yaml");
  TRY_ASSIGN(const Overrides given, OverridesFrom(arguments));
  TRY_ASSIGN(const Config config, ConfigFrom(path, given));
  if (config.places()) return RunPlacement(config, arguments);
  TRY_ASSIGN(ControlPlan plan, PlanFrom(path, given));
  if (arguments.Has("dry-run")) return DryRun(plan);
  TRY(CatchSignals());
  TRY_ASSIGN(const std::unique_ptr<ControlSocket> socket,
             ControlSocket::Listen(plan.config().server.socket));
  const SystemClock clock;
  TRY_ASSIGN(const std::unique_ptr<ControlServer> server,
             ControlServer::Start(plan.config().server.listen, &clock));
  if (!server->addresses().empty()) {
    LogInfo("/livez, /readyz and /metrics at {}", fmt::join(server->addresses(), ", "));
  }
  TRY_ASSIGN(const std::unique_ptr<ControlLoop> loop,
             ControlLoop::Start(std::move(plan), server.get()));
  LogInfo("rudderfish {} runs: {}, {} decides, journal {}", ProgramVersion(),
          ModeName(loop->config().migration.mode), loop->config().migration.policy,
          loop->config().journal.path.string());
  TRY(Drive(loop.get(), socket.get(), [&] { Reload(path, given, loop.get()); }));
  loop->Stop();
  ::alarm(0);
  LogInfo("rudderfish ends; everything decided is in the journal");
  return ExitStatus::kDone;
}

Result<ExitStatus> RunRun(const Arguments& arguments, const Session&) {
  static constexpr std::array<std::string_view, 2> kFormats = {"text", "json"};
  TRY_ASSIGN(const int format, arguments.Choice("log-format", kFormats, 0));
  SetLogFormat(format == 1 ? LogFormat::kJson : LogFormat::kText);
  Result<ExitStatus> ended = RunController(arguments);
  if (ended || format == 0) return ended;
  LogError("{}", ended.error().message);  // Whoever reads the log reads JSON.
  return StatusOf(ended.error().code);
}

}  // namespace

CommandSpec RunCommand() {
  return {.name = "run",
          .summary = "the controller: watches a cluster, decides, writes down what it would do",
          .options = {{"-c,--config", "FILE", "rudderfish.yaml by default"},
                      {"--kubeconfig", "FILE", "in place of what the configuration says"},
                      {"--context", "NAME", "the same"},
                      {"-n,--namespace", "NS[,NS...]", "in place of its `scope.namespaces`"},
                      {"--policy", "POLICY", "in place of its `policies.migration.policy`"},
                      {"--dry-run", "",
                       "check everything, rights in the cluster too, say what would be done, and "
                       "end"},
                      {"--log-format", "text|json", "of what is said on stderr; text by default"}},
          .details =
              "Pods are moved in mode shadow only, in this version: nothing in the cluster is "
              "touched, what would be moved is recorded in the journal, which `decisions` "
              "and `explain` read, also while it runs.\n"
              "With a section `placement` it is a scheduler for the pods that name it, with a "
              "section `extender` it is asked by kube-scheduler (docs/placement.md).\n"
              "SIGHUP reads the file anew; one that is wrong changes nothing. SIGTERM and "
              "SIGINT end within 5 s, within 10 s where pods are placed, whose Events are still "
              "written; the second one ends at once.",
          .examples = {"run --config rudderfish.yaml --dry-run",
                       "run --config rudderfish.yaml --log-format json"},
          .run = RunRun};
}

}  // namespace rudderfish
