// SPDX-License-Identifier: Apache-2.0
#include "run/capacity.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace rudderfish {
namespace {

constexpr std::chrono::milliseconds kBusyTurn(1000), kIdleTurn(5000);
constexpr Duration kRequestWithin = std::chrono::seconds(10);  // The end waits for a request.
constexpr int kVmsPerTurn = 5;  // So that what was dropped stops soon.
constexpr int kMostVms = 1000;

Result<CapacityConfig> FleetAt(const std::string& region, const YamlNode& node,
                               const std::filesystem::path& folder) {
  CapacityConfig one{.region = region, .node = node};
  TRY_ASSIGN(YamlMap map, node.AsMap());
  TRY_ASSIGN(one.cloud_name, map.RequiredString("cloud"));
  TRY_ASSIGN(const std::string clouds, map.OptionalString("clouds", ""));
  if (!clouds.empty()) one.clouds = folder / clouds;
  TRY_ASSIGN(const YamlNode fleet, map.Required("fleet"));
  TRY_ASSIGN(one.fleet, fleet.AsString());
  if (const Result<void> fits = CheckFleetName(one.fleet); !fits)
    return fleet.Refuse(fits.error().message);
  TRY_ASSIGN(one.flavor, map.RequiredString("flavor"));
  TRY_ASSIGN(one.image, map.RequiredString("image"));
  TRY_ASSIGN(one.network, map.OptionalString("network", "auto"));
  TRY_ASSIGN(one.zone, map.OptionalString("zone", ""));
  TRY_ASSIGN(const int64_t least, map.OptionalInt("vms_min", 0, kMostVms, 1));
  TRY_ASSIGN(const int64_t most, map.RequiredInt("vms_max", 1, kMostVms));
  TRY_ASSIGN(const int64_t step, map.OptionalInt("step", 1, kMostVms, 2));
  TRY(map.Finish());
  if (least > most) return node.Refuse("`vms_min` is more than `vms_max`");
  one.vms_min = static_cast<int>(least);
  one.vms_max = static_cast<int>(most);
  one.step = static_cast<int>(step);
  return one;
}

}  // namespace

Result<std::vector<CapacityConfig>> ParseCapacity(const YamlNode& node,
                                                  const std::filesystem::path& folder) {
  std::vector<CapacityConfig> fleets;
  TRY_ASSIGN(YamlMap map, node.AsMap());
  for (const auto& [region, at] : map.Entries()) {
    TRY_ASSIGN(CapacityConfig one, FleetAt(region, at, folder));
    fleets.push_back(std::move(one));
  }
  return fleets;
}

Result<void> ReadClouds(std::vector<CapacityConfig>* fleets) {
  for (CapacityConfig& one : *fleets) {
    Result<OpenStackCloud> read = ReadClouds(one.clouds, one.cloud_name);
    if (!read) return one.node.Refuse(read.error().message);
    one.cloud = *std::move(read);
    for (const CapacityConfig& other : *fleets) {
      if (&other == &one) break;
      if (other.fleet == one.fleet && other.cloud.auth_url == one.cloud.auth_url &&
          other.cloud.region == one.cloud.region && other.cloud.project == one.cloud.project &&
          other.cloud.credential_id == one.cloud.credential_id)
        return one.node.Refuse(
            fmt::format("region {} has the fleet {} of the same cloud", other.region, one.fleet));
    }
  }
  return {};
}

int AllowedVms(const CapacityConfig& config, const FleetNeed& need) {
  const int standing = need.standing;
  const int wanted = need.is_healthy ? need.wanted : std::max(need.wanted, standing);
  // Bounds come last: a fleet that is beyond them comes back step by step, too.
  const int bounded = std::clamp(wanted, config.vms_min, config.vms_max);
  return std::clamp(bounded, standing - config.step, standing + config.step);
}

