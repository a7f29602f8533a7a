// SPDX-License-Identifier: Apache-2.0
#include "run/placement_metrics.h"

#include <algorithm>

namespace rudderfish {

Counter& StepBackCounter(MetricRegistry* registry, StepBack why, const std::string& cluster) {
  return registry->AddCounter(
      "rudderfish_placement_fallbacks_total",
      "Choices that were left to kube-default's scores, by reason.",
      {{"reason", std::string(kStepBackNames[static_cast<size_t>(why)])}, {"cluster", cluster}});
}

void PlacementMetrics::Set(std::string_view name, std::string_view help, MetricLabels labels,
                           double value) {
  labels.emplace_back("cluster", cluster_);
  registry_->AddGauge(name, help, std::move(labels)).Set(value);
}

void PlacementMetrics::RaiseTo(std::string_view name, std::string_view help, MetricLabels labels,
                               int64_t to) {
  labels.emplace_back("cluster", cluster_);
  Counter& counter = registry_->AddCounter(name, help, std::move(labels));
  counter.Add(std::max(0.0, static_cast<double>(to) - counter.value()));
}

void PlacementMetrics::ShowUnread(const kube::SchedulingFollower::Unread& pods) {
  Set("rudderfish_placement_unread_latencies",
      "Nodes whose annotation of how far they are from the users is no number.", {},
      pods.latencies);
  const auto show = [&](const char* effect, int value) {
    Set("rudderfish_placement_unread_pods",
        "Pods that cannot be read in full, by what follows: they wait, count with what "
        "they hold, or close their node.",
        {{"effect", effect}}, value);
  };
  show("waits", pods.waiting);
  show("counts", pods.counted);
  show("closes_node", pods.closing);
}

void PlacementMetrics::ShowConditions(const PlacementActuatorOfKube& actuator) {
  const auto show = [&](const char* result, int64_t value) {
    RaiseTo("rudderfish_placement_conditions_total",
            "Writes of why a pod waits into its condition PodScheduled.", {{"result", result}},
            value);
  };
  show("written", actuator.condition_counts().written);
  show("failed", actuator.condition_counts().failed);
  Set("rudderfish_placement_conditions_unwritten",
      "Pods whose condition PodScheduled does not say yet why they wait.", {},
      static_cast<double>(actuator.conditions_unwritten()));
}

void PlacementMetrics::ShowCounts(const SchedulerCounts& counts) {
  const auto attempts = [&](const char* result, int64_t value) {
    RaiseTo("rudderfish_placement_attempts_total", "Decisions about pending pods, by outcome.",
            {{"result", result}}, value);
  };
  attempts("bound", counts.bound);
  attempts("unschedulable", counts.waiting - counts.unmodelled);
  attempts("unmodelled", counts.unmodelled);
  attempts("conflict", counts.conflicts);
  attempts("unclear", counts.unclear);
  attempts("refused", counts.refused);
  attempts("gone", counts.gone);
  RaiseTo("rudderfish_placement_lost_races_total",
          "Times that a node held more than it has, because another scheduler placed pods "
          "there too.",
          {}, counts.lost_races);
  RaiseTo("rudderfish_placement_bound_elsewhere_total",
          "Pods that somebody else bound while we did.", {}, counts.bound_elsewhere);
  RaiseTo("rudderfish_placement_name_shared_total",
          "Pods that name us, were ours alone to place, and were given a node by somebody "
          "else: another scheduler serves that name.",
          {}, counts.name_shared);
}

void PlacementMetrics::Show(const Shown& shown) {
  ShowConditions(*shown.actuator);
  const SchedulerCounts& counts = shown.scheduler->counts();
  ShowCounts(counts);
  for (const StepBack why : {StepBack::kOutside, StepBack::kUnlike}) {
    int64_t& told = steps_told_[static_cast<size_t>(why)];  // The extender counts there, too.
    const int64_t now = counts.stepped_back[static_cast<size_t>(why)];
    StepBackCounter(registry_, why, cluster_)
        .Add(static_cast<double>(now - std::exchange(told, now)));
  }
  ShowUnread(shown.seen->CountUnread());
  const auto waiting = [&](const char* queue, size_t value) {
    Set("rudderfish_placement_pending_pods", "Pods that wait, by where.", {{"queue", queue}},
        static_cast<double>(value));
  };
  waiting("active", shown.scheduler->queue().active());
  waiting("backoff", shown.scheduler->queue().backing_off());
  waiting("unschedulable", shown.scheduler->queue().asleep());
  waiting("binding", shown.scheduler->bindings());
  Set("rudderfish_placement_unserved_pods",
      "Pending pods with our schedulerName that no scheduler places, because of the mode, "
      "a switch, stale state, or a missing leader.",
      {}, static_cast<double>(shown.unserved));
  Set("rudderfish_placement_state_fresh",
      "1 while what is seen of the cluster is recent enough to place pods by.", {},
      shown.is_fresh ? 1 : 0);
}

}  // namespace rudderfish
