// SPDX-License-Identifier: Apache-2.0
#include "scenario/trace_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>

#include "base/check.h"
#include "base/gzip.h"
#include "base/log.h"
#include "base/suggest.h"
#include "scenario/csv.h"
#include "scenario/name_index.h"

namespace rudderfish {
namespace {

constexpr std::string_view kFormats[] = {"openb"};
constexpr int64_t kMostTraceCpuMillis = 1'000'000'000;
constexpr int64_t kMostTraceMemoryMib = int64_t{1} << 30;
constexpr int64_t kMostSeconds = 4'000'000'000;
constexpr double kTraceNsPerS = 1e9, kMostTraceNs = 1e18;
constexpr int64_t kBytesPerMib = 1024 * 1024;

NameIndex KindNames(const Catalog& catalog) {
  NameIndex names("node type");
  for (const NodeKind& kind : catalog.kinds) names.Add(kind.name);
  return names;
}

// The workloads that pods of a trace belong to, by what they ask for.
class TraceWorkloads {
 public:
  TraceWorkloads(Catalog* catalog, Scenario* scenario)
      : catalog_(catalog), scenario_(scenario), names_("workload") {
    for (const Workload& workload : catalog->workloads) names_.Add(workload.name);
  }

  Result<WorkloadId> Of(const Resources& requests, DeviceRequest devices, NodeKindSet kinds,
                        const CsvReader& row) {
    const Key key{requests.cpu_millis, requests.memory_bytes, devices.count, devices.millis, kinds};
    const auto known = known_.find(key);
    if (known != known_.end()) return known->second;
    if (catalog_->workload_count() >= kMaxWorkloads)
      return row.Refuse(0, fmt::format("more than {} different pods", kMaxWorkloads));
    std::string name =
        fmt::format("{}m-{}Mi", requests.cpu_millis, requests.memory_bytes / kBytesPerMib);
    if (devices.count > 0) name += fmt::format("-{}x{}", devices.count, devices.millis);
    for (KindId kind = 0; kinds != kAnyKind && kind < catalog_->kind_count(); ++kind) {
      if (Contains(kinds, kind)) name += "-" + catalog_->kinds[kind].name;
    }
    if (!names_.Add(name)) return row.Refuse(0, fmt::format("two workloads are called {}", name));
    Workload workload{.name = std::move(name), .requests = requests, .replicas_max = 0};
    workload.devices = devices;
    workload.node_kinds = kinds;
    WorkloadStart start{.replicas = Distribution::Constant(0)};
    for (LayerId layer = 0; layer < catalog_->layer_count(); ++layer)
      start.initial_layers.push_back(layer);
    const WorkloadId id = catalog_->workload_count();
    catalog_->workloads.push_back(std::move(workload));
    scenario_->starts.push_back(std::move(start));
    known_.emplace(key, id);
    return id;
  }

 private:
  using Key = std::tuple<int64_t, int64_t, int16_t, int16_t, NodeKindSet>;

