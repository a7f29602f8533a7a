// SPDX-License-Identifier: Apache-2.0
#include "scenario/arrivals_writer.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "scenario/arrivals_parser.h"

namespace rudderfish {
namespace {

void WriteStream(const ArrivalStream& stream, const Catalog& catalog, YamlWriter* out) {
  out->BeginItem();
  const auto name = [&](size_t i) { return catalog.workloads[stream.workloads[i]].name; };
  if (!stream.weights.empty()) {
    YamlWriter::Fields weights;
    for (size_t i = 0; i < stream.workloads.size(); ++i)
      weights.push_back({name(i), stream.weights[i]});
    out->FlowMap("workloads", weights);
  } else if (stream.workloads.size() == 1) {
    out->Field("workloads", name(0));
  } else {
    std::vector<YamlScalar> names;
    for (size_t i = 0; i < stream.workloads.size(); ++i) names.push_back(name(i));
    out->FlowList("workloads", names);
  }
  WriteTimeLaw("interval", stream.interval, out);
  if (stream.start.count() != 0) out->Field("start", SimTimeText(stream.start));
  if (stream.count != 0) out->Field("count", stream.count);
  if (stream.lifetime) WriteTimeLaw("lifetime", *stream.lifetime, out);
  if (stream.shape != ArrivalStream::Shape::kSpaced) {
    out->FlowMap(stream.shape == ArrivalStream::Shape::kWaves ? "waves" : "rolling",
                 {{"pods", stream.pods},
                  {"hold", SimTimeText(stream.hold)},
                  {"pause", SimTimeText(stream.pause)}});
  }
  out->End();
}

void WriteEvent(const WorldEvent& event, const Scenario& scenario, YamlWriter* out) {
  out->BeginItem();
  out->Field("at", SimTimeText(event.at));
  if (event.kind == WorldEvent::Kind::kLatency) {
    const std::vector<Layer>& layers = scenario.catalog->layers;
    out->BeginMap("latency");
    out->FlowMap(layers[event.from].name,
                 {{layers[event.to].name, fmt::format("{}ms", event.latency_ms)}});
    out->End();
  } else {
    out->Field(event.kind == WorldEvent::Kind::kLoseNode ? "lose" : "return",
               scenario.names->nodes[event.node]);
  }
  out->End();
}

}  // namespace

// The double nearest to it in ms, or one beside it.
std::string SimTimeText(SimTime time) {
  double ms = static_cast<double>(time.count()) / 1e6;
  for (int direction : {0, 1, -1}) {
    double near = ms;
    for (int step = 0; step < 4; ++step) {
      const bool in_seconds = std::fmod(near, 1000) == 0 && near > 0;
      std::string text =
          in_seconds ? fmt::format("{:.0f}s", near / 1000) : fmt::format("{}ms", near);
      if (ParseSimTime(text) == time) return text;
      near = std::nextafter(near, direction * std::numeric_limits<double>::infinity());
      if (direction == 0) break;
    }
  }
  return fmt::format("{}ms", ms);
}

void WriteTimeLaw(std::string_view key, const TimeLaw& law, YamlWriter* out) {
  switch (law.shape) {
    case TimeLaw::Shape::kConstant:
      out->Field(key, SimTimeText(law.a));
      break;
    case TimeLaw::Shape::kUniform:
      out->Field(key, fmt::format("{} to {}", SimTimeText(law.a), SimTimeText(law.b)));
      break;
    case TimeLaw::Shape::kExponential:
      out->FlowMap(key, {{"exponential", SimTimeText(law.a)}});
      break;
    case TimeLaw::Shape::kNormal:
      out->BeginMap(key);
      out->FlowList("normal", {SimTimeText(law.a), SimTimeText(law.b)});
      out->End();
      break;
  }
}

void WriteObjective(const Objective& objective, YamlWriter* out) {
  YamlWriter::Fields weights;
  for (int i = 0; i < kObjectiveTerms; ++i) {
    if (objective.weight[i] != 0)
      weights.push_back({std::string(kObjectiveTermNames[i]), objective.weight[i]});
  }
  out->FlowMap("objective", weights);
}

void WriteArrivals(const Scenario& scenario, YamlWriter* out) {
  const Arrivals& arrivals = *scenario.arrivals;
  out->BlankLine();
  out->BeginMap("arrivals");
  if (!arrivals.streams.empty()) {
    out->BeginList("streams");
    for (const ArrivalStream& stream : arrivals.streams)
      WriteStream(stream, *scenario.catalog, out);
    out->End();
  }
  if (arrivals.has_trace()) {
    YamlWriter::Fields trace = {{"format", arrivals.trace.format},
                                {"pods", arrivals.trace.pods_file}};
    if (!arrivals.trace.nodes_file.empty()) trace.push_back({"nodes", arrivals.trace.nodes_file});
    trace.push_back({"time_warp", arrivals.trace.time_warp});
    trace.push_back({"lifetime_warp", arrivals.trace.lifetime_warp});
    if (arrivals.trace.drawn > 0) trace.push_back({"drawn", arrivals.trace.drawn});
    out->FlowMap("trace", trace);
  }
  if (arrivals.start_delay != TimeLaw()) WriteTimeLaw("start_delay", arrivals.start_delay, out);
  if (arrivals.until != kNever) out->Field("until", SimTimeText(arrivals.until));
  if (arrivals.users != kNone) out->Field("users", scenario.catalog->layers[arrivals.users].name);
  if (arrivals.lost_pods == LostPods::kGone) out->Field("lost_pods", "gone");
  if (arrivals.failures) {
    out->BeginMap("failures");
    WriteTimeLaw("every", arrivals.failures->every, out);
    WriteTimeLaw("down", arrivals.failures->down, out);
    out->End();
  }
  if (!arrivals.events.empty()) {
    out->BeginList("events");
    for (const WorldEvent& event : arrivals.events) WriteEvent(event, scenario, out);
    out->End();
  }
  out->End();
}

}  // namespace rudderfish
