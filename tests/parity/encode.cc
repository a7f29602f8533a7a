// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "base/json.h"
#include "base/sha256.h"
#include "kube/cluster_feed.h"
#include "kube/dump.h"
#include "kube/kube_cluster.h"
#include "kube/kubeconfig.h"
#include "scenario/application_file.h"
#include "scenario/start_states.h"
#include "task/migration.h"

// parity_encode KUBECONFIG: watches the cluster from its start on. To each line of its standard
// input, "DUMP FOLDER...", it answers with one line of JSON a folder and an empty one, once its
// mirror holds what the dump of the cluster says: the digest of what a network would see of
// application.yaml in the mirror, in the dump, and of scenario.yaml in start.jsonl; if they differ,
// where first.

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

// An encoding and where it comes from.
struct Seen {
  std::string_view source;
  std::vector<Part> parts;
};

std::string Difference(const Seen& one, const Seen& other) {
  for (size_t i = 0; i < one.parts.size(); ++i) {
    const std::string &a = one.parts[i].bytes, &b = other.parts[i].bytes;
    const std::string& name = one.parts[i].name;
    if (a == b) continue;
    if (a.size() != b.size()) {
      return fmt::format("{}: {} bytes {}, {} {}", name, a.size(), one.source, b.size(),
                         other.source);
    }
    const size_t at = (std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin()) / 4 * 4;
    float x, y;
    std::memcpy(&x, a.data() + at, 4);
    std::memcpy(&y, b.data() + at, 4);
    return fmt::format("{}: number {} is {} {}, {} {}", name, at / 4, x, one.source, y,
                       other.source);
  }
  return "";
}

template <class T>
bool Same(const kube::Collection<T>& a, const kube::Collection<T>& b) {
  return std::equal(a.objects().begin(), a.objects().end(), b.objects().begin(), b.objects().end(),
                    [](const auto& x, const auto& y) {
                      return x.first == y.first && x.second.meta.resource_version.text ==
                                                       y.second.meta.resource_version.text;
                    });
}

// The application of a folder in the cluster that is watched. Its State is refreshed from what
// changed for as long as the file stays the same.
struct Watched {
  std::string file;
  std::unique_ptr<kube::KubeCluster> cluster;
  State state;
};

class Encoder {
 public:
  explicit Encoder(std::unique_ptr<kube::ApiClient> client)
      : client_(std::move(client)), mirror_(&clock_), feed_(client_.get()) {
    feed_.Add(&mirror_, kube::EndedPods::kAll);
  }

  Result<void> Run() {
    TRY(feed_.Sync(kPatience));
    std::string line;
    for (;;) {
      pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
      while (::poll(&input, 1, 0) == 0) feed_.Poll(std::chrono::milliseconds(20));
      if (!std::getline(std::cin, line)) return {};
      TRY(Answer(line));
    }
  }

 private:
  static constexpr Duration kPatience = std::chrono::seconds(60);

  Result<void> Answer(const std::string& line) {
    std::istringstream words(line);
    std::string dump, folder;
    words >> dump;
    kube::Mirror dumped(&clock_);
    const std::vector<fs::path> dumps{dump};
    TRY(kube::LoadDumps(dumps, &dumped));
    TRY(CatchUp(dumped));
    while (words >> folder) {
      TRY_ASSIGN(const Json answer, Compare(dumped, folder));
      fmt::print("{}\n", answer.dump());
    }
    fmt::print("\n");
    std::fflush(stdout);
    return {};
  }

  // Polls until everything is there that the dump holds, in the same versions.
  Result<void> CatchUp(const kube::Mirror& dumped) {
    const Instant end = clock_.Now() + kPatience;
    const auto same = [&] {
      return Same(mirror_.nodes, dumped.nodes) && Same(mirror_.pods, dumped.pods) &&
             Same(mirror_.deployments, dumped.deployments) &&
             Same(mirror_.replica_sets, dumped.replica_sets) &&
             Same(mirror_.stateful_sets, dumped.stateful_sets);
    };
    while (!same()) {
      if (clock_.Now() > end)
        return Fail(ErrorCode::kUnavailable, "the mirror does not come to equal the dump");
      feed_.Poll(std::chrono::milliseconds(20));
    }
    return {};
  }

  Result<const State*> Watch(const fs::path& folder) {
    Watched& watched = watched_[folder.string()];
    TRY_ASSIGN(std::string file, ReadFile(folder / "application.yaml"));
    if (watched.cluster == nullptr || file != watched.file) {
      TRY_ASSIGN(Application application, LoadApplication(folder / "application.yaml"));
      watched.cluster = std::make_unique<kube::KubeCluster>(
          &mirror_, std::make_shared<const Application>(std::move(application)));
      watched.state = {};
      watched.file = std::move(file);
    }
    TRY(watched.cluster->Refresh(&watched.state));
    return &watched.state;
  }

  Result<Json> Compare(const kube::Mirror& dumped, const fs::path& folder) {
    TRY_ASSIGN(Application application, LoadApplication(folder / "application.yaml"));
    TRY_ASSIGN(const LatencyLaw law, LatencyLaw::Named(application.law));
    kube::KubeCluster cluster(&dumped, std::make_shared<const Application>(std::move(application)));
    State listed;
    TRY(cluster.Refresh(&listed));
    TRY_ASSIGN(const State* watched, Watch(folder));
    TRY_ASSIGN(const Scenario scenario, LoadScenario(folder / "scenario.yaml"));
    TRY_ASSIGN(const LatencyLaw simulated_law, LatencyLaw::Named(scenario.law));
    TRY_ASSIGN(const std::vector<StartState> starts,
               LoadStartStates(folder / "start.jsonl", scenario));
    const Seen by_watch{"watched", PartsOf(Encode(*watched, law))};
    const Seen by_list{"dumped", PartsOf(Encode(listed, law))};
    const Seen simulated{"simulated", PartsOf(Encode(starts.at(0).state, simulated_law))};
    size_t bytes = 0;
    for (const Part& part : by_watch.parts) bytes += part.bytes.size();
    std::string difference = Difference(by_watch, by_list);
    if (difference.empty()) difference = Difference(by_list, simulated);
    return Json{{"situation", folder.filename().string()},
                {"watched", Digest(by_watch.parts)},
                {"dumped", Digest(by_list.parts)},
                {"simulated", Digest(simulated.parts)},
                {"bytes", bytes},
                {"difference", difference}};
  }

  SystemClock clock_;
  std::unique_ptr<kube::ApiClient> client_;
  kube::Mirror mirror_;
  kube::ClusterFeed feed_;
  std::map<std::string, Watched> watched_;  // By folder.
};

Result<void> Run(const fs::path& kubeconfig) {
  static const SystemClock clock;
  TRY_ASSIGN(kube::ClusterAccess access, kube::FindCluster({.kubeconfig = kubeconfig}, {}));
  TRY_ASSIGN(std::unique_ptr<kube::ApiClient> client,
             kube::ApiClient::Open(std::move(access), &clock));
  return Encoder(std::move(client)).Run();
}

}  // namespace
}  // namespace rudderfish

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("parity_encode KUBECONFIG\n", stderr);
    return 2;
  }
  const auto done = rudderfish::Run(argv[1]);
  if (!done) fmt::print(stderr, "parity_encode: {}\n", done.error().message);
  return done ? 0 : 1;
}
