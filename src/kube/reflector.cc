// SPDX-License-Identifier: Apache-2.0
#include "kube/reflector.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/log.h"

namespace rudderfish::kube {
namespace {

constexpr size_t kDeferredBytesMax = size_t{64} << 20;
constexpr Duration kShortWatch = std::chrono::seconds(1);
constexpr Duration kSettling = std::chrono::seconds(1);     // What was missed has come by then.
constexpr Duration kWatchGrace = std::chrono::seconds(15);  // For the server to end it itself.
constexpr std::string_view kInitialEventsEnd = "k8s.io/initial-events-end";

std::string_view Text(const simdjson::dom::element& object, std::string_view key) {
  std::string_view text;
  return object[key].get(text) == simdjson::SUCCESS ? text : std::string_view();
}

simdjson::dom::element Member(const simdjson::dom::element& object, std::string_view key) {
  simdjson::dom::element member;
  return object[key].get(member) == simdjson::SUCCESS ? member : simdjson::dom::element();
}

bool EndsInitialEvents(const simdjson::dom::element& bookmark) {
  simdjson::dom::element annotations;
  if (bookmark["metadata"]["annotations"].get(annotations) != simdjson::SUCCESS) return false;
  return Text(annotations, kInitialEventsEnd) == "true";
}

// Versions and tokens are opaque; they go into a URL.
std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.' || c == '~';
    escaped += is_plain
                   ? std::string(1, c)
                   : fmt::format("%{:02X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
  }
  return escaped;
}

}  // namespace

Reflector::Reflector(ApiClient* client, ReflectorOptions options, ObjectSink* sink)
    : client_(client),
      options_(std::move(options)),
      sink_(sink),
      back_off_(options_.back_off, client->NewRng()),
      rng_(client->NewRng()) {}

Reflector::~Reflector() {
  client_->Cancel(request_);
  client_->Cancel(list_timer_);
}

void Reflector::Start() {
  CHECK_EQ(request_, 0u);
  request_ = client_->After(Duration::zero(), [this] { GoOn(); });
}

std::optional<Instant> Reflector::FreshAsOf() const {
  // An open watch tells every change, so a server that is heard and tells none has none.
  if (!is_watch_open_ || !client_->last_heard() || client_->clock().Now() < settled_at_)
    return fresh_;
  return std::max(*fresh_, *client_->last_heard());
}

void Reflector::GoOn() {
  request_ = 0;
  if (version_.empty()) {
    List();
  } else {
    Watch();
  }
}

void Reflector::TryAgain() {
  request_ = client_->After(back_off_.Next(), [this] { GoOn(); });
}

std::string Reflector::Query(std::string_view rest) const {
  return fmt::format("{}?{}{}{}", options_.path, options_.selector,
                     options_.selector.empty() ? "" : "&", rest);
}

void Reflector::List() {
  ++counts_.lists;
  continue_.clear();
  list_version_.clear();
  deferred_.clear();
  deferred_bytes_ = 0;
  list_began_ = client_->clock().Now();
  is_listing_ = true;
  sink_->BeginList();
  if (options_.initial == InitialList::kStreamed) {
    ListStream();
  } else {
    ListPage();
  }
}

void Reflector::ListStream() {
  // One exchange for the list and the watch after it, so that nothing can be between the two.
  const std::chrono::seconds timeout = WatchTimeout();
  watch_began_ = heard_ = client_->clock().Now();
  AwaitInitialEvents();
  request_ = client_->Watch(
      Query(fmt::format("watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&"
                        "allowWatchBookmarks=true&timeoutSeconds={}",
                        timeout.count())),
      timeout + kWatchGrace,
      {.on_open = [this] { Heard(); },
       .on_line = [this](std::string_view line) { OnLine(line); },
       .on_end = [this](ApiAnswer answer) { OnEnd(std::move(answer)); }});
}

// A server that knows nothing of initial streams may go on as if it had been asked for a watch.
void Reflector::AwaitInitialEvents() {
  list_timer_ = client_->After(options_.list_timeout, [this] {
    list_timer_ = 0;
    if (!is_listing_) return;
    if (client_->clock().Now() - heard_ < options_.list_timeout) {
      AwaitInitialEvents();
      return;
    }
    GiveUpStream("the initial stream stands still");
  });
}

void Reflector::GiveUpStream(std::string_view why) {
  client_->Cancel(request_);
  client_->Cancel(list_timer_);
  LogInfo("{}: {}; listing in pages", options_.path, why);
  options_.initial = InitialList::kPaged;
  request_ = client_->After(Duration::zero(), [this] { GoOn(); });
}

std::chrono::seconds Reflector::WatchTimeout() {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(options_.watch_timeout *
                                                                        (1 + rng_.Uniform()));
  return std::max(seconds, std::chrono::seconds(1));
}

