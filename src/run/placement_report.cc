// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/log.h"
#include "base/units.h"
#include "kube/kubeconfig.h"
#include "run/host.h"
#include "run/placement_loop.h"
#include "task/placement.h"

// What a PlacementLoop tells of itself: health, metrics, status; and what it would do.

namespace rudderfish {
namespace {

// Metrics of one cluster, by its name; the own one has none.
class ClusterMetrics {
 public:
  ClusterMetrics(MetricRegistry* registry, const std::string& cluster)
      : registry_(registry), cluster_(cluster) {}

  void Set(std::string_view name, std::string_view help, MetricLabels labels, double value) {
    labels.emplace_back("cluster", cluster_);
    registry_->AddGauge(name, help, std::move(labels)).Set(value);
  }
  void RaiseTo(std::string_view name, std::string_view help, MetricLabels labels, int64_t to) {
    labels.emplace_back("cluster", cluster_);
    Counter& counter = registry_->AddCounter(name, help, std::move(labels));
    counter.Add(std::max(0.0, static_cast<double>(to) - counter.value()));
  }

 private:
  MetricRegistry* registry_;
  const std::string& cluster_;
};

std::string PlacementLine(std::string_view what, std::string_view value) {
  return fmt::format("{:<14}{}\n", what, value);
}

OrderedJson FallbacksJson(const SchedulerCounts& counts) {
  OrderedJson json = OrderedJson::object();
  for (size_t i = 1; i < counts.stepped_back.size(); ++i)
    json[std::string(kStepBackNames[i])] = counts.stepped_back[i];
  return json;
}

void ShowUnread(const kube::SchedulingFollower::Unread& pods, ClusterMetrics* metrics) {
  metrics->Set("rudderfish_placement_unread_latencies",
               "Nodes whose annotation of how far they are from the users is no number.", {},
               pods.latencies);
  const auto show = [&](const char* effect, int value) {
    metrics->Set("rudderfish_placement_unread_pods",
                 "Pods that cannot be read in full, by what follows: they wait, count with what "
                 "they hold, or close their node.",
                 {{"effect", effect}}, value);
  };
  show("waits", pods.waiting);
  show("counts", pods.counted);
  show("closes_node", pods.closing);
}

void ShowConditions(const PlacementActuatorOfKube& actuator, ClusterMetrics* metrics) {
  const auto show = [&](const char* result, int64_t value) {
    metrics->RaiseTo("rudderfish_placement_conditions_total",
                     "Writes of why a pod waits into its condition PodScheduled.",
                     {{"result", result}}, value);
  };
  show("written", actuator.condition_counts().written);
  show("failed", actuator.condition_counts().failed);
  metrics->Set("rudderfish_placement_conditions_unwritten",
               "Pods whose condition PodScheduled does not say yet why they wait.", {},
               static_cast<double>(actuator.conditions_unwritten()));
}

void ShowCounts(const SchedulerCounts& counts, ClusterMetrics* metrics) {
  const auto attempts = [&](const char* result, int64_t value) {
    metrics->RaiseTo("rudderfish_placement_attempts_total",
                     "Decisions about pending pods, by outcome.", {{"result", result}}, value);
  };
  attempts("bound", counts.bound);
  attempts("unschedulable", counts.waiting - counts.unmodelled);
  attempts("unmodelled", counts.unmodelled);
  attempts("conflict", counts.conflicts);
  attempts("unclear", counts.unclear);
  attempts("refused", counts.refused);
  attempts("gone", counts.gone);
  metrics->RaiseTo("rudderfish_placement_lost_races_total",
                   "Times that a node held more than it has, because another scheduler placed pods "
                   "there too.",
                   {}, counts.lost_races);
  metrics->RaiseTo("rudderfish_placement_bound_elsewhere_total",
                   "Pods that somebody else bound while we did.", {}, counts.bound_elsewhere);
  metrics->RaiseTo("rudderfish_placement_name_shared_total",
                   "Pods that name us, were ours alone to place, and were given a node by somebody "
                   "else: another scheduler serves that name.",
                   {}, counts.name_shared);
}

std::string WhatIsTouched(const PlacementConfig& placement, const std::string& policy) {
  switch (placement.mode) {
    case Mode::kOff:
    case Mode::kShadow:
      return "nothing: what it would do is recorded";
    case Mode::kAdvise:
      return "nothing but Events on pods that wait for another scheduler";
    case Mode::kCanary:
      return fmt::format("pods that name it: {:g} % are placed by {}, the others by kube-default",
                         placement.canary * 100, policy);
    case Mode::kEnforce:
      break;
  }
  return fmt::format("pods that name it: all are placed by {}", policy);
}

// Empty: not known; `run` says why.
std::string OwnServer(const Config& config) {
  const auto access = kube::FindCluster(
      {.kubeconfig = config.cluster.kubeconfig.string(), .context = config.cluster.context},
      kube::KubeEnvironment::OfProcess());
  return access ? access->server : "";
}

}  // namespace

Counter& StepBackCounter(MetricRegistry* registry, StepBack why, const std::string& cluster) {
  return registry->AddCounter(
      "rudderfish_placement_fallbacks_total",
      "Choices that were left to kube-default's scores, by reason.",
      {{"reason", std::string(kStepBackNames[static_cast<size_t>(why)])}, {"cluster", cluster}});
}

std::string PlacementKind(std::string_view cluster) {
  return cluster.empty() ? "placement" : fmt::format("placement/{}", cluster);
}

// The extender and what else there is of the own cluster is ready while another is not seen: that
// is in `status` and in a metric of its own.
std::string PlacementLoop::ClusterTrouble() const { return link_->is_own() ? Unseen() : ""; }

std::string PlacementLoop::Unseen() const {
  if (IsFresh()) return "";
  const std::optional<Instant> fresh = FreshAsOf();
  std::string why =
      fresh ? fmt::format("what is known is {:.0f} s old", Seconds(clock_->Now() - *fresh))
            : "not listed yet";
  if (const std::string trouble = Trouble(); !trouble.empty()) why += ": " + trouble;
  return why;
}

void PlacementLoop::Count(ClusterCounts* counts) const {
  counts->events_sent += actuator_->event_counts().sent;
  counts->events_lost += actuator_->event_counts().dropped + actuator_->event_counts().failed;
}

void PlacementLoop::Report() {
  const std::string left = WhoIsLeftWaiting();
  if (!left.empty() && !has_told_who_waits_) LogWarning("{}", left);
  has_told_who_waits_ = !left.empty();
  MetricRegistry* const registry = host_->server()->metrics();
  ClusterMetrics metrics(registry, link_->name);
  ShowConditions(*actuator_, &metrics);
  const SchedulerCounts& counts = scheduler_->counts();
  ShowCounts(counts, &metrics);
  for (const StepBack why : {StepBack::kOutside, StepBack::kUnlike}) {
    int64_t& told = steps_told_[static_cast<size_t>(why)];  // The extender counts there, too.
    const int64_t now = counts.stepped_back[static_cast<size_t>(why)];
    StepBackCounter(registry, why, link_->name)
        .Add(static_cast<double>(now - std::exchange(told, now)));
  }
  ShowUnread(seen_->CountUnread(), &metrics);
  const auto waiting = [&](const char* queue, size_t value) {
    metrics.Set("rudderfish_placement_pending_pods", "Pods that wait, by where.",
                {{"queue", queue}}, static_cast<double>(value));
  };
  waiting("active", scheduler_->queue().active());
  waiting("backoff", scheduler_->queue().backing_off());
  waiting("unschedulable", scheduler_->queue().asleep());
  waiting("binding", scheduler_->bindings());
  metrics.Set("rudderfish_placement_unserved_pods",
              "Pending pods with our schedulerName that no scheduler places, because of the mode, "
              "a switch, stale state, or a missing leader.",
              {}, static_cast<double>(CountUnserved()));
  metrics.Set("rudderfish_placement_state_fresh",
              "1 while what is seen of the cluster is recent enough to place pods by.", {},
              IsFresh() ? 1 : 0);
}

// How many nodes of each type the policy knows, and how many it does not count.
OrderedJson PlacementLoop::TypesJson() const {
  if (!policy_->is_learned() || !policy_->facts().TypesMatter()) return OrderedJson::object();
  cluster_->Read(scheduler_->tables().Rules().nodes());
  OrderedJson json = OrderedJson::object();
  const std::vector<int> counts = cluster_->CountTypes();
  for (size_t i = 0; i < counts.size(); ++i) json[policy_->facts().types[i]] = counts[i];
  json["(unknown)"] = cluster_->CountOutside();
  return json;
}

OrderedJson PlacementLoop::ExtenderJson() const {
  const ExtenderServer::Counts counts = extender_->counts();
  return {{"addresses", extender_->addresses()},
          {"policy", config_.extender->choice.policy},
          {"answered", counts.answered},
          {"abstained", counts.abstained},
          {"malformed", counts.malformed},
          {"newest_malformed", extender_->newest_malformed()},
          {"refused", counts.refused},
          {"newest_refused", extender_->newest_refused()},
          {"late", counts.late},
          {"bypassed", counts.bypassed},
          {"held", WhyExtenderIsHeld()}};
}

OrderedJson PlacementLoop::Status() const {
  const SchedulerCounts& counts = scheduler_->counts();
  const PlacementComparer::Waiting waiting = comparer_->CountWaiting();
  const std::string trouble = link_->is_own() ? Trouble() : Unseen();
  return {{"policy", scheduler_->policy()},
          {"scheduler_name", scheduler_->name()},
          {"nodes", scheduler_->tables().node_count()},
          {"pods", scheduler_->tables().pod_count()},
          {"active", scheduler_->queue().active()},
          {"backing_off", scheduler_->queue().backing_off()},
          {"unschedulable", scheduler_->queue().asleep()},
          {"binding", scheduler_->bindings()},
          {"waiting_for_others", waiting.others},
          {"waiting_for_us", waiting.ours},
          {"unserved", CountUnserved()},
          {"bound", counts.bound},
          {"decisions", counts.decisions},
          {"conflicts", counts.conflicts},
          {"lost_races", counts.lost_races},
          {"by_policy", counts.by_policy},
          {"fallbacks", FallbacksJson(counts)},
          {"believes", policy_->Beliefs()},
          {"types", TypesJson()},
          {"cluster", link_->name},
          {"server", link_->client->access().server},
          {"problem", trouble.empty() ? WhoIsLeftWaiting() : trouble}};
}

Result<std::string> DescribePlacement(const Config& config) {
  std::string text;
  if (config.placement) {
    TRY_ASSIGN(const LivePolicy policy, LoadPolicy(config.placement->choice));
    text += PlacementLine(
        "placement", fmt::format("{}; pods with schedulerName {}; {} decides; at most {} "
                                 "bindings at a time",
                                 ModeName(config.placement->mode), config.placement->scheduler_name,
                                 policy.name(), config.placement->bindings_max));
    text += PlacementLine("objective", ObjectiveText(policy.objective()));
    if (policy.is_learned()) text += PlacementLine("believes", policy.Beliefs());
    text += PlacementLine("touches", WhatIsTouched(*config.placement, policy.name()));
    std::vector<NamedCluster> clusters = config.placement->clusters;
    TRY(FindNamedClusters(&clusters, OwnServer(config)));
    for (const NamedCluster& one : clusters) {
      text += PlacementLine(PlacementKind(one.name),
                            fmt::format("the same in {}", one.where.access->server));
    }
  }
  if (config.extender) {
    TRY_ASSIGN(const LivePolicy policy, LoadPolicy(config.extender->choice));
    TRY(CheckTls(*config.extender));
    text += PlacementLine(
        "extender", fmt::format("{}; {} grades, within {}", config.extender->listen, policy.name(),
                                FormatDuration(config.extender->timeout)));
    if (policy.is_learned()) text += PlacementLine("believes", policy.Beliefs());
  }
  return text;
}

std::vector<NeededRight> PlacementRights(Mode mode) {
  using kube::ClusterFeed, kube::Need;
  const std::span<const kube::ResourceNeed> needs = kube::SchedulingFollower::AllNeeds();
  std::vector<NeededRight> rights;
  for (const kube::Right& right : ClusterFeed::Rights(needs, Need::kNeeded))
    rights.push_back({right, "without it nothing is placed", true});
  for (const kube::Right& right : ClusterFeed::Rights(needs, Need::kWanted))
    rights.push_back(
        {right, "without it pods whose volumes CSI drivers attach are left waiting", false});
  const auto add = [&](const char* verb, const char* group, const char* resource) {
    rights.push_back(
        {{.verb = verb, .group = group, .resource = resource, .name_space = "", .name = ""},
         "the mode of placement needs it",
         true});
  };
  if (mode >= Mode::kCanary) {
    add("create", "", "pods/binding");
    add("patch", "", "pods/status");
  }
  if (mode >= Mode::kAdvise) {
    add("create", "events.k8s.io", "events");
    add("patch", "events.k8s.io", "events");
  }
  return rights;
}

}  // namespace rudderfish
