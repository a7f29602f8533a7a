// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text_table.h"
#include "base/units.h"
#include "cli/inspection.h"
#include "cli/output.h"
#include "cli/placement_commands.h"
#include "policy/registry.h"
#include "sim/placement_run.h"

namespace rudderfish {
namespace {

using Align = TextTable::Align;

constexpr int kArrivingShown = 20;

// An episode under the rule that every cluster has.
Result<LifecycleMetrics> SampleEpisode(const Scenario& scenario) {
  const PlacementTask task(scenario.objective.value_or(Objective::Of(ObjectiveTerm::kBalance)));
  TRY_ASSIGN(const PlacementPolicy policy, MakePlacementPolicy("kube-default", task));
  Lifecycle world(std::make_shared<const Scenario>(scenario));
  return RunPlacement(policy.start(), scenario.seed, &world);
}

std::string DevicesText(const DeviceRequest& devices) {
  if (devices.count == 0) return "-";
  if (devices.millis == kDeviceMillis) return fmt::format("{}", devices.count);
  return fmt::format("{:g}", devices.millis / 1000.0);
}

std::string WattsText(const NodeCosts& costs) {
  std::string text = fmt::format("{:g}-{:g}", costs.idle_watts, costs.busy_watts);
  if (costs.has_curve()) text += fmt::format(" by {} points", costs.curve.count);
  return text;
}

std::string NodesText(const Scenario& scenario) {
  TextTable table({{"NODES"},
                   {"COUNT", Align::kRight},
                   {"CORES", Align::kRight},
                   {"MEMORY GiB", Align::kRight},
                   {"GPUS", Align::kRight},
                   {"WATTS", Align::kRight},
                   {"PRICE/h", Align::kRight}},
                  2);
  for (const NodeGroup& group : scenario.node_groups) {
    const NodeCosts costs =
        scenario.kind_costs.empty() ? NodeCosts() : scenario.kind_costs[group.kind];
    table.Row({scenario.catalog->kinds[group.kind].name, Grouped(group.count),
               fmt::format("{:g}", group.cpu_millis.max() / 1000),
               fmt::format("{:g}", group.memory_bytes.max() / kBytesPerGib),
               fmt::format("{}", group.devices), WattsText(costs),
               fmt::format("{:g}", costs.price_per_hour)});
  }
  return table.Text();
}

std::string WorkloadsText(const Scenario& scenario) {
  TextTable table({{"WORKLOAD"},
                   {"CORES", Align::kRight},
                   {"MEMORY", Align::kRight},
                   {"GPUS", Align::kRight},
                   {"OF 100 PODS", Align::kRight}},
                  2);
  const Catalog& catalog = *scenario.catalog;
  const std::vector<int64_t> popularity =
      PopularityOfWorkloads(*scenario.arrivals, catalog.workload_count());
  int64_t all = 0;
  for (const int64_t one : popularity) all += one;
  std::vector<WorkloadId> order(catalog.workload_count());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<WorkloadId>(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](WorkloadId a, WorkloadId b) { return popularity[a] > popularity[b]; });
  const size_t shown = std::min<size_t>(order.size(), kArrivingShown);
  for (size_t i = 0; i < shown; ++i) {
    const Workload& workload = catalog.workloads[order[i]];
    table.Row({workload.name,
               fmt::format("{:g}", static_cast<double>(workload.requests.cpu_millis) / 1000),
               FormatBytes(workload.requests.memory_bytes), DevicesText(workload.devices),
               fmt::format("{:.1f}", 100.0 * static_cast<double>(popularity[order[i]]) /
                                         static_cast<double>(std::max<int64_t>(1, all)))});
  }
  if (order.size() > shown) table.Row({fmt::format("... and {} more", order.size() - shown)});
  return table.Text();
}

}  // namespace

Result<std::string> InspectPlacement(const std::filesystem::path& path, const Scenario& scenario,
                                     OutputFormat format) {
  TRY_ASSIGN(const LifecycleMetrics metrics, SampleEpisode(scenario));
  const std::string objective = scenario.objective ? ObjectiveText(*scenario.objective) : "";
  if (format == OutputFormat::kJson) {
    OrderedJson json{{"kind", "scenario"},
                     {"file", path.string()},
                     {"name", scenario.name},
                     {"seed", scenario.seed},
                     {"task", {{"kind", PlacementTask::kName}, {"objective", objective}}},
                     {"nodes", scenario.node_count()},
                     {"workloads", scenario.catalog->workload_count()}};
    OrderedJson& patterns = json["patterns"] = OrderedJson::array();
    for (const auto& calls : scenario.patterns)
      patterns.push_back({{"name", calls->name},
                          {"calls", calls->call_count()},
                          {"endpoints", calls->endpoints.size()}});
    OrderedJson& episode = json["kube_default_episode"] = OrderedJson::object();
    for (const MetricRow& row : metrics.Rows()) episode[std::string(row.name)] = row.value;
    return json.dump(1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
  }
  std::string text = fmt::format(
      "{}: scenario {}, seed {}: pods come and go, and are placed\n\n{}\n{}\n{}Task: placement; "
      "objective {}\nOne episode, placed as kube-scheduler does: {} pods, {:.0f} at once and "
      "{:.1f} waiting on average,\n        {:.1f} of {} nodes in use, {:.0f} % of CPU, {}\n",
      path.string(), scenario.name, scenario.seed, NodesText(scenario), WorkloadsText(scenario),
      scenario.patterns.empty() ? "" : PatternsText(scenario) + "\n",
      objective.empty() ? "none: name one by --objective" : objective, Grouped(metrics.arrived),
      metrics.MeanOverTime(metrics.pods_s), metrics.MeanOverTime(metrics.waiting_pods_s),
      metrics.MeanOverTime(metrics.active_nodes_s), scenario.node_count(),
      100 * metrics.MeanOverTime(metrics.node_utilisation_s[0]),
      FormatDuration(std::chrono::milliseconds(static_cast<int64_t>(metrics.seconds * 1000))));
  return text;
}

}  // namespace rudderfish
