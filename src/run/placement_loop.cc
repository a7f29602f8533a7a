// SPDX-License-Identifier: Apache-2.0
#include "run/placement_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/log.h"
#include "base/units.h"
#include "kube/kubeconfig.h"
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

ModeLadder::Settings SettingsOf(Mode mode, const LivePolicy& policy) {
  return {.mode = mode,
          .policy = std::string(policy.name()),
          .objective = ObjectiveText(policy.objective())};
}

std::string PlacementLine(std::string_view what, std::string_view value) {
  return fmt::format("{:<14}{}\n", what, value);
}

OrderedJson FallbacksJson(const SchedulerCounts& counts) {
  OrderedJson json = OrderedJson::object();
  for (size_t i = 1; i < counts.stepped_back.size(); ++i)
    json[std::string(kStepBackNames[i])] = counts.stepped_back[i];
  return json;
}

std::string WhatIsTouched(const PlacementConfig& placement, const std::string& policy) {
  switch (placement.mode) {
    case Mode::kOff:
    case Mode::kShadow:
      return "nothing: what it would do is recorded";
    case Mode::kAdvise:
      return "nothing but Events on pods that wait for another scheduler";
    case Mode::kCanary:
      return fmt::format("pods that name it: {:g} % are placed by {}, the others by kube-default",
                         placement.canary * 100, policy);
    case Mode::kEnforce:
      break;
  }
  return fmt::format("pods that name it: all are placed by {}", policy);
}

// Empty: not known; `run` says why.
std::string OwnServer(const Config& config) {
  const auto access = kube::FindCluster(
      {.kubeconfig = config.cluster.kubeconfig.string(), .context = config.cluster.context},
      kube::KubeEnvironment::OfProcess());
  return access ? access->server : "";
}

// How many nodes of each type the policy knows, and how many it does not count.
OrderedJson TypesJson(const LivePolicy& policy, Scheduler* scheduler, LiveCluster* cluster) {
  if (!policy.is_learned() || !policy.facts().TypesMatter()) return OrderedJson::object();
  cluster->Read(scheduler->tables().Rules().nodes());
  OrderedJson json = OrderedJson::object();
  const std::vector<int> counts = cluster->CountTypes();
  for (size_t i = 0; i < counts.size(); ++i) json[policy.facts().types[i]] = counts[i];
  json["(unknown)"] = cluster->CountOutside();
  return json;
}

}  // namespace

PlacementLoop::PlacementLoop(HostParts* host, ClusterLink* link)
    : host_(host),
      link_(link),
      kind_(PlacementKind(link->name)),
      config_(host->config),
      clock_(host->clock),
      late_(host->journal->placements(), host->journal_health.get()),
      metrics_(host->server->metrics(), link->name),
      ends_written_(clock_->Now()) {}

Result<std::unique_ptr<PlacementLoop>> PlacementLoop::Start(HostParts* host, ClusterLink* link) {
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
                                                      host_->journal->placements()));
    TRY_ASSIGN(ladder_, ModeLadder::Open({.name = kind_, .record = kPlacementLadder.record},
                                         SettingsOf(placement.mode, *policy_), evidence_.get(),
                                         host_->journal->modes()));
  }
  permit_ = std::make_unique<PlacementPermit>(host_, link_, ladder_.get(), placement.canary);
  actuator_ = std::make_unique<PlacementActuatorOfKube>(
      link_->client.get(), link_->telling.get(),
      placement.scheduler_name.empty() ? "rudderfish" : placement.scheduler_name, host_->identity,
      [this] { return permit_->MayAct(); });
  scheduler_ = std::make_unique<Scheduler>(SchedulerOptions{.name = placement.scheduler_name,
                                                            .cluster = link_->name,
                                                            .bindings_max = placement.bindings_max,
                                                            .seed = rng.Next64()},
                                           clock_, policy_->NewScorer(), actuator_.get(), &late_,
                                           [this] { return permit_->MayAct(); });
  TRY(OpenComparer(placement));
  seen_ = std::make_unique<kube::SchedulingFollower>(clock_, comparer_.get());
  permit_->Watch(seen_.get());
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

Result<void> PlacementLoop::Reload(const Config& config) {
  if (ladder_ == nullptr) return {};
  return ladder_->Configure(SettingsOf(config.placement->mode, *policy_));
}

