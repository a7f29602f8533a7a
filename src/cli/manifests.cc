// SPDX-License-Identifier: Apache-2.0
#include "scenario/manifests.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>

#include "base/files.h"
#include "base/suggest.h"
#include "base/units.h"
#include "base/yaml.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "scenario/application_file.h"
#include "scenario/application_writer.h"
#include "scenario/played_episode.h"
#include "sim/held_out.h"
#include "sim/world.h"

// `manifests`: an application as objects for kubectl apply; of a scenario its first episode.

namespace rudderfish {
namespace {

constexpr int kMaxReplicasWritten = 1000;
constexpr double kMaxStartS = 3600;
constexpr int kDrainS = 5;

// The workload of that name that is in the cluster.
Result<WorkloadId> WorkloadNamed(const Application& application, std::string_view name) {
  std::vector<std::string_view> known;
  for (WorkloadId w = 0; w < application.catalog->workload_count(); ++w) {
    if (application.objects[w].is_external()) continue;
    if (application.catalog->workloads[w].name == name) return w;
    known.push_back(application.catalog->workloads[w].name);
  }
  return Invalid("no workload of the cluster is called `{}`{}", name, DidYouMean(name, known));
}

// VALUE, which is for all workloads, and WORKLOAD=VALUE, which goes before it.
Result<void> SetEach(const Arguments& arguments, std::string_view option,
                     const Application& application,
                     const std::function<Result<void>(std::string_view, PlayedWorkload*)>& set,
                     std::vector<PlayedWorkload>* workloads) {
  TRY_ASSIGN(const std::vector<std::string> items, arguments.List(option));
  for (const bool named : {false, true}) {
    for (const std::string& item : items) {
      const size_t equals = item.find('=');
      if (named != (equals != std::string::npos)) continue;
      const std::string_view value = std::string_view(item).substr(named ? equals + 1 : 0);
      if (named) {
        TRY_ASSIGN(const WorkloadId w,
                   OfOption(option, WorkloadNamed(application, item.substr(0, equals))));
        TRY(OfOption(option, set(value, &(*workloads)[w])));
        continue;
      }
      for (PlayedWorkload& workload : *workloads) TRY(OfOption(option, set(value, &workload)));
    }
  }
  return {};
}

Result<void> SetReplicas(std::string_view text, PlayedWorkload* workload) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 1 ||
      value > kMaxReplicasWritten)
    return Invalid("expected a number from 1 to {}, found `{}`", kMaxReplicasWritten, text);
  workload->replicas = value;
  return {};
}

Result<void> SetCpu(std::string_view text, PlayedWorkload* workload) {
  TRY_ASSIGN(workload->requests.cpu_millis, ParseCpuMillis(text));
  return {};
}

Result<void> SetMemory(std::string_view text, PlayedWorkload* workload) {
  TRY_ASSIGN(workload->requests.memory_bytes, ParseMemoryBytes(text));
  return {};
}

Result<void> SetNodeNames(const Arguments& arguments, const Application& application,
                          ManifestPlan* plan) {
  TRY_ASSIGN(const std::vector<std::string> items, arguments.List("node-names"));
  const auto& kinds = application.catalog->kinds;
  std::vector<std::string_view> known;
  for (const NodeKind& kind : kinds) known.push_back(kind.name);
  for (const std::string& item : items) {
    const size_t equals = item.find('=');
    if (equals == std::string::npos || equals + 1 == item.size())
      return Invalid("--node-names: expected NODETYPE=BEGINNING, found `{}`", item);
    const std::string_view name = std::string_view(item).substr(0, equals);
    const auto found = std::find(known.begin(), known.end(), name);
    if (found == known.end())
      return Invalid("--node-names: no node type is called `{}`{}", name, DidYouMean(name, known));
    plan->node_names.emplace_back(item.substr(equals + 1),
                                  static_cast<KindId>(found - known.begin()));
  }
  return {};
}

