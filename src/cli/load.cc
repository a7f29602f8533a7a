// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/rng.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "net/http_client.h"
#include "sim/response_histogram.h"

// `load`: requests at a given rate, whatever the answers (open loop). A request is due at its time;
// its latency counts from then, also where it could only be sent later, so that a server that
// stands still is not flattered (coordinated omission).

namespace rudderfish {
namespace {

constexpr int kInFlightMax = 2000;
constexpr size_t kFailuresTimed = 20;
constexpr double kRateMax = 100'000;
constexpr std::string_view kArrivals[] = {"even", "poisson"};
constexpr double kDefaultLoadS = 30, kDefaultRequestLimitS = 10;
constexpr double kQuantiles[] = {0.5, 0.9, 0.99, 0.999};

volatile std::sig_atomic_t g_load_ended = 0;

void EndLoad(int /*signal*/) { g_load_ended = 1; }

struct LoadPlan {
  std::string url;
  double rate = 0;       // Requests a second.
  bool poisson = false;  // Times between are exponential instead of equal.
  Duration length{}, request_limit{};
  Duration window{};  // Zero: no windows are reported.
  HttpFetch::On on = HttpFetch::On::kKeptConnection;
};

Duration DurationOf(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

// When requests are due: evenly, or at random, the same each time.
class DueTimes {
 public:
  DueTimes(const LoadPlan& plan, Instant start)
      : plan_(plan), start_(start), end_s_(Seconds(plan.length)) {
    if (plan_.poisson) Step();
  }

  bool more() const { return at_s_ < end_s_; }
  Instant next() const { return start_ + DurationOf(at_s_); }
  void Step() {
    ++count_;
    at_s_ = plan_.poisson ? at_s_ - std::log1p(-rng_.Uniform()) / plan_.rate
                          : static_cast<double>(count_) / plan_.rate;
  }

 private:
  const LoadPlan& plan_;
  Instant start_;
  double end_s_, at_s_ = 0;
  int64_t count_ = 0;
  Rng rng_{1};
};

// Of the requests that were due in a part of the run.
struct LoadWindow {
  int64_t answered = 0, failed = 0;
  double sum_ns = 0;
  int64_t slowest_ns = 0;

  void Add(int64_t took_ns) {
    ++answered;
    sum_ns += static_cast<double>(took_ns);
    slowest_ns = std::max(slowest_ns, took_ns);
  }
  std::optional<double> MeanMs() const {
    if (answered == 0) return std::nullopt;
    return sum_ns / static_cast<double>(answered) / 1e6;
  }
};

struct LoadResult {
  int64_t sent = 0, answered = 0;  // `answered`: 2xx.
  int64_t skipped = 0;             // Not sent, as too many were in flight: failed.
  std::map<std::string, int64_t> failures;
  std::vector<double> failed_at_s;  // When the first of those that failed were due.
  ResponseHistogram latencies;      // Of those that were answered.
  LoadWindow all;
  std::vector<LoadWindow> windows;
  double seconds = 0;

  // Without windows: one of all requests, which is not reported.
  LoadWindow* WindowAt(Duration due, Duration length) {
    const size_t index = length == Duration::zero() ? 0 : static_cast<size_t>(due / length);
    if (windows.size() <= index) windows.resize(index + 1);
    return &windows[index];
  }

  int64_t failed() const {
    int64_t count = skipped;
    for (const auto& [why, times] : failures) count += times;
    return count;
  }
};

// What went wrong, without the address.
std::string KindOfFailure(const Result<HttpReply>& reply) {
  if (reply) return fmt::format("HTTP {}", reply->status);
  const std::string& message = reply.error().message;
  const size_t colon = message.rfind(": ");
  return colon == std::string::npos ? message : message.substr(colon + 2);
}

LoadResult RunLoad(const LoadPlan& plan, const Clock& clock, const Session& session) {
  LoadResult result;
  HttpClient client(kInFlightMax);
  const Instant start = clock.Now();
  Instant said = start;
  const auto send = [&](Instant due) {
    ++result.sent;
    client.Start({.url = plan.url, .deadline = plan.request_limit, .on = plan.on},
                 [&result, &clock, &plan, start, due](const Result<HttpReply>& reply) {
                   LoadWindow* window = result.WindowAt(due - start, plan.window);
                   if (!reply || reply->status / 100 != 2) {
                     ++result.failures[KindOfFailure(reply)];
                     if (result.failed_at_s.size() < kFailuresTimed)
                       result.failed_at_s.push_back(Seconds(due - start));
                     ++window->failed;
                     return;
                   }
                   const int64_t took = (clock.Now() - due).count();
                   ++result.answered;
                   result.latencies.Add(took);
                   result.all.Add(took);
                   window->Add(took);
                 });
  };
  DueTimes due(plan, start);
  while ((due.more() && g_load_ended == 0) || client.in_flight() > 0) {
    const Instant now = clock.Now();
    for (; due.more() && g_load_ended == 0 && due.next() <= now; due.Step()) {
      if (client.in_flight() < kInFlightMax) {
        send(due.next());
      } else {
        ++result.skipped;
        ++result.WindowAt(due.next() - start, plan.window)->failed;
      }
    }
    if (now - said > std::chrono::seconds(10)) {
      said = now;
      Say(session, "{:.0f} s: {} sent, {} failed", Seconds(now - start), result.sent,
          result.failed());
    }
    const bool goes_on = due.more() && g_load_ended == 0;
    const Duration wait =
        goes_on ? due.next() - clock.Now() : Duration(std::chrono::milliseconds(100));
    client.Poll(std::clamp<Duration>(wait, Duration::zero(), std::chrono::milliseconds(100)));
    if (client.in_flight() == 0 && goes_on && wait > Duration::zero()) {
      const timespec pause{.tv_sec = 0, .tv_nsec = std::min<int64_t>(wait.count(), 50'000'000)};
      ::nanosleep(&pause, nullptr);
    }
  }
  result.seconds = Seconds(clock.Now() - start);
  return result;
}

OrderedJson LoadJson(const LoadPlan& plan, const LoadResult& result) {
  OrderedJson failures = OrderedJson::object();
  for (const auto& [why, times] : result.failures) failures[why] = times;
  if (result.skipped > 0) failures["not sent, too many in flight"] = result.skipped;
  OrderedJson latency = OrderedJson::object();
  for (const double share : kQuantiles)
    latency[fmt::format("p{:g}", 100 * share)] = 1000 * result.latencies.QuantileS(share);
  latency["max"] = static_cast<double>(result.all.slowest_ns) / 1e6;
  latency["mean"] = result.all.MeanMs().value_or(0);
  if (result.answered == 0) latency = nullptr;
  OrderedJson json = {{"schema_version", 1},
                      {"target", PublicUrl(plan.url)},
                      {"rate", plan.rate},
                      {"arrivals", kArrivals[plan.poisson ? 1 : 0]},
                      {"seconds", result.seconds},
                      {"sent", result.sent},
                      {"answered", result.answered},
                      {"failed", result.failed()},
                      {"failures", std::move(failures)},
                      {"failed_at_s", result.failed_at_s},
                      {"latency_ms", std::move(latency)}};
  if (plan.window == Duration::zero()) return json;
  json["windows"] = OrderedJson::array();
  for (size_t i = 0; i < result.windows.size(); ++i) {
    const LoadWindow& window = result.windows[i];
    const std::optional<double> mean_ms = window.MeanMs();
    json["windows"].push_back({{"from_s", static_cast<double>(i) * Seconds(plan.window)},
                               {"answered", window.answered},
                               {"failed", window.failed},
                               {"mean_ms", mean_ms ? OrderedJson(*mean_ms) : OrderedJson()},
                               {"max_ms", static_cast<double>(window.slowest_ns) / 1e6}});
  }
  return json;
}

std::string LoadText(const LoadResult& result) {
  std::string text = fmt::format("{} requests in {:.1f} s, {} answered, {} failed\n", result.sent,
                                 result.seconds, result.answered, result.failed());
  for (const auto& [why, times] : result.failures) text += fmt::format("  {}: {}\n", why, times);
  if (result.skipped > 0)
    text += fmt::format("  not sent, too many in flight: {}\n", result.skipped);
  if (result.answered == 0) return text;
  text += fmt::format("latency  mean {:.1f} ms", *result.all.MeanMs());
  for (const double share : kQuantiles) {
    text += fmt::format("  p{:g} {:.1f} ms", 100 * share, 1000 * result.latencies.QuantileS(share));
  }
  return text + fmt::format("  max {:.1f} ms\n", static_cast<double>(result.all.slowest_ns) / 1e6);
}

Result<ExitStatus> RunLoadCommand(const Arguments& arguments, const Session& session) {
  TRY_ASSIGN(const OutputFormat format, OutputFormatOf(arguments));
  LoadPlan plan;
  TRY_ASSIGN(plan.url, arguments.RequiredText("target", "the URL that is asked"));
  if (!plan.url.starts_with("http://") && !plan.url.starts_with("https://"))
    return Invalid("--target: expected http:// or https://, found `{}`", PublicUrl(plan.url));
  TRY_ASSIGN(const int64_t rate, arguments.Integer("rate", 100, 1, static_cast<int64_t>(kRateMax)));
  plan.rate = static_cast<double>(rate);
  TRY_ASSIGN(const int arrivals, arguments.Choice("arrivals", kArrivals, 0));
  plan.poisson = arrivals == 1;
  TRY_ASSIGN(const double length_s, arguments.Seconds("for", kDefaultLoadS));
  TRY_ASSIGN(const double limit_s, arguments.Seconds("timeout", kDefaultRequestLimitS));
  plan.length = DurationOf(length_s);
  plan.request_limit = DurationOf(limit_s);
  TRY_ASSIGN(const double window_s, arguments.Seconds("every", 0));
  plan.window = DurationOf(window_s);
  constexpr std::string_view kKinds[] = {"kept", "new"};
  TRY_ASSIGN(const int kind, arguments.Choice("connections", kKinds, 0));
  plan.on = kind == 0 ? HttpFetch::On::kKeptConnection : HttpFetch::On::kNewConnection;
  struct sigaction action {};
  action.sa_handler = EndLoad;
  for (const int signal : {SIGINT, SIGTERM}) ::sigaction(signal, &action, nullptr);
  const LoadResult result = RunLoad(plan, SystemClock(), session);
  TRY(Print(format == OutputFormat::kJson ? LoadJson(plan, result).dump(1) + "\n"
                                          : LoadText(result)));
  return result.failed() == 0 ? ExitStatus::kDone : ExitStatus::kFailed;
}

}  // namespace

CommandSpec LoadCommand() {
  return {
      .name = "load",
      .summary = "Send HTTP requests at a given rate; report latencies and failures",
      .options = {{"--target", "URL", "URL that is asked by GET"},
                  {"--rate", "N", "requests a second (default 100)"},
                  {"--arrivals", "even|poisson",
                   "requests come at equal times, or at random as from many users (default: even)"},
                  {"--for", "DURATION", "how long to send (default 30s)"},
                  {"--timeout", "DURATION", "limit of one request (default 10s)"},
                  {"--every", "DURATION",
                   "with -o json: also report each part of the run of this length"},
                  {"--connections", "kept|new",
                   "use connections again, or one connection a request (default kept)"},
                  {"-o,--output", "table|json", "output format (default: table)"}},
      .details =
          "The rate does not depend on the answers (open loop). The latency of a request counts "
          "from the time at which it was due, so that a server that stands still shows in the "
          "percentiles. The exit status is 1 if a request failed. Ctrl-C ends the run and "
          "prints the report.",
      .examples = {"load --target http://127.0.0.1:8080/ --rate 200 --for 2m -o json",
                   "load --target http://127.0.0.1:8080/ --connections new"},
      .run = RunLoadCommand};
}

}  // namespace rudderfish
