// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/rng.h"
#include "scenario/region_world.h"

// What happens to regions by chance, interval by interval: demand, prices, spot nodes that are
// taken away, outages. A pure function of (world, episode): it draws the same numbers
// whatever a policy does and whichever disturbances a variant has, so that policies meet the same
// episode, and variants differ only in what they disturb. Allocates nothing once built.

namespace rudderfish {

struct RegionWeather {
  double mean_per_s = 0;    // Demand that is expected of this interval,
  double demand_per_s = 0;  // and that came.
  double spot_per_h = 0;    // Dollars.
  double carbon_g_per_kwh = 0;
  bool storm = false;       // Hidden.
  double reclaimed = 0;     // Share of ready spot nodes that is taken away.
  double spot_granted = 1;  // Share of orders of spot nodes that is met.
  bool notice = false;      // The provider warns of a storm; not always, and not always rightly.
  double start_s = 0;       // Of nodes that are ordered now.
  bool out = false;         // Serves nothing.
  double dark = 0;          // Share of its nodes that serve nothing for now.
};

// Which episode: `use` says which part of a trace is replayed, the seed all else.
struct RegionEpisode {
  const RegionVariant& variant;
  uint64_t seed = 1;
  EpisodeUse use = EpisodeUse::kLearning;
};

class RegionWeatherSource {
 public:
  explicit RegionWeatherSource(std::shared_ptr<const RegionWorld> world);

  void Start(const RegionEpisode& episode);
  void Step();

  const std::vector<RegionWeather>& regions() const { return weather_; }
  // What came for one of several services, or for the only one.
  double DemandOf(int service, int region) const {
    if (demand_.empty()) return weather_[static_cast<size_t>(region)].demand_per_s;
    return demand_[static_cast<size_t>(service) * weather_.size() + static_cast<size_t>(region)];
  }
  double hour_utc() const;  // Of the middle of the interval, in [0, 24).

 private:
  struct Flash {
    double top = 1;  // Times the demand.
    double rise_s = 1, fall_s = 1;
    double age_s = -1;  // Negative: there is none.

    void Begin(double top_of, double rise, double fall);
    double Advance(double seconds);  // The factor in this interval.
  };

  // Of a region, for good: how it differs from the mean.
  struct Traits {
    double storm = 1, flash = 1, noise = 1;
  };

  struct Wandering {
    double slow = 0, fast = 0, price = 0;
    bool storm = false;
    double out_s = 0;             // Left of an outage,
    double dark_s = 0, dark = 0;  // and of a brown-out.
    Flash flash;
  };

  // Of the demand at the busiest hour, in the mean, without what comes by chance.
  double DayOf(const Region& place) const;
  void StepRegion(int region, double world_flash);
  void StepServices();
  void StepBrownouts();

  std::shared_ptr<const RegionWorld> world_;
  RegionVariant variant_;
  Rng rng_{0}, notice_rng_{0}, service_rng_{0}, brownout_rng_{0};
  double begin_h_ = 0;
  int step_ = 0;
  Flash world_flash_;
  std::vector<Traits> traits_;
  std::vector<Wandering> states_;
  std::vector<RegionWeather> weather_;
  std::vector<double> wandering_, demand_;  // [service][region] Of several services.
  std::optional<TraceReplay> replay_;
};

}  // namespace rudderfish
