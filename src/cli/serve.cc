// SPDX-License-Identifier: Apache-2.0
#include "cli/serve.h"

#include <algorithm>
#include <array>
#include <span>

#include "cli/placement_commands.h"
#include "control/live_policy.h"

namespace rudderfish {
namespace {

struct ServedSystem {
  std::string_view name;
  std::span<const std::string_view> options;  // Besides --policy and --listen.
  Result<ExitStatus> (*serve)(const Arguments& arguments, const Session& session);
};

constexpr std::string_view kReachOptions[] = {"scenario", "pattern", "unknown", "threads"};
constexpr std::string_view kDrsOptions[] = {"kubeconfig", "context", "objective", "threads",
                                            "monitors"};
constexpr std::string_view kSuggestionsOptions[] = {"kubeconfig", "context", "objective",
                                                    "metrics"};
constexpr ServedSystem kSystems[] = {{"reach", kReachOptions, ServeReach},
                                     {"drs", kDrsOptions, ServeDrs},
                                     {"suggestions", kSuggestionsOptions, ServeSuggestions}};
constexpr std::string_view kSystemNames[] = {"reach", "drs", "suggestions"};
constexpr std::string_view kAllOptions[] = {"scenario", "pattern",   "unknown",
                                            "threads",  "monitors",  "kubeconfig",
                                            "context",  "objective", "metrics"};

Result<ExitStatus> RunServe(const Arguments& arguments, const Session& session) {
  TRY_ASSIGN(const int which, ChoiceOf(arguments.operands()[0], kSystemNames));
  const ServedSystem& system = kSystems[which];
  for (const std::string_view option : kAllOptions) {
    if (arguments.Has(option) && std::ranges::find(system.options, option) == system.options.end())
      return Invalid("--{} does not apply to serve {}", option, system.name);
  }
  return system.serve(arguments, session);
}

}  // namespace

Result<std::unique_ptr<NodeChooser>> ChooserOf(const Arguments& arguments, const Clock* clock) {
  NodeChooserOptions options;
  options.cluster.kubeconfig = arguments.Text("kubeconfig").value_or("");
  options.cluster.context = arguments.Text("context").value_or("");
  TRY_ASSIGN(options.policy.policy,
             arguments.RequiredText("policy", "who chooses, such as kube-default or runs/a"));
  TRY_ASSIGN(options.policy.objective, ObjectiveOf(arguments));
  TRY_ASSIGN(const PolicySpec spec, OfOption("policy", ParsePolicySpec(options.policy.policy)));
  TRY(OfOption("policy", CheckLivePolicy(spec)));
  return NodeChooser::Start(options, clock);
}

void AddChooserChecks(const NodeChooser* chooser, HealthChecks* live, HealthChecks* ready) {
  if (chooser == nullptr) return;
  live->Add("cluster", [chooser] { return chooser->WhyNotAlive(); });
  ready->Add("cluster", [chooser] { return chooser->WhyNotReady(); });
}

CommandSpec ServeCommand() {
  return {
      .name = "serve",
      .summary = "Answer the requests of another system",
      .operands = {{.name = "reach|drs|suggestions"}},
      .options =
          {{"--policy", "POLICY",
            "policy that answers: a run, a checkpoint, or a name such as greedy or kube-default"},
           {"--listen", "ADDRESS[,...]",
            "address to listen on, for example [::1]:5000 or unix:/run/rudderfish.sock (default "
            "127.0.0.1 with port 5000 for reach, 1234 for drs, 8765 for suggestions)"},
           {"--scenario", "FILE",
            "reach: scenario with the services, layers, calls and latencies, which requests do "
            "not contain (default scenarios/continuum-7x21.yaml, the cluster of REACH's testbed)"},
           {"--pattern", "NAME", "reach: call pattern of the scenario (default: the first)"},
           {"--unknown", "ignore|refuse",
            "reach: how to handle nodes and services that are not in the scenario: ignore them "
            "with one warning each, or refuse the request with status 422 (default ignore)"},
           {"--threads", "N", "reach, drs: number of worker threads (default 2)"},
           {"--kubeconfig", "FILE", "drs, suggestions: kubeconfig file of the cluster"},
           {"--context", "NAME", "drs, suggestions: context of the kubeconfig"},
           {"--objective", "TERM[:WEIGHT,...]",
            "drs, suggestions: objective of a policy that is not learned (default balance)"},
           {"--monitors", "NODE=HOST[:PORT][,...]",
            "drs: ask the monitors of these nodes, and choose by what they answer instead of by "
            "a policy"},
           {"--metrics", "ADDRESS",
            "suggestions: address of /livez, /readyz and /metrics (default: none)"}},
      .details =
          "`serve reach` is the policy server for REACH's migrator. POST /get_action takes the "
          "state of a cluster of any size and answers which pod to move where, or to stop. Values "
          "that the scenario draws for each episode are replaced by their means. A client "
          "that asks again after each move never returns to a placement that it left.\n`serve drs` "
          "answers POST /choose of DRS's scheduler with the name of a node, and `serve "
          "suggestions` the six commands of a suggestions server over TCP. Both follow the "
          "cluster of the kubeconfig, and change nothing in it; suggestions without --policy are "
          "those that a client sets.\nEach new reason for a refusal is logged as a warning; with "
          "-v every request is logged. There is no authentication: bind to an address that only "
          "the client can reach.",
      .examples = {"serve reach --policy policies/continuum.safetensors",
                   "serve reach --policy runs/a --scenario chain.yaml --listen 127.0.0.1:5001 -v",
                   "serve drs --policy least-allocated",
                   "serve suggestions --policy runs/placement --metrics 127.0.0.1:9091"},
      .run = RunServe};
}

}  // namespace rudderfish
