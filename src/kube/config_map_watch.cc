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
                               const std::string& name, OnSaid on_said)
    : client_(client),
      on_said_(std::move(on_said)),
      reflector_(client,
                 {.path = fmt::format("/api/v1/namespaces/{}/configmaps", name_space),
                  .selector = fmt::format("fieldSelector=metadata.name%3D{}", name)},
                 this) {
  reflector_.Start();
}

std::string ConfigMapWatch::WhyUnread(Duration staleness) const {
  const std::optional<Instant> fresh = reflector_.FreshAsOf();
  const Instant now = client_->clock().Now();
  if (fresh && now - *fresh <= staleness) return "";
  return fmt::format(
      "the ConfigMap of `control` {}{}",
      fresh ? fmt::format("was read {:.0f} s ago", Seconds(now - *fresh)) : "has not been read",
      reflector_.last_error() ? ": " + reflector_.last_error()->message : "");
}

void ConfigMapWatch::BeginList() { listed_ = Data(); }

// What is refused is left out of a list, and would be as if it were absent.
Result<void> ConfigMapWatch::Listed(const simdjson::dom::element& object) {
  listed_ = DataOf(object);
  if (!listed_) return tl::unexpected(listed_.error());
  return {};
}

void ConfigMapWatch::EndList() { Tell(std::move(listed_)); }

Result<void> ConfigMapWatch::Changed(const simdjson::dom::element& object) {
  Said said = DataOf(object);
  Tell(said);
  if (!said) return tl::unexpected(said.error());
  return {};
}

Result<void> ConfigMapWatch::Deleted(const simdjson::dom::element&) {
  Tell(Data());
  return {};
}

void ConfigMapWatch::Tell(Said said) {
  const bool is_known = told_ && said.has_value() == told_->has_value() &&
                        (said ? *said == **told_ : said.error().message == told_->error().message);
  if (is_known) return;
  told_ = std::move(said);
  on_said_(*told_);
}

}  // namespace rudderfish::kube
