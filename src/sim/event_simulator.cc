// SPDX-License-Identifier: Apache-2.0
#include "sim/event_simulator.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace rudderfish {
namespace {

constexpr double kNsPerMs = 1e6, kNsOfSecond = 1e9;

// Streams of chance, apart from each other: what one draws leaves the others as they are.
enum ChanceStream : uint64_t {
  kRequestChance = 1,
  kMixChance,
  kServiceChance,
  kPodChance,
  kPodStartChance,
  kUserChance
};

// Tags of the network's events.
constexpr uint32_t kCallTag = 0, kAnswerTag = 1, kEndTag = 2;  // The last: at the client.
// Of the heap's: end of service; any other is the generation of a pod that becomes ready. Where the
// subject is nobody, a user has thought; below that, it is a pod whose slots are shared, with its
// generation as tag.
constexpr uint32_t kServiceTag = 0;

// Where the next event comes from; of events of one time, the first of these.
enum EventSource { kFromHeap, kFromNetwork, kFromTimeouts, kFromRetries, kFromArrivals };

}  // namespace

RequestSums RequestSums::operator-(const RequestSums& other) const {
  return {arrived - other.arrived,        completed - other.completed,
          failed - other.failed,          late - other.late,
          timeouts - other.timeouts,      retries - other.retries,
          response_ns - other.response_ns};
}

WorkloadSums WorkloadSums::operator-(const WorkloadSums& other) const {
  return {calls - other.calls,           refused - other.refused, served - other.served,
          wait_ns - other.wait_ns,       busy_ns - other.busy_ns, present_ns - other.present_ns,
          sojourn_ns - other.sojourn_ns, pod_ns - other.pod_ns,   ready_ns - other.ready_ns};
}

EventSimulator::EventSimulator(std::shared_ptr<const ServedApplication> application)
    : application_(std::move(application)),
      graph_(application_->calls.get()),
      network_ns_(std::llround(application_->network_ms * kNsPerMs)),
      timeout_ns_(std::llround(application_->timeout_s * kNsOfSecond)),
      retry_ns_(std::llround(application_->retry_delay_s * kNsOfSecond)) {
  CHECK_EQ(application_->service_ms.size(), graph_->calls.size());
  for (CallId call = 0; call < graph_->call_count(); ++call) {
    const ServiceLaw& law = application_->workloads[graph_->calls[call].workload].service;
    CallPlan plan{.shape = law.shape, .mean_ns = application_->service_ms[call] * kNsPerMs};
    if (law.shape == ServiceLaw::Shape::kLogNormal) {
      const double variance = std::log1p(law.scv);
      plan.a = std::log(plan.mean_ns) - variance / 2;
      plan.b = std::sqrt(variance);
    } else if (law.shape == ServiceLaw::Shape::kHyperexponential) {
      CHECK_GT(law.scv, 1.0);
      plan.a = (1 + std::sqrt((law.scv - 1) / (law.scv + 1))) / 2;
      plan.b = 1 / (2 * plan.a);
      plan.c = 1 / (2 * (1 - plan.a));
    }
    plans_.push_back(plan);
  }
  double upto = 0;
  for (const double share : application_->EndpointShares()) endpoint_upto_.push_back(upto += share);
}

void EventSimulator::Start(std::shared_ptr<const RateCurve> curve, uint64_t seed,
                           std::span<const int> replicas) {
  const ReturningUsers& users = curve->users;
  again_ = users.again;
  think_ns_ = users.think_s * kNsOfSecond;
  const double thinking = again_ > 0 ? users.thinking : 0;
  if (again_ > 0) {
    curve = std::make_shared<const RateCurve>(RateCurve{curve->step_s, users.starts_per_s, {}});
  }
  source_ = std::make_unique<RequestSource>(std::move(curve), seed, kRequestChance);
  users_ = Rng(seed, kUserChance);
  mix_ = Rng(seed, kMixChance);
  service_ = ChanceAhead(Rng(seed, kServiceChance));
  choice_ = Rng(seed, kPodChance);
  starts_ = Rng(seed, kPodStartChance);
  now_ns_ = events_ = open_requests_ = 0;
  heap_.Clear();
  network_.Clear();
  timeouts_.Clear();
  retries_.Clear();
  frames_.clear();
  free_frame_ = kNobody;
  pods_.clear();
  free_pods_.clear();
  requests_ = {};
  responses_.Clear();
  pools_.assign(application_->workloads.size(), Pool());
  for (WorkloadId w = 0; w < application_->workload_count(); ++w) {
    const ServedWorkload& workload = application_->workloads[w];
    const int pods = replicas.empty() ? workload.replicas : replicas[w];
    for (int i = 0; workload.scaled && i < pods; ++i) {
      const int32_t pod = NewPod(w);
      pods_[pod].state = PodState::kReady;
      pools_[w].ready.push_back(pod);
    }
    pools_[w].images = std::min(pods, workload.image_nodes);
  }
  next_arrival_ns_ = source_->NextNs();
  // As many as a Poisson process has points in that time; all of them are in the midst of thinking.
  const auto exponential = [this] { return -std::log(1 - users_.Uniform()); };
  for (double sum = exponential(); sum < thinking; sum += exponential()) Think();
}

