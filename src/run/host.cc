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
#include "run/run_review.h"

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
    : parts_{.config = config,
             .clock = clock,
             .server = server,
             .metrics = RunMetrics(server->metrics())},
      report_({.parts = &parts_, .loops = &loops_, .others = &others_}),
      trimmed_(clock->Now()) {}

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
  if (parts_.config.migration) {
    TRY_ASSIGN(plan, MigrationPlan::Make(parts_.config));
  }
  std::optional<RoutingPlan> routes;
  if (parts_.config.routing) {
    TRY_ASSIGN(routes, RoutingPlan::Make(*parts_.config.routing));
  }
  TRY_ASSIGN(parts_.journal,
             SqliteJournal::Start(parts_.config.journal.path,
                                  {.retention = parts_.config.journal.retention,
                                   .size_bytes = parts_.config.journal.size_bytes}));
  openings_ = parts_.journal->openings();
  parts_.journal_health = std::make_unique<JournalHealth>(parts_.clock, [this]() -> Result<void> {
    TRY(parts_.journal->Probe());
    return KeepStanding();
  });
  if (!parts_.journal->is_open()) MindJournal(parts_.clock->Now());
  if (parts_.config.has_cluster()) TRY(Connect());
  if (parts_.config.places()) {
    TRY(OpenPlacement());
  }
  if (plan) {
    TRY_ASSIGN(migration_, MigrationLoop::Start(*std::move(plan), &parts_));
    loops_.push_back(migration_.get());
  }
  if (routes) {
    TRY_ASSIGN(RoutingLoop::Ready ready,
               RoutingLoop::Prepare(*std::move(routes), parts_.config, &parts_));
    TRY_ASSIGN(routing_, RoutingLoop::Start(std::move(ready), &parts_));
    loops_.push_back(routing_.get());
  }
  TRY(Begin());
  return OpenStanding();
}

Result<void> Host::OpenPlacement() {
  TRY_ASSIGN(placements_.emplace_back(), PlacementLoop::Start(&parts_, &parts_.own));
  std::vector<NamedCluster> named;
  if (parts_.config.placement) named = parts_.config.placement->clusters;
  TRY(FindNamedClusters(&named, parts_.own.client->access().server));
  for (const NamedCluster& one : named) {
    TRY_ASSIGN(ClusterLink link, ClusterLink::Open(one.name, *one.where.access, parts_.clock,
                                                   parts_.config.staleness));
    others_.push_back(std::make_unique<ClusterLink>(std::move(link)));
    TRY_ASSIGN(placements_.emplace_back(), PlacementLoop::Start(&parts_, others_.back().get()));
  }
  for (const auto& placement : placements_) loops_.push_back(placement.get());
  return {};
}

// Each loop has said by now what it needs of the cluster. Other clusters are not waited for: the
// own one is served without them.
Result<void> Host::Begin() {
  if (parts_.own.feed != nullptr)
    TRY(parts_.own.feed->Sync(kSyncLimit, [this] { parts_.server->Beat(); }));
  for (const auto& other : others_) other->Poll(Duration::zero());
  for (DecisionLoop* loop : loops_) TRY(loop->Begin());
#ifdef __GLIBC__
  malloc_trim(0);  // What reading the first lists took, which is much and not needed again.
#endif
  return {};
}

