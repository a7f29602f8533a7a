// SPDX-License-Identifier: Apache-2.0
#include "run/lease_seat.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

namespace rudderfish {

std::string NewIdentity(Rng rng) {
  char name[256] = "";
  if (::gethostname(name, sizeof name - 1) != 0) name[0] = '\0';
  return fmt::format("{}_{:08x}", name, static_cast<uint32_t>(rng.Next64()));
}

kube::LeaseOptions LeaseOptionsOf(const LeaderElectionConfig& config, std::string identity) {
  return {.name_space = config.lease_namespace,
          .name = config.lease_name,
          .identity = std::move(identity),
          .duration = config.duration,
          .renew_deadline = config.duration * 2 / 3,
          .retry = config.duration * 2 / 15,
          .annotation = kStandingAnnotation};
}

}  // namespace rudderfish
