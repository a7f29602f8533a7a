// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/wall_time.h"
#include "cluster/pod_move.h"
#include "kube/api_client.h"
#include "run/pod_mover.h"
#include "run/target_check.h"

// Carries out the moves that `rudderfish run` decides, on a thread and connections of its own, so
// that no other decision waits for them. It goes on only as long as its owner says so again and
// again: while a word is older than kWordLimit, nothing is touched.
//
// Thread safe, as far as one owner calls it.

namespace rudderfish {

class MoveDriver {
 public:
  struct Options {
    MoveOptions move;
    Duration limit = std::chrono::minutes(2);  // Of one move; then it is undone.
    int at_once = 1;                           // Others wait for their turn.
  };

  struct Order {
    PodIdentity pod;
    std::string target;  // Name of the node.
  };

  struct End {
    bool is_moved = false;
    std::string id = {};      // Of the move; empty: it was not begun.
    std::string why;          // Not moved.
    std::string replacement;  // Name of the pod that serves instead.
    double seconds = 0;
  };

  // What may be done from now on.
  enum class Word {
    kNothing,  // Touch nothing: another instance leads. Ours are forgotten; it continues them.
    kUndo,     // Begin none, and undo what can be undone, also of what an earlier process has left.
    kAct,      // Begin, and continue what an earlier process has left.
  };
  static constexpr Duration kWordLimit = std::chrono::seconds(5);

  struct Standing {
    PodMove move;
    std::string pod, node;  // NAMESPACE/NAME, and where it is.
    std::string why;        // What is awaited.
  };

  // The client is the thread's, which begins with Start or the first kAct.
  MoveDriver(std::unique_ptr<kube::ApiClient> client, const Options& options);
  ~MoveDriver();
  MoveDriver(const MoveDriver&) = delete;

  // Where moves may have been left to undo, though none may begin. Does nothing a second time.
  void Start();
  void Say(Word word);
  void Configure(const Options& options);

  uint64_t Begin(Order order);              // Never 0.
  std::optional<End> Take(uint64_t order);  // Once it has ended; then it is forgotten.
  void Forget(uint64_t order);              // Its end is not asked for. It goes on.
  bool Cancel(uint64_t order);              // False: it has begun, and goes on.

  std::vector<Standing> Standings() const;
  bool is_idle() const;

  // Undoes what can be undone, for at most `limit`. Nothing is begun any more.
  void Finish(Duration limit);

 private:
  struct Under {         // Way.
    uint64_t order = 0;  // 0: of an earlier process.
    std::unique_ptr<PodMover> mover;
    std::string node;  // Where the pod was.
    std::string why;
    bool is_told_to_undo = false;
  };

  void Work();
  std::optional<Word> Hear();  // What holds now; nothing: the last word is too old.
  bool IsFinishing() const;
  void LetGo();
  void BeginOrders(Word word);
  void FollowTargets();
  Result<void> BeginOne(const Order& order, const Options& options, PodMover* mover);
  void TakeOverLeft();
  void StepAll(Word word);
  void Conclude(const Under& move, End end);
  void Publish();
  void Wait();

  std::unique_ptr<kube::ApiClient> client_;  // Of the thread, once there is one.
  const Clock* clock_;
  std::vector<Under> moves_;  // Of the thread.
  Instant looked_for_left_;   // Of the thread.
  std::string told_;          // Of the thread: the trouble that was logged last.
  // Of the thread, while there is something to move: then it watches the cluster.
  std::unique_ptr<TargetCheck> targets_;
  Instant busy_at_;  // Of the thread: when there was something last.
  // Of the thread: moves that are over and still listed, as a silent node keeps their pods.
  std::vector<std::string> over_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Options options_;
  Word word_ = Word::kNothing;
  Instant said_at_;
  bool is_ending_ = false, is_finishing_ = false;
  uint64_t last_order_ = 0;
  std::map<uint64_t, Order> waiting_;
  std::map<uint64_t, End> ends_;
  std::vector<uint64_t> forgotten_;
  std::vector<Standing> standings_;
  std::thread thread_;
};

}  // namespace rudderfish
