// SPDX-License-Identifier: Apache-2.0
#include "cloud/openstack_cloud.h"

#include <fmt/format.h>

#include <cstdlib>
#include <optional>
#include <vector>

#include "base/files.h"
#include "base/one_line.h"
#include "base/suggest.h"
#include "base/yaml.h"

namespace rudderfish {
namespace {

constexpr std::string_view kCredentialType = "v3applicationcredential";

Result<std::string> TextOf(YamlMap* map, std::string_view key) {
  return map->OptionalString(key, "");
}

Result<void> ReadAuth(const YamlNode& node, bool is_credential, OpenStackCloud* cloud) {
  TRY_ASSIGN(YamlMap auth, node.AsMap());
  TRY_ASSIGN(const YamlNode url, auth.Required("auth_url"));
  TRY_ASSIGN(cloud->auth_url, url.AsString());
  if (!cloud->auth_url.starts_with("http://") && !cloud->auth_url.starts_with("https://"))
    return url.Expected("a URL, for example https://keystone.example.org:5000/v3");
  while (cloud->auth_url.ends_with('/')) cloud->auth_url.pop_back();
  if (cloud->auth_url.ends_with("/v3")) cloud->auth_url.resize(cloud->auth_url.size() - 3);
  if (is_credential) {
    TRY_ASSIGN(cloud->credential_id, auth.RequiredString("application_credential_id"));
    TRY_ASSIGN(cloud->credential_secret, auth.RequiredString("application_credential_secret"));
    if (cloud->credential_id.empty()) return node.Refuse("`application_credential_id` is empty");
    return {};
  }
  TRY_ASSIGN(cloud->user, auth.RequiredString("username"));
  TRY_ASSIGN(cloud->password, auth.RequiredString("password"));
  TRY_ASSIGN(cloud->project, auth.RequiredString("project_name"));
  TRY_ASSIGN(cloud->user_domain, auth.OptionalString("user_domain_name", "Default"));
  TRY_ASSIGN(cloud->project_domain, auth.OptionalString("project_domain_name", "Default"));
  return {};
}

Result<OpenStackCloud> ReadEntry(const std::string& name, const YamlNode& node) {
  OpenStackCloud cloud{.name = name};
  TRY_ASSIGN(YamlMap map, node.AsMap());
  TRY_ASSIGN(const std::string type, map.OptionalString("auth_type", "password"));
  const bool is_credential = type == kCredentialType;
  if (!is_credential && type != "password" && type != "v3password") {
    return map.Optional("auth_type")->Expected(fmt::format("password or {}", kCredentialType));
  }
  TRY_ASSIGN(const YamlNode auth, map.Required("auth"));
  TRY(ReadAuth(auth, is_credential, &cloud));
  TRY_ASSIGN(cloud.region, TextOf(&map, "region_name"));
  TRY_ASSIGN(cloud.ca_file, TextOf(&map, "cacert"));
  if (const std::optional<YamlNode> interface = map.Optional("interface")) {
    TRY_ASSIGN(cloud.interface, interface->AsString());
    if (cloud.interface != "public" && cloud.interface != "internal" && cloud.interface != "admin")
      return interface->Expected("public, internal or admin");
  }
  return cloud;
}

std::string EnvironmentText(const char* name) {
  const char* text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): the program sets none.
  return text == nullptr ? "" : text;
}

Result<std::filesystem::path> CloudsFile() {
  if (const std::string named = EnvironmentText("OS_CLIENT_CONFIG_FILE"); !named.empty())
    return std::filesystem::path(named);
  std::vector<std::filesystem::path> places = {"clouds.yaml"};
  if (const std::string home = EnvironmentText("HOME"); !home.empty())
    places.push_back(std::filesystem::path(home) / ".config/openstack/clouds.yaml");
  places.emplace_back("/etc/openstack/clouds.yaml");
  for (const std::filesystem::path& place : places) {
    std::error_code none;
    if (std::filesystem::exists(place, none)) return place;
  }
  return Fail(
      ErrorCode::kNotFound,
      "no clouds.yaml in this folder, in ~/.config/openstack or in /etc/openstack; name one "
      "with --clouds or OS_CLIENT_CONFIG_FILE");
}

}  // namespace

Result<OpenStackCloud> ParseClouds(std::string_view text, std::string_view source_name,
                                   std::string_view name) {
  TRY_ASSIGN(const YamlNode root, ParseYaml(text, source_name));
  TRY_ASSIGN(YamlMap top, root.AsMap());
  TRY_ASSIGN(YamlMap clouds, top.RequiredMap("clouds"));
  const auto entries = clouds.Entries();
  std::vector<std::string_view> names;
  for (const auto& [key, node] : entries) {
    if (key == name || (name.empty() && entries.size() == 1)) return ReadEntry(key, node);
    names.push_back(key);
  }
  if (name.empty() && !names.empty()) {
    return Invalid("{}: choose a cloud with --cloud or OS_CLOUD; there are {}", source_name,
                   OneLine(fmt::format("{}", fmt::join(names, ", ")), 300));
  }
  return Fail(ErrorCode::kNotFound, "{}: no cloud `{}`; there are {}", source_name, OneLine(name),
              OneLine(fmt::format("{}", fmt::join(names, ", ")), 300));
}

Result<OpenStackCloud> ReadClouds(const std::filesystem::path& path, std::string_view name) {
  std::filesystem::path file = path;
  if (file.empty()) {
    TRY_ASSIGN(file, CloudsFile());
  }
  TRY_ASSIGN(const std::string text, ReadFile(file));
  const std::string chosen = name.empty() ? EnvironmentText("OS_CLOUD") : std::string(name);
  return ParseClouds(text, file.string(), chosen);
}

}  // namespace rudderfish
