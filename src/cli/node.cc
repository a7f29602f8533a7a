// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/log.h"
#include "base/start_pages.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/stop_signals.h"
#include "cli/terminal.h"
#include "compat/drs.h"
#include "net/http_server.h"
#include "net/stream_server.h"
#include "node/node_agent.h"
#include "serve/operations.h"

namespace rudderfish {
namespace {

constexpr std::string_view kDefaultListen = ":9100";
constexpr int64_t kPeersMax = 10'000;
constexpr int64_t kProbesPerSecondMax = 1000;
constexpr size_t kNodeNameMax = 253;
constexpr double kMsPerS = 1000;
constexpr Duration kBetweenReleases = std::chrono::seconds(30);

// ":9100" is every address of IPv4.
std::string ListenText(const std::string& text) {
  return text.starts_with(':') ? "0.0.0.0" + text : text;
}

Result<std::string> NodeName(const Arguments& arguments) {
  std::string name = arguments.Text("node").value_or("");
  if (name.empty() && !arguments.Has("node")) {
    char host[kNodeNameMax + 1] = "";
    ::gethostname(host, kNodeNameMax);
    name = host;
  }
  const bool is_plain = std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_';
  });
  if (name.empty() || name.size() > kNodeNameMax || !is_plain)
    return Invalid("--node: expected the name of a node, found `{}`", name);
  return name;
}

Result<std::vector<HostAndPort>> HostsOf(const Arguments& arguments, std::string_view option) {
  std::vector<HostAndPort> hosts;
  if (!arguments.Has(option)) return hosts;
  TRY_ASSIGN(const std::vector<std::string> texts, arguments.List(option));
  for (const std::string& text : texts) {
    TRY_ASSIGN(const HostAndPort host, OfOption(option, ParseHostAndPort(text)));
    hosts.push_back(host);
  }
  return hosts;
}

