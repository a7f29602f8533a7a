// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/rng.h"
#include "kube/back_off.h"
#include "kube/credentials.h"
#include "kube/status.h"
#include "kube/transfers.h"

// Talks to one API server. Everything happens within Poll, on the thread that calls it; callbacks
// may send, watch and cancel. Requests that may be repeated are, with jittered back-off, within
// their deadline: after 429 any (nothing was done; Retry-After is obeyed), after 5xx and cut
// connections only those that change nothing when done twice. What one connection hears says
// nothing of another, behind which there may be another server: watchers judge each watch by itself
// (kube/reflector.h) and report here if one is silent.

namespace rudderfish::kube {

enum class Repeat { kWhenSafe, kNever };  // kNever: an eviction's 429 is an answer.

// Of all requests that may be under way at a time. kOwn: what cannot wait for others to be
// answered, and is rare; watches have theirs, too.
enum class Room { kShared, kOwn };

struct ApiRequest {
  Method method = Method::kGet;
  std::string path;  // /api/v1/nodes?limit=1
  std::string body;  // JSON
  Duration deadline = std::chrono::seconds(30);
  Repeat repeat = Repeat::kWhenSafe;
  Room room = Room::kShared;
  // Asked right before each attempt's first byte, however long it has waited for room, a connection
  // or its repetition; false: it is not sent, and ends with kFailedPrecondition. None: it may go.
  std::function<bool()> may_go;
};

struct ApiAnswer {
  ApiStatus status;      // code 0: the server was not reached.
  std::string body;      // Of a success.
  Result<void> outcome;  // What went wrong, for people.

  bool ok() const { return outcome.has_value(); }
};

struct ApiClientOptions {
  std::string user_agent = "rudderfish";
  Duration connect_timeout = std::chrono::seconds(5);
  int requests_max = 16;  // At a time, of those that share room.
  int attempts_max = 5;   // Of one request.
  BackOff::Limits back_off;
  Duration watch_timeout = std::chrono::seconds(10);  // Servers are asked to end watches after it.
  Duration plugin_limit = Credentials::kPluginLimit;
  std::optional<uint64_t> seed;  // Of the jitter; none: from the system.
};

struct ApiClientCounts {
  int64_t requests = 0;  // Attempts, watches included.
  int64_t failures = 0;  // Of them.
  int64_t retries = 0;
  int64_t throttled = 0;  // Answers with 429.
  int64_t silences = 0;   // Watches that told nothing, nor ended when they should have.
};

class ApiClient {
 public:
  using Id = uint64_t;  // Of a request, a watch or a timer; 0 is none.
  using OnAnswer = std::function<void(ApiAnswer)>;

  struct WatchCalls {
    std::function<void()> on_open;                       // The server has agreed.
    std::function<void(std::string_view line)> on_line;  // Without its end.
    OnAnswer on_end;                                     // ok: the server ended it in order.
  };

  // REQUIRES: `clock` outlives the client.
  static Result<std::unique_ptr<ApiClient>> Open(ClusterAccess access, const Clock* clock,
                                                 ApiClientOptions options = {});
  ~ApiClient();  // No callback comes any more.
  ApiClient(const ApiClient&) = delete;
  ApiClient& operator=(const ApiClient&) = delete;

  Id Send(ApiRequest request, OnAnswer on_answer);

  // Never repeated: who watches knows from where to go on. Ends with an error after `timeout`.
  Id Watch(std::string path, Duration timeout, WatchCalls calls);

  // From now on; what is under way goes on.
  void SetRequestsMax(int requests_max) { options_.requests_max = requests_max; }

  Id After(Duration delay, std::function<void()> callback);
  void Cancel(Id id);  // Fine if it is over already.

  // A watch of this client was cut because it fell silent.
  void NoteSilence();

  // Wakes Poll whenever `descriptor` can be read. One callback each.
  void WaitFor(int descriptor, std::function<void()> on_readable);
  void StopWaitingFor(int descriptor);

  // Does what is due and waits for more, at most `timeout`.
  void Poll(Duration timeout);

  // Polls until the answer is there. REQUIRES: not called from a callback.
  ApiAnswer Call(ApiRequest request);
  Result<std::string> Get(std::string path);  // The body.

  bool is_idle() const { return exchanges_.empty(); }  // No request and no watch; timers may be.
  bool has_heard() const { return transfers_.bytes_received() > 0; }  // Anything of the server.
  Duration watch_timeout() const { return options_.watch_timeout; }
  const ApiClientCounts& counts() const { return counts_; }
  const Transfers& transfers() const { return transfers_; }
  const ClusterAccess& access() const { return credentials_.access(); }
  const Clock& clock() const { return *clock_; }
  Rng NewRng() { return Rng(rng_.Next64()); }  // For the jitter of others.

 private:
  struct Exchange;
  struct Timer {
    Id id;
    std::function<void()> callback;
  };

  ApiClient(Credentials credentials, const Clock* clock, ApiClientOptions options, uint64_t seed);
  Id Add(std::unique_ptr<Exchange> exchange);
  void Enqueue(const Exchange& exchange);
  void BeginWaiting();
  void Transfer(Exchange* exchange);
  void Ended(Id id, HttpResult result);
  bool TryAgain(Exchange* exchange, const HttpResult& result, const ApiStatus& status);
  void Fail(Id id, Error error);
  void Finish(Id id, ApiAnswer answer);
  void RunTimers();
  Duration UntilNext(Duration timeout) const;

  const Clock* clock_;
  ApiClientOptions options_;
  Credentials credentials_;
  Rng rng_;
  std::map<Id, std::unique_ptr<Exchange>> exchanges_;
  std::deque<Id> waiting_;  // For credentials or room, in order.
  Instant looked_at_all_;   // Of them, last.
  int under_way_ = 0;       // Requests that take room.
  std::multimap<Instant, Timer> timers_;
  std::map<int, std::function<void()>> descriptors_;
  std::vector<Transfers::Waited> waited_;
  Id next_id_ = 1;
  bool is_polling_ = false;
  ApiClientCounts counts_;
  Transfers transfers_;
};

}  // namespace rudderfish::kube
