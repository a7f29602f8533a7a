// SPDX-License-Identifier: Apache-2.0
#include "cloud/xds_board.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/check.h"
#include "base/json.h"

namespace rudderfish {
namespace {

constexpr int64_t kWeightMax = 1'000'000;

XdsService* ServiceNamed(std::vector<XdsService>* services, std::string_view name) {
  const auto found = std::find_if(services->begin(), services->end(),
                                  [&](const XdsService& one) { return one.name == name; });
  return found == services->end() ? nullptr : &*found;
}

Result<void> ReadService(const JsonReader& object, std::vector<XdsService>* services) {
  TRY_ASSIGN(const JsonReader name, object.At("service"));
  TRY_ASSIGN(const std::string text, name.AsString());
  TRY_ASSIGN(const JsonReader version, object.At("version"));
  TRY_ASSIGN(const int64_t at, version.AsInt(0));
  TRY_ASSIGN(const JsonReader weights, object.At("weights"));
  XdsService* service = ServiceNamed(services, text);
  if (service == nullptr) return {};  // It is routed no more.
  std::vector<int64_t> kept;
  for (const XdsRegion& region : service->regions) {
    TRY_ASSIGN(const std::optional<JsonReader> one, weights.Find(region.name));
    kept.push_back(0);
    if (one) {
      TRY_ASSIGN(kept.back(), one->AsInt(0, kWeightMax));
    }
  }
  // All of its regions are others by now.
  if (std::all_of(kept.begin(), kept.end(), [](int64_t one) { return one == 0; })) return {};
  for (size_t i = 0; i < kept.size(); ++i) service->regions[i].weight = kept[i];
  service->version = at;
  return {};
}

}  // namespace

Result<void> XdsBoard::Recall(std::string_view text, std::string_view source) {
  TRY_ASSIGN(const Json json, ParseJson(text, source));
  TRY_ASSIGN(const JsonReader list, JsonReader(json, source).At("services"));
  TRY_ASSIGN(const std::vector<JsonReader> entries, list.Elements());
  const std::lock_guard lock(mutex_);
  std::vector<XdsService> services = services_;
  for (const JsonReader& entry : entries) TRY(ReadService(entry, &services));
  services_ = std::move(services);
  return {};
}

std::vector<std::string> XdsBoard::Services() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const XdsService& one : services_) names.push_back(one.name);
  return names;
}

std::optional<XdsService> XdsBoard::Find(std::string_view service) const {
  const std::lock_guard lock(mutex_);
  for (const XdsService& one : services_) {
    if (one.name == service) return one;
  }
  return std::nullopt;
}

UnixMillis XdsBoard::Set(std::string_view service, const std::vector<int64_t>& weights) {
  const std::lock_guard lock(mutex_);
  XdsService* one = ServiceNamed(&services_, service);
  CHECK(one != nullptr);
  CHECK_EQ(weights.size(), one->regions.size());
  for (size_t i = 0; i < weights.size(); ++i) one->regions[i].weight = weights[i];
  one->version = std::max(UnixNow(), one->version + 1);
  return one->version;
}

std::string XdsBoard::Text() const {
  const std::lock_guard lock(mutex_);
  OrderedJson json{{"services", OrderedJson::array()}};
  for (const XdsService& one : services_) {
    if (one.version == 0) continue;
    OrderedJson weights = OrderedJson::object();
    for (const XdsRegion& region : one.regions) weights[region.name] = region.weight;
    json["services"].push_back(
        {{"service", one.name}, {"version", one.version}, {"weights", std::move(weights)}});
  }
  return json.dump(2) + "\n";
}

void XdsBoard::Note(StreamId stream, const std::string& service, XdsVerdict verdict) {
  const std::lock_guard lock(mutex_);
  verdicts_[stream][service] = std::move(verdict);
}

void XdsBoard::Forget(StreamId stream) {
  const std::lock_guard lock(mutex_);
  verdicts_.erase(stream);
}

std::vector<XdsVerdict> XdsBoard::Verdicts(std::string_view service) const {
  const std::lock_guard lock(mutex_);
  std::vector<XdsVerdict> all;
  for (const auto& [stream, verdicts] : verdicts_) {
    const auto found = verdicts.find(service);
    if (found != verdicts.end()) all.push_back(found->second);
  }
  return all;
}

void XdsBoard::Count(const std::string& service, const std::string& region, const XdsLoad& more) {
  const std::lock_guard lock(mutex_);
  // Only of what there is: a client cannot make it grow.
  const XdsService* known = ServiceNamed(&services_, service);
  if (known == nullptr || std::none_of(known->regions.begin(), known->regions.end(),
                                       [&](const auto& one) { return one.name == region; }))
    return;
  XdsLoad& load = loads_[{service, region}];
  load.issued += more.issued;
  load.succeeded += more.succeeded;
  load.failed += more.failed;
}

XdsLoad XdsBoard::LoadOf(std::string_view service, std::string_view region) const {
  const std::lock_guard lock(mutex_);
  const auto found = loads_.find({std::string(service), std::string(region)});
  return found == loads_.end() ? XdsLoad() : found->second;
}

}  // namespace rudderfish
