// SPDX-License-Identifier: Apache-2.0
#include "kube/mirror_feed.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>

#include "base/log.h"
#include "base/units.h"

namespace rudderfish::kube {
namespace {

constexpr Resource kNeeded[] = {Resource::kNodes, Resource::kPods, Resource::kReplicaSets,
                                Resource::kDeployments};
constexpr Duration kUsagePeriod = std::chrono::seconds(15);  // metrics-server's own resolution.
// A server that has not said a word by then will hardly do so; who starts is told soon.
constexpr Duration kSilenceLimit = std::chrono::seconds(5);
// Shorter than the client's: all of these must be open before the mirror is fresh again.
constexpr Duration kLastWait = std::chrono::milliseconds(1500);
constexpr Duration kStep = std::chrono::milliseconds(50);
// What others may take to be listed, once the needed ones are there.
constexpr Duration kGrace = std::chrono::seconds(5);

bool IsNeeded(Resource resource) {
  return std::find(std::begin(kNeeded), std::end(kNeeded), resource) != std::end(kNeeded);
}

bool IsUsage(Resource resource) {
  return resource == Resource::kNodeMetrics || resource == Resource::kPodMetrics;
}

int UsageIndex(Resource resource) { return resource == Resource::kNodeMetrics ? 0 : 1; }

std::string PathOf(Resource resource) {
  const ResourceName& name = NameOf(resource);
  return name.group.empty()
             ? fmt::format("/api/{}/{}", name.version, name.resource)
             : fmt::format("/apis/{}/{}/{}", name.group, name.version, name.resource);
}

}  // namespace

MirrorFeed::MirrorFeed(ApiClient* client, Mirror* mirror)
    : client_(client), mirror_(mirror), usage_(2, 0), usage_missing_(2), usage_asked_(2, false) {
  for (int i = 0; i < kResourceCount; ++i) {
    const auto resource = static_cast<Resource>(i);
    if (IsUsage(resource)) {
      AskUsage(resource);
      continue;
    }
    watched_.push_back({resource, std::make_unique<Reflector>(
                                      client,
                                      ReflectorOptions{.path = PathOf(resource),
                                                       .kind = std::string(NameOf(resource).kind),
                                                       .log = ReflectorLog::kOfOwner,
                                                       .back_off = {.last = kLastWait}},
                                      mirror->SinkOf(resource))});
    watched_.back().reflector->Start();
  }
}

MirrorFeed::~MirrorFeed() {
  for (const ApiClient::Id id : usage_) client_->Cancel(id);
}

void MirrorFeed::Poll(Duration timeout) {
  client_->Poll(timeout);
  NoteFreshness();
  TellFailures();
}

std::vector<Right> MirrorFeed::Rights(Need need) {
  std::vector<Right> rights;
  for (int i = 0; i < kResourceCount; ++i) {
    const auto resource = static_cast<Resource>(i);
    if (IsNeeded(resource) != (need == Need::kNeeded)) continue;
    const ResourceName& name = NameOf(resource);
    Right right{.verb = "list",
                .group = std::string(name.group),
                .resource = std::string(name.resource),
                .name_space = "",
                .name = ""};
    rights.push_back(right);
    right.verb = "watch";
    if (!IsUsage(resource)) rights.push_back(std::move(right));
  }
  return rights;
}

// All watches go through one server, and mostly fail together: one line says so, and one that it is
// over.
void MirrorFeed::TellFailures() {
  const Error* first = nullptr;
  int failing = 0;
  for (const Watched& watched : watched_) {
    const auto& error = watched.reflector->last_error();
    if (!watched.reflector->is_synced() || !error) continue;
    if (failing++ == 0) first = &*error;
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

void MirrorFeed::NoteFreshness() {
  for (const Watched& watched : watched_) {
    const std::optional<Instant> fresh = watched.reflector->FreshAsOf();
    if (fresh) mirror_->SetFreshAt(watched.resource, *fresh);
  }
}

bool MirrorFeed::IsSettled(Duration waited) const {
  bool others = usage_asked_[0] && usage_asked_[1];
  for (const Watched& watched : watched_) {
    const Reflector& reflector = *watched.reflector;
    if (reflector.is_synced()) continue;
    if (IsNeeded(watched.resource)) return false;
    others = others && reflector.last_error().has_value();
  }
  return others || waited > kGrace;
}

// A refusal stays one, whatever the patience.
Result<void> MirrorFeed::Refused() const {
  for (const Watched& watched : watched_) {
    const auto& error = watched.reflector->last_error();
    if (!IsNeeded(watched.resource) || watched.reflector->is_synced() || !error) continue;
    const bool may_pass =
        error->code == ErrorCode::kUnavailable || error->code == ErrorCode::kDeadlineExceeded ||
        error->code == ErrorCode::kConflict || error->code == ErrorCode::kCorruption;
    if (!may_pass) return tl::unexpected(*error);
  }
  return {};
}

int64_t MirrorFeed::CountListed() const {
  int64_t listed = 0;
  for (const Watched& watched : watched_) listed += watched.reflector->counts().listed;
  return listed;
}

Result<void> MirrorFeed::Sync(Duration limit, const std::function<void()>& on_step) {
  const Clock& clock = client_->clock();
  const Instant begin = clock.Now();
  Instant since = begin;  // When something more was listed.
  int64_t known = 0;
  while (!IsSettled(clock.Now() - begin)) {
    TRY(Refused());
    if (const int64_t listed = CountListed(); listed > known) {
      known = listed;
      since = clock.Now();
    }
    const Duration waited = clock.Now() - since;
    const bool is_silent = !client_->has_heard() && waited > kSilenceLimit;
    if (waited > limit || is_silent) {
      for (const Watched& watched : watched_) {
        const auto& error = watched.reflector->last_error();
        if (!watched.reflector->is_synced() && error) return tl::unexpected(*error);
      }
    }
    if (waited > limit) {
      return Fail(ErrorCode::kDeadlineExceeded, "the cluster was not listed within {}",
                  FormatDuration(limit));
    }
    Poll(kStep);
    if (on_step) on_step();
  }
  return {};
}

std::vector<std::string> MirrorFeed::Missing() const {
  std::vector<std::string> missing;
  for (const Watched& watched : watched_) {
    if (watched.reflector->is_synced()) {
      const Reflector::LeftOut& left_out = watched.reflector->left_out();
      if (left_out.empty()) continue;
      missing.push_back(fmt::format("{} of the {}, malformed ({})", left_out.size(),
                                    NameOf(watched.resource).resource, left_out.begin()->second));
      continue;
    }
    const auto& error = watched.reflector->last_error();
    missing.push_back(fmt::format("{} ({})", NameOf(watched.resource).resource,
                                  error ? error->message : "not listed yet"));
  }
  for (const Resource resource : {Resource::kNodeMetrics, Resource::kPodMetrics}) {
    const std::string& why = usage_missing_[UsageIndex(resource)];
    if (!why.empty()) missing.push_back(fmt::format("{} ({})", NameOf(resource).kind, why));
  }
  return missing;
}

std::vector<std::pair<Resource, ReflectorCounts>> MirrorFeed::Counts() const {
  std::vector<std::pair<Resource, ReflectorCounts>> counts;
  for (const Watched& watched : watched_) {
    counts.emplace_back(watched.resource, watched.reflector->counts());
  }
  return counts;
}

void MirrorFeed::AskUsage(Resource resource) {
  usage_[UsageIndex(resource)] =
      client_->Send({.path = PathOf(resource)}, [this, resource](const ApiAnswer& answer) {
        TakeUsage(resource, answer);
        usage_asked_[UsageIndex(resource)] = true;
        usage_[UsageIndex(resource)] =
            client_->After(kUsagePeriod, [this, resource] { AskUsage(resource); });
      });
}

void MirrorFeed::TakeUsage(Resource resource, const ApiAnswer& answer) {
  std::string& missing = usage_missing_[UsageIndex(resource)];
  missing.clear();
  if (!answer.ok()) {
    missing =
        answer.status.code == 404 ? "metrics.k8s.io is not served" : answer.outcome.error().message;
    return;
  }
  simdjson::dom::parser parser;
  simdjson::dom::array items;
  if (parser.parse(answer.body)["items"].get(items) != simdjson::SUCCESS) {
    missing = "the answer is no list";
    return;
  }
  ObjectSink* sink = mirror_->SinkOf(resource);
  sink->BeginList();
  for (const Element item : items) {
    if (const Result<void> listed = sink->Listed(item); !listed) {
      missing = listed.error().message;  // And that object is left out.
    }
  }
  sink->EndList();
}

}  // namespace rudderfish::kube
