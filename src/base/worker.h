// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <thread>

// A thread that runs tasks, one after another, while its owner goes on. What a task did is visible
// to every thread that has waited for its future.

namespace rudderfish {

class Worker {
 public:
  Worker();
  ~Worker();  // Waits for what has begun; what has not is dropped, and its future is ready.
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // From any thread.
  std::future<void> Do(std::function<void()> work);

 private:
  void Run(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable_any has_work_;
  std::deque<std::packaged_task<void()>> queue_;
  std::jthread thread_;  // Last: it uses the others.
};

}  // namespace rudderfish
