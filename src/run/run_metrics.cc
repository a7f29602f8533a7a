// SPDX-License-Identifier: Apache-2.0
#include "run/run_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

#include "base/clock.h"

namespace rudderfish {
namespace {

constexpr double kMsPerSecond = 1000;
constexpr Mode kModes[] = {Mode::kOff, Mode::kShadow, Mode::kAdvise, Mode::kCanary, Mode::kEnforce};

double CpuSeconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

// Brings a counter up to what somebody else has counted.
void Raise(Counter* counter, double to) {
  if (to > counter->value()) counter->Add(to - counter->value());
}

}  // namespace

RunMetrics::RunMetrics(MetricRegistry* registry)
    : registry_(registry),
      turn_seconds_(registry->AddHistogram(
          "rudderfish_turn_duration_seconds",
          "Time of a turn over all applications: looking at the cluster and, if that is due, "
          "deciding.",
          LatencyBounds())) {
  registry
      ->AddGauge("rudderfish_start_time_seconds", "When this process began, in seconds since 1970.")
      .Set(UnixSeconds());
}

void RunMetrics::CountRow(const JournalRow& row) {
  registry_
      ->AddCounter("rudderfish_decisions_total",
                   "Decisions written in the journal, by what became of them.",
                   {{"application", row.application},
                    {"kind", row.kind},
                    {"fate", std::string(FateName(row.fate))}})
      .Add();
}

void RunMetrics::CountPlan(const std::string& application, double gain_ms) {
  const MetricLabels labels{{"application", application}};
  registry_->AddCounter("rudderfish_plans_total", "Plans that have ended.", labels).Add();
  registry_
      ->AddGauge("rudderfish_plan_predicted_gain_seconds",
                 "By how much the last plan would have lowered latency, as the Model predicts.",
                 labels)
      .Set(gain_ms / kMsPerSecond);
}

void RunMetrics::ShowStanding(const Standing& standing) {
  for (const Mode one : kModes) {
    registry_
        ->AddGauge("rudderfish_mode", "1 for the mode that holds now, 0 for the others.",
                   {{"kind", std::string(standing.kind)}, {"mode", std::string(ModeName(one))}})
        .Set(one == standing.mode ? 1 : 0);
  }
  registry_->AddGauge("rudderfish_paused", "Whether somebody has paused it.")
      .Set(standing.paused ? 1 : 0);
  registry_
      ->AddGauge("rudderfish_leader",
                 "Whether this instance decides; one that is alone always does.")
      .Set(standing.leads ? 1 : 0);
}

void RunMetrics::ShowApplication(const ApplicationRun& run, double state_age_seconds) {
  const MetricLabels labels{{"application", run.name()}};
  const auto gauge = [&](std::string_view name, std::string_view help, double value) {
    registry_->AddGauge(name, help, labels).Set(value);
  };
  const ApplicationStatus& status = run.status();
  gauge("rudderfish_state_age_seconds",
        "How old what is known of the cluster was at the last turn.", state_age_seconds);
  gauge("rudderfish_application_nodes", "Nodes that the application may use.", status.nodes);
  gauge("rudderfish_application_pods", "Pods of the application.", status.pods);
  gauge("rudderfish_application_pending_pods", "Pods of it without a node.", status.pending);
  gauge("rudderfish_model_latency_seconds", "What the Model says of the cluster as it is.",
        status.seen.latency_ms / kMsPerSecond);
  const LatencyFactors& factors = run.factors();
  for (const auto& [part, factor] :
       {std::pair("execution", factors.execution), std::pair("network", factors.network),
        std::pair("transfer", factors.transfer), std::pair("queueing", factors.queueing)}) {
    registry_
        ->AddGauge("rudderfish_model_factor",
                   "What the Model's part of a latency is multiplied by, as it was measured.",
                   {{"application", run.name()}, {"part", part}})
        .Set(factor);
  }
  gauge("rudderfish_application_blocked", "Whether nothing can be decided for it now.",
        status.problem.empty() ? 0 : 1);
  Raise(
      &registry_->AddCounter("rudderfish_cluster_changes_total",
                             "Changes by others that were seen of an application's pods.", labels),
      static_cast<double>(run.evidence().changes_seen()));
}

void RunMetrics::ShowRoute(const RoutingDecision& last) {
  for (const RoutedRegion& region : last.regions) {
    const MetricLabels labels{{"route", last.route}, {"region", region.region}};
    registry_
        ->AddGauge("rudderfish_route_share", "Share of a route's requests that a region gets.",
                   labels)
        .Set(region.now);
    registry_
        ->AddGauge("rudderfish_route_wanted_share",
                   "Share of a route's requests that the policy would send to a region.", labels)
        .Set(region.wanted);
  }
  const MetricLabels labels{{"route", last.route}};
  registry_
      ->AddGauge("rudderfish_route_predicted_latency_seconds",
                 "Mean response time of a route's requests as it stands, as the Model predicts.",
                 labels)
      .Set(last.predicted_now_ms / kMsPerSecond);
}

void RunMetrics::ShowXdsClients(const std::string& service, size_t clients) {
  registry_
      ->AddGauge("rudderfish_xds_clients", "Clients of xDS that follow a service's weights.",
                 {{"service", service}})
      .Set(static_cast<double>(clients));
}

void RunMetrics::ShowXdsLoad(const std::string& service, const std::string& region,
                             const XdsLoad& load) {
  const auto raise = [&](const char* result, uint64_t count) {
    Raise(&registry_->AddCounter("rudderfish_xds_requests_total",
                                 "Requests that clients of xDS report, by how they ended.",
                                 {{"service", service}, {"region", region}, {"result", result}}),
          static_cast<double>(count));
  };
  raise("succeeded", load.succeeded);
  raise("failed", load.failed);
}

void RunMetrics::ShowCluster(const ClusterCounts& counts) {
  const auto count = [&](std::string_view name, std::string_view help, int64_t value,
                         MetricLabels labels = {}) {
    Raise(&registry_->AddCounter(name, help, std::move(labels)), static_cast<double>(value));
  };
  for (const kube::ClusterFeed::Watched& one : counts.watched) {
    const kube::ReflectorCounts& watch = one.counts;
    const MetricLabels labels{{"resource", one.resource}};
    registry_->AddGauge("rudderfish_mirror_objects", "Objects known of the cluster.", labels)
        .Set(static_cast<double>(one.objects));
    count("rudderfish_lists_total", "Lists begun; after the first it is a relist.", watch.lists,
          labels);
    count("rudderfish_watch_failures_total", "Lists and watches that failed.", watch.failures,
          labels);
    count("rudderfish_watch_expired_total", "Versions that the API server knew no more.",
          watch.expired, labels);
    count("rudderfish_watch_events_total", "Objects told by watches.", watch.events, labels);
    count("rudderfish_malformed_objects_total", "Objects that were left out because malformed.",
          watch.malformed, labels);
    count("rudderfish_watch_unreadable_total",
          "Lists and watches restarted because a response could not be parsed.", watch.unreadable,
          labels);
  }
  count("rudderfish_api_requests_total", "Requests to the API server, repeated ones too.",
        counts.requests);
  count("rudderfish_api_request_failures_total", "Those that failed.", counts.request_failures);
  count("rudderfish_api_throttled_total", "Those answered with 429.", counts.throttled);
  count("rudderfish_lease_renewals_total", "Times the Lease was written.", counts.lease_renewals);
  count("rudderfish_lease_failures_total", "Times the Lease could not be read or written.",
        counts.lease_failures);
  count("rudderfish_leadership_lost_total", "Times this instance stopped leading against its will.",
        counts.leaderships_lost);
  count("rudderfish_events_sent_total", "Events written to the cluster.", counts.events_sent);
  count("rudderfish_events_lost_total", "Events that could not be written.", counts.events_lost);
}

void RunMetrics::ShowSignals(const std::vector<SignalStanding>& signals) {
  for (const SignalStanding& one : signals) {
    const MetricLabels labels{{"signal", one.name}};
    registry_
        ->AddGauge("rudderfish_signal_troubled",
                   "Whether the last attempt brought less than it should.", labels)
        .Set(one.trouble.empty() ? 0 : 1);
    if (!one.age_s) continue;
    registry_
        ->AddGauge("rudderfish_signal_age_seconds",
                   "How old the oldest value of a signal is; absent before the first.", labels)
        .Set(*one.age_s);
  }
}

void RunMetrics::ShowJournal(const JournalExtent& extent,
                             const std::vector<EvidenceSum>& evidence) {
  const auto rows = [&](const char* table, int64_t value) {
    registry_->AddGauge("rudderfish_journal_rows", "Rows in the journal.", {{"table", table}})
        .Set(static_cast<double>(value));
  };
  rows("decisions", extent.decisions);
  rows("evidence", extent.evidence);
  registry_->AddGauge("rudderfish_journal_bytes", "Size of the journal with its log.")
      .Set(static_cast<double>(extent.bytes));
  for (const EvidenceSum& sum : evidence) {
    const MetricLabels labels{{"application", sum.application},
                              {"term", sum.term.substr(0, sum.term.find("_ms"))}};
    const auto gauge = [&](std::string_view name, std::string_view help, double value) {
      registry_->AddGauge(name, help, labels).Set(value);
    };
    gauge("rudderfish_evidence_measurements", "Changes of the cluster that were measured.",
          static_cast<double>(sum.count));
    gauge("rudderfish_evidence_mean_error_seconds",
          "Mean of predicted less measured change of latency, when the cluster changed by itself.",
          sum.mean_ms() / kMsPerSecond);
    gauge("rudderfish_evidence_mean_absolute_error_seconds", "Mean size of that error.",
          sum.mean_absolute_ms() / kMsPerSecond);
  }
}

void RunMetrics::ShowProcess() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  Raise(&registry_->AddCounter("rudderfish_cpu_seconds_total", "CPU time used."),
        CpuSeconds(usage.ru_utime) + CpuSeconds(usage.ru_stime));
  std::ifstream statm("/proc/self/statm");
  double all = 0, resident = 0;
  if (statm >> all >> resident) {
    registry_->AddGauge("rudderfish_resident_memory_bytes", "Memory held.")
        .Set(resident * static_cast<double>(::sysconf(_SC_PAGESIZE)));
  }
}

}  // namespace rudderfish
