// SPDX-License-Identifier: Apache-2.0
#include "run/watched_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/rng.h"
#include "kube/events.h"
#include "kube/kube_cluster.h"
#include "kube/mirror.h"
#include "run/leaving_nodes.h"
#include "run/moving_cluster.h"
#include "sim/sim_cluster.h"

namespace rudderfish {
namespace {

constexpr Duration kWatchLeast = std::chrono::seconds(1);  // The API counts in seconds.
constexpr Duration kWatchMost = std::chrono::minutes(1);
constexpr int kDriftAttempts = 100;
constexpr int64_t kLongestStartS = 600;

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
  Cluster* ActedOn(size_t application) override { return clusters_[application].get(); }
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
  ScopedCluster(const kube::Mirror* mirror, const LeavingNodes* leaving,
                std::shared_ptr<const Application> application, LabelSelector scope,
                Duration staleness)
      : mirror_(mirror),
        leaving_(leaving),
        cluster_(mirror, std::move(application), {.staleness_limit = staleness}),
        scope_(std::move(scope)) {}

  Result<void> Refresh(State* state) override {
    TRY(cluster_.Refresh(state));
    state->version += leaving_->changes();  // Which is reason enough for another plan.
    pods_ = state->pods.size();
    workloads_ = state->pods.workload;
    start_times_.assign(state->catalog->workloads.size(), std::nullopt);
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

  // A pod of it that an earlier process, or a person, is moving.
  std::string PodBeingMoved() const {
    for (PodId pod = 0; pod < pods_; ++pod) {
      const kube::Pod* object = mirror_->pods.Find(cluster_.pod_object(pod).key);
      if (object != nullptr && FindLabel(object->shape->labels, kMoveKey) != nullptr)
        return object->meta.key.name;
    }
    return "";
  }

  // A pod that became Ready again long after its start says nothing of how long it started.
  Duration StartTimeOf(WorkloadId workload) {
    std::optional<Duration>& known = start_times_[static_cast<size_t>(workload)];
    if (!known) known = MedianStartTime(workload);
    return *known;
  }

  Duration MedianStartTime(WorkloadId workload) const {
    std::vector<int64_t> seconds;
    for (PodId pod = 0; pod < pods_; ++pod) {
      if (workloads_[static_cast<size_t>(pod)] != workload) continue;
      const kube::Pod* object = mirror_->pods.Find(cluster_.pod_object(pod).key);
      if (object == nullptr || object->started_at == 0 || object->ready_at == 0) continue;
      const int64_t took = object->ready_at - object->started_at;
      if (took >= 0 && took <= kLongestStartS) seconds.push_back(took);
    }
    if (seconds.empty()) return Duration(0);
    const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
    std::nth_element(seconds.begin(), middle, seconds.end());
    return std::chrono::seconds(*middle);
  }

  PodIdentity IdentityOf(PodId pod) const {
    const kube::KubeCluster::PodObject object = cluster_.pod_object(pod);
    return {object.key.object_namespace, object.key.name, object.uid};
  }

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
  const LeavingNodes* leaving_;
  kube::KubeCluster cluster_;
  LabelSelector scope_;
  PodId pods_ = 0;                                    // As refreshed last.
  std::vector<WorkloadId> workloads_;                 // [pod]
  std::vector<std::optional<Duration>> start_times_;  // [workload] As asked for since then.
  std::vector<char> checked_;                         // [node] In CheckReady.
  std::shared_ptr<const Catalog> whole_, within_;
  std::vector<char> outside_;
};

class MirroredCluster final : public WatchedCluster {
 public:
  MirroredCluster(const Clock* clock, Connection connection)
      : mirror_(clock),
        leaving_(&mirror_, clock),
        feed_(connection.feed),
        moves_(connection.moves),
        events_(connection.telling, {.instance = std::move(connection.identity)}) {
    feed_->Add(&mirror_);
  }

  void Watch(std::vector<WatchedApplication> applications, const Config& config) override {
    acted_on_.clear();
    clusters_.clear();
    applications_.clear();
    leaving_.Configure(config.migration->evacuate);
    for (WatchedApplication& one : applications) {
      const std::shared_ptr<const Application> application = one.application;
      applications_.push_back(application);
      clusters_.push_back(std::make_unique<ScopedCluster>(&mirror_, &leaving_, application,
                                                          config.scope.pods, config.staleness));
      ScopedCluster* const seen = clusters_.back().get();
      acted_on_.push_back(std::make_unique<MovingCluster>(
          seen, moves_,
          MovingCluster::Calls{
              .identity_of = [seen](PodId pod) { return seen->IdentityOf(pod); },
              .on_end =
                  [this, application](const MovingCluster::Ended& ended) {
                    TellEnd(application->objects[static_cast<size_t>(ended.workload)], ended);
                  }}));
    }
  }

  Cluster* Of(size_t application) override { return clusters_[application].get(); }
  Cluster* ActedOn(size_t application) override { return acted_on_[application].get(); }

  std::optional<MovingCluster::LetGoMove> LetGo(size_t application) override {
    return acted_on_[application]->LetGo();
  }

  std::string WhyBusy(size_t application) const override {
    const std::string pod = clusters_[application]->PodBeingMoved();
    return pod.empty()
               ? ""
               : fmt::format("pod {} is being moved: no decision until that has ended", pod);
  }
  std::optional<TracePlaces> PlacesOf(size_t application) const override {
    return TracePlaces(applications_[application], mirror_);
  }

  void Poll() override { leaving_.Turn(); }
  bool Leaves(std::string_view node) const override { return leaving_.Has(node); }

  Duration StartTimeOf(size_t application, WorkloadId workload) const override {
    return clusters_[application]->StartTimeOf(workload);
  }

  std::vector<std::string> Missing() const override { return feed_->Missing(mirror_); }
  bool IsTelling() const override { return !events_.is_idle(); }

  void Tell(const WorkloadObject& workload, std::string_view reason,
            const std::string& note) override {
    if (workload.is_external()) return;
    const kube::PodController* found =
        mirror_.FindController(workload.kind, {workload.object_namespace, workload.name});
    events_.Record({.regarding = {.api_version = ApiVersionOf(workload.kind),
                                  .kind = workload.kind,
                                  .name_space = workload.object_namespace,
                                  .name = workload.name,
                                  .uid = found == nullptr ? "" : found->meta.uid},
                    .reason = std::string(reason),
                    .action = reason == kWouldMove ? "Plan" : "Move",
                    .note = note});
  }

  void Count(ClusterCounts* counts) const override {
    counts->events_sent += events_.counts().sent;
    counts->events_lost += events_.counts().dropped + events_.counts().failed;
  }

 private:
  void TellEnd(const WorkloadObject& workload, const MovingCluster::Ended& ended) {
    const MoveDriver::End& end = ended.end;
    const std::string what =
        fmt::format("pod {} from {} to {}", ended.pod.name, ended.from, ended.to);
    if (end.is_moved) {
      Tell(workload, kMoved,
           fmt::format("moved {} in {:.1f} s: pod {} serves", what, end.seconds, end.replacement));
    } else {
      Tell(workload, kNotMoved, fmt::format("did not move {}: {}", what, end.why));
    }
  }

  kube::Mirror mirror_;
  LeavingNodes leaving_;
  kube::ClusterFeed* feed_;
  MoveDriver* moves_;
  std::vector<std::shared_ptr<const Application>> applications_;
  std::vector<std::unique_ptr<ScopedCluster>> clusters_;
  std::vector<std::unique_ptr<MovingCluster>> acted_on_;  // Of the same applications.
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
