// SPDX-License-Identifier: Apache-2.0
#include "policy/neural_scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/check.h"
#include "nn/checkpoint.h"
#include "nn/workspace.h"
#include "policy/checkpoint.h"
#include "policy/neural_scaling_preset.h"
#include "policy/registry.h"
#include "policy/shared_ladder.h"
#include "task/scaling.h"

namespace rudderfish {
namespace {

// At which price a network is asked that has not been compared yet.
constexpr double kUncomparedPrice = 20;

struct NeuralScalingMemory final : ScalingMemory {
  NeuralScalingMemory(std::shared_ptr<const CapacityLadder> of, const nn::NetShape& shape,
                      double least_share)
      : ladder(std::move(of)),
        least_rung(least_share > 0
                       ? ladder->RungFor(least_share * ApplicationSize::Of(*ladder).serves_per_s)
                       : 0),
        entries(ladder->application()),
        replicas(ladder->workloads()),
        ready(ladder->workloads()),
        workspace(nn::Workspace::Keep::kNothing) {
    batch.widths = shape.widths;
    remembered.resize(shape.memory());
    logits.resize(ScalingTask::kMostCandidates);
  }

  std::shared_ptr<const CapacityLadder> ladder;
  int least_rung;
  ApplicationEntries entries;
  // Of the interval that the first question tells.
  std::unique_ptr<ScalingTask> task;
  std::unique_ptr<ScalingHistory> history;
  ScalingSpace space;
  std::vector<int> replicas, ready;  // [workload]
  GraphBatch batch;
  nn::Workspace workspace;
  std::vector<float> logits;
  std::vector<float> remembered;  // Since the episode began; of a network that remembers.
};

// The rule of a checkpoint, which is another for another application.
struct SteppedBackMemory final : ScalingMemory {
  std::unique_ptr<ScalingPolicy> rule;
  std::unique_ptr<ScalingMemory> of_rule;
};

class SteppedBackScaling final : public ScalingPolicy {
 public:
  // REQUIRES: MakeScalingPolicy knows the rule.
  SteppedBackScaling(ScalingVerdict verdict, double late_max)
      : verdict_(std::move(verdict)), late_max_(late_max) {}

  std::unique_ptr<ScalingMemory> NewMemory(const ServedApplication& application) const override {
    auto memory = std::make_unique<SteppedBackMemory>();
    const ApplicationSize size = ApplicationSize::Of(*SharedLadder(application, late_max_));
    memory->rule = MakeScalingPolicy(RuleFor(verdict_.rule, verdict_.size, size)).value();
    memory->of_rule = memory->rule->NewMemory(application);
    return memory;
  }

  void Decide(const ScalingQuestion& question, ScalingMemory* memory,
              std::span<int> replicas) const override {
    auto* own = static_cast<SteppedBackMemory*>(memory);
    own->rule->Decide(question, own->of_rule.get(), replicas);
  }

 private:
  ScalingVerdict verdict_;
  double late_max_;
};

double SeenRequestsPerS(const ScalingQuestion& question, const ApplicationEntries& entries) {
  double calls = 0;
  for (size_t w = 0; w < question.workloads.size(); ++w) {
    if (entries.is_entry[w] != 0) calls += question.workloads[w].calls_per_s;
  }
  return entries.calls_per_request > 0 ? calls / entries.calls_per_request : 0;
}

ScalingRows RowsOf(const GraphWidths& widths) {
  return widths.workload > 0 ? ScalingRows::kCallGraph : ScalingRows::kRungs;
}

Result<double> NumberOf(const nn::SafetensorsFile& file, const std::string& key) {
  TRY_ASSIGN(const std::string text, file.Metadata(key));
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) {
    return Fail(ErrorCode::kCorruption, "{}: {} is \"{}\", expected a number", file.source_name(),
                key, text);
  }
  return value;
}

// A policy of the table: a rule that named a checkpoint could go round in circles.
Result<std::string> StoredRule(const nn::SafetensorsFile& file) {
  TRY_ASSIGN(std::string rule, file.Metadata("rule"));
  const Result<PolicySpec> spec = ParsePolicySpec(rule);
  const Result<void> known =
      spec ? CheckPolicy(*spec, TaskKind::kScale) : Result<void>(tl::unexpected(spec.error()));
  if (!known) {
    return Fail(ErrorCode::kFailedPrecondition, "{}: rule: {}", file.source_name(),
                known.error().message);
  }
  if (spec->path().empty()) return rule;
  return Fail(ErrorCode::kCorruption, "{}: rule: `{}` is a path, expected a policy by its name",
              file.source_name(), rule);
}

}  // namespace

