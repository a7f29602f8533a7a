// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text_table.h"
#include "base/units.h"
#include "cli/inspection.h"
#include "cli/output.h"
#include "cli/placement_commands.h"
#include "sim/held_out.h"
#include "sim/problem.h"
#include "sim/world.h"

namespace rudderfish {
namespace {

using Align = TextTable::Align;

constexpr int kScenarioColumns = 96;
constexpr int kDrawnPods = 4000;  // In all sample episodes together; large worlds get few.
constexpr int kStartsDrawnMax = 100;
constexpr int kStartsDrawnMin = 3;

// "2", "1 to 2", "2, 5 or 7"; `scale` turns the field's unit into the one shown.
std::string DistributionText(const Distribution& distribution, double scale = 1) {
  const auto number = [&](double value) { return fmt::format("{:.4g}", value * scale); };
  const auto values = distribution.values();
  if (distribution.shape() == Distribution::Shape::kUniform) {
    return fmt::format("{} to {}", number(values[0]), number(values[1]));
  }
  std::string text;
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) text += i + 1 < values.size() ? ", " : " or ";
    text += number(values[i]);
  }
  return text;
}

OrderedJson DistributionJson(const Distribution& distribution, double scale = 1) {
  OrderedJson values = OrderedJson::array();
  for (const double value : distribution.values()) values.push_back(value * scale);
  switch (distribution.shape()) {
    case Distribution::Shape::kConstant:
      return values[0];
    case Distribution::Shape::kUniform:
      return {{"from", values[0]}, {"to", values[1]}};
    case Distribution::Shape::kChoice:
      break;
  }
  return {{"one_of", values}};
}

// Who calls whom: "front > (a, b) > c"; calls in brackets one after another, with bars in parallel.
class CallText {
 public:
  CallText(const Catalog& catalog, const CallGraph& calls) : catalog_(catalog), calls_(calls) {}

  std::string Of(CallId id) const {
    const Call& call = calls_.calls[id];
    std::string text = catalog_.workloads[call.workload].name;
    if (call.first_group == call.last_group) return text;
    std::string inside;
    int callees = 0;
    for (int g = call.first_group; g < call.last_group; ++g) {
      const CallGroup& group = calls_.groups[g];
      for (int i = group.first; i < group.last; ++i, ++callees) {
        if (callees > 0) inside += i == group.first ? " | " : ", ";
        inside += Of(calls_.sequence[i]);
      }
    }
    return text + (callees == 1 ? " > " + inside : " > (" + inside + ")");
  }

 private:
  const Catalog& catalog_;
  const CallGraph& calls_;
};

struct DrawnStarts {
  int count = 0;
  double mean_ms = 0, low_ms = 1e300, high_ms = 0;
  double mean_pods = 0, mean_allowed = 0;
};

Result<DrawnStarts> DrawSample(const Problem& problem) {
  DrawnStarts drawn{.count = std::clamp(kDrawnPods / std::max(1, problem.scenario->pod_limit()),
                                        kStartsDrawnMin, kStartsDrawnMax)};
  TRY_ASSIGN(const std::vector<StartState> starts,
             DrawStarts(World(problem.scenario), problem.scenario->seed, drawn.count));
  Evaluator model(problem.law);
  ActionSpace space;
  for (const StartState& start : starts) {
    model.Reset(start.state);
    problem.task->Space(&model, {}, &space);
    const double ms = model.Now().latency_ms;
    drawn.mean_ms += ms / drawn.count;
    drawn.low_ms = std::min(drawn.low_ms, ms);
    drawn.high_ms = std::max(drawn.high_ms, ms);
    drawn.mean_pods += static_cast<double>(start.state.pods.size()) / drawn.count;
    drawn.mean_allowed += static_cast<double>(space.allowed_cells) / drawn.count;
  }
  return drawn;
}

std::string NodeGroupsTable(const Scenario& scenario) {
  TextTable table({{"NODES"},
                   {"LAYER"},
                   {"COUNT", Align::kRight},
                   {"CORES"},
                   {"MEMORY GiB"},
                   {"MB/s", Align::kRight},
                   {"CPU TYPE"}},
                  2);
  for (const NodeGroup& group : scenario.node_groups) {
    const NodeKind& kind = scenario.catalog->kinds[group.kind];
    table.Row({kind.name, scenario.catalog->layers[kind.layer].name, Grouped(group.count),
               DistributionText(group.cpu_millis, 1e-3),
               DistributionText(group.memory_bytes, 1 / kBytesPerGib),
               fmt::format("{:.4g}", kind.bandwidth_mbytes_per_s), kind.cpu_type});
  }
  return table.Text();
}

