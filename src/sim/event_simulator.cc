// SPDX-License-Identifier: Apache-2.0
#include "sim/event_simulator.h"

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

// Where the next event comes from; of events of one time, the first of these.
enum EventSource { kFromHeap, kFromNetwork, kFromTimeouts, kFromRetries, kFromArrivals };

}  // namespace

RequestSums RequestSums::operator-(const RequestSums& other) const {
  return {arrived - other.arrived,        completed - other.completed,
          failed - other.failed,          late - other.late,
          timeouts - other.timeouts,      retries - other.retries,
          response_ns - other.response_ns};
}

EventSimulator::EventSimulator(std::shared_ptr<const ServedApplication> application)
    : application_(std::move(application)),
      graph_(application_->calls.get()),
      network_ns_(std::llround(application_->network_ms * kNsPerMs)),
      timeout_ns_(std::llround(application_->timeout_s * kNsOfSecond)),
      retry_ns_(std::llround(application_->retry_delay_s * kNsOfSecond)),
      qos_ns_(graph_->calls.size()),
      pods_(application_.get(), &calls_) {
  for (const Endpoint& endpoint : graph_->endpoints)
    qos_ns_[endpoint.root] = endpoint.qos_ms * kNsPerMs;
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
  calls_.now_ns = events_ = open_requests_ = 0;
  calls_.heap.Clear();
  network_.Clear();
  timeouts_.Clear();
  retries_.Clear();
  calls_.frames.Clear();
  requests_ = {};
  responses_.Clear();
  pods_.Start({.durations = Rng(seed, kServiceChance),
               .choices = Rng(seed, kPodChance),
               .starts = Rng(seed, kPodStartChance)},
              replicas);
  next_arrival_ns_ = source_->NextNs();
  // As many as a Poisson process has points in that time; all of them are in the midst of thinking.
  const auto exponential = [this] { return -std::log(1 - users_.Uniform()); };
  for (double sum = exponential(); sum < thinking; sum += exponential()) Think();
}

void EventSimulator::Think() {
  const double ns = -think_ns_ * std::log(1 - users_.Uniform());
  calls_.heap.Add({calls_.now_ns + static_cast<int64_t>(ns) + 1, kNoId, 0});
}

