// SPDX-License-Identifier: Apache-2.0
#include "kube/events.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/log.h"
#include "base/one_line.h"

namespace rudderfish::kube {
namespace {

// What the API server accepts.
constexpr size_t kNoteBytesMax = 1024;
constexpr size_t kWordBytesMax = 128;
constexpr size_t kNameBytesMax = 220;
constexpr size_t kFailuresLoggedMax = 16;

std::string Bounded(const std::string& text, size_t bytes_max) {
  return text.size() <= bytes_max ? text : OneLine(text, bytes_max - 3);
}

std::string NameSpaceOf(const ObjectReference& object) {
  return object.name_space.empty() ? "default" : object.name_space;
}

std::string Path(const ObjectReference& object) {
  return fmt::format("/apis/events.k8s.io/v1/namespaces/{}/events", NameSpaceOf(object));
}

}  // namespace

EventRecorder::EventRecorder(ApiClient* client, EventOptions options)
    : client_(client),
      options_(std::move(options)),
      rng_(client->NewRng()),
      tokens_(options_.burst),
      refilled_at_(client->clock().Now()) {}

EventRecorder::~EventRecorder() {
  client_->Cancel(timer_);
  for (const ApiClient::Id id : in_flight_) client_->Cancel(id);
}

void EventRecorder::Record(const EventNote& note) {
  const Instant now = client_->clock().Now();
  const Key key{note.regarding, note.kind, Bounded(note.reason, kWordBytesMax),
                Bounded(note.action, kWordBytesMax), Bounded(note.note, kNoteBytesMax)};
  const auto found = series_.find(key);
  if (found != series_.end() &&
      (found->second.is_queued || now - found->second.last_at < options_.series_end)) {
    Series& series = found->second;
    ++series.count;
    ++counts_.merged;
    series.last = Today();
    series.last_at = now;
    Enqueue(key, &series);
    return;
  }
  if (queue_.size() >= options_.queue_max) {
    ++counts_.dropped;
    return;
  }
  if (found != series_.end()) series_.erase(found);
  Forget();
  Series series;
  series.name =
      fmt::format("{}.{:016x}", note.regarding.name.substr(0, kNameBytesMax), rng_.Next64());
  series.first = series.last = Today();
  series.last_at = now;
  Enqueue(key, &series_.emplace(key, std::move(series)).first->second);
}

// Makes room, the longest silent going first; what still waits is kept. An eighth at once, so that
// it is seldom done.
void EventRecorder::Forget() {
  if (series_.size() < options_.series_max) return;
  std::vector<std::map<Key, Series>::iterator> silent;
  for (auto series = series_.begin(); series != series_.end(); ++series) {
    if (!series->second.is_queued) silent.push_back(series);
  }
  const size_t count = std::min(silent.size(), options_.series_max / 8 + 1);
  std::partial_sort(
      silent.begin(), silent.begin() + static_cast<std::ptrdiff_t>(count), silent.end(),
      [](const auto& a, const auto& b) { return a->second.last_at < b->second.last_at; });
  for (size_t i = 0; i < count; ++i) series_.erase(silent[i]);
}

void EventRecorder::Enqueue(const Key& key, Series* series) {
  if (!series->is_queued) {
    series->is_queued = true;
    queue_.push_back(key);
  }
  WaitToSend(Duration::zero());
}

void EventRecorder::WaitToSend(Duration delay) {
  const Instant at = client_->clock().Now() + delay;
  if (timer_ != 0 && timer_at_ <= at) return;
  client_->Cancel(timer_);
  timer_at_ = at;
  timer_ = client_->After(delay, [this] {
    timer_ = 0;
    Send();
  });
}

void EventRecorder::Refill() {
  const Instant now = client_->clock().Now();
  tokens_ = std::min(options_.burst, tokens_ + Seconds(now - refilled_at_) * options_.per_second);
  refilled_at_ = now;
}

// Whatever may be sent now: new Events at once, series not too often. Those go behind the others,
// so that a long queue is not moved for each that leaves it.
void EventRecorder::Send() {
  Refill();
  const Instant now = client_->clock().Now();
  std::vector<Key> later;
  Duration wait = options_.series_interval;
  while (!queue_.empty() && in_flight_.size() < options_.in_flight_max && tokens_ >= 1) {
    Key key = std::move(queue_.front());
    queue_.pop_front();
    Series& series = series_.at(key);
    const Duration left =
        series.told == 0 ? Duration::zero() : series.told_at + options_.series_interval - now;
    if (left > Duration::zero()) {
      wait = std::min(wait, left);
      later.push_back(std::move(key));
      continue;
    }
    tokens_ -= 1;
    SendOne(key, &series);
  }
  const bool is_full = in_flight_.size() >= options_.in_flight_max;  // The next answer goes on.
  if (tokens_ < 1) {
    wait = std::min(wait, std::chrono::duration_cast<Duration>(
                              std::chrono::duration<double>((1 - tokens_) / options_.per_second)));
  }
  std::move(later.begin(), later.end(), std::back_inserter(queue_));
  if (!queue_.empty() && !is_full)
    WaitToSend(std::max<Duration>(wait, std::chrono::milliseconds(10)));
}

void EventRecorder::SendOne(const Key& key, Series* series) {
  series->is_queued = false;
  ApiRequest request;
  request.repeat = Repeat::kWhenSafe;
  if (series->told == 0) {
    request.method = Method::kPost;
    request.path = Path(key.regarding);
    request.body = Body(key, *series);
  } else {
    request.method = Method::kMergePatch;
    request.path = Path(key.regarding) + "/" + series->name;
    request.body =
        Json({{"series",
               {{"count", series->count}, {"lastObservedTime", ToMicroTime(series->last)}}}})
            .dump();
  }
  series->told = series->count;
  series->told_at = client_->clock().Now();
  const auto id = std::make_shared<ApiClient::Id>(0);
  *id = client_->Send(std::move(request), [this, id, key](ApiAnswer answer) {
    in_flight_.erase(*id);
    if (!queue_.empty()) WaitToSend(Duration::zero());
    if (answer.ok()) {
      ++counts_.sent;
      return;
    }
    ++counts_.failed;
    // The server keeps Events for an hour; a series begins anew after that.
    if (const auto found = series_.find(key); found != series_.end() && !found->second.is_queued)
      series_.erase(found);
    const std::string& message = answer.outcome.error().message;
    if (logged_.size() < kFailuresLoggedMax && logged_.insert(message).second)
      LogWarning("an Event could not be written: {}", message);
  });
  in_flight_.insert(*id);
}

std::string EventRecorder::Body(const Key& key, const Series& series) const {
  const ObjectReference& object = key.regarding;
  Json regarding = {
      {"apiVersion", object.api_version}, {"kind", object.kind}, {"name", object.name}};
  if (!object.name_space.empty()) regarding["namespace"] = object.name_space;
  if (!object.uid.empty()) regarding["uid"] = object.uid;
  Json event = {
      {"apiVersion", "events.k8s.io/v1"},
      {"kind", "Event"},
      {"metadata", {{"name", series.name}, {"namespace", NameSpaceOf(object)}}},
      {"eventTime", ToMicroTime(series.first)},
      {"reportingController", options_.controller},
      {"reportingInstance",
       Bounded(options_.instance.empty() ? options_.controller : options_.instance, kWordBytesMax)},
      {"type", key.kind == EventKind::kNormal ? "Normal" : "Warning"},
      {"reason", key.reason},
      {"action", key.action},
      {"note", key.note},
      {"regarding", regarding}};
  if (series.count > 1) {
    event["series"] = {{"count", series.count}, {"lastObservedTime", ToMicroTime(series.last)}};
  }
  return event.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace rudderfish::kube
