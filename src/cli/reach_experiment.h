// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cli/commands.h"
#include "cli/reach_cluster.h"
#include "compat/reach_csv.h"
#include "compat/reach_settings.h"
#include "net/http_client.h"

// An experiment of REACH around a controller that runs: what passes between two points of time is
// measured and written down, and the controller is held back or let go. It moves pods by itself,
// with its own guards; here nothing is decided. One thread.

namespace rudderfish {

enum class ReachStrategy { kLearned, kBestEffort };  // rl, be

struct ReachExperimentPlan {
  ReachStrategy strategy = ReachStrategy::kLearned;
  ReachSettings settings;
  double qos_ms = 250;
  std::filesystem::path socket;  // Of the controller.
  std::shared_ptr<const Application> application;
};

// The controller: held back by `pause` and let go by `resume`, as a person would; at the end it is
// left as it was found.
class ReachController {
 public:
  // What of it matters here.
  struct Standing {
    int64_t plans = 0, moves = 0;  // Ended since it began, with any outcome.
    struct Move {
      std::string id, pod, from, to;
      UnixMillis begun = 0;
    };
    std::vector<Move> moving;
    std::string problem;  // Why it decides nothing; empty: it does, or is held back.
  };

  explicit ReachController(std::filesystem::path socket) : socket_(std::move(socket)) {}
  ~ReachController();

  // kFailedPrecondition: it does not move pods; kUnavailable: none runs, which kBestEffort does not
  // mind.
  Result<void> Begin(ReachStrategy strategy);
  Result<Standing> Look();
  Result<void> Hold();
  Result<void> LetGo();
  bool is_there() const { return is_there_; }
  bool is_held() const { return is_held_; }

 private:
  std::filesystem::path socket_;
  bool is_there_ = false, was_held_ = false, is_held_ = false;
};

class ReachExperiment {
 public:
  // Rows of time go to `csv`, from when there is one; null: to nothing.
  ReachExperiment(ReachExperimentPlan plan, ReachCluster* cluster, std::optional<ReachCsv>* csv,
                  const Session* session);

  // Holds the controller back, waits until all pods are ready, and opens what an earlier experiment
  // has left closed.
  Result<void> Begin();

  // From now on the controller is let go while the mean latency is above that of the plan, and is
  // held back otherwise. Nothing with kBestEffort.
  void FollowLatency() { follows_ = plan_.strategy == ReachStrategy::kLearned; }
  void FollowNothing() { follows_ = false; }

  // Measures, for so long or until a signal. False: a signal came.
  Result<bool> Spend(Duration length);

  Result<void> WaitReady();

  // Lets the controller move pods until its plan has ended, or for MAX_STEP moves. How many.
  Result<int> Episode();

  // Mean latencies of the requests from now on, for `length` and until there are enough.
  Result<ReachLatencies> Average(Duration length);

  // The pods of these nodes go elsewhere, and new ones do not come. kDeadlineExceeded if a
  // PodDisruptionBudget holds them.
  Result<void> FailNode(const std::string& node);
  Result<void> RecoverNodes();

  // Holds the controller back once no pod is being moved.
  Result<void> Hold();

  Result<void> Write(ReachTimeRow row);
  int64_t plans_ended() const { return standing_.plans - begun_.plans; }
  // Workloads of the application in the order of REACH's columns, without those outside.
  std::vector<WorkloadId> Workloads() const;
  std::string EndText() const;

 private:
  Result<void> Step();
  Result<void> Look();
  void Ask();
  Result<void> TakeLatency(double ms);
  Result<void> Follow();
  Result<bool> ReadTraces(double from_unix, ReachLatencies* latencies) const;

  ReachExperimentPlan plan_;
  ReachCluster* cluster_;
  std::optional<ReachCsv>* csv_;
  const Session* session_;
  ReachController controller_;
  ReachController::Standing begun_, standing_;
  std::vector<std::string> told_;  // Ids of moves.
  std::string told_problem_;
  HttpClient http_;
  Instant ask_at_, look_at_;
  std::optional<double> mean_ms_;
  std::vector<double> latencies_ms_;  // Since Average began.
  int64_t answered_ = 0, failed_ = 0;
  std::string last_failure_;
  Result<void> written_;
  bool follows_ = false;
};

}  // namespace rudderfish
