// SPDX-License-Identifier: Apache-2.0
#include "run/capacity_source.h"

#include <algorithm>
#include <utility>

#include "cloud/deployment_scale.h"
#include "cloud/vm_fleet.h"

namespace rudderfish {
namespace {

constexpr Duration kRequestWithin = std::chrono::seconds(10);  // The end waits for a request.
constexpr int kVmsPerTurn = 5;  // So that what was dropped stops soon.

class VmSource final : public CapacitySource {
 public:
  VmSource(const CapacityConfig& config, const Clock* clock, const std::atomic<bool>* is_ending)
      : config_(config),
        clock_(clock),
        session_(config.cloud, kRequestWithin, is_ending),
        cloud_(&session_) {}

  Result<CapacitySight> Look(std::optional<int> aim) override {
    if (fleet_ == nullptr) TRY(Open());
    if (aim) {
      TRY_ASSIGN(plan_, fleet_->Look(&cloud_, *aim));
    } else {
      TRY_ASSIGN(const std::vector<Vm> vms, cloud_.List());
      plan_ = fleet_->Plan(vms, kMostCapacity, {});  // Looked at: none of its steps is sent.
      plan_.waits = plan_.without_room = 0;
    }
    return CapacitySight{.ready = plan_.ready,
                         .starting = plan_.starting,
                         .failed = plan_.failed,
                         .standing = plan_.ready + plan_.starting,
                         .is_settled = aim && plan_.is_settled(*aim)};
  }

  Result<void> Carry(int /*aim*/) override { return fleet_->Carry(&cloud_, plan_); }

 private:
  Result<void> Open() {
    TRY(session_.Open());
    VmFleetSpec spec{.name = config_.fleet, .network = config_.network, .zone = config_.zone};
    TRY_ASSIGN(spec.flavor, cloud_.FindFlavor(config_.flavor));
    TRY_ASSIGN(spec.image_id, cloud_.FindImage(config_.image));
    fleet_ = std::make_unique<VmFleet>(
        std::move(spec), VmFleetLimits{.vms_max = kMostCapacity, .steps_per_turn = kVmsPerTurn},
        clock_);
    return {};
  }

  const CapacityConfig& config_;
  const Clock* clock_;
  OpenStackSession session_;
  OpenStackVms cloud_;
  std::unique_ptr<VmFleet> fleet_;  // Null: the cloud has not answered yet.
  VmFleetPlan plan_;
};

class DeploymentSource final : public CapacitySource {
 public:
  DeploymentSource(const CapacityConfig& config, const Clock* clock)
      : config_(config), clock_(clock) {}

  Result<CapacitySight> Look(std::optional<int> aim) override {
    if (client_ == nullptr) {
      TRY_ASSIGN(client_, kube::ApiClient::Open(*config_.cluster->access, clock_));
      scale_ = std::make_unique<DeploymentScale>(client_.get(), config_.deployment);
    }
    TRY_ASSIGN(seen_, scale_->Look());
    const bool is_settled =
        aim && seen_.is_current && seen_.pods == *aim && seen_.ready == seen_.pods;
    return CapacitySight{.ready = seen_.ready,
                         .starting = std::max(0, seen_.pods - seen_.ready),
                         .failed = 0,
                         .standing = seen_.pods,
                         .is_settled = is_settled};
  }

  Result<void> Carry(int aim) override {
    // A person may have switched it off since the aim was set.
    if (seen_.pods == aim || seen_.pods == 0) return {};
    return scale_->Set(aim);
  }

 private:
  const CapacityConfig& config_;
  const Clock* clock_;
  std::unique_ptr<kube::ApiClient> client_;
  std::unique_ptr<DeploymentScale> scale_;
  DeploymentSight seen_;
};

}  // namespace

std::unique_ptr<CapacitySource> MakeCapacitySource(const CapacityConfig& config, const Clock* clock,
                                                   const std::atomic<bool>* is_ending) {
  if (config.cluster) return std::make_unique<DeploymentSource>(config, clock);
  return std::make_unique<VmSource>(config, clock, is_ending);
}

}  // namespace rudderfish
