// SPDX-License-Identifier: Apache-2.0
#include "run/routing_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/log.h"
#include "base/units.h"
#include "run/host.h"

namespace rudderfish {
namespace {

constexpr std::chrono::milliseconds kBetweenAnswers(20);
// A change that is sent later than this was decided on what is old.
constexpr Duration kSendWithin = std::chrono::seconds(5);
constexpr Duration kBetweenListens = std::chrono::seconds(2);
constexpr Duration kReadWithin = std::chrono::seconds(3);
constexpr std::string_view kWouldRoute = "WouldRoute", kRouted = "Routed";

}  // namespace

Result<std::unique_ptr<RoutingLoop>> RoutingLoop::Start(Ready ready, Host* host) {
  std::unique_ptr<RoutingLoop> loop(new RoutingLoop(std::move(ready.plan), host));
  loop->evidence_ = std::make_unique<RoutingModeEvidence>(host->journal());
  TRY_ASSIGN(loop->ladder_, ModeLadder::Open(kRoutingLadder,
                                             {.mode = loop->config().mode,
                                              .policy = loop->plan_.policy_name,
                                              .objective = loop->plan_.objective},
                                             loop->evidence_.get(), host->journal()));
  loop->Open(std::move(ready));
  loop->Recall();
  return loop;
}

RoutingLoop::RoutingLoop(RoutingPlan plan, Host* host)
    : plan_(std::move(plan)), host_(host), clock_(host->clock()), due_(clock_->Now()) {}

Result<SignalsConfig> RoutingLoop::SignalsOf(const Config& config, const RoutingPlan& plan) {
  TRY_ASSIGN(const SignalsConfig signals, ParseSignals(config.signals, config.path.parent_path()));
  TRY(CheckFiles(signals));
  SignalsConfig own = signals.Of(SignalsConfig::Whose::kRegions);
  for (const CarbonZone& zone : own.carbon ? own.carbon->zones : std::vector<CarbonZone>()) {
    if (plan.RegionOf(zone.region) >= 0) continue;
    return Invalid("{}: `signals.carbon.zones.{}`: the scenario has no such region",
                   config.path.string(), zone.region);
  }
  for (int s = 0; s < plan.services(); ++s) {
    const std::string service = plan.ServiceName(s);
    const std::string demand =
        service.empty() ? std::string(kDemandSignal) : fmt::format("{}/{}", service, kDemandSignal);
    if (std::any_of(own.queries.begin(), own.queries.end(),
                    [&](const SignalQuery& one) { return one.name == demand; }))
      continue;
    return Invalid(
        "{}: `decisions.routing` needs a signal {} `per: region` under `signals.queries`",
        config.path.string(), demand);
  }
  return own;
}

Result<RoutingLoop::Ready> RoutingLoop::Prepare(RoutingPlan plan, const Config& config,
                                                Host* host) {
  Ready ready{.plan = std::move(plan), .signals = {}, .paths = {}, .xds = nullptr};
  TRY_ASSIGN(ready.signals, SignalsOf(config, ready.plan));
  if (const auto& xds = ready.plan.config.xds) {
    TRY_ASSIGN(ready.xds, XdsServer::Open(ready.plan.config.XdsServices(), xds->kept));
  }
  for (CapacityConfig& one : ready.plan.config.capacity) {
    if (one.has_pods() && !one.cluster->is_named) one.cluster->access = host->client()->access();
  }
  for (const RouteConfig& route : ready.plan.config.routes) {
    RouteDriver::Route path;
    if (ObjectOf(route.path)) {
      const kube::ClusterAccess& access =
          route.cluster ? *route.cluster->access : host->client()->access();
      TRY_ASSIGN(path.client, kube::ApiClient::Open(access, host->clock()));
    }
    path.enactor = MakeEnactor(route.path, path.client.get(), ready.xds.get());
    ready.paths.push_back(std::move(path));
  }
  return ready;
}

void RoutingLoop::Open(Ready ready) {
  entities_ = {};
  for (const Region& region : plan_.world->network->regions)
    entities_.regions.push_back(region.name);
  signals_ = std::make_unique<SignalSource>(ready.signals, clock_);
  services_.clear();
  for (int s = 0; s < plan_.services(); ++s)
    services_.push_back({.round = std::make_unique<RoutingRound>(&plan_, s)});
  std::vector<std::string> names;
  for (const RouteConfig& route : config().routes) names.push_back(route.name);
  evidence_->Watch(std::move(names));
  if (host_->telling() != nullptr && events_ == nullptr) {
    events_ = std::make_unique<kube::EventRecorder>(
        host_->telling(), kube::EventOptions{.instance = host_->identity()});
  }
  OpenRoutes(std::move(ready.paths), std::move(ready.xds));
}

void RoutingLoop::OpenRoutes(std::vector<RouteDriver::Route> paths,
                             std::unique_ptr<XdsServer> xds) {
  driver_.reset();  // Waits for the requests that are being sent.
  xds_ = std::move(xds);
  xds_due_ = clock_->Now();
  for (const Route& route : routes_) {
    if (route.setting)
      Conclude(route.setting->row, {.fate = Fate::kUnknown, .failure = std::string(kReloaded)});
  }
  // A route of the same name keeps its change that is not measured yet, and how long it is held.
  std::vector<Route> before = std::exchange(routes_, {});
  for (const RouteConfig& named : config().routes) {
    const auto same = std::find_if(before.begin(), before.end(),
                                   [&](const Route& one) { return one.name == named.name; });
    Route route{.name = named.name};
    if (same != before.end()) {
      route.change = std::move(same->change);
      route.held_until = same->held_until;
    }
    routes_.push_back(std::move(route));
  }
  driver_ = std::make_unique<RouteDriver>(std::move(paths), clock_);
  OpenCapacity();
  phase_ = Phase::kWaiting;
}

Result<void> RoutingLoop::Reload(Ready ready) {
  plan_ = std::move(ready.plan);
  Open(std::move(ready));
  due_ = clock_->Now();
  return ladder_->Configure(
      {.mode = plan_.config.mode, .policy = plan_.policy_name, .objective = plan_.objective});
}

SwitchedKind RoutingLoop::Kind() const {
  return {.name = kRoutingLadder.name, .configured = ladder_->mode()};
}

// Who leads no more hangs up: clients go to who does, and until then by what they were told last.
void RoutingLoop::FollowXds() {
  if (xds_ == nullptr) return;
  if (!host_->Leads()) {
    xds_->HangUp();
    xds_trouble_.clear();
    return;
  }
  if (xds_->port() != 0 || clock_->Now() < xds_due_) return;
  xds_due_ = clock_->Now() + kBetweenListens;
  const Result<void> listens = xds_->Listen(config().xds->listen);
  if (listens) LogInfo("xDS is served on {}", config().xds->listen.address);
  if (!listens && xds_trouble_.empty()) LogError("{}", listens.error().message);
  xds_trouble_ = listens ? "" : listens.error().message;
}

// What was resumed, or has come to lead, does not wait for its next turn.
void RoutingLoop::FollowMode() {
  FollowXds();
  const Mode mode = host_->Leads() ? host_->switches().Effective(ladder_->mode()) : Mode::kOff;
  if (mode < Mode::kCanary) driver_->DropSets();
  if (mode < Mode::kEnforce && capacity_ != nullptr) capacity_->DropAims();
  if (std::exchange(mode_, mode) != mode && phase_ == Phase::kWaiting) due_ = clock_->Now();
}

std::chrono::milliseconds RoutingLoop::UntilDue() const {
  if (phase_ == Phase::kRead) return std::chrono::milliseconds(0);
  if (phase_ == Phase::kReading) return kBetweenAnswers;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(due_ - clock_->Now());
  return std::max(left, std::chrono::milliseconds(0));
}

void RoutingLoop::Poll() {
  FollowXds();
  signals_->Turn(entities_);
  while (std::optional<RouteDriver::Answer> answer = driver_->Take()) Take(*std::move(answer));
  // A data path that does not answer is left out of this round.
  const bool is_late = clock_->Now() - reading_since_ > kReadWithin;
  if (phase_ == Phase::kReading &&
      (is_late || std::none_of(routes_.begin(), routes_.end(),
                               [](const Route& one) { return one.is_awaited; })))
    phase_ = Phase::kRead;
}

bool RoutingLoop::Turn() {
  FollowMode();
  if (phase_ == Phase::kWaiting) {
    due_ = clock_->Now() + config().interval;
    if (mode_ != Mode::kOff) ReadAll();
    return false;
  }
  if (phase_ == Phase::kRead) {
    phase_ = Phase::kWaiting;
    DecideAll();
  }
  return false;
}

void RoutingLoop::ReadAll() {
  for (size_t i = 0; i < routes_.size(); ++i) {
    if (driver_->is_busy(i)) continue;  // A split is being set there.
    routes_[i].is_awaited = true;
    driver_->Read(i);
  }
  phase_ = Phase::kReading;
  reading_since_ = clock_->Now();
}

void RoutingLoop::Take(RouteDriver::Answer answer) {
  Route& route = routes_[answer.route];
  const RouteConfig& named = config().routes[answer.route];
  route.is_awaited = false;
  route.trouble = answer.standing ? "" : answer.standing.error().message;
  if (answer.is_set) TakeSet(&route, answer);
  if (answer.standing) {
    route.standing = *std::move(answer.standing);
    Close(named, &*route.standing);
    route.read_at = answer.at;
  }
  if (route.trouble.empty() == route.told.empty()) return;
  route.told = route.trouble;
  if (route.trouble.empty()) {
    LogInfo("route {}: goes on", named.name);
  } else {
    LogError("route {}: {}", named.name, route.trouble);
  }
}

void RoutingLoop::TakeSet(Route* route, const RouteDriver::Answer& answer) {
  if (!route->setting) return;
  Change change = *std::exchange(route->setting, std::nullopt);
  if (!answer.standing) {
    Conclude(change.row, {.fate = Fate::kFailed, .failure = answer.standing.error().message});
    return;
  }
  ++changes_;
  Conclude(change.row, {.fate = Fate::kDone, .failure = ""});
  change.at = answer.at;
  route->change = std::move(change);
}

std::string RoutingLoop::WhyHeld(size_t route) const {
  const Route& one = routes_[route];
  const Instant now = clock_->Now();
  if (now < one.held_until)
    return fmt::format(
        "the last change was taken back; the route is left alone for {} more",
        FormatDuration(std::chrono::ceil<std::chrono::seconds>(one.held_until - now)));
  if (one.change) return "the last change has not been measured yet";
  return "";
}

std::vector<RouteNow> RoutingLoop::RoutesNow() const {
  std::vector<RouteNow> now;
  for (size_t i = 0; i < routes_.size(); ++i) {
    const Route& route = routes_[i];
    now.push_back({.standing = route.standing ? &*route.standing : nullptr,
                   .weight_sum = driver_->weight_sum(i),
                   .is_current = route.trouble.empty() && !driver_->is_busy(i),
                   .why_held = WhyHeld(i)});
  }
  return now;
}

void RoutingLoop::DecideAll() {
  if (mode_ == Mode::kOff) return;
  ++rounds_;
  TellHealthBySignal();
  for (int s = 0; s < plan_.services(); ++s) {
    LookAt(s);
    if (services_[static_cast<size_t>(s)].problem.empty())
      Measure(services_[static_cast<size_t>(s)]);
  }
  const std::vector<RouteNow> after = RoutesNow();  // Some may be held or busy by now.
  std::vector<RouteChoice> choices;
  for (Service& service : services_) {
    std::vector<RouteChoice> own = service.problem.empty()
                                       ? service.round->Decide(after)
                                       : service.round->DecideBlind(after, service.problem);
    std::move(own.begin(), own.end(), std::back_inserter(choices));
  }
  DecideCapacity();
  for (RouteChoice& choice : choices) {
    const auto route =
        std::find_if(config().routes.begin(), config().routes.end(),
                     [&](const RouteConfig& one) { return one.name == choice.decision.route; });
    CarryOut(static_cast<size_t>(route - config().routes.begin()), std::move(choice));
  }
}

void RoutingLoop::LookAt(int index) {
  Service* service = &services_[static_cast<size_t>(index)];
  service->problem = service->round->Look(signals_->values(), RoutesNow(), PodsNow(index),
                                          clock_->Now(), UnixNow());
  if (service->problem.empty() != !service->told.empty()) return;
  if (service->problem.empty()) {
    LogInfo("routing: goes on");
  } else {
    LogWarning("routing: {}; the splits that stand are kept", service->problem);
  }
  service->told = service->problem;
}

std::string RoutingLoop::Problem() const {
  for (const Service& one : services_) {
    if (!one.problem.empty()) return one.problem;
  }
  return "";
}

// Regions that may not serve what comes by a route.
void RoutingLoop::Close(const RouteConfig& named, StandingWeights* standing) const {
  const Split split = SplitOf(*standing, named.backends);
  for (size_t i = 0; i < split.size(); ++i) {
    const int region = plan_.RegionOf(split[i].region);
    standing->backends[i].is_closed = region >= 0 && !plan_.Allows(named, region);
  }
}

// Of data paths that do not show it.
void RoutingLoop::TellHealthBySignal() {
  std::vector<std::string> healthy;
  for (const Region& region : plan_.world->network->regions) {
    const SignalValue* value = signals_->values().Find(kHealthySignal, region.name);
    const bool is_fresh =
        value != nullptr && clock_->Now() - value->at <= config().limits.signals_max_age;
    if (is_fresh && value->value > 0) healthy.push_back(region.name);
  }
  for (size_t i = 0; i < routes_.size(); ++i) {
    if (!routes_[i].standing) continue;
    TellHealth(healthy, config().routes[i].backends, &*routes_[i].standing);
    TellEmptyRegions(i);
  }
}

// Whatever a data path shows: where no pod is ready, not even a request for probing is served.
void RoutingLoop::TellEmptyRegions(size_t route) {
  const RouteConfig& named = config().routes[route];
  const std::string service = plan_.ServiceName(plan_.ServiceOf(named));
  const std::string signal =
      service.empty() ? std::string(kPodsSignal) : fmt::format("{}/{}", service, kPodsSignal);
  StandingWeights& standing = *routes_[route].standing;
  const Split split = SplitOf(standing, named.backends);
  for (size_t i = 0; i < split.size(); ++i) {
    const SignalValue* pods = signals_->values().Find(signal, split[i].region);
    if (pods == nullptr || pods->value >= 1 ||
        clock_->Now() - pods->at > config().limits.signals_max_age)
      continue;
    standing.backends[i].is_healthy = false;
    standing.backends[i].health = fmt::format("{} says that no pod serves", signal);
  }
}

bool RoutingLoop::ActsOn(size_t route) const {
  if (mode_ < Mode::kCanary) return false;
  if (mode_ == Mode::kEnforce) return true;
  // The first ones by their names' hash, so that a route more changes little.
  std::vector<std::pair<size_t, size_t>> order;
  for (size_t i = 0; i < routes_.size(); ++i)
    order.emplace_back(std::hash<std::string>()(config().routes[i].name), i);
  std::sort(order.begin(), order.end());
  const auto count = std::max<size_t>(
      1, static_cast<size_t>(std::lround(config().canary * static_cast<double>(order.size()))));
  for (size_t i = 0; i < count; ++i) {
    if (order[i].second == route) return true;
  }
  return false;
}

// What is written first is done afterwards.
void RoutingLoop::CarryOut(size_t route, RouteChoice choice) {
  RoutingDecision& decision = choice.decision;
  decision.mode = std::string(ModeName(mode_));
  const bool changes = decision.verdict.allowed && choice.plan.changes;
  if (!choice.plan.weights.empty() && choice.plan.changes && !driver_->is_busy(route))
    decision.request = driver_->Request(route, choice.plan.weights);
  if (!decision.verdict.allowed) {
    decision.fate = Fate::kRefused;
  } else if (!changes) {
    decision.fate = Fate::kStayed;
  } else {
    decision.fate = ActsOn(route) ? Fate::kInFlight : Fate::kRecorded;
  }
  ++decisions_;
  routes_[route].last = decision;
  if (decision.fate == Fate::kInFlight) {
    Send(route, std::move(choice));
    return;
  }
  static_cast<void>(Append(decision));
  if (decision.fate == Fate::kRecorded) Tell(route, decision);
}

void RoutingLoop::Send(size_t route, RouteChoice choice) {
  const RoutingDecision& decision = choice.decision;
  if (driver_->is_busy(route) || !host_->Leads()) return;
  const Result<int64_t> row = Append(decision);
  if (!row) return;
  routes_[route].setting = Change{.row = *row,
                                  .at = clock_->Now(),
                                  .before = choice.plan.standing,
                                  .after = choice.plan.review.split,
                                  .measured_ms = decision.measured_now_ms,
                                  .predicted_ms = decision.predicted_ms};
  routes_[route].change.reset();
  Tell(route, decision);
  driver_->Set(route, std::move(choice.plan), clock_->Now() + kSendWithin);
}

Result<int64_t> RoutingLoop::Append(const RoutingDecision& decision) {
  Result<int64_t> row = host_->Leads()
                            ? host_->journal()->AppendRouting(decision)
                            : Fail(ErrorCode::kUnavailable, "it leads no more: nothing is decided");
  journal_trouble_ =
      row ? "" : row.error().message + "; no split is set until it can be written again";
  return row;
}

void RoutingLoop::Conclude(int64_t row, const RoutingEnd& end) {
  const Result<void> done = host_->journal()->ConcludeRouting(row, end);
  if (!done) journal_trouble_ = done.error().message;
}

void RoutingLoop::Tell(size_t route, const RoutingDecision& decision) {
  const RouteConfig& named = config().routes[route];
  Split now, allowed;
  for (const RoutedRegion& region : decision.regions) {
    now.push_back({region.region, region.now});
    allowed.push_back({region.region, region.allowed});
  }
  const bool acts = decision.fate == Fate::kInFlight;
  const std::string note =
      fmt::format("{} {} instead of {}", acts ? "sends requests to" : "would send requests to",
                  SplitText(allowed), SplitText(now));
  if (acts) LogInfo("route {}: {}", named.name, note);
  const std::optional<PathObject> object = ObjectOf(named.path);
  if (mode_ < Mode::kAdvise || events_ == nullptr || !object || object->is_of_clusters) return;
  if (named.cluster) return;  // Its object is in another cluster than our Events.
  events_->Record(
      {.regarding = {.api_version = fmt::format("{}/{}", object->group, object->version),
                     .kind = std::string(object->kind),
                     .name_space = object->object->name_space,
                     .name = object->object->name,
                     .uid = ""},
       .reason = std::string(acts ? kRouted : kWouldRoute),
       .action = "Route",
       .note = note,
       .again = kube::Again::kAnotherNote});
}

}  // namespace rudderfish
