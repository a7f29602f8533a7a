// SPDX-License-Identifier: Apache-2.0
#include "sim/region_weather.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "base/normals.h"

namespace rudderfish {
namespace {

constexpr uint64_t kTraitStream = 0x7265676961;           // Of the seed of the world.
constexpr uint64_t kNoticeStream = 0x6e6f74696365;        // Of the seed of the episode,
constexpr uint64_t kReplayStream = 0x7265706c6179;        // likewise,
constexpr uint64_t kServiceStream = 0x73657276696365;     // likewise,
constexpr uint64_t kBrownoutStream = 0x62726f776e6f7574;  // likewise.
constexpr double kWeatherHourS = 3600, kWeatherDayS = 86400;
constexpr double kSlowS = 3600, kFastS = 300, kPriceS = 7200;  // Of wanderings.
constexpr double kFewRequests = 50;  // Below so many of an interval counts are drawn one by one.

// Ornstein and Uhlenbeck: a step of `seconds` of a process with this deviation and memory.
double Wander(double value, double deviation, double memory_s, double seconds, double normal) {
  const double kept = std::exp(-seconds / memory_s);
  return kept * value + deviation * std::sqrt(1 - kept * kept) * normal;
}

double ChanceOf(double per_day, double seconds) {
  return -std::expm1(-per_day * seconds / kWeatherDayS);
}

// A count with this mean, from one uniform and one normal number. Of many, the normal law is as
// good: at 50 its distribution function is within 2 %.
double Poisson(double mean, double uniform, double normal) {
  if (mean >= kFewRequests) return std::max(0.0, std::round(mean + std::sqrt(mean) * normal));
  double probability = std::exp(-mean), sum = probability;
  int count = 0;
  while (sum < uniform && count < 1000) {
    probability *= mean / ++count;
    sum += probability;
  }
  return count;
}

double Between(double low, double high, double uniform) { return low + (high - low) * uniform; }

}  // namespace

void RegionWeatherSource::Flash::Begin(double top_of, double rise, double fall) {
  if (age_s >= 0) return;
  *this = {.top = top_of, .rise_s = rise, .fall_s = fall, .age_s = 0};
}

double RegionWeatherSource::Flash::Advance(double seconds) {
  if (age_s < 0) return 1;
  age_s += seconds;
  if (age_s <= rise_s) return 1 + (top - 1) * age_s / rise_s;
  const double left = std::exp(-(age_s - rise_s) / fall_s);
  if (left < 0.01) age_s = -1;
  return 1 + (top - 1) * left;
}

RegionWeatherSource::RegionWeatherSource(std::shared_ptr<const RegionWorld> world)
    : world_(std::move(world)) {
  const int n = world_->network->size();
  for (int r = 0; r < n; ++r) {
    // By the name: a region keeps its traits among other regions.
    uint64_t key = kTraitStream;
    for (const char letter : world_->network->regions[r].name)
      key = key * 1099511628211ULL + static_cast<unsigned char>(letter);
    Rng rng(world_->seed, key);
    traits_.push_back({.storm = std::exp(rng.Uniform(-1.1, 1.1)),
                       .flash = std::exp(rng.Uniform(-1, 1)),
                       .noise = std::exp(rng.Uniform(-0.35, 0.35))});
  }
  states_.resize(static_cast<size_t>(n));
  for (auto* one : {&wandering_, &demand_})
    one->resize(world_->services.size() * static_cast<size_t>(n));
  weather_.resize(static_cast<size_t>(n));
}

void RegionWeatherSource::Start(const RegionEpisode& episode) {
  variant_ = episode.variant;
  rng_ = Rng(episode.seed);
  notice_rng_ = Rng(episode.seed, kNoticeStream);
  service_rng_ = Rng(episode.seed, kServiceStream);
  brownout_rng_ = Rng(episode.seed, kBrownoutStream);
  for (double& one : wandering_) one = world_->chance.service_noise * service_rng_.Normal();
  replay_.reset();
  if (variant_.Has(Disturbance::kTrace))
    replay_.emplace(*world_->demand, episode.use, Rng(episode.seed, kReplayStream).Uniform());
  begin_h_ = rng_.Uniform(0, kHoursOfDay);
  step_ = -1;
  world_flash_ = {};
  const RegionChance& chance = world_->chance;
  const double storm_s = chance.storm_s,
               between_s = chance.storm_per_day > 0 ? kWeatherDayS / chance.storm_per_day : 1e18;
  for (Wandering& state : states_) {
    state = {.slow = chance.slow_noise * rng_.Normal(),
             .fast = chance.fast_noise * rng_.Normal(),
             .price = chance.price_noise * rng_.Normal()};
    state.storm = rng_.Uniform() < storm_s / (storm_s + between_s);
  }
  Step();
}

double RegionWeatherSource::hour_utc() const {
  return std::fmod(begin_h_ + (step_ + 0.5) * world_->interval_s / kWeatherHourS, kHoursOfDay);
}

void RegionWeatherSource::Step() {
  ++step_;
  const RegionChance& chance = world_->chance;
  const double seconds = world_->interval_s;
  const double begins = rng_.Uniform(), top = rng_.Uniform();
  const double rise = rng_.Uniform(), fall = rng_.Uniform();
  if (begins < ChanceOf(chance.world_flash_per_day, seconds)) {
    world_flash_.Begin(Between(chance.flash_low, chance.flash_high, top), Between(120, 420, rise),
                       Between(240, 840, fall));
  }
  const double world_flash = world_flash_.Advance(seconds);
  for (int r = 0; r < static_cast<int>(states_.size()); ++r) StepRegion(r, world_flash);
  if (!demand_.empty()) StepServices();
  if (variant_.Has(Disturbance::kBrownout)) StepBrownouts();
}

// A part of a region, such as one of its data centres, serves nothing for some minutes.
void RegionWeatherSource::StepBrownouts() {
  const RegionChance& chance = world_->chance;
  const double seconds = world_->interval_s;
  for (size_t r = 0; r < weather_.size(); ++r) {
    const double begins = brownout_rng_.Uniform(), lasts = brownout_rng_.Uniform(),
                 share = brownout_rng_.Uniform();
    Wandering& state = states_[r];
    state.dark_s = std::max(0.0, state.dark_s - seconds);
    if (begins < ChanceOf(chance.brownout_per_day, seconds) && state.dark_s <= 0) {
      state.dark_s = Between(300, 1500, lasts);
      state.dark = Between(chance.brownout_low, chance.brownout_high, share);
    }
    weather_[r].dark = state.dark_s > 0 ? state.dark : 0;
  }
}

// Each has its part of what its region's users ask for, and wanders about that; a trace says what
// all of them do.
void RegionWeatherSource::StepServices() {
  const double seconds = world_->interval_s, noise = world_->chance.service_noise;
  size_t at = 0;
  for (const SharingService& one : world_->services) {
    for (RegionWeather& weather : weather_) {
      double& wandering = wandering_[at];
      wandering = Wander(wandering, noise, kSlowS, seconds, service_rng_.Normal());
      const double mean_per_s =
          weather.mean_per_s * one.demand * (replay_ ? 1 : std::exp(wandering - noise * noise / 2));
      const double uniform = service_rng_.Uniform(), normal = service_rng_.Normal();
      demand_[at++] = Poisson(mean_per_s * seconds, uniform, normal) / seconds;
    }
  }
}

double RegionWeatherSource::DayOf(const Region& place) const {
  const RegionChance& chance = world_->chance;
  if (replay_) {
    constexpr double kDatelineH = 12;  // No clock is further behind UTC.
    const double seconds =
        (step_ + 0.5) * world_->interval_s + (place.utc_offset_h + kDatelineH) * kWeatherHourS;
    return (1 + chance.night_share) / 2 * replay_->PerS(seconds);
  }
  const double hour = hour_utc() + place.utc_offset_h - chance.peak_hour;
  const double day = (1 + std::cos(2 * std::numbers::pi * hour / kHoursOfDay)) / 2;
  return chance.night_share + (1 - chance.night_share) * day;
}

void RegionWeatherSource::StepRegion(int region, double world_flash) {
  const RegionChance& chance = world_->chance;
  const Region& place = world_->network->regions[region];
  const Traits& traits = traits_[region];
  Wandering& state = states_[region];
  RegionWeather& weather = weather_[region];
  const double seconds = world_->interval_s;
  // Always as many numbers, in the same order.
  std::array<uint64_t, 4> words;
  for (uint64_t& word : words) word = rng_.Next64();
  std::array<double, 4> normals;
  NormalsOf(words, normals);
  std::array<double, 10> uniforms;
  for (double& uniform : uniforms) uniform = rng_.Uniform();
  const auto [poisson, flashes, top, rise, fall, storms, taken, share, outage, start] = uniforms;

  state.slow = Wander(state.slow, chance.slow_noise * traits.noise, kSlowS, seconds, normals[0]);
  state.fast = Wander(state.fast, chance.fast_noise * traits.noise, kFastS, seconds, normals[1]);
  state.price = Wander(state.price, chance.price_noise, kPriceS, seconds, normals[2]);
  if (flashes < ChanceOf(chance.flash_per_day * traits.flash, seconds)) {
    state.flash.Begin(Between(chance.flash_low, chance.flash_high, top), Between(120, 420, rise),
                      Between(240, 840, fall));
  }
  const double flash = state.flash.Advance(seconds);
  weather.mean_per_s = place.peak_per_s * DayOf(place) *
                       (replay_ ? 1 : std::exp(state.slow + state.fast)) *
                       (variant_.Has(Disturbance::kFlash) ? flash * world_flash : 1);
  weather.demand_per_s = Poisson(weather.mean_per_s * seconds, poisson, normals[3]) / seconds;

  if (state.storm) {
    state.storm = storms >= -std::expm1(-seconds / chance.storm_s);
  } else {
    state.storm = storms < ChanceOf(chance.storm_per_day * traits.storm, seconds);
  }
  const bool spot = variant_.Has(Disturbance::kSpot);
  const double per_h = state.storm ? chance.storm_reclaim_per_h : chance.reclaim_per_h;
  weather.storm = spot && state.storm;
  weather.notice =
      notice_rng_.Uniform() < (state.storm ? chance.notice : chance.false_notice) && spot;
  weather.reclaimed =
      spot && taken < -std::expm1(-per_h * seconds / kWeatherHourS) ? Between(0.1, 0.7, share) : 0;
  weather.spot_granted = !spot ? 0 : state.storm ? chance.storm_grant : 1;
  weather.spot_per_h =
      place.spot_per_h * (variant_.Has(Disturbance::kPrice) ? std::exp(state.price) : 1);
  weather.start_s = Between(place.start_low_s, place.start_high_s, start);

  state.out_s = std::max(0.0, state.out_s - seconds);
  if (outage < ChanceOf(chance.outage_per_day, seconds) && state.out_s <= 0)
    state.out_s = Between(480, 1980, share);
  weather.out = variant_.Has(Disturbance::kOutage) && state.out_s > 0;
  weather.carbon_g_per_kwh = place.carbon_g_per_kwh[static_cast<size_t>(hour_utc()) % kHoursOfDay];
}

}  // namespace rudderfish