Result<void> SetTraces(const Arguments& arguments, ManifestPlan* plan) {
  TRY(arguments.Require("traced", "otlp"));
  const std::string url = arguments.Text("otlp").value_or("");
  const bool is_address =
      url.starts_with("http://") && url.size() > 7 &&
      std::all_of(url.begin(), url.end(), [](char c) { return c > ' ' && c < 0x7F; });
  if (!url.empty() && !is_address)
    return Invalid("--otlp: expected http://HOST:PORT, found `{}`", url);
  plan->otlp = url;
  TRY_ASSIGN(plan->traced_share, ShareOf(arguments, "traced"));
  return {};
}

// Changes what the file says, and defaults, to what the options say.
Result<void> ApplyOptions(const Arguments& arguments, const Application& application,
                          ManifestPlan* plan) {
  TRY(SetEach(arguments, "replicas", application, SetReplicas, &plan->workloads));
  TRY(SetEach(arguments, "cpu", application, SetCpu, &plan->workloads));
  TRY(SetEach(arguments, "memory", application, SetMemory, &plan->workloads));
  TRY(SetNodeNames(arguments, application, plan));
  constexpr std::string_view kTempers[] = {"drains", "dies"};
  TRY_ASSIGN(const int temper, arguments.Choice("app", kTempers, 0));
  plan->drain_s = temper == 0 ? kDrainS : 0;
  TRY_ASSIGN(const double start_s, arguments.Seconds("start", 0));
  if (start_s > kMaxStartS) return Invalid("--start: expected at most 1h, found {} s", start_s);
  plan->start_ms = static_cast<int>(1000 * start_s);
  plan->image = arguments.Text("image").value_or(plan->image);
  plan->burns = arguments.Has("burn");
  return SetTraces(arguments, plan);
}

Result<bool> IsScenario(const std::filesystem::path& path) {
  TRY_ASSIGN(const std::string text, ReadFile(path));
  TRY_ASSIGN(const YamlNode root, ParseYaml(text, path.string()));
  TRY_ASSIGN(YamlMap map, root.AsMap());
  TRY_ASSIGN(const std::string format, map.RequiredString("rudderfish"));
  return format.starts_with("scenario/");
}

// Leaves the scenario with this pattern alone, so that every episode has it.
Result<void> KeepPattern(const std::string& name, Scenario* scenario) {
  std::vector<std::string_view> known;
  for (const auto& pattern : scenario->patterns) known.push_back(pattern->name);
  TRY_ASSIGN(const int position, OfOption("pattern", ChoiceOf(name, known)));
  scenario->patterns = {scenario->patterns[position]};
  scenario->pattern_weights = {1};
  return {};
}

Result<PlayedEpisode> PlayedOf(const std::filesystem::path& path, const Arguments& arguments) {
  TRY_ASSIGN(const bool is_scenario, IsScenario(path));
  if (!is_scenario) {
    for (const char* drawn : {"seed", "pattern"}) {
      if (arguments.Has(drawn))
        return Invalid("--{}: nothing is drawn in an application file", drawn);
    }
    PlayedEpisode played;
    TRY_ASSIGN(played.application, LoadApplication(path));
    played.workloads.resize(played.application.catalog->workloads.size());
    return played;
  }
  TRY_ASSIGN(Scenario loaded, LoadScenario(path));
  TRY(CheckMovesPods(loaded, path.string()));
  if (arguments.Has("pattern")) TRY(KeepPattern(*arguments.Text("pattern"), &loaded));
  const auto scenario = std::make_shared<const Scenario>(std::move(loaded));
  uint64_t seed = scenario->seed;
  if (arguments.Has("seed")) {
    TRY_ASSIGN(seed, SeedOf(arguments));
  }
  TRY_ASSIGN(const std::vector<StartState> starts, DrawStarts(World(scenario), seed, 1));
  return PlayedEpisodeOf(*scenario, starts[0].state);
}

