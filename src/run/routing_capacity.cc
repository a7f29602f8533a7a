// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/log.h"
#include "run/host.h"
#include "run/routing_loop.h"

// What a RoutingLoop decides about the VMs of regions. What a policy wants of nodes is decided by
// the routing that it goes with; here it is bounded, written to the journal, and aimed at.

namespace rudderfish {

std::string FleetSubject(const CapacityConfig& fleet) { return "capacity/" + fleet.region; }

bool RoutingLoop::IsFresh(const CapacityDriver::Standing& standing) const {
  return standing.plan && clock_->Now() - standing.at <= config().limits.signals_max_age;
}

void RoutingLoop::OpenCapacity() {
  capacity_.reset();  // Waits for the requests that are being sent.
  for (const Fleet& fleet : fleets_) {
    if (fleet.row)
      Conclude(*fleet.row, {.fate = Fate::kUnknown, .failure = std::string(kReloaded)});
  }
  fleets_.assign(config().capacity.size(), {});
  if (!config().capacity.empty())
    capacity_ = std::make_unique<CapacityDriver>(config().capacity, clock_);
}

// Fresh ones only: a fleet that could not be looked at for long is not counted on.
std::vector<std::optional<RegionVms>> RoutingLoop::VmsNow() const {
  std::vector<std::optional<RegionVms>> vms;
  // Of several services none knows which part of a node is its own.
  if (capacity_ == nullptr || services_.size() > 1) return vms;
  vms.resize(plan_.world->network->regions.size());
  for (size_t i = 0; i < fleets_.size(); ++i) {
    const CapacityDriver::Standing standing = capacity_->Get(i);
    if (!IsFresh(standing)) continue;
    vms[static_cast<size_t>(plan_.RegionOf(config().capacity[i].region))] =
        RegionVms{.ready = standing.plan->ready, .starting = standing.plan->starting};
  }
  return vms;
}

// Where nothing can be decided, what was decided last holds.
void RoutingLoop::DecideCapacity() {
  if (capacity_ == nullptr || mode_ == Mode::kOff) return;
  const Instant until = clock_->Now() + 2 * config().interval;
  for (size_t i = 0; i < fleets_.size(); ++i) {
    const CapacityDriver::Standing standing = capacity_->Get(i);
    Fleet& fleet = fleets_[i];
    const bool is_fresh = IsFresh(standing);
    if (fleet.row && is_fresh && standing.plan->is_settled(fleet.aim))
      Conclude(*std::exchange(fleet.row, std::nullopt), {.fate = Fate::kDone, .failure = ""});
    if (Problem().empty() && is_fresh) DecideFleet(i, standing);
    if (mode_ == Mode::kEnforce && fleet.has_aim) capacity_->Aim(i, fleet.aim, until);
  }
}

void RoutingLoop::DecideFleet(size_t index, const CapacityDriver::Standing& standing) {
  const CapacityConfig& named = config().capacity[index];
  Fleet& fleet = fleets_[index];
  const auto region = static_cast<size_t>(plan_.RegionOf(named.region));
  const size_t at = region * kNodePrices;
  double nodes = 0;
  bool is_healthy = true;
  for (size_t s = 0; s < services_.size(); ++s) {
    const RoutingRound& round = *services_[s].round;
    nodes += static_cast<double>(round.nodes()[at + kOnDemand] + round.nodes()[at + kSpot]) /
             plan_.PodsOfNode(static_cast<int>(s));
    is_healthy = is_healthy && round.view().sights()[region].reachable;
  }
  const int wanted = static_cast<int>(std::ceil(nodes - 1e-9));
  const int allowed = AllowedVms(named, {standing.vms, wanted, is_healthy});
  const bool is_same = fleet.has_aim && fleet.aim == allowed && fleet.mode == mode_;
  if (is_same || (allowed == standing.vms && !fleet.has_aim)) {
    fleet.has_aim = fleet.has_aim || mode_ == Mode::kEnforce;
    fleet.aim = allowed;
    return;
  }
  RoutingDecision decision{
      .route = FleetSubject(named),
      .target = fmt::format("fleet {} of cloud {}", named.fleet, named.cloud_name),
      .mode = std::string(ModeName(mode_)),
      .policy = plan_.policy_name,
      .objective = plan_.objective,
      .vms = RoutedVms{standing.vms, wanted, allowed},
      .verdict = {.allowed = true, .reason = ""}};
  if (wanted != allowed) {
    decision.reasons.push_back(
        fmt::format("{} VMs are wanted; {} to {}, at most {} more or fewer "
                    "at a decision",
                    wanted, named.vms_min, named.vms_max, named.step));
  }
  if (!is_healthy)
    decision.reasons.push_back("the region is not healthy: no VM of it is taken away");
  const bool acts = mode_ == Mode::kEnforce;
  decision.fate = !acts                     ? Fate::kRecorded
                  : allowed == standing.vms ? Fate::kStayed
                                            : Fate::kInFlight;
  // What is written first is done afterwards.
  const Result<int64_t> row = Append(decision);
  if (!row) return;
  if (fleet.row) {
    Conclude(*fleet.row,
             {.fate = Fate::kFailed,
              .failure = fmt::format("{} VMs were there when another number was decided on",
                                     standing.plan->ready)});
  }
  fleet = {.row = acts && allowed != standing.vms ? std::optional(*row) : std::nullopt,
           .aim = allowed,
           .has_aim = true,
           .mode = mode_};
  if (acts && allowed != standing.vms)
    LogInfo("capacity of {}: {} VMs instead of {}; {} wanted", named.region, allowed, standing.vms,
            wanted);
}

OrderedJson RoutingLoop::CapacityStatus() const {
  OrderedJson list = OrderedJson::array();
  for (size_t i = 0; i < fleets_.size(); ++i) {
    const CapacityConfig& fleet = config().capacity[i];
    const CapacityDriver::Standing standing = capacity_->Get(i);
    OrderedJson one{{"region", fleet.region}, {"fleet", fleet.fleet}, {"cloud", fleet.cloud_name}};
    const auto show = [&](const char* key, auto value) {
      one[key] = standing.plan ? OrderedJson(value) : OrderedJson(nullptr);
    };
    const VmFleetPlan plan = standing.plan.value_or(VmFleetPlan());
    show("ready", plan.ready);
    show("starting", plan.starting);
    show("failed", plan.failed);
    show("read_age_s", Seconds(clock_->Now() - standing.at));
    one["aim"] = standing.aim ? OrderedJson(*standing.aim) : OrderedJson(nullptr);
    one["problem"] = standing.trouble;
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace rudderfish
