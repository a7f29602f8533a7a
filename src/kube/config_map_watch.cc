// SPDX-License-Identifier: Apache-2.0
#include "kube/config_map_watch.h"

#include <fmt/format.h>

#include <utility>

namespace rudderfish::kube {
namespace {

Result<ConfigMapWatch::Data> DataOf(const simdjson::dom::element& object) {
  ConfigMapWatch::Data data;
  simdjson::dom::element field;
  if (object["data"].get(field) != simdjson::SUCCESS || field.is_null()) return data;
  simdjson::dom::object pairs;
  if (field.get(pairs) != simdjson::SUCCESS) return Invalid("`data` of a ConfigMap is no object");
  for (const auto& [key, value] : pairs) {
    std::string_view text;
    if (value.get(text) != simdjson::SUCCESS) {
      return Invalid("`data.{}` of a ConfigMap is no text", key);
    }
    data.emplace(key, text);
  }
  return data;
}

}  // namespace

ConfigMapWatch::ConfigMapWatch(ApiClient* client, const std::string& name_space,
                               const std::string& name, OnData on_data)
    : on_data_(std::move(on_data)),
      reflector_(client,
                 {.path = fmt::format("/api/v1/namespaces/{}/configmaps", name_space),
                  .selector = fmt::format("fieldSelector=metadata.name%3D{}", name)},
                 this) {
  reflector_.Start();
}

void ConfigMapWatch::BeginList() { listed_.clear(); }

Result<void> ConfigMapWatch::Listed(const simdjson::dom::element& object) {
  TRY_ASSIGN(listed_, DataOf(object));
  return {};
}

void ConfigMapWatch::EndList() { Tell(std::move(listed_)); }

Result<void> ConfigMapWatch::Changed(const simdjson::dom::element& object) {
  TRY_ASSIGN(Data data, DataOf(object));
  Tell(std::move(data));
  return {};
}

Result<void> ConfigMapWatch::Deleted(const simdjson::dom::element&) {
  Tell({});
  return {};
}

void ConfigMapWatch::Tell(Data data) {
  if (told_ && data == data_) return;
  told_ = true;
  data_ = std::move(data);
  on_data_(data_);
}

}  // namespace rudderfish::kube
