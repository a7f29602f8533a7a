// SPDX-License-Identifier: Apache-2.0
#include "tests/support/scheduler_oracle.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/files.h"

extern char** environ;

namespace rudderfish::testing {
namespace {

using nlohmann::json;

std::string ConfigText(const std::string& kubeconfig, const std::string& address) {
  return R"(apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: ")" +
         kubeconfig + R"(", qps: 5000, burst: 10000}
percentageOfNodesToScore: 100
extenders:
- urlPrefix: "http://)" +
         address + R"("
  filterVerb: filter
  prioritizeVerb: prioritize
  weight: 1
  nodeCacheCapable: true
  httpTimeout: 10s
)";
}

// The value of `key="..."` in a line of the log, or of `key=...`.
std::string ValueOf(const std::string& line, const std::string& key) {
  const size_t at = line.find(" " + key + "=");
  if (at == std::string::npos) return "";
  const size_t begin = at + key.size() + 2;
  if (line[begin] == '"') return line.substr(begin + 1, line.find('"', begin + 1) - begin - 1);
  return line.substr(begin, line.find(' ', begin) - begin);
}

}  // namespace

SchedulerOracle::SchedulerOracle(const Testbed& testbed) {
  const json layout = json::parse(*ReadFile(testbed.folder() / "layout.json"));
  program_ = layout.at("programs").at("kubernetes").get<std::string>() + "/kube-scheduler";
  testbed.Do("stop", {"kube-scheduler"});
  auto server =
      HttpServer::Start({.listen = {"127.0.0.1:0"},
                         .body_limits = {{"/filter", 16 << 20}, {"/prioritize", 16 << 20}}},
                        [this](const HttpRequest& request) { return Answer(request); });
  CHECK(server.has_value());
  server_ = *std::move(server);
  config_ = testbed.folder() / "oracle.yaml";
  log_ = testbed.folder() / "oracle.log";
  const auto written =
      WriteFileAtomically(config_, ConfigText(testbed.kubeconfig(), server_->addresses().front()));
  CHECK(written.has_value());
  Start();
}

SchedulerOracle::~SchedulerOracle() { Stop(); }

void SchedulerOracle::Start() {
  const std::string config = "--config=" + config_.string();
  const char* const words[] = {program_.c_str(),
                               config.c_str(),
                               "--secure-port=0",
                               "--feature-gates=OpportunisticBatching=false",
                               "--vmodule=schedule_one=10",
                               nullptr};
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, log_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&files, 1, 2);
  posix_spawn_file_actions_addclosefrom_np(&files, 3);
  const int error =
      posix_spawn(&process_, words[0], &files, nullptr, const_cast<char**>(words), environ);
  posix_spawn_file_actions_destroy(&files);
  CHECK_EQ(error, 0);
  lines_ = std::ifstream(log_);
}

void SchedulerOracle::Stop() {
  kill(process_, SIGTERM);
  waitpid(process_, nullptr, 0);
}

void SchedulerOracle::Restart() {
  Stop();
  Start();
}

HttpResponse SchedulerOracle::Answer(const HttpRequest& request) {
  HttpResponse response;
  if (request.path == "/prioritize") {
    response.body = "[]";
    return response;
  }
  const json asked = json::parse(request.body);
  auto names = asked.at("NodeNames").get<std::vector<std::string>>();
  const json& meta = asked.at("Pod").at("metadata");
  response.body = json{
      {"Nodes", nullptr},
      {"NodeNames", names},
      {"FailedNodes", json::object()},
      {"FailedAndUnresolvableNodes", json::object()},
      {"Error", ""}}.dump();
  std::sort(names.begin(), names.end());
  const std::lock_guard lock(mutex_);
  feasible_[meta.at("namespace").get<std::string>() + "/" + meta.at("name").get<std::string>()] =
      std::move(names);
  return response;
}

std::vector<std::string> SchedulerOracle::FeasibleFor(const std::string& pod) {
  const std::lock_guard lock(mutex_);
  const auto at = feasible_.find(pod);
  return at == feasible_.end() ? std::vector<std::string>() : at->second;
}

SchedulerOracle::Scores SchedulerOracle::ScoresOf(const std::string& pod) {
  Scores scores;
  lines_.clear();
  for (std::string line; std::getline(lines_, line);) {
    const bool total = line.find("Calculated node's final score for pod") != std::string::npos;
    if (!total && line.find("Plugin scored node for pod") == std::string::npos) continue;
    if (ValueOf(line, "pod") != pod) continue;
    scores[ValueOf(line, "node")][total ? "" : ValueOf(line, "plugin")] =
        std::stoll(ValueOf(line, "score"));
  }
  return scores;
}

}  // namespace rudderfish::testing
