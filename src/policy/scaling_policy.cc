// SPDX-License-Identifier: Apache-2.0
#include "policy/scaling_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>

#include "base/check.h"
#include "base/suggest.h"
#include "base/units.h"
#include "policy/lookahead_scaling.h"
#include "policy/neural_scaling.h"
#include "policy/shared_ladder.h"

namespace rudderfish {

int WorkloadSight::ready() const {
  return static_cast<int>(std::count_if(pods.begin(), pods.end(), [](const HpaPod& pod) {
    return pod.ready && pod.phase == HpaPod::Phase::kRunning;
  }));
}

namespace {

constexpr std::string_view kScalingNames[] = {"hold", "hpa",         "keda",  "autopilot",
                                              "mpc",  "clairvoyant", "static"};
constexpr double kMostWindowMs = 86'400'000;
constexpr int kMostReplicas = 100'000;
constexpr double kMostRate = 1e9;
// Of requests that are late at the rate that minimum replicas are for.
constexpr double kMinimumLateMax = 0.01;

class HoldPolicy final : public ScalingPolicy {
 public:
  std::unique_ptr<ScalingMemory> NewMemory(const ServedApplication&) const override {
    return std::make_unique<ScalingMemory>();
  }
  void Decide(const ScalingQuestion&, ScalingMemory*, std::span<int>) const override {}
};

struct HpaScalingMemory final : ScalingMemory {
  std::vector<HpaSpec> specs;  // [workload]
  std::vector<HpaMemory> memories;
};

// How few replicas an autoscaler may ask for, besides the bounds of the workload.
struct MinimumReplicas {
  int pods = 1;      // Of every workload,
  double per_s = 0;  // and enough for so many requests per second: what an operator writes down
                     // workload by workload, once the application was tried under that load.
};

// An HPA for every workload; they know nothing of each other.
class HpaScalingPolicy final : public ScalingPolicy {
 public:
  // `external_share`: of what a pod can serve; 0 for no such metric.
  HpaScalingPolicy(HpaSpec spec, double external_share, const MinimumReplicas& least)
      : spec_(std::move(spec)), external_share_(external_share), least_(least) {}

  std::unique_ptr<ScalingMemory> NewMemory(const ServedApplication& application) const override {
    auto memory = std::make_unique<HpaScalingMemory>();
    memory->memories.resize(application.workloads.size());
    const std::vector<double> demand = application.DemandS();
    const std::vector<double> calls = application.CallsPerRequest();
    std::shared_ptr<const CapacityLadder> ladder;
    if (least_.per_s > 0) ladder = SharedLadder(application, kMinimumLateMax);
    for (size_t w = 0; w < application.workloads.size(); ++w) {
      const ServedWorkload& workload = application.workloads[w];
      HpaSpec spec = spec_;
      int least = std::max(workload.replicas_min, least_.pods);
      if (ladder != nullptr)
        least = std::max(least, ladder->Replicas(ladder->RungFor(least_.per_s))[w]);
      spec.replicas_min = std::min(least, workload.replicas_max);
      spec.replicas_max = workload.replicas_max;
      if (external_share_ > 0 && demand[w] > 0) {
        const double pod_per_s = workload.slots * calls[w] / demand[w];
        spec.metrics.push_back(
            {HpaMetric::Source::kExternal,
             std::max<int64_t>(1, std::llround(external_share_ * pod_per_s * 1000))});
      }
      memory->specs.push_back(std::move(spec));
    }
    return memory;
  }

