// SPDX-License-Identifier: Apache-2.0
#include "run/node_chooser.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/rng.h"
#include "control/scheduling_tables.h"
#include "kube/api_client.h"
#include "kube/cluster_feed.h"
#include "kube/collection.h"
#include "kube/object_reader.h"
#include "kube/scheduling_follower.h"
#include "run/watched_cluster.h"

namespace rudderfish {
namespace {

constexpr Duration kChooserSyncLimit = std::chrono::minutes(2);
constexpr Duration kChooserSlice = std::chrono::milliseconds(200);
constexpr Duration kChooserAliveWithin = std::chrono::seconds(30);
constexpr Duration kAssumedFor = std::chrono::seconds(30);
// A scheduler may see a pod a moment before we do.
constexpr Duration kUnseenPause = std::chrono::milliseconds(30);
constexpr Duration kUnseenWait = std::chrono::milliseconds(500);

constexpr kube::ResourceNeed kAddressNeeds[] = {{kube::Resource::kNodes, kube::Need::kNeeded}};

// The addresses of nodes, which the rules of scheduling do not ask for.
class NodeAddresses final : public kube::FeedFollower {
 public:
  explicit NodeAddresses(const Clock* clock)
      : nodes_(kube::ReadNode, clock, [](const kube::ObjectKey&, kube::ChangeKind) {}) {}

  std::span<const kube::ResourceNeed> Needs() const override { return kAddressNeeds; }
  kube::ObjectSink* SinkOf(kube::Resource) override { return &nodes_; }
  size_t Count(kube::Resource) const override { return nodes_.objects().size(); }
  void Polled(const kube::ClusterFeed&) override {}

  const kube::Collection<kube::Node>::Objects& objects() const { return nodes_.objects(); }

 private:
  kube::Collection<kube::Node> nodes_;
};

}  // namespace

class NodeChooser::Follower final : public SchedulingObserver {
 public:
  Follower(std::unique_ptr<kube::ApiClient> client, const LivePolicy& policy, const Clock* clock)
      : clock_(clock),
        client_(std::move(client)),
        feed_(client_.get()),
        seen_(clock, this),
        addresses_(clock),
        scorer_(policy.NewScorer()),
        rng_(client_->NewRng()) {
    feed_.Add(&seen_);
    feed_.Add(&addresses_);
  }

  kube::ApiClient* client() { return client_.get(); }
  Result<void> Sync() { return feed_.Sync(kChooserSyncLimit); }
  void Poll() {
    feed_.Poll(kChooserSlice);
    ForgetAssumed();
  }

  std::string WhyNotFresh(Duration staleness) const {
    const auto fresh = feed_.FreshAsOf(seen_);
    if (fresh && clock_->Now() - *fresh <= staleness) return "";
    const std::string trouble = feed_.Trouble(seen_);
    return fmt::format("what is seen of the cluster is too old{}{}", trouble.empty() ? "" : ": ",
                       trouble);
  }

  Result<std::string> ChooseFor(const std::string& name) {
    TRY_ASSIGN(const ObservedPod* pod, Find(name));
    if (!pod->node.empty()) return pod->node;
    if (!pod->shape->unmodelled.empty()) {
      return Fail(ErrorCode::kFailedPrecondition, "pod {} {}", name,
                  fmt::join(pod->shape->unmodelled, "; "));
    }
    const std::string key = pod->id.Key();
    const auto assumed = assumed_.find(key);
    if (assumed != assumed_.end()) tables_.Remove(key);
    SchedulingRules& rules = tables_.Rules();
    const PodClassId id = rules.Register(pod->shape);
    Filter(&rules, id);
    NodeId node = assumed == assumed_.end() ? kNone : rules.nodes().Find(assumed->second.node);
    if (node == kNone || !feasibility_.IsFeasible(node)) node = Best(rules, id);
    if (node == kNone) {
      if (assumed != assumed_.end()) assumed_.erase(assumed);
      return Fail(ErrorCode::kNotFound, "no node fits pod {}", name);
    }
    std::string chosen = rules.nodes().node(node).name;
    assumed_[key] = {chosen, pod->id.uid, clock_->Now()};
    tables_.Place(key, pod->shape, chosen, PodLife::kServing);
    return chosen;
  }

