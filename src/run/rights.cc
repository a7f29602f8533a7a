// SPDX-License-Identifier: Apache-2.0
#include "run/rights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "kube/access_review.h"
#include "kube/api_client.h"
#include "kube/cluster_feed.h"
#include "kube/kubeconfig.h"
#include "kube/mirror.h"
#include "kube/move_api.h"
#include "kube/scheduling_follower.h"

namespace rudderfish {
namespace {

using kube::ClusterFeed;
using kube::Need;
using kube::Right;

void Add(std::string_view verb, std::string_view group, std::string_view resource,
         const std::string& name_space, const std::string& name, const char* without,
         std::vector<NeededRight>* rights) {
  rights->push_back({.right = {.verb = std::string(verb),
                               .group = std::string(group),
                               .resource = std::string(resource),
                               .name_space = name_space,
                               .name = name},
                     .without = without,
                     .is_needed = false});
}

// Verb, group and resource, as deploy/moves/rights.yaml grants them.
constexpr const char* kRightsOfMoves[][3] = {
    {"get", "", "pods"},
    {"list", "", "pods"},
    {"patch", "", "pods"},
    {"create", "", "pods/eviction"},
    {"list", "", "services"},
    {"get", "", "nodes"},
    {"get", "", "persistentvolumeclaims"},
    {"get", "apps", "deployments"},
    {"get", "apps", "replicasets"},
    {"list", "discovery.k8s.io", "endpointslices"},
    {"list", "policy", "poddisruptionbudgets"},
};

std::string Line(std::string_view what, std::string_view value) {
  return fmt::format("{:<14}{}\n", what, value);
}

}  // namespace

Result<AllowedRights> AskForRights(const Config& config, const std::vector<Right>& rights,
                                   Duration limit) {
  const auto not_reached = [](const Error& error) {
    return AllowedRights{.server = {},
                         .not_reached = "no, so rights were not looked at: " + error.message,
                         .allowed = {}};
  };
  Result<kube::ClusterAccess> access = kube::FindCluster(
      {.kubeconfig = config.cluster.kubeconfig.string(), .context = config.cluster.context},
      kube::KubeEnvironment::OfProcess());
  if (!access && access.error().code == ErrorCode::kNotFound) return not_reached(access.error());
  if (!access) return tl::unexpected(std::move(access).error());
  AllowedRights said{.server = access->server, .not_reached = {}, .allowed = {}};
  const SystemClock clock;
  TRY_ASSIGN(const auto client,
             kube::ApiClient::Open(*std::move(access), &clock, {.plugin_limit = limit}));
  Result<std::vector<bool>> allowed = kube::ReviewAccess(client.get(), rights, limit);
  if (!allowed && !client->has_heard()) return not_reached(allowed.error());
  if (!allowed) return tl::unexpected(std::move(allowed).error());
  said.allowed = *std::move(allowed);
  return said;
}

std::vector<NeededRight> HostRights(const Config& config) {
  std::vector<NeededRight> rights;
  const auto add = [&](std::string_view verb, std::string_view group, std::string_view resource,
                       const std::string& name_space, const std::string& name) {
    Add(verb, group, resource, name_space, name, "the configuration asks for it", &rights);
  };
  if (!config.control_name.empty()) {
    add("list", "", "configmaps", config.control_namespace, config.control_name);
    add("watch", "", "configmaps", config.control_namespace, config.control_name);
  }
  const LeaderElectionConfig& election = config.leader_election;
  if (election.is_on()) {
    add("get", "coordination.k8s.io", "leases", election.lease_namespace, election.lease_name);
    add("update", "coordination.k8s.io", "leases", election.lease_namespace, election.lease_name);
  }
  return rights;
}

std::vector<NeededRight> MigrationRights(Mode mode,
                                         const std::vector<const Application*>& applications) {
  std::vector<NeededRight> rights;
  for (const Right& right : ClusterFeed::Rights(kube::Mirror::AllNeeds(), Need::kNeeded))
    rights.push_back({right, "without it nothing runs", true});
  for (const Right& right : ClusterFeed::Rights(kube::Mirror::AllNeeds(), Need::kWanted))
    rights.push_back({right, "without it that is not seen", false});
  if (mode < Mode::kAdvise) return rights;
  std::set<std::string> namespaces;
  for (const Application* application : applications) {
    for (const WorkloadObject& object : application->objects) {
      if (!object.is_external()) namespaces.insert(object.object_namespace);
    }
  }
  for (const std::string& one : namespaces) {
    for (const char* verb : {"create", "patch"}) {
      rights.push_back({{.verb = verb,
                         .group = "events.k8s.io",
                         .resource = "events",
                         .name_space = one,
                         .name = ""},
                        "the mode of migration needs it",
                        true});
    }
  }
  if (mode < Mode::kCanary) return rights;
  for (Right& right : MoveRights(""))
    rights.push_back({std::move(right), "no pod is moved without it", true});
  return rights;
}

std::vector<NeededRight> PlacementRights(Mode mode) {
  const std::span<const kube::ResourceNeed> needs = kube::SchedulingFollower::AllNeeds();
  std::vector<NeededRight> rights;
  for (const kube::Right& right : ClusterFeed::Rights(needs, Need::kNeeded))
    rights.push_back({right, "without it nothing is placed", true});
  for (const kube::Right& right : ClusterFeed::Rights(needs, Need::kWanted))
    rights.push_back(
        {right, "without it pods whose volumes CSI drivers attach are left waiting", false});
  const auto add = [&](const char* verb, const char* group, const char* resource) {
    rights.push_back(
        {{.verb = verb, .group = group, .resource = resource, .name_space = "", .name = ""},
         "the mode of placement needs it",
         true});
  };
  if (mode >= Mode::kCanary) {
    add("create", "", "pods/binding");
    add("patch", "", "pods/status");
  }
  if (mode >= Mode::kAdvise) {
    add("create", "events.k8s.io", "events");
    add("patch", "events.k8s.io", "events");
  }
  return rights;
}

std::vector<NeededRight> RoutingRights(const RoutingConfig& config, Mode mode) {
  std::vector<NeededRight> rights;
  const auto add = [&](const char* verb, std::string_view group, std::string_view resource,
                       const ObjectChoice& object, bool is_named, const char* without) {
    rights.push_back({{.verb = verb,
                       .group = std::string(group),
                       .resource = std::string(resource),
                       .name_space = object.name_space,
                       .name = is_named ? object.name : ""},
                      without,
                      true});
  };
  for (const RouteConfig& one : config.routes) {
    const std::optional<PathObject> path = ObjectOf(one.path);
    if (!path || one.cluster) continue;  // Rights in other clusters are for those to say.
    if (path->is_of_clusters) {          // Events have no object to be about.
      add("list", path->group, path->plural, *path->object, false, "without it nothing runs");
      add("list", path->group, "managedclusters", *path->object, false, "without it nothing runs");
      if (mode >= Mode::kCanary)
        add("patch", path->group, "addonplacementscores/status", *path->object, false,
            "no split is set without it");
      continue;
    }
    add("get", path->group, path->plural, *path->object, true, "without it nothing runs");
    if (path->shows_health)
      add("list", "discovery.k8s.io", "endpointslices", *path->object, false,
          "without it nothing runs");
    if (mode < Mode::kAdvise) continue;
    for (const char* verb : {"create", "patch"}) {
      add(verb, "events.k8s.io", "events", *path->object, false, "the mode of routing needs it");
    }
    if (mode < Mode::kCanary) continue;
    add("patch", path->group, path->plural, *path->object, true, "no split is set without it");
  }
  for (const CapacityConfig& one : config.capacity) {
    if (!one.has_pods() || one.cluster->is_named) continue;
    add("get", "apps", "deployments", one.deployment, true, "without it nothing runs");
    add("list", "autoscaling", "horizontalpodautoscalers", one.deployment, false,
        "without it nothing runs");
    if (mode >= Mode::kEnforce)
      add("patch", "apps", "deployments/scale", one.deployment, true,
          "no number of pods is set without it");
  }
  return rights;
}

std::vector<Right> MoveRights(const std::string& name_space) {
  std::vector<Right> rights;
  for (const auto& [verb, group, resource] : kRightsOfMoves) {
    const bool is_of_cluster = std::string_view(resource) == "nodes";
    rights.push_back({.verb = verb,
                      .group = group,
                      .resource = resource,
                      .name_space = is_of_cluster ? "" : name_space,
                      .name = ""});
  }
  for (const char* verb : {"get", "patch"}) {
    rights.push_back({.verb = verb,
                      .group = "",
                      .resource = "configmaps",
                      .name_space = std::string(kube::kMovesNamespace),
                      .name = std::string(kube::kMovesName)});
  }
  // Targets are checked by kube-scheduler's rules.
  const std::vector<Right> of_targets =
      ClusterFeed::Rights(kube::SchedulingFollower::AllNeeds(), Need::kNeeded);
  rights.insert(rights.end(), of_targets.begin(), of_targets.end());
  return rights;
}

Result<void> CheckMoveRights(kube::ApiClient* client, const std::string& name_space,
                             Duration limit) {
  const std::vector<Right> rights = MoveRights(name_space);
  TRY_ASSIGN(const std::vector<bool> allowed, kube::ReviewAccess(client, rights, limit));
  std::vector<Right> missing;
  for (size_t i = 0; i < rights.size(); ++i) {
    if (!allowed[i]) missing.push_back(rights[i]);
  }
  if (missing.empty()) return {};
  return Fail(ErrorCode::kFailedPrecondition,
              "no pod can be moved without these rights (deploy/moves/rights.yaml): add to {}",
              fmt::join(RulesToAdd(missing), "; and to "));
}

Result<RightsReport> ReviewRights(const Config& config, const std::vector<NeededRight>& rights,
                                  Duration limit) {
  // Kinds watch the same resources; what one of them needs is needed.
  std::vector<NeededRight> once;
  for (const NeededRight& right : rights) {
    const auto same = std::find_if(
        once.begin(), once.end(), [&](const NeededRight& one) { return one.right == right.right; });
    if (same == once.end()) {
      once.push_back(right);
    } else if (right.is_needed && !same->is_needed) {
      *same = right;
    }
  }
  std::vector<Right> asked;
  for (const NeededRight& one : once) asked.push_back(one.right);
  TRY_ASSIGN(const AllowedRights said, AskForRights(config, asked, limit));
  if (!said.not_reached.empty())
    return RightsReport{
        .text = Line("reached", said.not_reached), .missing = {}, .is_reached = false};
  RightsReport report{.text = Line("reached", said.server), .missing = {}};
  std::vector<Right> needed;
  std::vector<std::pair<std::string_view, std::vector<Right>>> by_reason;  // In order.
  for (size_t i = 0; i < once.size(); ++i) {
    if (said.allowed[i]) continue;
    if (once[i].is_needed) needed.push_back(once[i].right);
    const auto reason = std::find_if(by_reason.begin(), by_reason.end(),
                                     [&](const auto& one) { return one.first == once[i].without; });
    if (reason == by_reason.end()) {
      by_reason.push_back({once[i].without, {once[i].right}});
    } else {
      reason->second.push_back(once[i].right);
    }
  }
  report.missing = RulesToAdd(needed);
  for (const auto& [without, missing] : by_reason) {
    for (const std::string& rule : RulesToAdd(missing)) {
      report.text += Line("right missing", fmt::format("add to {} ({})", rule, without));
    }
  }
  if (by_reason.empty())
    report.text += Line("rights", fmt::format("all {} that it uses", asked.size()));
  return report;
}

}  // namespace rudderfish
