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
#include "run/control_server.h"
#include "run/control_socket.h"
#include "run/host.h"
#include "run/run_review.h"

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
    if (g_ending != 0) ::_exit(0);  // A second signal ends it at once.
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
        "--kubeconfig, --context and --namespace only apply to a live cluster; {} names a "
        "simulated one",
        path.string());
  }
  if (!given.kubeconfig.empty()) config.cluster.kubeconfig = given.kubeconfig;
  if (!given.context.empty()) config.cluster.context = given.context;
  if (!given.namespaces.empty() && !config.migration) {
    return Invalid("--namespace only applies to migration; placement covers all namespaces");
  }
  if (!given.namespaces.empty()) config.scope.namespaces = given.namespaces;
  if (!given.policy.empty()) {
    if (!config.migration)
      return Invalid("--policy only applies to migration; set decisions.placement.policy in {}",
                     path.string());
    config.migration->policy = given.policy;
    config.migration->policy_node = {};
  }
  return config;
}

// A new file that is wrong changes nothing.
void Reload(const fs::path& path, const Overrides& given, Host* host) {
  const Result<Config> config = ConfigFrom(path, given);
  const Result<void> reloaded = config ? host->Reload(*config) : tl::unexpected(config.error());
  if (reloaded) {
    LogInfo("{} reloaded", path.string());
  } else {
    LogError("configuration not reloaded: {}", reloaded.error().message);
  }
}

Result<void> Drive(Host* loop, ControlSocket* socket, const std::function<void()>& reload) {
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
Result<ExitStatus> DryRun(Config config) {
  TRY(Print(TakeKeptModes(&config)));
  TRY_ASSIGN(const std::string description, DescribeRun(config));
  TRY(Print(description));
  TRY(CheckCanWrite(config.journal.path));
  if (!config.has_cluster()) return ExitStatus::kDone;
  TRY_ASSIGN(const RightsReport report, ReviewRunRights(config));
  TRY(Print(report.text));
  if (report.missing.empty()) return ExitStatus::kDone;
  return Fail(ErrorCode::kFailedPrecondition, "permissions are missing; add to {}",
              fmt::join(report.missing, ", and to "));
}

Result<ExitStatus> RunController(const Arguments& arguments) {
  const fs::path path = arguments.Text("config").value_or("rudderfish.yaml");
  TRY_ASSIGN(const Overrides given, OverridesFrom(arguments));
  TRY_ASSIGN(const Config config, ConfigFrom(path, given));
  if (arguments.Has("dry-run")) return DryRun(config);
  TRY(CatchSignals());
  TRY_ASSIGN(const std::unique_ptr<ControlSocket> socket,
             ControlSocket::Listen(config.server.socket));
  const SystemClock clock;
  TRY_ASSIGN(const std::unique_ptr<ControlServer> server,
             ControlServer::Start(config.server.listen, &clock));
  if (!server->addresses().empty()) {
    LogInfo("/livez, /readyz and /metrics at {}", fmt::join(server->addresses(), ", "));
  }
  TRY_ASSIGN(const std::unique_ptr<Host> host, Host::Start(config, &clock, server.get()));
  LogInfo("rudderfish {} runs: {}; journal {}", ProgramVersion(), host->Describe(),
          config.journal.path.string());
  TRY(Drive(host.get(), socket.get(), [&] { Reload(path, given, host.get()); }));
  ::alarm(static_cast<unsigned>(Host::kStopLimit.count()) + 1);
  host->Stop();
  ::alarm(0);
  const std::string missing = host->JournalTrouble();
  LogInfo("rudderfish shut down; {}", missing.empty()
                                          ? "all decisions are in the journal"
                                          : "decisions may be missing in the journal: " + missing);
  return ExitStatus::kDone;
}

Result<ExitStatus> RunRun(const Arguments& arguments, const Session&) {
  static constexpr std::array<std::string_view, 2> kFormats = {"text", "json"};
  TRY_ASSIGN(const int format, arguments.Choice("log-format", kFormats, 0));
  SetLogFormat(format == 1 ? LogFormat::kJson : LogFormat::kText);
  Result<ExitStatus> ended = RunController(arguments);
  if (ended || format == 0) return ended;
  LogError("{}", ended.error().message);  // With a log in JSON the error is JSON, too.
  return StatusOf(ended.error().code);
}

}  // namespace

CommandSpec RunCommand() {
  return {
      .name = "run",
      .summary = "Run the controller: watch a cluster, decide, and record or apply decisions",
      .options = {{"-c,--config", "FILE", "configuration file (default rudderfish.yaml)"},
                  {"--kubeconfig", "FILE", "kubeconfig file; overrides cluster.kubeconfig"},
                  {"--context", "NAME", "context of the kubeconfig; overrides cluster.context"},
                  {"-n,--namespace", "NS[,NS...]", "namespaces; overrides scope.namespaces"},
                  {"--policy", "POLICY",
                   "policy of migration; overrides decisions.migration.policy"},
                  {"--dry-run", "",
                   "check the configuration, the connection and the permissions in the cluster, "
                   "then exit"},
                  {"--log-format", "text|json", "format of the log on stderr (default text)"}},
      .details =
          "`decisions` in the configuration names the kinds of decision that the process makes.\n"
          "With `placement` it is a scheduler for the pods that name it in `schedulerName`; with "
          "the section `extender` it answers requests of kube-scheduler (docs/placement.md). With "
          "`migration` it moves running pods (docs/moving.md), with `routing` it splits requests "
          "between regions (docs/routing.md). Each kind begins in the mode that the configuration "
          "names, by default shadow, in which decisions are only recorded in the journal; "
          "`promote` advances it. It does not scale workloads on a live cluster yet. `decisions` "
          "and `explain` read the journal, also while the controller runs.\nSIGHUP reloads the "
          "configuration file; an invalid file changes "
          "nothing. SIGTERM and SIGINT shut down within 10 s, in which Events are flushed; a "
          "second signal exits immediately.",
      .examples = {"run --config rudderfish.yaml --dry-run",
                   "run --config rudderfish.yaml --log-format json"},
      .run = RunRun};
}

}  // namespace rudderfish
