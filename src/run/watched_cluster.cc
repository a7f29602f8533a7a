// SPDX-License-Identifier: Apache-2.0
#include "run/watched_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/rng.h"
#include "kube/events.h"
#include "kube/kube_cluster.h"
#include "kube/mirror.h"
#include "sim/sim_cluster.h"

namespace rudderfish {
namespace {

constexpr Duration kWatchLeast = std::chrono::seconds(1);  // The API counts in seconds.
constexpr Duration kWatchMost = std::chrono::minutes(1);
constexpr int kDriftAttempts = 100;

std::string ApiVersionOf(std::string_view kind) {
  const auto resource = kube::ResourceOfKind(kind);
  if (!resource) return "v1";
  const kube::ResourceName& name = kube::NameOf(*resource);
  return name.group.empty() ? std::string(name.version)
                            : fmt::format("{}/{}", name.group, name.version);
}

// Somebody else moves a pod: what happens in a real cluster without us.
void MoveSome(Rng rng, SimCluster* cluster) {
  const State& state = cluster->state();
  for (int attempt = 0; attempt < kDriftAttempts; ++attempt) {
    const auto pod = static_cast<PodId>(rng.Below(static_cast<uint32_t>(state.pods.size())));
    const auto to = static_cast<NodeId>(rng.Below(static_cast<uint32_t>(state.nodes.size())));
    const bool accepts = state.catalog->layers[state.kind_of(to).layer].accepts_moves;
    if (!state.workload_of(pod).movable || !accepts) continue;
    const NodeId from = state.pods.node[pod];
    const Intent intent{Migrate{pod, from, to}, {.state_version = 0, .pod_was_on = from}};
    Completions completions;
    cluster->Submit({&intent, 1}, &completions);
    if (completions[0].outcome) return;
  }
}

class SimulatedCluster final : public WatchedCluster {
 public:
  SimulatedCluster(const ClusterConfig& config, const Clock* clock,
                   std::vector<WatchedApplication> applications)
      : config_(config), clock_(clock), advanced_(clock->Now()), drifted_(clock->Now()) {
    for (WatchedApplication& one : applications) {
      clusters_.push_back(std::make_unique<SimCluster>(std::move(one.start)));
    }
  }

  void Watch(std::vector<WatchedApplication>, const Config&) override {}
  Cluster* Of(size_t application) override { return clusters_[application].get(); }
  std::vector<std::string> Missing() const override { return {}; }

  void Poll() override {
    const Instant now = clock_->Now();
    for (const auto& cluster : clusters_) cluster->Advance(now - advanced_);
    advanced_ = now;
    if (config_.drift.count() == 0 || now - drifted_ < config_.drift) return;
    drifted_ = now;
    for (const auto& cluster : clusters_) MoveSome(Rng(config_.seed, ++drifts_), cluster.get());
  }

 private:
  ClusterConfig config_;
  const Clock* clock_;
  std::vector<std::unique_ptr<SimCluster>> clusters_;
  Instant advanced_, drifted_;
  uint64_t drifts_ = 0;
};

// An application within a scope: a workload with a pod that the selector does not pick stays where
// it is. While a pod of the application is on a node that is not ready there is no state: whether
// the pod serves is not known, and after an outage of the API server such nodes recover by
// themselves.
class ScopedCluster final : public Cluster {
 public:
  ScopedCluster(const kube::Mirror* mirror, std::shared_ptr<const Application> application,
                LabelSelector scope, Duration staleness)
      : mirror_(mirror),
        cluster_(mirror, std::move(application), {.staleness_limit = staleness}),
        scope_(std::move(scope)) {}

  Result<void> Refresh(State* state) override {
    TRY(cluster_.Refresh(state));
    TRY(CheckReady(*state));
    if (scope_.requirements.empty()) return {};
    std::vector<char> outside(state->catalog->workloads.size(), 0);
    for (PodId pod = 0; pod < state->pods.size(); ++pod) {
      const kube::Pod* object = mirror_->pods.Find(cluster_.pod_object(pod).key);
      if (object == nullptr || scope_.Matches(object->shape->labels)) continue;
      outside[state->pods.workload[pod]] = 1;
    }
    // One catalog as long as nothing differs: States are compared by it.
    if (state->catalog != whole_ || outside != outside_ || within_ == nullptr) {
      auto within = std::make_shared<Catalog>(*state->catalog);
      for (size_t w = 0; w < outside.size(); ++w) {
        within->workloads[w].movable = within->workloads[w].movable && outside[w] == 0;
      }
      whole_ = state->catalog;
      outside_ = std::move(outside);
      within_ = std::move(within);
    }
    state->catalog = within_;
    return {};
  }

