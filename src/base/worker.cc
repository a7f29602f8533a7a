// SPDX-License-Identifier: Apache-2.0
#include "base/worker.h"

#include <utility>

namespace rudderfish {

Worker::Worker() : thread_([this](const std::stop_token& stop) { Run(stop); }) {}

Worker::~Worker() {
  thread_.request_stop();
  thread_.join();
}

std::future<void> Worker::Do(std::function<void()> work) {
  std::packaged_task<void()> task(std::move(work));
  std::future<void> done = task.get_future();
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(task));
  }
  has_work_.notify_one();
  return done;
}

void Worker::Run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (has_work_.wait(lock, stop, [this] { return !queue_.empty(); })) {
    if (stop.stop_requested()) return;
    std::packaged_task<void()> task = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
}

}  // namespace rudderfish
