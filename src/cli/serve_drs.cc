// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <set>

#include "base/log.h"
#include "base/one_line.h"
#include "base/version.h"
#include "cli/serve.h"
#include "cli/stop_signals.h"
#include "cli/terminal.h"
#include "compat/drs.h"
#include "compat/drs_monitors.h"
#include "net/http_server.h"
#include "serve/operations.h"

namespace rudderfish {
namespace {

constexpr std::string_view kDrsAddress = "127.0.0.1:1234";
constexpr std::string_view kFormType = "application/x-www-form-urlencoded";
constexpr size_t kFormBytesMax = 4096;
constexpr size_t kPodNameMax = 253 + 1 + 63;  // A name with its namespace.
constexpr int64_t kDrsThreadsMax = 64;
constexpr uint16_t kMonitorPort = 9000;
constexpr size_t kMonitorsMax = 1000;
constexpr Duration kMonitorPatience = std::chrono::seconds(1);

int StatusOfChoice(ErrorCode code) {
  switch (code) {
    case ErrorCode::kNotFound:
      return 404;
    case ErrorCode::kConflict:
      return 409;
    case ErrorCode::kFailedPrecondition:
      return 422;
    default:
      return 503;
  }
}

// Who answers: a policy on a live cluster, or what monitors say.
struct DrsDecider {
  std::unique_ptr<NodeChooser> chooser;
  std::unique_ptr<DrsMonitors> monitors;

  Result<std::string> Choose(const std::string& pod) const {
    if (chooser != nullptr) return chooser->ChooseFor(pod, kChooserPatience);
    TRY_ASSIGN(const std::vector<DrsNodeState> states, monitors->Ask(kMonitorPatience));
    return DrsBestNode(pod, states);
  }
};

// DRS's scheduler takes the body of any answer for the name of a node, whatever the status; the
// statuses are for clients that look.
HttpResponse AnswerChoose(const HttpRequest& request, const DrsDecider& decider) {
  if (request.content_type.substr(0, request.content_type.find(';')) != kFormType)
    return HttpError(415, fmt::format("expected a body of type {}", kFormType));
  const Result<std::string> pod = FormField(request.body, "podname");
  if (!pod) return HttpError(400, pod.error().message);
  if (pod->empty() || pod->size() > kPodNameMax)
    return HttpError(400, "podname: expected the name of a pod");
  const Result<std::string> node = decider.Choose(*pod);
  if (!node) {
    HttpResponse refused = HttpError(StatusOfChoice(node.error().code), node.error().message);
    refused.note = OneLine(node.error().message);
    return refused;
  }
  return {.content_type = "text/plain; charset=utf-8",
          .body = *node,
          .note = fmt::format("{} -> {}", OneLine(*pod, 100), *node)};
}

Result<std::vector<DrsMonitorAddress>> MonitorsOf(const Arguments& arguments) {
  TRY_ASSIGN(const std::vector<std::string> texts, arguments.List("monitors"));
  if (texts.size() > kMonitorsMax) return Invalid("--monitors: expected at most {}", kMonitorsMax);
  std::vector<DrsMonitorAddress> monitors;
  std::set<std::string> names;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    TRY_ASSIGN(
        HostAndPort where,
        OfOption("monitors",
                 ParseHostAndPort(equals == std::string::npos ? text : text.substr(equals + 1))));
    if (!where.has_port) where.port = kMonitorPort;
    const std::string node = equals == std::string::npos ? where.host : text.substr(0, equals);
    if (node.empty() || !names.insert(node).second)
      return Invalid("--monitors: expected a name of its own for each node, found `{}`", text);
    TRY_ASSIGN(const std::vector<SocketAddress> found, OfOption("monitors", Resolve(where)));
    monitors.push_back({node, found.front()});
  }
  return monitors;
}

Result<DrsDecider> DeciderOf(const Arguments& arguments, const Clock* clock) {
  DrsDecider decider;
  if (!arguments.Has("monitors")) {
    TRY_ASSIGN(decider.chooser, ChooserOf(arguments, clock));
    return decider;
  }
  for (const char* other : {"policy", "kubeconfig", "context", "objective"})
    TRY(arguments.Exclude("monitors", other));
  TRY_ASSIGN(std::vector<DrsMonitorAddress> monitors, MonitorsOf(arguments));
  decider.monitors = std::make_unique<DrsMonitors>(std::move(monitors), clock);
  return decider;
}

}  // namespace

Result<ExitStatus> ServeDrs(const Arguments& arguments, const Session& session) {
  const SystemClock clock;
  HttpServerOptions options{.listen = {std::string(kDrsAddress)},
                            .body_limits = {{"/choose", kFormBytesMax}}};
  if (arguments.Has("listen")) {
    TRY_ASSIGN(options.listen, arguments.List("listen"));
  }
  TRY_ASSIGN(const int64_t threads, arguments.Integer("threads", 2, 1, kDrsThreadsMax));
  options.threads = static_cast<int>(threads);
  const StopSignals signals;
  TRY_ASSIGN(const DrsDecider decider, DeciderOf(arguments, &clock));
  HttpRoutes routes;
  routes.Add("POST", "/choose",
             [&](const HttpRequest& request) { return AnswerChoose(request, decider); });
  MetricRegistry metrics;
  metrics.AddBuild(ProgramVersion());
  HealthChecks live("livez"), ready("readyz");
  AddChooserChecks(decider.chooser.get(), &live, &ready);
  AddOperations(&live, &ready, &metrics, &routes);
  TRY_ASSIGN(const auto server,
             OfOption("listen",
                      HttpServer::Start(options, Observed(std::move(routes), &clock, &metrics))));
  Say(session, "Serving POST /choose on {} with {}; SIGTERM ends it",
      fmt::join(server->addresses(), ", "),
      decider.chooser == nullptr
          ? "the states of monitors"
          : fmt::format("{} on {}", decider.chooser->policy(), decider.chooser->server()));
  const int signal = signals.Wait();
  LogInfo("{}: ending", ::strsignal(signal));
  if (!server->Stop(kStopDeadline / 2)) LogWarning("requests that took too long were cut");
  return ExitStatus::kDone;
}

}  // namespace rudderfish
