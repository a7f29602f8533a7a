// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <simdjson.h>

#include <map>
#include <set>
#include <string>

// The objects of one resource that are left out because they cannot be read: the first 1,000 of
// them, and why. Logs each kind of trouble once.

namespace rudderfish::kube {

class LeftOut {
 public:
  using Objects = std::map<std::string, std::string, std::less<>>;  // namespace/name, and why.

  explicit LeftOut(std::string path) : path_(std::move(path)) {}

  void BeginList() { objects_.clear(); }
  void Note(const simdjson::dom::element& object, const std::string& why);
  void NoteSound(const simdjson::dom::element& object);
  void Log(const std::string& why);

  // The last list had the object as malformed, or more of them than are kept.
  bool IsExpected(const simdjson::dom::element& object) const;

  const Objects& objects() const { return objects_; }

 private:
  std::string path_;
  Objects objects_;
  std::set<std::string> logged_;
};

}  // namespace rudderfish::kube
