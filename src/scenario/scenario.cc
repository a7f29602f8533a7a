// SPDX-License-Identifier: Apache-2.0
#include "scenario/scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "base/files.h"
#include "base/gzip.h"
#include "base/sha256.h"
#include "base/units.h"
#include "scenario/load_parser.h"
#include "scenario/trace_reader.h"

namespace rudderfish {
namespace {

std::string Describe(const Resources& resources) {
  return fmt::format("{} cores and {}", resources.cpu_millis / 1000.0,
                     FormatBytes(resources.memory_bytes));
}

Resources Most(const NodeGroup& group) {
  return {static_cast<int64_t>(group.cpu_millis.max()),
          static_cast<int64_t>(group.memory_bytes.max())};
}

}  // namespace

int Scenario::pod_limit() const {
  int pods = 0;
  for (const WorkloadStart& start : starts) pods += static_cast<int>(start.replicas.max());
  return pods;
}

std::vector<KindId> Scenario::KindsOfNodes() const {
  std::vector<KindId> kinds;
  for (const NodeGroup& group : node_groups) kinds.insert(kinds.end(), group.count, group.kind);
  return kinds;
}

int Scenario::PatternNamed(std::string_view pattern) const {
  const auto at = std::find_if(patterns.begin(), patterns.end(),
                               [&](const auto& p) { return p->name == pattern; });
  return at == patterns.end() ? kNone : static_cast<int>(at - patterns.begin());
}

std::string WhyInfeasible(const Scenario& scenario, WorkloadId* workload) {
  const Catalog& catalog = *scenario.catalog;
  // Sums in double: a million pods of any size cannot overflow it, and a per mille of error does
  // not matter here.
  double cpu_asked = 0, memory_asked = 0, cpu_most = 0, memory_most = 0;
  for (*workload = 0; *workload < catalog.workload_count(); ++*workload) {
    const WorkloadStart& start = scenario.starts[*workload];
    if (start.replicas.max() == 0) continue;
    const Resources& requests = catalog.workloads[*workload].requests;
    cpu_asked += start.replicas.min() * static_cast<double>(requests.cpu_millis);
    memory_asked += start.replicas.min() * static_cast<double>(requests.memory_bytes);
    Resources most;
    bool fits = false;
    for (const NodeGroup& group : scenario.node_groups) {
      const LayerId layer = catalog.kinds[group.kind].layer;
      if (group.count == 0 ||
          !std::binary_search(start.initial_layers.begin(), start.initial_layers.end(), layer)) {
        continue;
      }
      fits = fits || Most(group).Fits(requests);
      most.cpu_millis = std::max(most.cpu_millis, Most(group).cpu_millis);
      most.memory_bytes = std::max(most.memory_bytes, Most(group).memory_bytes);
    }
    if (fits) continue;
    std::vector<std::string_view> layers;
    for (LayerId layer : start.initial_layers) layers.push_back(catalog.layers[layer].name);
    return fmt::format(
        "a pod of {} requests {}, which no node of its layers ({}) can hold; the most there is on "
        "one is {}",
        catalog.workloads[*workload].name, Describe(requests), fmt::join(layers, ", "),
        Describe(most));
  }
  *workload = kNone;
  for (const NodeGroup& group : scenario.node_groups) {
    cpu_most += group.count * group.cpu_millis.max();
    memory_most += group.count * group.memory_bytes.max();
  }
  if (cpu_asked <= cpu_most && memory_asked <= memory_most) return {};
  return fmt::format(
      "the fewest replicas together request {:.4g} cores and {:.4g} GiB, all nodes offer at most "
      "{:.4g} cores and {:.4g} GiB",
      cpu_asked / 1000, memory_asked / kBytesPerGib, cpu_most / 1000, memory_most / kBytesPerGib);
}

Result<void> CheckMovesPods(const Scenario& scenario, std::string_view source_name) {
  if (scenario.regions != nullptr)
    return Invalid("{}: has `regions`: requests are routed in it, and no pods moved", source_name);
  if (!scenario.places_pods()) return {};
  return Invalid(
      "{}: has `arrivals`: pods come and go in it and are placed; running pods are moved in "
      "scenarios without",
      source_name);
}

Result<Scenario> LoadScenario(const std::filesystem::path& path) { return LoadScenario(path, {}); }

namespace {

Result<YamlNode> ReadRoot(const std::filesystem::path& path, std::span<const YamlChange> changes) {
  TRY_ASSIGN(const std::string text, ReadFile(path));
  TRY_ASSIGN(YamlNode root, ParseYaml(text, path.string()));
  for (const YamlChange& change : changes) {
    TRY_ASSIGN(root, ChangeYaml(root, change));
  }
  return root;
}

// What lies in `node` under one key after another; nothing where one of them is not there.
std::optional<YamlNode> Within(YamlNode node, std::initializer_list<std::string_view> keys) {
  for (std::string_view key : keys) {
    Result<YamlMap> map = node.AsMap();
    std::optional<YamlNode> found = map ? map->Optional(key) : std::nullopt;
    if (!found) return std::nullopt;
    node = *std::move(found);
  }
  return node;
}

// A file that is not there is refused where the scenario names it.
Result<void> CheckIsThere(const std::optional<YamlNode>& named,
                          const std::filesystem::path& folder) {
  if (!named) return {};
  TRY_ASSIGN(const std::string file, named->AsString());
  std::error_code ignored;
  if (file.empty() || std::filesystem::exists(folder / file, ignored)) return {};
  return named->Refuse(fmt::format("there is no file {}", (folder / file).string()));
}

Result<void> CheckNamedFiles(const YamlNode& root, const Scenario& scenario,
                             const std::filesystem::path& folder) {
  for (std::string_view key : {"nodes", "pods"})
    TRY(CheckIsThere(Within(root, {"arrivals", "trace", key}), folder));
  if (scenario.regions != nullptr) {
    TRY(CheckIsThere(Within(root, {"regions", "demand", "replay", "file"}), folder));
    TRY(CheckIsThere(Within(root, {"regions", "carbon_file"}), folder));
  }
  if (scenario.load == nullptr) return {};
  for (const NamedTraffic& named : scenario.load->loads)
    TRY(CheckIsThere(Within(root, {"load", "loads", named.name, "replay", "file"}), folder));
  return {};
}

}  // namespace

Result<Scenario> LoadScenario(const std::filesystem::path& path,
                              std::span<const YamlChange> changes) {
  TRY_ASSIGN(const YamlNode root, ReadRoot(path, changes));
  TRY_ASSIGN(Scenario scenario, ParseScenario(root));
  TRY(CheckNamedFiles(root, scenario, path.parent_path()));
  TRY(ReadTraces(path.parent_path(), &scenario));
  if (scenario.load != nullptr) {
    auto load = std::make_shared<Load>(*scenario.load);
    TRY(ReadRequestTraces(path.parent_path(), load.get()));
    scenario.load = std::move(load);
  }
  if (scenario.regions != nullptr) {
    auto regions = std::make_shared<RegionWorld>(*scenario.regions);
    if (regions->demand)
      TRY(ReadRequestTrace(path.parent_path(), "regions.demand", &*regions->demand));
    if (!regions->carbon_file.empty()) {
      const std::filesystem::path file = path.parent_path() / regions->carbon_file;
      TRY_ASSIGN(const std::string text, ReadDataFile(file));
      TRY(ReadRegionCarbon(text, file.string(), regions.get()));
    }
    scenario.regions = std::move(regions);
  }
  return scenario;
}

Result<std::vector<std::filesystem::path>> ScenarioFiles(const std::filesystem::path& path,
                                                         std::span<const YamlChange> changes) {
  TRY_ASSIGN(const YamlNode root, ReadRoot(path, changes));
  TRY_ASSIGN(const Scenario scenario, ParseScenario(root));
  std::vector<std::filesystem::path> files = {path};
  const auto add = [&](const std::string& name) {
    if (name.empty()) return;
    std::filesystem::path file = path.parent_path() / name;
    if (std::find(files.begin(), files.end(), file) == files.end())
      files.push_back(std::move(file));
  };
  if (scenario.arrivals != nullptr) {
    add(scenario.arrivals->trace.nodes_file);
    add(scenario.arrivals->trace.pods_file);
  }
  if (scenario.load != nullptr) {
    for (const NamedTraffic& named : scenario.load->loads) add(named.traffic.file);
  }
  if (scenario.regions != nullptr) {
    if (scenario.regions->demand) add(scenario.regions->demand->file);
    add(scenario.regions->carbon_file);
  }
  return files;
}

Result<std::string> DigestOfScenario(const std::filesystem::path& path) {
  TRY_ASSIGN(const std::vector<std::filesystem::path> files, ScenarioFiles(path));
  Sha256 digest;
  for (const std::filesystem::path& file : files) {
    TRY_ASSIGN(const std::string content, ReadFile(file));
    digest.Update(content);
  }
  return digest.Hex();
}

}  // namespace rudderfish