void EventSimulator::Think() {
  const double ns = -think_ns_ * std::log(1 - users_.Uniform());
  heap_.Add({now_ns_ + static_cast<int64_t>(ns) + 1, kNobody, kServiceTag});
}

void EventSimulator::AdvanceTo(int64_t until_ns) {
  CHECK_GE(until_ns, now_ns_);
  for (;;) {
    int64_t at_ns = heap_.soonest_ns();
    int source = kFromHeap;
    const auto consider = [&](int64_t candidate_ns, int from) {
      if (candidate_ns < at_ns) at_ns = candidate_ns, source = from;
    };
    consider(network_.soonest_ns(), kFromNetwork);
    consider(timeouts_.soonest_ns(), kFromTimeouts);
    consider(retries_.soonest_ns(), kFromRetries);
    consider(next_arrival_ns_, kFromArrivals);
    if (at_ns > until_ns || at_ns == EventHeap::kNothing) break;
    Step(at_ns, source);
  }
  now_ns_ = until_ns;
}

void EventSimulator::Step(int64_t at_ns, int source) {
  now_ns_ = at_ns;
  ++events_;
  switch (source) {
    case kFromHeap: {
      const TimedEvent event = heap_.Take();
      if (event.subject < 0) {
        event.subject == kNobody ? BeginRequest() : LookAtShared(event);
      } else {
        event.tag == kServiceTag ? EndService(event.subject) : BecomeReady(event);
      }
      break;
    }
    case kFromNetwork: {
      const TimedEvent event = network_.Take();
      if (event.tag == kCallTag) {
        Arrive(event.subject);
      } else {
        event.tag == kEndTag ? EndAttempt(event.subject) : TakeAnswer(event.subject);
      }
      break;
    }
    case kFromTimeouts:
      GiveUp(timeouts_.Take());
      break;
    case kFromRetries: {
      const FrameId root = retries_.Take().subject;
      const Frame frame = frames_[root];
      Free(root);
      Send(frame.call, frame.since_ns, frame.pod);
      break;
    }
    case kFromArrivals:
      BeginRequest();
      next_arrival_ns_ = source_->NextNs();
      break;
  }
}

void EventSimulator::BeginRequest() {
  ++requests_.arrived;
  ++open_requests_;
  size_t endpoint = 0;
  if (endpoint_upto_.size() > 1) {
    const double u = mix_.Uniform();
    while (endpoint + 1 < endpoint_upto_.size() && u >= endpoint_upto_[endpoint]) ++endpoint;
  }
  Send(graph_->endpoints[endpoint].root, now_ns_, 0);
}

void EventSimulator::EndRequest() {
  --open_requests_;
  if (again_ > 0 && users_.Uniform() < again_) Think();
}

void EventSimulator::Send(CallId endpoint_root, int64_t first_ns, int attempt) {
  const FrameId root = NewFrame();
  Frame& frame = frames_[root];
  frame.call = endpoint_root;
  frame.since_ns = first_ns;
  frame.pod = attempt;
  if (timeout_ns_ > 0) timeouts_.Add({now_ns_ + timeout_ns_, root, frame.generation});
  OpenGroups(root);
}

// What follows once a call has computed: its groups, or its answer.
void EventSimulator::OpenGroups(FrameId id) {
  const Call& call = graph_->calls[frames_[id].call];
  const int groups = call.last_group - call.first_group;
  if (groups == 0) return Answer(id);
  // One more, closed at the end, so that a group that fails at once does not answer for all.
  frames_[id].open = groups + 1;
  for (int g = call.first_group; g < call.last_group; ++g)
    CallNext(id, graph_->groups[g].first, graph_->groups[g].last);
  CloseGroup(id);
}

