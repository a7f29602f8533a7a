// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <simdjson.h>

#include <string>
#include <string_view>
#include <vector>

// API objects as JSON text for tests, as short as the API server would never write them.

namespace rudderfish::testing {

// JSON text that stays parsed as long as this.
class ParsedJson {
 public:
  explicit ParsedJson(std::string_view text) { root_ = parser_.parse(text.data(), text.size()); }
  const simdjson::dom::element& root() const { return root_; }

 private:
  simdjson::dom::parser parser_;
  simdjson::dom::element root_;
};

// `more`: further members of the spec, each with a comma before it; of the metadata likewise.
struct NodeJson {
  std::string name;
  std::string cpu = "4", memory = "8Gi", pods = "110";
  std::string labels = "{}";
  std::string spec = "{}";
  bool ready = true;

  std::string Text() const {
    return fmt::format(
        R"({{"kind":"Node","apiVersion":"v1","metadata":{{"name":"{0}","uid":"uid-{0}",)"
        R"("resourceVersion":"1","labels":{1}}},"spec":{2},"status":{{"allocatable":)"
        R"({{"cpu":"{3}","memory":"{4}","pods":"{5}"}},"addresses":[{{"type":"Hostname",)"
        R"("address":"{0}"}},{{"type":"InternalIP","address":"10.0.0.1"}}],"conditions":)"
        R"([{{"type":"Ready","status":"{6}"}}]}}}})",
        name, labels, spec, cpu, memory, pods, ready ? "True" : "False");
  }
};

struct PodJson {
  std::string name;
  std::string object_namespace = "default";
  std::string owner_kind = "ReplicaSet", owner;  // No owner if its name is empty.
  std::string node;
  std::string cpu = "100m", memory = "64Mi";
  std::string phase = "Running";
  std::string labels = "{}";
  std::string more_metadata;  // Members with a comma before each.
  std::string more_spec;
  std::string more_status;
  std::string version = "1";

  std::string Text() const {
    const std::string owners =
        owner.empty() ? ""
                      : fmt::format(R"(,"ownerReferences":[{{"kind":"{}","name":"{}","uid":"u",)"
                                    R"("controller":true}}])",
                                    owner_kind, owner);
    return fmt::format(
        R"({{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{0}","namespace":"{1}",)"
        R"("uid":"uid-{0}","resourceVersion":"{2}","labels":{3}{4}{5}}},"spec":{{"nodeName":"{6}",)"
        R"("containers":[{{"name":"main","resources":{{"requests":{{"cpu":"{7}","memory":"{8}"}})"
        R"(}}}}]{9}}},"status":{{"phase":"{10}","conditions":[{{"type":"Ready","status":"True"}}])"
        R"({11}}}}})",
        name, object_namespace, version, labels, owners, more_metadata, node, cpu, memory,
        more_spec, phase, more_status);
  }
};

// A Deployment, ReplicaSet and the like.
inline std::string ControllerJson(std::string_view kind, std::string_view name, int replicas = 1,
                                  std::string_view owner_kind = "", std::string_view owner = "",
                                  std::string_view object_namespace = "default") {
  const std::string owners =
      owner.empty() ? ""
                    : fmt::format(R"(,"ownerReferences":[{{"kind":"{}","name":"{}","uid":"u",)"
                                  R"("controller":true}}])",
                                  owner_kind, owner);
  return fmt::format(R"({{"kind":"{0}","apiVersion":"apps/v1","metadata":{{"name":"{1}",)"
                     R"("namespace":"{2}","uid":"uid-{1}","resourceVersion":"1"{3}}},"spec":)"
                     R"({{"replicas":{4}}},"status":{{}}}})",
                     kind, name, object_namespace, owners, replicas);
}

inline std::string ListJson(const std::vector<std::string>& items) {
  return fmt::format(R"({{"kind":"List","apiVersion":"v1","items":[{}]}})",
                     fmt::join(items, ",\n"));
}

}  // namespace rudderfish::testing
