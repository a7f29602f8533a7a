// SPDX-License-Identifier: Apache-2.0
#include "kube/api_client.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/one_line.h"

namespace rudderfish::kube {
namespace {

constexpr Duration kBetweenLooks = std::chrono::milliseconds(100);  // At all who wait for room.

std::string_view ContentType(Method method) {
  if (method == Method::kMergePatch) return "application/merge-patch+json";
  if (method == Method::kStrategicMergePatch) return "application/strategic-merge-patch+json";
  if (method == Method::kJsonPatch) return "application/json-patch+json";
  if (method == Method::kApply) return "application/apply-patch+yaml";  // Of which JSON is a part.
  return "application/json";
}

bool ChangesNothingTwice(Method method) {
  return method != Method::kPost && method != Method::kMergePatch &&
         method != Method::kStrategicMergePatch && method != Method::kJsonPatch;
}

// Jitter must differ between instances that start together.
uint64_t SeedOfTheSystem() {
  uint64_t seed = 0;
  const ssize_t count = getrandom(&seed, sizeof(seed), 0);
  CHECK_EQ(count, static_cast<ssize_t>(sizeof(seed)));
  return seed;
}

ErrorCode CodeOf(HttpFailure failure) {
  switch (failure) {
    case HttpFailure::kTimeout:
      return ErrorCode::kDeadlineExceeded;
    case HttpFailure::kUntrusted:
    case HttpFailure::kHeldBack:
      return ErrorCode::kFailedPrecondition;
    default:
      return ErrorCode::kUnavailable;
  }
}

}  // namespace

struct ApiClient::Exchange {
  Id id = 0;
  ApiRequest request;
  OnAnswer on_answer;
  std::optional<WatchCalls> watch;
  Instant deadline;
  BackOff back_off;
  int attempts = 0;
  Transfers::Id transfer = 0;
  Id timer = 0;
  std::shared_ptr<const Identity> identity;  // Of the last attempt.
  bool was_rejected = false;                 // With 401, once.
  bool needs_room = false;
  bool takes_room = false;
};

Result<std::unique_ptr<ApiClient>> ApiClient::Open(ClusterAccess access, const Clock* clock,
                                                   ApiClientOptions options) {
  TRY_ASSIGN(Credentials credentials,
             Credentials::Open(std::move(access), clock, options.plugin_limit));
  const uint64_t seed = options.seed ? *options.seed : SeedOfTheSystem();
  return std::unique_ptr<ApiClient>(
      new ApiClient(std::move(credentials), clock, std::move(options), seed));
}

ApiClient::ApiClient(Credentials credentials, const Clock* clock, ApiClientOptions options,
                     uint64_t seed)
    : clock_(clock),
      options_(std::move(options)),
      credentials_(std::move(credentials)),
      rng_(seed),
      transfers_(credentials_.access(), 2 * options_.requests_max) {}

ApiClient::~ApiClient() = default;

ApiClient::Id ApiClient::Send(ApiRequest request, OnAnswer on_answer) {
  auto exchange = std::make_unique<Exchange>(
      Exchange{.back_off = BackOff(options_.back_off, Rng(rng_.Next64()))});
  exchange->deadline = clock_->Now() + request.deadline;
  exchange->needs_room = request.room == Room::kShared;
  exchange->request = std::move(request);
  exchange->on_answer = std::move(on_answer);
  return Add(std::move(exchange));
}

ApiClient::Id ApiClient::Watch(std::string path, Duration timeout, WatchCalls calls) {
  auto exchange = std::make_unique<Exchange>(
      Exchange{.back_off = BackOff(options_.back_off, Rng(rng_.Next64()))});
  exchange->request.path = std::move(path);
  exchange->request.repeat = Repeat::kNever;
  exchange->deadline = clock_->Now() + timeout;
  exchange->on_answer = calls.on_end;
  exchange->watch = std::move(calls);
  return Add(std::move(exchange));
}

ApiClient::Id ApiClient::Add(std::unique_ptr<Exchange> exchange) {
  const Id id = next_id_++;
  exchange->id = id;
  Enqueue(*exchange);
  exchanges_.emplace(id, std::move(exchange));
  return id;
}

// Who needs no room does not wait behind those who do.
void ApiClient::Enqueue(const Exchange& exchange) {
  if (exchange.needs_room) {
    waiting_.push_back(exchange.id);
  } else {
    waiting_.push_front(exchange.id);
  }
}

ApiClient::Id ApiClient::After(Duration delay, std::function<void()> callback) {
  const Id id = next_id_++;
  timers_.emplace(clock_->Now() + delay, Timer{id, std::move(callback)});
  return id;
}

void ApiClient::Cancel(Id id) {
  if (id == 0) return;
  const auto timer = std::find_if(timers_.begin(), timers_.end(),
                                  [&](const auto& entry) { return entry.second.id == id; });
  if (timer != timers_.end()) {
    timers_.erase(timer);
    return;
  }
  const auto found = exchanges_.find(id);
  if (found == exchanges_.end()) return;
  Exchange& exchange = *found->second;
  if (exchange.transfer != 0) transfers_.Cancel(exchange.transfer);
  Cancel(exchange.timer);
  if (exchange.takes_room) --under_way_;
  std::erase(waiting_, id);
  exchanges_.erase(found);
}

void ApiClient::WaitFor(int descriptor, std::function<void()> on_readable) {
  descriptors_[descriptor] = std::move(on_readable);
}

void ApiClient::StopWaitingFor(int descriptor) { descriptors_.erase(descriptor); }

// Begins what waits, as far as there are credentials and room. Where there is no room, whether
// somebody has waited too long is looked at now and then.
void ApiClient::BeginWaiting() {
  if (waiting_.empty() && credentials_.descriptor() < 0) return;
  const Credentials::Standing standing = credentials_.Check();
  const Instant now = clock_->Now();
  const bool looks_at_all =
      standing != Credentials::Standing::kReady || now - looked_at_all_ >= kBetweenLooks;
  if (looks_at_all) looked_at_all_ = now;
  std::vector<Id> kept;
  for (size_t left = waiting_.size(); left > 0 && !waiting_.empty(); --left) {
    const Id id = waiting_.front();
    const auto found = exchanges_.find(id);
    const bool is_full = under_way_ >= options_.requests_max;
    if (!looks_at_all && is_full && found != exchanges_.end() && found->second->needs_room) break;
    waiting_.pop_front();
    if (found == exchanges_.end()) continue;
    Exchange& exchange = *found->second;
    if (standing == Credentials::Standing::kFailed) {
      Fail(id, credentials_.error());
    } else if (now >= exchange.deadline) {
      Fail(id, {ErrorCode::kDeadlineExceeded,
                fmt::format("{}: waited too long for its turn", exchange.request.path)});
    } else if (standing == Credentials::Standing::kPending || (exchange.needs_room && is_full)) {
      kept.push_back(id);
    } else {
      Transfer(&exchange);
    }
  }
  waiting_.insert(waiting_.begin(), kept.begin(), kept.end());
}

void ApiClient::Transfer(Exchange* exchange) {
  const ClusterAccess& access = credentials_.access();
  HttpRequest http;
  http.method = MethodName(exchange->request.method);
  http.path = exchange->request.path;
  http.body = exchange->request.body;
  http.may_go = exchange->request.may_go;
  http.identity = exchange->identity = credentials_.identity();
  http.connect_timeout = options_.connect_timeout;
  // None at all would be no limit.
  http.timeout =
      std::max<Duration>(exchange->deadline - clock_->Now(), std::chrono::milliseconds(1));
  http.headers.push_back("User-Agent: " + options_.user_agent);
  if (!http.body.empty())
    http.headers.push_back(fmt::format("Content-Type: {}", ContentType(exchange->request.method)));
  if (!access.as_user.empty()) http.headers.push_back("Impersonate-User: " + access.as_user);
  if (!access.as_uid.empty()) http.headers.push_back("Impersonate-Uid: " + access.as_uid);
  for (const std::string& group : access.as_groups)
    http.headers.push_back("Impersonate-Group: " + group);
  ++exchange->attempts;
  ++counts_.requests;
  std::optional<Transfers::Stream> stream;
  const Id id = exchange->id;
  if (exchange->watch) {
    stream.emplace();
    stream->on_open = [this, id] {
      const auto on_open = exchanges_.at(id)->watch->on_open;
      if (on_open) on_open();
    };
    stream->on_line = exchange->watch->on_line;
  }
  if (exchange->needs_room) {
    exchange->takes_room = true;
    ++under_way_;
  }
  exchange->transfer = transfers_.Begin(
      std::move(http), [this, id](HttpResult result) { Ended(id, std::move(result)); },
      std::move(stream));
}

void ApiClient::Ended(Id id, HttpResult result) {
  Exchange& exchange = *exchanges_.at(id);
  exchange.transfer = 0;
  if (std::exchange(exchange.takes_room, false)) --under_way_;
  const ApiRequest& request = exchange.request;
  ApiAnswer answer;
  if (result.failure != HttpFailure::kNone) {
    ++counts_.failures;
    // Perhaps a server stands still that is not the only one: the next attempt may find another.
    if (result.failure == HttpFailure::kTimeout) transfers_.CloseIdle();
    if (TryAgain(&exchange, result, answer.status)) return;
    answer.outcome = tl::unexpected(Error{
        CodeOf(result.failure),
        fmt::format("{}{}: {}", credentials_.access().server,
                    OneLine(request.path.substr(0, request.path.find('?')), 200), result.why)});
  } else if (result.status >= 200 && result.status < 300) {
    answer.status.code = result.status;
    answer.body = std::move(result.body);
  } else {
    ++counts_.failures;
    if (result.status == 429) ++counts_.throttled;
    answer.status = ParseStatus(result.body, result.status);
    if (result.retry_after) answer.status.retry_after = result.retry_after;
    if (TryAgain(&exchange, result, answer.status)) return;
    Error error = ToError(answer.status, request.method, request.path);
    const std::string& origin = credentials_.access().origin;
    if (result.status == 401 && !origin.empty()) error.message += fmt::format(" ({})", origin);
    answer.outcome = tl::unexpected(std::move(error));
    answer.body = std::move(result.body);
  }
  Finish(id, std::move(answer));
}

bool ApiClient::TryAgain(Exchange* exchange, const HttpResult& result, const ApiStatus& status) {
  const ApiRequest& request = exchange->request;
  if (status.code == 401 && !exchange->was_rejected) {
    exchange->was_rejected = true;
    if (credentials_.Reject(*exchange->identity)) {
      Enqueue(*exchange);
      return true;
    }
    return false;
  }
  if (request.repeat == Repeat::kNever || exchange->attempts >= options_.attempts_max) return false;
  const bool was_done_perhaps = result.failure == HttpFailure::kCut ||
                                result.failure == HttpFailure::kTimeout || status.code >= 500;
  const bool may_be_mended = result.failure == HttpFailure::kUnsent ||
                             result.failure == HttpFailure::kCut || status.code == 429 ||
                             (status.code >= 500 && status.code != 501);
  if (!may_be_mended || (was_done_perhaps && !ChangesNothingTwice(request.method))) return false;
  const Duration wait =
      std::max(exchange->back_off.Next(), status.retry_after.value_or(Duration::zero()));
  if (clock_->Now() + wait >= exchange->deadline) return false;
  ++counts_.retries;
  const Id id = exchange->id;
  exchange->timer = After(wait, [this, id] {
    exchanges_.at(id)->timer = 0;
    Enqueue(*exchanges_.at(id));
  });
  return true;
}

void ApiClient::Fail(Id id, Error error) {
  ApiAnswer answer;
  answer.outcome = tl::unexpected(std::move(error));
  Finish(id, std::move(answer));
}

void ApiClient::Finish(Id id, ApiAnswer answer) {
  const OnAnswer on_answer = std::move(exchanges_.at(id)->on_answer);
  Cancel(id);
  if (on_answer) on_answer(std::move(answer));
}

void ApiClient::RunTimers() {
  const Instant now = clock_->Now();
  // Those that callbacks add come next time, so that this ends.
  std::vector<Id> due;
  for (auto timer = timers_.begin(); timer != timers_.end() && timer->first <= now; ++timer)
    due.push_back(timer->second.id);
  for (const Id id : due) {
    const auto found = std::find_if(timers_.begin(), timers_.end(),
                                    [&](const auto& entry) { return entry.second.id == id; });
    if (found == timers_.end()) continue;  // Cancelled by one before it.
    const std::function<void()> callback = std::move(found->second.callback);
    timers_.erase(found);
    callback();
  }
}

void ApiClient::NoteSilence() {
  ++counts_.silences;
  transfers_.CloseIdle();
}

Duration ApiClient::UntilNext(Duration timeout) const {
  const Instant now = clock_->Now();
  const auto until = [&](Instant instant) {
    timeout = std::clamp(instant - now, Duration::zero(), timeout);
  };
  if (!timers_.empty()) until(timers_.begin()->first);
  if (credentials_.wake() != Instant::max()) until(credentials_.wake());
  return timeout;
}

void ApiClient::Poll(Duration timeout) {
  CHECK(!is_polling_);
  is_polling_ = true;
  RunTimers();
  BeginWaiting();
  waited_.clear();
  for (const auto& [descriptor, callback] : descriptors_) waited_.push_back({descriptor, false});
  if (credentials_.descriptor() >= 0) waited_.push_back({credentials_.descriptor(), false});
  transfers_.Poll(UntilNext(timeout), &waited_);
  for (const Transfers::Waited& waited : waited_) {
    const auto found = descriptors_.find(waited.descriptor);
    if (!waited.is_readable || found == descriptors_.end()) continue;
    const std::function<void()> callback = found->second;
    callback();
  }
  RunTimers();
  BeginWaiting();
  is_polling_ = false;
}

ApiAnswer ApiClient::Call(ApiRequest request) {
  std::optional<ApiAnswer> answer;
  Send(std::move(request), [&](ApiAnswer given) { answer = std::move(given); });
  while (!answer) Poll(std::chrono::seconds(1));
  return *std::move(answer);
}

Result<std::string> ApiClient::Get(std::string path) {
  ApiAnswer answer = Call({.path = std::move(path)});
  if (!answer.ok()) return tl::unexpected(std::move(answer.outcome).error());
  return std::move(answer.body);
}

}  // namespace rudderfish::kube
