// SPDX-License-Identifier: Apache-2.0
#include "learn/run_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/files.h"
#include "base/sha256.h"
#include "nn/kernel.h"

namespace rudderfish {
namespace {

constexpr std::string_view kFormat = "run/v1";

bool Exists(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

// What the machine calls its processor; bits of results are the same on one class of them.
std::string CpuModel() {
  const Result<std::string> text = ReadFile("/proc/cpuinfo");
  if (!text) return "unknown";
  constexpr std::string_view kKey = "model name";
  const size_t line = text->find(kKey);
  const size_t colon = line == std::string::npos ? line : text->find(": ", line);
  if (colon == std::string::npos) return "unknown";
  return text->substr(colon + 2, text->find('\n', colon) - colon - 2);
}

std::shared_ptr<const Arrivals> WithFullPaths(Arrivals arrivals,
                                              const std::filesystem::path& folder) {
  for (std::string* file : {&arrivals.trace.pods_file, &arrivals.trace.nodes_file}) {
    if (!file->empty()) *file = std::filesystem::absolute(folder / *file).string();
  }
  return std::make_shared<const Arrivals>(std::move(arrivals));
}

bool HasTrace(const Load& load) {
  return std::any_of(load.loads.begin(), load.loads.end(),
                     [](const NamedTraffic& one) { return !one.traffic.file.empty(); });
}

std::shared_ptr<const Load> WithFullPaths(Load load, const std::filesystem::path& folder) {
  for (NamedTraffic& one : load.loads) {
    if (one.traffic.file.empty()) continue;
    one.traffic.file = std::filesystem::absolute(folder / one.traffic.file).string();
  }
  return std::make_shared<const Load>(std::move(load));
}

std::shared_ptr<const RegionWorld> WithFullPaths(RegionWorld regions,
                                                 const std::filesystem::path& folder) {
  regions.demand->file = std::filesystem::absolute(folder / regions.demand->file).string();
  return std::make_shared<const RegionWorld>(std::move(regions));
}

}  // namespace

std::filesystem::path RunPaths::scenario(int index, int count) const {
  return folder /
         (count == 1 ? std::string("scenario.yaml") : fmt::format("scenario-{}.yaml", index + 1));
}

Result<TrainScenario> TrainScenario::Open(const std::filesystem::path& path,
                                          const std::optional<Objective>& objective,
                                          std::span<const YamlChange> changes) {
  TrainScenario opened;
  TRY_ASSIGN(opened.text, ReadFile(path));
  TRY_ASSIGN(Scenario scenario, LoadScenario(path, changes));
  TRY_ASSIGN(const std::vector<std::filesystem::path> files, ScenarioFiles(path, changes));
  Sha256 traces;
  for (size_t i = 1; i < files.size(); ++i) {
    TRY_ASSIGN(const std::string trace, ReadFile(files[i]));
    traces.Update(trace);
  }
  if (files.size() > 1) opened.traces_sha256 = traces.Hex();
  if (!changes.empty()) opened.text = ToYaml(scenario);
  if (objective && !scenario.places_pods()) {
    return Invalid("{}: --objective is of worlds in which pods come and go", path.string());
  }
  if (objective) scenario.objective = objective;
  if (scenario.load != nullptr && HasTrace(*scenario.load)) {
    scenario.load = WithFullPaths(*scenario.load, path.parent_path());
    opened.text = ToYaml(scenario);
  }
  if (scenario.places_pods() && (objective || scenario.arrivals->has_trace())) {
    scenario.arrivals = WithFullPaths(*scenario.arrivals, path.parent_path());
    opened.text = ToYaml(scenario);
  }
  if (scenario.regions != nullptr && scenario.regions->demand) {
    scenario.regions = WithFullPaths(*scenario.regions, path.parent_path());
    opened.text = ToYaml(scenario);
  }
  opened.scenario = std::make_shared<const Scenario>(std::move(scenario));
  return opened;
}

std::string TrainScenario::Digest() const { return Sha256Hex(ToYaml(*scenario) + traces_sha256); }

bool HasRun(const std::filesystem::path& folder) {
  return Exists(RunPaths{folder}.config()) || SeedFolders(folder) > 0;
}

int SeedFolders(const std::filesystem::path& folder) {
  int seeds = 0;
  while (Exists(RunPaths{folder}.seed(seeds + 1).config())) ++seeds;
  return seeds;
}

Result<RunConfig> ReadRunConfig(const RunPaths& paths) {
  TRY_ASSIGN(const std::string text, ReadFile(paths.config()));
  TRY_ASSIGN(const YamlNode root, ParseYaml(text, paths.config().string()));
  TRY_ASSIGN(YamlMap map, root.AsMap());
  RunConfig config;
  TRY_ASSIGN(const YamlNode format, map.Required("rudderfish"));
  TRY_ASSIGN(const std::string written, format.AsString());
  if (written != kFormat)
    return format.Expected(fmt::format("{}, the format of this version", kFormat));
  TRY_ASSIGN(config.options, ReadTrainOptions(&map));
  TRY_ASSIGN(const std::vector<YamlNode> scenarios, map.RequiredList("scenarios"));
  for (const YamlNode& node : scenarios) {
    TRY_ASSIGN(YamlMap fields, node.AsMap());
    TRY(fields.RequiredString("name"));
    TRY_ASSIGN(std::string digest, fields.RequiredString("sha256"));
    config.scenario_digests.push_back(std::move(digest));
    TRY(fields.Finish());
  }
  TRY_ASSIGN(YamlMap made, map.RequiredMap("made"));
  TRY_ASSIGN(config.provenance.version, made.OptionalString("version", ""));
  TRY_ASSIGN(config.provenance.command, made.OptionalString("command", ""));
  TRY(made.OptionalString("cpu", ""));
  TRY(made.OptionalString("kernels", ""));
  TRY(made.Finish());
  TRY(map.Finish());
  return config;
}

Result<std::vector<TrainScenario>> ReadRunScenarios(const RunPaths& paths) {
  TRY_ASSIGN(const RunConfig config, ReadRunConfig(paths));
  std::vector<TrainScenario> scenarios;
  const int count = static_cast<int>(config.scenario_digests.size());
  for (int i = 0; i < count; ++i) {
    TRY_ASSIGN(TrainScenario scenario, TrainScenario::Open(paths.scenario(i, count)));
    scenarios.push_back(std::move(scenario));
  }
  return scenarios;
}

Result<void> WriteRunFolder(const RunPaths& paths, const TrainOptions& options,
                            const Provenance& provenance,
                            const std::vector<TrainScenario>& scenarios) {
  TRY(MakeDirectories(paths.folder));
  const int count = static_cast<int>(scenarios.size());
  for (int i = 0; i < count; ++i)
    TRY(WriteFileAtomically(paths.scenario(i, count), scenarios[i].text));
  YamlWriter out;
  out.Comment(
      "A run of `rudderfish train`, with every option it used. --resume goes on with these.");
  out.Field("rudderfish", kFormat);
  WriteTrainOptions(options, &out);
  out.BeginList("scenarios");
  for (const TrainScenario& scenario : scenarios) {
    out.FlowItem({{"name", scenario.scenario->name}, {"sha256", scenario.Digest()}});
  }
  out.End();
  out.BeginMap("made");
  out.Field("version", provenance.version);
  out.Field("command", provenance.command);
  out.Field("cpu", CpuModel());
  out.Field("kernels", nn::BestKernels().name);
  out.End();
  return WriteFileAtomically(paths.config(), out.Take());
}

}  // namespace rudderfish
