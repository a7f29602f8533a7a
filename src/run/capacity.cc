// SPDX-License-Identifier: Apache-2.0
#include "run/capacity.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/text_table.h"
#include "cloud/vm_fleet.h"
#include "run/capacity_source.h"

namespace rudderfish {
namespace {

constexpr std::chrono::milliseconds kBusyTurn(1000), kIdleTurn(5000);

// No pod at all means that a person has switched it off; no VM at all means nothing.
Result<void> ReadBounds(std::string_view unit, YamlMap* map, CapacityConfig* one) {
  const std::string of_least = fmt::format("{}_min", unit), of_most = fmt::format("{}_max", unit);
  TRY_ASSIGN(const int64_t least,
             map->OptionalInt(of_least, one->has_pods() ? 1 : 0, kMostCapacity, 1));
  TRY_ASSIGN(const int64_t most, map->RequiredInt(of_most, 1, kMostCapacity));
  TRY_ASSIGN(const int64_t step, map->OptionalInt("step", 1, kMostCapacity, 2));
  if (least > most)
    return one->node.Refuse(fmt::format("`{}` is more than `{}`", of_least, of_most));
  one->least = static_cast<int>(least);
  one->most = static_cast<int>(most);
  one->step = static_cast<int>(step);
  return {};
}

Result<void> ReadFleet(const std::filesystem::path& folder, YamlMap* map, CapacityConfig* one) {
  TRY_ASSIGN(one->cloud_name, map->RequiredString("cloud"));
  TRY_ASSIGN(const std::string clouds, map->OptionalString("clouds", ""));
  if (!clouds.empty()) one->clouds = folder / clouds;
  TRY_ASSIGN(const YamlNode fleet, map->Required("fleet"));
  TRY_ASSIGN(one->fleet, fleet.AsString());
  if (const Result<void> fits = CheckFleetName(one->fleet); !fits)
    return fleet.Refuse(fits.error().message);
  TRY_ASSIGN(one->flavor, map->RequiredString("flavor"));
  TRY_ASSIGN(one->image, map->RequiredString("image"));
  TRY_ASSIGN(one->network, map->OptionalString("network", "auto"));
  TRY_ASSIGN(one->zone, map->OptionalString("zone", ""));
  return ReadBounds("vms", map, one);
}

Result<void> ReadPods(const YamlNode& node, const std::filesystem::path& folder, YamlMap* map,
                      CapacityConfig* one) {
  TRY_ASSIGN(const std::string text, node.AsString());
  Result<ObjectChoice> choice = ParseObjectChoice(text);
  if (!choice) return node.Refuse(choice.error().message);
  one->deployment = *std::move(choice);
  TRY_ASSIGN(const std::vector<YamlNode> managers, map->OptionalList("may_change"));
  for (const YamlNode& manager : managers) {
    TRY_ASSIGN(std::string name, manager.AsString());
    one->deployment.may_change.push_back(std::move(name));
  }
  one->cluster = OtherCluster{.is_named = false};
  if (const auto cluster = map->Optional("cluster")) {
    TRY_ASSIGN(one->cluster, ReadOtherCluster(*cluster, folder));
  }
  return ReadBounds("pods", map, one);
}

Result<CapacityConfig> CapacityAt(const std::string& key, const YamlNode& node,
                                  const std::filesystem::path& folder) {
  CapacityConfig one{.region = key, .node = node};
  TRY_ASSIGN(YamlMap map, node.AsMap());
  if (const auto deployment = map.Optional("deployment")) {
    if (const size_t slash = key.find('/'); slash != key.npos) {
      one.region = key.substr(0, slash);
      one.service = key.substr(slash + 1);
    }
    TRY(ReadPods(*deployment, folder, &map, &one));
  } else {
    TRY(ReadFleet(folder, &map, &one));
  }
  TRY(map.Finish());
  return one;
}

bool IsSame(const CapacityConfig& one, const CapacityConfig& other) {
  if (one.has_pods() != other.has_pods()) return false;
  if (one.has_pods()) {
    const auto server = [](const CapacityConfig& of) {
      return of.cluster->access ? of.cluster->access->server : "";
    };
    return one.deployment.name == other.deployment.name &&
           one.deployment.name_space == other.deployment.name_space && server(one) == server(other);
  }
  return other.fleet == one.fleet && other.cloud.auth_url == one.cloud.auth_url &&
         other.cloud.region == one.cloud.region && other.cloud.project == one.cloud.project &&
         other.cloud.credential_id == one.cloud.credential_id;
}

}  // namespace

Result<std::vector<CapacityConfig>> ParseCapacity(const YamlNode& node,
                                                  const std::filesystem::path& folder) {
  std::vector<CapacityConfig> fleets;
  TRY_ASSIGN(YamlMap map, node.AsMap());
  for (const auto& [region, at] : map.Entries()) {
    TRY_ASSIGN(CapacityConfig one, CapacityAt(region, at, folder));
    fleets.push_back(std::move(one));
  }
  return fleets;
}

Result<void> ReadClouds(std::vector<CapacityConfig>* fleets) {
  for (CapacityConfig& one : *fleets) {
    if (one.has_pods()) {
      TRY(FindOtherCluster(one.node, &*one.cluster));
    } else {
      Result<OpenStackCloud> read = ReadClouds(one.clouds, one.cloud_name);
      if (!read) return one.node.Refuse(read.error().message);
      one.cloud = *std::move(read);
    }
    for (const CapacityConfig& other : *fleets) {
      if (&other == &one) break;
      if (!IsSame(one, other)) continue;
      return one.node.Refuse(
          one.has_pods() ? fmt::format("region {} has the deployment {}/{} of the same cluster",
                                       other.region, one.deployment.name_space, one.deployment.name)
                         : fmt::format("region {} has the fleet {} of the same cloud", other.region,
                                       one.fleet));
    }
  }
  return {};
}

std::string CapacityConfig::Unit(int count) const {
  return Counted(count, has_pods() ? "pod" : "VM");
}

std::string CapacityConfig::Subject() const {
  return fmt::format("capacity/{}{}{}", region, service.empty() ? "" : "/", service);
}

std::string CapacityConfig::Target() const {
  if (!has_pods()) return fmt::format("fleet {} of cloud {}", fleet, cloud_name);
  return fmt::format("deployment {}/{}{}", deployment.name_space, deployment.name,
                     cluster->context.empty() ? "" : " of " + cluster->context);
}

int AllowedCapacity(const CapacityConfig& config, const FleetNeed& need) {
  const int standing = need.standing;
  if (config.has_pods() && standing == 0) return 0;
  const int wanted = need.is_healthy ? need.wanted : std::max(need.wanted, standing);
  // Bounds come last: what is beyond them comes back step by step, too.
  const int bounded = std::clamp(wanted, config.least, config.most);
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

void CapacityDriver::Aim(size_t fleet, int count, Instant until) {
  const std::lock_guard lock(mutex_);
  Fleet& state = states_[fleet];
  if (state.standing.aim != count) {
    state.is_new = true;
    changed_.notify_all();
  }
  state.standing.aim = count;
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

Result<bool> CapacityDriver::Turn(size_t index, CapacitySource* source) {
  const std::optional<int> aim = AimOf(index);
  TRY_ASSIGN(const CapacitySight sight, source->Look(aim));
  {
    const std::lock_guard lock(mutex_);
    Standing& standing = states_[index].standing;
    standing.sight = sight;
    standing.sight_of = aim;
    standing.at = clock_->Now();
  }
  if (!aim || AimOf(index) != aim) return false;
  TRY(source->Carry(*aim));
  return !sight.is_settled;
}

void CapacityDriver::Work(size_t index) {
  const CapacityConfig& config = fleets_[index];
  const std::unique_ptr<CapacitySource> source = MakeCapacitySource(config, clock_, &is_ending_);
  std::string told;
  while (true) {
    const Result<bool> busy = Turn(index, source.get());
    const std::string trouble = busy ? "" : busy.error().message;
    if (trouble.empty() != told.empty()) {
      if (trouble.empty()) LogInfo("capacity of {}: decides again", config.region);
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
