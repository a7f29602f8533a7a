// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <numeric>

#include "base/log.h"
#include "base/suggest.h"
#include "base/text_table.h"
#include "base/version.h"
#include "cli/files.h"
#include "cli/serve.h"
#include "cli/stop_signals.h"
#include "cli/terminal.h"
#include "compat/reach.h"
#include "net/http_server.h"
#include "policy/registry.h"
#include "serve/operations.h"
#include "sim/problem.h"

namespace rudderfish {
namespace {

constexpr std::string_view kStrangers[] = {"ignore", "refuse"};
constexpr std::string_view kDefaultScenario = "scenarios/continuum-7x21.yaml";
constexpr std::string_view kDefaultAddress = "127.0.0.1:5000";
constexpr int64_t kServerThreadsMax = 64;
constexpr size_t kBodyBytesMax = 16 << 20;

double Mean(const Distribution& distribution) {
  const auto values = distribution.values();  // {value}, {low, high} or the choices.
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

Result<std::shared_ptr<const CallGraph>> PatternOf(const Arguments& arguments,
                                                   const Scenario& scenario,
                                                   const Session& session) {
  const auto wanted = arguments.Text("pattern");
  if (!wanted.has_value()) {
    if (scenario.patterns.size() > 1) {
      Say(session, "Calls as in {}, the first of {} of {}; --pattern names another",
          scenario.patterns.front()->name, Counted(scenario.patterns.size(), "pattern"),
          scenario.name);
    }
    return scenario.patterns.front();
  }
  const int found = scenario.PatternNamed(*wanted);
  if (found != kNone) return scenario.patterns[found];
  std::vector<std::string_view> names;
  for (const auto& pattern : scenario.patterns) names.push_back(pattern->name);
  return Invalid("--pattern: {} has no pattern `{}`{} (there are {})", scenario.name, *wanted,
                 DidYouMean(*wanted, names), fmt::join(names, ", "));
}

// What a scenario draws for each episode is taken at its mean: a cluster has one value, and the
// wire does not carry it.
ReachWorld WorldOf(const Scenario& scenario, std::shared_ptr<const CallGraph> calls) {
  ReachWorld world{.catalog = scenario.catalog, .calls = std::move(calls)};
  world.network.layers = scenario.catalog->layer_count();
  for (const Distribution& latency : scenario.latency_ms)
    world.network.latency_ms.push_back(Mean(latency));
  const std::vector<KindId> kinds = scenario.KindsOfNodes();
  for (size_t node = 0; node < kinds.size(); ++node)
    world.kind_of_node.emplace(scenario.names->nodes[node], kinds[node]);
  world.background_mbytes_per_s.assign(scenario.catalog->kind_count(), 0);
  for (const NodeGroup& group : scenario.node_groups) {
    world.background_mbytes_per_s[group.kind] =
        Mean(group.background) * scenario.catalog->kinds[group.kind].bandwidth_mbytes_per_s;
  }
  return world;
}

Result<std::unique_ptr<Policy>> PolicyOf(const Arguments& arguments, const Task& task) {
  TRY_ASSIGN(const std::string spec,
             arguments.RequiredText("policy", "who answers, such as runs/a or greedy"));
  if (spec == "exact") {
    return Invalid("--policy: exact may think for minutes; take lookahead, which is near it");
  }
  return OfOption("policy", MakePolicy(spec, task));
}

}  // namespace

Result<ExitStatus> ServeReach(const Arguments& arguments, const Session& session) {
  std::filesystem::path scenario_path(arguments.Text("scenario").value_or(""));
  if (!arguments.Has("scenario")) {
    TRY_ASSIGN(scenario_path, ShippedFile(std::filesystem::path(kDefaultScenario)));
  }
  TRY_ASSIGN(const Problem problem, Problem::Open(scenario_path));
  TRY_ASSIGN(const std::unique_ptr<Policy> policy, PolicyOf(arguments, *problem.task));
  TRY_ASSIGN(auto calls, PatternOf(arguments, *problem.scenario, session));
  ReachWorld world = WorldOf(*problem.scenario, std::move(calls));
  TRY_ASSIGN(const int strangers, arguments.Choice("unknown", kStrangers, 0));
  world.strangers = static_cast<ReachStrangers>(strangers);

  HttpServerOptions options{.listen = {std::string(kDefaultAddress)},
                            .body_limits = {{"/get_action", kBodyBytesMax}}};
  if (arguments.Has("listen")) {
    TRY_ASSIGN(options.listen, arguments.List("listen"));
  }
  TRY_ASSIGN(const int64_t threads, arguments.Integer("threads", 2, 1, kServerThreadsMax));
  options.threads = static_cast<int>(threads);
  ReachServer reach(&world, problem.law, problem.task.get(), policy.get(), options.threads);
  HttpRoutes routes;
  routes.Add("POST", "/get_action",
             [&](const HttpRequest& request) { return reach.GetAction(request); });

  MetricRegistry metrics;
  metrics.AddBuild(ProgramVersion());
  const HealthChecks live("livez");
  HealthChecks ready("readyz");
  ready.Add("policy", [] { return std::string(); });  // It was loaded, or we were not here.
  AddOperations(&live, &ready, &metrics, &routes);
  const SystemClock clock;

  const StopSignals signals;
  TRY_ASSIGN(const auto server,
             OfOption("listen",
                      HttpServer::Start(options, Observed(std::move(routes), &clock, &metrics))));
  Say(session, "Serving POST /get_action on {} with {}; SIGTERM ends it",
      fmt::join(server->addresses(), ", "), policy->name());
  const int signal = signals.Wait();
  LogInfo("{}: ending", ::strsignal(signal));
  if (!server->Stop(kStopDeadline)) LogWarning("requests that took too long were cut");
  return ExitStatus::kDone;
}

}  // namespace rudderfish
