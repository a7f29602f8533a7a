// SPDX-License-Identifier: Apache-2.0
#include "kube/in_tree_volumes.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

namespace rudderfish::kube {
namespace {

constexpr std::string_view kZoneLabel = "topology.kubernetes.io/zone";
constexpr std::string_view kBetaZoneLabel = "failure-domain.beta.kubernetes.io/zone";
constexpr std::string_view kRegionLabel = "topology.kubernetes.io/region";
constexpr std::string_view kBetaRegionLabel = "failure-domain.beta.kubernetes.io/region";

struct InTreeType {
  std::string_view plugin, driver;
  std::string_view field, id;     // In the volume: its type, and there what it is called.
  std::string_view topology_key;  // The driver's label of zones; empty: none is translated.
};
constexpr InTreeType kTypes[] = {
    {"kubernetes.io/aws-ebs", "ebs.csi.aws.com", "awsElasticBlockStore", "volumeID",
     "topology.ebs.csi.aws.com/zone"},
    {"kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "gcePersistentDisk", "pdName",
     "topology.gke.io/zone"},
    {"kubernetes.io/azure-disk", "disk.csi.azure.com", "azureDisk", "diskURI", ""},
    {"kubernetes.io/cinder", "cinder.csi.openstack.org", "cinder", "volumeID",
     "topology.cinder.csi.openstack.org/zone"},
    {"kubernetes.io/portworx-volume", "pxd.portworx.com", "portworxVolume", "volumeID", ""}};
constexpr std::string_view kNotTranslated[] = {"kubernetes.io/azure-file",
                                               "kubernetes.io/vsphere-volume"};

// As strings.Split(text, "__"): always one part at least.
std::vector<std::string> SplitZones(std::string_view text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find("__", begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 2;
  }
  return parts;
}

std::string ValueOf(const Labels& labels, std::string_view key) {
  const std::string* value = FindLabel(labels, key);
  return value == nullptr ? "" : *value;
}

// aws://zone/vol-1, aws:///vol-1, or the ID itself. What is no plain URL is not translated.
std::optional<std::string> AwsHandle(std::string_view id) {
  constexpr std::string_view kScheme = "aws://";
  if (!id.starts_with(kScheme)) return std::string(id);
  id.remove_prefix(kScheme.size());
  const bool is_plain = std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.' || c == '~' || c == '/';
  });
  const size_t path = id.find('/');
  if (!is_plain || path == std::string_view::npos) return std::nullopt;
  id.remove_prefix(path);
  while (id.starts_with('/')) id.remove_prefix(1);
  while (id.ends_with('/')) id.remove_suffix(1);
  if (!id.starts_with("vol-") || id.find('/') != std::string_view::npos) return std::nullopt;
  return std::string(id);
}

// The region of zones such as europe-west1-b, the same for all.
std::optional<std::string> GceRegion(const std::vector<std::string>& zones) {
  std::set<std::string> regions;
  for (const std::string& zone : zones) {
    const size_t last = zone.rfind('-');
    if (std::count(zone.begin(), zone.end(), '-') != 2) return std::nullopt;
    regions.insert(zone.substr(0, last));
  }
  if (regions.size() != 1) return std::nullopt;
  return *regions.begin();
}

std::optional<std::string> GceHandle(std::string_view disk, const Labels& labels) {
  constexpr std::string_view kUnspecified = "UNSPECIFIED";
  std::string label = ValueOf(labels, kBetaZoneLabel);
  if (label.empty()) label = ValueOf(labels, kZoneLabel);
  const std::vector<std::string> zones = SplitZones(label);
  if (zones.size() == 1) {
    return fmt::format("projects/{}/zones/{}/disks/{}", kUnspecified,
                       label.empty() ? kUnspecified : label, disk);
  }
  const std::optional<std::string> region = GceRegion(zones);
  if (!region) return std::nullopt;
  return fmt::format("projects/{}/regions/{}/disks/{}", kUnspecified, *region, disk);
}

bool IsManaged(std::string_view kind) {
  constexpr std::string_view kManaged = "managed";
  return kind.empty() ||
         std::equal(kind.begin(), kind.end(), kManaged.begin(), kManaged.end(),
                    [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + 32 : a) == b; });
}