Result<Duration> PeriodOf(const Arguments& arguments, std::string_view option, double fallback) {
  TRY_ASSIGN(const double seconds, arguments.Seconds(option, fallback));
  if (seconds < 0.05 || seconds > 3600) return Invalid("--{}: expected 50ms to 1h", option);
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

Result<NodeAgentOptions> AgentOptions(const Arguments& arguments, const std::string& listening) {
  NodeAgentOptions options;
  TRY_ASSIGN(options.node, NodeName(arguments));
  TRY_ASSIGN(const HostAndPort own, ParseHostAndPort(listening));
  options.listen_ip = own.host;
  options.port = own.port;
  options.sources.proc = arguments.Text("proc").value_or("/proc");
  options.sources.sys = arguments.Text("sys").value_or("/sys");
  if (arguments.Has("interfaces")) {
    TRY_ASSIGN(options.sources.interfaces, arguments.List("interfaces"));
  }
  if (arguments.Has("disks")) {
    TRY_ASSIGN(options.sources.disks, arguments.List("disks"));
  }
  TRY_ASSIGN(options.peers, HostsOf(arguments, "peers"));
  for (HostAndPort& peer : options.peers) {
    if (!peer.has_port) peer.port = own.port;
  }
  TRY_ASSIGN(options.users, HostsOf(arguments, "users"));
  TRY_ASSIGN(const int64_t peers_max, arguments.Integer("peers-max", 32, 0, kPeersMax));
  options.peers_max = static_cast<size_t>(peers_max);
  TRY_ASSIGN(const int64_t rate, arguments.Integer("probes-per-second", 5, 1, kProbesPerSecondMax));
  options.probes_per_second = static_cast<double>(rate);
  TRY_ASSIGN(options.interval, PeriodOf(arguments, "interval", 1));
  // Metrics count from the start, whenever they are read; DRS's states are of half seconds.
  TRY_ASSIGN(options.period, PeriodOf(arguments, "period", arguments.Has("drs-monitor") ? 0.5 : 2));
  return options;
}

// The agent begins once the HTTP server has chosen its port; the server's threads ask for it.
using AgentAt = std::atomic<const NodeAgent*>;

std::optional<StreamAnswer> DrsAnswer(const AgentAt& agent_at) {
  const NodeAgent* agent = agent_at.load();
  const std::optional<NodeUsage> usage = agent == nullptr ? std::nullopt : agent->Usage();
  // Its clients take any text for a state: where there is none, nothing is said.
  if (!usage) return StreamAnswer{};
  return StreamAnswer{
      .bytes = DrsStateText({usage->cpu_percent, usage->memory_percent, usage->received_kib_per_s,
                             usage->transmitted_kib_per_s, usage->read_kib_per_s,
                             usage->written_kib_per_s}),
      .after = StreamAnswer::After::kKeep};
}

HttpResponse LatencyAnswer(const NodeAgent& agent) {
  const auto trips = agent.UserTrips(0);
  if (!trips) {
    return {.status = 503,
            .content_type = "text/plain; charset=utf-8",
            .body = trips.error().message + "\n",
            .note = trips.error().message};
  }
  return {.content_type = "text/html; charset=utf-8",
          .body = fmt::format("{:.2f}", trips->mean * kMsPerS)};
}

HttpRoutes AgentRoutes(const AgentAt* agent_at, const HealthChecks* live, const HealthChecks* ready,
                       const MetricRegistry* metrics) {
  HttpRoutes routes;
  routes.Add("GET", "/livez", [live](const HttpRequest& request) { return (*live)(request); });
  routes.Add("GET", "/readyz", [ready](const HttpRequest& request) { return (*ready)(request); });
  routes.Add("GET", "/metrics", [agent_at, metrics](const HttpRequest&) {
    const NodeAgent* agent = agent_at->load();
    return HttpResponse{.content_type = std::string(kMetricsContentType),
                        .body = (agent == nullptr ? "" : agent->Metrics()) + metrics->Text()};
  });
  return routes;
}

void AddChecks(const AgentAt* agent_at, HealthChecks* live, HealthChecks* ready) {
  live->Add("measuring", [agent_at] {
    const NodeAgent* agent = agent_at->load();
    return agent == nullptr ? std::string() : agent->WhyNotAlive();
  });
  ready->Add("node", [agent_at] {
    const NodeAgent* agent = agent_at->load();
    return agent == nullptr ? std::string("it is starting") : agent->WhyNotReady();
  });
}

// What DRS's and the thesis' programs ask, on ports of their own.
struct OldWires {
  std::unique_ptr<StreamServer> drs;
  std::unique_ptr<HttpServer> latency;
};

Result<OldWires> ServeOldWires(const Arguments& arguments, const AgentAt* agent_at,
                               const Clock* clock, MetricRegistry* metrics) {
  OldWires wires;
  if (const auto address = arguments.Text("drs-monitor")) {
    TRY_ASSIGN(wires.drs,
               OfOption("drs-monitor",
                        StreamServer::Start({.wire = "drs-monitor",
                                             .listen = {ListenText(*address)},
                                             .idle_limit = Duration(0)},
                                            metrics, [agent_at](std::string_view, StreamEvent) {
                                              return DrsAnswer(*agent_at);
                                            })));
  }
  if (const auto address = arguments.Text("latency-app")) {
    TRY(arguments.Require("latency-app", "users"));
    HttpRoutes routes;
    routes.Add("GET", "/",
               [agent_at](const HttpRequest&) { return LatencyAnswer(*agent_at->load()); });
    TRY_ASSIGN(
        wires.latency,
        OfOption("latency-app", HttpServer::Start({.listen = {ListenText(*address)}, .threads = 1},
                                                  Observed(std::move(routes), clock, metrics))));
  }
  return wires;
}

Result<ExitStatus> RunNode(const Arguments& arguments, const Session& session) {
  ReturnFreedMemory();
  MetricRegistry metrics;
  metrics.AddBuild(ProgramVersion());
  AgentAt agent_at = nullptr;
  HealthChecks live("livez"), ready("readyz");
  AddChecks(&agent_at, &live, &ready);
  const SystemClock clock;
  const StopSignals signals;
  TRY(AgentOptions(arguments, "127.0.0.1:1"));  // What is wrong in them is said before it listens.
  const std::string address =
      ListenText(arguments.Text("listen").value_or(std::string(kDefaultListen)));
  TRY_ASSIGN(
      const auto server,
      OfOption("listen", HttpServer::Start({.listen = {address}, .threads = 1},
                                           Observed(AgentRoutes(&agent_at, &live, &ready, &metrics),
                                                    &clock, &metrics))));
  TRY_ASSIGN(NodeAgentOptions options, AgentOptions(arguments, server->addresses()[0]));
  const std::string node = options.node;
  TRY_ASSIGN(const std::unique_ptr<NodeAgent> agent, NodeAgent::Start(std::move(options), &clock));
  agent_at = agent.get();
  TRY_ASSIGN(const OldWires wires, ServeOldWires(arguments, &agent_at, &clock, &metrics));
  std::vector<std::string> also;
  if (wires.drs != nullptr) also.push_back("getState at " + wires.drs->addresses()[0]);
  if (wires.latency != nullptr)
    also.push_back("the latency app at " + wires.latency->addresses()[0]);
  Say(session, "Node {}: /metrics and probes at {}{}{}; SIGTERM ends it", node,
      server->addresses()[0], also.empty() ? "" : ", ", fmt::join(also, ", "));
  std::optional<int> signal;
  while (!signal) {
    static_cast<void>(ReleaseStartPages());  // Where that cannot be, it is as large as before.
    signal = signals.WaitFor(kBetweenReleases);
  }
  LogInfo("{}: ending", ::strsignal(*signal));
  if (wires.latency != nullptr) wires.latency->Stop(kStopDeadline / 4);
  if (!server->Stop(kStopDeadline / 2)) LogWarning("requests that took too long were cut");
  return ExitStatus::kDone;
}

}  // namespace

