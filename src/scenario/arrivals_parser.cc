// SPDX-License-Identifier: Apache-2.0
#include "scenario/arrivals_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "scenario/scenario.h"
#include "scenario/trace_reader.h"
#include "scenario/yaml_values.h"

namespace rudderfish {
namespace {

constexpr double kMostMs = 1e11;  // Three years.
constexpr double kLongestScriptNs =
    1e18;  // Of a script, from its start to the end of its last pod.
constexpr double kLeastWeight = 1e-6, kMostWeight = 1e6;
constexpr double kLeastWarp = 1e-6, kMostWarp = 1e9;
constexpr std::string_view kRangeTo = " to ";

Result<SimTime> OptionalTime(YamlMap* map, std::string_view key, SimTime fallback) {
  const std::optional<YamlNode> node = map->Optional(key);
  return node ? SimTimeOf(*node) : Result<SimTime>(fallback);
}

Result<TimeLaw> UnboundedLawOf(const YamlNode& node) {
  TRY_ASSIGN(YamlMap map, node.AsMap());
  TimeLaw law;
  if (const std::optional<YamlNode> mean = map.Optional("exponential")) {
    law.shape = TimeLaw::Shape::kExponential;
    TRY_ASSIGN(law.a, SimTimeOf(*mean));
  } else if (const std::optional<YamlNode> normal = map.Optional("normal")) {
    law.shape = TimeLaw::Shape::kNormal;
    TRY_ASSIGN(const std::vector<YamlNode> both, normal->AsList());
    if (both.size() != 2) return normal->Refuse("expected [mean, standard deviation]");
    TRY_ASSIGN(law.a, SimTimeOf(both[0]));
    TRY_ASSIGN(law.b, SimTimeOf(both[1]));
  } else {
    return node.Expected(
        "a time such as 20s, a range such as 10s to 30s, {exponential: 20s} or "
        "{normal: [20s, 1s]}");
  }
  TRY(map.Finish());
  return law;
}

class ArrivalsReader {
 public:
  explicit ArrivalsReader(const ArrivalNames& names) : names_(names) {}

  Result<Arrivals> Read(const YamlNode& node) {
    TRY_ASSIGN(YamlMap map, node.AsMap());
    TRY_ASSIGN(const std::vector<YamlNode> streams, map.OptionalList("streams"));
    for (const YamlNode& item : streams) {
      TRY_ASSIGN(ArrivalStream stream, ReadStream(item));
      arrivals_.streams.push_back(std::move(stream));
    }
    TRY(ReadTrace(map.Optional("trace")));
    if (arrivals_.streams.empty() && !arrivals_.has_trace())
      return node.Refuse("no pod ever arrives: give `streams` or a `trace` with `pods`");
    if (const std::optional<YamlNode> delay = map.Optional("start_delay")) {
      TRY_ASSIGN(arrivals_.start_delay, TimeLawOf(*delay));
    }
    TRY_ASSIGN(arrivals_.until, OptionalTime(&map, "until", kNever));
    if (const std::optional<YamlNode> users = map.Optional("users")) {
      TRY_ASSIGN(arrivals_.users, NameIn(*users, *names_.layers));
    }
    TRY(ReadLostPods(map.Optional("lost_pods")));
    TRY(ReadFailures(map.Optional("failures")));
    TRY_ASSIGN(const std::vector<YamlNode> events, map.OptionalList("events"));
    for (const YamlNode& item : events) TRY(ReadEvent(item));
    std::stable_sort(arrivals_.events.begin(), arrivals_.events.end(),
                     [](const WorldEvent& a, const WorldEvent& b) { return a.at < b.at; });
    TRY(map.Finish());
    TRY(CheckThatItEnds(streams));
    TRY(CheckHowManyCome(streams));
    return std::move(arrivals_);
  }

 private:
  static Result<int> NameIn(const YamlNode& node, const NameIndex& index) {
    TRY_ASSIGN(const std::string name, node.AsString());
    const int found = index.Find(name);
    if (found == kNone) return node.Refuse(index.Unknown(name));
    return found;
  }

