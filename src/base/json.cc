// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <unordered_set>

#include "base/suggest.h"

namespace rudderfish {
namespace {

constexpr size_t kDeepestJson = 256;

// Walks the text and counts for us how far the parser has read.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, const char** furthest) : at_(at), furthest_(furthest) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    *furthest_ = std::max(*furthest_, ++at_);
    return *this;
  }
  CountingIterator operator++(int) {
    const CountingIterator old = *this;
    ++*this;
    return old;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  const char** furthest_;
};

// "nodes.json:3:17", from 1, in bytes.
std::string Place(std::string_view text, size_t offset, std::string_view source_name) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0.
  return fmt::format("{}:{}:{}", source_name, line, 1 + before.size() - line_start);
}

// Builds the value while it refuses what ParseJson refuses. The library's own builder knows neither
// limit.
template <class AnyJson>
class Builder {
 public:
  using number_integer_t = typename AnyJson::number_integer_t;
  using number_unsigned_t = typename AnyJson::number_unsigned_t;
  using number_float_t = typename AnyJson::number_float_t;
  using string_t = typename AnyJson::string_t;
  using binary_t = typename AnyJson::binary_t;

  // NOLINTBEGIN(readability-identifier-naming): the names are those of the library's SAX interface.
  bool null() { return Put(nullptr) != nullptr; }
  bool boolean(bool value) { return Put(value) != nullptr; }
  bool number_integer(number_integer_t value) { return Put(value) != nullptr; }
  bool number_unsigned(number_unsigned_t value) { return Put(value) != nullptr; }
  bool number_float(number_float_t value, const string_t& /*text*/) {
    return Put(value) != nullptr;
  }
  bool string(string_t& value) { return Put(std::move(value)) != nullptr; }
  bool binary(binary_t& /*value*/) { return false; }  // Not in JSON text.

  bool start_object(size_t /*elements*/) {
    if (!Enter(AnyJson::object())) return false;
    keys_.emplace_back();
    return true;
  }
  bool end_object() {
    keys_.pop_back();
    open_.pop_back();
    return true;
  }
  bool start_array(size_t /*elements*/) { return Enter(AnyJson::array()); }
  bool end_array() {
    open_.pop_back();
    return true;
  }
  bool key(string_t& name) {
    if (!keys_.back().insert(name).second) {
      refusal_ = fmt::format("the key \"{}\" is given twice", name);
      length_ = name.size() + 1;
      return false;
    }
    key_ = std::move(name);
    return true;
  }
  template <class Exception>
  bool parse_error(size_t position, const std::string& /*token*/, const Exception& error) {
    position_ = position;
    // "[json.exception.parse_error.101] parse error at line 1, column 3: WHAT", or "...406] WHAT".
    refusal_ = error.what();
    const size_t column = refusal_.find(", column ");
    const size_t what = refusal_.find(column == std::string::npos ? "] " : ": ",
                                      column == std::string::npos ? 0 : column);
    if (what != std::string::npos) refusal_.erase(0, what + 2);
    return false;
  }
  // NOLINTEND(readability-identifier-naming)

  AnyJson Take() { return std::move(root_); }
  const std::string& refusal() const { return refusal_; }
  std::optional<size_t> position() const { return position_; }
  size_t length() const { return length_; }  // Of what is refused, before the last character read.