Result<void> Host::Connect() {
  TRY_ASSIGN(const kube::ClusterAccess access,
             kube::FindCluster({.kubeconfig = parts_.config.cluster.kubeconfig.string(),
                                .context = parts_.config.cluster.context},
                               kube::KubeEnvironment::OfProcess()));
  TRY_ASSIGN(parts_.own, ClusterLink::Open("", access, parts_.clock, parts_.config.staleness));
  parts_.identity = NewIdentity(parts_.own.client->NewRng());
  if (!parts_.config.control_name.empty()) {
    parts_.control = std::make_unique<kube::ConfigMapWatch>(
        parts_.own.client.get(), parts_.config.control_namespace, parts_.config.control_name,
        [this](const kube::ConfigMapWatch::Said& said) {
          control_problem_ = ObeyConfigMap(said, Kinds(), &parts_.switches);
          FollowModes();
        });
  }
  if (parts_.config.leader_election.is_on()) {
    parts_.lease = std::make_unique<kube::LeaseElection>(
        parts_.own.client.get(), LeaseOptionsOf(parts_.config.leader_election, parts_.identity),
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
             SharedStanding::Open({.journal = parts_.journal->modes(),
                                   .switches = &parts_.switches,
                                   .ladders = std::move(ladders),
                                   .lease = parts_.lease.get(),
                                   .identity = parts_.lease == nullptr ? "" : parts_.identity}));
  standing_ = std::make_unique<SharedStanding>(std::move(standing));
  report_.Begin(standing_.get());
  FollowModes();
  if (parts_.lease != nullptr)
    parts_.lease->Start();  // An instance that sees nothing must not lead.
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
  if (parts_.control != nullptr)
    parts_.switches.Hold(parts_.control->WhyUnread(parts_.config.staleness));
}

// What could not be kept while the journal could not be written, or was in a file that is lost.
Result<void> Host::KeepStanding() {
  return standing_ == nullptr ? Result<void>() : standing_->Keep();
}

void Host::MindJournal(Instant now) {
  if (now - minded_ < kBetweenJournalLooks || !parts_.journal_health->MayTry()) return;
  minded_ = now;
  Result<void> minded = parts_.journal->Mind();
  if (openings_ != parts_.journal->openings()) {
    openings_ = parts_.journal->openings();
    const Result<void> kept = KeepStanding();
    if (minded) minded = kept;
  }
  if (minded && now - trimmed_ >= kBetweenJournalTrims) {
    trimmed_ = now;
    minded = parts_.journal->Trim();
  }
  if (minded) {
    parts_.journal_health->Worked();
  } else {
    parts_.journal_health->Failed(minded.error());
  }
}

// Nothing is lost while we run of what could not be kept; the journal itself is tried again.
void Host::NoteStanding(const Result<void>& kept) {
  parts_.journal_health->Note(kept);
  FollowModes();
}

void Host::Poll(milliseconds timeout) {
  for (const auto& other : others_) {
    timeout = std::min(timeout, kOthersWait);
    other->Poll(Duration::zero());
  }
  if (parts_.own.client != nullptr) parts_.own.Poll(timeout);
  HoldWhileControlIsUnread();
  for (DecisionLoop* loop : loops_) loop->Poll();
  parts_.server->Beat();
  report_.Show();
}

bool Host::Turn() {
  const Instant now = parts_.clock->Now();
  MindJournal(now);
  NoteStanding(standing_->Follow());
  LookAtCanaries();
  bool goes_on = false;
  for (DecisionLoop* loop : loops_) {
    if (loop->UntilDue().count() == 0) goes_on = loop->Turn() || goes_on;
  }
  parts_.metrics.CountTurn(Seconds(parts_.clock->Now() - now));
  return goes_on;
}

// The probe of the journal keeps it, once there is room.
std::string Host::NoteUnkept() {
  for (const DecisionLoop* loop : loops_) {
    if (loop->ladder() == nullptr || loop->ladder()->unkept().empty()) continue;
    parts_.journal_health->Failed({ErrorCode::kUnavailable, loop->ladder()->unkept()});
    return loop->ladder()->unkept();
  }
  return "";
}

void Host::LookAtCanaries() {
  if (!parts_.journal_health->MayTry()) return;
  for (DecisionLoop* loop : loops_) {
    if (loop->ladder() == nullptr) continue;
    const Result<std::optional<std::string>> ended =
        loop->ladder()->LookAtActing(parts_.clock->Now());
    if (!ended) {
      parts_.journal_health->Failed(ended.error());
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
  const std::string fixed = WhatNeedsARestart(parts_.config, config);
  if (!fixed.empty()) {
    return Fail(ErrorCode::kFailedPrecondition, "{} cannot change at run time; restart to apply it",
                fixed);
  }
  std::optional<RoutingLoop::Ready> ready;
  if (routes) {
    TRY_ASSIGN(ready, RoutingLoop::Prepare(*std::move(routes), config, &parts_));
  }
  parts_.config = config;
  for (const auto& placement : placements_) NoteStanding(placement->Reload(config));
  if (plan) NoteStanding(migration_->Reload(*std::move(plan)));
  if (ready) NoteStanding(routing_->Reload(*std::move(ready)));
  NoteStanding(standing_->TakeAgain());
  return {};
}

void Host::Stop() {
  const auto poll_while = [this](const auto& goes_on, Duration limit) {
    const Instant end = parts_.clock->Now() + limit;
    while (goes_on() && parts_.clock->Now() < end) Poll(kEndingWait);
  };
  const auto any = [this](bool (DecisionLoop::*is)() const) {
    return std::any_of(loops_.begin(), loops_.end(), [&](auto* loop) { return (loop->*is)(); });
  };
  // Bindings that are under way are waited for: their ends belong in the journal.
  poll_while([&] { return any(&DecisionLoop::IsActing); }, kActingEndLimit);
  // What still waits for its turn never goes out: the next holder of the Lease acts on those pods.
  for (DecisionLoop* loop : loops_) loop->EndActing();
  bool is_released = parts_.lease == nullptr;
  if (parts_.lease != nullptr) parts_.lease->Release([&is_released] { is_released = true; });
  poll_while([&is_released] { return !is_released; }, kLeaseEndLimit);
  // Events are last, as nothing waits for them; after many pods at once many are left.
  poll_while([&] { return any(&DecisionLoop::IsTelling); }, kTellLimit);
  parts_.lease.reset();
  // A file that was lost in the last second would be lost without a word.
  parts_.journal_health->Note(parts_.journal->Mind());
  if (openings_ != parts_.journal->openings()) parts_.journal_health->Note(KeepStanding());
}

std::string Host::Answer(std::string_view request) {
  if (request == "status") {
    OrderedJson status = report_.Status(control_problem_);
    if (parts_.config.extender) status["extender"] = placements_.front()->ExtenderJson();
    return DumpAnswer(status);
  }
  constexpr std::string_view kExplain = "explain ";
  if (request.starts_with(kExplain)) return Explain(request.substr(kExplain.size()));
  const bool is_ladder = request.starts_with("promote ") || request.starts_with("demote ");
  std::string answer =
      is_ladder ? AnswerKind(request) : AnswerSwitch(request, Kinds(), &parts_.switches);
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
  if (!parts_.Leads()) {
    const std::string& holder = parts_.lease->holder();
    return ErrorAnswer(
        holder.empty()
            ? "no instance leads yet: ask again once one does"
            : fmt::format("this instance is on standby; send the request to the leader {}",
                          holder));
  }
  return ladder->Answer(fmt::format("{}{}", request.substr(0, verb_end), rest.substr(kind.size())),
                        [this, kind](Mode to) { return MissingRights(parts_.config, kind, to); });
}

// An answer holds beyond our end: it has been kept by then, or the answer says that it has not.
std::string Host::Kept(std::string answer) {
  Result<void> kept = standing_->NotePause();
  if (kept) kept = standing_->Follow();
  if (!kept) return WithWarning(answer, "this is not kept: " + kept.error().message);
  if (const std::string why = NoteUnkept(); !why.empty())
    return WithWarning(answer, "this is not kept: " + why);
  const Instant end = parts_.clock->Now() + kLeaseWordLimit;
  while (!standing_->is_said() && parts_.clock->Now() < end) Poll(kEndingWait);
  if (standing_->is_said()) return answer;
  const auto& error = parts_.lease->last_error();
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
