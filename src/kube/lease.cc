// SPDX-License-Identifier: Apache-2.0
#include "kube/lease.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/check.h"
#include "base/json.h"
#include "base/log.h"
#include "base/one_line.h"
#include "base/timestamp.h"

namespace rudderfish::kube {
namespace {

constexpr size_t kWrittenMax = 8;
// Who follows looks more often than the holder renews, so that it soon sees the last renewal.
constexpr double kLookMin = 0.5;  // Of `retry`,
constexpr double kLookMax = 0.8;  // by chance.

int64_t WholeSeconds(Duration duration) {
  return std::chrono::ceil<std::chrono::seconds>(duration).count();
}

}  // namespace

LeaseElection::LeaseElection(ApiClient* client, LeaseOptions options,
                             std::function<void(Leadership)> on_change)
    : client_(client),
      options_(std::move(options)),
      on_change_(std::move(on_change)),
      rng_(client->NewRng()) {
  CHECK(options_.retry < options_.renew_deadline);
  CHECK(options_.renew_deadline < options_.duration);
}

LeaseElection::~LeaseElection() {
  client_->Cancel(request_);
  client_->Cancel(fence_timer_);
}

std::string LeaseElection::Path() const {
  return fmt::format("/apis/coordination.k8s.io/v1/namespaces/{}/leases", options_.name_space);
}

void LeaseElection::Start() { Wait(Duration::zero()); }

void LeaseElection::Wait(Duration delay) {
  if (is_over_) return;
  is_waiting_ = true;
  request_ = client_->After(delay, [this] { Turn(); });
}

void LeaseElection::Carry(std::string word) {
  CHECK(is_holder_);
  carry_ = std::move(word);
  if (is_carried() || !is_waiting_) return;  // What is under way is followed by another one.
  client_->Cancel(request_);
  Wait(Duration::zero());
}

Duration LeaseElection::NextTry() {
  if (IsLeader()) return options_.retry;
  return std::chrono::duration_cast<Duration>(options_.retry *
                                              (kLookMin + (kLookMax - kLookMin) * rng_.Uniform()));
}

void LeaseElection::Turn() {
  request_ = 0;
  is_waiting_ = false;
  if (is_holder_ && !IsLeader()) Lose("it could not be renewed in time");
  if (is_holder_ && is_current_) {
    Renew();
  } else {
    Read([this](ApiAnswer answer) { OnRead(std::move(answer)); });
  }
}

void LeaseElection::Read(ApiClient::OnAnswer on_answer) {
  request_ = client_->Send({.path = Path() + "/" + options_.name,
                            .deadline = options_.renew_deadline / 2,
                            .repeat = Repeat::kNever,
                            .room = Room::kOwn},
                           std::move(on_answer));
}

void LeaseElection::OnRead(ApiAnswer answer) {
  request_ = 0;
  Result<Record> record = Gone();
  if (answer.ok()) {
    record = Parse(answer.body);
  } else if (answer.status.code != 404) {
    record = tl::unexpected(answer.outcome.error());
  }
  if (!record) {
    NoteFailure(std::move(record).error());
    Wait(NextTry());
    return;
  }
  last_error_.reset();
  See(*std::move(record));
  is_current_ = true;
  const bool is_held = !seen_.holder.empty() && !IsOurs(seen_) &&
                       client_->clock().Now() - seen_at_ <= seen_.duration;
  if (!is_held) {
    Renew();
    return;
  }
  if (is_holder_) Lose("it was taken by " + OneLine(seen_.holder, 100));
  // Not later than the moment from which it may be taken.
  const Duration left = seen_at_ + seen_.duration - client_->clock().Now();
  Wait(std::min(NextTry(), left + std::chrono::milliseconds(1)));
}

// There is no Lease. If there was one, its holder leads until the server tells it so, up to
// `renew_deadline` after its last renewal, which we may not have seen. So we wait until its time is
// over, as after any change that we see. Only the holder itself recreates the Lease at once.
LeaseElection::Record LeaseElection::Gone() const {
  Record record;
  if (is_holder_) return record;
  record.holder = seen_.holder;
  record.duration = seen_.duration;
  return record;
}

void LeaseElection::See(Record record) {
  const bool is_known = !seen_.version.empty();
  const bool is_renewed = record.renewed != seen_.renewed || record.holder != seen_.holder;
  if (is_renewed) seen_at_ = client_->clock().Now();
  if (is_known && is_renewed && record.holder == options_.identity && !IsOurs(record) &&
      !std::exchange(has_namesake_, true)) {
    LogError("lease {}/{}: another instance has our identity {}; this one waits for it",
             options_.name_space, options_.name, options_.identity);
  }
  seen_ = std::move(record);
}

bool LeaseElection::IsOurs(const Record& record) const {
  return record.holder == options_.identity && written_.contains(record.renewed);
}

// Also the first time: the version makes sure that no other instance was faster.
void LeaseElection::Renew() {
  const Instant sent_at = client_->clock().Now();
  request_ = Write(options_.identity, options_.duration,
                   [this, sent_at](ApiAnswer answer) { OnWritten(std::move(answer), sent_at); });
}

ApiClient::Id LeaseElection::Write(const std::string& holder, Duration duration,
                                   ApiClient::OnAnswer on_answer) {
  const bool is_new = seen_.body.empty();
  Json lease;
  if (is_new) {
    lease = {{"apiVersion", "coordination.k8s.io/v1"},
             {"kind", "Lease"},
             {"metadata", {{"name", options_.name}, {"namespace", options_.name_space}}}};
  } else if (auto parsed = ParseJson(seen_.body, "lease")) {
    lease = *std::move(parsed);
  }
  Json& spec = lease["spec"];
  if (!spec.is_object()) spec = Json::object();
  const std::string now = ToMicroTime(Today());
  const bool is_taken = !holder.empty() && seen_.holder != holder;
  if (is_taken) spec["acquireTime"] = now;
  spec["leaseTransitions"] = seen_.transitions + (is_taken && !is_new ? 1 : 0);
  spec["holderIdentity"] = holder;
  spec["leaseDurationSeconds"] = WholeSeconds(duration);
  spec["renewTime"] = now;
  if (carry_ && !options_.annotation.empty())
    lease["metadata"]["annotations"][options_.annotation] = *carry_;
  if (written_.size() >= kWrittenMax) written_.erase(written_.begin());
  written_.insert(now);
  is_current_ = false;  // Until the answer says so.
  return client_->Send({.method = is_new ? Method::kPost : Method::kPut,
                        .path = is_new ? Path() : Path() + "/" + options_.name,
                        .body = lease.dump(-1, ' ', false, Json::error_handler_t::replace),
                        .deadline = options_.renew_deadline / 2,
                        .repeat = Repeat::kNever,
                        .room = Room::kOwn},
                       std::move(on_answer));
}

void LeaseElection::OnWritten(ApiAnswer answer, Instant sent_at) {
  request_ = 0;
  Result<Record> record = tl::unexpected(Error{});
  if (answer.ok()) {
    record = Parse(answer.body);
  } else {
    record = tl::unexpected(answer.outcome.error());
  }
  if (!record) {
    // After a conflict another instance was faster; else it is unknown whether it was written. The
    // next turn looks; after a conflict a leader does so at once, as another one may lead by now.
    const bool is_conflict = answer.status.code == 409;
    if (!is_conflict) NoteFailure(std::move(record).error());
    Wait(is_conflict && is_holder_ ? Duration::zero() : NextTry());
    return;
  }
  last_error_.reset();
  ++counts_.renewals;
  See(*std::move(record));
  is_current_ = true;
  Hold(sent_at);
  Wait(is_carried() ? NextTry() : Duration::zero());
}

void LeaseElection::Hold(Instant since) {
  fence_ = since + options_.renew_deadline;
  const Duration left = fence_ - client_->clock().Now();
  client_->Cancel(fence_timer_);
  fence_timer_ = 0;
  if (left <= Duration::zero()) {
    if (is_holder_) Lose("its renewal took too long");
    return;
  }
  fence_timer_ = client_->After(left, [this] {
    fence_timer_ = 0;
    if (is_holder_ && !IsLeader()) Lose("it could not be renewed in time");
  });
  if (std::exchange(is_holder_, true)) return;
  ++counts_.acquired;
  has_namesake_ = false;
  LogInfo("lease {}/{}: {} leads", options_.name_space, options_.name, options_.identity);
  if (on_change_) on_change_(Leadership::kLeading);
}

void LeaseElection::Lose(std::string_view why) {
  is_holder_ = false;
  carry_.reset();
  ++counts_.lost;
  client_->Cancel(fence_timer_);
  fence_timer_ = 0;
  LogWarning("lease {}/{}: lost: {}", options_.name_space, options_.name, why);
  if (on_change_) on_change_(Leadership::kFollowing);
}

void LeaseElection::Release(std::function<void()> done) {
  is_over_ = true;
  client_->Cancel(request_);
  client_->Cancel(fence_timer_);
  request_ = fence_timer_ = 0;
  if (!std::exchange(is_holder_, false)) {
    request_ = client_->After(Duration::zero(), std::move(done));
    return;
  }
  if (on_change_) on_change_(Leadership::kFollowing);
  // A write that was cancelled may have been done, so look first.
  Read([this, done = std::move(done)](ApiAnswer answer) mutable {
    GiveAway(std::move(answer), std::move(done));
  });
}

void LeaseElection::GiveAway(ApiAnswer answer, std::function<void()> done) {
  request_ = 0;
  if (answer.ok()) {
    if (auto record = Parse(answer.body)) See(*std::move(record));
  }
  if (!answer.ok() || !IsOurs(seen_)) {
    done();
    return;
  }
  request_ = Write("", std::chrono::seconds(1), [this, done = std::move(done)](const ApiAnswer&) {
    request_ = 0;
    done();
  });
}

Result<LeaseElection::Record> LeaseElection::Parse(const std::string& body) const {
  const std::string source = fmt::format("lease {}/{}", options_.name_space, options_.name);
  TRY_ASSIGN(const Json lease, ParseJson(body, source));
  const JsonReader reader(lease, source);
  Record record;
  TRY_ASSIGN(const JsonReader metadata, reader.At("metadata"));
  TRY_ASSIGN(const JsonReader version, metadata.At("resourceVersion"));
  TRY_ASSIGN(record.version, version.AsString());
  TRY_ASSIGN(const auto annotations, metadata.Find("annotations"));
  if (annotations && !options_.annotation.empty()) {
    TRY_ASSIGN(const auto word, annotations->Find(options_.annotation));
    if (word) {
      TRY_ASSIGN(record.word, word->AsString());
    }
  }
  record.duration = options_.duration;
  record.body = body;
  TRY_ASSIGN(const auto spec, reader.Find("spec"));
  if (!spec) return record;
  TRY_ASSIGN(const auto holder, spec->Find("holderIdentity"));
  if (holder) {
    TRY_ASSIGN(record.holder, holder->AsString());
  }
  TRY_ASSIGN(const auto renewed, spec->Find("renewTime"));
  if (renewed) {
    TRY_ASSIGN(record.renewed, renewed->AsString());
  }
  TRY_ASSIGN(const auto seconds, spec->Find("leaseDurationSeconds"));
  if (seconds) {
    TRY_ASSIGN(const int64_t count, seconds->AsInt(1, 3600));
    record.duration = std::chrono::seconds(count);
  }
  TRY_ASSIGN(const auto transitions, spec->Find("leaseTransitions"));
  if (transitions) {
    TRY_ASSIGN(record.transitions, transitions->AsInt());
  }
  return record;
}

void LeaseElection::NoteFailure(Error error) {
  ++counts_.failures;
  if (!last_error_ || last_error_->message != error.message)
    LogWarning("lease {}/{}: {}", options_.name_space, options_.name, error.message);
  last_error_ = std::move(error);
}

}  // namespace rudderfish::kube