  Result<Choice> ChooseDescribed(const Described& described) {
    PodClass pod;
    pod.object_namespace = "default";
    const Resources asked{.cpu_millis = described.cpu_millis,
                          .memory_bytes = described.memory_bytes};
    pod.amounts = {
        .requests = asked, .held = asked, .held_assumed = asked, .scored_assumed = asked};
    pod.containers = 1;
    pod.latency_limits = described.limits;
    SchedulingRules& rules = tables_.Rules();
    const PodClassId id = rules.Register(classes_.Shared(std::move(pod)));
    Filter(&rules, id);
    const NodeId node = Best(rules, id);
    if (node == kNone) return Fail(ErrorCode::kNotFound, "no node fits the pod");
    Choice choice;
    for (const auto& [key, object] : addresses_.objects()) {
      if (object.address.empty()) continue;
      choice.addresses.push_back(object.address);
      if (key.name == rules.nodes().node(node).name) choice.best = object.address;
    }
    if (choice.best.empty()) {
      return Fail(ErrorCode::kFailedPrecondition, "node {} has no InternalIP",
                  rules.nodes().node(node).name);
    }
    return choice;
  }

  void NodeSeen(const SchedulingNode& node) override { tables_.PutNode(node); }
  void NodeGone(const std::string& name) override { tables_.RemoveNode(name); }
  void AttachmentsSeen(const std::string& node, const std::vector<CsiVolume>& volumes) override {
    tables_.PutAttachments(node, volumes);
  }
  void NamespaceSeen(const std::string& name, const Labels& labels) override {
    tables_.PutNamespace(name, labels);
  }
  void NamespaceGone(const std::string& name) override { tables_.RemoveNamespace(name); }
  void PodSeen(const ObservedPod& pod) override {
    const std::string key = pod.id.Key();
    pods_[key] = pod;
    keys_[pod.id.name].insert(key);
    const auto assumed = assumed_.find(key);
    if (assumed != assumed_.end() && (!pod.node.empty() || assumed->second.uid != pod.id.uid)) {
      assumed_.erase(assumed);
      tables_.Remove(key);
    }
    if (pod.node.empty()) return;
    tables_.Place(key, pod.shape, pod.node,
                  pod.is_terminating ? PodLife::kTerminating : PodLife::kServing);
  }
  void PodGone(const std::string& key) override {
    tables_.Remove(key);
    assumed_.erase(key);
    const auto found = pods_.find(key);
    if (found == pods_.end()) return;
    const auto keys = keys_.find(found->second.id.name);
    keys->second.erase(key);
    if (keys->second.empty()) keys_.erase(keys);
    pods_.erase(found);
  }

 private:
  struct Assumed {
    std::string node, uid;
    Instant at;
  };

  // Those that wait go before those that have a node.
  Result<const ObservedPod*> Find(const std::string& name) const {
    if (name.find('/') != std::string::npos) {
      const auto found = pods_.find(name);
      if (found != pods_.end()) return &found->second;
    } else if (const auto keys = keys_.find(name); keys != keys_.end()) {
      std::vector<const ObservedPod*> waiting;
      for (const std::string& key : keys->second) {
        const ObservedPod& pod = pods_.at(key);
        if (pod.node.empty()) waiting.push_back(&pod);
      }
      if (waiting.size() == 1) return waiting[0];
      if (waiting.empty() && keys->second.size() == 1) return &pods_.at(*keys->second.begin());
      return Fail(ErrorCode::kConflict, "several pods are called {}: {}", name,
                  fmt::join(keys->second, ", "));
    }
    return Fail(ErrorCode::kNotFound, "there is no pod {}", name);
  }

  void Filter(SchedulingRules* rules, PodClassId id) {
    rules->Filter(id, &feasibility_);
    rules->LimitLatency(id, &feasibility_);
  }

  // Among equals any, as kube-scheduler takes them.
  NodeId Best(const SchedulingRules& rules, PodClassId id) {
    if (feasibility_.feasible == 0) return kNone;
    scorer_->Score(rules, id, feasibility_, &scores_);
    NodeId best = kNone;
    uint32_t equals = 0;
    for (NodeId n = 0; n < rules.nodes().size(); ++n) {
      if (!feasibility_.IsFeasible(n)) continue;
      if (best == kNone || scores_[n] > scores_[best]) {
        best = n;
        equals = 1;
      } else if (scores_[n] == scores_[best] && rng_.Below(++equals) == 0) {
        best = n;
      }
    }
    return best;
  }

  void ForgetAssumed() {
    const Instant now = clock_->Now();
    std::erase_if(assumed_, [&](const auto& assumed) {
      if (now - assumed.second.at < kAssumedFor) return false;
      tables_.Remove(assumed.first);
      return true;
    });
  }

