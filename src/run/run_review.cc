// SPDX-License-Identifier: Apache-2.0
#include "run/run_review.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "base/wall_time.h"
#include "control/journal_reader.h"
#include "control/migration_mode_evidence.h"
#include "control/routing_mode_evidence.h"
#include "kube/api_client.h"
#include "kube/move_api.h"
#include "run/migration_plan.h"
#include "run/placement_loop.h"
#include "run/routing_loop.h"
#include "run/routing_plan.h"

namespace rudderfish {
namespace {

// Everything else of the process waits for it.
constexpr Duration kRightsLimit = std::chrono::seconds(3);

std::string HostLine(std::string_view what, const std::string& value) {
  return fmt::format("{:<14}{}\n", what, value);
}

std::string ClusterText(const ClusterConfig& cluster) {
  if (cluster.is_simulated()) {
    return fmt::format("simulated from {}, seed {}", cluster.scenario.string(), cluster.seed);
  }
  const std::string context =
      cluster.context.empty() ? "" : fmt::format(", context {}", cluster.context);
  return fmt::format(
      "live, {}{}",
      cluster.kubeconfig.empty() ? "as kubectl finds it" : cluster.kubeconfig.string(), context);
}

Config InCluster(const Config& config, const NamedCluster& named) {
  Config there = config;
  there.cluster.kubeconfig = named.where.kubeconfig;
  there.cluster.context = named.where.context;
  return there;
}

Result<std::vector<NeededRight>> MigrationRightsOf(const Config& config, Mode mode) {
  TRY_ASSIGN(const MigrationPlan plan, MigrationPlan::Make(config));
  std::vector<const Application*> applications;
  for (const MigrationPlan::Part& part : plan.parts())
    applications.push_back(part.watched.application.get());
  return MigrationRights(mode, applications);
}

// Why no pod of the cluster can be moved, whatever the rights; empty: nothing says so.
std::string WhyNothingMoves(const Config& config) {
  Result<kube::ClusterAccess> access = kube::FindCluster(
      {.kubeconfig = config.cluster.kubeconfig.string(), .context = config.cluster.context},
      kube::KubeEnvironment::OfProcess());
  if (!access) return "";
  const SystemClock clock;
  const auto client = kube::ApiClient::Open(*std::move(access), &clock,
                                            {.attempts_max = 1, .plugin_limit = kRightsLimit});
  if (!client) return "";
  const Result<bool> can = kube::MoveApi(client->get()).CanPin(kRightsLimit);
  if (!can || *can) return "";
  return fmt::format("setup: apply deploy/moves (the ConfigMap {}/{} is not found)",
                     kube::kMovesNamespace, kube::kMovesName);
}

// A kind of decision begins in the mode that promotions have reached, if the file still names the
// mode that it named then. Says so where it is another one than the file's.
std::string TakeKept(const KeptModes& kept, std::string_view kind, Mode* mode) {
  const auto found = kept.find(kind);
  if (found == kept.end() || found->second.configured != *mode || found->second.mode == *mode)
    return "";
  const Mode other = std::min(found->second.mode, std::exchange(*mode, found->second.mode));
  return HostLine(
      "mode", fmt::format("{}: {} since {}, as the journal keeps it; {} if its policy "
                          "or objective has changed",
                          kind, ModeName(*mode), Rfc3339(found->second.since), ModeName(other)));
}

}  // namespace

std::string TakeKeptModes(Config* config) {
  const Result<JournalReader> journal = JournalReader::Open(config->journal.path);
  if (!journal && journal.error().code == ErrorCode::kNotFound) return "";
  const Result<KeptModes> kept =
      journal ? journal->Modes() : tl::unexpected<Error>(journal.error());
  if (!kept) {
    return HostLine(
        "mode", fmt::format("that of the file; the journal may keep a higher one, in which `run` "
                            "would begin, and cannot be read: {}",
                            kept.error().message));
  }
  std::string text;
  if (config->migration) text += TakeKept(*kept, kMigrationLadder.name, &config->migration->mode);
  if (config->routing) text += TakeKept(*kept, kRoutingLadder.name, &config->routing->mode);
  if (!config->placement) return text;
  for (NamedCluster& one : config->placement->clusters) {
    one.kept_mode = config->placement->mode;
    text += TakeKept(*kept, PlacementKind(one.name), &*one.kept_mode);
  }
  return text + TakeKept(*kept, PlacementKind(""), &config->placement->mode);
}

Result<std::string> DescribeRun(const Config& config) {
  std::string text = HostLine("cluster", config.cluster.is_simulated() || config.has_cluster()
                                             ? ClusterText(config.cluster)
                                             : "none: no decision needs one");
  if (config.places()) {
    TRY_ASSIGN(const std::string placement, DescribePlacement(config));
    text += placement;
  }
  if (config.migration) {
    TRY_ASSIGN(const MigrationPlan plan, MigrationPlan::Make(config));
    text += plan.Describe();
  }
  if (config.routing) {
    TRY_ASSIGN(const RoutingPlan plan, RoutingPlan::Make(*config.routing));
    TRY(RoutingSignals(config, plan));
    text += plan.Describe();
  }
  text += HostLine("journal", fmt::format("{}, kept {}, at most {}", config.journal.path.string(),
                                          FormatDuration(config.journal.retention),
                                          FormatBytes(config.journal.size_bytes)));
  text += HostLine("socket", config.server.socket.string());
  if (!config.server.listen.empty()) {
    text += HostLine("server", fmt::format("{}: /livez, /readyz, /metrics", config.server.listen));
  }
  const LeaderElectionConfig& election = config.leader_election;
  if (election.is_on()) {
    text += HostLine(
        "leader", fmt::format("the holder of the Lease {}/{} of {}; other instances are on standby",
                              election.lease_namespace, election.lease_name,
                              FormatDuration(election.duration)));
  }
  return text;
}

// Of the clusters that a configuration names, the rights that a kind needs in each are asked of it.
Result<RightsReport> ReviewRunRights(const Config& config) {
  std::vector<NeededRight> rights = HostRights(config);
  const auto add = [&](const std::vector<NeededRight>& more) {
    rights.insert(rights.end(), more.begin(), more.end());
  };
  if (config.places()) add(PlacementRights(config.placement ? config.placement->mode : Mode::kOff));
  if (config.migration) {
    TRY_ASSIGN(const std::vector<NeededRight> more,
               MigrationRightsOf(config, config.migration->mode));
    add(more);
  }
  if (config.routing) add(RoutingRights(*config.routing, config.routing->mode));
  TRY_ASSIGN(RightsReport report, ReviewRights(config, rights));
  if (report.is_reached && config.migration && config.migration->mode >= Mode::kCanary) {
    const std::string why = WhyNothingMoves(config);
    if (!why.empty()) report.text += HostLine("moves", why);
  }
  if (!config.placement) return report;
  for (const NamedCluster& one : config.placement->clusters) {
    TRY_ASSIGN(const RightsReport more,
               ReviewRights(InCluster(config, one),
                            PlacementRights(one.kept_mode.value_or(config.placement->mode))));
    report.text += fmt::format("cluster {}:\n{}", one.name, more.text);
    for (const std::string& rule : more.missing)
      report.missing.push_back(fmt::format("{} of cluster {}", rule, one.name));
  }
  return report;
}

std::vector<std::string> MissingRights(const Config& config, std::string_view kind, Mode mode) {
  if (!config.has_cluster()) return {};
  Config asked = config;
  if (config.placement) {
    for (const NamedCluster& one : config.placement->clusters)
      if (kind == PlacementKind(one.name)) asked = InCluster(config, one);
  }
  Result<std::vector<NeededRight>> rights = kind.starts_with("placement") ? PlacementRights(mode)
                                            : kind == "routing"
                                                ? RoutingRights(*config.routing, mode)
                                                : MigrationRightsOf(config, mode);
  Result<RightsReport> report = RightsReport();
  if (rights) report = ReviewRights(asked, *rights, kRightsLimit);
  if (!rights || !report) {
    LogWarning("{}: rights for {} were not reviewed: {}", kind, ModeName(mode),
               rights ? report.error().message : rights.error().message);
    return {};
  }
  std::vector<std::string> missing;
  for (const std::string& rule : report->missing)
    missing.push_back(fmt::format("rights: add to {}", rule));
  if (report->is_reached && kind == kMigrationLadder.name && mode >= Mode::kCanary) {
    std::string why = WhyNothingMoves(config);
    if (!why.empty()) missing.push_back(std::move(why));
  }
  return missing;
}
}  // namespace rudderfish