  Catalog* catalog_;
  Scenario* scenario_;
  NameIndex names_;
  std::map<Key, WorkloadId> known_;
};

enum PodColumn { kCpu, kMemory, kGpus, kGpuMillis, kGpuSpec, kCreated, kDeleted, kScheduled };
constexpr std::string_view kPodColumns[] = {"cpu_milli",     "memory_mib",    "num_gpu",
                                            "gpu_milli",     "gpu_spec",      "creation_time",
                                            "deletion_time", "scheduled_time"};

Result<DeviceRequest> DevicesOf(const CsvReader& row) {
  TRY_ASSIGN(const int64_t count, row.Int(kGpus, 0, kMaxDevices));
  TRY_ASSIGN(const int64_t millis, row.Int(kGpuMillis, 0, kDeviceMillis));
  if (count == 0 && millis != 0) return row.Refuse(kGpuMillis, "expected 0 of no GPU");
  if (count == 1 && millis == 0) return row.Refuse(kGpuMillis, "expected more than 0 of a GPU");
  if (count > 1 && millis != kDeviceMillis)
    return row.Refuse(kGpuMillis, "expected 1000, whole GPUs, where several are asked for");
  return DeviceRequest{static_cast<int16_t>(count), static_cast<int16_t>(millis)};
}

Result<NodeKindSet> KindsOf(const CsvReader& row, const NameIndex& kinds) {
  std::string_view text = row.Text(kGpuSpec);
  if (text.empty()) return kAnyKind;
  NodeKindSet set = 0;
  while (true) {
    const size_t bar = text.find('|');
    const KindId kind = kinds.Find(text.substr(0, bar));
    if (kind == kNone) return row.Refuse(kGpuSpec, kinds.Unknown(text.substr(0, bar)));
    set |= NodeKindSet{1} << kind;
    if (bar == std::string_view::npos) return set;
    text.remove_prefix(bar + 1);
  }
}

struct PodTimes {
  int64_t created_s = 0, runs_s = 0;
};

// When the first pod of the file comes, which need not be sorted.
Result<int64_t> FirstCreatedS(std::string_view text, std::string_view source_name) {
  TRY_ASSIGN(CsvReader rows, CsvReader::Open(text, source_name, kPodColumns));
  int64_t first_s = kMostSeconds, previous_s = 0;
  bool sorted = true;
  for (;;) {
    TRY_ASSIGN(const bool more, rows.Next());
    if (!more) break;
    TRY_ASSIGN(const int64_t created, rows.Int(kCreated, 0, kMostSeconds));
    sorted = sorted && created >= previous_s;
    first_s = std::min(first_s, created);
    previous_s = created;
  }
  if (!sorted)
    LogInfo("{}: rows are not in order of creation_time; sorted while loading", source_name);
  return first_s;
}

Result<PodTimes> TimesOf(const CsvReader& row) {
  TRY_ASSIGN(const int64_t created, row.Int(kCreated, 0, kMostSeconds));
  TRY_ASSIGN(const int64_t deleted, row.Int(kDeleted, 0, kMostSeconds));
  if (deleted < created)
    return row.Refuse(kDeleted, fmt::format("deleted at {}, before it was created", deleted));
  if (row.Text(kScheduled).empty()) return PodTimes{created, deleted - created};
  TRY_ASSIGN(const int64_t scheduled, row.Int(kScheduled, created, kMostSeconds));
  if (scheduled > deleted)
    return row.Refuse(kScheduled, fmt::format("scheduled at {}, after it was deleted", scheduled));
  return PodTimes{created, deleted - scheduled};
}

Result<SimTime> Warped(int64_t seconds, double warp, const CsvReader& row) {
  const double ns = static_cast<double>(seconds) * kTraceNsPerS / warp;
  if (ns > kMostTraceNs)
    return row.Refuse(kCreated,
                      "too late to be counted in ns: raise `time_warp` and `lifetime_warp`");
  return SimTime(std::llround(ns));
}

}  // namespace

Result<void> CheckTraceFormat(std::string_view format, const YamlNode& where) {
  if (std::find(std::begin(kFormats), std::end(kFormats), format) != std::end(kFormats)) return {};
  return where.Refuse(fmt::format("no trace format is called \"{}\"{} (there is {})", format,
                                  DidYouMean(format, kFormats), fmt::join(kFormats, ", ")));
}

Result<void> ReadOpenbNodes(std::string_view text, std::string_view source_name,
                            Scenario* scenario) {
  enum { kName, kNodeCpu, kNodeMemory, kNodeGpus, kModel };
  constexpr std::string_view kColumns[] = {"sn", "cpu_milli", "memory_mib", "gpu", "model"};
  TRY_ASSIGN(CsvReader rows, CsvReader::Open(text, source_name, kColumns));
  const NameIndex kinds = KindNames(*scenario->catalog);
  auto names = std::make_shared<Names>(*scenario->names);
  auto arrivals = std::make_shared<Arrivals>(*scenario->arrivals);
  arrivals->first_trace_group = static_cast<int>(scenario->node_groups.size());
  NameIndex known("node");
  for (const std::string& name : names->nodes) known.Add(name);
  for (;;) {
    TRY_ASSIGN(const bool more, rows.Next());
    if (!more) break;
    const std::string_view name = rows.Text(kName);
    if (name.empty() || name.size() > 200) return rows.Refuse(kName, "expected a name");
    if (!known.Add(std::string(name)))
      return rows.Refuse(kName, fmt::format("two nodes are called {}", name));
    if (names->nodes.size() >= kMaxNodes)
      return rows.Refuse(kName, fmt::format("more than {} nodes in all", kMaxNodes));
    TRY_ASSIGN(const int64_t cpu, rows.Int(kNodeCpu, 0, kMostTraceCpuMillis));
    TRY_ASSIGN(const int64_t memory, rows.Int(kNodeMemory, 0, kMostTraceMemoryMib));
    TRY_ASSIGN(const int64_t gpus, rows.Int(kNodeGpus, 0, kMaxDevices));
    const std::string_view model = rows.Text(kModel).empty() ? "cpu" : rows.Text(kModel);
    const KindId kind = kinds.Find(model);
    if (kind == kNone) return rows.Refuse(kModel, kinds.Unknown(model));
    names->nodes.emplace_back(name);
    scenario->node_groups.push_back(
        {.kind = kind,
         .count = 1,
         .cpu_millis = Distribution::Constant(static_cast<double>(cpu)),
         .memory_bytes = Distribution::Constant(static_cast<double>(memory * kBytesPerMib)),
         .devices = static_cast<int>(gpus)});
  }
  scenario->names = std::move(names);
  scenario->arrivals = std::move(arrivals);
  return {};
}

Result<void> ReadOpenbPods(std::string_view text, std::string_view source_name,
                           Scenario* scenario) {
  TRY_ASSIGN(CsvReader rows, CsvReader::Open(text, source_name, kPodColumns));
  const NameIndex kinds = KindNames(*scenario->catalog);
  auto catalog = std::make_shared<Catalog>(*scenario->catalog);
  TraceWorkloads workloads(catalog.get(), scenario);
  auto pods = std::make_shared<std::vector<TracePod>>();
  const TraceSource& trace = scenario->arrivals->trace;
  TRY_ASSIGN(const int64_t first_s, FirstCreatedS(text, source_name));
  for (;;) {
    TRY_ASSIGN(const bool more, rows.Next());
    if (!more) break;
    TRY_ASSIGN(const int64_t cpu, rows.Int(kCpu, 0, kMostTraceCpuMillis));
    TRY_ASSIGN(const int64_t memory, rows.Int(kMemory, 0, kMostTraceMemoryMib));
    TRY_ASSIGN(const DeviceRequest devices, DevicesOf(rows));
    TRY_ASSIGN(const NodeKindSet set, KindsOf(rows, kinds));
    TRY_ASSIGN(const PodTimes times, TimesOf(rows));
    if (pods->size() >= kMaxPods)
      return rows.Refuse(kCpu, fmt::format("more than {} pods", kMaxPods));
    TracePod pod;
    TRY_ASSIGN(pod.workload, workloads.Of({cpu, memory * kBytesPerMib}, devices, set, rows));
    TRY_ASSIGN(pod.at, Warped(times.created_s - first_s, trace.time_warp, rows));
    TRY_ASSIGN(pod.lifetime, Warped(times.runs_s, trace.lifetime_warp, rows));
    pods->push_back(pod);
  }
  if (pods->empty()) return Invalid("{}: expected at least one pod, found none", source_name);
  std::stable_sort(pods->begin(), pods->end(),
                   [](const TracePod& a, const TracePod& b) { return a.at < b.at; });
  auto arrivals = std::make_shared<Arrivals>(*scenario->arrivals);
  arrivals->trace_pods = std::move(pods);
  arrivals->first_trace_workload = scenario->catalog->workload_count();
  scenario->arrivals = std::move(arrivals);
  scenario->catalog = std::move(catalog);
  return {};
}

Result<void> ReadTraces(const std::filesystem::path& folder, Scenario* scenario) {
  if (scenario->arrivals == nullptr || !scenario->arrivals->has_trace()) return {};
  const TraceSource trace = scenario->arrivals->trace;
  if (!trace.nodes_file.empty()) {
    const std::filesystem::path path = folder / trace.nodes_file;
    TRY_ASSIGN(const std::string text, ReadDataFile(path));
    TRY(ReadOpenbNodes(text, path.string(), scenario));
  }
  const std::filesystem::path path = folder / trace.pods_file;
  TRY_ASSIGN(const std::string text, ReadDataFile(path));
  TRY(ReadOpenbPods(text, path.string(), scenario));
  if (scenario->names->nodes.empty())
    return Invalid("{}: the trace holds no nodes", scenario->arrivals->trace.nodes_file);
  return {};
}

}  // namespace rudderfish