void Reflector::ListPage() {
  std::string rest = fmt::format("limit={}", options_.page_size);
  if (!continue_.empty()) {
    rest += "&continue=" + Escaped(continue_);
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
    TryAgain();
    return;
  }
  Heard();
  if (Result<void> read = ReadPage(answer.body); !read) {
    NoteMalformed(Fault::kPage, read.error().message);
    NoteFailure(std::move(read).error());
    TryAgain();
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
  simdjson::dom::element list;
  if (const auto error = parser.parse(body).get(list); error != simdjson::SUCCESS)
    return Invalid("{}: a list that is not JSON: {}", options_.path,
                   simdjson::error_message(error));
  simdjson::dom::element metadata;
  if (list["metadata"].get(metadata) != simdjson::SUCCESS)
    return Invalid("{}: a list without metadata", options_.path);
  list_version_ = Text(metadata, "resourceVersion");
  continue_ = Text(metadata, "continue");
  if (list_version_.empty()) return Invalid("{}: a list without a resourceVersion", options_.path);
  simdjson::dom::array items;
  const auto error = list["items"].get(items);
  if (error == simdjson::INCORRECT_TYPE && list["items"].is_null()) return {};
  if (error != simdjson::SUCCESS) return Invalid("{}: a list without items", options_.path);
  for (const simdjson::dom::element item : items) {
    if (const Result<void> told = sink_->Listed(item); !told)
      NoteMalformed(Fault::kObject, told.error().message);
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
  const std::chrono::seconds timeout = WatchTimeout();
  watch_began_ = client_->clock().Now();
  had_events_ = false;
  request_ = client_->Watch(
      Query(fmt::format("watch=1&allowWatchBookmarks=true&resourceVersion={}&timeoutSeconds={}",
                        Escaped(version_), timeout.count())),
      timeout + kWatchGrace,
      {.on_open =
           [this] {
             is_watch_open_ = true;
             settled_at_ = client_->clock().Now() + kSettling;
             NoteSuccess();
             Heard();
           },
       .on_line = [this](std::string_view line) { OnLine(line); },
       .on_end = [this](ApiAnswer answer) { OnEnd(std::move(answer)); }});
}

void Reflector::OnLine(std::string_view line) {
  Heard();
  simdjson::dom::element event, object;
  if (parser_.parse(line.data(), line.size()).get(event) != simdjson::SUCCESS) {
    NoteMalformed(Fault::kLine, "a line that is not JSON");
    return;
  }
  const std::string_view type = Text(event, "type");
  if (event["object"].get(object) != simdjson::SUCCESS || !object.is_object()) {
    NoteMalformed(Fault::kEvent, "an event without an object");
    return;
  }
  if (type == "ERROR") {
    OnError(ReadStatus(object));
  } else if (is_listing_) {
    OnInitial(type, object, line);
  } else {
    OnEvent(type, object);
  }
}

// The list comes as ADDED, and ends with a bookmark. What changes meanwhile may come between, and
// waits for the end of the list, as does everything after it, to keep the order.
void Reflector::OnInitial(std::string_view type, const simdjson::dom::element& object,
                          std::string_view line) {
  if (type == "BOOKMARK") {
    if (!EndsInitialEvents(object)) return;
    if (!NoteVersion(object)) return;
    EndList();
    client_->Cancel(list_timer_);
    is_watch_open_ = true;
    fresh_ = settled_at_ = client_->clock().Now();
    had_events_ = true;
    const std::vector<std::string> deferred = std::exchange(deferred_, {});
    for (const std::string& later : deferred) OnLine(later);
    return;
  }
  if (type == "ADDED" && deferred_.empty()) {
    if (const Result<void> told = sink_->Listed(object); !told)
      NoteMalformed(Fault::kObject, told.error().message);
    return;
  }
  deferred_.emplace_back(line);
  deferred_bytes_ += line.size();
  if (deferred_bytes_ > kDeferredBytesMax) GiveUpStream("the initial stream does not end");
}

void Reflector::OnEvent(std::string_view type, const simdjson::dom::element& object) {
  had_events_ = true;
  back_off_.Reset();
  if (type == "ADDED" || type == "MODIFIED" || type == "DELETED") {
    ++counts_.events;
    Tell(type, object);
  } else if (type != "BOOKMARK") {
    NoteMalformed(Fault::kEvent, fmt::format("an event of type \"{}\"", OneLine(type, 40)));
    return;
  }
  NoteVersion(object);
}

void Reflector::Tell(std::string_view type, const simdjson::dom::element& object) {
  const Result<void> told = type == "DELETED" ? sink_->Deleted(object) : sink_->Changed(object);
  if (!told) NoteMalformed(Fault::kObject, told.error().message);
}

bool Reflector::NoteVersion(const simdjson::dom::element& object) {
  const std::string_view version = Text(Member(object, "metadata"), "resourceVersion");
  if (version.empty()) {
    NoteMalformed(Fault::kVersion, "an object without a resourceVersion");
    return false;
  }
  version_ = version;
  return true;
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
  client_->Cancel(list_timer_);
  const Instant now = client_->clock().Now();
  // Of a watch that broke nobody knows how long it had been broken.
  if (std::exchange(is_watch_open_, false) && now >= settled_at_)
    fresh_ = std::max(*fresh_, answer.ok() ? now : heard_);
  const bool was_listing = std::exchange(is_listing_, false);
  const bool was_short = now - watch_began_ < kShortWatch && !had_events_;
  if (!was_short) back_off_.Reset();
  if (answer.ok() && !was_listing) {
    // In order, or the server goes down. Nothing is lost: the next one goes on from here.
    if (was_short) {
      TryAgain();
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
  TryAgain();
}

void Reflector::Expire() {
  ++counts_.expired;
  must_be_current_ = true;
  version_.clear();
}

void Reflector::Heard() { heard_ = client_->clock().Now(); }

void Reflector::NoteFailure(Error error) {
  ++counts_.failures;
  // Once for each failure of a new kind, not for each attempt.
  if (!last_error_ || last_error_->message != error.message)
    LogWarning("{}: {}", options_.path, error.message);
  last_error_ = std::move(error);
}

void Reflector::NoteSuccess() {
  if (last_error_) LogInfo("{}: in order again", options_.path);
  last_error_.reset();
}

void Reflector::NoteMalformed(Fault fault, std::string_view what) {
  ++counts_.malformed;
  if (!logged_.insert(fault).second) return;
  LogWarning("{}: left out: {} (more of the kind are only counted)", options_.path, OneLine(what));
}

}  // namespace rudderfish::kube
