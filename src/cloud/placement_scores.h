// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cloud/split_enactor.h"
#include "cloud/weighted_object.h"
#include "kube/api_client.h"

// A split as scores of managed clusters in Open Cluster Management: one AddOnPlacementScore
// (cluster.open-cluster-management.io/v1alpha1) in the namespace of each cluster, whose status
// holds the cluster's share in percent under a name that Placements prioritise by. A cluster is
// healthy if its ManagedCluster says that it is available.
//
// Scores of clusters are independent objects: a process that is killed leaves some old and some
// new, each of which is a share, and what stands is read again.

namespace rudderfish {

struct PlacementScoresChoice : ObjectChoice {  // `name_space` is empty: all of them.
  std::string score;                           // Its name in the objects' status.
};

// "NAME" or "NAME/SCORE"; of none the score is `share`. kInvalidArgument otherwise.
Result<PlacementScoresChoice> ParsePlacementScores(std::string_view text);

struct ClusterScore {
  std::string cluster, resource_version;
  int64_t value = 0;  // 0 to 100; 0 where it has none yet.
  bool has_status = false;
  std::string others = "[]";  // A JSON array: the scores of other names.
};

// Of a list of AddOnPlacementScores: those that are called so. kInvalidArgument: no such list, or a
// score that is no share.
Result<std::vector<ClusterScore>> ReadPlacementScores(std::string_view json,
                                                      const PlacementScoresChoice& choice);

// Of a list of ManagedClusters: whether each says that it is available.
Result<std::map<std::string, bool>> ReadManagedClusters(std::string_view json);

class PlacementScoresEnactor final : public SplitEnactor {
 public:
  // REQUIRES: `client` outlives this.
  PlacementScoresEnactor(kube::ApiClient* client, PlacementScoresChoice choice)
      : client_(client), choice_(std::move(choice)) {}

  Result<StandingWeights> Read() override;
  int64_t weight_sum() const override { return 100; }
  std::string Request(const std::vector<int64_t>& weights) const override;
  Result<void> Send(const std::vector<int64_t>& weights) override;

 private:
  std::string PathOf(const ClusterScore& one) const;
  std::string PatchOf(const ClusterScore& one, int64_t weight) const;

  kube::ApiClient* client_;
  PlacementScoresChoice choice_;
  std::vector<ClusterScore> read_;
};

}  // namespace rudderfish
