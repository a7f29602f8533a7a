// SPDX-License-Identifier: Apache-2.0
#include "kube/condition_writer.h"

#include <algorithm>
#include <memory>

#include "base/log.h"
#include "kube/pod_writer.h"

namespace rudderfish::kube {
namespace {

constexpr Duration kBetweenWarnings = std::chrono::minutes(1);
constexpr Duration kHeldBackWait = std::chrono::seconds(1);
constexpr int kLastingFailures = 3;

// Of the pod itself: it is gone, or another one has its name, and the watch says so soon.
bool IsOfThePod(int code) { return code == 404 || code == 409 || code == 422; }

}  // namespace

ConditionWriter::ConditionWriter(ApiClient* client, std::function<bool()> may_write,
                                 ConditionOptions options)
    : client_(client),
      may_write_(std::move(may_write)),
      options_(options),
      back_off_(options.back_off, client->NewRng()) {}

ConditionWriter::~ConditionWriter() {
  client_->Cancel(timer_);
  for (const ApiClient::Id id : in_flight_) client_->Cancel(id);
}

void ConditionWriter::Enqueue(Word* word, Instant due) {
  Dequeue(word);
  word->due = due;
  word->is_queued = true;
  QueueOf(*word).emplace(due, word->pod.uid);
  WaitToSend();
}

void ConditionWriter::Dequeue(Word* word) {
  if (!std::exchange(word->is_queued, false)) return;
  QueueOf(*word).erase({word->due, word->pod.uid});
}

void ConditionWriter::Write(const PodIdentity& pod, const std::string& message) {
  const Instant now = client_->clock().Now();
  Word& word = words_[pod.uid];
  word.pod = pod;
  if (word.wanted == message) return;
  word.wanted = message;
  if (!word.sent.empty()) return;  // Its answer goes on.
  if (message == word.written) return Dequeue(&word);
  if (word.is_queued) return;
  Enqueue(&word, word.written.empty() ? now : std::max(now, word.sent_at + options_.interval));
}

void ConditionWriter::Withdraw(const PodIdentity& pod) {
  const auto at = words_.find(pod.uid);
  if (at == words_.end()) return;
  at->second.wanted.reset();
  Dequeue(&at->second);
}

void ConditionWriter::Forget(const PodIdentity& pod) {
  const auto at = words_.find(pod.uid);
  if (at == words_.end()) return;
  Dequeue(&at->second);
  words_.erase(at);
}

// The timer stands at the first that is due, no sooner than after the last failure's back-off.
void ConditionWriter::WaitToSend() {
  if (in_flight_.size() >= options_.in_flight_max) return;  // The next answer goes on.
  std::optional<Instant> first;
  for (const Queue* queue : {&fresh_, &failed_}) {
    if (!queue->empty() && (!first || queue->begin()->first < *first))
      first = queue->begin()->first;
  }
  if (!first) return;
  const Instant now = client_->clock().Now();
  const Instant at = std::max({*first, resume_at_, now});
  if (timer_ != 0 && timer_at_ <= at) return;
  client_->Cancel(timer_);
  timer_at_ = at;
  timer_ = client_->After(at - now, [this] {
    timer_ = 0;
    Send();
  });
}

void ConditionWriter::Send() {
  const Instant now = client_->clock().Now();
  if (now >= resume_at_ && !may_write_()) resume_at_ = now + kHeldBackWait;
  for (Queue* queue : {&fresh_, &failed_}) {
    while (now >= resume_at_ && in_flight_.size() < options_.in_flight_max && !queue->empty() &&
           queue->begin()->first <= now) {
      Word& word = words_.at(queue->begin()->second);
      Dequeue(&word);
      SendOne(&word);
    }
  }
  WaitToSend();
}

void ConditionWriter::SendOne(Word* word) {
  word->sent = *word->wanted;
  word->sent_at = client_->clock().Now();
  const auto id = std::make_shared<ApiClient::Id>(0);
  *id = MarkUnschedulable(client_, word->pod, word->sent,
                          word->written.empty() ? Transition::kNow : Transition::kBefore,
                          may_write_, [this, id, uid = word->pod.uid](const ApiAnswer& answer) {
                            in_flight_.erase(*id);
                            Answered(uid, answer);
                            WaitToSend();
                          });
  in_flight_.insert(*id);
}

void ConditionWriter::Answered(const std::string& uid, const ApiAnswer& answer) {
  if (answer.ok()) {
    ++counts_.written;
    back_off_.Reset();
  }
  const auto at = words_.find(uid);
  if (at == words_.end()) return;
  Word& word = at->second;
  const std::string sent = std::exchange(word.sent, "");
  if (!answer.ok()) return Failed(&word, answer);
  word.failures = 0;
  word.written = sent;
  if (word.wanted && *word.wanted != word.written) Enqueue(&word, word.sent_at + options_.interval);
}

void ConditionWriter::Failed(Word* word, const ApiAnswer& answer) {
  const Instant now = client_->clock().Now();
  const Error& error = answer.outcome.error();
  const int code = answer.status.code;
  if (error.code == ErrorCode::kFailedPrecondition && code == 0) {  // Held back.
    resume_at_ = now + kHeldBackWait;
    if (word->wanted) Enqueue(word, now);
    return;
  }
  ++word->failures;
  Duration wait = options_.back_off.first;
  for (int i = 1; i < word->failures && wait < options_.pod_back_off_last; ++i) wait *= 2;
  if (word->wanted) Enqueue(word, now + std::min(wait, options_.pod_back_off_last));
  if (IsOfThePod(code)) return;
  ++counts_.failed;
  resume_at_ = now + back_off_.Next();
  const bool is_lasting = code == 403 || word->failures >= kLastingFailures;
  if (!is_lasting || (warned_at_ && now < *warned_at_ + kBetweenWarnings)) return;
  warned_at_ = now;
  LogWarning(
      "why pods wait cannot be written into their condition PodScheduled, by which "
      "cluster-autoscaler goes; of {} pods it is tried again: {}",
      unwritten(), error.message);
}

}  // namespace rudderfish::kube
