// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

// Where an OpenStack is and who asks it: an entry of clouds.yaml, as OpenStack's own clients read
// it (auth_type password or v3applicationcredential). Keys that mean nothing here are left alone.

namespace rudderfish {

struct OpenStackCloud {
  std::string name;      // Of the entry.
  std::string auth_url;  // Of Keystone, with /v3 at its end or without.
  // Either a user with a password, and what the token is for,
  std::string user, user_domain, password;  // `user_domain`: a name.
  std::string project, project_domain;
  // or an application credential, which says that itself.
  std::string credential_id, credential_secret;
  std::string region;                // Empty: the catalog's only one.
  std::string interface = "public";  // Of the endpoints.
  std::string ca_file;               // Empty: the system's.

  bool has_credential() const { return !credential_id.empty(); }
};

// The entry `name` of a clouds.yaml; the only one if `name` is empty.
Result<OpenStackCloud> ParseClouds(std::string_view text, std::string_view source_name,
                                   std::string_view name);

// The same of a file; if `path` is empty, of $OS_CLIENT_CONFIG_FILE, ./clouds.yaml,
// ~/.config/openstack/clouds.yaml or /etc/openstack/clouds.yaml, the first that there is. An empty
// `name` is $OS_CLOUD.
Result<OpenStackCloud> ReadClouds(const std::filesystem::path& path, std::string_view name);

}  // namespace rudderfish
