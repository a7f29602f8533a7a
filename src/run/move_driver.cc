// SPDX-License-Identifier: Apache-2.0
#include "run/move_driver.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace rudderfish {
namespace {

constexpr Duration kBetweenMoveSteps = std::chrono::milliseconds(250);
constexpr Duration kBetweenLastSteps = std::chrono::milliseconds(20);
constexpr Duration kBetweenLooksForLeft = std::chrono::seconds(10);
constexpr Duration kTargetCheckLimit = std::chrono::seconds(10);
constexpr Duration kTargetsKept = std::chrono::seconds(60);  // With nothing to move.

}  // namespace

MoveDriver::MoveDriver(std::unique_ptr<kube::ApiClient> client, const Options& options)
    : client_(std::move(client)), clock_(&client_->clock()), options_(options) {}

MoveDriver::~MoveDriver() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void MoveDriver::Start() {
  const std::lock_guard lock(mutex_);
  if (!thread_.joinable() && !is_finishing_) thread_ = std::thread([this] { Work(); });
}

void MoveDriver::Say(Word word) {
  if (word == Word::kAct) Start();
  const std::lock_guard lock(mutex_);
  if (is_finishing_) return;
  said_at_ = clock_->Now();
  if (word == word_) return;
  word_ = word;
  changed_.notify_all();
}

void MoveDriver::Configure(const Options& options) {
  const std::lock_guard lock(mutex_);
  options_ = options;
}

uint64_t MoveDriver::Begin(Order order) {
  const std::lock_guard lock(mutex_);
  const uint64_t number = ++last_order_;
  if (!thread_.joinable() || is_finishing_) {
    ends_[number] = {.why = "moves are held back"};
    return number;
  }
  waiting_.emplace(number, std::move(order));
  changed_.notify_all();
  return number;
}

std::optional<MoveDriver::End> MoveDriver::Take(uint64_t order) {
  const std::lock_guard lock(mutex_);
  const auto found = ends_.find(order);
  if (found == ends_.end()) return std::nullopt;
  End end = std::move(found->second);
  ends_.erase(found);
  return end;
}

void MoveDriver::Forget(uint64_t order) {
  const std::lock_guard lock(mutex_);
  waiting_.erase(order);
  if (ends_.erase(order) == 0) forgotten_.push_back(order);
}

bool MoveDriver::Cancel(uint64_t order) {
  const std::lock_guard lock(mutex_);
  return waiting_.erase(order) > 0;
}

std::vector<MoveDriver::Standing> MoveDriver::Standings() const {
  const std::lock_guard lock(mutex_);
  return standings_;
}

bool MoveDriver::is_idle() const {
  const std::lock_guard lock(mutex_);
  return standings_.empty() && waiting_.empty();
}

void MoveDriver::Finish(Duration limit) {
  std::unique_lock lock(mutex_);
  if (word_ == Word::kAct) word_ = Word::kUndo;
  said_at_ = clock_->Now();
  is_finishing_ = true;
  changed_.notify_all();
  changed_.wait_for(lock, limit, [this] {
    return !thread_.joinable() || word_ == Word::kNothing ||
           (standings_.empty() && waiting_.empty());
  });
}

void MoveDriver::Work() {
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      if (is_ending_) return;
    }
    if (const std::optional<Word> word = Hear()) {
      if (word == Word::kNothing) LetGo();
      if (word != Word::kNothing && !IsFinishing()) TakeOverLeft();
      StepAll(*word);
      BeginOrders(*word);
    }
    FollowTargets();
    Publish();
    Wait();
  }
}

// An old word says nothing of who leads now.
std::optional<MoveDriver::Word> MoveDriver::Hear() {
  const std::lock_guard lock(mutex_);
  if (clock_->Now() - said_at_ > kWordLimit) return std::nullopt;
  return word_;
}

bool MoveDriver::IsFinishing() const {
  const std::lock_guard lock(mutex_);
  return is_finishing_;
}

void MoveDriver::LetGo() {
  for (const Under& move : moves_)
    Conclude(move, {.id = move.mover->move().id,
                    .why = "another instance leads, and continues the move"});
  moves_.clear();
}

// Until the next step, or something to begin, or the end.
void MoveDriver::Wait() {
  std::unique_lock lock(mutex_);
  const Word word = word_;
  const Duration wait = is_finishing_    ? kBetweenLastSteps
                        : moves_.empty() ? Duration(std::chrono::seconds(1))
                                         : kBetweenMoveSteps;
  changed_.wait_for(lock, wait, [&] {
    const bool is_fresh = clock_->Now() - said_at_ <= kWordLimit;
    return is_ending_ || word_ != word || (is_fresh && moves_.empty() && !waiting_.empty());
  });
}

void MoveDriver::BeginOrders(Word word) {
  while (true) {
    std::pair<uint64_t, Order> next;
    Options options;
    {
      const std::lock_guard lock(mutex_);
      if (waiting_.empty()) return;
      if (word == Word::kAct && static_cast<int>(moves_.size()) >= options_.at_once) return;
      next = *waiting_.begin();
      waiting_.erase(waiting_.begin());
      options = options_;
    }
    const auto& [number, order] = next;
    Under move{.order = number,
               .mover = std::make_unique<PodMover>(client_.get(), options.move),
               .node = {},
               .why = {}};
    if (word != Word::kAct) {
      Conclude(move, {.why = "moves are held back"});
      continue;
    }
    if (const Result<void> begun = BeginOne(order, options, move.mover.get()); !begun) {
      Conclude(move, {.why = begun.error().message});
      continue;
    }
    move.node = move.mover->pod().node;
    LogInfo("move {}: pod {} from {} to {}", move.mover->move().id, order.pod.Key(), move.node,
            order.target);
    moves_.push_back(std::move(move));
  }
}

