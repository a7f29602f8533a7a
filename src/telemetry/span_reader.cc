// SPDX-License-Identifier: Apache-2.0
#include "telemetry/span_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/one_line.h"

namespace rudderfish {
namespace {

using Json = nlohmann::json;

constexpr int kDeepestJson =
    100;  // What is nested deeper is no part of a span, and is passed over.
constexpr int64_t kNsPerUs = 1000;
constexpr size_t kTraceDigits = 32, kSpanDigits = 16;
constexpr size_t kLongestWord = 1000;

enum class Ids { kExact, kShort };  // Jaeger leaves out zeros in front.

// The member, or nullptr; also of what is no object.
const Json* Member(const Json& value, const char* key) {
  if (!value.is_object()) return nullptr;
  const auto at = value.find(key);
  return at == value.end() ? nullptr : &*at;
}

std::string_view TextOf(const Json* value) {
  if (value == nullptr || !value->is_string()) return {};
  return std::string_view(value->get_ref<const std::string&>()).substr(0, kLongestWord);
}

// Integers stand as numbers or as text: JSON's own end at 2^53.
std::optional<int64_t> IntegerOf(const Json* value) {
  if (value == nullptr) return std::nullopt;
  if (value->is_number_unsigned()) {
    const auto number = value->get<uint64_t>();
    if (number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
    return static_cast<int64_t>(number);
  }
  if (value->is_number_integer()) return value->get<int64_t>();
  if (value->is_number_float()) {
    const double number = value->get<double>();
    if (!(std::abs(number) < 9e18)) return std::nullopt;
    return static_cast<int64_t>(number);
  }
  const std::string_view text = TextOf(value);
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<uint64_t> HexOf(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<uint64_t> SpanIdOf(std::string_view text, Ids ids) {
  if (text.size() > kSpanDigits || (ids == Ids::kExact && text.size() < kSpanDigits))
    return std::nullopt;
  return HexOf(text);
}

std::optional<TraceId> TraceIdOf(std::string_view text, Ids ids) {
  if (text.size() > kTraceDigits || (ids == Ids::kExact && text.size() < kTraceDigits))
    return std::nullopt;
  const size_t low_digits = std::min(text.size(), kSpanDigits);
  const auto low = HexOf(text.substr(text.size() - low_digits));
  const auto high =
      text.size() > low_digits ? HexOf(text.substr(0, text.size() - low_digits)) : uint64_t{0};
  if (!low || !high) return std::nullopt;
  return TraceId{*high, *low};
}

// What attributes of a span or of its resource say, by the names of the semantic conventions and of
// what was there before them.
class Attributes {
 public:
  explicit Attributes(SpanSet* set) : set_(set) {}

  // [{"key": ..., "value": ...}], where a value is itself (Jaeger) or {"stringValue": ...} (OTLP).
  void Read(const Json* list) {
    if (list == nullptr || !list->is_array()) return;
    for (const Json& one : *list) {
      const std::string_view key = TextOf(Member(one, "key"));
      const Json* value = Member(one, "value");
      if (key.empty() || value == nullptr) continue;
      if (value->is_object()) {
        if (value->empty()) continue;
        value = &*value->begin();
      }
      Take(key, *value);
    }
  }

  const SpanSource& source() const { return source_; }

  void ApplyTo(Span* span) const {
    span->request_bytes = request_bytes_;
    if (!peer_.empty()) span->peer = set_->WordOf(peer_);
    if (role_) span->role = *role_;
  }

  static std::optional<SpanRole> RoleOf(std::string_view word) {
    if (word == "server" || word == "SPAN_KIND_SERVER") return SpanRole::kServer;
    if (word == "client" || word == "SPAN_KIND_CLIENT") return SpanRole::kClient;
    if (word == "producer" || word == "SPAN_KIND_PRODUCER") return SpanRole::kProducer;
    if (word == "consumer" || word == "SPAN_KIND_CONSUMER") return SpanRole::kConsumer;
    return std::nullopt;
  }

 private:
  void Take(std::string_view key, const Json& value) {
    const std::string_view text = TextOf(&value);
    if (key == "service.name") source_.service = text;
    if (key == "k8s.namespace.name") source_.object_namespace = text;
    if (key == "k8s.pod.name") source_.pod = text;
    if (key == "k8s.node.name") source_.node = text, is_node_sure_ = true;
    if ((key == "host.name" || key == "hostname") && !is_node_sure_) source_.node = text;
    if (key == "span.kind") role_ = RoleOf(text);
    TakePeer(key, text);
    TakeBytes(key, value);
  }

  // The surest name counts.
  void TakePeer(std::string_view key, std::string_view text) {
    static constexpr std::string_view kKeys[] = {"peer.service", "server.address", "net.peer.name",
                                                 "peer.hostname", "peer.address"};
    const size_t rank = std::find(std::begin(kKeys), std::end(kKeys), key) - std::begin(kKeys);
    if (rank >= peer_rank_ || text.empty()) return;
    peer_rank_ = rank;
    peer_ = text;
  }

  void TakeBytes(std::string_view key, const Json& value) {
    static constexpr std::string_view kKeys[] = {"http.request.body.size",
                                                 "http.request.size",
                                                 "http.request_content_length",
                                                 "messaging.message.body.size",
                                                 "rpc.request.size",
                                                 "request_size",
                                                 "http.request.header.content-length"};
    if (std::find(std::begin(kKeys), std::end(kKeys), key) == std::end(kKeys)) return;
    constexpr int64_t kMost = int64_t{1} << 40;
    const auto bytes = IntegerOf(&value);
    if (bytes && *bytes >= 0 && *bytes <= kMost) request_bytes_ = std::max(request_bytes_, *bytes);
  }

  SpanSet* set_;
  SpanSource source_;
  bool is_node_sure_ = false;
  std::string_view peer_;
  size_t peer_rank_ = 5;
  int64_t request_bytes_ = -1;
  std::optional<SpanRole> role_;
};

// ---- Jaeger ----

// The span that this one was called from, or that it follows.
bool ReadReferences(const Json& json, Span* span) {
  span->parent_id = 0;
  const Json* list = Member(json, "references");
  if (list == nullptr || !list->is_array() || list->empty()) {
    const std::string_view text = TextOf(Member(json, "parentSpanID"));
    if (text.empty()) return true;
    const auto id = SpanIdOf(text, Ids::kShort);
    span->parent_id = id.value_or(0);
    return id.has_value();
  }
  for (const Json& one : *list) {
    const auto trace = TraceIdOf(TextOf(Member(one, "traceID")), Ids::kShort);
    const auto id = SpanIdOf(TextOf(Member(one, "spanID")), Ids::kShort);
    if (!trace || !id) return false;
    if (*trace != span->trace) continue;  // A link to another trace.
    const bool follows = TextOf(Member(one, "refType")) == "FOLLOWS_FROM";
    if (span->parent_id != 0 && follows) continue;
    span->parent_id = *id;
    span->follows = follows;
    if (!follows) break;
  }
  return true;
}

void ReadJaegerSpan(const Json& json, const std::map<std::string, int32_t>& processes,
                    SpanSet* set) {
  Span span;
  const auto trace = TraceIdOf(TextOf(Member(json, "traceID")), Ids::kShort);
  const auto id = SpanIdOf(TextOf(Member(json, "spanID")), Ids::kShort);
  if (!trace || !id) return set->LeaveOut("an id of the wrong length, or no hexadecimal number");
  span.trace = *trace;
  span.id = *id;
  if (!ReadReferences(json, &span))
    return set->LeaveOut("an id of the wrong length, or no hexadecimal number");
  const auto start = IntegerOf(Member(json, "startTime"));
  const auto duration = IntegerOf(Member(json, "duration"));
  if (!start || !duration) return set->LeaveOut("it has no time");
  constexpr int64_t kMostUs = std::numeric_limits<int64_t>::max() / kNsPerUs;
  if (std::abs(*start / 2) > kMostUs / 2 || std::abs(*duration / 2) > kMostUs / 2)
    return set->LeaveOut("its time is out of range");
  span.start_ns = *start * kNsPerUs;
  span.duration_ns = *duration * kNsPerUs;
  const auto process = processes.find(std::string(TextOf(Member(json, "processID"))));
  if (process == processes.end()) return set->LeaveOut("its service is not given");
  span.source = process->second;
  span.name = set->WordOf(TextOf(Member(json, "operationName")));
  Attributes attributes(set);
  attributes.Read(Member(json, "tags"));
  attributes.ApplyTo(&span);
  set->Add(span);
}

int32_t ReadProcess(const Json& json, SpanSet* set) {
  Attributes attributes(set);
  attributes.Read(Member(json, "tags"));
  SpanSource source = attributes.source();
  const std::string_view service = TextOf(Member(json, "serviceName"));
  if (!service.empty()) source.service = service;
  return set->SourceOf(source);
}

void ReadJaegerTrace(const Json& json, SpanSet* set) {
  const Json* spans = Member(json, "spans");
  if (spans == nullptr || !spans->is_array()) return set->LeaveOut("a trace without spans");
  std::map<std::string, int32_t> processes;
  if (const Json* list = Member(json, "processes"); list != nullptr && list->is_object()) {
    for (const auto& [name, process] : list->items()) processes[name] = ReadProcess(process, set);
  }
  for (const Json& span : *spans) {
    const Json* own = Member(span, "process");
    if (own != nullptr && own->is_object()) {
      ReadJaegerSpan(
          span, {{std::string(TextOf(Member(span, "processID"))), ReadProcess(*own, set)}}, set);
    } else {
      ReadJaegerSpan(span, processes, set);
    }
  }
}

// ---- OTLP ----

SpanRole OtlpRole(const Json* kind) {
  static constexpr SpanRole kRoles[] = {SpanRole::kInternal, SpanRole::kInternal,
                                        SpanRole::kServer,   SpanRole::kClient,
                                        SpanRole::kProducer, SpanRole::kConsumer};
  if (kind != nullptr && kind->is_number_integer()) {
    const int64_t number = IntegerOf(kind).value_or(0);
    return number >= 0 && number < 6 ? kRoles[number] : SpanRole::kInternal;
  }
  return Attributes::RoleOf(TextOf(kind)).value_or(SpanRole::kInternal);
}

void ReadOtlpSpan(const Json& json, int32_t source, SpanSet* set) {
  Span span{.source = source, .role = OtlpRole(Member(json, "kind"))};
  const auto trace = TraceIdOf(TextOf(Member(json, "traceId")), Ids::kExact);
  const auto id = SpanIdOf(TextOf(Member(json, "spanId")), Ids::kExact);
  const std::string_view parent = TextOf(Member(json, "parentSpanId"));
  const auto parent_id = parent.empty() ? uint64_t{0} : SpanIdOf(parent, Ids::kExact);
  if (!trace || !id || !parent_id)
    return set->LeaveOut("an id of the wrong length, or no hexadecimal number");
  span.trace = *trace;
  span.id = *id;
  span.parent_id = *parent_id;
  const auto start = IntegerOf(Member(json, "startTimeUnixNano"));
  const auto end = IntegerOf(Member(json, "endTimeUnixNano"));
  if (!start || !end) return set->LeaveOut("it has no time");
  if (*start < 0 || *end < 0) return set->LeaveOut("its time is out of range");
  span.start_ns = *start;
  span.duration_ns = *end - *start;
  span.name = set->WordOf(TextOf(Member(json, "name")));
  Attributes attributes(set);
  attributes.Read(Member(json, "attributes"));
  attributes.ApplyTo(&span);
  set->Add(span);
}

void ReadOtlpResource(const Json& json, SpanSet* set) {
  Attributes attributes(set);
  if (const Json* resource = Member(json, "resource"))
    attributes.Read(Member(*resource, "attributes"));
  const int32_t source = set->SourceOf(attributes.source());
  for (const char* key : {"scopeSpans", "instrumentationLibrarySpans"}) {
    const Json* scopes = Member(json, key);
    if (scopes == nullptr || !scopes->is_array()) continue;
    for (const Json& scope : *scopes) {
      const Json* spans = Member(scope, "spans");
      if (spans == nullptr || !spans->is_array()) continue;
      for (const Json& span : *spans) ReadOtlpSpan(span, source, set);
    }
  }
}

// ---- Both ----

// Reads one document, handing on each trace and each resource as it is complete.
class Document {
 public:
  explicit Document(SpanSet* set) : set_(set) {}

  Result<void> Read(std::string_view text, std::string_view source_name, size_t first_line) {
    Json rest;
    try {
      rest = Json::parse(text.begin(), text.end(),
                         [this](int depth, Json::parse_event_t event, Json& value) {
                           return Keeps(depth, event, value);
                         });
    } catch (const Json::exception& error) {
      return Invalid("{}: {}", Place(text, source_name, first_line, error), Words(error));
    }
    const Json* errors = Member(rest, "errors");
    if (errors != nullptr && errors->is_array() && !errors->empty() && !found_) {
      return Invalid("{}: Jaeger answered with an error: {}", source_name,
                     OneLine(TextOf(Member(errors->front(), "msg"))));
    }
    const Json* result = Member(rest, "result");
    for (const Json* one : {Member(rest, "data"), Member(rest, "resourceSpans"),
                            result == nullptr ? nullptr : Member(*result, "resourceSpans")}) {
      if (one != nullptr && (one->is_array() || one->is_null())) return {};
    }
    return Invalid(
        "{}:{}:1: holds no traces: expected Jaeger's {{\"data\": [...]}} or OTLP's "
        "{{\"resourceSpans\": [...]}}",
        source_name, first_line);
  }

 private:
  // Elements of the lists stand at depth 2, or at 3 below "result"; they are read and not kept.
  bool Keeps(int depth, Json::parse_event_t event, const Json& value) {
    using Event = Json::parse_event_t;
    if (event == Event::object_start || event == Event::array_start) return depth < kDeepestJson;
    if (event == Event::key) {
      if (depth == 1) top_ = value.get<std::string>();
      return true;
    }
    if (event != Event::object_end || depth < 2) return true;
    if (depth == 2 && top_ == "data") {
      found_ = true;
      ReadJaegerTrace(value, set_);
      return false;
    }
    if ((depth == 2 && top_ == "resourceSpans") ||
        (depth == 3 && top_ == "result" && Member(value, "scopeSpans") != nullptr)) {
      found_ = true;
      ReadOtlpResource(value, set_);
      return false;
    }
    return true;
  }

  static std::string Place(std::string_view text, std::string_view source_name, size_t first_line,
                           const Json::exception& error) {
    const auto* parse_error = dynamic_cast<const Json::parse_error*>(&error);
    const size_t byte = parse_error == nullptr ? 0 : parse_error->byte;
    const std::string_view before = text.substr(0, byte == 0 ? 0 : byte - 1);
    const auto line = std::count(before.begin(), before.end(), '\n');
    return fmt::format("{}:{}:{}", source_name, first_line + static_cast<size_t>(line),
                       1 + before.size() - (before.rfind('\n') + 1));
  }

  // "[json.exception.parse_error.101] parse error at line 1, column 3: WHAT"
  static std::string Words(const Json::exception& error) {
    const std::string_view text = error.what();
    const size_t column = text.find(", column ");
    const size_t what = column == std::string_view::npos ? column : text.find(": ", column);
    return OneLine(what == std::string_view::npos ? text : text.substr(what + 2));
  }

  SpanSet* set_;
  std::string top_;  // The member of the whole that is being read.
  bool found_ = false;
};

bool IsBlank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

// Whether the first line is a whole object and more follows.
bool IsOfLines(std::string_view text) {
  const size_t end = text.find('\n');
  if (end == std::string_view::npos || IsBlank(text.substr(end))) return false;
  std::string_view line = text.substr(0, end);
  while (!line.empty() && IsBlank(line.substr(line.size() - 1))) line.remove_suffix(1);
  return line.starts_with('{') && line.ends_with('}');
}

Result<void> ReadLines(std::string_view text, std::string_view source_name, SpanSet* set) {
  std::optional<Error> first_error;
  bool is_any_right = false;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (IsBlank(line)) continue;
    Result<void> read = Document(set).Read(line, source_name, number);
    is_any_right = is_any_right || read.has_value();
    if (read.has_value()) continue;
    if (!first_error) first_error = read.error();
    set->LeaveOut("a line that holds no traces");
  }
  if (!is_any_right && first_error) return tl::unexpected(*first_error);
  return {};
}

}  // namespace

Result<void> ReadSpans(std::string_view text, std::string_view source_name, SpanSet* set) {
  if (IsBlank(text)) return Invalid("{}: is empty; expected traces as JSON", source_name);
  if (IsOfLines(text)) return ReadLines(text, source_name, set);
  return Document(set).Read(text, source_name, 1);
}

}  // namespace rudderfish
