// SPDX-License-Identifier: Apache-2.0
#include "run/routing_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/log.h"
#include "base/units.h"

namespace rudderfish {
namespace {

constexpr std::chrono::milliseconds kBetweenAnswers(20);
// A change that is sent later than this was decided on what is old.
constexpr Duration kSendWithin = std::chrono::seconds(5);
constexpr std::string_view kWouldRoute = "WouldRoute", kRouted = "Routed";

// What could not be looked at is not known, whatever was seen before.
OrderedJson RegionsStatus(const RoutingPlan& plan, int service, const RoutingRound& round,
                          int64_t decided_rounds) {
  OrderedJson list = OrderedJson::array();
  const auto& regions = plan.world->network->regions;
  const bool is_seen = decided_rounds > 0 && round.problem().empty();
  for (size_t r = 0; r < regions.size(); ++r) {
    const RegionSight& seen = round.view().sights()[r];
    const auto latency = round.view().Latency(static_cast<int>(r));
    const size_t at = r * kNodePrices;
    OrderedJson one{{"name", regions[r].name}, {"service", plan.ServiceName(service)}};
    const auto show = [&](const char* key, OrderedJson value) {
      one[key] = is_seen ? std::move(value) : OrderedJson(nullptr);
    };
    show("demand_per_s", seen.demand_per_s);
    show("load_per_s", seen.load_per_s);
    show("ready_nodes", seen.ready_nodes());
    show("healthy", seen.reachable);
    show("carbon_g_per_kwh", seen.carbon_g_per_kwh);
    show("latency_ms", latency ? OrderedJson(latency->value * 1000) : OrderedJson(nullptr));
    show("wanted_nodes", round.nodes().empty()
                             ? OrderedJson(nullptr)
                             : OrderedJson(round.nodes()[at] + round.nodes()[at + 1]));
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace

Result<std::unique_ptr<RoutingLoop>> RoutingLoop::Start(Ready ready, HostParts* host) {
  std::unique_ptr<RoutingLoop> loop(new RoutingLoop(std::move(ready.plan), host));
  loop->evidence_ = std::make_unique<RoutingModeEvidence>(host->journal->routings());
  TRY_ASSIGN(loop->ladder_, ModeLadder::Open(kRoutingLadder,
                                             {.mode = loop->config().mode,
                                              .policy = loop->plan_.policy_name,
                                              .objective = loop->plan_.objective},
                                             loop->evidence_.get(), host->journal->modes()));
  loop->Open(std::move(ready));
  const Result<JournalReader> reader = JournalReader::Open(host->journal->path());
  if (!reader) return loop;  // A journal that is closed knows of no rows.
  for (Route& route : loop->routes_)
    route.trial.Recall(*reader, route.name, loop->clock_->Now(), loop->config().settle);
  return loop;
}

RoutingLoop::RoutingLoop(RoutingPlan plan, HostParts* host)
    : plan_(std::move(plan)),
      host_(host),
      clock_(host->clock),
      rows_(host->journal->routings(), [host] { return host->Leads(); }),
      live_(&plan_, clock_),
      capacity_(&plan_, clock_, &rows_),
      due_(clock_->Now()) {}

Result<SignalsConfig> RoutingSignals(const Config& config, const RoutingPlan& plan) {
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
                                                HostParts* host) {
  Ready ready{.plan = std::move(plan), .signals = {}, .paths = {}, .xds = nullptr};
  TRY_ASSIGN(ready.signals, RoutingSignals(config, ready.plan));
  if (const auto& xds = ready.plan.config.xds) {
    TRY_ASSIGN(ready.xds, XdsServer::Open(ready.plan.config.XdsServices(), xds->kept));
  }
  for (CapacityConfig& one : ready.plan.config.capacity) {
    if (one.has_pods() && !one.cluster->is_named) one.cluster->access = host->own.client->access();
  }
  for (const RouteConfig& route : ready.plan.config.routes) {
    RouteDriver::Route path;
    if (ObjectOf(route.path)) {
      const kube::ClusterAccess& access =
          route.cluster ? *route.cluster->access : host->own.client->access();
      TRY_ASSIGN(path.client, kube::ApiClient::Open(access, host->clock));
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
  rounds_.clear();
  for (int s = 0; s < plan_.services(); ++s) rounds_.emplace_back(&plan_, s);
  std::vector<std::string> names;
  for (const RouteConfig& route : config().routes) names.push_back(route.name);
  evidence_->Watch(std::move(names));
  if (host_->own.telling != nullptr && events_ == nullptr) {
    events_ = std::make_unique<kube::EventRecorder>(
        host_->own.telling.get(), kube::EventOptions{.instance = host_->identity});
  }
  live_.Open(std::move(ready.paths), std::move(ready.xds));
  // A route of the same name keeps its change that is not measured yet, and how long it is held.
  std::vector<Route> before = std::exchange(routes_, {});
  for (Route& route : before) {
    if (const std::optional<int64_t> row = route.trial.End(std::nullopt))
      rows_.Conclude(*row, {.fate = Fate::kUnknown, .failure = std::string(kReloaded)});
  }
  for (const RouteConfig& named : config().routes) {
    const auto same = std::find_if(before.begin(), before.end(),
                                   [&](const Route& one) { return one.name == named.name; });
    routes_.push_back({.name = named.name,
                       .trial = same == before.end() ? SplitTrial() : std::move(same->trial),
                       .last = {}});
  }
  capacity_.Open();
  is_reading_ = false;
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

// Who leads no more hangs up.
void RoutingLoop::FollowLead() { host_->Leads() ? live_.Serve() : live_.HangUp(); }

// What was resumed, or has come to lead, does not wait for its next turn.
void RoutingLoop::FollowMode() {
  FollowLead();
  const Mode mode = host_->Leads() ? host_->switches.Effective(ladder_->mode()) : Mode::kOff;
  if (mode < Mode::kCanary) live_.driver().DropSets();
  if (mode < Mode::kEnforce) capacity_.DropAims();
  if (std::exchange(mode_, mode) != mode && !is_reading_) due_ = clock_->Now();
}

std::chrono::milliseconds RoutingLoop::UntilDue() const {
  if (is_reading_) return live_.IsRead() ? std::chrono::milliseconds(0) : kBetweenAnswers;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(due_ - clock_->Now());
  return std::max(left, std::chrono::milliseconds(0));
}

void RoutingLoop::Poll() {
  FollowLead();
  signals_->Turn(entities_);
  while (const std::optional<LiveRoutes::SetEnd> set = live_.Take()) {
    const bool stands = set->failure.empty();
    const std::optional<int64_t> row =
        routes_[set->route].trial.End(stands ? std::optional(set->at) : std::nullopt);
    if (!row) continue;
    if (stands) ++changes_;
    rows_.Conclude(*row, {.fate = stands ? Fate::kDone : Fate::kFailed, .failure = set->failure});
  }
}

bool RoutingLoop::Turn() {
  FollowMode();
  if (!is_reading_) {
    due_ = clock_->Now() + config().interval;
    if (mode_ == Mode::kOff) return false;
    live_.Read();
    is_reading_ = true;
  } else if (live_.IsRead()) {
    is_reading_ = false;
    DecideAll();
  }
  return false;
}

std::vector<RouteNow> RoutingLoop::RoutesNow() const {
  std::vector<RouteNow> now;
  for (size_t i = 0; i < routes_.size(); ++i) {
    now.push_back(live_.Now(i));
    now.back().why_held = routes_[i].trial.WhyHeld(clock_->Now());
  }
  return now;
}

void RoutingLoop::DecideAll() {
  if (mode_ == Mode::kOff) return;
  ++decided_rounds_;
  live_.FollowHealth(signals_->values());
  for (int s = 0; s < plan_.services(); ++s) {
    LookAt(s);
    if (rounds_[static_cast<size_t>(s)].problem().empty()) Measure(s);
  }
  const std::vector<RouteNow> after = RoutesNow();  // Some may be held or busy by now.
  std::vector<RouteChoice> choices;
  for (RoutingRound& round : rounds_) {
    std::vector<RouteChoice> own = round.Decide(after);
    std::move(own.begin(), own.end(), std::back_inserter(choices));
  }
  capacity_.Decide(mode_, rounds_);
  for (RouteChoice& choice : choices) {
    const auto route =
        std::find_if(config().routes.begin(), config().routes.end(),
                     [&](const RouteConfig& one) { return one.name == choice.decision.route; });
    CarryOut(static_cast<size_t>(route - config().routes.begin()), std::move(choice));
  }
}

void RoutingLoop::LookAt(int service) {
  RoutingRound& round = rounds_[static_cast<size_t>(service)];
  const bool had_problem = !round.problem().empty();
  const std::string problem = round.Look(signals_->values(), RoutesNow(), capacity_.PodsOf(service),
                                         clock_->Now(), UnixNow());
  if (problem.empty() && had_problem) LogInfo("routing: decides again");
  if (!problem.empty() && !had_problem)
    LogWarning("routing: {}; the splits that stand are kept", problem);
}

// What was set on routes of a service is measured, and taken back where requests are slower.
void RoutingLoop::Measure(int service) {
  const RegionView& view = rounds_[static_cast<size_t>(service)].view();
  for (size_t i = 0; i < routes_.size(); ++i) {
    const RouteConfig& named = config().routes[i];
    if (plan_.ServiceOf(named) != service) continue;
    const RouteNow seen = live_.Now(i);
    const auto outcome = routes_[i].trial.Measure(
        named, seen, view.Latency(named.origin.empty() ? -1 : plan_.RegionOf(named.origin)),
        clock_->Now(), config().settle);
    if (!outcome) continue;
    rows_.Conclude(outcome->change.row,
                   {.fate = std::nullopt, .failure = "", .measured_ms = outcome->measured_ms});
    if (!outcome->is_slower || !ActsOn(i)) continue;
    routes_[i].trial.Hold(clock_->Now(), config().settle);
    if (seen.standing == nullptr || live_.driver().is_busy(i)) continue;
    if (std::optional<RouteChoice> back = TakeBack(plan_, named, seen, *outcome))
      CarryOut(i, *std::move(back));
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
  if (!choice.plan.weights.empty() && choice.plan.changes && !live_.driver().is_busy(route))
    decision.request = live_.driver().Request(route, choice.plan.weights);
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
  static_cast<void>(rows_.Append(decision));
  if (decision.fate == Fate::kRecorded) Tell(route, decision);
}

void RoutingLoop::Send(size_t route, RouteChoice choice) {
  const RoutingDecision& decision = choice.decision;
  if (live_.driver().is_busy(route) || !host_->Leads()) return;
  const Result<int64_t> row = rows_.Append(decision);
  if (!row) return;
  routes_[route].trial.Begin({.row = *row,
                              .at = clock_->Now(),
                              .before = choice.plan.standing,
                              .after = choice.plan.review.split,
                              .measured_ms = decision.measured_now_ms,
                              .predicted_ms = decision.predicted_ms});
  Tell(route, decision);
  live_.driver().Set(route, std::move(choice.plan), clock_->Now() + kSendWithin);
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

std::string RoutingLoop::ClusterTrouble() const {
  const std::string trouble = capacity_.Trouble();
  return trouble.empty() ? live_.Trouble() : trouble;
}

void RoutingLoop::Count(ClusterCounts* counts) const {
  if (events_ == nullptr) return;
  counts->events_sent += events_->counts().sent;
  counts->events_lost += events_->counts().dropped + events_->counts().failed;
}

void RoutingLoop::Report() {
  RunMetrics* metrics = &host_->metrics;
  metrics->ShowSignals(signals_->Standings());
  for (size_t i = 0; i < routes_.size(); ++i) {
    if (routes_[i].last) metrics->ShowRoute(*routes_[i].last);
    const auto* choice = std::get_if<XdsChoice>(&config().routes[i].path);
    if (choice == nullptr) continue;
    const XdsBoard& board = live_.xds().board();
    metrics->ShowXdsClients(choice->service, board.Verdicts(choice->service).size());
    for (const XdsRegionChoice& region : choice->regions) {
      metrics->ShowXdsLoad(choice->service, region.region,
                           board.LoadOf(choice->service, region.region));
    }
  }
}

OrderedJson RoutingLoop::Status() const {
  const auto blind = std::find_if(rounds_.begin(), rounds_.end(),
                                  [](const RoutingRound& one) { return !one.problem().empty(); });
  OrderedJson json{{"policy", config().policy},
                   {"baseline", config().baseline},
                   {"problem", blind == rounds_.end() ? "" : blind->problem()},
                   {"rounds", decided_rounds_},
                   {"decisions", decisions_},
                   {"changes", changes_},
                   {"signals", JsonOf(signals_->Standings())},
                   {"signal_troubles", signals_->Troubles()},
                   {"regions", OrderedJson::array()},
                   {"routes", OrderedJson::array()},
                   {"capacity", capacity_.Status()}};
  for (int s = 0; s < plan_.services(); ++s) {
    const RoutingRound& round = rounds_[static_cast<size_t>(s)];
    for (OrderedJson& one : RegionsStatus(plan_, s, round, decided_rounds_))
      json["regions"].push_back(std::move(one));
  }
  for (size_t i = 0; i < routes_.size(); ++i) {
    const LiveRoute& route = live_.route(i);
    const std::optional<RoutingDecision>& last = routes_[i].last;
    OrderedJson one{{"name", config().routes[i].name},
                    {"origin", config().routes[i].origin},
                    {"target", route.standing ? route.standing->target : ""},
                    {"problem", route.trouble},
                    {"acts", ActsOn(i)},
                    {"held", routes_[i].trial.WhyHeld(clock_->Now())},
                    {"split", OrderedJson::object()},
                    {"wanted", OrderedJson::object()},
                    {"notes", route.standing ? route.standing->notes : std::vector<std::string>()}};
    one["read_age_s"] =
        route.standing ? OrderedJson(Seconds(clock_->Now() - route.read_at)) : OrderedJson(nullptr);
    if (route.standing) {
      for (const RegionShare& share : SplitOf(*route.standing, config().routes[i].backends))
        one["split"][share.region] = share.share;
    }
    if (last) {
      for (const RoutedRegion& region : last->regions) one["wanted"][region.region] = region.wanted;
      one["fate"] = FateName(last->fate);
      one["why"] = last->verdict.reason;
      one["gain"] = last->gain;
    }
    json["routes"].push_back(std::move(one));
  }
  return json;
}

std::string RoutingLoop::Describe() const {
  return fmt::format("routing {}, policy {}", ModeName(ladder_->mode()), config().policy);
}

}  // namespace rudderfish
