// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

// A fixed crew of threads for loops that start thousands of times a second: a call allocates
// nothing, and workers spin for some microseconds before they sleep. The calling thread takes part
// as worker 0.
//
// Which worker runs which index is chance. Results stay independent of it, and of the number of
// threads, if the body writes only to slots chosen by `index` and draws from generators keyed by
// `index`; `worker` (in [0, size())) is for scratch memory alone. With one thread the indices run
// inline, in order.
//
// One ParallelFor at a time, not from within another (CHECKed). The body must not throw.

namespace rudderfish {

class ThreadPool {
 public:
  // REQUIRES: threads >= 1; the caller counts as one.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls body(int index, int worker) once for each index in [0, count) and returns when all have
  // returned. All that the bodies wrote is visible to the caller. REQUIRES: count >= 0.
  template <class Body>
  void ParallelFor(int count, Body&& body) {
    using Callee = std::remove_reference_t<Body>;
    Run(count, const_cast<void*>(static_cast<const void*>(std::addressof(body))),
        [](void* callee, int index, int worker) noexcept {
          (*static_cast<Callee*>(callee))(index, worker);
        });
  }

 private:
  using Call = void (*)(void* callee, int index, int worker) noexcept;

  struct Job {
    Call call = nullptr;
    void* callee = nullptr;
    int count = 0;
  };

  void Run(int count, void* callee, Call call);
  void Work(int worker);
  void RunClaimed(int worker);

  // Only a thread that has claimed an index reads job_, and the caller writes it only when every
  // claimed index is done; so claims need no generation: a claim is always one of the current job.
  Job job_;
  alignas(64) std::atomic<int> unclaimed_{0};
  alignas(64) std::atomic<int> done_{0};
  alignas(64) std::atomic<int> jobs_started_{0};  // Workers sleep on it.
  std::atomic<bool> running_{false};
  std::atomic<bool> stopping_{false};
  std::vector<std::jthread> workers_;
};

}  // namespace rudderfish
