// SPDX-License-Identifier: Apache-2.0
#include "run/control_server.h"

#include <fmt/format.h>

#include <utility>

#include "base/version.h"
#include "serve/operations.h"

namespace rudderfish {
namespace {

// Longer than any decision; a loop silent for longer hangs.
constexpr std::chrono::seconds kSilenceMax(90);
constexpr std::chrono::seconds kStopLimit(1);

}  // namespace

ControlServer::ControlServer(const Clock* clock) : clock_(clock) {
  Beat();
  metrics_.AddBuild(ProgramVersion());
  const HealthCheck loop = [this] { return LoopTrouble(); };
  live_.Add("loop", loop);
  ready_.Add("loop", loop);
  ready_.Add("cluster", [this] { return cluster_.reason(); });
  ready_.Add("journal", [this] { return journal_.reason(); });
  ready_.Add("leader", [this] { return leader_.reason(); });
}

ControlServer::~ControlServer() {
  if (server_ != nullptr) server_->Stop(kStopLimit);
}

Result<std::unique_ptr<ControlServer>> ControlServer::Start(const std::string& listen,
                                                            const Clock* clock) {
  std::unique_ptr<ControlServer> server(new ControlServer(clock));
  if (listen.empty()) return server;
  HttpRoutes routes;
  AddOperations(&server->live_, &server->ready_, &server->metrics_, &routes);
  const HttpServerOptions options{.listen = {listen}, .threads = 1};
  Result<std::unique_ptr<HttpServer>> started =
      HttpServer::Start(options, Observed(std::move(routes), clock, &server->metrics_));
  if (!started) {
    return Fail(started.error().code, "`server.listen`: {}", started.error().message);
  }
  server->server_ = *std::move(started);
  return server;
}

std::string ControlServer::LoopTrouble() const {
  const Duration silence = clock_->Now().time_since_epoch() - Duration(beat_.load());
  if (silence <= kSilenceMax) return "";
  return fmt::format("nothing was done for {:.0f} s", Seconds(silence));
}

std::vector<std::string> ControlServer::addresses() const {
  return server_ == nullptr ? std::vector<std::string>{} : server_->addresses();
}

}  // namespace rudderfish
