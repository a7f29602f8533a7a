// SPDX-License-Identifier: Apache-2.0
#include "run/extender_server.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/one_line.h"
#include "run/placement_metrics.h"
#include "serve/operations.h"

namespace rudderfish {
namespace {

constexpr size_t kBodyBytesMax = 4 << 20;  // 100,000 names of nodes.
constexpr size_t kAskedMax = 200'000;
constexpr size_t kUidBytesMax = 64;  // Kubernetes' have 36. Longer ones are not kept.
constexpr int kExtenderThreads = 4;  // Several schedulers may ask at once; each waits.
constexpr Duration kExtenderStop = std::chrono::milliseconds(200);
constexpr double kShareOfTimeout = 0.9;
constexpr Duration kNewsWait = std::chrono::milliseconds(100);
constexpr double kNewsShareOfTimeout = 0.4;
constexpr Duration kBetweenWaits = std::chrono::milliseconds(500);
constexpr Duration kBetweenTold = std::chrono::minutes(1);  // Of what anybody may bring about.

}  // namespace

Result<std::unique_ptr<ExtenderServer>> ExtenderServer::Start(
    const ExtenderConfig& config, kube::ApiClient* client, const kube::SchedulingFollower* seen,
    SchedulingTables* tables, const Clock* clock, MetricRegistry* metrics, Hold hold) {
  TRY_ASSIGN(const LivePolicy policy, LoadPolicy(config.choice));
  TRY(CheckTls(config));
  std::unique_ptr<ExtenderServer> made(new ExtenderServer(
      config, client, seen, tables, policy.NewScorer(), clock, metrics, std::move(hold)));
  HttpRoutes routes;
  ExtenderServer* self = made.get();
  routes.Add("POST", "/prioritize",
             [self](const HttpRequest& request) { return self->Ask(Verb::kPrioritize, request); });
  routes.Add("POST", "/filter",
             [self](const HttpRequest& request) { return self->Ask(Verb::kFilter, request); });
  HttpServerOptions options{
      .listen = {config.listen},
      .threads = kExtenderThreads,
      .body_limits = {{"/prioritize", kBodyBytesMax}, {"/filter", kBodyBytesMax}},
      .tls = config.tls};
  made->Refused();  // Shown from the start.
  options.refused = [self](std::string_view why) { self->NoteRefused(why); };
  options.rejected = [self](std::string_view path, int status) {
    self->NoteMalformed(path == "/filter" ? Verb::kFilter : Verb::kPrioritize,
                        status == 413   ? fmt::format("it is larger than {} bytes", kBodyBytesMax)
                        : status == 503 ? "the server holds as much of requests as it may"
                                        : fmt::format("it is no HTTP ({})", status));
  };
  Result<std::unique_ptr<HttpServer>> server =
      HttpServer::Start(options, Observed(std::move(routes), clock, metrics));
  if (!server) return Fail(server.error().code, "`extender.listen`: {}", server.error().message);
  made->server_ = *std::move(server);
  return made;
}

ExtenderServer::ExtenderServer(const ExtenderConfig& config, kube::ApiClient* client,
                               const kube::SchedulingFollower* seen, SchedulingTables* tables,
                               std::unique_ptr<NodeScorer> scorer, const Clock* clock,
                               MetricRegistry* metrics, Hold hold)
    : config_(config),
      client_(client),
      seen_(seen),
      tables_(tables),
      extender_(tables, std::move(scorer), config.limits),
      clock_(clock),
      metrics_(metrics),
      hold_(std::move(hold)),
      wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  CHECK_GE(wake_, 0);
  client_->WaitFor(wake_, [this] { AnswerAll(); });
}

ExtenderServer::~ExtenderServer() {
  client_->StopWaitingFor(wake_);
  client_->Cancel(held_timer_);
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;  // Threads that wait for an answer would hold us up.
    answered_.notify_all();
  }
  if (server_ != nullptr) server_->Stop(kExtenderStop);
  server_.reset();
  ::close(wake_);
}

Counter& ExtenderServer::Count(Verb verb, std::string_view result) const {
  return metrics_->AddCounter(
      "rudderfish_extender_requests_total", "Answers to kube-scheduler.",
      {{"verb", verb == Verb::kFilter ? "filter" : "prioritize"}, {"result", std::string(result)}});
}

Counter& ExtenderServer::Bypassed() const {
  return metrics_->AddCounter("rudderfish_extender_bypassed_pods_total",
                              "Pods scheduled without asking the extender.");
}

Counter& ExtenderServer::Refused() const {
  return metrics_->AddCounter(
      "rudderfish_extender_refused_connections_total",
      "Clients whose TLS handshake failed: no certificate, or one of an unknown issuer.");
}

ExtenderServer::Counts ExtenderServer::counts() const {
  const auto both = [this](std::string_view result) {
    return static_cast<int64_t>(Count(Verb::kPrioritize, result).value() +
                                Count(Verb::kFilter, result).value());
  };
  return {both("answered"),
          both("abstained"),
          both("malformed"),
          both("late"),
          static_cast<int64_t>(Bypassed().value()),
          static_cast<int64_t>(Refused().value())};
}

std::string ExtenderServer::newest_malformed() const {
  const std::lock_guard lock(mutex_);
  return malformed_.why;
}

std::string ExtenderServer::newest_refused() const {
  const std::lock_guard lock(mutex_);
  return refused_.why;
}

bool ExtenderServer::IsToBeTold(Newest* newest, std::string why) const {
  const Instant now = clock_->Now();
  newest->why = std::move(why);
  if (newest->told_at && now - *newest->told_at < kBetweenTold) return false;
  newest->told_at = now;
  return true;
}

