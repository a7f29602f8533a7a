// SPDX-License-Identifier: Apache-2.0
#include "run/watched_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/rng.h"
#include "kube/api_client.h"
#include "kube/config_map_watch.h"
#include "kube/events.h"
#include "kube/kube_cluster.h"
#include "kube/kubeconfig.h"
#include "kube/lease.h"
#include "kube/mirror.h"
#include "kube/mirror_feed.h"
#include "run/lease_seat.h"
#include "sim/sim_cluster.h"

namespace rudderfish {
namespace {

constexpr Duration kSyncLimit = std::chrono::seconds(30);
constexpr Duration kWatchLeast = std::chrono::seconds(1);  // The API counts in seconds.
constexpr Duration kWatchMost = std::chrono::minutes(1);
constexpr int kDriftAttempts = 100;
constexpr std::chrono::milliseconds kResignStep(50);

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
  bool CanWait() const override { return false; }
  std::string Name() const override {
    return fmt::format("simulated from {}", config_.scenario.string());
  }
  std::vector<std::string> Missing() const override { return {}; }

  void Poll(std::chrono::milliseconds) override {
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
// it is.
class ScopedCluster final : public Cluster {
 public:
  ScopedCluster(const kube::Mirror* mirror, std::shared_ptr<const Application> application,
                LabelSelector scope, Duration staleness)
      : mirror_(mirror),
        cluster_(mirror, std::move(application), {.staleness_limit = staleness}),
        scope_(std::move(scope)) {}

  Result<void> Refresh(State* state) override {
    TRY(cluster_.Refresh(state));
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
  const kube::Mirror* mirror_;
  kube::KubeCluster cluster_;
  LabelSelector scope_;
  std::shared_ptr<const Catalog> whole_, within_;
  std::vector<char> outside_;
};

class MirroredCluster final : public WatchedCluster {
 public:
  static Result<std::unique_ptr<WatchedCluster>> Open(const Config& config, const Clock* clock,
                                                      std::vector<WatchedApplication> applications,
                                                      OnControl on_control,
                                                      const std::function<void()>& on_step) {
    TRY_ASSIGN(kube::ClusterAccess access,
               kube::FindCluster({.kubeconfig = config.cluster.kubeconfig.string(),
                                  .context = config.cluster.context},
                                 kube::KubeEnvironment::OfProcess()));
    const std::string server = access.server;
    TRY_ASSIGN(std::unique_ptr<kube::ApiClient> client,
               kube::ApiClient::Open(std::move(access), clock,
                                     {.watch_timeout = WatchTimeoutWithin(config.staleness)}));
    std::unique_ptr<MirroredCluster> live(
        new MirroredCluster(config, clock, std::move(client), server, std::move(on_control)));
    TRY(live->feed_.Sync(kSyncLimit, on_step));
    live->Watch(std::move(applications), config);
    if (live->lease_ != nullptr) live->lease_->Start();  // Who sees nothing shall not lead.
    return live;
  }

  void Watch(std::vector<WatchedApplication> applications, const Config& config) override {
    clusters_.clear();
    staleness_ = config.staleness;
    for (WatchedApplication& one : applications) {
      clusters_.push_back(std::make_unique<ScopedCluster>(&mirror_, std::move(one.application),
                                                          config.scope.pods, config.staleness));
    }
  }

  Cluster* Of(size_t application) override { return clusters_[application].get(); }
  bool CanWait() const override { return true; }
  std::string Name() const override { return server_; }
  std::vector<std::string> Missing() const override {
    std::vector<std::string> missing = feed_.Missing();
    if (control_ != nullptr && control_->reflector().last_error()) {
      missing.push_back(fmt::format("the ConfigMap that holds us back ({})",
                                    control_->reflector().last_error()->message));
    }
    return missing;
  }
  std::string WhyControlIsUnread() const override {
    return control_ == nullptr ? "" : control_->WhyUnread(staleness_);
  }
  void Poll(std::chrono::milliseconds timeout) override { feed_.Poll(timeout); }

  bool Leads() const override { return lease_ == nullptr || lease_->IsLeader(); }

  Seat GetSeat() const override {
    if (lease_ == nullptr) return {};
    const auto& error = lease_->last_error();
    return {.is_elected = true,
            .identity = identity_,
            .holder = lease_->holder(),
            .trouble = lease_->has_namesake() ? "another instance has our identity"
                       : error                ? error->message
                                              : ""};
  }

  void Resign(Duration limit) override {
    if (lease_ == nullptr) return;
    bool done = false;
    lease_->Release([&done] { done = true; });
    const Instant end = clock_->Now() + limit;
    while (!done && clock_->Now() < end) client_->Poll(kResignStep);
    lease_.reset();  // With what it waits for.
  }

  void Tell(const WorkloadObject& workload, const std::string& note) override {
    if (events_ == nullptr || workload.is_external()) return;
    const kube::PodController* found =
        mirror_.FindController(workload.kind, {workload.object_namespace, workload.name});
    events_->Record({.regarding = {.api_version = ApiVersionOf(workload.kind),
                                   .kind = workload.kind,
                                   .name_space = workload.object_namespace,
                                   .name = workload.name,
                                   .uid = found == nullptr ? "" : found->meta.uid},
                     .reason = "WouldMove",
                     .action = "Plan",
                     .note = note});
  }

  ClusterCounts Counts() const override;

 private:
  MirroredCluster(const Config& config, const Clock* clock, std::unique_ptr<kube::ApiClient> client,
                  std::string server, OnControl on_control)
      : server_(std::move(server)),
        mirror_(clock),
        client_(std::move(client)),
        feed_(client_.get(), &mirror_),
        clock_(clock),
        staleness_(config.staleness),
        identity_(NewIdentity(client_->NewRng())) {
    if (config.leader_election.is_on()) {
      lease_ = std::make_unique<kube::LeaseElection>(
          client_.get(), LeaseOptionsOf(config.leader_election, identity_));
    }
    if (config.events) {
      events_ = std::make_unique<kube::EventRecorder>(client_.get(),
                                                      kube::EventOptions{.instance = identity_});
    }
    if (config.control_name.empty()) return;
    control_ = std::make_unique<kube::ConfigMapWatch>(client_.get(), config.control_namespace,
                                                      config.control_name, std::move(on_control));
  }

  std::string server_;
  kube::Mirror mirror_;
  std::unique_ptr<kube::ApiClient> client_;
  kube::MirrorFeed feed_;
  std::unique_ptr<kube::ConfigMapWatch> control_;
  std::vector<std::unique_ptr<ScopedCluster>> clusters_;
  const Clock* clock_;
  Duration staleness_;
  std::string identity_;  // Another for each start.
  std::unique_ptr<kube::LeaseElection> lease_;
  std::unique_ptr<kube::EventRecorder> events_;
};

ClusterCounts MirroredCluster::Counts() const {
  ClusterCounts counts;
  for (const auto& [resource, watch] : feed_.Counts()) {
    const kube::ResourceName& name = kube::NameOf(resource);
    counts.watched.push_back({.resource = name.group.empty()
                                              ? std::string(name.resource)
                                              : fmt::format("{}.{}", name.resource, name.group),
                              .objects = static_cast<int64_t>(mirror_.Count(resource)),
                              .lists = watch.lists,
                              .failures = watch.failures,
                              .expired = watch.expired,
                              .events = watch.events,
                              .malformed = watch.malformed,
                              .unreadable = watch.unreadable});
  }
  const kube::ApiClientCounts& client = client_->counts();
  counts.requests = client.requests;
  counts.request_failures = client.failures;
  counts.throttled = client.throttled;
  if (lease_ != nullptr) {
    counts.lease_renewals = lease_->counts().renewals;
    counts.lease_failures = lease_->counts().failures;
    counts.leaderships_lost = lease_->counts().lost;
  }
  if (events_ != nullptr) {
    counts.events_sent = events_->counts().sent;
    counts.events_lost = events_->counts().dropped + events_->counts().failed;
  }
  return counts;
}

}  // namespace

Duration WatchTimeoutWithin(Duration staleness) {
  return std::clamp<Duration>(staleness / 3, kWatchLeast, kWatchMost);
}

Result<std::unique_ptr<WatchedCluster>> WatchedCluster::Open(
    const Config& config, const Clock* clock, std::vector<WatchedApplication> applications,
    OnControl on_control, const std::function<void()>& on_step) {
  if (config.cluster.is_simulated()) {
    return std::make_unique<SimulatedCluster>(config.cluster, clock, std::move(applications));
  }
  return MirroredCluster::Open(config, clock, std::move(applications), std::move(on_control),
                               on_step);
}

}  // namespace rudderfish