Result<void> WriteFolder(const std::filesystem::path& folder, const std::string& text,
                         const PlayedEpisode& played, const Session& session) {
  TRY(MakeDirectories(folder));
  TRY(WriteFileAtomically(folder / "manifests.yaml", text));
  Say(session, "Wrote {}", (folder / "manifests.yaml").native());
  if (played.links.empty()) return {};
  TRY(WriteFileAtomically(
      folder / "application.yaml",
      ApplicationText(
          played.application,
          "An episode of a scenario on real nodes, written by `rudderfish manifests`.")));
  TRY(WriteFileAtomically(folder / "network.links", played.links));
  Say(session, "Wrote {} and {}", (folder / "application.yaml").native(),
      (folder / "network.links").native());
  Say(session, "Next: testbed/testbed up --layers {} --delays {}", played.layers,
      (folder / "network.links").native());
  return {};
}

Result<ExitStatus> RunManifests(const Arguments& arguments, const Session& session) {
  TRY_ASSIGN(const PlayedEpisode played, PlayedOf(arguments.operands()[0], arguments));
  ManifestPlan plan{.workloads = played.workloads};
  TRY(ApplyOptions(arguments, played.application, &plan));
  if (plan.node_names.empty()) plan.node_names = played.node_names;
  if (plan.node_names.empty()) {
    TRY_ASSIGN(plan.node_names, NodeNamesOf(played.application));
  }
  TRY_ASSIGN(const std::string text, ManifestsText(played.application, plan));
  if (const auto folder = arguments.Text("directory")) {
    TRY(WriteFolder(*folder, text, played, session));
  } else {
    TRY(Print(text));
  }
  return ExitStatus::kDone;
}

}  // namespace

CommandSpec ManifestsCommand() {
  return {
      .name = "manifests",
      .summary =
          "Write an application or a scenario as Kubernetes objects whose pods play its calls",
      .operands = {{.name = "FILE"}},
      .options =
          {{"--replicas", "LIST",
            "pods: N for all workloads, or WORKLOAD=N (default: the scenario's, or 1)"},
           {"--cpu", "LIST",
            "CPU that a pod requests, in the same way (default: the scenario's, or 100m)"},
           {"--memory", "LIST", "memory that a pod requests (default: the scenario's, or 64Mi)"},
           {"--app", "drains|dies", "serve for 5 s after SIGTERM, or end at once"},
           {"--start", "DURATION", "time until a pod is ready (default: none)"},
           {"--burn", "", "executing takes a processor, not time only"},
           {"--otlp", "URL",
            "where pods report spans as OTLP/JSON, such as http://jaeger:4318 (default: nowhere)"},
           {"--traced", "RATIO", "share of the requests that is traced (default 1)"},
           {"--node-names", "LIST",
            "NODETYPE=BEGINNING: how the names of the nodes of a type begin"},
           {"--image", "NAME", "image of the pods (default localhost/app:1)"},
           {"-d,--directory", "FOLDER",
            "write manifests.yaml, and what belongs to a scenario (default: standard output)"},
           {"--pattern", "NAME", "call pattern of the scenario (default: drawn)"},
           {"--seed", "N", "seed of the episode (default: the scenario's)"}},
      .details =
          "FILE is an application.yaml or a scenario, of which the first episode is written: with "
          "-d, application.yaml and a table of delays for the testbed too. Each workload becomes "
          "a Deployment or a "
          "StatefulSet, a Service and a PodDisruptionBudget; a ConfigMap has the calls. The pods "
          "execute as long as the file says for the type of their node, send payloads of the "
          "size that it says, and call each other. kubectl apply -f - takes the output. "
          "docs/testbed.md describes the image.",
      .examples = {"manifests application.yaml --replicas 2 -d shop",
                   "manifests application.yaml --replicas 1,web=3 --cpu web=500m --app dies",
                   "manifests scenarios/continuum-7x21.yaml --cpu 100m -d continuum"},
      .run = RunManifests};
}

}  // namespace rudderfish