ApplicationSize ApplicationSize::Of(const CapacityLadder& ladder) {
  const int highest = ladder.HighestWithin(ladder.application().limits);
  return {ladder.ServesPerS(highest), ladder.cores(highest)};
}

std::string RuleFor(const std::string& rule, const ApplicationSize& from,
                    const ApplicationSize& to) {
  if (from == to) return rule;
  Result<PolicySpec> spec = ParsePolicySpec(rule);
  CHECK(spec.has_value());
  const double rate = to.serves_per_s / from.serves_per_s;
  const double request = to.cores / from.cores / rate;  // Of one, over one there.
  for (auto& [key, value] : spec->options) {
    double factor = 1;
    if (key == "min-rate" || (key == "rate" && spec->name == "static")) factor = rate;
    if (key == "price" && spec->name == "mpc") factor = request;
    double number = 0;
    const char* end = value.data() + value.size();
    const bool is_number = std::from_chars(value.data(), end, number).ptr == end;
    if (factor != 1 && is_number) value = fmt::format("{:.6g}", factor * number);
  }
  return spec->text();
}

NeuralScaling::NeuralScaling(std::shared_ptr<const nn::CandidateNet> net, double late_max,
                             double price, double least_share)
    : net_(std::move(net)), late_max_(late_max), price_(price), least_share_(least_share) {}

std::unique_ptr<ScalingMemory> NeuralScaling::NewMemory(
    const ServedApplication& application) const {
  return std::make_unique<NeuralScalingMemory>(SharedLadder(application, late_max_), net_->shape(),
                                               least_share_);
}

void NeuralScaling::Decide(const ScalingQuestion& question, ScalingMemory* memory,
                           std::span<int> replicas) const {
  auto* own = static_cast<NeuralScalingMemory*>(memory);
  if (own->task == nullptr) {
    own->task = std::make_unique<ScalingTask>(
        own->ladder, static_cast<double>(question.window_ns) / 1e9, RowsOf(net_->shape().widths));
    own->history = std::make_unique<ScalingHistory>(own->task->NewHistory());
  }
  for (size_t w = 0; w < question.workloads.size(); ++w) {
    const WorkloadSight& seen = question.workloads[w];
    own->replicas[w] = seen.replicas;
    own->ready[w] = seen.ready();
  }
  ScalingHistory& history = *own->history;
  history.Observe({.has_samples = question.has_samples,
                   .requests_per_s = SeenRequestsPerS(question, own->entries),
                   .replicas = own->replicas,
                   .ready = own->ready});
  if (!history.has_samples()) return;
  own->task->Space(history, price_, &own->space);
  own->batch.Clear();
  own->task->Encode(history, own->space, &own->batch);
  const auto count = static_cast<size_t>(own->space.count());
  float stop = 0, value = 0;
  const std::span<float> logits = std::span(own->logits).first(count);
  net_->Forward(own->batch, 0, 1, &own->workspace, logits, std::span(&stop, 1),
                std::span(&value, 1), own->remembered);
  const auto choice =
      static_cast<int>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  const int rung = own->space.candidates[choice].rung;
  if (rung >= own->least_rung) {
    own->task->Decode(own->space, choice, replicas);
  } else {
    own->task->DecodeRung(own->least_rung, replicas);
  }
  history.Decided(history.rung_asked(), std::max(rung, own->least_rung));
}

