// SPDX-License-Identifier: Apache-2.0
#include "run/placement_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/log.h"
#include "base/units.h"
#include "run/host.h"
#include "task/placement.h"

namespace rudderfish {
namespace {

using std::chrono::milliseconds;

constexpr Duration kBetweenEnds = std::chrono::seconds(1);
constexpr milliseconds kIdleWait(1000);
constexpr milliseconds kComparingWait(250);

// Of an extender alone: nothing is placed, and its policy is the one that is told of.
PlacementConfig PlacementOf(const Config& config) {
  if (config.placement) return *config.placement;
  return {.mode = Mode::kOff, .scheduler_name = "", .choice = config.extender->choice};
}

}  // namespace

PlacementLoop::PlacementLoop(Host* host, ClusterLink* link)
    : host_(host),
      link_(link),
      kind_(PlacementKind(link->name)),
      config_(host->config()),
      clock_(host->clock()),
      late_(host->journal(), host->journal_health()),
      ends_written_(clock_->Now()) {}

PlacementLoop::~PlacementLoop() = default;

Result<std::unique_ptr<PlacementLoop>> PlacementLoop::Start(Host* host, ClusterLink* link) {
  std::unique_ptr<PlacementLoop> loop(new PlacementLoop(host, link));
  TRY(loop->Open());
  return loop;
}

Result<void> PlacementLoop::Open() {
  Rng rng = link_->client->NewRng();
  const PlacementConfig placement = PlacementOf(config_);
  TRY_ASSIGN(const LivePolicy loaded, LoadPolicy(placement.choice));
  policy_ = std::make_unique<LivePolicy>(loaded);
  cluster_ = policy_->NewCluster();
  if (config_.placement) {
    TRY_ASSIGN(evidence_, PlacementModeEvidence::Open({.schedulers = placement.compare,
                                                       .canary = placement.canary,
                                                       .cluster = link_->name},
                                                      host_->journal()));
    TRY_ASSIGN(ladder_,
               ModeLadder::Open({.name = kind_, .record = kPlacementLadder.record},
                                SettingsOf(placement.mode), evidence_.get(), host_->journal()));
  }
  actuator_ = std::make_unique<PlacementActuatorOfKube>(
      link_->client.get(), link_->telling.get(),
      placement.scheduler_name.empty() ? "rudderfish" : placement.scheduler_name, host_->identity(),
      [this] { return MayAct(); });
  scheduler_ = std::make_unique<Scheduler>(SchedulerOptions{.name = placement.scheduler_name,
                                                            .cluster = link_->name,
                                                            .bindings_max = placement.bindings_max,
                                                            .seed = rng.Next64()},
                                           clock_, policy_->NewScorer(), actuator_.get(), &late_,
                                           [this] { return MayAct(); });
  TRY(OpenComparer(placement));
  seen_ = std::make_unique<kube::SchedulingFollower>(clock_, comparer_.get());
  link_->feed->Add(seen_.get(),
                   ladder_ == nullptr ? kube::EndedPods::kUntold : kube::EndedPods::kFailed);
  return {};
}

Result<void> PlacementLoop::Begin() {
  FollowListing();
  return config_.extender && link_->is_own() ? OpenExtender() : Result<void>{};
}

// Another cluster may be listed long after the start.
void PlacementLoop::FollowListing() {
  if (is_listed_ || !link_->feed->FreshAsOf(*seen_)) return;
  is_listed_ = true;
  comparer_->EndUnseen();
}

ModeLadder::Settings PlacementLoop::SettingsOf(Mode mode) const {
  return {.mode = mode,
          .policy = std::string(policy_->name()),
          .objective = ObjectiveText(policy_->objective())};
}

Result<void> PlacementLoop::Reload(const Config& config) {
  if (ladder_ == nullptr) return {};
  return ladder_->Configure(SettingsOf(config.placement->mode));
}

Result<void> PlacementLoop::OpenExtender() {
  // Any replica answers: grades change nothing by themselves.
  TRY_ASSIGN(extender_, ExtenderServer::Start(
                            *config_.extender, link_->client.get(), seen_.get(),
                            &scheduler_->tables(), clock_, host_->server()->metrics(),
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
                                 .cluster = link_->name,
                                 .settle = placement.settle},
      clock_, policy_->NewScorer(), policy_->NewCluster(), scheduler_.get(), host_->journal());
  comparer_->OnAdvice([this](const PlacementComparison& advice) {
    if (host_->Leads()) actuator_->TellAdvice(advice);
  });
  scheduler_->OnChoice([this](const OwnChoice& choice) {
    if (choice.group == ChoiceGroup::kCanary) last_canary_ = *choice.pod;
    comparer_->NoteOwnChoice(choice);
  });
  TRY_ASSIGN(const std::vector<UnendedComparison> unended,
             host_->journal()->UnendedComparisons(link_->name));
  for (const UnendedComparison& row : unended) {
    if (row.group == ComparisonGroup::kCanary) last_canary_ = row.pod;
  }
  comparer_->Resume(unended, UnixNow());
  FollowMode();
  return {};
}

Mode PlacementLoop::EffectiveMode() const { return host_->switches().Effective(Configured()); }

// The ConfigMap counts, too: who does not know yet that it has been killed decides nothing.
std::optional<Instant> PlacementLoop::FreshAsOf() const {
  const std::optional<Instant> seen = link_->feed->FreshAsOf(*seen_);
  if (host_->control() == nullptr || !seen) return seen;
  const std::optional<Instant> told = host_->control()->reflector().FreshAsOf();
  return told ? std::min(*seen, *told) : told;
}

bool PlacementLoop::IsFresh() const {
  const std::optional<Instant> fresh = FreshAsOf();
  return fresh && clock_->Now() - *fresh <= host_->config().staleness;
}

std::string PlacementLoop::Trouble() const {
  const kube::ConfigMapWatch* control = host_->control();
  const bool is_controls = control != nullptr && control->reflector().last_error();
  if (!is_controls) return link_->feed->Trouble(*seen_);
  return fmt::format("the ConfigMap of `control`: {}", control->reflector().last_error()->message);
}

std::string PlacementLoop::WhyNotFresh() const {
  if (IsFresh()) return "";
  return host_->control() != nullptr && !host_->control()->reflector().FreshAsOf()
             ? "the ConfigMap of `control` has not been read"
             : "what is seen of the cluster is too old";
}

std::string PlacementLoop::WhyNobodyPlaces() const {
  if (!Serves()) {
    const std::string why = host_->switches().Why(Configured());
    return fmt::format("placement is in {}{}", ModeName(EffectiveMode()),
                       why.empty() ? "" : ", " + why);
  }
  return host_->Leads() ? WhyNotFresh() : "another instance leads, or none yet";
}

// As after a start anew without the journal, where no Lease has kept what was promoted.
std::string PlacementLoop::WhoIsLeftWaiting() const {
  const bool is_held_back = !host_->switches().Why(Configured()).empty();  // That is said already.
  if (ladder_ == nullptr || is_held_back || !host_->Leads() || Serves()) return "";
  const size_t ours = comparer_->CountWaiting().ours;
  if (ours == 0) return "";
  return fmt::format(
      "{} pods with schedulerName {} are pending, and no scheduler places them: {}; promote "
      "placement (rudderfish promote {}), or set the mode in the file",
      ours, scheduler_->name(), WhyNobodyPlaces(), kind_);
}

size_t PlacementLoop::CountUnserved() const {
  const bool another_leads = !host_->Leads() && !host_->lease()->holder().empty();
  if (ladder_ == nullptr || another_leads || MayAct()) return 0;
  return comparer_->CountWaiting().ours;
}

// An extender alone grades from its start; beside `placement` it dares what that dares.
std::string PlacementLoop::WhyExtenderIsHeld() const {
  const Mode configured = ladder_ == nullptr ? Mode::kEnforce : Configured();
  const Mode mode = host_->switches().Effective(configured);
  if (mode < Mode::kCanary) {
    std::string why = host_->switches().Why(configured);
    return why.empty() ? fmt::format("placement is in {}", ModeName(mode)) : why;
  }
  return WhyNotFresh();
}

std::string PlacementLoop::WhyExtenderIsHeldFor(const PodIdentity& pod) const {
  std::string why = WhyExtenderIsHeld();
  if (!why.empty() || ladder_ == nullptr || EffectiveMode() != Mode::kCanary) return why;
  return IsInShare(pod.uid, CanaryShare()) ? "" : "the pod is not of the canary's share";
}

// Whoever has begun to serve goes on in lower modes, by kube-default: the pods that name us have no
// other scheduler.
bool PlacementLoop::Serves() const {
  const Mode mode = EffectiveMode();
  return mode >= Mode::kCanary || (mode != Mode::kOff && ladder_->serves());
}

// Asked again right before a Binding goes out, however long it has waited.
bool PlacementLoop::MayAct() const {
  return !is_ending_ && Serves() && IsFresh() && host_->Leads();
}

// None while nothing can be written: it could do worse unseen, so that kube-default places.
double PlacementLoop::CanaryShare() const {
  return host_->journal_health()->trouble().empty() ? config_.placement->canary : 0;
}

void PlacementLoop::FollowMode() {
  const Mode mode = EffectiveMode();
  const bool advises = mode == Mode::kAdvise && host_->Leads();
  comparer_->SetComparing(mode == Mode::kOff ? Comparing::kNothing
                          : advises          ? Comparing::kAdvise
                                             : Comparing::kShadow);
  if (ladder_ == nullptr) return;
  scheduler_->SetShare(mode == Mode::kEnforce ? 1 : mode == Mode::kCanary ? CanaryShare() : 0);
}

void PlacementLoop::TellCanaryEnded(const std::string& why) {
  if (!last_canary_.name.empty()) actuator_->TellCanaryEnded(last_canary_, why);
}

void PlacementLoop::Poll() {
  FollowListing();
  if (extender_ != nullptr) extender_->AnswerHeld();
}

milliseconds PlacementLoop::UntilDue() const {
  const Instant now = clock_->Now();
  const Duration between = ladder_ == nullptr ? Duration(kIdleWait) : Duration(kComparingWait);
  Duration due = std::max(turned_ + between - now, Duration::zero());
  if (MayAct()) due = std::min(due, scheduler_->UntilDue());
  return std::chrono::ceil<milliseconds>(due);
}

void PlacementLoop::NoteJournal(const Result<void>& written) {
  if (!written) host_->journal_health()->Failed(written.error());
}

bool PlacementLoop::Turn() {
  const Instant now = clock_->Now();
  turned_ = now;
  if (!is_listed_) return false;  // What an earlier process left is measured on all that there is.
  FollowMode();
  scheduler_->TellChoices();
  if (host_->journal_health()->MayTry()) NoteJournal(WriteDown(now));
  if (!MayAct()) return false;
  const Result<bool> turned = scheduler_->Turn();
  if (!turned) host_->journal_health()->Failed(turned.error());
  return turned.value_or(false);
}

Result<void> PlacementLoop::WriteDown(Instant now) {
  if (now - ends_written_ >= kBetweenEnds) {
    ends_written_ = now;
    TRY(late_.Flush());
    TRY(scheduler_->WriteEnds());
  }
  return comparer_->Turn();
}

void PlacementLoop::EndActing() {
  is_ending_ = true;
  NoteJournal(scheduler_->WriteEnds());
  NoteJournal(late_.Flush());
  NoteJournal(comparer_->Flush());
}

SwitchedKind PlacementLoop::Kind() const { return {.name = kind_, .configured = Configured()}; }

std::optional<OrderedJson> PlacementLoop::Explain(const std::string& key) {
  const std::optional<PendingStory> story = comparer_->Explain(key);
  if (!story) return std::nullopt;
  const bool is_ours = ladder_ != nullptr && story->scheduler == scheduler_->name();
  OrderedJson groups = OrderedJson::array();
  for (const PendingStory::Group& group : story->groups)
    groups.push_back({{"reason", group.reason}, {"nodes", group.nodes}});
  return OrderedJson{{"pod", key},
                     {"cluster", link_->name},
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
                     {"refused", std::move(groups)}};
}

std::string PlacementLoop::Describe() const {
  if (!config_.placement)
    return fmt::format("extender for kube-scheduler, policy {}", config_.extender->choice.policy);
  return fmt::format("{} {}, scheduler {}, policy {}", kind_, ModeName(Configured()),
                     config_.placement->scheduler_name, policy_->name());
}

}  // namespace rudderfish