CapacityDriver::CapacityDriver(std::vector<CapacityConfig> fleets, const Clock* clock)
    : fleets_(std::move(fleets)), clock_(clock), states_(fleets_.size()) {
  for (size_t i = 0; i < fleets_.size(); ++i) threads_.emplace_back([this, i] { Work(i); });
}

CapacityDriver::~CapacityDriver() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void CapacityDriver::Aim(size_t fleet, int vms, Instant until) {
  const std::lock_guard lock(mutex_);
  Fleet& state = states_[fleet];
  if (state.standing.aim != vms) {
    state.is_new = true;
    changed_.notify_all();
  }
  state.standing.aim = vms;
  state.until = until;
}

void CapacityDriver::DropAims() {
  const std::lock_guard lock(mutex_);
  for (Fleet& state : states_) state.standing.aim.reset();
}

CapacityDriver::Standing CapacityDriver::Get(size_t fleet) const {
  const std::lock_guard lock(mutex_);
  return states_[fleet].standing;
}

std::optional<int> CapacityDriver::AimOf(size_t index) const {
  const std::lock_guard lock(mutex_);
  const Fleet& state = states_[index];
  if (!state.standing.aim || clock_->Now() >= state.until) return std::nullopt;
  return state.standing.aim;
}

Result<bool> CapacityDriver::Turn(size_t index, OpenStackVms* cloud, VmFleet* fleet) {
  const std::optional<int> aim = AimOf(index);
  VmFleetPlan plan;
  if (aim) {
    TRY_ASSIGN(plan, fleet->Look(cloud, *aim));
  } else {
    TRY_ASSIGN(const std::vector<Vm> vms, cloud->List());
    plan = fleet->Plan(vms, kMostVms, {});  // Looked at: none of its steps is sent.
    plan.waits = plan.without_room = 0;
  }
  {
    const std::lock_guard lock(mutex_);
    Standing& standing = states_[index].standing;
    standing.plan = plan;
    standing.vms = plan.ready + plan.starting;
    standing.at = clock_->Now();
  }
  if (!aim || AimOf(index) != aim) return false;
  TRY(fleet->Carry(cloud, plan));
  return !plan.is_settled(*aim);
}

void CapacityDriver::Work(size_t index) {
  const CapacityConfig& config = fleets_[index];
  OpenStackSession session(config.cloud, kRequestWithin, &is_ending_);
  OpenStackVms cloud(&session);
  std::unique_ptr<VmFleet> fleet;
  const auto open = [&]() -> Result<void> {
    TRY(session.Open());
    VmFleetSpec spec{.name = config.fleet, .network = config.network, .zone = config.zone};
    TRY_ASSIGN(spec.flavor, cloud.FindFlavor(config.flavor));
    TRY_ASSIGN(spec.image_id, cloud.FindImage(config.image));
    fleet = std::make_unique<VmFleet>(
        std::move(spec), VmFleetLimits{.vms_max = kMostVms, .steps_per_turn = kVmsPerTurn}, clock_);
    return {};
  };
  std::string told;
  while (true) {
    Result<bool> busy = false;
    if (fleet == nullptr) {
      if (const Result<void> opened = open(); !opened) busy = tl::unexpected(opened.error());
    }
    if (fleet != nullptr) busy = Turn(index, &cloud, fleet.get());
    const std::string trouble = busy ? "" : busy.error().message;
    if (trouble.empty() != told.empty()) {
      if (trouble.empty()) LogInfo("capacity of {}: goes on", config.region);
      if (!trouble.empty()) LogError("capacity of {}: {}", config.region, trouble);
      told = trouble;
    }
    std::unique_lock lock(mutex_);
    states_[index].standing.trouble = trouble;
    changed_.wait_for(lock, busy && *busy ? kBusyTurn : kIdleTurn,
                      [&] { return is_ending_ || std::exchange(states_[index].is_new, false); });
    if (is_ending_) return;
  }
}

}  // namespace rudderfish
