// SPDX-License-Identifier: Apache-2.0
#include "scenario/load_parser.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/gzip.h"
#include "base/suggest.h"
#include "scenario/arrivals_parser.h"
#include "scenario/arrivals_writer.h"
#include "scenario/scenario.h"
#include "scenario/yaml_values.h"

namespace rudderfish {
namespace {

constexpr double kMostTrafficPerS = 1e7, kMostSessionRequests = 1e4;
constexpr double kMostUsers = 1e7;  // Who think at a time: a simulator keeps each of them.
constexpr int kMostSlots = 100'000, kMostRetries = 100, kMostChoices = 1000;
constexpr size_t kMostLoads = 100;
constexpr int64_t kMostQuotaPods = 1'000'000'000;
constexpr SimTime kSecond{1'000'000'000}, kWeek{604'800'000'000'000};
constexpr double kMostScv = 100;
constexpr double kLeastTrafficWarp = 1e-3, kMostTrafficWarp = 1e3;
constexpr double kLeastHeldOut = 0.01;  // Or learned on.
constexpr std::string_view kBalancings[] = {"random", "round-robin", "least-requests"};
constexpr std::string_view kDisciplines[] = {"fcfs", "ps"};

Result<SimTime> TimeWithin(const YamlNode& node, SimTime least, SimTime most) {
  TRY_ASSIGN(const SimTime time, SimTimeOf(node));
  if (time < least || time > most) {
    return node.Expected(
        fmt::format("a time from {}s to {}s", least.count() / 1e9, most.count() / 1e9));
  }
  return time;
}

Result<SimTime> RequiredTime(YamlMap* map, std::string_view key, SimTime least, SimTime most) {
  TRY_ASSIGN(const YamlNode node, map->Required(key));
  return TimeWithin(node, least, most);
}

// 2 as it is, or the fewest and the most.
Result<void> ReadBounds(const YamlNode& node, PodService* pods) {
  TRY_ASSIGN(const Distribution bounds, DistributionOf(node, ParseReplicas));
  if (bounds.shape() == Distribution::Shape::kChoice)
    return node.Expected("the fewest and the most, such as 1 to 8");
  pods->replicas_min = static_cast<int>(bounds.min());
  pods->replicas_max = static_cast<int>(bounds.max());
  return {};
}

Result<void> ReadBalancing(const YamlNode& node, PodService* pods) {
  if (node.IsMap()) {
    TRY_ASSIGN(YamlMap map, node.AsMap());
    pods->balancing = Balancing::kLeastRequests;
    TRY_ASSIGN(const int64_t choices, map.RequiredInt("least-requests", 1, kMostChoices));
    pods->choices = static_cast<int>(choices);
    return map.Finish();
  }
  TRY_ASSIGN(const std::string name, node.AsString());
  const auto at = std::find(std::begin(kBalancings), std::end(kBalancings), name);
  if (at == std::end(kBalancings)) {
    return node.Expected(
        fmt::format("random, round-robin, least-requests or {{least-requests: 3}}{}",
                    DidYouMean(name, kBalancings)));
  }
  pods->balancing = static_cast<Balancing>(at - std::begin(kBalancings));
  return {};
}

Result<Discipline> DisciplineOf(const YamlNode& node) {
  TRY_ASSIGN(const std::string name, node.AsString());
  const auto at = std::find(std::begin(kDisciplines), std::end(kDisciplines), name);
  if (at == std::end(kDisciplines))
    return node.Expected(fmt::format("fcfs or ps{}", DidYouMean(name, kDisciplines)));
  return static_cast<Discipline>(at - std::begin(kDisciplines));
}

Result<void> ReadDelay(std::string_view key, YamlMap* map, TimeLaw* delay) {
  const std::optional<YamlNode> node = map->Optional(key);
  if (!node) return {};
  TRY_ASSIGN(*delay, TimeLawOf(*node));
  if (delay->shape != TimeLaw::Shape::kConstant && delay->shape != TimeLaw::Shape::kUniform)
    return node->Expected("a time such as 20s, or a range such as 10s to 30s");
  return {};
}

Result<PodService> ReadPods(const YamlNode& node) {
  TRY_ASSIGN(YamlMap map, node.AsMap());
  PodService pods;
  TRY_ASSIGN(const YamlNode replicas, map.Required("replicas"));
  TRY(ReadBounds(replicas, &pods));
  TRY_ASSIGN(const int64_t slots, map.OptionalInt("slots", 1, kMostSlots, 1));
  pods.slots = static_cast<int>(slots);
  if (const std::optional<YamlNode> discipline = map.Optional("discipline")) {
    TRY_ASSIGN(pods.discipline, DisciplineOf(*discipline));
  }
  TRY_ASSIGN(const int64_t queue, map.OptionalInt("queue", 0, kNoQueueLimit - 1, kNoQueueLimit));
  pods.queue_limit = static_cast<int>(queue);
  TRY_ASSIGN(const double scv, map.OptionalDouble("scv", 0, kMostScv, 1));
  pods.service = ServiceLaw::OfScv(scv);
  if (const std::optional<YamlNode> balance = map.Optional("balance"))
    TRY(ReadBalancing(*balance, &pods));
  TRY(ReadDelay("start_delay", &map, &pods.start_delay));
  TRY(ReadDelay("image_pull", &map, &pods.image_pull));
  if (const std::optional<YamlNode> probes = map.Optional("readiness")) {
    TRY_ASSIGN(YamlMap fields, probes->AsMap());
    TRY_ASSIGN(pods.probe_period, RequiredTime(&fields, "period", kSecond, kWeek));
    if (const std::optional<YamlNode> delay = fields.Optional("initial_delay")) {
      TRY_ASSIGN(pods.probe_delay, TimeWithin(*delay, SimTime(0), kWeek));
    }
    TRY(fields.Finish());
  }
  TRY(map.Finish());
  return pods;
}

class TrafficReader {
 public:
  Result<Traffic> Read(const YamlNode& node) {
    TRY_ASSIGN(YamlMap map, node.AsMap());
    const auto entries = map.Entries();
    if (entries.size() != 1) {
      return node.Expected(fmt::format("one of {}, as in `{{steady: {{rate: 20}}}}`",
                                       fmt::join(kTrafficShapes, ", ")));
    }
    const auto& [name, body] = entries[0];
    const auto shape = std::find(std::begin(kTrafficShapes), std::end(kTrafficShapes), name);
    if (shape == std::end(kTrafficShapes)) {
      return body.Refuse(fmt::format("no shape of load is called \"{}\"; there are {}{}", name,
                                     fmt::join(kTrafficShapes, ", "),
                                     DidYouMean(name, kTrafficShapes)));
    }
    traffic_.shape = static_cast<Traffic::Shape>(shape - std::begin(kTrafficShapes));
    TRY_ASSIGN(YamlMap fields, body.AsMap());
    TRY(ReadShape(&fields));
    TRY(fields.Finish());
    return traffic_;
  }

 private:
  Result<void> ReadShape(YamlMap* fields) {
    switch (traffic_.shape) {
      case Traffic::Shape::kSteady: {
        TRY_ASSIGN(traffic_.low_per_s, fields->RequiredDouble("rate", 0, kMostTrafficPerS));
        traffic_.high_per_s = traffic_.low_per_s;
        return {};
      }
      case Traffic::Shape::kDiurnal: {
        TRY(ReadRates(fields));
        TRY_ASSIGN(traffic_.period, RequiredTime(fields, "period", kSecond, 2 * kWeek));
        return {};
      }
      case Traffic::Shape::kRamp: {
        TRY(ReadRates(fields));
        TRY_ASSIGN(traffic_.begin, RequiredTime(fields, "begin", SimTime(0), kWeek));
        TRY_ASSIGN(traffic_.end,
                   RequiredTime(fields, "end", traffic_.begin + kSecond, kWeek + kSecond));
        return {};
      }
      case Traffic::Shape::kBursty: {
        TRY(ReadRates(fields));
        TRY_ASSIGN(const YamlNode every, fields->Required("every"));
        TRY_ASSIGN(traffic_.every, TimeLawOf(every));
        TRY_ASSIGN(const YamlNode lasts, fields->Required("lasts"));
        TRY_ASSIGN(traffic_.lasts, TimeLawOf(lasts));
        return {};
      }
      case Traffic::Shape::kFlash: {
        TRY(ReadRates(fields));
        TRY_ASSIGN(const YamlNode at, fields->Required("at"));
        TRY_ASSIGN(traffic_.at, TimeLawOf(at));
        TRY_ASSIGN(traffic_.rise, RequiredTime(fields, "rise", kSecond, kWeek));
        TRY_ASSIGN(traffic_.hold, RequiredTime(fields, "hold", kSecond, kWeek));
        TRY_ASSIGN(traffic_.fall, RequiredTime(fields, "fall", kSecond, kWeek));
        return {};
      }
      case Traffic::Shape::kStaged: {
        TRY_ASSIGN(traffic_.low_per_s, fields->RequiredDouble("rate_per_user", 0, 1000));
        TRY_ASSIGN(traffic_.high_per_s, fields->RequiredDouble("users", 0, 10'000));
        return {};
      }
      case Traffic::Shape::kReplay:
        break;
    }
    return ReadReplay(fields);
  }

  Result<void> ReadRates(YamlMap* fields) {
    TRY_ASSIGN(traffic_.low_per_s, fields->RequiredDouble("low", 0, kMostTrafficPerS));
    TRY_ASSIGN(traffic_.high_per_s, fields->RequiredDouble("high", 0, kMostTrafficPerS));
    return {};
  }

  Result<void> ReadReplay(YamlMap* fields) {
    TRY_ASSIGN(const YamlNode format, fields->Required("format"));
    TRY_ASSIGN(traffic_.format, format.AsString());
    if (std::find(std::begin(kRequestTraceFormats), std::end(kRequestTraceFormats),
                  traffic_.format) == std::end(kRequestTraceFormats))
      return format.Expected(fmt::format("{}{}", fmt::join(kRequestTraceFormats, ", "),
                                         DidYouMean(traffic_.format, kRequestTraceFormats)));
    TRY_ASSIGN(const YamlNode file, fields->Required("file"));
    TRY_ASSIGN(traffic_.file, file.AsString());
    if (traffic_.file.empty()) return file.Expected("a file");
    traffic_.bin = 60 * kSecond;
    if (const std::optional<YamlNode> bin = fields->Optional("bin")) {
      TRY_ASSIGN(traffic_.bin, TimeWithin(*bin, kSecond, kWeek));
    }
    TRY_ASSIGN(traffic_.time_warp,
               fields->OptionalDouble("time_warp", kLeastTrafficWarp, kMostTrafficWarp, 1));
    TRY_ASSIGN(traffic_.scale_per_s, fields->OptionalDouble("rate", 0, kMostTrafficPerS, 0));
    TRY_ASSIGN(traffic_.held_out, fields->OptionalDouble("held_out", kLeastHeldOut,
                                                         1 - kLeastHeldOut, traffic_.held_out));
    const std::optional<YamlNode> part = fields->Optional("part");
    if (!part) return {};
    TRY_ASSIGN(const std::vector<YamlNode> ends, part->AsList());
    if (ends.size() != 2) return part->Expected("[from, to], shares of the trace");
    TRY_ASSIGN(traffic_.from, ends[0].AsDouble(0, 1));
    TRY_ASSIGN(traffic_.upto, ends[1].AsDouble(0, 1));
    if (traffic_.from >= traffic_.upto) return part->Refuse("the part ends before it begins");
    return {};
  }

  Traffic traffic_;
};

Result<void> ReadTimes(YamlMap* map, Load* load) {
  const auto optional = [&](std::string_view key, SimTime least, SimTime most,
                            SimTime* time) -> Result<void> {
    if (const std::optional<YamlNode> node = map->Optional(key)) {
      TRY_ASSIGN(*time, TimeWithin(*node, least, most));
    }
    return {};
  };
  TRY(optional("duration", kSecond, kWeek, &load->duration));
  TRY(optional("interval", kSecond, kWeek, &load->interval));
  TRY(optional("network", SimTime(0), 100 * kSecond, &load->network));
  TRY(optional("timeout", SimTime(1'000'000), kWeek, &load->timeout));
  TRY(optional("retry_delay", SimTime(0), kWeek, &load->retry_delay));
  TRY_ASSIGN(const int64_t retries, map->OptionalInt("retries", 0, kMostRetries, 0));
  load->retries = static_cast<int>(retries);
  return {};
}

Result<void> ReadSessions(YamlMap* map, SessionLaw* sessions) {
  const std::optional<YamlNode> node = map->Optional("sessions");
  if (!node) return {};
  TRY_ASSIGN(YamlMap fields, node->AsMap());
  TRY_ASSIGN(sessions->requests, fields.RequiredDouble("requests", 1, kMostSessionRequests));
  TRY_ASSIGN(sessions->think, RequiredTime(&fields, "think", SimTime(1'000'000), kWeek));
  return fields.Finish();
}

// Of a replay as recorded nothing is known yet.
double HighestRate(const Traffic& traffic) {
  switch (traffic.shape) {
    case Traffic::Shape::kStaged:
      return traffic.low_per_s * traffic.high_per_s;
    case Traffic::Shape::kReplay:
      return traffic.scale_per_s;
    default:
      return std::max(traffic.low_per_s, traffic.high_per_s);
  }
}

// In the long run, as WithSessions says, as many think as come back times the time they take.
Result<void> CheckUsers(const YamlNode& node, const NamedTraffic& named,
                        const SessionLaw& sessions) {
  const double again = 1 - 1 / sessions.requests;
  const double thinking =
      HighestRate(named.traffic) * again * static_cast<double>(sessions.think.count()) / 1e9;
  if (thinking <= kMostUsers) return {};
  return node.Refuse(fmt::format(
      "under `sessions`, {:.3g} users of the load {} would think at a time, and at most {:g} are "
      "simulated; take a lower rate, a shorter `think` or fewer `requests`",
      thinking, named.name, kMostUsers));
}

Result<void> ReadLimits(YamlMap* map, ScalingLimits* limits) {
  if (const std::optional<YamlNode> cool_down = map->Optional("cool_down")) {
    TRY_ASSIGN(const SimTime time, TimeWithin(*cool_down, SimTime(0), kWeek));
    limits->cool_down_s = static_cast<double>(time.count()) / 1e9;
  }
  const std::optional<YamlNode> node = map->Optional("quota");
  if (!node) return {};
  TRY_ASSIGN(YamlMap quota, node->AsMap());
  if (const std::optional<YamlNode> cpu = quota.Optional("cpu")) {
    TRY_ASSIGN(const double millis, QuantityOf(*cpu, ParseCores));
    limits->cpu_millis_max = static_cast<int64_t>(millis);
  }
  TRY_ASSIGN(limits->pods_max, quota.OptionalInt("pods", 1, kMostQuotaPods, limits->pods_max));
  return quota.Finish();
}

Result<void> ReadGoal(YamlMap* map, const std::shared_ptr<const CallGraph>& calls, Load* load) {
  if (const std::optional<YamlNode> node = map->Optional("objective")) {
    TRY_ASSIGN(load->objective, ParseScalingObjective(*node));
  }
  const std::optional<YamlNode> node = map->Optional("limit");
  if (!node) return {};
  if (load->objective.late) {
    return node->Refuse(
        "late requests have a weight in `load.objective`: leave that out, and the limit finds "
        "one, or leave out the limit");
  }
  TRY_ASSIGN(load->limit, ParseServiceLimit(*node, *calls));
  load->limited = LimitedCalls(calls, load->limit);
  return {};
}

}  // namespace

Result<Load> ParseLoad(const YamlNode& node, const NameIndex& workloads,
                       const std::shared_ptr<const CallGraph>& calls) {
  TRY_ASSIGN(YamlMap map, node.AsMap());
  Load load;
  TRY(ReadTimes(&map, &load));
  TRY(ReadSessions(&map, &load.sessions));
  TRY(ReadLimits(&map, &load.limits));
  TRY(ReadGoal(&map, calls, &load));
  load.pods.resize(workloads.size());
  TRY_ASSIGN(YamlMap pods, map.RequiredMap("pods"));
  for (const auto& [name, value] : pods.Entries()) {
    const int workload = workloads.Find(name);
    if (workload == kNone) return value.Refuse(workloads.Unknown(name));
    TRY_ASSIGN(load.pods[workload], ReadPods(value));
  }
  TRY_ASSIGN(const YamlNode curves, map.Required("loads"));
  TRY_ASSIGN(YamlMap loads, curves.AsMap());
  for (const auto& [name, value] : loads.Entries()) {
    if (!IsName(name)) return value.Refuse(fmt::format("expected {} as key", kNameInWords));
    TRY_ASSIGN(Traffic traffic, TrafficReader().Read(value));
    load.loads.push_back({name, std::move(traffic)});
    TRY(CheckUsers(value, load.loads.back(), load.sessions));
  }
  if (load.loads.empty() || load.loads.size() > kMostLoads)
    return curves.Refuse(
        fmt::format("expected 1 to {} loads, found {}", kMostLoads, load.loads.size()));
  TRY(map.Finish());
  return load;
}

Result<Traffic> ParseTraffic(const YamlNode& node) { return TrafficReader().Read(node); }

Result<void> ReadRequestTrace(const std::filesystem::path& folder, std::string_view whose,
                              Traffic* traffic) {
  if (traffic->shape != Traffic::Shape::kReplay) return {};
  const std::filesystem::path path = folder / traffic->file;
  TRY_ASSIGN(const std::string text, ReadDataFile(path));
  TRY_ASSIGN(RequestTrace trace,
             ReadRequestTrace(text, path.string(), traffic->format, traffic->bin));
  traffic->trace = std::make_shared<const RequestTrace>(std::move(trace));
  if (HasPartForEach(*traffic)) return {};
  return Invalid(
      "{}: {} replays one bin of {} of it, and two are needed, one to learn on and a later one to "
      "be judged by; make `bin` shorter, or `part` longer",
      path.string(), whose, SimTimeText(traffic->bin));
}

Result<void> ReadRequestTraces(const std::filesystem::path& folder, Load* load) {
  for (NamedTraffic& named : load->loads)
    TRY(ReadRequestTrace(folder, fmt::format("the load {}", named.name), &named.traffic));
  return {};
}

}  // namespace rudderfish