Result<void> PlacementLoop::OpenExtender() {
  // Any replica answers: grades change nothing by themselves.
  TRY_ASSIGN(extender_,
             ExtenderServer::Start(
                 *config_.extender, link_->client.get(), seen_.get(), &scheduler_->tables(), clock_,
                 host_->server->metrics(),
                 [this](const PodIdentity& pod) { return permit_->WhyExtenderIsHeldFor(pod); }));
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
      clock_, policy_->NewScorer(), policy_->NewCluster(), scheduler_.get(),
      host_->journal->placements());
  comparer_->OnAdvice([this](const PlacementComparison& advice) {
    if (host_->Leads()) actuator_->TellAdvice(advice);
  });
  scheduler_->OnChoice([this](const OwnChoice& choice) {
    if (choice.group == ChoiceGroup::kCanary) last_canary_ = *choice.pod;
    comparer_->NoteOwnChoice(choice);
  });
  TRY_ASSIGN(const std::vector<UnendedComparison> unended,
             host_->journal->placements()->UnendedComparisons(link_->name));
  for (const UnendedComparison& row : unended) {
    if (row.group == ComparisonGroup::kCanary) last_canary_ = row.pod;
  }
  comparer_->Resume(unended, UnixNow());
  FollowMode();
  return {};
}

// As after a restart without the journal, where no Lease has kept what was promoted.
std::string PlacementLoop::WhoIsLeftWaiting() const {
  if (!permit_->LeavesByMode()) return "";
  const size_t ours = comparer_->CountWaiting().ours;
  if (ours == 0) return "";
  return fmt::format(
      "{} pods with schedulerName {} are pending, and no scheduler places them: {}; promote "
      "placement (rudderfish promote {}), or set the mode in the file",
      ours, scheduler_->name(), permit_->WhyNotPlacing(), kind_);
}

size_t PlacementLoop::CountUnserved() const {
  return permit_->LeavesUnserved() ? comparer_->CountWaiting().ours : 0;
}

void PlacementLoop::FollowMode() {
  const Mode mode = permit_->Effective();
  const bool advises = mode == Mode::kAdvise && host_->Leads();
  comparer_->SetComparing(mode == Mode::kOff ? Comparing::kNothing
                          : advises          ? Comparing::kAdvise
                                             : Comparing::kShadow);
  if (ladder_ == nullptr) return;
  scheduler_->SetShare(mode == Mode::kEnforce  ? 1
                       : mode == Mode::kCanary ? permit_->CanaryShare()
                                               : 0);
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
  if (permit_->MayAct()) due = std::min(due, scheduler_->UntilDue());
  return std::chrono::ceil<milliseconds>(due);
}

bool PlacementLoop::Turn() {
  const Instant now = clock_->Now();
  turned_ = now;
  if (!is_listed_) return false;  // What an earlier process left is measured on all that there is.
  FollowMode();
  scheduler_->TellChoices();
  if (host_->journal_health->MayTry()) host_->journal_health->Note(WriteDown(now));
  if (!permit_->MayAct()) return false;
  const Result<bool> turned = scheduler_->Turn();
  if (!turned) host_->journal_health->Failed(turned.error());
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
  permit_->End();
  host_->journal_health->Note(scheduler_->WriteEnds());
  host_->journal_health->Note(late_.Flush());
  host_->journal_health->Note(comparer_->Flush());
}

SwitchedKind PlacementLoop::Kind() const {
  return {.name = kind_, .configured = permit_->Configured()};
}

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
                     {"held", is_ours ? permit_->WhyNotPlacing() : ""},
                     {"policy", scheduler_->policy()},
                     {"choice", story->choice},
                     {"refused", std::move(groups)}};
}

std::string PlacementLoop::Describe() const {
  if (!config_.placement)
    return fmt::format("extender for kube-scheduler, policy {}", config_.extender->choice.policy);
  return fmt::format("{} {}, scheduler {}, policy {}", kind_, ModeName(permit_->Configured()),
                     config_.placement->scheduler_name, policy_->name());
}

// The extender and what else there is of the own cluster is ready while another is not seen: that
// is in `status` and in a metric of its own.
std::string PlacementLoop::ClusterTrouble() const {
  return link_->is_own() ? permit_->Unseen() : "";
}

void PlacementLoop::Count(ClusterCounts* counts) const {
  counts->events_sent += actuator_->event_counts().sent;
  counts->events_lost += actuator_->event_counts().dropped + actuator_->event_counts().failed;
}

