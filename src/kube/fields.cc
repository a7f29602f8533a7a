// SPDX-License-Identifier: Apache-2.0
#include "kube/fields.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/timestamp.h"

namespace rudderfish::kube {

std::string_view TextOf(const Element& object, std::string_view key) {
  std::string_view text;
  return object[key].get(text) == simdjson::SUCCESS ? text : std::string_view();
}

Result<Fields> Fields::Find(std::string_view path) const {
  Fields at = *this;
  size_t begin = 0;
  while (at.there_) {
    simdjson::dom::object object;
    if (at.element_.get(object) != simdjson::SUCCESS) {
      return Invalid("{}: expected an object", begin == 0 ? path : path.substr(0, begin - 1));
    }
    const size_t end = std::min(path.find('.', begin), path.size());
    Element member;
    if (object.at_key(path.substr(begin, end - begin)).get(member) != simdjson::SUCCESS) {
      return Fields();
    }
    at = Fields(member);
    if (end == path.size()) break;
    begin = end + 1;
  }
  return at;
}

Result<std::string_view> Fields::Text(std::string_view path) const {
  TRY_ASSIGN(const Fields field, Find(path));
  std::string_view text;
  if (field.there_ && field.element_.get(text) != simdjson::SUCCESS) {
    return Invalid("{}: expected text", path);
  }
  return text;
}

Result<bool> Fields::Flag(std::string_view path) const {
  TRY_ASSIGN(const Fields field, Find(path));
  bool flag = false;
  if (field.there_ && field.element_.get(flag) != simdjson::SUCCESS) {
    return Invalid("{}: expected true or false", path);
  }
  return flag;
}

Result<int64_t> Fields::Integer(std::string_view path, int64_t absent) const {
  TRY_ASSIGN(const Fields field, Find(path));
  int64_t value = absent;
  if (field.there_ && field.element_.get(value) != simdjson::SUCCESS) {
    return Invalid("{}: expected an integer of 64 bits", path);
  }
  return value;
}

Result<Quantity> Fields::Amount(std::string_view path) const {
  TRY_ASSIGN(const Fields field, Find(path));
  if (!field.there_) return Quantity();
  std::string_view text;
  int64_t whole = 0;  // kubectl accepts bare numbers, the API server writes text.
  Result<Quantity> amount;
  if (field.element_.get(text) == simdjson::SUCCESS) {
    amount = Quantity::Parse(text);
  } else if (field.element_.get(whole) == simdjson::SUCCESS) {
    amount = Quantity::Parse(std::to_string(whole));
  } else {
    return Invalid("{}: expected a quantity such as 500m, 2 or 1.5Gi", path);
  }
  if (!amount) return Invalid("{}: {}", path, amount.error().message);
  return amount;
}

Result<int64_t> Fields::Time(std::string_view path) const {
  TRY_ASSIGN(const std::string_view text, Text(path));
  if (text.empty()) return 0;
  const std::optional<Date> date = ParseDate(text);
  if (!date) return Invalid("{}: expected a time such as 2026-11-21T09:30:00Z", path);
  return std::chrono::floor<std::chrono::seconds>(*date).time_since_epoch().count();
}

Result<Labels> Fields::TextMap(std::string_view path) const {
  TRY_ASSIGN(const Fields field, Find(path));
  Labels labels;
  if (!field.there_) return labels;
  simdjson::dom::object object;
  if (field.element_.get(object) != simdjson::SUCCESS) return Invalid("{}: expected a map", path);
  for (const auto member : object) {
    std::string_view value;
    if (!member.value.is_null() && member.value.get(value) != simdjson::SUCCESS) {
      return Invalid("{}.{}: expected text", path, member.key);
    }
    labels.emplace_back(member.key, value);
  }
  std::stable_sort(labels.begin(), labels.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  const auto same_key = [](const auto& a, const auto& b) { return a.first == b.first; };
  const auto twice = std::adjacent_find(labels.begin(), labels.end(), same_key);
  if (twice != labels.end()) return Invalid("{}.{}: stands there twice", path, twice->first);
  return labels;
}

Result<bool> Fields::Has(std::string_view path) const {
  TRY_ASSIGN(const Fields field, Find(path));
  if (!field.there_) return false;
  simdjson::dom::object object;
  simdjson::dom::array array;
  if (field.element_.get(object) == simdjson::SUCCESS) return object.begin() != object.end();
  if (field.element_.get(array) == simdjson::SUCCESS) return array.begin() != array.end();
  return true;
}

}  // namespace rudderfish::kube