  void Decide(const ScalingQuestion& question, ScalingMemory* memory,
              std::span<int> replicas) const override {
    auto* own = static_cast<HpaScalingMemory*>(memory);
    for (size_t w = 0; w < replicas.size(); ++w) {
      const ServedWorkload& workload = question.application->workloads[w];
      if (!workload.scaled || own->specs[w].metrics.empty()) continue;
      const WorkloadSight& seen = question.workloads[w];
      HpaSight sight{.at_ns = question.at_ns,
                     .replicas = seen.replicas,
                     .request_millis = workload.cpu_millis,
                     .cpu_window_ns = question.window_ns,
                     .pods = seen.pods};
      if (question.has_samples) {
        sight.cpu_at_ns = question.sampled_at_ns;
        sight.external_value = std::llround(seen.calls_per_s * 1000);
      }
      replicas[w] = HpaReplicas(own->specs[w], sight, &own->memories[w]);
    }
  }

 private:
  HpaSpec spec_;
  double external_share_;
  MinimumReplicas least_;
};

struct PeakMemory final : ScalingMemory {
  struct Peak {
    int64_t at_ns;
    double pods;
  };
  // [workload] Falling values, in the order of time: the first is the highest of the window.
  std::vector<std::vector<Peak>> peaks;
};

// Enough for the highest use in a window (Rzadca et al., "Autopilot: workload autoscaling at
// Google", EuroSys 2020, §3.1: the peak of a moving window plus a margin).
class PeakPolicy final : public ScalingPolicy {
 public:
  PeakPolicy(double share, int64_t window_ns) : share_(share), window_ns_(window_ns) {}

  std::unique_ptr<ScalingMemory> NewMemory(const ServedApplication& application) const override {
    auto memory = std::make_unique<PeakMemory>();
    memory->peaks.resize(application.workloads.size());
    return memory;
  }

  void Decide(const ScalingQuestion& question, ScalingMemory* memory,
              std::span<int> replicas) const override {
    if (!question.has_samples) return;
    auto* own = static_cast<PeakMemory*>(memory);
    for (size_t w = 0; w < replicas.size(); ++w) {
      const ServedWorkload& workload = question.application->workloads[w];
      if (!workload.scaled) continue;
      const double pods = question.workloads[w].busy_slots / (share_ * workload.slots);
      std::vector<PeakMemory::Peak>& peaks = own->peaks[w];
      while (!peaks.empty() && peaks.back().pods <= pods) peaks.pop_back();
      peaks.push_back({question.at_ns, pods});
      std::erase_if(peaks, [&](const PeakMemory::Peak& peak) {
        return peak.at_ns <= question.at_ns - window_ns_;
      });
      const int wanted = static_cast<int>(std::ceil(peaks.front().pods - 1e-9));
      replicas[w] = std::clamp(wanted, workload.replicas_min, workload.replicas_max);
    }
  }