  const Clock* clock_;
  std::unique_ptr<kube::ApiClient> client_;
  kube::ClusterFeed feed_;
  kube::SchedulingFollower seen_;
  NodeAddresses addresses_;
  SchedulingTables tables_;
  kube::PodClasses classes_;  // Of pods that are only described.
  std::unique_ptr<NodeScorer> scorer_;
  Rng rng_;
  Feasibility feasibility_;
  std::vector<double> scores_;
  std::map<std::string, ObservedPod> pods_;            // By key.
  std::map<std::string, std::set<std::string>> keys_;  // By name.
  std::map<std::string, Assumed> assumed_;             // By key.
};

NodeChooser::NodeChooser(std::string policy, std::string server, const Clock* clock,
                         Duration staleness)
    : policy_name_(std::move(policy)),
      server_(std::move(server)),
      clock_(clock),
      staleness_(staleness),
      wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      turned_(clock->Now()) {
  CHECK_GE(wake_, 0);
}

Result<std::unique_ptr<NodeChooser>> NodeChooser::Start(const NodeChooserOptions& options,
                                                        const Clock* clock) {
  TRY_ASSIGN(const LivePolicy policy, LivePolicy::Load(options.policy));
  TRY_ASSIGN(const kube::ClusterAccess access,
             kube::FindCluster(options.cluster, kube::KubeEnvironment::OfProcess()));
  const std::string server = access.server;
  TRY_ASSIGN(auto client,
             kube::ApiClient::Open(access, clock,
                                   {.watch_timeout = WatchTimeoutWithin(options.staleness)}));
  std::unique_ptr<NodeChooser> chooser(
      new NodeChooser(policy.name(), server, clock, options.staleness));
  chooser->follower_ = std::make_unique<Follower>(std::move(client), policy, clock);
  TRY(chooser->follower_->Sync());
  chooser->follower_->client()->WaitFor(chooser->wake_,
                                        [self = chooser.get()] { self->DoTasks(); });
  chooser->thread_ = std::thread([self = chooser.get()] { self->Drive(); });
  return chooser;
}

NodeChooser::~NodeChooser() {
  is_ending_ = true;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_, &one, sizeof one);
  if (thread_.joinable()) thread_.join();
  follower_.reset();
  ::close(wake_);
}

void NodeChooser::Drive() {
  while (!is_ending_) {
    follower_->Poll();
    std::string not_fresh = follower_->WhyNotFresh(staleness_);
    const std::lock_guard lock(mutex_);
    not_ready_ = std::move(not_fresh);
    turned_ = clock_->Now();
  }
}

// On the thread that follows the cluster, from within Poll.
void NodeChooser::DoTasks() {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t read = ::read(wake_, &count, sizeof count);
  while (true) {
    std::shared_ptr<Task> task;
    {
      const std::lock_guard lock(mutex_);
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
      task->is_begun = true;
    }
    task->call(*follower_);
    const std::lock_guard lock(mutex_);
    task->is_done = true;
    done_.notify_all();
  }
}

bool NodeChooser::OnThread(Duration limit, std::function<void(Follower&)> call) {
  auto task = std::make_shared<Task>();
  task->call = std::move(call);
  std::unique_lock lock(mutex_);
  tasks_.push_back(task);
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_, &one, sizeof one);
  done_.wait_for(lock, limit, [&] { return task->is_done; });
  if (task->is_begun) done_.wait(lock, [&] { return task->is_done; });  // It uses what we hold.
  std::erase(tasks_, task);
  return task->is_done;
}

Result<std::string> NodeChooser::ChooseFor(const std::string& pod, Duration limit) {
  const Instant begin = clock_->Now();
  while (true) {
    Result<std::string> chosen = Fail(ErrorCode::kDeadlineExceeded, "no answer in time");
    const bool is_done = OnThread(limit, [&](Follower& follower) {
      const std::string not_fresh = follower.WhyNotFresh(staleness_);
      if (not_fresh.empty()) {
        chosen = follower.ChooseFor(pod);
      } else {
        chosen = Fail(ErrorCode::kUnavailable, "{}", not_fresh);
      }
    });
    const bool is_unseen = is_done && !chosen && chosen.error().code == ErrorCode::kNotFound;
    const Duration waited = clock_->Now() - begin;
    if (!is_unseen || waited + kUnseenPause > std::min(limit, kUnseenWait)) return chosen;
    std::this_thread::sleep_for(kUnseenPause);
  }
}

Result<NodeChooser::Choice> NodeChooser::ChooseDescribed(const Described& pod, Duration limit) {
  Result<Choice> choice = Fail(ErrorCode::kDeadlineExceeded, "no answer in time");
  OnThread(limit, [&](Follower& follower) {
    const std::string not_fresh = follower.WhyNotFresh(staleness_);
    if (not_fresh.empty()) {
      choice = follower.ChooseDescribed(pod);
    } else {
      choice = Fail(ErrorCode::kUnavailable, "{}", not_fresh);
    }
  });
  return choice;
}

std::string NodeChooser::WhyNotAlive() const {
  const std::lock_guard lock(mutex_);
  const Duration silent = clock_->Now() - turned_;
  return silent < kChooserAliveWithin ? ""
                                      : fmt::format("it has not run for {:.0f} s", Seconds(silent));
}

std::string NodeChooser::WhyNotReady() const {
  const std::lock_guard lock(mutex_);
  return not_ready_;
}

}  // namespace rudderfish