 private:
  template <class Value>
  AnyJson* Put(Value&& value) {
    if (open_.empty()) {
      root_ = std::forward<Value>(value);
      return &root_;
    }
    AnyJson& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(AnyJson(std::forward<Value>(value)));
      return &parent.back();
    }
    auto& members = parent.template get_ref<typename AnyJson::object_t&>();
    if constexpr (std::is_same_v<AnyJson, OrderedJson>) {
      // The map's own insertion searches all keys; that they differ is known.
      std::vector<typename OrderedJson::object_t::value_type>& list = members;
      return &list.emplace_back(std::move(key_), AnyJson(std::forward<Value>(value))).second;
    } else {
      return &members.emplace(std::move(key_), AnyJson(std::forward<Value>(value))).first->second;
    }
  }

  bool Enter(AnyJson container) {
    if (open_.size() >= kDeepestJson) {
      refusal_ = fmt::format("nested more than {} deep", kDeepestJson);
      return false;
    }
    open_.push_back(Put(std::move(container)));
    return true;
  }

  AnyJson root_;
  std::vector<AnyJson*>
      open_;  // A parent does not change while a child is open, so pointers stay valid.
  std::vector<std::unordered_set<std::string>> keys_;  // Of the open objects.
  std::string key_;
  std::string refusal_;
  std::optional<size_t> position_;
  size_t length_ = 0;
};

template <class AnyJson>
Result<AnyJson> Parse(std::string_view text, std::string_view source_name) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return Invalid("{}: is empty; expected JSON", source_name);
  }
  Builder<AnyJson> builder;
  const char* furthest = text.data();
  try {
    const bool parsed =
        AnyJson::sax_parse(CountingIterator(text.data(), &furthest),
                           CountingIterator(text.data() + text.size(), &furthest), &builder);
    if (parsed) return builder.Take();
  } catch (const nlohmann::json::exception& error) {
    return Invalid("{}: {}", source_name, error.what());
  }
  const size_t read = builder.position().value_or(static_cast<size_t>(furthest - text.data()));
  const size_t offset = read - std::min(read, 1 + builder.length());
  return Invalid("{}: {}", Place(text, offset, source_name), builder.refusal());
}

std::string Shorten(std::string text) {
  constexpr size_t kLongest = 60;
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

template <class AnyJson>
std::string Describe(const AnyJson& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array";
  return Shorten(value.dump(-1, ' ', false, AnyJson::error_handler_t::replace));
}

}  // namespace

Result<Json> ParseJson(std::string_view text, std::string_view source_name) {
  return Parse<Json>(text, source_name);
}

Result<Json> ParseJsonLine(std::string_view line, std::string_view source_name, int64_t number) {
  Result<Json> json = ParseJson(line, source_name);
  const std::string first_line = fmt::format("{}:1:", source_name);
  if (json || !json.error().message.starts_with(first_line)) return json;
  return Invalid("{}:{}:{}", source_name, number, json.error().message.substr(first_line.size()));
}

Result<OrderedJson> ParseOrderedJson(std::string_view text, std::string_view source_name) {
  return Parse<OrderedJson>(text, source_name);
}

template <class AnyJson>
BasicJsonReader<AnyJson>::BasicJsonReader(const AnyJson& value, std::string_view source_name)
    : value_(&value), source_name_(source_name) {}

template <class AnyJson>
BasicJsonReader<AnyJson>::BasicJsonReader(const BasicJsonReader& parent, const AnyJson& value,
                                          std::string path)
    : value_(&value), source_name_(parent.source_name_), path_(std::move(path)) {}

template <class AnyJson>
Result<BasicJsonReader<AnyJson>> BasicJsonReader<AnyJson>::At(std::string_view key) const {
  if (!value_->is_object()) return Expected("an object");
  const auto found = value_->find(std::string(key));
  if (found == value_->end()) return Refuse(fmt::format("missing key \"{}\"", key));
  return Child(key, *found);
}

template <class AnyJson>
Result<std::optional<BasicJsonReader<AnyJson>>> BasicJsonReader<AnyJson>::Find(
    std::string_view key) const {
  if (!value_->is_object()) return Expected("an object");
  const auto found = value_->find(std::string(key));
  if (found == value_->end() || found->is_null()) return std::nullopt;
  return Child(key, *found);
}

template <class AnyJson>
Result<std::vector<std::pair<std::string, BasicJsonReader<AnyJson>>>>
BasicJsonReader<AnyJson>::Members() const {
  if (!value_->is_object()) return Expected("an object");
  std::vector<std::pair<std::string, BasicJsonReader>> members;
  for (const auto& [key, value] : value_->items()) members.emplace_back(key, Child(key, value));
  return members;
}