void DescribeScaling(ScalingRows rows, double violations_max,
                     const std::optional<ScalingVerdict>& verdict, nn::SafetensorsFile* file) {
  file->SetMetadata("task", std::string(ScalingTask::kName));
  file->SetMetadata("features", ScalingTask::FeatureHash(rows));
  file->SetMetadata("violations_max", fmt::format("{}", violations_max));
  if (!verdict) return;
  file->SetMetadata("decides", verdict->steps_back ? verdict->rule : "learned");
  file->SetMetadata("price", fmt::format("{}", verdict->price));
  file->SetMetadata("least_share", fmt::format("{}", verdict->least_share));
  file->SetMetadata("serves_per_s", fmt::format("{}", verdict->size.serves_per_s));
  file->SetMetadata("cores", fmt::format("{}", verdict->size.cores));
  file->SetMetadata("learned_core_hours", fmt::format("{}", verdict->learned.core_hours));
  file->SetMetadata("learned_violations", fmt::format("{}", verdict->learned.violation_share));
  file->SetMetadata("rule", verdict->rule);
  file->SetMetadata("rule_core_hours", fmt::format("{}", verdict->of_rule.core_hours));
  file->SetMetadata("rule_violations", fmt::format("{}", verdict->of_rule.violation_share));
  if (verdict->allowed > 0) file->SetMetadata("allowed", fmt::format("{}", verdict->allowed));
  file->SetMetadata("validation_episodes", fmt::format("{}", verdict->episodes));
}

Result<double> CheckScaling(const nn::SafetensorsFile& file) {
  TRY(CheckTrainedFor(file, ScalingTask::kName));
  TRY_ASSIGN(const std::string features, file.Metadata("features"));
  if (features != ScalingTask::FeatureHash() &&
      features != ScalingTask::FeatureHash(ScalingRows::kCallGraph)) {
    return Fail(
        ErrorCode::kFailedPrecondition,
        "{}: trained on other features (table {}) than this version has (table {}); train it again",
        file.source_name(), features, ScalingTask::FeatureHash());
  }
  TRY_ASSIGN(const double violations_max, NumberOf(file, "violations_max"));
  if (!(violations_max > 0 && violations_max < 1)) {
    return Fail(ErrorCode::kCorruption, "{}: violations_max is {}", file.source_name(),
                violations_max);
  }
  return violations_max;
}

Result<std::optional<ScalingVerdict>> StoredVerdict(const nn::SafetensorsFile& file) {
  if (!file.metadata().contains("decides")) return std::optional<ScalingVerdict>();
  ScalingVerdict verdict;
  TRY_ASSIGN(const std::string decides, file.Metadata("decides"));
  verdict.steps_back = decides != "learned";
  TRY_ASSIGN(verdict.price, NumberOf(file, "price"));
  if (!file.metadata().contains("serves_per_s")) {
    return Fail(ErrorCode::kFailedPrecondition,
                "{}: evaluated by an earlier version, which does not record the size of its "
                "application; train it again",
                file.source_name());
  }
  TRY_ASSIGN(verdict.least_share, NumberOf(file, "least_share"));
  TRY_ASSIGN(verdict.size.serves_per_s, NumberOf(file, "serves_per_s"));
  TRY_ASSIGN(verdict.size.cores, NumberOf(file, "cores"));
  if (!(verdict.size.serves_per_s > 0 && verdict.size.cores > 0)) {
    return Fail(ErrorCode::kCorruption, "{}: an application that serves {} requests/s by {} cores",
                file.source_name(), verdict.size.serves_per_s, verdict.size.cores);
  }
  TRY_ASSIGN(verdict.learned.core_hours, NumberOf(file, "learned_core_hours"));
  TRY_ASSIGN(verdict.learned.violation_share, NumberOf(file, "learned_violations"));
  TRY_ASSIGN(verdict.rule, StoredRule(file));
  TRY_ASSIGN(verdict.of_rule.core_hours, NumberOf(file, "rule_core_hours"));
  TRY_ASSIGN(verdict.of_rule.violation_share, NumberOf(file, "rule_violations"));
  if (file.metadata().contains("allowed")) {
    TRY_ASSIGN(verdict.allowed, NumberOf(file, "allowed"));
  }
  TRY_ASSIGN(const double episodes, NumberOf(file, "validation_episodes"));
  verdict.episodes = static_cast<int>(episodes);
  return std::optional(verdict);
}

