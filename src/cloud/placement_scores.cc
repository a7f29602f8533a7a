// SPDX-License-Identifier: Apache-2.0
#include "cloud/placement_scores.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/check.h"
#include "base/json.h"

namespace rudderfish {
namespace {

constexpr std::string_view kScoresPath =
    "/apis/cluster.open-cluster-management.io/v1alpha1/addonplacementscores";
constexpr std::string_view kClustersPath =
    "/apis/cluster.open-cluster-management.io/v1/managedclusters";
constexpr std::string_view kScoreDefault = "share";
constexpr std::string_view kAvailable = "ManagedClusterConditionAvailable";
constexpr int64_t kScoreMax = 100;

Result<std::vector<JsonReader>> ItemsOf(const JsonReader& list) {
  TRY_ASSIGN(const auto items, list.Find("items"));
  if (!items) return std::vector<JsonReader>();
  return items->Elements();
}

Result<ClusterScore> ReadScore(const JsonReader& item, const JsonReader& metadata,
                               const PlacementScoresChoice& choice) {
  ClusterScore one;
  TRY_ASSIGN(one.cluster, TextAt(metadata, "namespace"));
  TRY_ASSIGN(one.resource_version, TextAt(metadata, "resourceVersion"));
  TRY_ASSIGN(const auto status, item.Find("status"));
  if (!status) return one;
  one.has_status = true;
  TRY_ASSIGN(const auto scores, status->Find("scores"));
  if (!scores) return one;
  TRY_ASSIGN(const std::vector<JsonReader> all, scores->Elements());
  Json others = Json::array();
  for (const JsonReader& score : all) {
    TRY_ASSIGN(const std::string name, TextAt(score, "name"));
    if (name != choice.score) {
      others.push_back(score.value());
      continue;
    }
    TRY_ASSIGN(const JsonReader value, score.At("value"));
    TRY_ASSIGN(one.value, value.AsInt(0, kScoreMax));
  }
  one.others = others.dump();
  return one;
}

Result<bool> IsAvailable(const JsonReader& cluster) {
  TRY_ASSIGN(const auto status, cluster.Find("status"));
  if (!status) return false;
  TRY_ASSIGN(const auto conditions, status->Find("conditions"));
  if (!conditions) return false;
  TRY_ASSIGN(const std::vector<JsonReader> all, conditions->Elements());
  for (const JsonReader& one : all) {
    TRY_ASSIGN(const std::string type, TextAt(one, "type"));
    if (type != kAvailable) continue;
    TRY_ASSIGN(const std::string holds, TextAt(one, "status"));
    return holds == "True";
  }
  return false;
}

}  // namespace

Result<PlacementScoresChoice> ParsePlacementScores(std::string_view text) {
  const size_t slash = text.find('/');
  // Either part may be what a Kubernetes object may be called.
  const std::string_view score =
      slash == std::string_view::npos ? kScoreDefault : text.substr(slash + 1);
  TRY_ASSIGN(const ObjectChoice parts,
             ParseObjectChoice(fmt::format("{}/{}", text.substr(0, slash), score)));
  PlacementScoresChoice choice;
  choice.name = parts.name_space;
  choice.score = parts.name;
  return choice;
}

Result<std::vector<ClusterScore>> ReadPlacementScores(std::string_view json,
                                                      const PlacementScoresChoice& choice) {
  TRY_ASSIGN(const Json parsed, ParseJson(json, "AddOnPlacementScores"));
  const JsonReader list(parsed, "AddOnPlacementScores");
  TRY_ASSIGN(const std::vector<JsonReader> items, ItemsOf(list));
  std::vector<ClusterScore> scores;
  for (const JsonReader& item : items) {
    TRY_ASSIGN(const JsonReader metadata, item.At("metadata"));
    TRY_ASSIGN(const std::string name, TextAt(metadata, "name"));
    if (name != choice.name) continue;
    TRY_ASSIGN(ClusterScore one, ReadScore(item, metadata, choice));
    scores.push_back(std::move(one));
  }
  std::sort(scores.begin(), scores.end(),
            [](const auto& a, const auto& b) { return a.cluster < b.cluster; });
  return scores;
}

Result<std::map<std::string, bool>> ReadManagedClusters(std::string_view json) {
  TRY_ASSIGN(const Json parsed, ParseJson(json, "ManagedClusters"));
  TRY_ASSIGN(const std::vector<JsonReader> items, ItemsOf(JsonReader(parsed, "ManagedClusters")));
  std::map<std::string, bool> available;
  for (const JsonReader& item : items) {
    TRY_ASSIGN(const JsonReader metadata, item.At("metadata"));
    TRY_ASSIGN(const std::string name, TextAt(metadata, "name"));
    TRY_ASSIGN(available[name], IsAvailable(item));
  }
  return available;
}

Result<StandingWeights> PlacementScoresEnactor::Read() {
  TRY_ASSIGN(const std::string scores, client_->Get(std::string(kScoresPath)));
  TRY_ASSIGN(read_, ReadPlacementScores(scores, choice_));
  if (read_.empty()) {
    return Fail(ErrorCode::kNotFound,
                "no AddOnPlacementScore is called {}: create one in the namespace of each managed "
                "cluster",
                choice_.name);
  }
  TRY_ASSIGN(const std::string clusters, client_->Get(std::string(kClustersPath)));
  TRY_ASSIGN(const auto available, ReadManagedClusters(clusters));
  StandingWeights standing{
      .target = fmt::format("placementscores {}/{}", choice_.name, choice_.score),
      .backends = {},
      .notes = {"scores by which clusters are chosen, not a split of requests"}};
  for (const ClusterScore& one : read_) {
    const auto found = available.find(one.cluster);
    const bool is_healthy = found != available.end() && found->second;
    standing.backends.push_back(
        {.name = one.cluster,
         .weight = one.value,
         .is_healthy = is_healthy,
         .health = found == available.end()
                       ? fmt::format("no ManagedCluster is called {}", one.cluster)
                   : is_healthy ? "its ManagedCluster is available"
                                : "its ManagedCluster is not available"});
  }
  return standing;
}

std::string PlacementScoresEnactor::PathOf(const ClusterScore& one) const {
  return fmt::format(
      "/apis/cluster.open-cluster-management.io/v1alpha1/namespaces/{}/addonplacementscores/{}/"
      "status?fieldManager={}",
      one.cluster, choice_.name, kFieldManager);
}

// What else the status holds stays.
std::string PlacementScoresEnactor::PatchOf(const ClusterScore& one, int64_t weight) const {
  Json scores = ParseJson(one.others, choice_.name).value();
  scores.push_back({{"name", choice_.score}, {"value", weight}});
  OrderedJson patch = OrderedJson::array();
  patch.push_back(
      {{"op", "test"}, {"path", "/metadata/resourceVersion"}, {"value", one.resource_version}});
  if (one.has_status) {
    patch.push_back({{"op", "add"}, {"path", "/status/scores"}, {"value", scores}});
  } else {
    patch.push_back({{"op", "add"}, {"path", "/status"}, {"value", {{"scores", scores}}}});
  }
  return patch.dump();
}

std::string PlacementScoresEnactor::Request(const std::vector<int64_t>& weights) const {
  CHECK_EQ(weights.size(), read_.size());
  std::string text;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] == read_[i].value) continue;
    text += fmt::format("{}PATCH {}\nContent-Type: application/json-patch+json\n\n{}\n",
                        text.empty() ? "" : "\n", PathOf(read_[i]), PatchOf(read_[i], weights[i]));
  }
  return text;
}

Result<void> PlacementScoresEnactor::Send(const std::vector<int64_t>& weights) {
  CHECK_EQ(weights.size(), read_.size());
  int set = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] == read_[i].value) continue;
    const kube::ApiAnswer answer = client_->Call({.method = kube::Method::kJsonPatch,
                                                  .path = PathOf(read_[i]),
                                                  .body = PatchOf(read_[i], weights[i])});
    if (answer.ok()) {
      ++set;
      continue;
    }
    const std::string others =
        set == 0 ? "nothing was done" : fmt::format("the scores of {} others were set", set);
    // A test that failed, of the version, is answered like a patch that does not fit.
    if (answer.status.code == 409 || answer.status.code == 422) {
      return Fail(ErrorCode::kConflict,
                  "placementscores {} of cluster {}: it was changed since it was read, or takes no "
                  "scores; {}",
                  choice_.name, read_[i].cluster, others);
    }
    const Error& error = answer.outcome.error();
    return Fail(error.code, "placementscores {} of cluster {}: {}; {}", choice_.name,
                read_[i].cluster, error.message, others);
  }
  return {};
}

}  // namespace rudderfish