template <class AnyJson>
Result<void> BasicJsonReader<AnyJson>::CheckKeys(
    std::initializer_list<std::string_view> known) const {
  if (!value_->is_object()) return Expected("an object");
  for (const auto& [key, value] : value_->items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    return Refuse(
        fmt::format("unknown key \"{}\"{}", key, DidYouMean(key, {known.begin(), known.size()})));
  }
  return {};
}

template <class AnyJson>
Result<std::vector<BasicJsonReader<AnyJson>>> BasicJsonReader<AnyJson>::Elements() const {
  if (!value_->is_array()) return Expected("an array");
  std::vector<BasicJsonReader> elements;
  for (const AnyJson& value : *value_) {
    elements.push_back(
        BasicJsonReader(*this, value, fmt::format("{}[{}]", path_, elements.size())));
  }
  return elements;
}

template <class AnyJson>
Result<std::string> BasicJsonReader<AnyJson>::AsString() const {
  if (!value_->is_string()) return Expected("a string");
  return value_->template get_ref<const std::string&>();
}

template <class AnyJson>
Result<bool> BasicJsonReader<AnyJson>::AsBool() const {
  if (!value_->is_boolean()) return Expected("true or false");
  return value_->template get<bool>();
}

template <class AnyJson>
Result<int64_t> BasicJsonReader<AnyJson>::AsInt(int64_t low, int64_t high) const {
  std::optional<int64_t> number;
  if (value_->is_number_unsigned()) {
    const uint64_t raw = value_->template get<uint64_t>();
    if (raw <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      number = static_cast<int64_t>(raw);
    }
  } else if (value_->is_number_integer()) {
    number = value_->template get<int64_t>();
  } else if (value_->is_number_float()) {  // 3.0 and 1e3 are integers to JSON.
    const double raw = value_->template get<double>();
    if (raw == std::floor(raw) && std::fabs(raw) < 0x1p63) number = static_cast<int64_t>(raw);
  }
  if (number && *number >= low && *number <= high) return *number;
  return Expected(RangeInWords("an integer", low, high));
}

template <class AnyJson>
Result<double> BasicJsonReader<AnyJson>::AsDouble(double low, double high) const {
  if (value_->is_number()) {
    const double number = value_->template get<double>();
    if (number >= low && number <= high) return number;
  }
  return Expected(RangeInWords("a number", low, high));
}

template <class AnyJson>
bool BasicJsonReader<AnyJson>::IsObject() const {
  return value_->is_object();
}

template <class AnyJson>
bool BasicJsonReader<AnyJson>::IsArray() const {
  return value_->is_array();
}

template <class AnyJson>
bool BasicJsonReader<AnyJson>::IsString() const {
  return value_->is_string();
}

template <class AnyJson>
bool BasicJsonReader<AnyJson>::IsNull() const {
  return value_->is_null();
}

template <class AnyJson>
tl::unexpected<Error> BasicJsonReader<AnyJson>::Expected(std::string_view what) const {
  return Refuse(fmt::format("expected {}, found {}", what, Describe(*value_)));
}

template <class AnyJson>
tl::unexpected<Error> BasicJsonReader<AnyJson>::Refuse(std::string_view what) const {
  return Invalid("{}: {}{}{}", source_name_, path_, path_.empty() ? "" : ": ", what);
}

template <class AnyJson>
BasicJsonReader<AnyJson> BasicJsonReader<AnyJson>::Child(std::string_view key,
                                                         const AnyJson& value) const {
  return BasicJsonReader(*this, value, fmt::format("{}{}{}", path_, path_.empty() ? "" : ".", key));
}

template class BasicJsonReader<Json>;
template class BasicJsonReader<OrderedJson>;

}  // namespace rudderfish
