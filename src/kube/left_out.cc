// SPDX-License-Identifier: Apache-2.0
#include "kube/left_out.h"

#include <fmt/format.h>

#include "base/log.h"
#include "base/one_line.h"

namespace rudderfish::kube {
namespace {

constexpr size_t kLoggedMax = 16;
constexpr size_t kObjectsMax = 1000;

std::string_view TextOfMember(const simdjson::dom::element& object, std::string_view key) {
  std::string_view text;
  return object[key].get(text) == simdjson::SUCCESS ? text : std::string_view();
}

// namespace/name, or what there is of it.
std::string ObjectName(const simdjson::dom::element& object) {
  simdjson::dom::element metadata;
  if (object["metadata"].get(metadata) != simdjson::SUCCESS) return "";
  const std::string_view name = TextOfMember(metadata, "name"),
                         place = TextOfMember(metadata, "namespace");
  return OneLine(place.empty() ? std::string(name) : fmt::format("{}/{}", place, name));
}

}  // namespace

void LeftOut::Note(const simdjson::dom::element& object, const std::string& why) {
  if (objects_.size() < kObjectsMax) objects_.insert_or_assign(ObjectName(object), OneLine(why));
}

void LeftOut::NoteSound(const simdjson::dom::element& object) {
  if (!objects_.empty()) objects_.erase(ObjectName(object));
}

void LeftOut::Log(const std::string& why) {
  if (logged_.size() >= kLoggedMax || !logged_.insert(why).second) return;
  LogWarning("{}: left out: {} (what follows of the kind is only counted)", path_, OneLine(why));
}

bool LeftOut::IsExpected(const simdjson::dom::element& object) const {
  const std::string name = ObjectName(object);
  return !name.empty() && (objects_.contains(name) || objects_.size() >= kObjectsMax);
}

}  // namespace rudderfish::kube