std::string LatencyTable(const Scenario& scenario) {
  const auto& layers = scenario.catalog->layers;
  std::vector<TextTable::Column> columns{{"LATENCY ms"}};
  for (const Layer& layer : layers) columns.push_back({layer.name, Align::kRight});
  TextTable table(std::move(columns), 2);
  for (size_t from = 0; from < layers.size(); ++from) {
    std::vector<std::string> cells{"from " + layers[from].name};
    for (size_t to = 0; to < layers.size(); ++to) {
      cells.push_back(DistributionText(scenario.latency_ms[from * layers.size() + to]));
    }
    table.Row(std::move(cells));
  }
  return table.Text();
}

std::string LayersText(const Scenario& scenario, const std::vector<LayerId>& layers) {
  std::string text;
  for (const LayerId layer : layers) {
    text += (text.empty() ? "" : ", ") + scenario.catalog->layers[layer].name;
  }
  return text;
}

std::string WorkloadTable(const Scenario& scenario) {
  constexpr int kShown = 20;
  TextTable table({{"WORKLOAD"},
                   {"CORES", Align::kRight},
                   {"MEMORY", Align::kRight},
                   {"PODS", Align::kRight},
                   {"STARTS ON"},
                   {"MOVES"}},
                  2);
  const int count = scenario.catalog->workload_count();
  for (int i = 0; i < std::min(count, kShown); ++i) {
    const Workload& workload = scenario.catalog->workloads[i];
    table.Row(
        {workload.name,
         fmt::format("{:.4g}", static_cast<double>(workload.requests.cpu_millis) / 1000),
         FormatBytes(workload.requests.memory_bytes), DistributionText(scenario.starts[i].replicas),
         LayersText(scenario, scenario.starts[i].initial_layers), workload.movable ? "yes" : "no"});
  }
  if (count > kShown) table.Row({fmt::format("... and {} more", count - kShown)});
  return table.Text();
}

std::string PatternText(const Scenario& scenario, int index) {
  constexpr size_t kEndpointsShown = 4;
  constexpr size_t kLettersShown = 280;
  const CallGraph& calls = *scenario.patterns[index];
  const CallText text_of(*scenario.catalog, calls);
  std::string text =
      fmt::format("  {}: {} in {}\n", calls.name, Counted(calls.call_count(), "call"),
                  Counted(static_cast<int64_t>(calls.endpoints.size()), "endpoint"));
  for (size_t i = 0; i < calls.endpoints.size(); ++i) {
    if (i == kEndpointsShown) return text + "    ...\n";
    const Endpoint& endpoint = calls.endpoints[i];
    std::string tree = text_of.Of(endpoint.root);
    if (tree.size() > kLettersShown) tree = tree.substr(0, kLettersShown) + " ...";
    text += Paragraph(fmt::format("{}, {:g}/s, target {:g} ms: {}", endpoint.name,
                                  endpoint.rate_per_second, endpoint.qos_ms, tree),
                      kScenarioColumns, 4);
  }
  return text;
}

std::string TaskText(const MigrationOptions& options) {
  const char* growing =
      options.step_penalty == StepPenalty::kGrowing ? ", each later one as much more" : "";
  return fmt::format(
      "Task: migration; the first move costs {:g} ms{}; at most {} moves; features {}\n",
      options.step_penalty_ms, growing, options.max_steps,
      options.features == FeaturePreset::kModel ? "model" : "reach-agent");
}

std::string AsText(const std::filesystem::path& path, const Problem& problem,
                   const DrawnStarts& drawn) {
  const Scenario& scenario = *problem.scenario;
  std::string text =
      fmt::format("{}: scenario {}, seed {}, latency by the {} law{}\n\n{}\n{}\n{}\n{}",
                  path.string(), scenario.name, scenario.seed, scenario.law,
                  scenario.source_config.empty()
                      ? ""
                      : fmt::format(", REACH configuration {}", scenario.source_config),
                  NodeGroupsTable(scenario), LatencyTable(scenario), WorkloadTable(scenario),
                  PatternsText(scenario));
  text += "\n" + TaskText(problem.task->options());
  text += fmt::format(
      "Starts: {} drawn: {}, {:.0f} pods and {:.0f} allowed actions on average,\n"
      "        latency {:.1f} ms on average, {:.1f} to {:.1f}\n",
      drawn.count, Counted(scenario.node_count(), "node"), drawn.mean_pods, drawn.mean_allowed,
      drawn.mean_ms, drawn.low_ms, drawn.high_ms);
  return text;
}

