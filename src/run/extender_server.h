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
#include <unordered_set>

#include "base/metrics.h"
#include "base/result.h"
#include "control/extender.h"
#include "kube/api_client.h"
#include "kube/extender_args.h"
#include "kube/scheduling_feed.h"
#include "net/http_server.h"
#include "run/placement_config.h"

// POST /prioritize and /filter, as kube-scheduler asks its extenders. Where somebody holds us back,
// what is seen is too old, or the pod wants no policy of ours, all nodes stay and are alike.
//
// The server's threads hand a request to the thread that owns the tables and wait for its answer,
// no longer than kube-scheduler does: a late answer is 503, and scheduling goes on without us. So
// the tables need no locks, and that thread may be busy.

namespace rudderfish {

// rudderfish_placement_fallbacks_total of that reason.
Counter& StepBackCounter(MetricRegistry* registry, StepBack why);

class ExtenderServer {
 public:
  // Why nothing may be said of a pod now; empty: it may.
  using Hold = std::function<std::string(const PodIdentity& pod)>;

  // All outlive it. Listens at once; questions are answered from within client->Poll, and `hold` is
  // asked there.
  static Result<std::unique_ptr<ExtenderServer>> Start(const ExtenderConfig& config,
                                                       kube::ApiClient* client,
                                                       const kube::SchedulingFeed* feed,
                                                       SchedulingTables* tables, const Clock* clock,
                                                       MetricRegistry* metrics, Hold hold);
  ~ExtenderServer();
  ExtenderServer(const ExtenderServer&) = delete;
  ExtenderServer& operator=(const ExtenderServer&) = delete;

  // Somebody has placed this pod: counted if nobody has asked about it.
  void NotePlaced(const PodIdentity& pod);

  const std::vector<std::string>& addresses() const { return server_->addresses(); }

  // Since it started. Bypassed: pods that were placed and that nobody asked about.
  struct Counts {
    int64_t answered = 0, abstained = 0, malformed = 0, late = 0, bypassed = 0;
  };
  Counts counts() const;
  std::string newest_malformed() const;  // Why it was; empty: none was.

 private:
  enum class Verb { kPrioritize, kFilter };
  struct Question {
    Verb verb = Verb::kPrioritize;
    std::string body;
    bool is_answered = false;
    HttpResponse answer;
  };

  ExtenderServer(const ExtenderConfig& config, kube::ApiClient* client,
                 const kube::SchedulingFeed* feed, SchedulingTables* tables,
                 std::unique_ptr<NodeScorer> scorer, const Clock* clock, MetricRegistry* metrics,
                 Hold hold);
  void NoteMalformed(Verb verb, std::string why);
  HttpResponse Ask(Verb verb, const HttpRequest& request);
  void AnswerAll();
  HttpResponse AnswerTo(const Question& question);
  std::string WhyAbstain(const kube::ExtenderArgs& args) const;
  Counter& Count(Verb verb, std::string_view result) const;
  Counter& Bypassed() const;

  ExtenderConfig config_;
  kube::ApiClient* client_;
  const kube::SchedulingFeed* feed_;
  Extender extender_;
  const Clock* clock_;
  MetricRegistry* metrics_;
  Hold hold_;
  simdjson::dom::parser parser_;
  kube::PodClasses classes_;
  std::unordered_set<std::string> asked_;  // Uids of pods that have no node yet.
  int wake_ = -1;
  mutable std::mutex mutex_;
  std::condition_variable answered_;
  std::deque<std::shared_ptr<Question>> questions_;
  std::string newest_malformed_;
  std::optional<Instant> malformed_told_;
  std::unique_ptr<HttpServer> server_;  // Last: its threads use the others.
};

}  // namespace rudderfish
