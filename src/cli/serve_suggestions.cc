// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "base/log.h"
#include "base/version.h"
#include "cli/serve.h"
#include "cli/stop_signals.h"
#include "cli/terminal.h"
#include "compat/suggestions.h"
#include "net/http_server.h"
#include "net/stream_server.h"
#include "serve/operations.h"

namespace rudderfish {
namespace {

constexpr std::string_view kSuggestionsAddress = "127.0.0.1:8765";
// What the original's agent gives the chosen node and the others.
constexpr int kChosenScore = 10, kOtherScore = 1;

Result<Suggestion> Advise(const SuggestedPod& pod, NodeChooser* chooser) {
  NodeChooser::Described described{.cpu_millis = pod.cpu_millis, .memory_bytes = pod.memory_bytes};
  if (pod.soft_ms > 0) described.limits.soft_ms = pod.soft_ms;
  if (pod.hard_ms > 0) described.limits.hard_ms = pod.hard_ms;
  TRY_ASSIGN(const NodeChooser::Choice choice,
             chooser->ChooseDescribed(described, kChooserPatience));
  Suggestion suggestion;
  for (const std::string& address : choice.addresses)
    suggestion.emplace_back(address, address == choice.best ? kChosenScore : kOtherScore);
  return suggestion;
}

std::optional<StreamAnswer> AnswerCommand(std::string_view received, StreamEvent event,
                                          SuggestionsServer* suggestions) {
  auto reply = suggestions->Answer(received, event == StreamEvent::kBytes
                                                 ? SuggestionsServer::Arrival::kMoreMayCome
                                                 : SuggestionsServer::Arrival::kComplete);
  if (!reply) return std::nullopt;
  LogDebug("{}: {} bytes", received.substr(0, std::min(received.find_first_of(" \n"), size_t{20})),
           reply->size());
  return StreamAnswer{.bytes = *std::move(reply)};
}

Result<std::unique_ptr<HttpServer>> ServeMetrics(const Arguments& arguments,
                                                 const NodeChooser* chooser, HealthChecks* live,
                                                 HealthChecks* ready, const Clock* clock,
                                                 MetricRegistry* metrics) {
  const auto address = arguments.Text("metrics");
  if (!address) return std::unique_ptr<HttpServer>();
  AddChooserChecks(chooser, live, ready);
  HttpRoutes routes;
  AddOperations(live, ready, metrics, &routes);
  return OfOption("metrics", HttpServer::Start({.listen = {*address}, .threads = 1},
                                               Observed(std::move(routes), clock, metrics)));
}

}  // namespace

Result<ExitStatus> ServeSuggestions(const Arguments& arguments, const Session& session) {
  const SystemClock clock;
  MetricRegistry metrics;
  metrics.AddBuild(ProgramVersion());
  StreamServerOptions options{.wire = "suggestions",
                              .listen = {std::string(kSuggestionsAddress)},
                              .request_limit_bytes = SuggestionsServer::kRequestBytesMax};
  if (arguments.Has("listen")) {
    TRY_ASSIGN(options.listen, arguments.List("listen"));
  }
  const StopSignals signals;
  std::unique_ptr<NodeChooser> chooser;
  SuggestionsServer::Adviser adviser;
  if (arguments.Has("policy")) {
    TRY_ASSIGN(chooser, ChooserOf(arguments, &clock));
    adviser = [&](const SuggestedPod& pod) { return Advise(pod, chooser.get()); };
  } else {
    for (const char* option : {"kubeconfig", "context", "objective"})
      TRY(arguments.Require(option, "policy"));
  }
  SuggestionsServer suggestions(std::move(adviser));
  HealthChecks live("livez"), ready("readyz");
  TRY_ASSIGN(const auto operations,
             ServeMetrics(arguments, chooser.get(), &live, &ready, &clock, &metrics));
  TRY_ASSIGN(auto server, OfOption("listen", StreamServer::Start(
                                                 options, &metrics,
                                                 [&](std::string_view bytes, StreamEvent event) {
                                                   return AnswerCommand(bytes, event, &suggestions);
                                                 })));
  Say(session, "Serving suggestions on {} with {}; SIGTERM ends it",
      fmt::join(server->addresses(), ", "),
      chooser == nullptr ? "what clients set"
                         : fmt::format("{} on {}", chooser->policy(), chooser->server()));
  const int signal = signals.Wait();
  LogInfo("{}: ending", ::strsignal(signal));
  server.reset();
  if (operations != nullptr) operations->Stop(kStopDeadline / 4);
  return ExitStatus::kDone;
}

}  // namespace rudderfish
