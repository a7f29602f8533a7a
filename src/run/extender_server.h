// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/metrics.h"
#include "base/result.h"
#include "control/extender.h"
#include "kube/api_client.h"
#include "kube/extender_args.h"
#include "kube/scheduling_follower.h"
#include "net/http_server.h"
#include "run/placement_config.h"

// POST /prioritize and /filter, as kube-scheduler asks its extenders. Where somebody holds us back,
// what is seen is too old, or the pod wants no policy of ours, all nodes stay and are alike.
//
// The server's threads hand a request to the thread that owns the tables and wait for its answer,
// no longer than kube-scheduler does: a late answer is 503, and scheduling goes on without us. So
// the tables need no locks, and that thread may be busy.
//
// kube-scheduler asks again about a pod that hard limits leave no node as soon as it sees a change
// which we may see a moment later. Were it told no once more, the pod would wait for the next
// change, up to five minutes. So where nothing has changed for us since we said so, the answer
// waits for news, for 100 ms at most, and not again before there are some or half a second has
// passed: all pods behind it wait, too.

namespace rudderfish {

class ExtenderServer {
 public:
  // Why nothing may be said of a pod now; empty: it may.
  using Hold = std::function<std::string(const PodIdentity& pod)>;

  // All outlive it. Listens at once; questions are answered from within client->Poll, and `hold` is
  // asked there.
  static Result<std::unique_ptr<ExtenderServer>> Start(const ExtenderConfig& config,
                                                       kube::ApiClient* client,
                                                       const kube::SchedulingFollower* seen,
                                                       SchedulingTables* tables, const Clock* clock,
                                                       MetricRegistry* metrics, Hold hold);
  ~ExtenderServer();
  ExtenderServer(const ExtenderServer&) = delete;
  ExtenderServer& operator=(const ExtenderServer&) = delete;

  // Another scheduler has placed this pod: counted if it has not asked about it.
  void NotePlaced(const PodIdentity& pod);

  // Answers what waits for news, if there are any. After each client->Poll.
  void AnswerHeld();

  const std::vector<std::string>& addresses() const { return server_->addresses(); }

  // Since it started. Bypassed: pods that were placed without a request about them.
  struct Counts {
    int64_t answered = 0, abstained = 0, malformed = 0, late = 0, bypassed = 0;
    int64_t refused = 0;  // Clients, by TLS.
  };
  Counts counts() const;
  // Why it was; empty: none was.
  std::string newest_malformed() const;
  std::string newest_refused() const;

 private:
  enum class Verb { kPrioritize, kFilter };
  struct Question {
    Verb verb = Verb::kPrioritize;
    std::string body;
    bool has_waited = false;  // For news.
    bool is_answered = false;
    HttpResponse answer;
  };

  ExtenderServer(const ExtenderConfig& config, kube::ApiClient* client,
                 const kube::SchedulingFollower* seen, SchedulingTables* tables,
                 std::unique_ptr<NodeScorer> scorer, const Clock* clock, MetricRegistry* metrics,
                 Hold hold);
  void NoteMalformed(Verb verb, std::string_view why);
  void NoteRefused(std::string_view why);
  // What happened last of a kind, which the log tells now and then. Under the mutex.
  struct Newest {
    std::string why;
    std::optional<Instant> told_at;
  };
  bool IsToBeTold(Newest* newest, std::string why) const;
  HttpResponse Ask(Verb verb, const HttpRequest& request);
  void AnswerAll();
  void Give(const std::shared_ptr<Question>& question);
  bool MayWait(int64_t changes) const;  // As far as earlier waits go.
  void EndWaiting();
  std::optional<HttpResponse> AnswerTo(const Question& question);  // None: it waits for news.
  std::string WhyAbstain(const kube::ExtenderArgs& args) const;
  Counter& Count(Verb verb, std::string_view result) const;
  Counter& Bypassed() const;
  Counter& Refused() const;

  ExtenderConfig config_;
  kube::ApiClient* client_;
  const kube::SchedulingFollower* seen_;
  const SchedulingTables* tables_;
  Extender extender_;
  const Clock* clock_;
  MetricRegistry* metrics_;
  Hold hold_;
  simdjson::dom::parser parser_;
  kube::PodClasses classes_;
  // By uid, of pods that have no node yet: the tables' changes when none was left for it, or -1.
  std::unordered_map<std::string, int64_t> asked_;
  std::vector<std::shared_ptr<Question>> held_;  // Until there are news, or the time is up.
  int64_t held_at_ = -1;                         // The tables' changes when one was held last.
  std::optional<Instant> waited_;                // When that ended last.
  kube::ApiClient::Id held_timer_ = 0;
  int wake_ = -1;
  mutable std::mutex mutex_;
  std::condition_variable answered_;
  std::deque<std::shared_ptr<Question>> questions_;
  bool is_ending_ = false;
  Newest malformed_, refused_;
  std::unique_ptr<HttpServer> server_;  // Last: its threads use the others.
};

}  // namespace rudderfish
