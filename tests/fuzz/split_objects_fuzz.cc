// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "cloud/deployment_scale.h"
#include "cloud/placement_scores.h"
#include "cloud/split_objects.h"

// Any bytes as an object of an API server that holds a split, or a number of pods: refused in one
// line, or weights that are not negative, each with a place of its own.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rudderfish;  // NOLINT(google-build-using-namespace)
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  for (int kind = 0; kind < kSplitObjectKinds; ++kind) {
    const auto read = ReadSplitObject(
        json, {{.name_space = "shop", .name = "web"}, static_cast<SplitObjectKind>(kind), {}});
    if (!read) {
      CHECK(!read.error().message.empty());
      CHECK(read.error().message.find('\n') == std::string::npos);
      continue;
    }
    CHECK(!read->fields.empty());
    for (const WeightField& field : read->fields) {
      CHECK(field.weight >= 0);
      CHECK(field.path.starts_with("/spec/"));
    }
    for (const std::string& note : read->notes) CHECK(note.find('\n') == std::string::npos);
  }
  static const PlacementScoresChoice choice = ParsePlacementScores("web").value();
  const auto scores = ReadPlacementScores(json, choice);
  CHECK(scores || scores.error().message.find('\n') == std::string::npos);
  for (const ClusterScore& one : scores ? *scores : std::vector<ClusterScore>())
    CHECK(one.value >= 0 && one.value <= 100 && one.others.starts_with('['));
  const auto clusters = ReadManagedClusters(json);
  CHECK(clusters || clusters.error().message.find('\n') == std::string::npos);
  static const ObjectChoice web{.name_space = "shop", .name = "web", .may_change = {}};
  const auto deployment = ReadDeployment(json, web);
  CHECK(deployment || deployment.error().message.find('\n') == std::string::npos);
  if (deployment) CHECK(deployment->pods >= 0 && deployment->ready >= 0);
  const auto scaler = AutoscalerOf(json, web);
  CHECK(scaler || scaler.error().message.find('\n') == std::string::npos);
  if (scaler && *scaler) CHECK((*scaler)->find('\n') == std::string::npos);
  return 0;
}
