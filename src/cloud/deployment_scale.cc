// SPDX-License-Identifier: Apache-2.0
#include "cloud/deployment_scale.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/one_line.h"

namespace rudderfish {
namespace {

constexpr Duration kAnswerWithin = std::chrono::seconds(10);  // Who ends waits for an answer.
constexpr int64_t kMostPods = 1'000'000;

std::string DeploymentTitle(const ObjectChoice& choice) {
  return fmt::format("deployment {}/{}", choice.name_space, choice.name);
}

// A number, or what it is where the API leaves it out.
Result<int64_t> NumberAt(const JsonReader& json, std::string_view key, int64_t absent) {
  TRY_ASSIGN(const auto found, json.Find(key));
  if (!found) return absent;
  return found->AsInt(0, std::numeric_limits<int64_t>::max());
}

}  // namespace

Result<DeploymentSight> ReadDeployment(std::string_view json, const ObjectChoice& choice) {
  const std::string title = DeploymentTitle(choice);
  TRY_ASSIGN(const Json object, ParseJson(json, title));
  const JsonReader reader(object, title);
  TRY(CheckWritable(reader, title, choice, {"spec", "replicas"}));
  TRY_ASSIGN(const JsonReader spec, reader.At("spec"));
  DeploymentSight seen;
  TRY_ASSIGN(const int64_t pods, NumberAt(spec, "replicas", 1));
  seen.pods = static_cast<int>(std::min(pods, kMostPods));
  TRY_ASSIGN(const JsonReader metadata, reader.At("metadata"));
  TRY_ASSIGN(const int64_t generation, NumberAt(metadata, "generation", 0));
  TRY_ASSIGN(const auto status, reader.Find("status"));
  if (!status) return seen;
  TRY_ASSIGN(const int64_t ready, NumberAt(*status, "readyReplicas", 0));
  seen.ready = static_cast<int>(std::min(ready, kMostPods));
  TRY_ASSIGN(const int64_t observed, NumberAt(*status, "observedGeneration", 0));
  seen.is_current = observed >= generation;
  return seen;
}

Result<std::optional<std::string>> AutoscalerOf(std::string_view json,
                                                const ObjectChoice& deployment) {
  constexpr std::string_view kTitle = "HorizontalPodAutoscalers";
  TRY_ASSIGN(const Json object, ParseJson(json, std::string(kTitle)));
  const JsonReader list(object, std::string(kTitle));
  TRY_ASSIGN(const auto items, list.Find("items"));
  if (!items) return std::optional<std::string>();
  TRY_ASSIGN(const std::vector<JsonReader> all, items->Elements());
  for (const JsonReader& one : all) {
    TRY_ASSIGN(const JsonReader spec, one.At("spec"));
    TRY_ASSIGN(const JsonReader target, spec.At("scaleTargetRef"));
    TRY_ASSIGN(const JsonReader kind, target.At("kind"));
    TRY_ASSIGN(const JsonReader name, target.At("name"));
    TRY_ASSIGN(const std::string of_kind, kind.AsString());
    TRY_ASSIGN(const std::string of_name, name.AsString());
    if (of_kind != "Deployment" || of_name != deployment.name) continue;
    TRY_ASSIGN(const JsonReader metadata, one.At("metadata"));
    TRY_ASSIGN(const JsonReader own, metadata.At("name"));
    TRY_ASSIGN(std::string text, own.AsString());
    return std::optional(OneLine(text, 100));
  }
  return std::optional<std::string>();
}

DeploymentScale::DeploymentScale(kube::ApiClient* client, ObjectChoice choice)
    : client_(client),
      choice_(std::move(choice)),
      path_(fmt::format("/apis/apps/v1/namespaces/{}/deployments/{}", choice_.name_space,
                        choice_.name)) {}

Result<std::string> DeploymentScale::Get(const std::string& path) {
  kube::ApiAnswer answer = client_->Call({.path = path, .deadline = kAnswerWithin});
  if (!answer.ok()) return tl::unexpected(answer.outcome.error());
  return std::move(answer.body);
}

Result<DeploymentSight> DeploymentScale::Look() {
  TRY_ASSIGN(const std::string body, Get(path_));
  TRY_ASSIGN(const DeploymentSight seen, ReadDeployment(body, choice_));
  TRY_ASSIGN(const std::string scalers,
             Get(fmt::format("/apis/autoscaling/v2/namespaces/{}/horizontalpodautoscalers",
                             choice_.name_space)));
  TRY_ASSIGN(const std::optional<std::string> other, AutoscalerOf(scalers, choice_));
  if (other) {
    return Fail(ErrorCode::kFailedPrecondition,
                "{}: the HorizontalPodAutoscaler {} decides how many pods it has; delete that, or "
                "leave the region without `capacity`",
                DeploymentTitle(choice_), *other);
  }
  pods_ = seen.pods;
  return seen;
}

Result<void> DeploymentScale::Set(int pods) {
  const OrderedJson patch = {{{"op", "test"}, {"path", "/spec/replicas"}, {"value", pods_}},
                             {{"op", "replace"}, {"path", "/spec/replicas"}, {"value", pods}}};
  const kube::ApiAnswer answer =
      client_->Call({.method = kube::Method::kJsonPatch,
                     .path = fmt::format("{}/scale?fieldManager={}", path_, kFieldManager),
                     .body = patch.dump(),
                     .deadline = kAnswerWithin});
  if (answer.ok()) return {};
  if (answer.status.code == 409 || answer.status.code == 422) {
    return Fail(ErrorCode::kConflict, "{}: its number of pods was changed meanwhile: {}",
                DeploymentTitle(choice_), answer.outcome.error().message);
  }
  return tl::unexpected(answer.outcome.error());
}

}  // namespace rudderfish
