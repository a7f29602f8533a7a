// SPDX-License-Identifier: Apache-2.0
#include "policy/neural_routing.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "policy/checkpoint.h"
#include "policy/neural.h"
#include "policy/registry.h"

namespace rudderfish {
namespace {

constexpr const char *kRule = "rule", *kVerdict = "verdict", *kStepsBackTo = "steps_back_to";

// What is wrong with a rule is told with where it stands.
template <class Read>
Result<Read> Of(const nn::SafetensorsFile& file, std::string_view key, Result<Read> read) {
  if (read) return read;
  return Fail(ErrorCode::kCorruption, "{}: {}: {}", file.source_name(), key, read.error().message);
}

}  // namespace

std::vector<float> ChoiceWeightsOf(const nn::CandidateNet& net) {
  const std::span<const float> skip = net.tensor("logit.skip");
  const size_t count = RegionScalingTask::Features().candidate.size();
  return {skip.begin(), skip.begin() + static_cast<long>(std::min(count, skip.size()))};
}

void DescribeRouting(const std::string& rule, const std::optional<RoutingVerdict>& verdict,
                     nn::SafetensorsFile* file) {
  file->SetMetadata("task", std::string(RegionScalingTask::kName));
  file->SetMetadata("features", RegionScalingTask::FeatureHash());
  file->SetMetadata(kRule, rule);
  if (!verdict) return;
  if (verdict->steps_back) file->SetMetadata(kStepsBackTo, verdict->rule);
  file->SetMetadata(
      kVerdict,
      fmt::format("{} {}: objective {:.4f} against {:.4f}, {:+.2f} % ± {:.2f} on {} validation "
                  "episodes, late {:.2f} % against {:.2f} %{}",
                  verdict->steps_back ? "steps back to" : "decides; compared with", verdict->rule,
                  verdict->objective, verdict->of_rule, verdict->difference, verdict->interval,
                  verdict->episodes, verdict->late_percent, verdict->late_of_rule,
                  verdict->worse_in.empty() ? "" : "; worse in " + verdict->worse_in));
}

Result<void> CheckRouting(const nn::SafetensorsFile& file) {
  TRY(CheckTrainedFor(file, RegionScalingTask::kName));
  TRY_ASSIGN(const std::string features, file.Metadata("features"));
  if (features == RegionScalingTask::FeatureHash()) return {};
  return Fail(
      ErrorCode::kFailedPrecondition,
      "{}: trained on other features (table {}) than this version has (table {}); train it again",
      file.source_name(), features, RegionScalingTask::FeatureHash());
}

Result<std::unique_ptr<RoutingPolicy>> LoadNeuralRouting(const std::filesystem::path& path) {
  TRY_ASSIGN(const nn::SafetensorsFile file, OpenCheckpoint(path));
  TRY(CheckRouting(file));
  const auto back = file.metadata().find(kStepsBackTo);
  // A path there could be the checkpoint's own.
  if (back != file.metadata().end()) return Of(file, kStepsBackTo, MakeRoutingRule(back->second));
  TRY_ASSIGN(const std::string rule, file.Metadata(kRule));
  TRY_ASSIGN(PlannedRouting planned, Of(file, kRule, ReadPlannedRouting(rule)));
  TRY_ASSIGN(const auto net, LoadMemorylessNet(file, RegionScalingTask::kWidths));
  planned.planning.weights = ChoiceWeightsOf(*net);
  return MakePlannedRouting(planned);
}

Result<std::string> RoutingStepsBackTo(const std::filesystem::path& path) {
  TRY_ASSIGN(const nn::SafetensorsFile file, OpenCheckpoint(path));
  TRY(CheckRouting(file));
  const auto back = file.metadata().find(kStepsBackTo);
  return back == file.metadata().end() ? std::string() : back->second;
}

Result<std::string> RoutingVerdictOf(const std::filesystem::path& path) {
  TRY_ASSIGN(const nn::SafetensorsFile file, OpenCheckpoint(path));
  TRY(CheckRouting(file));
  const auto verdict = file.metadata().find(kVerdict);
  return verdict == file.metadata().end() ? std::string() : verdict->second;
}

}  // namespace rudderfish