void EventSimulator::AdvanceTo(int64_t until_ns) {
  CHECK_GE(until_ns, calls_.now_ns);
  for (;;) {
    int64_t at_ns = calls_.heap.soonest_ns();
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
  calls_.now_ns = until_ns;
}

void EventSimulator::Step(int64_t at_ns, int source) {
  calls_.now_ns = at_ns;
  ++events_;
  switch (source) {
    case kFromHeap: {
      const TimedEvent event = calls_.heap.Take();
      if (event.subject == kNoId) {
        BeginRequest();
      } else if (const FrameId done = pods_.Happen(event); done != kNoId) {
        OpenGroups(done);
      } else if (PodFleet::IsLook(event)) {
        --events_;  // Nothing was to be seen.
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
      const CallFrame frame = calls_.frames[root];
      calls_.frames.Free(root);
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
  Send(graph_->endpoints[endpoint].root, calls_.now_ns, 0);
}

void EventSimulator::EndRequest() {
  --open_requests_;
  if (again_ > 0 && users_.Uniform() < again_) Think();
}

void EventSimulator::Send(CallId endpoint_root, int64_t first_ns, int attempt) {
  const FrameId root = calls_.frames.New();
  CallFrame& frame = calls_.frames[root];
  frame.call = endpoint_root;
  frame.since_ns = first_ns;
  frame.pod = attempt;
  if (timeout_ns_ > 0) timeouts_.Add({calls_.now_ns + timeout_ns_, root, frame.generation});
  OpenGroups(root);
}

// What follows once a call has computed: its groups, or its answer.
void EventSimulator::OpenGroups(FrameId id) {
  const Call& call = graph_->calls[calls_.frames[id].call];
  const int groups = call.last_group - call.first_group;
  if (groups == 0) return Answer(id);
  // One more, closed at the end, so that a group that fails at once does not answer for all.
  calls_.frames[id].open = groups + 1;
  for (int g = call.first_group; g < call.last_group; ++g)
    CallNext(id, graph_->groups[g].first, graph_->groups[g].last);
  CloseGroup(id);
}

void EventSimulator::CallNext(FrameId caller, int position, int group_end) {
  const FrameId id = calls_.frames.New();
  CallFrame& frame = calls_.frames[id];
  frame.caller = caller;
  frame.call = graph_->sequence[position];
  frame.position = position;
  frame.group_end = group_end;
  if (network_ns_ > 0) {
    network_.Add({calls_.now_ns + network_ns_, id, kCallTag});
  } else {
    Arrive(id);
  }
}

void EventSimulator::Arrive(FrameId id) {
  if (pods_.Take(id)) return;
  calls_.frames[id].failed = true;
  Answer(id);
}

void EventSimulator::Answer(FrameId id) {
  if (calls_.frames[id].caller == kNoId) return EndAttempt(id);
  network_ns_ > 0 ? SendAnswer(id) : TakeAnswer(id);
}

// A caller that waits for nothing else does at once what follows, when an answer comes: it calls
// the next, or answers itself. That is known now, so it is done now, for later, up to the next
// call or the client. Those who wait for other groups as well have to be asked when the time has
// come.
void EventSimulator::SendAnswer(FrameId id) {
  int64_t at_ns = calls_.now_ns + network_ns_;
  for (;;) {
    CallFrame& frame = calls_.frames[id];
    CallFrame& caller = calls_.frames[frame.caller];
    if (caller.open != 1) return network_.Add({at_ns, id, kAnswerTag});
    if (!frame.failed && frame.position + 1 < frame.group_end) {
      ++events_;
      frame.call = graph_->sequence[++frame.position];
      return network_.Add({at_ns + network_ns_, id, kCallTag});
    }
    caller.open = 0;
    caller.failed = caller.failed || frame.failed;
    const FrameId answers = frame.caller;
    calls_.frames.Free(id);
    if (caller.caller == kNoId) return network_.Add({at_ns, answers, kEndTag});
    ++events_;
    id = answers;
    at_ns += network_ns_;
  }
}

void EventSimulator::TakeAnswer(FrameId callee) {
  const CallFrame frame = calls_.frames[callee];
  calls_.frames.Free(callee);
  if (frame.failed) calls_.frames[frame.caller].failed = true;
  if (!frame.failed && frame.position + 1 < frame.group_end)
    return CallNext(frame.caller, frame.position + 1, frame.group_end);
  CloseGroup(frame.caller);
}

void EventSimulator::CloseGroup(FrameId caller) {
  if (--calls_.frames[caller].open == 0) Answer(caller);
}

void EventSimulator::EndAttempt(FrameId root) {
  const CallFrame& frame = calls_.frames[root];
  if (frame.given_up) return calls_.frames.Free(root);
  if (frame.failed) return TryAgainOrFail(root);
  const int64_t response_ns = calls_.now_ns - frame.since_ns;
  ++requests_.completed;
  requests_.response_ns += response_ns;
  responses_.Add(response_ns);
  if (static_cast<double>(response_ns) > qos_ns_[frame.call]) ++requests_.late;
  EndRequest();
  calls_.frames.Free(root);
}

void EventSimulator::GiveUp(const TimedEvent& timeout) {
  CallFrame& frame = calls_.frames[timeout.subject];
  if (frame.generation != timeout.tag) return;  // It was answered.
  ++requests_.timeouts;
  frame.given_up = true;
  // The attempt goes on by itself; its successor is a frame of its own.
  const FrameId again = calls_.frames.New();
  const CallFrame& old = calls_.frames[timeout.subject];
  calls_.frames[again].call = old.call;
  calls_.frames[again].since_ns = old.since_ns;
  calls_.frames[again].pod = old.pod;
  TryAgainOrFail(again);
}

void EventSimulator::TryAgainOrFail(FrameId root) {
  CallFrame& frame = calls_.frames[root];
  if (frame.pod >= application_->retries) {
    ++requests_.failed;
    EndRequest();
    return calls_.frames.Free(root);
  }
  ++requests_.retries;
  ++frame.pod;
  ++frame.generation;  // Whatever waited for the attempt before does so no longer.
  retries_.Add({calls_.now_ns + retry_ns_, root, 0});
}

int64_t EventSimulator::overdue() const {
  int64_t count = 0;
  calls_.frames.ForEach([&](const CallFrame& frame) {
    if (frame.caller != kNoId || frame.given_up) return;
    if (static_cast<double>(calls_.now_ns - frame.since_ns) > qos_ns_[frame.call]) ++count;
  });
  return count;
}

}  // namespace rudderfish