 private:
  double share_;
  int64_t window_ns_;
};

// Options of one policy, each taken by name; what is left over is unknown.
class ScalingOptions {
 public:
  static Result<ScalingOptions> Parse(std::string_view text) {
    ScalingOptions options;
    while (!text.empty()) {
      const size_t end = std::min(text.find(':'), text.size());
      const std::string_view item = text.substr(0, end);
      const size_t sign = item.find('=');
      if (sign == std::string_view::npos || sign == 0)
        return Invalid("expected KEY=VALUE, found \"{}\"", item);
      options.values_.emplace(item.substr(0, sign), item.substr(sign + 1));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    return options;
  }

  Result<double> Number(std::string_view key, double low, double high, double fallback) {
    const std::optional<std::string> text = Take(key);
    if (!text) return fallback;
    double value = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
    if (error != std::errc{} || end != text->data() + text->size() || !(value >= low) ||
        !(value <= high)) {
      return Invalid("`{}`: expected {}, found \"{}\"", key, RangeInWords("a number", low, high),
                     *text);
    }
    return value;
  }

  // "1%" or "1".
  Result<double> Percent(std::string_view key, double fallback) {
    const auto at = values_.find(key);
    if (at != values_.end() && at->second.ends_with('%')) at->second.pop_back();
    return Number(key, 0, 100, fallback);
  }

  Result<int> Seconds(std::string_view key, int fallback) {
    const std::optional<std::string> text = Take(key);
    if (!text) return fallback;
    const Result<double> ms = ParseDurationMs(*text);
    if (!ms) return Invalid("`{}`: {}", key, ms.error().message);
    if (*ms > kMostWindowMs) return Invalid("`{}`: expected at most a day", key);
    return static_cast<int>(*ms / 1000);
  }

  // The position of one of `names`; the first one, if it is not there.
  Result<int> Choice(std::string_view key, std::span<const std::string_view> names) {
    const std::optional<std::string> text = Take(key);
    if (!text) return 0;
    const auto at = std::find(names.begin(), names.end(), *text);
    if (at == names.end()) {
      return Invalid("`{}`: expected {}, found \"{}\"{}", key, fmt::join(names, ", "), *text,
                     DidYouMean(*text, names));
    }
    return static_cast<int>(at - names.begin());
  }

  Result<void> Finish() const {
    if (values_.empty()) return {};
    const std::vector<std::string_view> known(known_.begin(), known_.end());
    return Invalid("no option is called \"{}\"; there are {}{}", values_.begin()->first,
                   known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")),
                   DidYouMean(values_.begin()->first, known));
  }

 private:
  std::optional<std::string> Take(std::string_view key) {
    known_.emplace_back(key);
    const auto at = values_.find(key);
    if (at == values_.end()) return std::nullopt;
    std::string value = at->second;
    values_.erase(at);
    return value;
  }

  std::map<std::string, std::string, std::less<>> values_;
  std::vector<std::string> known_;
};

// Kubernetes' own; up to ten times as many pods in 15 s; down by a pod a minute.
constexpr std::string_view kPolicies[] = {"default", "fast", "gentle"};

Result<HpaBehavior> BehaviorOf(ScalingOptions* options) {
  HpaBehavior behavior;
  TRY_ASSIGN(const int policies, options->Choice("policies", kPolicies));
  if (policies == 1) behavior.up.limits = {{HpaLimit::Kind::kPercent, 900, 15}};
  if (policies == 2) behavior.down.limits = {{HpaLimit::Kind::kPods, 1, 60}};
  TRY_ASSIGN(behavior.up.stabilization_s, options->Seconds("up", 0));
  TRY_ASSIGN(behavior.down.stabilization_s, options->Seconds("down", 300));
  return behavior;
}

Result<MinimumReplicas> MinimumOf(ScalingOptions* options) {
  MinimumReplicas least;
  TRY_ASSIGN(const double pods, options->Number("min", 1, kMostReplicas, 1));
  least.pods = static_cast<int>(std::ceil(pods));
  TRY_ASSIGN(least.per_s, options->Number("min-rate", 0, kMostRate, 0));
  return least;
}

Result<std::unique_ptr<ScalingPolicy>> MakeHpa(ScalingOptions* options) {
  HpaSpec spec;
  TRY_ASSIGN(const double cpu, options->Number("cpu", 0, 1000, -1));
  TRY_ASSIGN(const double rate, options->Number("rate", 0.001, kMostRate, -1));
  TRY_ASSIGN(spec.tolerance, options->Number("tolerance", 0, 10, 0.1));
  TRY_ASSIGN(spec.behavior, BehaviorOf(options));
  TRY_ASSIGN(const MinimumReplicas least, MinimumOf(options));
  if (cpu >= 1 || rate < 0)
    spec.metrics.push_back({HpaMetric::Source::kCpu, cpu >= 1 ? std::llround(cpu) : 80});
  if (rate > 0) spec.metrics.push_back({HpaMetric::Source::kPods, std::llround(rate * 1000)});
  return std::make_unique<HpaScalingPolicy>(spec, 0, least);
}

Result<std::unique_ptr<ScalingPolicy>> MakeKeda(ScalingOptions* options) {
  HpaSpec spec;
  TRY_ASSIGN(const double share, options->Number("share", 0.01, 100, 0.7));
  TRY_ASSIGN(spec.behavior, BehaviorOf(options));
  TRY_ASSIGN(const MinimumReplicas least, MinimumOf(options));
  return std::make_unique<HpaScalingPolicy>(spec, share, least);
}

Result<std::unique_ptr<ScalingPolicy>> MakePeak(ScalingOptions* options) {
  TRY_ASSIGN(const double share, options->Number("share", 0.01, 100, 0.7));
  TRY_ASSIGN(const int window_s, options->Seconds("window", 600));
  return std::make_unique<PeakPolicy>(share, int64_t{1'000'000'000} * std::max(window_s, 1));
}

Result<std::unique_ptr<ScalingPolicy>> MakeLookahead(ScalingOptions* options,
                                                     LookaheadScalingOptions::Sight sight) {
  LookaheadScalingOptions made{.sight = sight};
  TRY_ASSIGN(const int horizon_s, options->Seconds("horizon", 90));
  made.horizon_s = std::max(horizon_s, 1);
  TRY_ASSIGN(made.price, options->Number("price", 0, 1e9, made.price));
  if (sight == LookaheadScalingOptions::Sight::kForecast) {
    TRY_ASSIGN(made.headroom, options->Number("headroom", 0, 1, made.headroom));
    TRY_ASSIGN(made.season_s, options->Seconds("season", 0));
  }
  return std::make_unique<LookaheadScalingPolicy>(made);
}

Result<std::unique_ptr<ScalingPolicy>> MakeStatic(ScalingOptions* options) {
  TRY_ASSIGN(const double percent, options->Percent("violations", 1));
  TRY_ASSIGN(const double rate, options->Number("rate", 0, kMostRate, 0));
  return std::make_unique<StaticScalingPolicy>(percent / 100, rate);
}

}  // namespace

std::span<const std::string_view> ScalingPolicyNames() { return kScalingNames; }

bool IsScalingRun(std::string_view spec) {
  const std::string_view name = spec.substr(0, spec.find(':'));
  if (std::find(std::begin(kScalingNames), std::end(kScalingNames), name) !=
      std::end(kScalingNames))
    return false;
  std::error_code ignored;
  return spec.find('/') != std::string_view::npos || spec.ends_with(".safetensors") ||
         std::filesystem::exists(std::filesystem::path(spec), ignored);
}

Result<std::unique_ptr<ScalingPolicy>> MakeScalingPolicy(std::string_view spec) {
  if (IsScalingRun(spec)) return LoadNeuralScaling(std::filesystem::path(spec));
  const size_t colon = std::min(spec.find(':'), spec.size());
  const std::string_view name = spec.substr(0, colon);
  const std::string_view rest = spec.substr(std::min(colon + 1, spec.size()));
  Result<ScalingOptions> options = ScalingOptions::Parse(rest);
  if (!options) return Invalid("{}: {}", name, options.error().message);
  Result<std::unique_ptr<ScalingPolicy>> policy = std::make_unique<HoldPolicy>();
  if (name == "hpa") {
    policy = MakeHpa(&*options);
  } else if (name == "keda") {
    policy = MakeKeda(&*options);
  } else if (name == "autopilot") {
    policy = MakePeak(&*options);
  } else if (name == "mpc") {
    policy = MakeLookahead(&*options, LookaheadScalingOptions::Sight::kForecast);
  } else if (name == "clairvoyant") {
    policy = MakeLookahead(&*options, LookaheadScalingOptions::Sight::kTruth);
  } else if (name == "static") {
    policy = MakeStatic(&*options);
  } else if (name != "hold") {
    return Invalid(
        "no policy of scaling, run folder or checkpoint is called \"{}\"; there are {}{}", name,
        fmt::join(kScalingNames, ", "), DidYouMean(name, kScalingNames));
  }
  if (!policy) return Invalid("{}: {}", name, policy.error().message);
  if (const Result<void> finished = options->Finish(); !finished)
    return Invalid("{}: {}", name, finished.error().message);
  return policy;
}

}  // namespace rudderfish