void EventSimulator::CallNext(FrameId caller, int position, int group_end) {
  const FrameId id = NewFrame();
  Frame& frame = frames_[id];
  frame.caller = caller;
  frame.call = graph_->sequence[position];
  frame.position = position;
  frame.group_end = group_end;
  if (network_ns_ > 0) {
    network_.Add({now_ns_ + network_ns_, id, kCallTag});
  } else {
    Arrive(id);
  }
}

void EventSimulator::Arrive(FrameId id) {
  Frame& frame = frames_[id];
  const WorkloadId workload = graph_->calls[frame.call].workload;
  Pool& pool = pools_[workload];
  const int32_t chosen = ChoosePod(workload);
  const ServedWorkload& served = application_->workloads[workload];
  Pod* pod = chosen == kNobody ? nullptr : &pods_[chosen];
  if (pod == nullptr || pod->present - pod->busy >= served.queue_limit) {
    // A pod with a free slot takes whoever comes, whatever the limit of its line.
    if (pod == nullptr || pod->busy >= served.slots) {
      ++pool.sums.refused;
      frame.failed = true;
      return Answer(id);
    }
  }
  ++pool.sums.calls;
  Touch(pod);
  frame.since_ns = now_ns_;
  frame.pod = chosen;
  ++pod->present;
  if (served.discipline == Discipline::kShared) return ShareSlots(id, chosen);
  if (pod->busy < served.slots) return Serve(id, pod);
  frame.next = kNobody;
  (pod->last == kNobody ? pod->first : frames_[pod->last].next) = id;
  pod->last = id;
}

void EventSimulator::Serve(FrameId id, Pod* pod) {
  ++pod->busy;
  pools_[pod->workload].sums.wait_ns += now_ns_ - frames_[id].since_ns;
  heap_.Add({now_ns_ + DrawServiceNs(frames_[id].call), id, kServiceTag});
}

void EventSimulator::EndService(FrameId id) {
  const int32_t pod_id = frames_[id].pod;
  Pod& pod = pods_[pod_id];
  Pool& pool = pools_[pod.workload];
  Touch(&pod);
  ++pool.sums.served;
  pool.sums.sojourn_ns += now_ns_ - frames_[id].since_ns;
  --pod.busy;
  --pod.present;
  if (pod.first != kNobody) {
    const FrameId next = pod.first;
    pod.first = frames_[next].next;
    if (pod.first == kNobody) pod.last = kNobody;
    Serve(next, &pod);
  } else if (pod.present == 0 && pod.state == PodState::kDraining) {
    Remove(pod_id);
  }
  OpenGroups(id);
}

void EventSimulator::Answer(FrameId id) {
  if (frames_[id].caller == kNobody) return EndAttempt(id);
  network_ns_ > 0 ? SendAnswer(id) : TakeAnswer(id);
}

// A caller that waits for nothing else does at once what follows, when an answer comes: it calls
// the next, or answers itself. That is known now, so it is done now, for later, up to the next
// call or the client. Those who wait for other groups as well have to be asked when the time has
// come.
void EventSimulator::SendAnswer(FrameId id) {
  int64_t at_ns = now_ns_ + network_ns_;
  for (;;) {
    Frame& frame = frames_[id];
    Frame& caller = frames_[frame.caller];
    if (caller.open != 1) return network_.Add({at_ns, id, kAnswerTag});
    if (!frame.failed && frame.position + 1 < frame.group_end) {
      ++events_;
      frame.call = graph_->sequence[++frame.position];
      return network_.Add({at_ns + network_ns_, id, kCallTag});
    }
    caller.open = 0;
    caller.failed = caller.failed || frame.failed;
    const FrameId answers = frame.caller;
    Free(id);
    if (caller.caller == kNobody) return network_.Add({at_ns, answers, kEndTag});
    ++events_;
    id = answers;
    at_ns += network_ns_;
  }
}

void EventSimulator::TakeAnswer(FrameId callee) {
  const Frame frame = frames_[callee];
  Free(callee);
  if (frame.failed) frames_[frame.caller].failed = true;
  if (!frame.failed && frame.position + 1 < frame.group_end)
    return CallNext(frame.caller, frame.position + 1, frame.group_end);
  CloseGroup(frame.caller);
}

void EventSimulator::CloseGroup(FrameId caller) {
  if (--frames_[caller].open == 0) Answer(caller);
}

