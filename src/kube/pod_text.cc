// SPDX-License-Identifier: Apache-2.0
#include "kube/pod_text.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "kube/scheduling_reader.h"

namespace rudderfish::kube {
namespace {

// A field that is read. With `fields`, of an object or of each object in a list those alone.
struct ReadField {
  std::string_view name;
  std::span<const ReadField> fields;
};

constexpr ReadField kAnnotations[] = {{kSoftLatency, {}}, {kHardLatency, {}}};
constexpr ReadField kMetadata[] = {{"name", {}},
                                   {"namespace", {}},
                                   {"uid", {}},
                                   {"resourceVersion", {}},
                                   {"labels", {}},
                                   {"ownerReferences", {}},
                                   {"annotations", kAnnotations},
                                   {"creationTimestamp", {}}};
constexpr ReadField kContainer[] = {{"name", {}},          {"image", {}},
                                    {"resources", {}},     {"ports", {}},
                                    {"restartPolicy", {}}, {"restartPolicyRules", {}}};
constexpr ReadField kSpec[] = {{"nodeName", {}},           {"schedulerName", {}},
                               {"tolerations", {}},        {"nodeSelector", {}},
                               {"affinity", {}},           {"topologySpreadConstraints", {}},
                               {"containers", kContainer}, {"initContainers", kContainer},
                               {"resources", {}},          {"overhead", {}},
                               {"priority", {}},           {"preemptionPolicy", {}},
                               {"schedulingGates", {}},    {"resourceClaims", {}},
                               {"schedulingGroup", {}},    {"workloadRef", {}},
                               {"hostUsers", {}},          {"hostNetwork", {}}};
// Types of volumes that no rule looks at; all others are kept.
constexpr std::string_view kPlainVolumes[] = {"configMap",   "secret",   "projected",
                                              "downwardAPI", "emptyDir", "hostPath"};

void Append(std::string_view name, const std::string& value, std::string* object) {
  *object += object->size() > 1 ? ",\"" : "\"";
  *object += name;  // Names of fields that are known need no escapes.
  *object += "\":";
  *object += value;
}

std::string TextOf(const Element& value, std::span<const ReadField> fields) {
  simdjson::dom::array list;
  simdjson::dom::object object;
  if (fields.empty()) return simdjson::minify(value);
  if (value.get(list) == simdjson::SUCCESS) {
    std::string all = "[";
    for (const Element one : list) all += (all.size() > 1 ? "," : "") + TextOf(one, fields);
    return all + "]";
  }
  if (value.get(object) != simdjson::SUCCESS) return simdjson::minify(value);
  std::string all = "{";
  for (const auto member : object) {
    const auto field = std::find_if(fields.begin(), fields.end(),
                                    [&](const ReadField& one) { return one.name == member.key; });
    if (field != fields.end()) Append(field->name, TextOf(member.value, field->fields), &all);
  }
  return all + "}";
}

std::string TextOfVolumes(const Element& volumes) {
  simdjson::dom::array list;
  if (volumes.get(list) != simdjson::SUCCESS) return simdjson::minify(volumes);
  std::string all = "[";
  for (const Element volume : list) {
    simdjson::dom::object object;
    if (volume.get(object) != simdjson::SUCCESS) return simdjson::minify(volumes);
    const bool is_plain =
        std::any_of(std::begin(kPlainVolumes), std::end(kPlainVolumes),
                    [&](std::string_view type) { return !object.at_key(type).error(); });
    if (!is_plain) all += (all.size() > 1 ? "," : "") + std::string(simdjson::minify(volume));
  }
  return all + "]";
}

}  // namespace

std::string WhatIsReadOfPod(const Element& pod) {
  std::string text = "{";
  Element part, volumes;
  if (pod["metadata"].get(part) == simdjson::SUCCESS)
    Append("metadata", TextOf(part, kMetadata), &text);
  if (pod["spec"].get(part) != simdjson::SUCCESS) return text + "}";
  std::string spec = TextOf(part, kSpec);
  if (part["volumes"].get(volumes) == simdjson::SUCCESS) {
    spec.pop_back();
    Append("volumes", TextOfVolumes(volumes), &spec);
    spec += '}';
  }
  Append("spec", spec, &text);
  return text + "}";
}

}  // namespace rudderfish::kube
