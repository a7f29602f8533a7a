// SPDX-License-Identifier: Apache-2.0
#include "kube/cluster_feed.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/log.h"
#include "base/units.h"

namespace rudderfish::kube {
namespace {

constexpr Duration kSyncStep = std::chrono::milliseconds(50);
// A server that has not said a word by then will hardly do so; who starts is told soon.
constexpr Duration kSilenceLimit = std::chrono::seconds(5);  // Where it is known why.
constexpr Duration kSilenceMost = std::chrono::seconds(30);
// Shorter than the client's: all watches must be open before what is known is fresh again.
constexpr Duration kLongestWait = std::chrono::milliseconds(1500);
// What is only wanted may take as long to be listed, once the needed is there.
constexpr Duration kGrace = std::chrono::seconds(5);

bool MayPass(ErrorCode code) {
  return code == ErrorCode::kUnavailable || code == ErrorCode::kDeadlineExceeded ||
         code == ErrorCode::kConflict || code == ErrorCode::kCorruption;
}

bool IsPolled(Resource resource) {
  return resource == Resource::kNodeMetrics || resource == Resource::kPodMetrics;
}

// As kube-scheduler asks: pods that have ended take no room. A pod that leaves what is selected is
// told as it was before, so that who is to be told why pods failed must watch these, too.
std::string SelectorOf(Resource resource, EndedPods ended) {
  if (resource != Resource::kPods || ended == EndedPods::kAll) return "";
  return ended == EndedPods::kFailed
             ? "fieldSelector=status.phase%21%3DSucceeded"
             : "fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed";
}

}  // namespace

bool ClusterFeed::Source::IsSynced() const {
  return reflector != nullptr ? reflector->is_synced() : poll->is_answered();
}

const Error* ClusterFeed::Source::error() const {
  return reflector != nullptr && reflector->last_error() ? &*reflector->last_error() : nullptr;
}

const Error* ClusterFeed::Source::Refusal() const {
  const Error* const last = error();
  return last != nullptr && !MayPass(last->code) ? last : nullptr;
}

bool ClusterFeed::Source::IsSettled() const { return IsSynced() || Refusal() != nullptr; }

void ClusterFeed::Add(FeedFollower* follower, EndedPods ended) {
  CHECK(!is_started_);
  followers_.push_back(follower);
  ended_ = std::max(ended_, ended);
  for (const ResourceNeed& one : follower->Needs()) {
    auto source = std::find_if(sources_.begin(), sources_.end(),
                               [&](const Source& known) { return known.resource == one.resource; });
    if (source == sources_.end()) {
      source = sources_.insert(source, Source{.resource = one.resource});
      source->sinks = std::make_unique<FanOut>(PathOf(one.resource));
    }
    source->is_needed |= one.need == Need::kNeeded;
    source->sinks->Add(follower, follower->SinkOf(one.resource));
  }
}

void ClusterFeed::Start() {
  is_started_ = true;
  for (Source& source : sources_) {
    const std::string path = PathOf(source.resource);
    if (IsPolled(source.resource)) {
      source.poll = std::make_unique<ListPoll>(client_, path, source.sinks.get());
      continue;
    }
    ReflectorOptions options{.path = path,
                             .selector = SelectorOf(source.resource, ended_),
                             .kind = std::string(NameOf(source.resource).kind),
                             .log = ReflectorLog::kOfOwner,
                             .back_off = {.last = kLongestWait}};
    source.reflector = std::make_unique<Reflector>(client_, std::move(options), source.sinks.get());
    source.reflector->Start();
  }
}

void ClusterFeed::Poll(Duration timeout) {
  if (!is_started_) Start();
  client_->Poll(timeout);
  TellFailures();
  for (FeedFollower* follower : followers_) follower->Polled(*this);
}

// All watches go through one server, and mostly fail together: one line says so, and one that it is
// over. A refusal stays; it must not hide what comes and goes.
void ClusterFeed::TellFailures() {
  const Error* first = nullptr;
  for (const Source& source : sources_) {
    const Error* const error = source.error();
    if (!source.IsSynced() || error == nullptr) continue;
    if (first == nullptr || (!MayPass(first->code) && MayPass(error->code))) first = error;
  }
  if (first == nullptr) {
    if (told_) LogInfo("the cluster is watched in order again");
    told_.reset();
    return;
  }
  if (told_ == first->code) return;
  told_ = first->code;
  LogWarning("{}; it is tried again, and other watches that fail too are only counted",
             first->message);
}

ClusterFeed::Standing ClusterFeed::Look() const {
  Standing now;
  for (const Source& source : sources_) {
    if (source.reflector != nullptr) now.listed += source.reflector->counts().listed;
    if (source.IsSynced()) continue;
    if (source.is_needed) {
      now.is_needed_there = false;
    } else {
      now.is_wanted_settled &= source.IsSettled();
      if (source.Refusal() != nullptr) continue;
    }
    const Error* const error = source.error();
    if (error != nullptr && (now.failed == nullptr || !MayPass(error->code))) now.failed = error;
  }
  return now;
}

Result<void> ClusterFeed::Sync(Duration limit, const std::function<void()>& on_step) {
  if (!is_started_) Start();
  const Clock& clock = client_->clock();
  Instant since = clock.Now();  // When something more was listed.
  int64_t known = 0;
  while (true) {
    const Standing now = Look();
    if (now.listed > known) {
      known = now.listed;
      since = clock.Now();
    }
    const Duration waited = clock.Now() - since;
    if (now.is_needed_there && (now.is_wanted_settled || waited > kGrace)) return {};
    // A refusal stays one, whatever the patience.
    if (now.failed != nullptr && !MayPass(now.failed->code)) return tl::unexpected(*now.failed);
    const bool is_silent =
        !client_->has_heard() && waited > (now.failed != nullptr ? kSilenceLimit : kSilenceMost);
    if (waited > limit || is_silent) {
      if (now.failed != nullptr) return tl::unexpected(*now.failed);
      return Fail(ErrorCode::kDeadlineExceeded, "the cluster was not listed within {}",
                  FormatDuration(std::chrono::round<std::chrono::seconds>(waited)));
    }
    Poll(kSyncStep);
    if (on_step) on_step();
  }
}

const ClusterFeed::Source& ClusterFeed::SourceOf(Resource resource) const {
  const auto at = std::find_if(sources_.begin(), sources_.end(),
                               [&](const Source& one) { return one.resource == resource; });
  CHECK(is_started_ && at != sources_.end());
  return *at;
}

std::optional<Instant> ClusterFeed::FreshAt(Resource resource) const {
  const Source& source = SourceOf(resource);
  return source.reflector == nullptr ? std::nullopt : source.reflector->FreshAsOf();
}

const Error* ClusterFeed::RefusalOf(Resource resource) const {
  return SourceOf(resource).Refusal();
}

bool ClusterFeed::IsSynced(Resource resource) const { return SourceOf(resource).IsSynced(); }

std::optional<Instant> ClusterFeed::FreshAsOf(const FeedFollower& follower) const {
  std::optional<Instant> oldest;
  for (const ResourceNeed& one : follower.Needs()) {
    const Source& source = SourceOf(one.resource);
    if (source.reflector == nullptr) continue;
    if (one.need == Need::kWanted && (!source.IsSynced() || source.Refusal() != nullptr)) continue;
    const std::optional<Instant> fresh = FreshAt(one.resource);
    if (!fresh) return std::nullopt;
    if (!oldest || *fresh < *oldest) oldest = fresh;
  }
  return oldest;
}

std::string ClusterFeed::Trouble(const FeedFollower& follower) const {
  for (const ResourceNeed& one : follower.Needs()) {
    const Error* const error = SourceOf(one.resource).error();
    if (error != nullptr) return error->message;
  }
  return "";
}

std::vector<std::string> ClusterFeed::Missing(const FeedFollower& follower) const {
  std::vector<std::string> missing;
  for (const ResourceNeed& one : follower.Needs()) {
    const Source& source = SourceOf(one.resource);
    const ResourceName& name = NameOf(one.resource);
    if (source.poll != nullptr) {
      if (!source.poll->missing().empty())
        missing.push_back(fmt::format("{} ({})", name.kind, source.poll->missing()));
      continue;
    }
    const Error* const refusal = source.Refusal();
    if (!source.IsSynced() || refusal != nullptr) {
      const Error* const error = source.error();
      missing.push_back(fmt::format("{} ({})", name.resource,
                                    error != nullptr ? error->message : "not listed yet"));
      continue;
    }
    const LeftOut::Objects& left_out = source.sinks->left_out(&follower);
    if (left_out.empty()) continue;
    missing.push_back(fmt::format("{} of the {}, malformed ({})", left_out.size(), name.resource,
                                  left_out.begin()->second));
  }
  return missing;
}

std::vector<ClusterFeed::Watched> ClusterFeed::Counts() const {
  std::vector<Watched> all;
  for (const Source& source : sources_) {
    if (source.reflector == nullptr) continue;
    Watched watched{.resource = TextOf(source.resource), .counts = source.reflector->counts()};
    watched.counts.malformed = source.sinks->refused();
    for (const FeedFollower* follower : followers_) {
      for (const ResourceNeed& one : follower->Needs()) {
        if (one.resource == source.resource)
          watched.objects = std::max(watched.objects, follower->Count(one.resource));
      }
    }
    all.push_back(std::move(watched));
  }
  return all;
}

std::vector<Right> ClusterFeed::Rights(std::span<const ResourceNeed> needs, Need need) {
  std::vector<Right> rights;
  for (const ResourceNeed& one : needs) {
    if (one.need != need) continue;
    const ResourceName& name = NameOf(one.resource);
    for (const char* verb : {"list", "watch"}) {
      if (IsPolled(one.resource) && verb == std::string_view("watch")) continue;
      rights.push_back({.verb = verb,
                        .group = std::string(name.group),
                        .resource = std::string(name.resource),
                        .name_space = "",
                        .name = ""});
    }
  }
  return rights;
}

}  // namespace rudderfish::kube