bool Asks(const std::vector<NodeTerm>& terms, std::string_view key) {
  return std::any_of(terms.begin(), terms.end(), [&](const NodeTerm& term) {
    return std::any_of(term.expressions.begin(), term.expressions.end(),
                       [&](const NodeRequirement& asked) { return asked.key == key; });
  });
}

bool AsksForValues(const std::vector<NodeTerm>& terms, std::string_view key) {
  return std::any_of(terms.begin(), terms.end(), [&](const NodeTerm& term) {
    return std::any_of(
        term.expressions.begin(), term.expressions.end(),
        [&](const NodeRequirement& asked) { return asked.key == key && !asked.values.empty(); });
  });
}

void Rename(std::string_view from, std::string_view to, std::vector<NodeTerm>* terms) {
  for (NodeTerm& term : *terms) {
    for (NodeRequirement& asked : term.expressions) {
      if (asked.key == from) asked.key = to;
    }
  }
}

// The zones of a label, asked for by each term beside what it asks already.
void AddZones(std::string_view label, std::string_view key, BoundVolume::Affinity* affinity) {
  std::set<std::string> zones;
  for (std::string_view zone : SplitZones(label)) {
    while (zone.starts_with(' ')) zone.remove_prefix(1);
    while (zone.ends_with(' ')) zone.remove_suffix(1);
    if (!zone.empty()) zones.emplace(zone);
  }
  if (zones.empty()) return;
  if (!*affinity) affinity->emplace();
  if ((*affinity)->empty()) (*affinity)->emplace_back();
  for (NodeTerm& term : **affinity) {
    term.expressions.push_back(
        {std::string(key), NodeRequirement::Operator::kIn, {zones.begin(), zones.end()}});
  }
}

// Whether the volume speaks of zones by the labels of old: its terms say so, or else its labels.
bool IsOfOldLabels(const std::vector<NodeTerm>& terms, const Labels& labels) {
  if (Asks(terms, kZoneLabel)) return false;
  if (Asks(terms, kBetaZoneLabel)) return true;
  return FindLabel(labels, kZoneLabel) == nullptr && FindLabel(labels, kBetaZoneLabel) != nullptr;
}

}  // namespace

Result<std::optional<InTreeVolume>> TranslateInTree(const Fields& source, const Labels& labels) {
  for (const InTreeType& type : kTypes) {
    TRY_ASSIGN(const Fields there, source.Find(type.field));
    if (!there.there()) continue;
    TRY_ASSIGN(const std::string_view id, there.Text(type.id));
    std::optional<std::string> handle(id);
    if (type.field == "awsElasticBlockStore") handle = AwsHandle(id);
    if (type.field == "gcePersistentDisk") handle = GceHandle(id, labels);
    if (type.field == "azureDisk") {
      TRY_ASSIGN(const std::string_view kind, there.Text("kind"));
      if (!IsManaged(kind)) handle.reset();
    }
    InTreeVolume made{type.plugin, {}};
    if (handle) made.volume = {std::string(type.driver), *std::move(handle)};
    return std::optional(std::move(made));
  }
  return std::optional<InTreeVolume>();
}

BoundVolume::Affinity TranslateAffinity(std::string_view plugin, const Labels& labels,
                                        BoundVolume::Affinity terms) {
  const auto type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                 [&](const InTreeType& t) { return t.plugin == plugin; });
  if (type != std::end(kTypes) && !type->topology_key.empty()) {
    std::vector<NodeTerm> none;
    const bool is_old = IsOfOldLabels(terms ? *terms : none, labels);
    const std::string_view zone = is_old ? kBetaZoneLabel : kZoneLabel;
    if (terms && AsksForValues(*terms, zone)) {
      Rename(zone, type->topology_key, &*terms);
    } else if (const std::string* label = FindLabel(labels, zone)) {
      AddZones(*label, type->topology_key, &terms);
    }
    if (is_old && terms && AsksForValues(*terms, kBetaRegionLabel))
      Rename(kBetaRegionLabel, kRegionLabel, &*terms);
  }
  return terms;
}

std::string_view DriverOfProvisioner(std::string_view provisioner) {
  for (const InTreeType& type : kTypes) {
    if (type.plugin == provisioner) return type.driver;
  }
  const bool counts_none = std::find(std::begin(kNotTranslated), std::end(kNotTranslated),
                                     provisioner) != std::end(kNotTranslated);
  return counts_none ? std::string_view() : provisioner;
}

}  // namespace rudderfish::kube