  Result<ArrivalStream> ReadStream(const YamlNode& node) {
    TRY_ASSIGN(YamlMap map, node.AsMap());
    ArrivalStream stream;
    TRY_ASSIGN(const YamlNode workloads, map.Required("workloads"));
    TRY(ReadStreamWorkloads(workloads, &stream));
    TRY_ASSIGN(const YamlNode interval, map.Required("interval"));
    TRY_ASSIGN(stream.interval, TimeLawOf(interval));
    TRY_ASSIGN(stream.start, OptionalTime(&map, "start", SimTime(0)));
    TRY_ASSIGN(stream.count, map.OptionalInt("count", 1, kMaxPods, 0));
    const std::optional<YamlNode> lifetime = map.Optional("lifetime");
    if (lifetime) {
      TRY_ASSIGN(stream.lifetime, TimeLawOf(*lifetime));
    }
    const std::optional<YamlNode> waves = map.Optional("waves"), rolling = map.Optional("rolling");
    TRY(map.Finish());
    if (waves && rolling) return rolling->Refuse("give either `waves` or `rolling`, not both");
    if (waves || rolling) {
      stream.shape = waves ? ArrivalStream::Shape::kWaves : ArrivalStream::Shape::kRolling;
      TRY(ReadScript(waves ? *waves : *rolling, &stream));
      if (stream.interval.shape != TimeLaw::Shape::kConstant)
        return interval.Refuse("within waves and rolling, pods arrive at a constant interval");
    }
    // Time must go on, or an episode never ends.
    ArrivalStream endless = stream;
    endless.count = 0;
    if (!std::isinf(ExpectedPods(endless, kLongest))) return stream;
    if (!waves && !rolling) return interval.Refuse("expected an interval above 0");
    return (waves ? waves : rolling)
        ->Refuse("time would not go on: expected a `hold` or `pause` above 0");
  }

  Result<void> ReadScript(const YamlNode& node, ArrivalStream* stream) {
    TRY_ASSIGN(YamlMap map, node.AsMap());
    TRY_ASSIGN(const int64_t pods, map.RequiredInt("pods", 1, kMaxPods));
    stream->pods = static_cast<int>(pods);
    TRY_ASSIGN(stream->hold, OptionalTime(&map, "hold", SimTime(0)));
    TRY_ASSIGN(stream->pause, OptionalTime(&map, "pause", SimTime(0)));
    const double step = static_cast<double>((stream->interval.a + stream->hold).count()) +
                        static_cast<double>(stream->pause.count());
    if (static_cast<double>(stream->pods + stream->count) * step > kLongestScriptNs)
      return node.Refuse("takes longer than can be counted in ns");
    return map.Finish();
  }

  // A name; a list, in turn; or a map of weights.
  Result<void> ReadStreamWorkloads(const YamlNode& node, ArrivalStream* stream) {
    if (node.IsScalar()) {
      TRY_ASSIGN(const WorkloadId workload, NameIn(node, *names_.workloads));
      stream->workloads = {workload};
      return {};
    }
    if (node.IsList()) {
      TRY_ASSIGN(const std::vector<YamlNode> items, node.AsList());
      for (const YamlNode& item : items) {
        TRY_ASSIGN(const WorkloadId workload, NameIn(item, *names_.workloads));
        stream->workloads.push_back(workload);
      }
    } else {
      TRY_ASSIGN(YamlMap map, node.AsMap());
      for (const auto& [name, value] : map.Entries()) {
        const WorkloadId workload = names_.workloads->Find(name);
        if (workload == kNone) return value.Refuse(names_.workloads->Unknown(name));
        stream->workloads.push_back(workload);
        TRY_ASSIGN(const double weight, value.AsDouble(kLeastWeight, kMostWeight));
        stream->weights.push_back(weight);
      }
    }
    if (stream->workloads.empty() || stream->workloads.size() > kMaxWorkloads)
      return node.Refuse("expected at least one workload");
    return {};
  }

  Result<void> ReadTrace(const std::optional<YamlNode>& node) {
    if (!node) return {};
    TRY_ASSIGN(YamlMap map, node->AsMap());
    TRY_ASSIGN(const YamlNode format, map.Required("format"));
    TRY_ASSIGN(arrivals_.trace.format, format.AsString());
    TRY(CheckTraceFormat(arrivals_.trace.format, format));
    TRY_ASSIGN(const YamlNode pods, map.Required("pods"));
    TRY_ASSIGN(arrivals_.trace.pods_file, pods.AsString());
    if (arrivals_.trace.pods_file.empty()) return pods.Expected("a file");
    TRY_ASSIGN(arrivals_.trace.nodes_file, map.OptionalString("nodes", ""));
    TRY_ASSIGN(const double warp, map.OptionalDouble("time_warp", kLeastWarp, kMostWarp, 1));
    arrivals_.trace.time_warp = warp;
    TRY_ASSIGN(arrivals_.trace.lifetime_warp,
               map.OptionalDouble("lifetime_warp", kLeastWarp, kMostWarp, warp));
    TRY_ASSIGN(arrivals_.trace.drawn, map.OptionalInt("drawn", 1, kMaxPods, 0));
    return map.Finish();
  }

  Result<void> ReadLostPods(const std::optional<YamlNode>& node) {
    if (!node) return {};
    const Result<std::string> text = node->AsString();
    if (text == "gone") {
      arrivals_.lost_pods = LostPods::kGone;
    } else if (text != "pend") {
      return node->Expected("pend (they wait to be placed again) or gone");
    }
    return {};
  }

  Result<void> ReadFailures(const std::optional<YamlNode>& node) {
    if (!node) return {};
    TRY_ASSIGN(YamlMap map, node->AsMap());
    NodeFailures failures;
    TRY_ASSIGN(const YamlNode every, map.Required("every"));
    TRY_ASSIGN(failures.every, TimeLawOf(every));
    TRY_ASSIGN(const YamlNode down, map.Required("down"));
    TRY_ASSIGN(failures.down, TimeLawOf(down));
    if (failures.every.MeanNs() <= 0) return every.Refuse("expected a time above 0");
    TRY(map.Finish());
    arrivals_.failures = failures;
    return {};
  }

