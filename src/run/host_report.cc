// SPDX-License-Identifier: Apache-2.0
#include "run/host_report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/units.h"
#include "base/version.h"

namespace rudderfish {
namespace {

constexpr Duration kBetweenHostShows = std::chrono::milliseconds(250);

// What each kind shows: the mode of the file, the one that holds now and why, then its own, and
// what it has reached by promotions.
OrderedJson StatusOf(const DecisionLoop& loop, const ModeSwitch& switches) {
  const SwitchedKind kind = loop.Kind();
  const ModeLadder* const ladder = loop.ladder();
  OrderedJson json{
      {"configured_mode", ModeName(ladder == nullptr ? Mode::kOff : ladder->kept().configured)},
      {"mode", ModeName(switches.Effective(kind.configured))},
      {"why", switches.Why(kind.configured)}};
  json.update(loop.Status());
  if (ladder != nullptr) json["standing"] = ladder->Describe();
  return json;
}

}  // namespace

std::string HostReport::LeaderTrouble() const {
  if (parts_->lease == nullptr) return "";
  if (parts_->lease->has_namesake()) return "another instance has our identity";
  if (parts_->lease->last_error()) return parts_->lease->last_error()->message;
  return standing_->is_said() ? "" : "the Lease does not say the mode yet";
}

std::string HostReport::JournalTrouble() const {
  std::string text = parts_->journal_health->trouble();
  for (const DecisionLoop* loop : *loops_) {
    const std::string more = loop->JournalTrouble();
    if (!more.empty() && more != text) text += (text.empty() ? "" : "; ") + more;
  }
  return text;
}

void HostReport::Show() {
  const Instant now = parts_->clock->Now();
  if (now - reported_ < kBetweenHostShows || standing_ == nullptr) return;
  reported_ = now;
  std::string cluster;
  for (DecisionLoop* loop : *loops_) {
    if (cluster.empty()) cluster = loop->ClusterTrouble();
    const SwitchedKind kind = loop->Kind();
    parts_->metrics.ShowStanding({.kind = kind.name,
                                  .mode = parts_->switches.Effective(kind.configured),
                                  .paused = parts_->switches.paused(),
                                  .leads = parts_->Leads()});
    loop->Report();
  }
  parts_->server->cluster().Fail(cluster);
  parts_->server->journal().Fail(JournalTrouble());
  const bool is_unled = parts_->lease != nullptr && parts_->lease->holder().empty();
  parts_->server->leader().Fail(is_unled ? "no instance holds the Lease yet" : "");
  parts_->metrics.ShowCluster(Counts());
  parts_->metrics.ShowProcess();
}

ClusterCounts HostReport::Counts() const {
  ClusterCounts counts;
  for (const DecisionLoop* loop : *loops_) loop->Count(&counts);
  if (parts_->own.feed != nullptr) counts.watched = parts_->own.feed->Counts();
  std::vector<const kube::ApiClient*> clients;
  if (parts_->own.client != nullptr)
    clients = {parts_->own.client.get(), parts_->own.telling.get()};
  for (const auto& other : *others_)
    clients.insert(clients.end(), {other->client.get(), other->telling.get()});
  for (const kube::ApiClient* client : clients) {
    counts.requests += client->counts().requests;
    counts.request_failures += client->counts().failures;
    counts.throttled += client->counts().throttled;
  }
  if (parts_->lease != nullptr) {
    counts.lease_renewals = parts_->lease->counts().renewals;
    counts.lease_failures = parts_->lease->counts().failures;
    counts.leaderships_lost = parts_->lease->counts().lost;
  }
  return counts;
}

OrderedJson HostReport::Status(const std::string& control_problem) const {
  const LeaderElectionConfig& election = parts_->config.leader_election;
  const KeptPause& pause = standing_->pause();
  OrderedJson json{
      {"schema_version", 2},
      {"version", ProgramVersion()},
      {"pid", ::getpid()},
      {"started_at_ms", started_at_},
      {"uptime_s", Seconds(parts_->clock->Now() - started_)},
      {"config", parts_->config.path.string()},
      {"cluster", parts_->config.cluster.is_simulated()
                      ? fmt::format("simulated from {}", parts_->config.cluster.scenario.string())
                  : parts_->own.client == nullptr ? "none"
                                                  : parts_->own.client->access().server},
      {"journal", parts_->config.journal.path.string()},
      {"journal_problem", JournalTrouble()},
      {"control_problem", control_problem},
      {"paused", parts_->switches.paused()},
      {"killed", parts_->switches.killed()},
      {"paused_since_ms", pause.is_on() ? OrderedJson(pause.since) : OrderedJson(nullptr)},
      {"paused_by", pause.by},
      {"leads", parts_->Leads()},
      {"lease",
       election.is_on() ? fmt::format("{}/{}", election.lease_namespace, election.lease_name) : ""},
      {"identity", parts_->lease == nullptr ? "" : parts_->identity},
      {"leader", parts_->lease == nullptr ? "" : parts_->lease->holder()},
      {"leader_problem", LeaderTrouble()},
      {"decisions", OrderedJson::object()}};
  for (const DecisionLoop* loop : *loops_) {
    json["decisions"][std::string(loop->Kind().name)] = StatusOf(*loop, parts_->switches);
  }
  return json;
}

}  // namespace rudderfish
