// SPDX-License-Identifier: Apache-2.0
#include "run/placement_loop.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/log.h"
#include "base/units.h"
#include "kube/kubeconfig.h"
#include "run/lease_seat.h"
#include "run/watched_cluster.h"
#include "task/placement.h"

namespace rudderfish {
namespace {

using std::chrono::milliseconds;

constexpr Duration kFeedLimit = std::chrono::minutes(2);
constexpr Duration kBetweenJournalTrims = std::chrono::minutes(10);
constexpr Duration kBetweenEnds = std::chrono::seconds(1);
constexpr Duration kLeaseEndLimit = std::chrono::seconds(2);
constexpr Duration kLeaseWordLimit = std::chrono::seconds(3);
constexpr Duration kBindingsEndLimit = std::chrono::seconds(1);
constexpr Duration kTellLimit = std::chrono::seconds(5);
static_assert(kBindingsEndLimit + kLeaseEndLimit + kTellLimit <= PlacementLoop::kStopLimit);
constexpr milliseconds kTellingWait(2);  // While Events are under way on their own connections.
constexpr milliseconds kIdleWait(1000);
constexpr milliseconds kComparingWait(250);
constexpr int kRequestsMax = 24;  // More at a time are not answered any faster.

// Of an extender alone: nothing is placed, and its policy is the one that is told of.
PlacementConfig PlacementOf(const Config& config) {
  if (config.placement) return *config.placement;
  return {.mode = Mode::kOff, .scheduler_name = "", .choice = config.extender->choice};
}

std::string DumpAnswer(const OrderedJson& json) {
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace

PlacementLoop::PlacementLoop(const Config& config, const Clock* clock, ControlServer* server)
    : config_(config),
      clock_(clock),
      server_(server),
      metrics_(server->metrics()),
      started_(clock->Now()),
      trimmed_(started_),
      ends_written_(started_),
      started_at_(UnixNow()) {}

PlacementLoop::~PlacementLoop() = default;

Result<std::unique_ptr<PlacementLoop>> PlacementLoop::Start(const Config& config,
                                                            const Clock* clock,
                                                            ControlServer* server) {
  std::unique_ptr<PlacementLoop> loop(new PlacementLoop(config, clock, server));
  TRY(loop->Open());
  return loop;
}

Result<void> PlacementLoop::Open() {
  TRY_ASSIGN(journal_,
             SqliteJournal::Open(config_.journal.path, {.retention = config_.journal.retention,
                                                        .size_bytes = config_.journal.size_bytes}));
  journal_health_ = std::make_unique<JournalHealth>(clock_, [this] { return journal_->Probe(); });
  TRY_ASSIGN(const kube::ClusterAccess access,
             kube::FindCluster({.kubeconfig = config_.cluster.kubeconfig.string(),
                                .context = config_.cluster.context},
                               kube::KubeEnvironment::OfProcess()));
  address_ = access.server;
  TRY_ASSIGN(client_,
             kube::ApiClient::Open(access, clock_,
                                   {.requests_max = kRequestsMax,
                                    .watch_timeout = WatchTimeoutWithin(config_.staleness)}));
  TRY_ASSIGN(telling_, kube::ApiClient::Open(access, clock_));
  Rng rng = client_->NewRng();
  identity_ = NewIdentity(client_->NewRng());
  const PlacementConfig placement = PlacementOf(config_);
  TRY_ASSIGN(const LivePolicy loaded, LoadPolicy(placement.choice));
  policy_ = std::make_unique<LivePolicy>(loaded);
  cluster_ = policy_->NewCluster();
  if (config_.placement) {
    TRY_ASSIGN(modes_, PlacementModes::Open(placement, policy_->name(),
                                            ObjectiveText(policy_->objective()), journal_.get()));
  }
  actuator_ = std::make_unique<PlacementActuatorOfKube>(
      client_.get(), telling_.get(),
      placement.scheduler_name.empty() ? "rudderfish" : placement.scheduler_name, identity_,
      [this] { return MayAct(); });
  scheduler_ = std::make_unique<Scheduler>(SchedulerOptions{.name = placement.scheduler_name,
                                                            .bindings_max = placement.bindings_max,
                                                            .seed = rng.Next64()},
                                           clock_, policy_->NewScorer(), actuator_.get(),
                                           journal_.get(), [this] { return MayAct(); });
  TRY(OpenComparer(placement));
  feed_ = std::make_unique<kube::SchedulingFeed>(client_.get(), comparer_.get(),
                                                 modes_ == nullptr
                                                     ? kube::SchedulingFeed::Failures::kUnseen
                                                     : kube::SchedulingFeed::Failures::kTold);
  TRY(feed_->Sync(kFeedLimit, [this] { server_->Beat(); }));
  comparer_->EndUnseen();
  if (!config_.control_name.empty()) {
    control_ = std::make_unique<kube::ConfigMapWatch>(
        client_.get(), config_.control_namespace, config_.control_name,
        [this](const kube::ConfigMapWatch::Said& said) {
          control_problem_ = ObeyConfigMap(said, Kind(), &switches_);
        });
  }
  if (config_.leader_election.is_on()) {
    lease_ = std::make_unique<kube::LeaseElection>(
        client_.get(), LeaseOptionsOf(config_.leader_election, identity_),
        [this](kube::Leadership) { NoteStanding(standing_->TakeSeat()); });
  }
  TRY_ASSIGN(SharedStanding standing,
             SharedStanding::Open({.kind = "placement",
                                   .journal = journal_.get(),
                                   .switches = &switches_,
                                   .modes = modes_.get(),
                                   .lease = lease_.get(),
                                   .identity = lease_ == nullptr ? "" : identity_}));
  standing_ = std::make_unique<SharedStanding>(std::move(standing));
  if (lease_ != nullptr) lease_->Start();
  return config_.extender ? OpenExtender() : Result<void>{};
}

Result<void> PlacementLoop::OpenExtender() {
  // Any replica answers: grades change nothing by themselves.
  TRY_ASSIGN(extender_, ExtenderServer::Start(
                            *config_.extender, client_.get(), feed_.get(), &scheduler_->tables(),
                            clock_, server_->metrics(),
                            [this](const PodIdentity& pod) { return WhyExtenderIsHeldFor(pod); }));
  LogInfo("/prioritize and /filter at {}", fmt::join(extender_->addresses(), ", "));
  scheduler_->OnPlacedByOthers([this](const PodIdentity& pod) { extender_->NotePlaced(pod); });
  return {};
}

Result<void> PlacementLoop::OpenComparer(const PlacementConfig& placement) {
  comparer_ = std::make_unique<PlacementComparer>(
      PlacementComparer::Options{.scheduler_name = placement.scheduler_name,
                                 .objective = policy_->objective(),
                                 .objective_text = ObjectiveText(policy_->objective()),
                                 .settle = placement.settle},
      clock_, policy_->NewScorer(), policy_->NewCluster(), scheduler_.get(), journal_.get());
  comparer_->OnAdvice([this](const PlacementComparison& advice) {
    if (Leads()) actuator_->TellAdvice(advice);
  });
  scheduler_->OnChoice([this](const OwnChoice& choice) {
    if (choice.group == ChoiceGroup::kCanary) last_canary_ = *choice.pod;
    comparer_->NoteOwnChoice(choice);
  });
  TRY_ASSIGN(const std::vector<UnendedComparison> unended, journal_->UnendedComparisons());
  for (const UnendedComparison& row : unended) {
    if (row.group == ComparisonGroup::kCanary) last_canary_ = row.pod;
  }
  comparer_->Resume(unended, UnixNow());
  FollowMode();
  return {};
}

Mode PlacementLoop::EffectiveMode() const { return switches_.Effective(Configured()); }

// The ConfigMap counts, too: who does not know yet that it has been killed decides nothing.
std::optional<Instant> PlacementLoop::FreshAsOf() const {
  const std::optional<Instant> seen = feed_->FreshAsOf();
  if (control_ == nullptr || !seen) return seen;
  const std::optional<Instant> told = control_->reflector().FreshAsOf();
  return told ? std::min(*seen, *told) : told;
}

bool PlacementLoop::IsFresh() const {
  const std::optional<Instant> fresh = FreshAsOf();
  return fresh && clock_->Now() - *fresh <= config_.staleness;
}

std::string PlacementLoop::Trouble() const {
  const bool is_controls = control_ != nullptr && control_->reflector().last_error();
  if (!is_controls) return feed_->Trouble();
  return fmt::format("the ConfigMap that holds us back: {}",
                     control_->reflector().last_error()->message);
}

std::string PlacementLoop::WhyNotFresh() const {
  if (IsFresh()) return "";
  return control_ != nullptr && !control_->reflector().FreshAsOf()
             ? "the ConfigMap of `control` has not been read"
             : "what is seen of the cluster is too old";
}

std::string PlacementLoop::WhyNobodyPlaces() const {
  if (!Serves()) {
    const std::string why = switches_.Why(Configured());
    return fmt::format("placement is in {}{}", ModeName(EffectiveMode()),
                       why.empty() ? "" : ", " + why);
  }
  return Leads() ? WhyNotFresh() : "another instance leads, or none yet";
}

// As after a start anew without the journal, where no Lease has kept what was promoted.
std::string PlacementLoop::WhoIsLeftWaiting() const {
  const bool is_held_back = !switches_.Why(Configured()).empty();  // That is said already.
  if (modes_ == nullptr || is_held_back || !Leads() || Serves()) return "";
  const size_t ours = comparer_->CountWaiting().ours;
  if (ours == 0) return "";
  return fmt::format(
      "{} pods name the scheduler {} and wait, and nobody places them: {}; promote it (rudderfish "
      "promote placement), or name the mode in the file",
      ours, scheduler_->name(), WhyNobodyPlaces());
}

size_t PlacementLoop::CountUnserved() const {
  const bool another_leads = !Leads() && !lease_->holder().empty();
  if (modes_ == nullptr || another_leads || (MayAct() && journal_health_->trouble().empty()))
    return 0;
  return comparer_->CountWaiting().ours;
}

// An extender alone grades from its start; beside `placement` it dares what that dares.
std::string PlacementLoop::WhyExtenderIsHeld() const {
  const Mode configured = modes_ == nullptr ? Mode::kEnforce : Configured();
  const Mode mode = switches_.Effective(configured);
  if (mode < Mode::kCanary) {
    std::string why = switches_.Why(configured);
    return why.empty() ? fmt::format("`placement` is in {}", ModeName(mode)) : why;
  }
  return WhyNotFresh();
}

std::string PlacementLoop::WhyExtenderIsHeldFor(const PodIdentity& pod) const {
  std::string why = WhyExtenderIsHeld();
  if (!why.empty() || modes_ == nullptr || EffectiveMode() != Mode::kCanary) return why;
  return IsInShare(pod.uid, config_.placement->canary) ? ""
                                                       : "the pod is not of the canary's share";
}

// Whoever has begun to serve goes on in lower modes, by kube-default: the pods that name us have no
// other scheduler.
bool PlacementLoop::Serves() const {
  const Mode mode = EffectiveMode();
  return mode >= Mode::kCanary || (mode != Mode::kOff && modes_->serves());
}

// Asked again right before a Binding goes out, however long it has waited.
bool PlacementLoop::MayAct() const { return !is_ending_ && Serves() && IsFresh() && Leads(); }

void PlacementLoop::FollowMode() {
  if (control_ != nullptr) switches_.Hold(control_->WhyUnread(config_.staleness));
  const Mode mode = EffectiveMode();
  const bool advises = mode == Mode::kAdvise && Leads();
  comparer_->SetComparing(mode == Mode::kOff ? Comparing::kNothing
                          : advises          ? Comparing::kAdvise
                                             : Comparing::kShadow);
  if (modes_ == nullptr) return;
  scheduler_->SetShare(mode == Mode::kEnforce  ? 1
                       : mode == Mode::kCanary ? config_.placement->canary
                                               : 0);
}

Result<void> PlacementLoop::LookAtCanary() {
  if (modes_ == nullptr) return {};
  TRY_ASSIGN(const std::optional<std::string> ended, modes_->LookAtCanary(clock_->Now()));
  if (ended && !last_canary_.name.empty()) actuator_->TellCanaryEnded(last_canary_, *ended);
  return {};
}

void PlacementLoop::Poll(milliseconds timeout) {
  telling_->Poll(Duration::zero());
  if (!telling_->is_idle()) timeout = std::min(timeout, kTellingWait);
  feed_->Poll(timeout);
  if (control_ != nullptr) switches_.Hold(control_->WhyUnread(config_.staleness));
  if (extender_ != nullptr) extender_->AnswerHeld();
  server_->Beat();
  Report();
}

milliseconds PlacementLoop::UntilDue() const {
  const Instant now = clock_->Now();
  if (!journal_health_->MayTry()) return kIdleWait;
  const Duration between = modes_ == nullptr ? Duration(kIdleWait) : Duration(kComparingWait);
  Duration due = std::max(turned_ + between - now, Duration::zero());
  if (MayAct()) due = std::min(due, scheduler_->UntilDue());
  return std::chrono::ceil<milliseconds>(due);
}

// Of what could not be kept nothing is lost while we run; the journal itself is tried again.
void PlacementLoop::NoteStanding(const Result<void>& kept) {
  if (!kept) NoteJournal(kept);
  FollowMode();
}

void PlacementLoop::NoteJournal(const Result<void>& written) {
  if (!written) journal_health_->Failed(written.error());
}

bool PlacementLoop::Turn() {
  const Instant now = clock_->Now();
  turned_ = now;
  NoteStanding(standing_->Follow());
  FollowMode();
  if (!journal_health_->MayTry()) return false;
  const Result<bool> turned = TakeTurn(now);
  if (!turned) {
    journal_health_->Failed(turned.error());
    return false;
  }
  journal_health_->Worked();
  return *turned;
}

Result<bool> PlacementLoop::TakeTurn(Instant now) {
  if (now - trimmed_ >= kBetweenJournalTrims) {
    trimmed_ = now;
    TRY(journal_->Trim());
  }
  if (now - ends_written_ >= kBetweenEnds) {
    ends_written_ = now;
    TRY(scheduler_->WriteEnds());
    TRY(LookAtCanary());
  }
  scheduler_->TellChoices();
  TRY(comparer_->Turn());
  if (!MayAct()) return false;
  TRY_ASSIGN(const bool has_more, scheduler_->Turn());
  metrics_.CountTurn(Seconds(clock_->Now() - now));
  return has_more;
}

void PlacementLoop::Stop() {
  const auto poll_while = [this](const auto& goes_on, Duration limit) {
    const Instant end = clock_->Now() + limit;
    while (goes_on() && clock_->Now() < end) Poll(kTellingWait);
  };
  // Bindings that are under way are waited for: their ends belong in the journal.
  poll_while([this] { return !scheduler_->is_idle(); }, kBindingsEndLimit);
  // What still waits for its turn never goes out: whoever takes the Lease now places those pods.
  is_ending_ = true;
  NoteJournal(scheduler_->WriteEnds());
  NoteJournal(comparer_->Flush());
  bool is_released = lease_ == nullptr;
  if (lease_ != nullptr) lease_->Release([&is_released] { is_released = true; });
  poll_while([&is_released] { return !is_released; }, kLeaseEndLimit);
  // Then what nobody waits for: after many pods at once, Events are still to be written.
  poll_while([this] { return actuator_->is_telling(); }, kTellLimit);
  lease_.reset();
}

SwitchedKind PlacementLoop::Kind() const {
  return {.name = "placement", .configured = Configured(), .highest = Mode::kEnforce};
}

std::string PlacementLoop::Answer(std::string_view request) {
  constexpr std::string_view kExplain = "explain ";
  if (request == "status") return Status();
  if (request.starts_with(kExplain)) return Explain(std::string(request.substr(kExplain.size())));
  const bool is_ladder = request.starts_with("promote") || request.starts_with("demote");
  if (is_ladder && !WhyNoLadder().empty()) return DumpAnswer({{"error", WhyNoLadder()}});
  std::string answer =
      is_ladder ? modes_->Answer(request) : AnswerSwitch(request, Kind(), &switches_);
  FollowMode();
  return Kept(std::move(answer));
}

std::string PlacementLoop::WhyNoLadder() const {
  if (modes_ == nullptr) return "the configuration has no `placement` to promote or demote";
  if (Leads()) return "";
  const std::string& holder = lease_->holder();
  return holder.empty() ? "no instance leads yet: ask again once one does"
                        : fmt::format("this instance looks on, {} leads: ask there", holder);
}

// What is answered holds over our end: it is kept by then, or it is said that it is not.
std::string PlacementLoop::Kept(std::string answer) {
  Result<void> kept = standing_->NotePause();
  if (kept) kept = standing_->Follow();
  if (!kept) return WithWarning(answer, "this is not kept: " + kept.error().message);
  const Instant end = clock_->Now() + kLeaseWordLimit;
  while (!standing_->is_said() && clock_->Now() < end) Poll(kTellingWait);
  if (standing_->is_said()) return answer;
  const auto& error = lease_->last_error();
  return WithWarning(
      answer, fmt::format("the Lease does not say so yet{}: should this instance end now, the next "
                          "begins as before",
                          error ? " (" + error->message + ")" : ""));
}

std::string PlacementLoop::Explain(const std::string& key) {
  const std::optional<PendingStory> story = comparer_->Explain(key);
  if (!story) return DumpAnswer({{"pending", nullptr}});
  const bool is_ours = modes_ != nullptr && story->scheduler == scheduler_->name();
  OrderedJson groups = OrderedJson::array();
  for (const PendingStory::Group& group : story->groups)
    groups.push_back({{"reason", group.reason}, {"nodes", group.nodes}});
  return DumpAnswer({{"pending",
                      {{"pod", key},
                       {"scheduler", story->scheduler},
                       {"waited_s", story->waited_ms / 1000},
                       {"nodes", story->nodes},
                       {"feasible", story->feasible},
                       {"message", story->message},
                       {"gates", story->gates},
                       {"unmodelled", story->unmodelled},
                       {"opted_out", story->is_opted_out},
                       {"held", is_ours ? WhyNobodyPlaces() : ""},
                       {"policy", scheduler_->policy()},
                       {"choice", story->choice},
                       {"refused", std::move(groups)}}}});
}

std::string PlacementLoop::Describe() const {
  if (!config_.placement)
    return fmt::format("asked by kube-scheduler, {} grades", config_.extender->choice.policy);
  return fmt::format("{}, for pods that name the scheduler {}, policy {}", ModeName(Configured()),
                     config_.placement->scheduler_name, policy_->name());
}

}  // namespace rudderfish
