// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/units.h"
#include "base/version.h"
#include "run/host.h"
#include "run/migration_loop.h"
#include "run/placement_loop.h"
#include "run/routing_loop.h"
#include "run/routing_plan.h"

// What a Host tells of itself: health, metrics, status.

namespace rudderfish {
namespace {

// Everything else of the process waits for it.
constexpr Duration kRightsLimit = std::chrono::seconds(3);

constexpr Duration kBetweenHostShows = std::chrono::milliseconds(250);

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

}  // namespace

std::string Host::LeaderTrouble() const {
  if (lease_ == nullptr) return "";
  if (lease_->has_namesake()) return "another instance has our identity";
  if (lease_->last_error()) return lease_->last_error()->message;
  return standing_->is_said() ? "" : "the Lease does not say the mode yet";
}

std::string Host::JournalTrouble() const {
  std::string text = journal_health_->trouble();
  for (const DecisionLoop* loop : loops_) {
    const std::string more = loop->JournalTrouble();
    if (!more.empty() && more != text) text += (text.empty() ? "" : "; ") + more;
  }
  return text;
}

void Host::Report() {
  const Instant now = clock_->Now();
  if (now - reported_ < kBetweenHostShows || standing_ == nullptr) return;
  reported_ = now;
  std::string cluster;
  for (DecisionLoop* loop : loops_) {
    if (cluster.empty()) cluster = loop->ClusterTrouble();
    const SwitchedKind kind = loop->Kind();
    metrics_.ShowStanding({.kind = kind.name,
                           .mode = switches_.Effective(kind.configured),
                           .paused = switches_.paused(),
                           .leads = Leads()});
    loop->Report();
  }
  server_->cluster().Fail(cluster);
  server_->journal().Fail(JournalTrouble());
  const bool is_unled = lease_ != nullptr && lease_->holder().empty();
  server_->leader().Fail(is_unled ? "no instance holds the Lease yet" : "");
  ShowCluster();
  metrics_.ShowProcess();
}

void Host::ShowCluster() {
  ClusterCounts counts;
  for (const DecisionLoop* loop : loops_) loop->Count(&counts);
  if (own_.feed != nullptr) counts.watched = own_.feed->Counts();
  std::vector<const kube::ApiClient*> clients;
  if (own_.client != nullptr) clients = {own_.client.get(), own_.telling.get()};
  for (const auto& other : others_)
    clients.insert(clients.end(), {other->client.get(), other->telling.get()});
  for (const kube::ApiClient* client : clients) {
    counts.requests += client->counts().requests;
    counts.request_failures += client->counts().failures;
    counts.throttled += client->counts().throttled;
  }
  if (lease_ != nullptr) {
    counts.lease_renewals = lease_->counts().renewals;
    counts.lease_failures = lease_->counts().failures;
    counts.leaderships_lost = lease_->counts().lost;
  }
  metrics_.ShowCluster(counts);
}

// What each kind shows: the mode of the file, the one that holds now and why, then its own, and
// what it has reached by promotions.
OrderedJson Host::StatusOf(const DecisionLoop& loop) const {
  const SwitchedKind kind = loop.Kind();
  const ModeLadder* const ladder = loop.ladder();
  OrderedJson json{
      {"configured_mode", ModeName(ladder == nullptr ? Mode::kOff : ladder->kept().configured)},
      {"mode", ModeName(switches_.Effective(kind.configured))},
      {"why", switches_.Why(kind.configured)}};
  json.update(loop.Status());
  if (ladder != nullptr) json["standing"] = ladder->Describe();
  return json;
}

std::string Host::Status() const {
  const LeaderElectionConfig& election = config_.leader_election;
  const KeptPause& pause = standing_->pause();
  OrderedJson json{
      {"schema_version", 2},
      {"version", ProgramVersion()},
      {"pid", ::getpid()},
      {"started_at_ms", started_at_},
      {"uptime_s", Seconds(clock_->Now() - started_)},
      {"config", config_.path.string()},
      {"cluster", config_.cluster.is_simulated()
                      ? fmt::format("simulated from {}", config_.cluster.scenario.string())
                  : own_.client == nullptr ? "none"
                                           : address_},
      {"journal", config_.journal.path.string()},
      {"journal_problem", JournalTrouble()},
      {"control_problem", control_problem_},
      {"paused", switches_.paused()},
      {"killed", switches_.killed()},
      {"paused_since_ms", pause.is_on() ? OrderedJson(pause.since) : OrderedJson(nullptr)},
      {"paused_by", pause.by},
      {"leads", Leads()},
      {"lease",
       election.is_on() ? fmt::format("{}/{}", election.lease_namespace, election.lease_name) : ""},
      {"identity", lease_ == nullptr ? "" : identity_},
      {"leader", lease_ == nullptr ? "" : lease_->holder()},
      {"leader_problem", LeaderTrouble()},
      {"decisions", OrderedJson::object()}};
  for (const DecisionLoop* loop : loops_) {
    json["decisions"][std::string(loop->Kind().name)] = StatusOf(*loop);
  }
  if (config_.extender) json["extender"] = placements_.front()->ExtenderJson();
  return DumpAnswer(json);
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
    TRY(RoutingLoop::SignalsOf(config, plan));
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
  if (!config.placement) return report;
  for (const NamedCluster& one : config.placement->clusters) {
    TRY_ASSIGN(const RightsReport more,
               ReviewRights(InCluster(config, one), PlacementRights(config.placement->mode)));
    report.text += fmt::format("cluster {}:\n{}", one.name, more.text);
    for (const std::string& rule : more.missing)
      report.missing.push_back(fmt::format("{} of cluster {}", rule, one.name));
  }
  return report;
}

// A cluster that does not answer is no reason to refuse: the evidence says whether it may be done.
std::vector<std::string> Host::MissingRights(std::string_view kind, Mode mode) const {
  if (!config_.has_cluster()) return {};
  Config asked = config_;
  if (config_.placement) {
    for (const NamedCluster& one : config_.placement->clusters)
      if (kind == PlacementKind(one.name)) asked = InCluster(config_, one);
  }
  Result<std::vector<NeededRight>> rights = kind.starts_with("placement") ? PlacementRights(mode)
                                            : kind == "routing"
                                                ? RoutingRights(*config_.routing, mode)
                                                : MigrationRightsOf(config_, mode);
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
  return missing;
}

}  // namespace rudderfish
