// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/sha256.h"
#include "kube/dump.h"
#include "kube/kube_cluster.h"
#include "scenario/application_file.h"
#include "scenario/start_states.h"
#include "task/migration.h"

// parity_encode DUMP FOLDER...: for each folder the digest of what a network would see of
// application.yaml in the dump of a cluster, and of scenario.yaml in start.jsonl; if they differ,
// where first. One JSON object a line.

namespace rudderfish {
namespace {

namespace fs = std::filesystem;

GraphBatch Encode(const State& state, const LatencyLaw& law) {
  const MigrationTask task{MigrationOptions{}};
  Evaluator model(law);
  model.Reset(state);
  ActionSpace space;
  task.Space(&model, Question{}, &space);
  GraphBatch batch;
  batch.widths = task.widths();
  task.Encode(&model, Question{}, &space, &batch);
  return batch;
}

struct Part {
  std::string name;
  std::string bytes;
};

template <class T, class A>
Part PartOf(std::string name, const std::vector<T, A>& values) {
  return {std::move(name),
          std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T))};
}

std::vector<Part> PartsOf(const GraphBatch& batch) {
  return {PartOf("context", batch.context),      PartOf("nodes", batch.nodes),
          PartOf("workloads", batch.workloads),  PartOf("placements", batch.placements),
          PartOf("calls", batch.calls),          PartOf("ends", batch.ends),
          PartOf("candidates", batch.candidates)};
}

std::string Digest(const std::vector<Part>& parts) {
  std::string all;
  for (const Part& part : parts)
    all += fmt::format("{} {}\n", part.name, part.bytes.size()) + part.bytes;
  return Sha256Hex(all);
}

std::string Difference(const std::vector<Part>& live, const std::vector<Part>& simulated) {
  for (size_t i = 0; i < live.size(); ++i) {
    const std::string &a = live[i].bytes, &b = simulated[i].bytes;
    if (a == b) continue;
    if (a.size() != b.size()) {
      return fmt::format("{}: {} bytes live, {} simulated", live[i].name, a.size(), b.size());
    }
    const size_t at = (std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin()) / 4 * 4;
    float x, y;
    std::memcpy(&x, a.data() + at, 4);
    std::memcpy(&y, b.data() + at, 4);
    return fmt::format("{}: number {} is {} live, {} simulated", live[i].name, at / 4, x, y);
  }
  return "";
}

Result<Json> Compare(const kube::Mirror& mirror, const fs::path& folder) {
  TRY_ASSIGN(Application application, LoadApplication(folder / "application.yaml"));
  TRY_ASSIGN(const LatencyLaw law, LatencyLaw::Named(application.law));
  kube::KubeCluster cluster(&mirror, std::make_shared<const Application>(std::move(application)));
  State live;
  TRY(cluster.Refresh(&live));
  TRY_ASSIGN(const Scenario scenario, LoadScenario(folder / "scenario.yaml"));
  TRY_ASSIGN(const LatencyLaw simulated_law, LatencyLaw::Named(scenario.law));
  TRY_ASSIGN(const std::vector<StartState> starts,
             LoadStartStates(folder / "start.jsonl", scenario));
  const std::vector<Part> a = PartsOf(Encode(live, law));
  const std::vector<Part> b = PartsOf(Encode(starts.at(0).state, simulated_law));
  size_t bytes = 0;
  for (const Part& part : a) bytes += part.bytes.size();
  return Json{{"situation", folder.filename().string()},
              {"live", Digest(a)},
              {"simulated", Digest(b)},
              {"bytes", bytes},
              {"difference", Difference(a, b)}};
}

Result<void> Run(int argc, char** argv) {
  const SystemClock clock;
  kube::Mirror mirror(&clock);
  const std::vector<fs::path> dumps{argv[1]};
  TRY(kube::LoadDumps(dumps, &mirror));
  for (int i = 2; i < argc; ++i) {
    TRY_ASSIGN(const Json line, Compare(mirror, argv[i]));
    fmt::print("{}\n", line.dump());
  }
  return {};
}

}  // namespace
}  // namespace rudderfish

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("parity_encode DUMP FOLDER...\n", stderr);
    return 2;
  }
  const auto done = rudderfish::Run(argc, argv);
  if (!done) fmt::print(stderr, "parity_encode: {}\n", done.error().message);
  return done ? 0 : 1;
}