Result<std::unique_ptr<ScalingPolicy>> LoadNeuralScaling(const std::filesystem::path& path) {
  TRY_ASSIGN(const nn::SafetensorsFile file, OpenCheckpoint(path));
  TRY_ASSIGN(const std::optional<ScalingPreset> preset, StoredScalingPreset(file));
  if (preset) return LoadNeuralScalingPreset(file, *preset);
  TRY_ASSIGN(const double violations_max, CheckScaling(file));
  TRY_ASSIGN(const std::optional<ScalingVerdict> verdict, StoredVerdict(file));
  if (verdict && verdict->steps_back) {
    return std::make_unique<SteppedBackScaling>(*verdict, violations_max);
  }
  TRY_ASSIGN(const nn::NetShape shape, nn::StoredNetShape(file));
  TRY_ASSIGN(const std::string features, file.Metadata("features"));
  const ScalingRows rows = RowsOf(shape.widths);
  if (!(shape.widths == ScalingTask::Widths(rows)) || features != ScalingTask::FeatureHash(rows)) {
    return Fail(ErrorCode::kFailedPrecondition,
                "{}: the network's rows are not as wide as the task's features",
                file.source_name());
  }
  auto net = std::make_shared<nn::CandidateNet>(shape);
  TRY(nn::LoadNet(file, net.get()));
  return std::make_unique<NeuralScaling>(std::move(net), violations_max,
                                         verdict ? verdict->price : kUncomparedPrice,
                                         verdict ? verdict->least_share : 0);
}

Result<std::string> DecidingSetting(const std::string& path, const ServedApplication& application) {
  TRY_ASSIGN(const nn::SafetensorsFile file, OpenCheckpoint(path));
  TRY_ASSIGN(const std::optional<ScalingPreset> preset, StoredScalingPreset(file));
  if (preset) return path;
  TRY_ASSIGN(const double violations_max, CheckScaling(file));
  TRY_ASSIGN(const std::optional<ScalingVerdict> verdict, StoredVerdict(file));
  if (!verdict || !verdict->steps_back) return path;
  const ApplicationSize size = ApplicationSize::Of(*SharedLadder(application, violations_max));
  return RuleFor(verdict->rule, verdict->size, size);
}

Result<std::string> VerdictOfRun(const std::filesystem::path& path) {
  TRY_ASSIGN(const nn::SafetensorsFile file, OpenCheckpoint(path));
  TRY_ASSIGN(const std::optional<ScalingPreset> preset, StoredScalingPreset(file));
  if (preset) {
    return fmt::format("the network decides, trained as {}: by its reward, with no limit",
                       ScalingPresetName(*preset));
  }
  TRY_ASSIGN(const double limit, CheckScaling(file));
  TRY_ASSIGN(const std::optional<ScalingVerdict> verdict, StoredVerdict(file));
  if (!verdict) return std::string();
  const auto figures = [](const ScalingRecord& one) {
    return fmt::format("{:.3f} core-hours with {:.2f} % violations", one.core_hours,
                       100 * one.violation_share);
  };
  return fmt::format(
      "{}: on {} validation episodes of each load the network came to {}, {} to {}{}",
      verdict->steps_back ? fmt::format("steps back to {}", verdict->rule)
      : verdict->least_share > 0
          ? fmt::format("the network decides, never below {:.3g} % of what all pods serve",
                        100 * verdict->least_share)
          : std::string("the network decides"),
      verdict->episodes, figures(verdict->learned), verdict->rule, figures(verdict->of_rule),
      verdict->allowed > 0 ? fmt::format("; no policy keeps {:.4g} %, so {:.4g} % were allowed",
                                         100 * limit, 100 * verdict->allowed)
                           : std::string());
}

}  // namespace rudderfish
