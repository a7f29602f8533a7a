// SPDX-License-Identifier: Apache-2.0
#include "run/capacity_decider.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/log.h"
#include "base/units.h"

namespace rudderfish {
namespace {

bool IsHealthy(std::span<const RoutingRound> rounds, size_t region) {
  return std::all_of(rounds.begin(), rounds.end(), [&](const RoutingRound& one) {
    return one.view().sights()[region].reachable;
  });
}

}  // namespace

bool CapacityDecider::IsFresh(const CapacityDriver::Standing& standing) const {
  return standing.sight && clock_->Now() - standing.at <= config().limits.signals_max_age;
}

void CapacityDecider::Open() {
  driver_.reset();  // Waits for the requests that are being sent.
  for (const Fleet& fleet : fleets_) {
    if (fleet.row)
      rows_->Conclude(*fleet.row, {.fate = Fate::kUnknown, .failure = std::string(kReloaded)});
  }
  fleets_.assign(config().capacity.size(), {});
  if (!config().capacity.empty())
    driver_ = std::make_unique<CapacityDriver>(config().capacity, clock_);
}

// Fresh ones only: what could not be looked at for long is not counted on. VMs are of all services
// together, so that of several none knows which pods there are its own.
std::vector<std::optional<RegionPods>> CapacityDecider::PodsOf(int service) const {
  std::vector<std::optional<RegionPods>> pods;
  if (driver_ == nullptr) return pods;
  pods.resize(plan_->world->network->regions.size());
  for (size_t i = 0; i < fleets_.size(); ++i) {
    const CapacityConfig& named = config().capacity[i];
    const CapacityDriver::Standing standing = driver_->Get(i);
    const bool is_mine =
        named.has_pods() ? named.service == plan_->ServiceName(service) : plan_->services() == 1;
    if (!is_mine || !IsFresh(standing)) continue;
    const int each = named.has_pods() ? 1 : plan_->world->network->service.pods_per_node;
    pods[static_cast<size_t>(plan_->RegionOf(named.region))] = RegionPods{
        .ready = standing.sight->ready * each, .starting = standing.sight->starting * each};
  }
  return pods;
}

// Of all services that it is for; nothing: one of them cannot be decided about.
std::optional<int> CapacityDecider::WantedOf(const CapacityConfig& named,
                                             std::span<const RoutingRound> rounds) const {
  const size_t at = static_cast<size_t>(plan_->RegionOf(named.region)) * kNodePrices;
  double nodes = 0;
  for (int s = 0; s < plan_->services(); ++s) {
    if (named.has_pods() && named.service != plan_->ServiceName(s)) continue;
    const RoutingRound& round = rounds[static_cast<size_t>(s)];
    if (!round.problem().empty() || round.nodes().empty()) return std::nullopt;
    const int own = round.nodes()[at + kOnDemand] + round.nodes()[at + kSpot];
    const RegionLaws& laws = *plan_->laws[static_cast<size_t>(s)];
    if (named.has_pods()) return own * laws.network().service.pods_per_node;
    nodes += static_cast<double>(own) / plan_->PodsOfNode(s);
  }
  return static_cast<int>(std::ceil(nodes - 1e-9));
}

// The most that was wanted within `settle`, and no fewer than there are until that has passed: what
// is measured in the first seconds says little, and what was given back takes time to come again.
int CapacityDecider::WantedLately(int wanted, int now, Fleet* fleet) const {
  const Instant at = clock_->Now();
  if (fleet->wanted.empty()) fleet->since = at;
  fleet->wanted.emplace_back(at, wanted);
  while (fleet->wanted.front().first < at - config().settle) fleet->wanted.pop_front();
  int most = at - fleet->since < config().settle ? now : wanted;
  for (const auto& [when, one] : fleet->wanted) most = std::max(most, one);
  return most;
}

// Where nothing can be decided, what was decided last holds.
void CapacityDecider::Decide(Mode mode, std::span<const RoutingRound> rounds) {
  if (driver_ == nullptr || mode == Mode::kOff) return;
  const Instant until = clock_->Now() + 2 * config().interval;
  for (size_t i = 0; i < fleets_.size(); ++i) {
    const CapacityDriver::Standing standing = driver_->Get(i);
    Fleet& fleet = fleets_[i];
    const bool is_fresh = IsFresh(standing);
    if (fleet.row && is_fresh && standing.sight_of == fleet.aim && standing.sight->is_settled)
      rows_->Conclude(*std::exchange(fleet.row, std::nullopt),
                      {.fate = Fate::kDone, .failure = ""});
    if (is_fresh) DecideFleet(i, *standing.sight, mode, rounds);
    if (mode == Mode::kEnforce && fleet.has_aim) driver_->Aim(i, fleet.aim, until);
  }
}

void CapacityDecider::DecideFleet(size_t index, const CapacitySight& sight, Mode mode,
                                  std::span<const RoutingRound> rounds) {
  const CapacityConfig& named = config().capacity[index];
  Fleet& fleet = fleets_[index];
  const std::optional<int> wanted = WantedOf(named, rounds);
  if (!wanted) return;
  const bool is_healthy = IsHealthy(rounds, static_cast<size_t>(plan_->RegionOf(named.region)));
  const int now = sight.standing;
  const int lately = WantedLately(*wanted, now, &fleet);
  const int allowed = AllowedCapacity(named, {now, lately, is_healthy});
  const bool is_same = fleet.has_aim && fleet.aim == allowed && fleet.mode == mode;
  if (is_same || (allowed == now && !fleet.has_aim)) {
    fleet.has_aim = fleet.has_aim || mode == Mode::kEnforce;
    fleet.aim = allowed;
    return;
  }
  RoutingDecision decision{
      .route = named.Subject(),
      .target = named.Target(),
      .mode = std::string(ModeName(mode)),
      .policy = plan_->policy_name,
      .objective = plan_->objective,
      .capacity = RoutedCapacity{named.has_pods() ? "pod" : "VM", now, *wanted, allowed},
      .verdict = {.allowed = true, .reason = ""}};
  if (lately > *wanted && allowed > *wanted) {
    decision.reasons.push_back(fmt::format("{} are wanted now, more within {}", named.Unit(*wanted),
                                           FormatDuration(config().settle)));
  } else if (*wanted != allowed) {
    decision.reasons.push_back(
        named.has_pods() && now == 0
            ? "it has no pod: a person has switched it off"
            : fmt::format("{} are wanted; {} to {}, at most {} more or fewer at a decision",
                          named.Unit(*wanted), named.least, named.most, named.step));
  }
  if (!is_healthy)
    decision.reasons.push_back(fmt::format("the region is not healthy: no {} of it is taken away",
                                           named.has_pods() ? "pod" : "VM"));
  const bool acts = mode == Mode::kEnforce;
  decision.fate = !acts ? Fate::kRecorded : allowed == now ? Fate::kStayed : Fate::kInFlight;
  // What is written first is done afterwards.
  const Result<int64_t> row = rows_->Append(decision);
  if (!row) return;
  if (fleet.row) {
    rows_->Conclude(*fleet.row,
                    {.fate = Fate::kFailed,
                     .failure = fmt::format("{} were there when another number was decided on",
                                            named.Unit(sight.ready))});
  }
  fleet.row = acts && allowed != now ? std::optional(*row) : std::nullopt;
  fleet.aim = allowed;
  fleet.has_aim = true;
  fleet.mode = mode;
  if (acts && allowed != now)
    LogInfo("{}: {} instead of {}; {} wanted", named.Subject(), named.Unit(allowed), now, *wanted);
}

void CapacityDecider::DropAims() {
  if (driver_ != nullptr) driver_->DropAims();
}

std::string CapacityDecider::Trouble() const {
  for (size_t i = 0; i < fleets_.size(); ++i) {
    const CapacityDriver::Standing standing = driver_->Get(i);
    if (!standing.trouble.empty())
      return fmt::format("capacity of {}: {}", config().capacity[i].region, standing.trouble);
  }
  return "";
}

OrderedJson CapacityDecider::Status() const {
  OrderedJson list = OrderedJson::array();
  for (size_t i = 0; i < fleets_.size(); ++i) {
    const CapacityConfig& fleet = config().capacity[i];
    const CapacityDriver::Standing standing = driver_->Get(i);
    OrderedJson one{{"region", fleet.region},
                    {"service", fleet.service},
                    {"target", fleet.Target()},
                    {"unit", fleet.has_pods() ? "pod" : "VM"}};
    const auto show = [&](const char* key, auto value) {
      one[key] = standing.sight ? OrderedJson(value) : OrderedJson(nullptr);
    };
    const CapacitySight sight = standing.sight.value_or(CapacitySight());
    show("ready", sight.ready);
    show("starting", sight.starting);
    show("failed", sight.failed);
    show("read_age_s", Seconds(clock_->Now() - standing.at));
    one["aim"] = standing.aim ? OrderedJson(*standing.aim) : OrderedJson(nullptr);
    one["problem"] = standing.trouble;
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace rudderfish