// kube-scheduler does not tell its users why it was refused. On any thread.
void ExtenderServer::NoteMalformed(Verb verb, std::string_view why) {
  Count(verb, "malformed").Add();
  const std::lock_guard lock(mutex_);
  if (!IsToBeTold(&malformed_, OneLine(why, 200))) return;
  LogWarning("a request to the extender was refused: {}; `status` counts them", malformed_.why);
}

// On any thread.
void ExtenderServer::NoteRefused(std::string_view why) {
  Refused().Add();
  const std::lock_guard lock(mutex_);
  if (!IsToBeTold(&refused_, OneLine(why, 200))) return;
  LogWarning("TLS handshake with an extender client failed: {}; `status` counts them",
             refused_.why);
}

// On a thread of the server.
HttpResponse ExtenderServer::Ask(Verb verb, const HttpRequest& request) {
  auto question = std::make_shared<Question>();
  question->verb = verb;
  question->body = request.body;
  const auto limit = std::chrono::duration_cast<Duration>(config_.timeout * kShareOfTimeout);
  std::unique_lock lock(mutex_);
  questions_.push_back(question);
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_, &one, sizeof one);
  answered_.wait_for(lock, limit, [&] { return question->is_answered || is_ending_; });
  if (question->is_answered) return std::move(question->answer);
  std::erase(questions_, question);
  Count(verb, "late").Add();
  return HttpError(503, "busy; go on without this answer");
}

// On the thread that owns the tables.
void ExtenderServer::AnswerAll() {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t read = ::read(wake_, &count, sizeof count);
  while (true) {
    std::shared_ptr<Question> question;
    {
      const std::lock_guard lock(mutex_);
      if (questions_.empty()) return;
      question = std::move(questions_.front());
      questions_.pop_front();
    }
    Give(question);
  }
}

void ExtenderServer::Give(const std::shared_ptr<Question>& question) {
  std::optional<HttpResponse> answer = AnswerTo(*question);
  if (!answer) {
    held_.push_back(question);
    if (held_.size() > 1) return;
    held_at_ = tables_->changes();
    const auto limit = std::chrono::duration_cast<Duration>(config_.timeout * kNewsShareOfTimeout);
    held_timer_ = client_->After(std::min(kNewsWait, limit), [this] { EndWaiting(); });
    return;
  }
  const std::lock_guard lock(mutex_);
  question->answer = *std::move(answer);
  question->is_answered = true;
  answered_.notify_all();
}

void ExtenderServer::AnswerHeld() {
  if (held_.empty() || tables_->changes() == held_at_) return;
  client_->Cancel(held_timer_);
  EndWaiting();
}

bool ExtenderServer::MayWait(int64_t changes) const {
  if (!held_.empty() || held_at_ != changes) return true;
  return !waited_ || clock_->Now() - *waited_ >= kBetweenWaits;
}

void ExtenderServer::EndWaiting() {
  waited_ = clock_->Now();
  for (const std::shared_ptr<Question>& question : std::exchange(held_, {})) {
    question->has_waited = true;
    Give(question);
  }
}

std::string ExtenderServer::WhyAbstain(const kube::ExtenderArgs& args) const {
  if (std::string held = hold_(args.pod); !held.empty()) return held;
  if (!args.is_opted_out && !seen_->IsNamespaceOptedOut(args.pod.object_namespace)) return "";
  return fmt::format("the pod or its namespace says {}", kube::kDoNotPlace);
}

std::optional<HttpResponse> ExtenderServer::AnswerTo(const Question& question) {
  Result<kube::ExtenderArgs> args =
      kube::ReadExtenderArgs(question.body, seen_->references(), &parser_);
  if (!args) {
    NoteMalformed(question.verb, args.error().message);
    return HttpError(400, args.error().message);
  }
  if (asked_.size() >= kAskedMax) asked_.clear();  // Most of them are gone by now.
  int64_t unkept = -1;
  const bool is_kept = args->pod.uid.size() <= kUidBytesMax;
  int64_t& none_left_at = is_kept ? asked_.try_emplace(args->pod.uid, -1).first->second : unkept;
  HttpResponse response;
  if (response.note = WhyAbstain(*args); !response.note.empty()) {
    Count(question.verb, "abstained").Add();
    const size_t nodes = args->nodes.size();
    response.body = question.verb == Verb::kFilter
                        ? kube::FilterResultText(args->nodes, std::vector<std::string>(nodes))
                        : kube::HostPriorityText(args->nodes, std::vector<int>(nodes));
    return response;
  }
  if (question.verb == Verb::kFilter) {
    const std::vector<std::string> reasons = extender_.Filter(args->shape, args->nodes);
    if (std::ranges::none_of(reasons, &std::string::empty)) {
      const int64_t now = tables_->changes();
      if (none_left_at == now && !question.has_waited && MayWait(now)) return std::nullopt;
      none_left_at = now;
    }
    response.body = kube::FilterResultText(args->nodes, reasons);
    Count(question.verb, "answered").Add();
    return response;
  }
  const std::shared_ptr<const PodClass> shape = classes_.Shared(std::move(args->shape));
  const Extender::Grades grades = extender_.Prioritize(shape, args->nodes);
  Count(question.verb, grades.abstained.empty() ? "answered" : "abstained").Add();
  if (grades.stepped_back != StepBack::kNone) StepBackCounter(metrics_, grades.stepped_back).Add();
  response.note = grades.abstained;
  response.body = kube::HostPriorityText(args->nodes, grades.of);
  return response;
}

void ExtenderServer::NotePlaced(const PodIdentity& pod) {
  if (asked_.erase(pod.uid) > 0) return;
  Bypassed().Add();
}

}  // namespace rudderfish
