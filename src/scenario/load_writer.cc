// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>

#include "base/yaml_writer.h"
#include "scenario/arrivals_writer.h"
#include "scenario/load_parser.h"

namespace rudderfish {
namespace {

void WritePods(const PodService& pods, YamlWriter* out) {
  out->Field("replicas",
             pods.replicas_min == pods.replicas_max
                 ? YamlScalar(pods.replicas_min)
                 : YamlScalar(fmt::format("{} to {}", pods.replicas_min, pods.replicas_max)));
  out->Field("slots", pods.slots);
  if (pods.discipline == Discipline::kShared) out->Field("discipline", "ps");
  out->Field("scv", pods.service.scv);
  if (pods.queue_limit != kNoQueueLimit) out->Field("queue", pods.queue_limit);
  if (pods.balancing == Balancing::kRoundRobin) out->Field("balance", "round-robin");
  if (pods.balancing == Balancing::kLeastRequests)
    out->FlowMap("balance", {{"least-requests", pods.choices}});
  WriteTimeLaw("start_delay", pods.start_delay, out);
  if (pods.image_pull != TimeLaw::Constant(SimTime(0)))
    WriteTimeLaw("image_pull", pods.image_pull, out);
  if (pods.probe_period.count() > 0) {
    out->FlowMap("readiness", {{"initial_delay", SimTimeText(pods.probe_delay)},
                               {"period", SimTimeText(pods.probe_period)}});
  }
}

void WriteReplay(const Traffic& traffic, YamlWriter* out) {
  out->Field("format", traffic.format);
  out->Field("file", traffic.file);
  out->Field("bin", SimTimeText(traffic.bin));
  out->Field("time_warp", traffic.time_warp);
  if (traffic.scale_per_s > 0) out->Field("rate", traffic.scale_per_s);
  out->FlowList("part", {traffic.from, traffic.upto});
  out->Field("held_out", traffic.held_out);
}

void WriteShape(const Traffic& traffic, YamlWriter* out) {
  using Shape = Traffic::Shape;
  if (traffic.shape == Shape::kReplay) return WriteReplay(traffic, out);
  if (traffic.shape == Shape::kSteady) return out->Field("rate", traffic.low_per_s);
  const bool staged = traffic.shape == Shape::kStaged;
  out->Field(staged ? "rate_per_user" : "low", traffic.low_per_s);
  out->Field(staged ? "users" : "high", traffic.high_per_s);
  if (traffic.shape == Shape::kDiurnal) out->Field("period", SimTimeText(traffic.period));
  if (traffic.shape == Shape::kRamp) {
    out->Field("begin", SimTimeText(traffic.begin));
    out->Field("end", SimTimeText(traffic.end));
  }
  if (traffic.shape == Shape::kBursty) {
    WriteTimeLaw("every", traffic.every, out);
    WriteTimeLaw("lasts", traffic.lasts, out);
  }
  if (traffic.shape != Shape::kFlash) return;
  WriteTimeLaw("at", traffic.at, out);
  out->Field("rise", SimTimeText(traffic.rise));
  out->Field("hold", SimTimeText(traffic.hold));
  out->Field("fall", SimTimeText(traffic.fall));
}

void WriteGoal(const Load& load, const CallGraph& calls, YamlWriter* out) {
  const ScalingObjective& objective = load.objective;
  if (objective != ScalingObjective()) {
    YamlWriter::Fields terms = {{"cost", objective.cost}, {"changes", objective.changes}};
    if (objective.late) terms.emplace_back("late", *objective.late);
    out->FlowMap("objective", terms);
  }
  const ServiceLimit& limit = load.limit;
  if (limit == ServiceLimit()) return;
  YamlWriter::Fields fields;
  if (limit.percentile == 0) fields.emplace_back("late", limit.late_max);
  if (limit.percentile > 0) {
    fields.emplace_back(fmt::format("p{}", limit.percentile),
                        limit.response_ms > 0 ? fmt::format("{}ms", limit.response_ms) : "qos");
  }
  if (limit.endpoint != kNone)
    fields.emplace_back("endpoint", calls.endpoints[limit.endpoint].name);
  out->FlowMap("limit", fields);
}

}  // namespace

void WriteTraffic(const Traffic& traffic, YamlWriter* out) {
  out->BeginMap(kTrafficShapes[static_cast<int>(traffic.shape)]);
  WriteShape(traffic, out);
  out->End();
}

void WriteLoad(const Load& load, const Catalog& catalog, const CallGraph& calls, YamlWriter* out) {
  out->BlankLine();
  out->BeginMap("load");
  out->Field("duration", SimTimeText(load.duration));
  out->Field("interval", SimTimeText(load.interval));
  if (load.network.count() > 0) out->Field("network", SimTimeText(load.network));
  if (load.timeout.count() > 0) out->Field("timeout", SimTimeText(load.timeout));
  if (load.retries > 0) out->Field("retries", load.retries);
  if (load.retry_delay.count() > 0) out->Field("retry_delay", SimTimeText(load.retry_delay));
  if (load.sessions != SessionLaw()) {
    out->FlowMap("sessions", {{"requests", load.sessions.requests},
                              {"think", SimTimeText(load.sessions.think)}});
  }
  const ScalingLimits &limits = load.limits, none;
  YamlWriter::Fields quota;
  if (limits.cpu_millis_max != none.cpu_millis_max)
    quota.emplace_back("cpu", fmt::format("{}m", limits.cpu_millis_max));
  if (limits.pods_max != none.pods_max) quota.emplace_back("pods", limits.pods_max);
  if (!quota.empty()) out->FlowMap("quota", quota);
  if (limits.cool_down_s > 0)
    out->Field("cool_down", SimTimeText(SimTime(std::llround(limits.cool_down_s * 1e9))));
  WriteGoal(load, calls, out);
  out->BeginMap("pods");
  for (WorkloadId w = 0; w < catalog.workload_count(); ++w) {
    if (load.pods[w] == PodService()) continue;
    out->BeginMap(catalog.workloads[w].name);
    WritePods(load.pods[w], out);
    out->End();
  }
  out->End();
  out->BeginMap("loads");
  for (const NamedTraffic& named : load.loads) {
    out->BeginMap(named.name);
    WriteTraffic(named.traffic, out);
    out->End();
  }
  out->End();
  out->End();
}

}  // namespace rudderfish