void EventSimulator::EndAttempt(FrameId root) {
  const Frame& frame = frames_[root];
  if (frame.given_up) return Free(root);
  if (frame.failed) return TryAgainOrFail(root);
  const int64_t response_ns = now_ns_ - frame.since_ns;
  ++requests_.completed;
  requests_.response_ns += response_ns;
  responses_.Add(response_ns);
  const auto endpoint = std::find_if(graph_->endpoints.begin(), graph_->endpoints.end(),
                                     [&](const Endpoint& one) { return one.root == frame.call; });
  if (static_cast<double>(response_ns) > endpoint->qos_ms * kNsPerMs) ++requests_.late;
  EndRequest();
  Free(root);
}

void EventSimulator::GiveUp(const TimedEvent& timeout) {
  Frame& frame = frames_[timeout.subject];
  if (frame.generation != timeout.tag) return;  // It was answered.
  ++requests_.timeouts;
  frame.given_up = true;
  // The attempt goes on by itself; its successor is a frame of its own.
  const FrameId again = NewFrame();
  const Frame& old = frames_[timeout.subject];
  frames_[again].call = old.call;
  frames_[again].since_ns = old.since_ns;
  frames_[again].pod = old.pod;
  TryAgainOrFail(again);
}

void EventSimulator::TryAgainOrFail(FrameId root) {
  Frame& frame = frames_[root];
  if (frame.pod >= application_->retries) {
    ++requests_.failed;
    EndRequest();
    return Free(root);
  }
  ++requests_.retries;
  ++frame.pod;
  ++frame.generation;  // Whatever waited for the attempt before does so no longer.
  retries_.Add({now_ns_ + retry_ns_, root, 0});
}

int64_t EventSimulator::overdue() const {
  int64_t count = 0;
  std::vector<bool> is_free(frames_.size());
  for (FrameId id = free_frame_; id != kNobody; id = frames_[id].next) is_free[id] = true;
  for (size_t id = 0; id < frames_.size(); ++id) {
    const Frame& frame = frames_[id];
    if (is_free[id] || frame.caller != kNobody || frame.given_up) continue;
    for (const Endpoint& endpoint : graph_->endpoints) {
      const double age_ns = static_cast<double>(now_ns_ - frame.since_ns);
      if (endpoint.root == frame.call && age_ns > endpoint.qos_ms * kNsPerMs) ++count;
    }
  }
  return count;
}

int32_t EventSimulator::ChoosePod(WorkloadId workload) {
  Pool& pool = pools_[workload];
  const auto count = static_cast<uint32_t>(pool.ready.size());
  if (count <= 1) return count == 0 ? kNobody : pool.ready[0];
  const ServedWorkload& served = application_->workloads[workload];
  switch (served.balancing) {
    case Balancing::kRandom:
      break;
    case Balancing::kRoundRobin:
      return pool.ready[pool.turn++ % count];
    case Balancing::kLeastRequests: {
      int32_t best = pool.ready[choice_.Below(count)];
      for (int i = 1; i < served.choices; ++i) {
        const int32_t other = pool.ready[choice_.Below(count)];
        if (pods_[other].present < pods_[best].present) best = other;
      }
      return best;
    }
  }
  return pool.ready[choice_.Below(count)];
}

int64_t EventSimulator::DrawServiceNs(CallId call) {
  const CallPlan& plan = plans_[call];
  double ns = plan.mean_ns;
  switch (plan.shape) {
    case ServiceLaw::Shape::kConstant:
      break;
    case ServiceLaw::Shape::kExponential:
      ns *= -std::log(1 - service_.Uniform());
      break;
    case ServiceLaw::Shape::kLogNormal:
      ns = std::exp(plan.a + plan.b * service_.Normal());
      break;
    case ServiceLaw::Shape::kHyperexponential: {
      const double stretch = service_.Uniform() < plan.a ? plan.b : plan.c;
      ns *= -stretch * std::log(1 - service_.Uniform());
      break;
    }
  }
  return static_cast<int64_t>(ns) + 1;
}

EventSimulator::FrameId EventSimulator::NewFrame() {
  if (free_frame_ == kNobody) {
    frames_.emplace_back();
    return static_cast<FrameId>(frames_.size() - 1);
  }
  const FrameId id = free_frame_;
  const uint32_t generation = frames_[id].generation;
  free_frame_ = frames_[id].next;
  frames_[id] = Frame();
  frames_[id].generation = generation;
  return id;
}

void EventSimulator::Free(FrameId id) {
  ++frames_[id].generation;
  frames_[id].next = free_frame_;
  free_frame_ = id;
}

}  // namespace rudderfish