CommandSpec NodeCommand() {
  return {
      .name = "node",
      .summary = "Run the agent of a node: measure it and its latencies, for Prometheus",
      .options =
          {{"--listen", "ADDRESS",
            "address of /metrics, /livez and /readyz over TCP and of probes over UDP (default "
            ":9100)"},
           {"--node", "NAME", "name of the node in the cluster (default: the host name)"},
           {"--peers", "HOST[:PORT][,...]",
            "the other agents, by address or by a name that DNS knows all of them by, such as "
            "that of a headless Service"},
           {"--users", "HOST[:PORT][,...]",
            "where users are: the time to connect to a port, or an ICMP echo without one"},
           {"--peers-max", "N", "number of agents that this one probes at most (default 32)"},
           {"--probes-per-second", "N", "number of probes a second at most (default 5)"},
           {"--interval", "TIME", "time between two probes of one target at least (default 1s)"},
           {"--period", "TIME",
            "time between two readings of the node (default 2s, with --drs-monitor 500ms)"},
           {"--proc", "DIR", "where the host's /proc is mounted (default /proc)"},
           {"--sys", "DIR", "where the host's /sys is mounted (default /sys)"},
           {"--interfaces", "NAME[,...]",
            "network interfaces to count (default: those with a device)"},
           {"--disks", "NAME[,...]", "disks to count (default: those with a device)"},
           {"--drs-monitor", "ADDRESS", "also answer getState of DRS there, such as :9000"},
           {"--latency-app", "ADDRESS",
            "also answer GET / there with the mean round trip to the first of --users in ms, such "
            "as :8100"}},
      .details =
          "The agent reads CPU, memory, network and disks of its node, measures round trips to the "
          "agents of other nodes over TCP and UDP and to users, and shows them as metrics. Each "
          "pair of agents is probed by one of the two. It needs no root and writes nothing. There "
          "is no authentication: listen where only the cluster can ask (docs/node-agent.md).",
      .examples = {"node --peers rudderfish-node.rudderfish.svc --users shop.example:443",
                   "node --listen 127.0.0.1:9100 --drs-monitor 127.0.0.1:9000"},
      .run = RunNode};
}

}  // namespace rudderfish
