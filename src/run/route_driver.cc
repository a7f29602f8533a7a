// SPDX-License-Identifier: Apache-2.0
#include "run/route_driver.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace rudderfish {

RouteDriver::RouteDriver(std::vector<Route> routes, const Clock* clock)
    : routes_(std::move(routes)), clock_(clock), busy_(routes_.size(), false) {
  const size_t threads = std::min(routes_.size(), kThreadsMax);
  for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
}

RouteDriver::~RouteDriver() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void RouteDriver::Add(Job job) {
  const std::lock_guard lock(mutex_);
  CHECK(!busy_[job.route]);
  busy_[job.route] = true;
  jobs_.push_back(std::move(job));
  changed_.notify_all();
}

void RouteDriver::Read(size_t route) { Add({.route = route, .plan = std::nullopt, .until = {}}); }

void RouteDriver::Set(size_t route, SplitPlan plan, Instant until) {
  Add({.route = route, .plan = std::move(plan), .until = until});
}

void RouteDriver::DropSets() {
  const std::lock_guard lock(mutex_);
  for (auto job = jobs_.begin(); job != jobs_.end();) {
    if (!job->plan) {
      ++job;
      continue;
    }
    answers_.push_back(
        {.route = job->route,
         .is_set = true,
         .standing = Fail(ErrorCode::kUnavailable, "it was held back; nothing was sent"),
         .at = clock_->Now()});
    busy_[job->route] = false;
    job = jobs_.erase(job);
  }
}

std::string RouteDriver::Request(size_t route, const std::vector<int64_t>& weights) const {
  CHECK(!is_busy(route));
  return routes_[route].enactor->Request(weights);
}

bool RouteDriver::is_busy(size_t route) const {
  const std::lock_guard lock(mutex_);
  return busy_[route];
}

bool RouteDriver::is_idle() const {
  const std::lock_guard lock(mutex_);
  return std::none_of(busy_.begin(), busy_.end(), [](bool one) { return one; });
}

std::optional<RouteDriver::Answer> RouteDriver::Take() {
  const std::lock_guard lock(mutex_);
  if (answers_.empty()) return std::nullopt;
  std::optional<Answer> answer(std::move(answers_.front()));
  answers_.pop_front();
  return answer;
}

RouteDriver::Answer RouteDriver::Do(const Job& job) {
  SplitEnactor* const enactor = routes_[job.route].enactor.get();
  Answer answer{.route = job.route,
                .is_set = job.plan.has_value(),
                .standing = StandingWeights(),
                .at = clock_->Now()};
  if (!job.plan) {
    answer.standing = enactor->Read();
  } else if (answer.at > job.until) {
    answer.standing =
        Fail(ErrorCode::kDeadlineExceeded, "it waited too long for its turn; nothing was sent");
  } else {
    answer.standing = EnactSplit(enactor, *job.plan);
    answer.at = clock_->Now();
  }
  return answer;
}

void RouteDriver::Work() {
  while (true) {
    Job job;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return is_ending_ || !jobs_.empty(); });
      if (is_ending_) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    Answer answer = Do(job);
    const std::lock_guard lock(mutex_);
    busy_[job.route] = false;
    answers_.push_back(std::move(answer));
  }
}

}  // namespace rudderfish
