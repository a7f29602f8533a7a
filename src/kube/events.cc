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
  const std::string text = Bounded(note.note, kNoteBytesMax);
  const Key key{note.regarding, note.kind, Bounded(note.reason, kWordBytesMax),
                Bounded(note.action, kWordBytesMax),
                note.again == Again::kSameNote ? text : std::string()};
  const auto found = series_.find(key);
  if (found != series_.end() && (found->second.place != Place::kNowhere ||
                                 now - found->second.last_at < options_.series_end)) {
    Series& series = found->second;
    ++series.count;
    ++counts_.merged;
    series.note = text;
    series.last = Today();
    series.last_at = now;
    Enqueue(found->first, &series);
    return;
  }
  if (queue_.size() >= options_.queue_max) {
    ++counts_.dropped;
    return;
  }
  if (found != series_.end()) Erase(found);
  Forget();
  Series series;
  series.note = text;
  series.last_at = now;
  series.last = Today();
  const auto made = series_.emplace(key, std::move(series)).first;
  BeginEvent(made->first, &made->second);
  Enqueue(made->first, &made->second);
}

// Another Event.
void EventRecorder::BeginEvent(const Key& key, Series* series) {
  series->name =
      fmt::format("{}.{:016x}", key.regarding.name.substr(0, kNameBytesMax), rng_.Next64());
  series->first = series->last;
  series->count -= std::exchange(series->told, 0);
}

// Makes room, the longest silent going first; what is to be sent now is kept. An eighth at once, so
// that it is seldom done.
void EventRecorder::Forget() {
  if (series_.size() < options_.series_max) return;
  std::vector<AllSeries::iterator> silent;
  for (auto series = series_.begin(); series != series_.end(); ++series) {
    if (series->second.place != Place::kQueued) silent.push_back(series);
  }
  const size_t count = std::min(silent.size(), options_.series_max / 8 + 1);
  std::partial_sort(
      silent.begin(), silent.begin() + static_cast<std::ptrdiff_t>(count), silent.end(),
      [](const auto& a, const auto& b) { return a->second.last_at < b->second.last_at; });
  for (size_t i = 0; i < count; ++i) Erase(silent[i]);
}

void EventRecorder::Erase(AllSeries::iterator series) {
  later_.erase({series->second.due, &series->first});
  series_.erase(series);
}

// New Events go at once, and what becomes a series; a series that is one, and another note, when
// the last write is a while ago.
void EventRecorder::Enqueue(const Key& key, Series* series) {
  if (series->place != Place::kNowhere || series->is_under_way) return;
  const Instant now = client_->clock().Now();
  const bool becomes_series = series->told == 1 && series->note == series->note_told;
  series->due =
      series->told == 0 || becomes_series ? now : series->told_at + options_.series_interval;
  if (series->due <= now) {
    series->place = Place::kQueued;
    queue_.push_back(&key);
  } else {
    series->place = Place::kLater;
    later_.emplace(series->due, &key);
  }
  WaitToSend(std::max(series->due - now, Duration::zero()));
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

void EventRecorder::Send() {
  Refill();
  const Instant now = client_->clock().Now();
  while (!later_.empty() && later_.begin()->first <= now) {
    const Key* key = later_.begin()->second;
    later_.erase(later_.begin());
    series_.at(*key).place = Place::kQueued;
    queue_.push_back(key);
  }
  while (!queue_.empty() && in_flight_.size() < options_.in_flight_max && tokens_ >= 1) {
    const Key& key = *queue_.front();
    queue_.pop_front();
    tokens_ -= 1;
    SendOne(key, &series_.at(key));
  }
  const bool is_full = in_flight_.size() >= options_.in_flight_max;  // The next answer goes on.
  if (!queue_.empty() && !is_full) {
    const auto wait = std::chrono::duration_cast<Duration>(
        std::chrono::duration<double>((1 - tokens_) / options_.per_second));
    WaitToSend(std::max<Duration>(wait, std::chrono::milliseconds(10)));
  } else if (!later_.empty()) {
    WaitToSend(later_.begin()->first - now);
  }
}

void EventRecorder::SendOne(const Key& key, Series* series) {
  series->place = Place::kNowhere;
  if (series->told > 0 && series->note != series->note_told) BeginEvent(key, series);
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
  series->note_told = series->note;
  series->told = series->count;
  series->told_at = client_->clock().Now();
  series->is_under_way = true;
  const auto id = std::make_shared<ApiClient::Id>(0);
  *id = client_->Send(std::move(request), [this, id, key](const ApiAnswer& answer) {
    in_flight_.erase(*id);
    Answered(key, answer);
    if (!queue_.empty()) WaitToSend(Duration::zero());
  });
  in_flight_.insert(*id);
}

void EventRecorder::Answered(const Key& key, const ApiAnswer& answer) {
  const auto found = series_.find(key);
  if (answer.ok()) {
    ++counts_.sent;
    if (found == series_.end()) return;
    Series& series = found->second;
    series.is_under_way = false;
    if (series.count > series.told) Enqueue(found->first, &series);
    return;
  }
  ++counts_.failed;
  // The server keeps Events for an hour; after that a series begins again.
  if (found != series_.end()) Erase(found);
  const std::string& message = answer.outcome.error().message;
  if (logged_.size() < kFailuresLoggedMax && logged_.insert(message).second)
    LogWarning("an Event could not be written: {}", message);
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
      {"note", series.note},
      {"regarding", regarding}};
  if (series.count > 1) {
    event["series"] = {{"count", series.count}, {"lastObservedTime", ToMicroTime(series.last)}};
  }
  return event.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace rudderfish::kube