// The cluster is watched for as long as moves follow one another.
void MoveDriver::FollowTargets() {
  const Instant now = clock_->Now();
  if (!moves_.empty()) busy_at_ = now;
  if (targets_ == nullptr) return;
  targets_->Poll();
  if (now - busy_at_ > kTargetsKept) targets_.reset();
}

// Not against what was seen when it was decided: the pod and its target are read from the API
// server, and room and rules are those that the watches told last.
Result<void> MoveDriver::BeginOne(const Order& order, const Options& options, PodMover* mover) {
  const PodIdentity& pod = order.pod;
  TRY(mover->Plan(pod.object_namespace, pod.name, order.target, options.limit));
  if (mover->pod().id.uid != pod.uid)
    return Fail(ErrorCode::kConflict, "pod {} was replaced", pod.Key());
  if (targets_ == nullptr) targets_ = std::make_unique<TargetCheck>(client_.get());
  busy_at_ = clock_->Now();
  TRY_ASSIGN(const std::string refusal,
             targets_->WhyRefuses(mover->pod(), order.target, kTargetCheckLimit));
  if (!refusal.empty()) {
    return Fail(ErrorCode::kFailedPrecondition, "pod {} cannot be moved to {}: {}", pod.Key(),
                order.target, refusal);
  }
  if (Hear() != Word::kAct) return Fail(ErrorCode::kCancelled, "moves are held back");
  return mover->Begin(kMoveByRun);
}

void MoveDriver::TakeOverLeft() {
  const Instant now = clock_->Now();
  if (looked_for_left_ != Instant() && now - looked_for_left_ < kBetweenLooksForLeft) return;
  looked_for_left_ = now;
  kube::MoveApi api(client_.get());
  const auto tell = [this](const Error& error) {
    if (std::exchange(told_, error.message) != error.message)
      LogWarning("moves that were left: {}", error.message);
  };
  const Result<std::vector<kube::MoveApi::Listed>> listed = api.List();
  if (!listed) return tell(listed.error());
  std::erase_if(over_, [&](const std::string& id) {
    return std::none_of(listed->begin(), listed->end(),
                        [&](const auto& one) { return one.move && one.move->id == id; });
  });
  for (const kube::MoveApi::Listed& one : *listed) {
    if (!one.move || std::find(over_.begin(), over_.end(), one.move->id) != over_.end()) continue;
    const bool is_ours = std::any_of(moves_.begin(), moves_.end(), [&](const Under& move) {
      return move.mover->move().id == one.move->id;
    });
    // One that a person drives is theirs until it should have ended.
    const bool is_left = one.move->by == kMoveByRun || UnixNow() > one.move->deadline;
    if (is_ours || !is_left) continue;
    MoveOptions options;
    {
      const std::lock_guard lock(mutex_);
      options = options_.move;
    }
    Under move{
        .mover = std::make_unique<PodMover>(client_.get(), options), .node = one.node, .why = {}};
    move.mover->TakeOver(one);
    LogInfo("move {}: pod {} to {}, which another process began; continuing at step {}",
            one.move->id, one.pod.Key(), one.move->target, StepName(one.move->step));
    moves_.push_back(std::move(move));
  }
  const Result<std::vector<kube::MoveApi::LeftPin>> left = api.LeftPins();
  if (!left) return tell(left.error());
  for (const kube::MoveApi::LeftPin& pin : *left) {
    if (const Result<void> removed = api.Remove(pin); !removed) return tell(removed.error());
    LogInfo("move {}: its pod has ended; removed what was left of it", pin.move_id);
  }
  told_.clear();
}

// One step of each. What cannot be written now is tried again.
void MoveDriver::StepAll(Word word) {
  std::erase_if(moves_, [&](Under& move) {
    if (word == Word::kUndo && !std::exchange(move.is_told_to_undo, true))
      move.mover->Abort("moves are held back");
    if (Hear().value_or(Word::kNothing) == Word::kNothing)
      return false;  // The last step took long.
    const Result<MoveAction> action = move.mover->Step([&] { return Hear() == word; });
    if (!action) {
      move.why = action.error().message;
      return false;
    }
    move.why = fmt::format("{}: {}", StepName(action->step), action->why);
    if (!action->outcome) return false;
    const PodMove& made = move.mover->move();
    over_.push_back(made.id);
    const bool is_moved = action->outcome == MoveOutcome::kMoved;
    Conclude(move, {.is_moved = is_moved,
                    .id = made.id,
                    .why = action->why,
                    .replacement = move.mover->replacement(),
                    .seconds = static_cast<double>(UnixNow() - made.begun) / 1000});
    if (is_moved) {
      LogInfo("move {}: pod {} moved to {}: {} serves", made.id, move.mover->pod().id.Key(),
              made.target, move.mover->replacement());
    } else {
      LogWarning("move {}: pod {} was not moved: {}", made.id, move.mover->pod().id.Key(),
                 action->why);
    }
    return true;
  });
}

void MoveDriver::Conclude(const Under& move, End end) {
  if (move.order == 0) return;
  const std::lock_guard lock(mutex_);
  if (std::erase(forgotten_, move.order) == 0) ends_[move.order] = std::move(end);
}

void MoveDriver::Publish() {
  std::vector<Standing> standings;
  for (const Under& move : moves_) {
    standings.push_back({move.mover->move(), move.mover->pod().id.Key(), move.node, move.why});
  }
  const std::lock_guard lock(mutex_);
  standings_ = std::move(standings);
  changed_.notify_all();
}

}  // namespace rudderfish
