// SPDX-License-Identifier: Apache-2.0
#include "policy/region_autoscaler.h"

#include <algorithm>
#include <cmath>

namespace rudderfish {

RegionAutoscaler::RegionAutoscaler(const RegionAutoscaling& options, int regions)
    : options_(options),
      aims_(static_cast<size_t>(regions), {options.use, options.spot_share}),
      recent_(static_cast<size_t>(regions) * kIntervalsMax) {}

void RegionAutoscaler::Decide(const RoutingQuestion& question, std::span<const double> load_per_s,
                              std::span<int> nodes) {
  const RegionNetwork& network = question.laws->network();
  const int window =
      std::clamp(static_cast<int>(options_.down_s / question.interval_s), 0, kIntervalsMax - 1);
  for (int r = 0; r < network.size(); ++r) {
    const RegionSight& seen = question.regions[r];
    const double node_per_s = network.service.node_per_s() * aims_[r].use;
    const int now = seen.nodes();
    int wanted = std::max(1, static_cast<int>(std::ceil(load_per_s[r] / node_per_s - 1e-9)));
    if (now > 0 && std::abs(load_per_s[r] / (node_per_s * now) - 1) <= options_.tolerance)
      wanted = now;
    int* recent = recent_.data() + static_cast<size_t>(r) * kIntervalsMax;
    recent[step_ % kIntervalsMax] = wanted;
    // Fewer than now only where nothing of late asked for more.
    for (int back = 1; wanted < now && back <= std::min(window, step_); ++back) {
      wanted = std::min(now, std::max(wanted, recent[(step_ - back) % kIntervalsMax]));
    }
    wanted = std::min(wanted, network.regions[r].nodes_max);
    const int spot =
        question.has_spot ? static_cast<int>(std::lround(aims_[r].spot_share * wanted)) : 0;
    // Nodes of one price are given back once the nodes in their place serve.
    const int aimed[kNodePrices] = {wanted - spot, spot};
    for (int price = 0; price < kNodePrices; ++price) {
      const int kept = std::min(seen.nodes(price), std::max(0, wanted - seen.ready[1 - price]));
      nodes[static_cast<size_t>(r) * kNodePrices + price] = std::max(aimed[price], kept);
    }
  }
  ++step_;
}

}  // namespace rudderfish
