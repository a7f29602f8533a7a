// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "base/clock.h"
#include "base/timestamp.h"
#include "kube/api_client.h"

// What we did, where people look for it: events.k8s.io/v1 Events, which kubectl shows beside the
// objects they regard. Said and forgotten: nothing waits for them, none is sent twice, and what
// cannot be sent is counted. What is said again of the same object becomes a series, as client-go's
// recorder has it: one Event whose count grows, written when it becomes one and then at intervals
// of minutes. Notes of a series may differ, where they say so; as no API server lets the note of an
// Event be changed, another note is another Event, at those intervals, too. A bucket of tokens
// limits what the API server gets from us, a bounded queue what we keep. Owned by one thread; all
// is sent from within ApiClient::Poll.

namespace rudderfish::kube {

struct ObjectReference {
  std::string api_version;  // apps/v1
  std::string kind;
  std::string name_space;  // Empty: not in any.
  std::string name;
  std::string uid;

  bool operator<(const ObjectReference& other) const {
    return std::tie(api_version, kind, name_space, name, uid) <
           std::tie(other.api_version, other.kind, other.name_space, other.name, other.uid);
  }
};

enum class EventKind { kNormal, kWarning };

// What is said again in a series.
enum class Again {
  kSameNote,     // The same words.
  kAnotherNote,  // The same reason, whatever the note: numbers in it may differ.
};

struct EventNote {
  ObjectReference regarding;
  EventKind kind = EventKind::kNormal;
  std::string reason;  // Moved: one word for machines.
  std::string action;  // Move: what was done or tried.
  std::string note;    // For people.
  Again again = Again::kSameNote;
};

struct EventOptions {
  std::string controller = "rudderfish";  // Who says it, and
  std::string instance;                   // which one of these.
  size_t queue_max = 256;
  size_t series_max = 1024;  // Remembered; more than the queue holds.
  size_t in_flight_max = 16;
  double burst = 50;                                    // Requests,
  double per_second = 2;                                // and how fast they come back.
  Duration series_interval = std::chrono::minutes(10);  // Between two writes of a series.
  Duration series_end = std::chrono::minutes(6);        // Of silence.
};

struct EventCounts {
  int64_t sent = 0;
  int64_t merged = 0;   // Into a series.
  int64_t dropped = 0;  // The queue was full.
  int64_t failed = 0;
};

class EventRecorder {
 public:
  // REQUIRES: `client` outlives this.
  EventRecorder(ApiClient* client, EventOptions options);
  ~EventRecorder();
  EventRecorder(const EventRecorder&) = delete;
  EventRecorder& operator=(const EventRecorder&) = delete;

  void Record(const EventNote& note);

  bool is_idle() const { return queue_.empty() && in_flight_.empty(); }
  const EventCounts& counts() const { return counts_; }

 private:
  // All that is equal in a series. No note: they may differ.
  struct Key {
    ObjectReference regarding;
    EventKind kind;
    std::string reason, action, note;

    bool operator<(const Key& other) const {
      return std::tie(regarding, kind, reason, action, note) <
             std::tie(other.regarding, other.kind, other.reason, other.action, other.note);
    }
  };
  enum class Place : uint8_t { kNowhere, kQueued, kLater };
  struct Series {
    std::string name;  // Of the Event.
    std::string note, note_told;
    int64_t count = 1;
    int64_t told = 0;  // Of it to the server; 0: there is no Event yet.
    Date first, last;
    Instant last_at, told_at, due;
    Place place = Place::kNowhere;
    bool is_under_way = false;  // A write; the next one waits for its answer.
  };
  using AllSeries = std::map<Key, Series>;
  using Later = std::set<std::pair<Instant, const Key*>>;

  void Enqueue(const Key& key, Series* series);
  void Erase(AllSeries::iterator series);
  void Send();
  void SendOne(const Key& key, Series* series);
  void Answered(const Key& key, const ApiAnswer& answer);
  void BeginEvent(const Key& key, Series* series);
  void WaitToSend(Duration delay);
  void Refill();
  void Forget();
  std::string Body(const Key& key, const Series& series) const;

  ApiClient* client_;
  EventOptions options_;
  Rng rng_;
  AllSeries series_;
  std::deque<const Key*> queue_;  // To be sent now,
  Later later_;                   // and when it is due.
  std::set<ApiClient::Id> in_flight_;
  ApiClient::Id timer_ = 0;
  Instant timer_at_;
  double tokens_;
  Instant refilled_at_;
  std::set<std::string> logged_;  // Reasons of failures.
  EventCounts counts_;
};

}  // namespace rudderfish::kube
