// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "net/http_server.h"
#include "tests/support/testbed.h"

// kube-scheduler itself as the judge of our rules: the testbed's own program, every node filtered
// and scored, with an extender of ours that takes what it is shown and changes nothing.

namespace rudderfish::testing {

class SchedulerOracle {
 public:
  // Stops the scheduler of the testbed and takes its place.
  explicit SchedulerOracle(const Testbed& testbed);
  ~SchedulerOracle();
  SchedulerOracle(const SchedulerOracle&) = delete;

  void Restart();  // With an empty memory.

  // The nodes that passed all filters when the pod was last tried, sorted; empty if none did.
  std::vector<std::string> FeasibleFor(const std::string& pod);

  // The pod's scores by its log, [node][plugin]; the plugin "" is the total. What was read is
  // forgotten with the next pod.
  using Scores = std::map<std::string, std::map<std::string, int64_t>>;
  Scores ScoresOf(const std::string& pod);  // "namespace/name"

 private:
  HttpResponse Answer(const HttpRequest& request);
  void Start();
  void Stop();

  std::string program_;
  std::filesystem::path config_, log_;
  std::unique_ptr<HttpServer> server_;
  pid_t process_ = -1;
  std::ifstream lines_;
  std::mutex mutex_;
  std::map<std::string, std::vector<std::string>> feasible_;  // Guarded by mutex_.
};

}  // namespace rudderfish::testing