void PlacementLoop::Report() {
  const std::string left = WhoIsLeftWaiting();
  if (!left.empty() && !has_told_who_waits_) LogWarning("{}", left);
  has_told_who_waits_ = !left.empty();
  metrics_.Show({.actuator = actuator_.get(),
                 .scheduler = scheduler_.get(),
                 .seen = seen_.get(),
                 .unserved = CountUnserved(),
                 .is_fresh = permit_->IsFresh()});
}

OrderedJson PlacementLoop::ExtenderJson() const {
  const ExtenderServer::Counts counts = extender_->counts();
  return {{"addresses", extender_->addresses()},
          {"policy", config_.extender->choice.policy},
          {"answered", counts.answered},
          {"abstained", counts.abstained},
          {"malformed", counts.malformed},
          {"newest_malformed", extender_->newest_malformed()},
          {"refused", counts.refused},
          {"newest_refused", extender_->newest_refused()},
          {"late", counts.late},
          {"bypassed", counts.bypassed},
          {"held", permit_->WhyExtenderIsHeld()}};
}

OrderedJson PlacementLoop::Status() const {
  const SchedulerCounts& counts = scheduler_->counts();
  const PlacementComparer::Waiting waiting = comparer_->CountWaiting();
  const std::string trouble = link_->is_own() ? permit_->Trouble() : permit_->Unseen();
  return {{"policy", scheduler_->policy()},
          {"scheduler_name", scheduler_->name()},
          {"nodes", scheduler_->tables().node_count()},
          {"pods", scheduler_->tables().pod_count()},
          {"active", scheduler_->queue().active()},
          {"backing_off", scheduler_->queue().backing_off()},
          {"unschedulable", scheduler_->queue().asleep()},
          {"binding", scheduler_->bindings()},
          {"waiting_for_others", waiting.others},
          {"waiting_for_us", waiting.ours},
          {"unserved", CountUnserved()},
          {"bound", counts.bound},
          {"decisions", counts.decisions},
          {"conflicts", counts.conflicts},
          {"lost_races", counts.lost_races},
          {"by_policy", counts.by_policy},
          {"fallbacks", FallbacksJson(counts)},
          {"believes", policy_->Beliefs()},
          {"types", TypesJson(*policy_, scheduler_.get(), cluster_.get())},
          {"cluster", link_->name},
          {"server", link_->client->access().server},
          {"problem", trouble.empty() ? WhoIsLeftWaiting() : trouble}};
}

std::string PlacementKind(std::string_view cluster) {
  return cluster.empty() ? "placement" : fmt::format("placement/{}", cluster);
}

Result<std::string> DescribePlacement(const Config& config) {
  std::string text;
  if (config.placement) {
    TRY_ASSIGN(const LivePolicy policy, LoadPolicy(config.placement->choice));
    text += PlacementLine(
        "placement", fmt::format("{}; pods with schedulerName {}; {} decides; at most {} "
                                 "bindings at a time",
                                 ModeName(config.placement->mode), config.placement->scheduler_name,
                                 policy.name(), config.placement->bindings_max));
    text += PlacementLine("objective", ObjectiveText(policy.objective()));
    if (policy.is_learned()) text += PlacementLine("believes", policy.Beliefs());
    text += PlacementLine("touches", WhatIsTouched(*config.placement, policy.name()));
    std::vector<NamedCluster> clusters = config.placement->clusters;
    TRY(FindNamedClusters(&clusters, OwnServer(config)));
    for (const NamedCluster& one : clusters) {
      const Mode mode = one.kept_mode.value_or(config.placement->mode);
      text += PlacementLine(
          PlacementKind(one.name),
          mode == config.placement->mode
              ? fmt::format("the same in {}", one.where.access->server)
              : fmt::format("{}; else the same in {}", ModeName(mode), one.where.access->server));
    }
  }
  if (config.extender) {
    TRY_ASSIGN(const LivePolicy policy, LoadPolicy(config.extender->choice));
    TRY(CheckTls(*config.extender));
    text += PlacementLine(
        "extender", fmt::format("{}; {} grades, within {}", config.extender->listen, policy.name(),
                                FormatDuration(config.extender->timeout)));
    if (policy.is_learned()) text += PlacementLine("believes", policy.Beliefs());
  }
  return text;
}

}  // namespace rudderfish
