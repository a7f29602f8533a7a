// SPDX-License-Identifier: Apache-2.0
#include "kube/reflector.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/escape.h"
#include "base/log.h"
#include "base/one_line.h"

namespace rudderfish::kube {
namespace {

constexpr size_t kDeferredBytesMax = size_t{64} << 20;
constexpr Duration kShortWatch = std::chrono::seconds(1);
constexpr Duration kSettling = std::chrono::seconds(1);  // What was missed has come by then.
// What a stream has for its list. It tells on as a watch, which is then ended by us.
constexpr std::chrono::seconds kStreamTimeout(600);
constexpr Duration kOpeningLeast = std::chrono::seconds(5);  // As long as connecting may take.
constexpr Duration kEndingLeast = std::chrono::seconds(2);
constexpr Duration kDoubt = std::chrono::milliseconds(50);
constexpr double kSoonest = 0.8;  // Of the time after which a watch is to end, not all at once.
constexpr Duration kSoundAgain = std::chrono::minutes(1);  // Without a line that cannot be read.

std::string_view MemberText(const simdjson::dom::element& object, std::string_view key) {
  std::string_view text;
  return object[key].get(text) == simdjson::SUCCESS ? text : std::string_view();
}

}  // namespace

Reflector::Reflector(ApiClient* client, ReflectorOptions options, ObjectSink* sink)
    : client_(client),
      options_(std::move(options)),
      sink_(sink),
      back_off_(options_.back_off, client->NewRng()),
      relist_back_off_(options_.relist_back_off, client->NewRng()),
      rng_(client->NewRng()),
      left_out_(options_.path) {}

Reflector::~Reflector() {
  client_->Cancel(request_);
  client_->Cancel(timer_);
}

void Reflector::Start() {
  CHECK_EQ(request_, 0u);
  request_ = client_->After(Duration::zero(), [this] { GoOn(); });
}

std::optional<Instant> Reflector::FreshAsOf() const {
  // An open watch tells every change, in order: up to its last word it has told all.
  if (!is_watch_open_ || client_->clock().Now() < settled_at_) return fresh_;
  return std::max(*fresh_, heard_);
}

void Reflector::GoOn() {
  request_ = 0;
  if (version_.empty()) {
    List();
  } else {
    Watch();
  }
}

void Reflector::TryAgain(const ApiStatus& status) {
  const Duration wait = std::max(back_off_.Next(), status.retry_after.value_or(Duration::zero()));
  request_ = client_->After(wait, [this] { GoOn(); });
}

std::string Reflector::Query(std::string_view rest) const {
  return fmt::format("{}?{}{}{}", options_.path, options_.selector,
                     options_.selector.empty() ? "" : "&", rest);
}

void Reflector::List() {
  ++counts_.lists;
  continue_.clear();
  list_version_.clear();
  listed_ = 0;
  deferred_.clear();
  deferred_bytes_ = 0;
  list_began_ = client_->clock().Now();
  is_listing_ = true;
  left_out_.BeginList();
  sink_->BeginList();
  if (options_.initial == InitialList::kStreamed) {
    ListStream();
  } else {
    ListPage();
  }
}

void Reflector::ListStream() {
  // One exchange for the list and the watch after it, so that nothing can be between the two.
  watch_began_ = heard_ = client_->clock().Now();
  AwaitInitialEvents();
  request_ = client_->Watch(
      Query(fmt::format("watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&"
                        "allowWatchBookmarks=true&timeoutSeconds={}",
                        kStreamTimeout.count())),
      kStreamTimeout,
      {.on_open = [this] { Heard(); },
       .on_line = [this](std::string_view line) { OnLine(line); },
       .on_end = [this](ApiAnswer answer) { OnEnd(std::move(answer)); }});
}

// A server that knows nothing of initial streams may go on as if it had been asked for a watch.
void Reflector::AwaitInitialEvents() {
  timer_ = client_->After(options_.list_timeout, [this] {
    timer_ = 0;
    if (client_->clock().Now() - heard_ < options_.list_timeout) {
      AwaitInitialEvents();
      return;
    }
    GiveUpStream("the initial stream stands still");
  });
}

void Reflector::GiveUpStream(std::string_view why) {
  client_->Cancel(request_);
  client_->Cancel(timer_);
  LogInfo("{}: {}; listing in pages", options_.path, why);
  options_.initial = InitialList::kPaged;
  request_ = client_->After(Duration::zero(), [this] { GoOn(); });
}

std::chrono::seconds Reflector::WatchTimeout() {
  const Duration drawn =
      std::chrono::duration_cast<Duration>(client_->watch_timeout() * rng_.Uniform(kSoonest, 1));
  return std::max(std::chrono::round<std::chrono::seconds>(drawn), std::chrono::seconds(1));
}

void Reflector::EndStreamInTime() {
  timer_ = client_->After(WatchTimeout(), [this] {
    timer_ = 0;
    client_->Cancel(request_);
    CloseWatch(heard_);
    GoOn();
  });
}

void Reflector::ListPage() {
  std::string rest = fmt::format("limit={}", options_.page_size);
  if (!continue_.empty()) {
    rest += "&continue=" + PercentEncoded(continue_);
  } else if (!must_be_current_) {
    rest += "&resourceVersion=0";
  }
  request_ = client_->Send({.path = Query(rest), .deadline = options_.list_timeout},
                           [this](ApiAnswer answer) { OnPage(std::move(answer)); });
}

void Reflector::OnPage(ApiAnswer answer) {
  request_ = 0;
  if (!answer.ok()) {
    if (answer.status.IsExpired()) {
      // The pages took longer than the server remembers, or its memory has gone.
      ++counts_.expired;
      must_be_current_ = true;
    }
    NoteFailure(std::move(answer.outcome).error());
    TryAgain(answer.status);
    return;
  }
  Heard();
  if (const Result<void> read = ReadPage(answer.body); !read) {
    Lose(read.error().message);
    return;
  }
  if (!continue_.empty()) {
    ListPage();
    return;
  }
  version_ = list_version_;
  EndList();
  fresh_ = list_began_;  // It may tell no more than what was so then.
  GoOn();
}

Result<void> Reflector::ReadPage(const std::string& body) {
  simdjson::dom::parser parser;  // Its memory is as large as the page; not kept.
  TRY_ASSIGN(const kube::ListPage page, ReadListPage(&parser, body));
  list_version_ = page.version;
  continue_ = page.next;
  simdjson::dom::array items;
  if (page.items.get(items) != simdjson::SUCCESS) return {};
  for (const simdjson::dom::element item : items) {
    CountListed();
    if (const Result<void> told = sink_->Listed(item); !told)
      NoteMalformed(item, told.error().message);
  }
  return {};
}

void Reflector::EndList() {
  is_listing_ = false;
  sink_->EndList();
  is_synced_ = true;
  must_be_current_ = true;
  NoteSuccess();
  back_off_.Reset();
}

void Reflector::Watch() {
  ++counts_.watches;
  watch_began_ = heard_ = client_->clock().Now();
  had_events_ = is_doubted_ = false;
  AwaitWord(Patience());
  request_ = client_->Watch(
      Query(fmt::format("watch=1&allowWatchBookmarks=true&resourceVersion={}&timeoutSeconds={}",
                        PercentEncoded(version_), WatchTimeout().count())),
      kStreamTimeout,
      {.on_open =
           [this] {
             is_watch_open_ = true;
             settled_at_ =
                 client_->clock().Now() + std::min(kSettling, client_->watch_timeout() / 2);
             NoteSuccess();
             Heard();
           },
       .on_line = [this](std::string_view line) { OnLine(line); },
       .on_end = [this](ApiAnswer answer) { OnEnd(std::move(answer)); }});
}

// For the server to agree to a watch; and between two words of one that it has agreed to.
Duration Reflector::Patience() const {
  const Duration timeout = client_->watch_timeout(), grace = timeout / 2;
  return is_watch_open_ ? timeout + std::max(grace, kEndingLeast) : std::max(grace, kOpeningLeast);
}

void Reflector::AwaitWord(Duration wait) {
  timer_ = client_->After(wait, [this] {
    timer_ = 0;
    const Duration left = heard_ + Patience() - client_->clock().Now();
    if (left > Duration::zero()) {
      is_doubted_ = false;
      AwaitWord(left);
    } else if (!std::exchange(is_doubted_, true)) {
      AwaitWord(kDoubt);  // What came while we did something else is read first.
    } else {
      FallSilent();
    }
  });
}

void Reflector::FallSilent() {
  client_->Cancel(request_);
  client_->NoteSilence();
  ApiAnswer answer;
  answer.outcome =
      tl::unexpected(Error{ErrorCode::kDeadlineExceeded,
                           fmt::format("{}{}: {}", client_->access().server, options_.path,
                                       is_watch_open_ ? "the watch is silent; starting it again"
                                                      : "no answer to a watch in time")});
  OnEnd(std::move(answer));
}

void Reflector::OnLine(std::string_view line) {
  const Result<WatchEvent> event = ReadWatchEvent(&parser_, line);
  if (!event) {
    Lose(event.error().message);
    return;
  }
  if (event->kind == WatchEventKind::kError) {
    Heard();
    OnError(ReadStatus(event->object));
    return;
  }
  const std::string_view kind = MemberText(event->object, "kind");
  if (!options_.kind.empty() && !kind.empty() && kind != options_.kind) {
    Lose(fmt::format("an event of a {}", OneLine(kind, 60)));
    return;
  }
  Heard();
  if (is_listing_) {
    OnInitial(*event, line);
  } else {
    OnEvent(*event);
  }
}

// The list comes as kAdded, and ends with its bookmark. What changes meanwhile may come between,
// and waits for the end of the list, as does everything after it, to keep the order.
void Reflector::OnInitial(const WatchEvent& event, std::string_view line) {
  if (event.kind == WatchEventKind::kInitialEnd) {
    version_ = event.version;
    EndList();
    client_->Cancel(timer_);
    EndStreamInTime();
    is_watch_open_ = true;
    fresh_ = settled_at_ = client_->clock().Now();
    had_events_ = true;
    const std::vector<std::string> deferred = std::exchange(deferred_, {});
    for (const std::string& later : deferred) {
      if (is_watch_open_) OnLine(later);  // Unless one of them has ended it.
    }
    return;
  }
  if (event.kind == WatchEventKind::kBookmark) return;
  if (event.kind == WatchEventKind::kAdded && deferred_.empty()) {
    CountListed();
    const Result<void> told = sink_->Listed(event.object);
    if (!told) NoteMalformed(event.object, told.error().message);
    return;
  }
  deferred_.emplace_back(line);
  deferred_bytes_ += line.size();
  if (deferred_bytes_ > kDeferredBytesMax) GiveUpStream("the initial stream does not end");
}

void Reflector::OnEvent(const WatchEvent& event) {
  had_events_ = true;
  back_off_.Reset();
  version_ = event.version;
  if (event.kind == WatchEventKind::kBookmark || event.kind == WatchEventKind::kInitialEnd) return;
  ++counts_.events;
  const Result<void> told = event.kind == WatchEventKind::kDeleted ? sink_->Deleted(event.object)
                                                                   : sink_->Changed(event.object);
  if (told) {
    left_out_.NoteSound(event.object);
    return;
  }
  // What the last list was refused too is left out until it differs. Anything else may have been
  // damaged on its way, or be about an object that cannot be named.
  if (left_out_.IsExpected(event.object)) {
    NoteMalformed(event.object, told.error().message);
  } else {
    ++counts_.malformed;
    Lose(told.error().message);
  }
}

// An ERROR event ends the watch.
void Reflector::OnError(const ApiStatus& status) {
  client_->Cancel(request_);
  ApiAnswer answer;
  answer.status = status;
  answer.outcome =
      tl::unexpected(ToError(status, Method::kGet, fmt::format("{}?watch=1", options_.path)));
  OnEnd(std::move(answer));
}

void Reflector::OnEnd(ApiAnswer answer) {
  request_ = 0;
  client_->Cancel(timer_);
  const Instant now = client_->clock().Now();
  // A watch that broke may have been broken since it was last heard.
  CloseWatch(answer.ok() ? now : heard_);
  const bool was_listing = std::exchange(is_listing_, false);
  const bool was_short = now - watch_began_ < kShortWatch && !had_events_;
  if (!was_short) back_off_.Reset();
  if (answer.ok() && !was_listing) {
    // In order, or the server goes down. Nothing is lost: the next one goes on from here.
    if (was_short) {
      TryAgain({});
    } else {
      GoOn();
    }
    return;
  }
  const int code = answer.status.code;
  if (was_listing && (code == 400 || code == 405 || code == 422 || code == 501)) {
    GiveUpStream("the server streams no lists");
    return;
  }
  if (was_listing && answer.ok()) {
    answer.outcome = tl::unexpected(
        Error{ErrorCode::kUnavailable, "the server ended the initial stream before its end"});
  }
  if (answer.status.IsExpired() || answer.status.is_version_too_large) Expire();
  NoteFailure(std::move(answer.outcome).error());
  TryAgain(answer.status);
}

// The server is there and has said so: no need to wait as for one that is not.
void Reflector::Expire() {
  ++counts_.expired;
  back_off_.Reset();
  must_be_current_ = true;
  version_.clear();
}

// What it was is unknown: only a new list tells. A server that goes on like this is not asked for
// one list after the other.
void Reflector::Lose(const std::string& what) {
  ++counts_.unreadable;
  client_->Cancel(request_);
  client_->Cancel(timer_);
  CloseWatch(heard_);
  is_listing_ = false;
  must_be_current_ = true;
  version_.clear();
  NoteFailure({ErrorCode::kCorruption,
               fmt::format("{}: not understood: {}", options_.path, OneLine(what))});
  const Instant now = client_->clock().Now();
  if (now - lost_at_ > kSoundAgain) relist_back_off_.Reset();
  lost_at_ = now;
  request_ = client_->After(relist_back_off_.Next(), [this] { GoOn(); });
}

// `known`: when what the watch had told was certainly all.
void Reflector::CloseWatch(Instant known) {
  if (std::exchange(is_watch_open_, false) && client_->clock().Now() >= settled_at_)
    fresh_ = std::max(*fresh_, known);
}

void Reflector::Heard() { heard_ = client_->clock().Now(); }

void Reflector::NoteFailure(Error error) {
  ++counts_.failures;
  // Once for each failure of a new kind, not for each attempt. Before the first list, the caller
  // that waits for it says why it does not come.
  const bool is_news = !last_error_ || last_error_->message != error.message;
  if (is_synced_ && is_news && options_.log == ReflectorLog::kOwn) {
    LogWarning("{}", error.message);
  }
  last_error_ = std::move(error);
}

void Reflector::NoteSuccess() {
  if (last_error_ && is_synced_ && options_.log == ReflectorLog::kOwn)
    LogInfo("{}: in order again", options_.path);
  last_error_.reset();
}

void Reflector::NoteMalformed(const simdjson::dom::element& object, const std::string& what) {
  ++counts_.malformed;
  left_out_.Note(object, what);
  if (options_.log == ReflectorLog::kOwn) left_out_.Log(what);
}

}  // namespace rudderfish::kube