  Result<void> ReadEvent(const YamlNode& node) {
    TRY_ASSIGN(YamlMap map, node.AsMap());
    TRY_ASSIGN(const YamlNode at, map.Required("at"));
    WorldEvent event;
    TRY_ASSIGN(event.at, SimTimeOf(at));
    const std::optional<YamlNode> lose = map.Optional("lose"), back = map.Optional("return"),
                                  latency = map.Optional("latency");
    TRY(map.Finish());
    if (!!lose + !!back + !!latency != 1)
      return node.Refuse("expected one of `lose`, `return` and `latency`");
    if (latency) return ReadLatencies(*latency, event);
    event.kind = lose ? WorldEvent::Kind::kLoseNode : WorldEvent::Kind::kReturnNode;
    TRY_ASSIGN(event.node, NameIn(lose ? *lose : *back, *names_.nodes));
    arrivals_.events.push_back(event);
    return {};
  }

  // {from: {to: 5ms}}: those given change, one way.
  Result<void> ReadLatencies(const YamlNode& node, WorldEvent event) {
    event.kind = WorldEvent::Kind::kLatency;
    TRY_ASSIGN(YamlMap rows, node.AsMap());
    for (const auto& [from, row] : rows.Entries()) {
      event.from = names_.layers->Find(from);
      if (event.from == kNone) return row.Refuse(names_.layers->Unknown(from));
      TRY_ASSIGN(YamlMap targets, row.AsMap());
      for (const auto& [to, value] : targets.Entries()) {
        event.to = names_.layers->Find(to);
        if (event.to == kNone) return value.Refuse(names_.layers->Unknown(to));
        TRY_ASSIGN(event.latency_ms, QuantityOf(value, ParseLatencyMs));
        arrivals_.events.push_back(event);
      }
    }
    return {};
  }

  // Every stream has a count, or the whole has an end; pods that never leave need an end too, which
  // is the last event, so that is fine.
  Result<void> CheckThatItEnds(const std::vector<YamlNode>& streams) {
    if (arrivals_.until != kNever) return {};
    for (size_t i = 0; i < streams.size(); ++i) {
      if (arrivals_.streams[i].count == 0)
        return streams[i].Refuse("would never end: give it a `count`, or the arrivals an `until`");
    }
    return {};
  }

  // All may be there at once: those that find no room wait.
  Result<void> CheckHowManyCome(const std::vector<YamlNode>& streams) const {
    double pods = 0;
    for (size_t i = 0; i < streams.size(); ++i) {
      pods += ExpectedPods(arrivals_.streams[i], arrivals_.until);
      if (pods <= kMaxPods) continue;
      return streams[i].Refuse(fmt::format(
          "brings an episode to about {:.0f} pods, and {} are the most: give it a lower "
          "`count` or a longer `interval`, or the arrivals an earlier `until`",
          pods, kMaxPods));
    }
    return {};
  }

  ArrivalNames names_;
  Arrivals arrivals_;
};

}  // namespace

Result<SimTime> ParseSimTime(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  TRY_ASSIGN(const double ms, ParseDurationMs(text));
  if (ms > kMostMs) return Invalid("expected at most {:.0f}h, found \"{}\"", kMostMs / 3.6e6, text);
  return SimTime(std::llround(ms * 1e6));
}

Result<SimTime> SimTimeOf(const YamlNode& node) {
  TRY_ASSIGN(const std::string text, node.AsString());
  Result<SimTime> time = ParseSimTime(text);
  if (!time) return node.Refuse(time.error().message);
  return *time;
}

Result<TimeLaw> TimeLawOf(const YamlNode& node) {
  if (!node.IsScalar()) return UnboundedLawOf(node);
  TRY_ASSIGN(const std::string text, node.AsString());
  const size_t to = text.find(kRangeTo);
  if (to == std::string::npos) {
    TRY_ASSIGN(const SimTime time, SimTimeOf(node));
    return TimeLaw::Constant(time);
  }
  const Result<SimTime> low = ParseSimTime(std::string_view(text).substr(0, to));
  const Result<SimTime> high = ParseSimTime(std::string_view(text).substr(to + kRangeTo.size()));
  if (!low) return node.Refuse(low.error().message);
  if (!high) return node.Refuse(high.error().message);
  if (*low > *high) return node.Refuse(fmt::format("the range \"{}\" ends below its start", text));
  if (*low == *high) return TimeLaw::Constant(*low);
  return TimeLaw{TimeLaw::Shape::kUniform, *low, *high};
}

Result<Arrivals> ParseArrivals(const YamlNode& node, const ArrivalNames& names) {
  return ArrivalsReader(names).Read(node);
}

}  // namespace rudderfish
