// SPDX-License-Identifier: Apache-2.0
#include "base/thread_pool.h"

#include "base/check.h"

namespace rudderfish {
namespace {

// Some 10 microseconds: longer than the gap between two loops of a training step, short beside a
// time slice.
constexpr int kSpins = 400;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Returns once `value` is not `old` any more.
void AwaitChange(const std::atomic<int>& value, int old) {
  for (int spin = 0; spin < kSpins; ++spin) {
    if (value.load(std::memory_order_acquire) != old) return;
    Pause();
  }
  value.wait(old, std::memory_order_acquire);
}

// Sequentially consistent, so that notify sees every waiter that has not seen the new value.
int Bump(std::atomic<int>& value) { return value.fetch_add(1, std::memory_order_seq_cst) + 1; }

}  // namespace

ThreadPool::ThreadPool(int threads) {
  CHECK_GE(threads, 1);
  workers_.reserve(threads - 1);
  for (int worker = 1; worker < threads; ++worker) {
    workers_.emplace_back([this, worker] { Work(worker); });
  }
}

ThreadPool::~ThreadPool() {
  stopping_.store(true, std::memory_order_relaxed);
  Bump(jobs_started_);
  jobs_started_.notify_all();
  workers_.clear();  // Joins.
}

void ThreadPool::Run(int count, void* callee, Call call) {
  CHECK_GE(count, 0);
  CHECK(!running_.exchange(true, std::memory_order_acquire));
  if (workers_.empty() || count <= 1) {
    for (int index = 0; index < count; ++index) call(callee, index, 0);
  } else {
    job_ = {call, callee, count};
    done_.store(0, std::memory_order_relaxed);
    unclaimed_.store(count, std::memory_order_release);
    Bump(jobs_started_);
    jobs_started_.notify_all();
    RunClaimed(0);
    for (int done = done_.load(std::memory_order_acquire); done != count;
         done = done_.load(std::memory_order_acquire)) {
      AwaitChange(done_, done);
    }
  }
  running_.store(false, std::memory_order_release);
}

void ThreadPool::Work(int worker) {
  for (;;) {
    // Read before looking for work, so that a job which starts in between is not slept through.
    const int started = jobs_started_.load(std::memory_order_acquire);
    if (stopping_.load(std::memory_order_relaxed)) return;
    RunClaimed(worker);
    AwaitChange(jobs_started_, started);
  }
}

void ThreadPool::RunClaimed(int worker) {
  int unclaimed = unclaimed_.load(std::memory_order_relaxed);
  while (unclaimed > 0) {
    if (!unclaimed_.compare_exchange_weak(unclaimed, unclaimed - 1, std::memory_order_acq_rel,
                                          std::memory_order_relaxed)) {
      continue;
    }
    const int count = job_.count;
    job_.call(job_.callee, count - unclaimed, worker);
    if (Bump(done_) == count) done_.notify_one();
    unclaimed = unclaimed_.load(std::memory_order_relaxed);
  }
}

}  // namespace rudderfish
