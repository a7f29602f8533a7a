// SPDX-License-Identifier: Apache-2.0
#include "run/rights.h"

#include <fmt/format.h>

#include <set>

#include "kube/access_review.h"
#include "kube/api_client.h"
#include "kube/kubeconfig.h"
#include "kube/mirror_feed.h"

namespace rudderfish {
namespace {

using kube::MirrorFeed;
using kube::Right;

constexpr Duration kDeadline = std::chrono::seconds(10);

// Those that are asked for by the configuration, beside what every run watches.
std::vector<Right> ConfiguredRights(const Config& config,
                                    const std::vector<const Application*>& applications) {
  std::vector<Right> rights;
  const auto add = [&](std::string_view verb, std::string_view group, std::string_view resource,
                       const std::string& name_space, const std::string& name) {
    rights.push_back({.verb = std::string(verb),
                      .group = std::string(group),
                      .resource = std::string(resource),
                      .name_space = name_space,
                      .name = name});
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
  if (!config.events) return rights;
  std::set<std::string> namespaces;
  for (const Application* application : applications) {
    for (const WorkloadObject& object : application->objects) {
      if (!object.is_external()) namespaces.insert(object.object_namespace);
    }
  }
  for (const std::string& one : namespaces) {
    add("create", "events.k8s.io", "events", one, "");
    add("patch", "events.k8s.io", "events", one, "");
  }
  return rights;
}

std::vector<Right> Without(const std::vector<Right>& rights, const std::vector<bool>& allowed,
                           size_t first) {
  std::vector<Right> missing;
  for (size_t i = 0; i < rights.size(); ++i) {
    if (!allowed[first + i]) missing.push_back(rights[i]);
  }
  return missing;
}

std::string Line(std::string_view what, std::string_view value) {
  return fmt::format("{:<14}{}\n", what, value);
}

}  // namespace

Result<AllowedRights> AskForRights(const Config& config, const std::vector<Right>& rights) {
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
             kube::ApiClient::Open(*std::move(access), &clock, {.plugin_limit = kDeadline}));
  Result<std::vector<bool>> allowed = kube::ReviewAccess(client.get(), rights, kDeadline);
  if (!allowed && !client->has_heard()) return not_reached(allowed.error());
  if (!allowed) return tl::unexpected(std::move(allowed).error());
  said.allowed = *std::move(allowed);
  return said;
}

Result<RightsReport> ReviewRights(const Config& config,
                                  const std::vector<const Application*>& applications) {
  const std::vector<Right> needed = MirrorFeed::Rights(MirrorFeed::Need::kNeeded);
  const std::vector<Right> wanted = MirrorFeed::Rights(MirrorFeed::Need::kWanted);
  const std::vector<Right> configured = ConfiguredRights(config, applications);
  std::vector<Right> all = needed;
  all.insert(all.end(), wanted.begin(), wanted.end());
  all.insert(all.end(), configured.begin(), configured.end());
  TRY_ASSIGN(const AllowedRights said, AskForRights(config, all));
  if (!said.not_reached.empty())
    return RightsReport{.text = Line("reached", said.not_reached), .missing = {}};
  const std::vector<bool>& allowed = said.allowed;

  RightsReport report{.text = Line("reached", said.server), .missing = {}};
  report.missing = RulesToAdd(Without(needed, allowed, 0));
  const auto tell = [&](const std::vector<std::string>& rules, std::string_view without) {
    for (const std::string& rule : rules) {
      report.text += Line("right missing", fmt::format("add to {} ({})", rule, without));
    }
  };
  tell(report.missing, "without it nothing runs");
  const auto less = RulesToAdd(Without(wanted, allowed, needed.size()));
  tell(less, "without it that is not seen");
  const auto asked = RulesToAdd(Without(configured, allowed, needed.size() + wanted.size()));
  tell(asked, "the configuration asks for it");
  if (report.missing.empty() && less.empty() && asked.empty()) {
    report.text += Line("rights", fmt::format("all {} that it uses", all.size()));
  }
  return report;
}

}  // namespace rudderfish
