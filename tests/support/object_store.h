// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "kube/object_sink.h"

// Keeps of each object what identifies its content: namespace/name -> uid@resourceVersion.

namespace rudderfish::testing {

using ObjectVersions = std::map<std::string, std::string>;

inline std::string_view MetadataText(const simdjson::dom::element& object, const char* key) {
  std::string_view text;
  return object["metadata"][key].get(text) == simdjson::SUCCESS ? text : std::string_view();
}

inline std::string NameOf(const simdjson::dom::element& object) {
  return std::string(MetadataText(object, "namespace")) + "/" +
         std::string(MetadataText(object, "name"));
}

class ObjectStore : public kube::ObjectSink {
 public:
  void BeginList() override {
    ++lists;
    listed_.clear();
  }
  Result<void> Listed(const simdjson::dom::element& object) override {
    return Put(object, &listed_);
  }
  void EndList() override {
    objects = std::move(listed_);
    listed_.clear();
    ++complete_lists;
  }
  Result<void> Changed(const simdjson::dom::element& object) override {
    ++changes;
    return Put(object, &objects);
  }
  Result<void> Deleted(const simdjson::dom::element& object) override {
    ++deletes;
    objects.erase(NameOf(object));
    return {};
  }

  ObjectVersions objects;
  int lists = 0, complete_lists = 0, changes = 0, deletes = 0;

 private:
  static Result<void> Put(const simdjson::dom::element& object, ObjectVersions* store) {
    if (MetadataText(object, "name").empty()) return Invalid("an object without a name");
    (*store)[NameOf(object)] = std::string(MetadataText(object, "uid")) + "@" +
                               std::string(MetadataText(object, "resourceVersion"));
    return {};
  }

  ObjectVersions listed_;
};

}  // namespace rudderfish::testing