  void Submit(std::span<const Intent> intents, Completions* completions) override {
    cluster_.Submit(intents, completions);
  }
  std::chrono::nanoseconds Now() const override { return cluster_.Now(); }

 private:
  Result<void> CheckReady(const State& state) {
    checked_.assign(static_cast<size_t>(state.nodes.size()), 0);
    for (PodId pod = 0; pod < state.pods.size(); ++pod) {
      const NodeId on = state.pods.node[pod];
      if (on == kNone || checked_[on] != 0) continue;
      checked_[on] = 1;
      const kube::Node* node = mirror_->nodes.Find({"", NodeName(state, on)});
      if (node == nullptr || node->ready) continue;  // No object: it stands for external users.
      return Fail(ErrorCode::kUnavailable,
                  "node {} is not ready and runs pods of the application: no decision until it is "
                  "ready or they run elsewhere",
                  NodeName(state, on));
    }
    return {};
  }

  const kube::Mirror* mirror_;
  kube::KubeCluster cluster_;
  LabelSelector scope_;
  std::vector<char> checked_;  // [node] In CheckReady.
  std::shared_ptr<const Catalog> whole_, within_;
  std::vector<char> outside_;
};

class MirroredCluster final : public WatchedCluster {
 public:
  MirroredCluster(const Clock* clock, Connection connection)
      : mirror_(clock),
        feed_(connection.feed),
        events_(connection.telling, {.instance = std::move(connection.identity)}) {
    feed_->Add(&mirror_);
  }

  void Watch(std::vector<WatchedApplication> applications, const Config& config) override {
    clusters_.clear();
    for (WatchedApplication& one : applications) {
      clusters_.push_back(std::make_unique<ScopedCluster>(&mirror_, std::move(one.application),
                                                          config.scope.pods, config.staleness));
    }
  }

  Cluster* Of(size_t application) override { return clusters_[application].get(); }
  std::vector<std::string> Missing() const override { return feed_->Missing(mirror_); }
  bool IsTelling() const override { return !events_.is_idle(); }

  void Tell(const WorkloadObject& workload, const std::string& note) override {
    if (workload.is_external()) return;
    const kube::PodController* found =
        mirror_.FindController(workload.kind, {workload.object_namespace, workload.name});
    events_.Record({.regarding = {.api_version = ApiVersionOf(workload.kind),
                                  .kind = workload.kind,
                                  .name_space = workload.object_namespace,
                                  .name = workload.name,
                                  .uid = found == nullptr ? "" : found->meta.uid},
                    .reason = "WouldMove",
                    .action = "Plan",
                    .note = note});
  }

  void Count(ClusterCounts* counts) const override {
    counts->events_sent += events_.counts().sent;
    counts->events_lost += events_.counts().dropped + events_.counts().failed;
  }

 private:
  kube::Mirror mirror_;
  kube::ClusterFeed* feed_;
  std::vector<std::unique_ptr<ScopedCluster>> clusters_;
  kube::EventRecorder events_;
};

}  // namespace

Duration WatchTimeoutWithin(Duration staleness) {
  return std::clamp<Duration>(staleness / 3, kWatchLeast, kWatchMost);
}

std::unique_ptr<WatchedCluster> WatchedCluster::Open(const Config& config, const Clock* clock,
                                                     Connection connection,
                                                     std::vector<WatchedApplication> applications) {
  if (config.cluster.is_simulated()) {
    return std::make_unique<SimulatedCluster>(config.cluster, clock, std::move(applications));
  }
  auto live = std::make_unique<MirroredCluster>(clock, std::move(connection));
  live->Watch(std::move(applications), config);
  return live;
}

}  // namespace rudderfish
