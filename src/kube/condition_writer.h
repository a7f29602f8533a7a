// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/clock.h"
#include "cluster/scheduling_observer.h"
#include "kube/api_client.h"
#include "kube/back_off.h"

// Why pods wait, in their condition PodScheduled=False: what cluster-autoscaler and others go by,
// so that none may be lost. Of each pod the newest word is kept until the API server has it,
// however often a write fails. The first is written at once, a later one when the last is a while
// old. Few are under way at a time, so that none waits for room until its deadline; after failures
// they are written more slowly. Owned by one thread; all is sent from within ApiClient::Poll.

namespace rudderfish::kube {

struct ConditionOptions {
  size_t in_flight_max = 4;
  Duration interval = std::chrono::seconds(30);  // Between two writes about one pod.
  // After a failure, of whichever pod; of one pod it goes on doubling up to the last.
  BackOff::Limits back_off{.first = std::chrono::seconds(1), .last = std::chrono::seconds(30)};
  Duration pod_back_off_last = std::chrono::minutes(5);
};

struct ConditionCounts {
  int64_t written = 0;
  int64_t failed = 0;  // Each is tried again.
};

class ConditionWriter {
 public:
  // REQUIRES: `client` outlives this. `may_write` is asked right before a write goes out: what is
  // held back is kept.
  ConditionWriter(ApiClient* client, std::function<bool()> may_write,
                  ConditionOptions options = {});
  ~ConditionWriter();
  ConditionWriter(const ConditionWriter&) = delete;
  ConditionWriter& operator=(const ConditionWriter&) = delete;

  void Write(const PodIdentity& pod, const std::string& message);

  // What is not written yet of that pod never is: it may get a node.
  void Withdraw(const PodIdentity& pod);
  // The pod waits no longer.
  void Forget(const PodIdentity& pod);

  size_t unwritten() const { return fresh_.size() + failed_.size() + in_flight_.size(); }
  const ConditionCounts& counts() const { return counts_; }

 private:
  struct Word {
    PodIdentity pod;
    std::optional<std::string> wanted;
    std::string written, sent;  // Empty: nothing yet; of `sent` nothing is under way.
    Instant sent_at, due;
    int failures = 0;
    bool is_queued = false;
  };
  using Queue = std::set<std::pair<Instant, std::string>>;  // When it is due, of which uid.

  Queue& QueueOf(const Word& word) { return word.failures == 0 ? fresh_ : failed_; }
  void Enqueue(Word* word, Instant due);
  void Dequeue(Word* word);
  void Send();
  void SendOne(Word* word);
  void Answered(const std::string& uid, const ApiAnswer& answer);
  void Failed(Word* word, const ApiAnswer& answer);
  void WaitToSend();

  ApiClient* client_;
  std::function<bool()> may_write_;
  ConditionOptions options_;
  BackOff back_off_;
  std::unordered_map<std::string, Word> words_;  // By uid.
  Queue fresh_, failed_;                         // The former go first.
  std::set<ApiClient::Id> in_flight_;
  ApiClient::Id timer_ = 0;
  Instant timer_at_, resume_at_;
  std::optional<Instant> warned_at_;
  ConditionCounts counts_;
};

}  // namespace rudderfish::kube