OrderedJson WorkloadsJson(const Scenario& scenario) {
  OrderedJson list = OrderedJson::array();
  for (int i = 0; i < scenario.catalog->workload_count(); ++i) {
    const Workload& workload = scenario.catalog->workloads[i];
    OrderedJson layers = OrderedJson::array();
    for (const LayerId layer : scenario.starts[i].initial_layers)
      layers.push_back(scenario.catalog->layers[layer].name);
    list.push_back({{"name", workload.name},
                    {"cpu", static_cast<double>(workload.requests.cpu_millis) / 1000},
                    {"memory_bytes", workload.requests.memory_bytes},
                    {"replicas", DistributionJson(scenario.starts[i].replicas)},
                    {"layers", std::move(layers)},
                    {"movable", workload.movable}});
  }
  return list;
}

std::string AsJson(const std::filesystem::path& path, const Problem& problem,
                   const DrawnStarts& drawn) {
  const Scenario& scenario = *problem.scenario;
  const MigrationOptions& task = problem.task->options();
  OrderedJson json{{"kind", "scenario"},
                   {"file", path.string()},
                   {"name", scenario.name},
                   {"seed", scenario.seed},
                   {"model", scenario.law},
                   {"config", scenario.config()},
                   {"nodes", scenario.node_count()},
                   {"pods_max", scenario.pod_limit()}};
  OrderedJson& groups = json["node_groups"] = OrderedJson::array();
  for (const NodeGroup& group : scenario.node_groups) {
    const NodeKind& kind = scenario.catalog->kinds[group.kind];
    groups.push_back({{"type", kind.name},
                      {"layer", scenario.catalog->layers[kind.layer].name},
                      {"count", group.count},
                      {"cpu", DistributionJson(group.cpu_millis, 1e-3)},
                      {"memory_bytes", DistributionJson(group.memory_bytes)},
                      {"bandwidth_mbytes_per_s", kind.bandwidth_mbytes_per_s}});
  }
  json["workloads"] = WorkloadsJson(scenario);
  OrderedJson& patterns = json["patterns"] = OrderedJson::array();
  for (const auto& calls : scenario.patterns) {
    patterns.push_back({{"name", calls->name},
                        {"calls", calls->call_count()},
                        {"endpoints", calls->endpoints.size()}});
  }
  json["task"] = {
      {"kind", "migration"},
      {"step_penalty_ms", task.step_penalty_ms},
      {"step_penalty", task.step_penalty == StepPenalty::kGrowing ? "growing" : "constant"},
      {"max_steps", task.max_steps},
      {"features", task.features == FeaturePreset::kModel ? "model" : "reach-agent"}};
  json["starts"] = {{"drawn", drawn.count},
                    {"mean_latency_ms", drawn.mean_ms},
                    {"latency_ms", {drawn.low_ms, drawn.high_ms}},
                    {"mean_pods", drawn.mean_pods},
                    {"mean_allowed_actions", drawn.mean_allowed}};
  return json.dump(1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace

std::string PatternsText(const Scenario& scenario) {
  std::string text =
      fmt::format("Call patterns: {}\n",
                  scenario.patterns.size() == 1 ? "one" : "each episode has one of these");
  for (size_t i = 0; i < scenario.patterns.size(); ++i)
    text += PatternText(scenario, static_cast<int>(i));
  return text;
}

Result<std::string> InspectScenario(const std::filesystem::path& path, OutputFormat format) {
  TRY_ASSIGN(const Scenario scenario, LoadScenario(path));
  if (scenario.regions != nullptr) return InspectRegions(path, scenario, format);
  if (scenario.places_pods()) return InspectPlacement(path, scenario, format);
  TRY_ASSIGN(const Problem problem, Problem::Open(path));
  TRY_ASSIGN(const DrawnStarts drawn, DrawSample(problem));
  return format == OutputFormat::kJson ? AsJson(path, problem, drawn)
                                       : AsText(path, problem, drawn);
}

}  // namespace rudderfish
