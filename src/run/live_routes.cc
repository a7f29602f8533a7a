// SPDX-License-Identifier: Apache-2.0
#include "run/live_routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace rudderfish {
namespace {

constexpr Duration kBetweenListens = std::chrono::seconds(2);
constexpr Duration kReadWithin = std::chrono::seconds(3);

}  // namespace

void LiveRoutes::Open(std::vector<RouteDriver::Route> paths, std::unique_ptr<XdsServer> xds) {
  driver_.reset();  // Waits for the requests that are being sent.
  xds_ = std::move(xds);
  xds_due_ = clock_->Now();
  routes_.assign(paths.size(), {});
  driver_ = std::make_unique<RouteDriver>(std::move(paths), clock_);
}

void LiveRoutes::Serve() {
  if (xds_ == nullptr || xds_->port() != 0 || clock_->Now() < xds_due_) return;
  xds_due_ = clock_->Now() + kBetweenListens;
  const Result<void> listens = xds_->Listen(config().xds->listen);
  if (listens) LogInfo("xDS is served on {}", config().xds->listen.address);
  if (!listens && xds_trouble_.empty()) LogError("{}", listens.error().message);
  xds_trouble_ = listens ? "" : listens.error().message;
}

void LiveRoutes::HangUp() {
  if (xds_ == nullptr) return;
  xds_->HangUp();
  xds_trouble_.clear();
}

void LiveRoutes::Read() {
  for (size_t i = 0; i < routes_.size(); ++i) {
    if (driver_->is_busy(i)) continue;  // A split is being set there.
    routes_[i].is_awaited = true;
    driver_->Read(i);
  }
  reading_since_ = clock_->Now();
}

bool LiveRoutes::IsRead() const {
  return clock_->Now() - reading_since_ > kReadWithin ||
         std::none_of(routes_.begin(), routes_.end(),
                      [](const LiveRoute& one) { return one.is_awaited; });
}

std::optional<LiveRoutes::SetEnd> LiveRoutes::Take() {
  while (std::optional<RouteDriver::Answer> answer = driver_->Take()) {
    LiveRoute& route = routes_[answer->route];
    const RouteConfig& named = config().routes[answer->route];
    const bool was_in_trouble = !route.trouble.empty();
    route.is_awaited = false;
    route.trouble = answer->standing ? "" : answer->standing.error().message;
    if (answer->standing) {
      route.standing = *std::move(answer->standing);
      Close(named, &*route.standing);
      route.read_at = answer->at;
      if (was_in_trouble) LogInfo("route {}: decides again", named.name);
    } else if (!was_in_trouble) {
      LogError("route {}: {}", named.name, route.trouble);
    }
    if (answer->is_set) return SetEnd{answer->route, answer->at, route.trouble};
  }
  return std::nullopt;
}

// Regions that may not serve what comes by a route.
void LiveRoutes::Close(const RouteConfig& named, StandingWeights* standing) const {
  const Split split = SplitOf(*standing, named.backends);
  for (size_t i = 0; i < split.size(); ++i) {
    const int region = plan_->RegionOf(split[i].region);
    standing->backends[i].is_closed = region >= 0 && !plan_->Allows(named, region);
  }
}

void LiveRoutes::FollowHealth(const Signals& signals) {
  std::vector<std::string> healthy;
  for (const Region& region : plan_->world->network->regions) {
    const SignalValue* value = signals.Find(kHealthySignal, region.name);
    const bool is_fresh =
        value != nullptr && clock_->Now() - value->at <= config().limits.signals_max_age;
    if (is_fresh && value->value > 0) healthy.push_back(region.name);
  }
  for (size_t i = 0; i < routes_.size(); ++i) {
    if (!routes_[i].standing) continue;
    TellHealth(healthy, config().routes[i].backends, &*routes_[i].standing);
    TellEmptyRegions(signals, i);
  }
}

// Whatever a data path shows: where no pod is ready, not even a request for probing is served.
void LiveRoutes::TellEmptyRegions(const Signals& signals, size_t route) {
  const RouteConfig& named = config().routes[route];
  const std::string service = plan_->ServiceName(plan_->ServiceOf(named));
  const std::string signal =
      service.empty() ? std::string(kPodsSignal) : fmt::format("{}/{}", service, kPodsSignal);
  StandingWeights& standing = *routes_[route].standing;
  const Split split = SplitOf(standing, named.backends);
  for (size_t i = 0; i < split.size(); ++i) {
    const SignalValue* pods = signals.Find(signal, split[i].region);
    if (pods == nullptr || pods->value >= 1 ||
        clock_->Now() - pods->at > config().limits.signals_max_age)
      continue;
    standing.backends[i].is_healthy = false;
    standing.backends[i].health = fmt::format("{} says that no pod serves", signal);
  }
}

RouteNow LiveRoutes::Now(size_t route) const {
  const LiveRoute& one = routes_[route];
  return {.standing = one.standing ? &*one.standing : nullptr,
          .weight_sum = driver_->weight_sum(route),
          .is_current = one.trouble.empty() && !driver_->is_busy(route),
          .why_held = ""};
}

std::string LiveRoutes::Trouble() const {
  for (size_t i = 0; i < routes_.size(); ++i) {
    if (!routes_[i].trouble.empty())
      return fmt::format("route {}: {}", config().routes[i].name, routes_[i].trouble);
  }
  return xds_trouble_;
}

}  // namespace rudderfish
