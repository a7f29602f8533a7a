// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "kube/api_client.h"
#include "kube/left_out.h"
#include "kube/object_sink.h"
#include "kube/watch_event.h"

// Keeps an ObjectSink equal to one resource of the API server: lists it, watches it from there, and
// begins again from the last version seen when a watch ends, or with a new list when the server no
// longer knows that version (410, as an answer or as an ERROR event).
//
//            ┌────────────── version expired ───────────────┐
//            ▼                                              │
//   initial stream ── all told ──▶ watch ── ended, cut ─▶ watch from the last version
//     │  (the server has none)       ▲
//     └──▶ pages of a list ──────────┘        each failure waits, with jitter, for the next try
//
// The initial stream (WatchList) spares the server the work of a list; where it is refused or does
// not come to its end, pages of 500 do. The first list may be one the server remembers
// (resourceVersion=0); later ones must be current, or time would go backwards. What a list does not
// tell is gone.
//
// A line that is no event of our kind might have told anything: it ends the watch, and a new list
// begins after a while. An object that the sink refuses brings a new list too, unless the last list
// was refused the same object: then it is left out, counted, and logged once a kind.
//
// A quiet watch, one that hangs and a server that stands still look alike, and what other
// connections hear says nothing of them. So each watch is to end after ApiClient::watch_timeout, at
// which the server also sends a bookmark first, and what is known is as old as the last word of the
// watch itself: that it was agreed to, a line, its end. One that is silent beyond its time is cut
// and restarted over a new connection.
// docs/decisions/0023-a-watch-is-believed-by-its-own-word.md
//
// Owned by one thread; all is done from within ApiClient::Poll.

namespace rudderfish::kube {

enum class InitialList { kStreamed, kPaged };

// Who says that a list or a watch failed, or that an object is left out: the reflector, or its
// owner.
enum class ReflectorLog { kOwn, kOfOwner };

struct ReflectorOptions {
  std::string path;      // /api/v1/pods
  std::string selector;  // Further parts of each query: labelSelector=app%3Dcart&...
  std::string kind;      // Of its objects, Pod; empty: any.
  InitialList initial = InitialList::kStreamed;
  ReflectorLog log = ReflectorLog::kOwn;
  int page_size = 500;
  Duration list_timeout = std::chrono::minutes(1);
  BackOff::Limits back_off;
  BackOff::Limits relist_back_off;  // After what could not be read.
};

struct ReflectorCounts {
  int64_t lists = 0;    // Begun, streamed ones too.
  int64_t watches = 0;  // Begun after a list.
  int64_t failures = 0;
  int64_t expired = 0;     // Versions the server no longer knew.
  int64_t listed = 0;      // Objects, of the longest list so far: does not grow by trying again.
  int64_t events = 0;      // Objects told by watches.
  int64_t malformed = 0;   // Objects that the sink refused.
  int64_t unreadable = 0;  // Watches and lists given up for what could not be read.
};

class Reflector {
 public:
  // REQUIRES: `client` and `sink` outlive this.
  Reflector(ApiClient* client, ReflectorOptions options, ObjectSink* sink);
  ~Reflector();
  Reflector(const Reflector&) = delete;
  Reflector& operator=(const Reflector&) = delete;

  // The first step is taken by the next Poll.
  void Start();

  // The sink has been told a whole list.
  bool is_synced() const { return is_synced_; }

  // When the sink was last known to be equal to what the server has; nothing before the first list.
  // While a watch is open, that is its last word; while none is, it stands still.
  std::optional<Instant> FreshAsOf() const;

  const ReflectorCounts& counts() const { return counts_; }
  const std::optional<Error>& last_error() const { return last_error_; }  // None while all is well.
  const std::string& path() const { return options_.path; }

  // The objects that are left out because malformed.
  const LeftOut::Objects& left_out() const { return left_out_.objects(); }

  InitialList initial() const { return options_.initial; }

 private:
  void List();
  void ListStream();
  void AwaitInitialEvents();
  void EndStreamInTime();
  Duration Patience() const;
  void AwaitWord(Duration wait);
  void FallSilent();
  void GiveUpStream(std::string_view why);
  void ListPage();
  void OnPage(ApiAnswer answer);
  Result<void> ReadPage(const std::string& body);
  void Watch();
  std::chrono::seconds WatchTimeout();
  void OnLine(std::string_view line);
  void OnInitial(const WatchEvent& event, std::string_view line);
  void OnEvent(const WatchEvent& event);
  void OnError(const ApiStatus& status);
  void OnEnd(ApiAnswer answer);
  void EndList();
  void Heard();
  void CountListed() { counts_.listed = std::max(counts_.listed, ++listed_); }
  void NoteFailure(Error error);
  void NoteSuccess();
  void NoteMalformed(const simdjson::dom::element& object, const std::string& what);
  void Expire();
  void Lose(const std::string& what);
  void CloseWatch(Instant known);
  void TryAgain(const ApiStatus& status);  // After a while, or when the server says.
  void GoOn();                             // With what comes next: a list or a watch.
  std::string Query(std::string_view rest) const;

  ApiClient* client_;
  ReflectorOptions options_;
  ObjectSink* sink_;
  BackOff back_off_, relist_back_off_;
  Rng rng_;
  simdjson::dom::parser parser_;

  ApiClient::Id request_ = 0;  // The list, watch or wait under way.
  ApiClient::Id timer_ = 0;    // Of that list or watch.
  bool is_synced_ = false;
  bool is_listing_ = false;  // Between BeginList and EndList.
  bool is_watch_open_ = false;
  bool is_doubted_ = false;            // This watch has been silent too long, if nothing has come.
  bool had_events_ = false;            // In this watch.
  bool must_be_current_ = false;       // Lists may not be remembered ones.
  std::string version_;                // To watch from; empty: list first.
  std::string continue_;               // The next page.
  std::string list_version_;           // Of the list being read.
  int64_t listed_ = 0;                 // Objects of it.
  std::vector<std::string> deferred_;  // Events of the initial stream that are no part of the list.
  size_t deferred_bytes_ = 0;
  Instant watch_began_;
  Instant heard_;  // By this list or watch.
  Instant list_began_;
  Instant settled_at_;  // What happened while no watch was open is told.
  std::optional<Instant> fresh_;
  std::optional<Error> last_error_;
  Instant lost_at_;  // When something could not be read last.
  LeftOut left_out_;
  ReflectorCounts counts_;
};

}  // namespace rudderfish::kube
