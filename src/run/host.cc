// SPDX-License-Identifier: Apache-2.0
#include "run/host.h"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/log.h"
#include "base/units.h"
#include "kube/kubeconfig.h"
#include "run/lease_seat.h"
#include "run/migration_loop.h"
#include "run/placement_loop.h"
#include "run/routing_loop.h"
#include "run/routing_plan.h"

namespace rudderfish {
namespace {

using std::chrono::milliseconds;

constexpr Duration kSyncLimit = std::chrono::minutes(2);
constexpr Duration kBetweenJournalTrims = std::chrono::minutes(10);
constexpr Duration kBetweenJournalLooks = std::chrono::seconds(1);
constexpr Duration kLeaseEndLimit = std::chrono::seconds(2);
constexpr Duration kLeaseWordLimit = std::chrono::seconds(3);
constexpr Duration kActingEndLimit = std::chrono::seconds(1);
constexpr Duration kTellLimit = std::chrono::seconds(5);
static_assert(kActingEndLimit + MigrationLoop::kUndoLimit + kLeaseEndLimit + kTellLimit <=
              Host::kStopLimit);
constexpr milliseconds kEndingWait(2);
constexpr milliseconds kHostIdleWait(1000);
// While there are other clusters, of which one alone can be waited for at a time.
constexpr milliseconds kOthersWait(10);

std::string ErrorAnswer(const std::string& error) {
  return DumpAnswer(OrderedJson{{"error", error}});
}

}  // namespace

Host::Host(const Config& config, const Clock* clock, ControlServer* server)
    : config_(config),
      clock_(clock),
      server_(server),
      metrics_(server->metrics()),
      started_(clock->Now()),
      trimmed_(started_),
      started_at_(UnixNow()) {}

Host::~Host() = default;

Result<std::unique_ptr<Host>> Host::Start(const Config& config, const Clock* clock,
                                          ControlServer* server) {
  std::unique_ptr<Host> host(new Host(config, clock, server));
  TRY(host->Open());
  return host;
}

Result<void> Host::Open() {
  // What the file names is checked before anything is opened.
  std::optional<MigrationPlan> plan;
  if (config_.migration) {
    TRY_ASSIGN(plan, MigrationPlan::Make(config_));
  }
  std::optional<RoutingPlan> routes;
  if (config_.routing) {
    TRY_ASSIGN(routes, RoutingPlan::Make(*config_.routing));
  }
  TRY_ASSIGN(journal_, SqliteJournal::Start(config_.journal.path,
                                            {.retention = config_.journal.retention,
                                             .size_bytes = config_.journal.size_bytes}));
  openings_ = journal_->openings();
  journal_health_ = std::make_unique<JournalHealth>(clock_, [this]() -> Result<void> {
    TRY(journal_->Probe());
    return KeepStanding();
  });
  if (!journal_->is_open()) MindJournal(clock_->Now());
  if (config_.has_cluster()) TRY(Connect());
  if (config_.places()) {
    TRY(OpenPlacement());
  }
  if (plan) {
    TRY_ASSIGN(migration_, MigrationLoop::Start(*std::move(plan), this));
    loops_.push_back(migration_.get());
  }
  if (routes) {
    TRY_ASSIGN(RoutingLoop::Ready ready, RoutingLoop::Prepare(*std::move(routes), config_, this));
    TRY_ASSIGN(routing_, RoutingLoop::Start(std::move(ready), this));
    loops_.push_back(routing_.get());
  }
  TRY(Begin());
  return OpenStanding();
}

Result<void> Host::OpenPlacement() {
  TRY_ASSIGN(placements_.emplace_back(), PlacementLoop::Start(this, &own_));
  std::vector<NamedCluster> named;
  if (config_.placement) named = config_.placement->clusters;
  TRY(FindNamedClusters(&named, own_.client->access().server));
  for (const NamedCluster& one : named) {
    TRY_ASSIGN(ClusterLink link,
               ClusterLink::Open(one.name, *one.where.access, clock_, config_.staleness));
    others_.push_back(std::make_unique<ClusterLink>(std::move(link)));
    TRY_ASSIGN(placements_.emplace_back(), PlacementLoop::Start(this, others_.back().get()));
  }
  for (const auto& placement : placements_) loops_.push_back(placement.get());
  return {};
}

// Each loop has said by now what it needs of the cluster. Other clusters are not waited for: the
// own one is served without them.
Result<void> Host::Begin() {
  if (own_.feed != nullptr) TRY(own_.feed->Sync(kSyncLimit, [this] { server_->Beat(); }));
  for (const auto& other : others_) other->Poll(Duration::zero());
  for (DecisionLoop* loop : loops_) TRY(loop->Begin());
#ifdef __GLIBC__
  malloc_trim(0);  // What reading the first lists took, which is much and not needed again.
#endif
  return {};
}

Result<void> Host::Connect() {
  TRY_ASSIGN(const kube::ClusterAccess access,
             kube::FindCluster({.kubeconfig = config_.cluster.kubeconfig.string(),
                                .context = config_.cluster.context},
                               kube::KubeEnvironment::OfProcess()));
  address_ = access.server;
  TRY_ASSIGN(own_, ClusterLink::Open("", access, clock_, config_.staleness));
  identity_ = NewIdentity(own_.client->NewRng());
  if (!config_.control_name.empty()) {
    control_ = std::make_unique<kube::ConfigMapWatch>(
        own_.client.get(), config_.control_namespace, config_.control_name,
        [this](const kube::ConfigMapWatch::Said& said) {
          control_problem_ = ObeyConfigMap(said, Kinds(), &switches_);
          FollowModes();
        });
  }
  if (config_.leader_election.is_on()) {
    lease_ = std::make_unique<kube::LeaseElection>(
        own_.client.get(), LeaseOptionsOf(config_.leader_election, identity_),
        [this](kube::Leadership) { NoteStanding(standing_->TakeSeat()); });
  }
  return {};
}

Result<void> Host::OpenStanding() {
  std::vector<ModeLadder*> ladders;
  for (const DecisionLoop* loop : loops_) {
    if (loop->ladder() != nullptr) ladders.push_back(loop->ladder());
  }
  TRY_ASSIGN(SharedStanding standing,
             SharedStanding::Open({.journal = journal_.get(),
                                   .switches = &switches_,
                                   .ladders = std::move(ladders),
                                   .lease = lease_.get(),
                                   .identity = lease_ == nullptr ? "" : identity_}));
  standing_ = std::make_unique<SharedStanding>(std::move(standing));
  FollowModes();
  if (lease_ != nullptr) lease_->Start();  // An instance that sees nothing must not lead.
  return {};
}

std::vector<SwitchedKind> Host::Kinds() const {
  std::vector<SwitchedKind> kinds;
  for (const DecisionLoop* loop : loops_) kinds.push_back(loop->Kind());
  return kinds;
}

void Host::FollowModes() {
  HoldWhileControlIsUnread();
  for (DecisionLoop* loop : loops_) loop->FollowMode();
}

void Host::HoldWhileControlIsUnread() {
  if (control_ != nullptr) switches_.Hold(control_->WhyUnread(config_.staleness));
}

// What could not be kept while the journal could not be written, or was in a file that is lost.
Result<void> Host::KeepStanding() {
  return standing_ == nullptr ? Result<void>() : standing_->Keep();
}

void Host::MindJournal(Instant now) {
  if (now - minded_ < kBetweenJournalLooks || !journal_health_->MayTry()) return;
  minded_ = now;
  Result<void> minded = journal_->Mind();
  if (openings_ != journal_->openings()) {
    openings_ = journal_->openings();
    const Result<void> kept = KeepStanding();
    if (minded) minded = kept;
  }
  if (minded && now - trimmed_ >= kBetweenJournalTrims) {
    trimmed_ = now;
    minded = journal_->Trim();
  }
  if (minded) {
    journal_health_->Worked();
  } else {
    journal_health_->Failed(minded.error());
  }
}

// Nothing is lost while we run of what could not be kept; the journal itself is tried again.
void Host::NoteStanding(const Result<void>& kept) {
  if (!kept) journal_health_->Failed(kept.error());
  FollowModes();
}

void Host::Poll(milliseconds timeout) {
  for (const auto& other : others_) {
    timeout = std::min(timeout, kOthersWait);
    other->Poll(Duration::zero());
  }
  if (own_.client != nullptr) own_.Poll(timeout);
  HoldWhileControlIsUnread();
  for (DecisionLoop* loop : loops_) loop->Poll();
  server_->Beat();
  Report();
}

bool Host::Turn() {
  const Instant now = clock_->Now();
  MindJournal(now);
  NoteStanding(standing_->Follow());
  LookAtCanaries();
  bool goes_on = false;
  for (DecisionLoop* loop : loops_) {
    if (loop->UntilDue().count() == 0) goes_on = loop->Turn() || goes_on;
  }
  metrics_.CountTurn(Seconds(clock_->Now() - now));
  return goes_on;
}

// The probe of the journal keeps it, once there is room.
std::string Host::NoteUnkept() {
  for (const DecisionLoop* loop : loops_) {
    if (loop->ladder() == nullptr || loop->ladder()->unkept().empty()) continue;
    journal_health_->Failed({ErrorCode::kUnavailable, loop->ladder()->unkept()});
    return loop->ladder()->unkept();
  }
  return "";
}

void Host::LookAtCanaries() {
  if (!journal_health_->MayTry()) return;
  for (DecisionLoop* loop : loops_) {
    if (loop->ladder() == nullptr) continue;
    const Result<std::optional<std::string>> ended = loop->ladder()->LookAtActing(clock_->Now());
    if (!ended) {
      journal_health_->Failed(ended.error());
    } else if (*ended) {
      NoteUnkept();
      FollowModes();
      loop->TellCanaryEnded(**ended);
    }
  }
}

milliseconds Host::UntilDue() const {
  milliseconds due = kHostIdleWait;
  for (const DecisionLoop* loop : loops_) due = std::min(due, loop->UntilDue());
  return due;
}

Result<void> Host::Reload(const Config& config) {
  std::optional<MigrationPlan> plan;
  if (config.migration) {
    TRY_ASSIGN(plan, MigrationPlan::Make(config));
  }
  std::optional<RoutingPlan> routes;
  if (config.routing) {
    TRY_ASSIGN(routes, RoutingPlan::Make(*config.routing));
  }
  const std::string fixed = WhatNeedsARestart(config_, config);
  if (!fixed.empty()) {
    return Fail(ErrorCode::kFailedPrecondition, "{} cannot change at run time; restart to apply it",
                fixed);
  }
  std::optional<RoutingLoop::Ready> ready;
  if (routes) {
    TRY_ASSIGN(ready, RoutingLoop::Prepare(*std::move(routes), config, this));
  }
  config_ = config;
  for (const auto& placement : placements_) NoteStanding(placement->Reload(config));
  if (plan) NoteStanding(migration_->Reload(*std::move(plan)));
  if (ready) NoteStanding(routing_->Reload(*std::move(ready)));
  NoteStanding(standing_->TakeAgain());
  return {};
}

void Host::Stop() {
  const auto poll_while = [this](const auto& goes_on, Duration limit) {
    const Instant end = clock_->Now() + limit;
    while (goes_on() && clock_->Now() < end) Poll(kEndingWait);
  };
  const auto any = [this](bool (DecisionLoop::*is)() const) {
    return std::any_of(loops_.begin(), loops_.end(), [&](auto* loop) { return (loop->*is)(); });
  };
  // Bindings that are under way are waited for: their ends belong in the journal.
  poll_while([&] { return any(&DecisionLoop::IsActing); }, kActingEndLimit);
  // What still waits for its turn never goes out: the next holder of the Lease acts on those pods.
  for (DecisionLoop* loop : loops_) loop->EndActing();
  bool is_released = lease_ == nullptr;
  if (lease_ != nullptr) lease_->Release([&is_released] { is_released = true; });
  poll_while([&is_released] { return !is_released; }, kLeaseEndLimit);
  // Events are last, as nothing waits for them; after many pods at once many are left.
  poll_while([&] { return any(&DecisionLoop::IsTelling); }, kTellLimit);
  lease_.reset();
  // A file that was lost in the last second would be lost without a word.
  if (const Result<void> minded = journal_->Mind(); !minded)
    journal_health_->Failed(minded.error());
  if (openings_ != journal_->openings()) {
    if (const Result<void> kept = KeepStanding(); !kept) journal_health_->Failed(kept.error());
  }
}

std::string Host::Answer(std::string_view request) {
  if (request == "status") return Status();
  constexpr std::string_view kExplain = "explain ";
  if (request.starts_with(kExplain)) return Explain(request.substr(kExplain.size()));
  const bool is_ladder = request.starts_with("promote ") || request.starts_with("demote ");
  std::string answer = is_ladder ? AnswerKind(request) : AnswerSwitch(request, Kinds(), &switches_);
  FollowModes();
  return Kept(std::move(answer));
}

// "shop/cart-0", in the first cluster where such a pod waits; "us:shop/cart-0" in that one.
std::string Host::Explain(std::string_view subject) {
  const size_t colon = subject.find(':');
  const std::string key(subject.substr(colon == subject.npos ? 0 : colon + 1));
  for (const auto& placement : placements_) {
    if (colon != subject.npos && placement->cluster() != subject.substr(0, colon)) continue;
    if (auto pending = placement->Explain(key))
      return DumpAnswer({{"pending", *std::move(pending)}});
  }
  return DumpAnswer({{"pending", nullptr}});
}

// VERB KIND and its options.
std::string Host::AnswerKind(std::string_view request) {
  const size_t verb_end = request.find(' ');
  const std::string_view rest = request.substr(verb_end + 1);
  const std::string_view kind = rest.substr(0, rest.find(' '));
  const auto loop = std::find_if(loops_.begin(), loops_.end(),
                                 [&](const auto* one) { return one->Kind().name == kind; });
  ModeLadder* const ladder = loop == loops_.end() ? nullptr : (*loop)->ladder();
  if (ladder == nullptr) {
    const size_t slash = kind.find('/');
    return ErrorAnswer(slash == kind.npos
                           ? fmt::format("the configuration has no `decisions.{}`", kind)
                           : fmt::format("the configuration has no cluster {} in "
                                         "`decisions.{}.clusters`",
                                         kind.substr(slash + 1), kind.substr(0, slash)));
  }
  if (!Leads()) {
    const std::string& holder = lease_->holder();
    return ErrorAnswer(
        holder.empty()
            ? "no instance leads yet: ask again once one does"
            : fmt::format("this instance is on standby; send the request to the leader {}",
                          holder));
  }
  return ladder->Answer(fmt::format("{}{}", request.substr(0, verb_end), rest.substr(kind.size())),
                        [this, kind](Mode to) { return MissingRights(kind, to); });
}

// An answer holds beyond our end: it has been kept by then, or the answer says that it has not.
std::string Host::Kept(std::string answer) {
  Result<void> kept = standing_->NotePause();
  if (kept) kept = standing_->Follow();
  if (!kept) return WithWarning(answer, "this is not kept: " + kept.error().message);
  if (const std::string why = NoteUnkept(); !why.empty())
    return WithWarning(answer, "this is not kept: " + why);
  const Instant end = clock_->Now() + kLeaseWordLimit;
  while (!standing_->is_said() && clock_->Now() < end) Poll(kEndingWait);
  if (standing_->is_said()) return answer;
  const auto& error = lease_->last_error();
  return WithWarning(
      answer, fmt::format("the Lease does not say so yet{}: should this instance end now, the next "
                          "begins as before",
                          error ? " (" + error->message + ")" : ""));
}

std::string Host::Describe() const {
  std::string text;
  for (const DecisionLoop* loop : loops_) {
    text += fmt::format("{}{}", text.empty() ? "" : "; ", loop->Describe());
  }
  return text;
}

}  // namespace rudderfish
