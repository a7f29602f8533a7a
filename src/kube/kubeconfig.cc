// SPDX-License-Identifier: Apache-2.0
#include "kube/kubeconfig.h"

#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

#include "base/files.h"
#include "base/json.h"
#include "base/suggest.h"
#include "base/yaml.h"
#include "kube/base64.h"

namespace rudderfish::kube {
namespace {

constexpr std::string_view kExecExtension = "client.authentication.k8s.io/exec";

// One of the lists `clusters`, `users`, `contexts`.
struct NamedEntry {
  std::string name;
  YamlNode body;
  std::filesystem::path file;

  std::filesystem::path folder() const { return file.parent_path(); }
};

struct Merged {
  std::vector<NamedEntry> clusters, users, contexts;
  std::optional<YamlNode> current_context;
  std::string paths;  // For messages.

  bool empty() const { return clusters.empty() && users.empty() && contexts.empty(); }
};

const NamedEntry* Find(const std::vector<NamedEntry>& entries, std::string_view name) {
  for (const NamedEntry& entry : entries) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

std::string Names(const std::vector<NamedEntry>& entries) {
  std::string names;
  for (const NamedEntry& entry : entries) names += (names.empty() ? "" : ", ") + entry.name;
  return names.empty() ? "none" : names;
}

Result<void> AddEntries(YamlMap* top, std::string_view list, std::string_view body,
                        const std::filesystem::path& file, std::vector<NamedEntry>* entries) {
  TRY_ASSIGN(const std::vector<YamlNode> nodes, top->OptionalList(list));
  std::set<std::string> names;  // Of this file. kubectl refuses two entries of one name there.
  for (const YamlNode& node : nodes) {
    TRY_ASSIGN(YamlMap map, node.AsMap());
    TRY_ASSIGN(std::string name, map.RequiredString("name"));
    if (!names.insert(name).second)
      return node.Refuse(fmt::format("`{}` has two entries with the name \"{}\"", list, name));
    const YamlNode content = map.Optional(body).value_or(YamlNode());
    if (!content.IsNull() && !content.IsMap()) return content.Expected("a map");
    if (Find(*entries, name) == nullptr) entries->push_back({std::move(name), content, file});
  }
  return {};
}

// Without the empty documents at its end, as kubectl reads it; empty: there are only comments.
std::string_view WithoutEmptyEnd(std::string_view text) {
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t end = rest.find_last_not_of("\r\n");
    if (end == std::string_view::npos) return {};
    const size_t before = rest.find_last_of('\n', end);
    const size_t begin = before == std::string_view::npos ? 0 : before + 1;
    const std::string_view line = rest.substr(begin, end + 1 - begin);
    const size_t first = line.find_first_not_of(" \t\r");
    const bool is_mark = line.starts_with("---") || line.starts_with("...");
    const bool ends_document =
        is_mark && line.find_first_not_of(" \t\r", 3) == std::string_view::npos;
    if (!ends_document && first != std::string_view::npos && line[first] != '#') return text;
    rest = rest.substr(0, begin);
    if (ends_document) text = rest;
  }
  return {};
}

Result<void> Add(const KubeconfigText& file, Merged* merged) {
  merged->paths += (merged->paths.empty() ? "" : ", ") + file.path.string();
  const std::string text(WithoutEmptyEnd(file.text));
  if (text.empty()) return {};
  TRY_ASSIGN(const YamlNode root, ParseYaml(text, file.path.string()));
  if (root.IsNull()) return {};
  TRY_ASSIGN(YamlMap top, root.AsMap());
  TRY_ASSIGN(const std::string kind, top.OptionalString("kind", "Config"));
  if (kind != "Config") return root.Refuse("this is no kubeconfig: its kind is not Config");
  TRY(AddEntries(&top, "clusters", "cluster", file.path, &merged->clusters));
  TRY(AddEntries(&top, "users", "user", file.path, &merged->users));
  TRY(AddEntries(&top, "contexts", "context", file.path, &merged->contexts));
  if (const auto current = top.Optional("current-context"); current && !merged->current_context) {
    TRY_ASSIGN(const std::string name, current->AsString());
    if (!name.empty()) merged->current_context = current;
  }
  return {};
}

std::filesystem::path Resolve(const std::filesystem::path& folder, const std::string& path) {
  return path.empty() || path.front() == '/' ? std::filesystem::path(path) : folder / path;
}

// KEY-data, which goes before KEY, a file.
Result<PemSource> ReadPem(YamlMap* map, const std::string& key,
                          const std::filesystem::path& folder) {
  PemSource pem;
  if (const auto node = map->Optional(key + "-data")) {
    TRY_ASSIGN(const std::string encoded, node->AsString());
    auto decoded = DecodeBase64(encoded);
    if (!decoded) return node->Refuse("this is not base64");
    pem.text = *std::move(decoded);
  }
  TRY_ASSIGN(const std::string path, map->OptionalString(key, ""));
  if (pem.text.empty()) pem.file = Resolve(folder, path);
  return pem;
}

Json ToJson(const YamlNode& node) {
  if (const auto list = node.AsList()) {
    Json array = Json::array();
    for (const YamlNode& item : *list) array.push_back(ToJson(item));
    return array;
  }
  if (auto map = node.AsMap()) {
    Json object = Json::object();
    for (const auto& [key, value] : map->Entries()) object[key] = ToJson(value);
    return object;
  }
  if (node.IsNull()) return nullptr;
  if (const auto flag = node.AsBool()) return *flag;
  if (const auto number = node.AsInt()) return *number;
  return node.AsString().value_or("");
}

// What ExecCredential.spec.cluster says: the server, how it is trusted, and what the kubeconfig
// keeps for the plugin.
Result<std::string> ClusterForPlugin(const NamedEntry& entry, const ClusterAccess& access) {
  TRY_ASSIGN(YamlMap map, entry.body.AsMap());
  Json cluster = {{"server", access.server}};
  if (!access.tls_server_name.empty()) cluster["tls-server-name"] = access.tls_server_name;
  if (access.certificate_check == ServerCertificate::kAccepted)
    cluster["insecure-skip-tls-verify"] = true;
  if (!access.proxy_url.empty()) cluster["proxy-url"] = access.proxy_url;
  if (const auto data = map.Optional("certificate-authority-data"))
    cluster["certificate-authority-data"] = data->AsString().value_or("");
  TRY_ASSIGN(const std::vector<YamlNode> extensions, map.OptionalList("extensions"));
  for (const YamlNode& node : extensions) {
    TRY_ASSIGN(YamlMap extension, node.AsMap());
    TRY_ASSIGN(const std::string name, extension.OptionalString("name", ""));
    const auto content = extension.Optional("extension");
    if (name == kExecExtension && content) cluster["config"] = ToJson(*content);
  }
  return cluster.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<void> ReadCluster(const NamedEntry& entry, ClusterAccess* access) {
  if (entry.body.IsNull()) return Invalid("cluster {} says no server", entry.name);
  TRY_ASSIGN(YamlMap map, entry.body.AsMap());
  TRY_ASSIGN(const YamlNode server, map.Required("server"));
  TRY_ASSIGN(access->server, server.AsString());
  TRY_ASSIGN(access->authority, ReadPem(&map, "certificate-authority", entry.folder()));
  TRY_ASSIGN(access->tls_server_name, map.OptionalString("tls-server-name", ""));
  TRY_ASSIGN(access->proxy_url, map.OptionalString("proxy-url", ""));
  if (const auto insecure = map.Optional("insecure-skip-tls-verify")) {
    TRY_ASSIGN(const bool accepts, insecure->AsBool());
    if (accepts && !access->authority.empty())
      return insecure->Refuse("a certificate authority has no use when nothing is verified");
    if (accepts) access->certificate_check = ServerCertificate::kAccepted;
  }
  while (access->server.ends_with('/') && !access->server.ends_with("://"))
    access->server.pop_back();
  if (access->server.find("://") == std::string::npos) {
    const bool trusts =
        !access->authority.empty() || access->certificate_check == ServerCertificate::kAccepted;
    access->server = (trusts ? "https://" : "http://") + access->server;
  }
  const std::string_view scheme(access->server.data(), access->server.find("://"));
  const bool has_host = access->server.size() > scheme.size() + 3;
  if ((scheme != "https" && scheme != "http") || !has_host ||
      access->server.find_first_of(" \t\r\n?#@") != std::string::npos) {
    return server.Refuse("expected https://HOST[:PORT][/PREFIX]");
  }
  return {};
}

Result<ExecPlugin> ReadExec(const YamlNode& node, const std::filesystem::path& folder) {
  TRY_ASSIGN(YamlMap map, node.AsMap());
  ExecPlugin plugin;
  TRY_ASSIGN(const YamlNode version, map.Required("apiVersion"));
  TRY_ASSIGN(plugin.api_version, version.AsString());
  if (plugin.api_version != "client.authentication.k8s.io/v1" &&
      plugin.api_version != "client.authentication.k8s.io/v1beta1") {
    return version.Refuse("expected client.authentication.k8s.io/v1 or /v1beta1");
  }
  TRY_ASSIGN(plugin.command, map.RequiredString("command"));
  if (plugin.command.empty()) return node.Refuse("the plugin has no command");
  if (plugin.command.find('/') != std::string::npos)
    plugin.command = Resolve(folder, plugin.command).string();
  TRY_ASSIGN(const std::vector<YamlNode> arguments, map.OptionalList("args"));
  for (const YamlNode& argument : arguments) {
    TRY_ASSIGN(std::string text, argument.AsString());
    plugin.arguments.push_back(std::move(text));
  }
  TRY_ASSIGN(const std::vector<YamlNode> variables, map.OptionalList("env"));
  for (const YamlNode& variable : variables) {
    TRY_ASSIGN(YamlMap pair, variable.AsMap());
    TRY_ASSIGN(std::string name, pair.RequiredString("name"));
    TRY_ASSIGN(std::string value, pair.OptionalString("value", ""));
    plugin.environment.emplace_back(std::move(name), std::move(value));
  }
  TRY_ASSIGN(plugin.install_hint, map.OptionalString("installHint", ""));
  TRY_ASSIGN(plugin.wants_cluster, map.OptionalBool("provideClusterInfo", false));
  if (const auto mode = map.Optional("interactiveMode")) {
    TRY_ASSIGN(const std::string text, mode->AsString());
    if (text == "Always") return mode->Refuse("a plugin that asks questions cannot be used here");
  }
  return plugin;
}

// kubectl has one provider left.
Result<void> ReadProvider(const YamlNode& node, const NamedEntry& user, ClusterAccess* access) {
  if (node.IsNull()) return {};
  TRY_ASSIGN(YamlMap map, node.AsMap());
  TRY_ASSIGN(const std::string name, map.RequiredString("name"));
  if (name != "oidc") {
    return node.Refuse(
        fmt::format("the authentication provider {} was removed in Kubernetes 1.26; use an exec "
                    "plugin",
                    name));
  }
  OidcProvider provider{.file = user.file, .user = user.name};
  if (const auto config = map.Optional("config")) {
    TRY_ASSIGN(YamlMap values, config->AsMap());
    TRY_ASSIGN(provider.issuer, values.OptionalString("idp-issuer-url", ""));
    TRY_ASSIGN(provider.client_id, values.OptionalString("client-id", ""));
    TRY_ASSIGN(provider.client_secret, values.OptionalString("client-secret", ""));
    TRY_ASSIGN(provider.id_token, values.OptionalString("id-token", ""));
    TRY_ASSIGN(provider.refresh_token, values.OptionalString("refresh-token", ""));
    TRY_ASSIGN(provider.authority, ReadPem(&values, "idp-certificate-authority", user.folder()));
  }
  if (provider.id_token.empty() && provider.refresh_token.empty())
    return node.Refuse("the provider oidc has no id-token and no refresh-token; log in again");
  access->oidc = std::move(provider);
  return {};
}

Result<void> ReadUser(const NamedEntry& entry, ClusterAccess* access) {
  if (entry.body.IsNull()) return {};
  TRY_ASSIGN(YamlMap map, entry.body.AsMap());
  for (const char* gone : {"username", "password"}) {
    const auto node = map.Optional(gone);
    if (!node || node->IsNull()) continue;
    TRY_ASSIGN(const std::string value, node->AsString());
    if (!value.empty())
      return node->Refuse("API servers have no basic authentication since Kubernetes 1.19");
  }
  TRY_ASSIGN(access->certificate, ReadPem(&map, "client-certificate", entry.folder()));
  TRY_ASSIGN(access->key, ReadPem(&map, "client-key", entry.folder()));
  if (access->certificate.empty() != access->key.empty()) {
    return entry.body.Refuse(access->key.empty() ? "a client-certificate without a client-key"
                                                 : "a client-key without a client-certificate");
  }
  TRY_ASSIGN(access->token, map.OptionalString("token", ""));
  TRY_ASSIGN(const std::string token_file, map.OptionalString("tokenFile", ""));
  access->token_file = Resolve(entry.folder(), token_file);
  if (const auto provider = map.Optional("auth-provider"))
    TRY(ReadProvider(*provider, entry, access));
  if (const auto exec = map.Optional("exec")) {
    if (access->oidc) return exec->Refuse("exec and auth-provider cannot be used together");
    TRY_ASSIGN(access->exec, ReadExec(*exec, entry.folder()));
  }
  TRY_ASSIGN(access->as_user, map.OptionalString("as", ""));
  TRY_ASSIGN(access->as_uid, map.OptionalString("as-uid", ""));
  TRY_ASSIGN(const std::vector<YamlNode> groups, map.OptionalList("as-groups"));
  for (const YamlNode& group : groups) {
    TRY_ASSIGN(std::string name, group.AsString());
    access->as_groups.push_back(std::move(name));
  }
  // They become lines of a header.
  std::string id_token = access->oidc ? access->oidc->id_token : "";
  for (std::string* value : {&access->token, &id_token, &access->as_user, &access->as_uid}) {
    if (value->find_first_of("\r\n") != std::string::npos)
      return entry.body.Refuse("a token or a name to act as has more than one line");
  }
  for (const std::string& group : access->as_groups) {
    if (group.find_first_of("\r\n") != std::string::npos)
      return entry.body.Refuse("a group to act as has more than one line");
  }
  return {};
}

Result<const NamedEntry*> ChosenContext(const Merged& merged, const KubeconfigChoice& choice) {
  if (choice.context.empty() && !merged.current_context) {
    return Invalid("{}: no current-context is set; choose one with --context: {}", merged.paths,
                   Names(merged.contexts));
  }
  const std::string name =
      choice.context.empty() ? merged.current_context->AsString().value_or("") : choice.context;
  if (const NamedEntry* entry = Find(merged.contexts, name)) return entry;
  const std::string there = fmt::format("no context \"{}\" in {}; there are: {}", name,
                                        merged.paths, Names(merged.contexts));
  if (choice.context.empty()) return merged.current_context->Refuse(there);
  return Invalid("--context: {}", there);
}

Result<ClusterAccess> Choose(const Merged& merged, const KubeconfigChoice& choice) {
  TRY_ASSIGN(const NamedEntry* const context, ChosenContext(merged, choice));
  if (context->body.IsNull())
    return Invalid("{}: context \"{}\" names no cluster", merged.paths, context->name);
  TRY_ASSIGN(YamlMap map, context->body.AsMap());
  ClusterAccess access;
  access.origin = fmt::format("context \"{}\" of {}", context->name, merged.paths);
  TRY_ASSIGN(const YamlNode cluster_name, map.Required("cluster"));
  TRY_ASSIGN(const std::string cluster_text, cluster_name.AsString());
  const NamedEntry* cluster = Find(merged.clusters, cluster_text);
  if (cluster == nullptr) {
    return cluster_name.Refuse(fmt::format("no cluster \"{}\" in {}; there are: {}", cluster_text,
                                           merged.paths, Names(merged.clusters)));
  }
  TRY(ReadCluster(*cluster, &access));
  if (const auto user_name = map.Optional("user")) {
    TRY_ASSIGN(const std::string user_text, user_name->AsString());
    const NamedEntry* user = Find(merged.users, user_text);
    if (user == nullptr && !user_text.empty()) {
      return user_name->Refuse(fmt::format("no user \"{}\" in {}; there are: {}", user_text,
                                           merged.paths, Names(merged.users)));
    }
    if (user != nullptr) TRY(ReadUser(*user, &access));
  }
  if (access.exec && access.exec->wants_cluster) {
    TRY_ASSIGN(access.exec->cluster_as_json, ClusterForPlugin(*cluster, access));
  }
  TRY_ASSIGN(access.name_space, map.OptionalString("namespace", ""));
  if (access.name_space.empty()) access.name_space = "default";
  if (!choice.name_space.empty()) access.name_space = choice.name_space;
  return access;
}

// A plugin is told the authority itself, not the file it stands in.
Result<ClusterAccess> ChooseAndRead(const Merged& merged, const KubeconfigChoice& choice) {
  TRY_ASSIGN(ClusterAccess access, Choose(merged, choice));
  if (!access.exec || !access.exec->wants_cluster || access.authority.file.empty()) return access;
  TRY_ASSIGN(const std::string authority, ReadFile(access.authority.file));
  TRY_ASSIGN(Json cluster, ParseJson(access.exec->cluster_as_json, "cluster"));
  cluster["certificate-authority-data"] = EncodeBase64(authority);
  access.exec->cluster_as_json = cluster.dump(-1, ' ', false, Json::error_handler_t::replace);
  return access;
}

std::optional<ClusterAccess> InCluster(const KubeconfigChoice& choice,
                                       const KubeEnvironment& environment) {
  const std::filesystem::path token = environment.service_account / "token";
  std::error_code error;
  if (environment.service_host.empty() || environment.service_port.empty() ||
      !std::filesystem::exists(token, error)) {
    return std::nullopt;
  }
  ClusterAccess access;
  access.origin = "the ServiceAccount of this pod";
  const bool is_ipv6 = environment.service_host.find(':') != std::string::npos;
  const std::string host =
      is_ipv6 ? "[" + environment.service_host + "]" : environment.service_host;
  access.server = fmt::format("https://{}:{}", host, environment.service_port);
  access.authority.file = environment.service_account / "ca.crt";
  access.token_file = token;
  access.name_space = choice.name_space;
  if (access.name_space.empty()) {
    auto name = ReadFile(environment.service_account / "namespace");
    if (name) access.name_space = name->substr(0, name->find_first_of(" \r\n"));
  }
  if (access.name_space.empty()) access.name_space = "default";
  return access;
}

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The files kubectl would read; those of a list need not exist.
std::vector<std::filesystem::path> Candidates(const KubeEnvironment& environment) {
  std::vector<std::filesystem::path> paths;
  if (environment.kubeconfig.empty()) {
    if (!environment.home.empty())
      paths.push_back(std::filesystem::path(environment.home) / ".kube" / "config");
    return paths;
  }
  std::string_view rest = environment.kubeconfig;
  while (!rest.empty()) {
    const std::string_view path = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(rest.size(), path.size() + 1));
    if (!path.empty()) paths.emplace_back(path);
  }
  return paths;
}

}  // namespace

KubeEnvironment KubeEnvironment::OfProcess() {
  KubeEnvironment environment;
  environment.kubeconfig = Variable("KUBECONFIG");
  environment.home = Variable("HOME");
  environment.service_host = Variable("KUBERNETES_SERVICE_HOST");
  environment.service_port = Variable("KUBERNETES_SERVICE_PORT");
  return environment;
}

Result<ClusterAccess> ParseKubeconfigs(const std::vector<KubeconfigText>& files,
                                       const KubeconfigChoice& choice) {
  Merged merged;
  for (const KubeconfigText& file : files) TRY(Add(file, &merged));
  return Choose(merged, choice);
}

Result<ClusterAccess> FindCluster(const KubeconfigChoice& choice,
                                  const KubeEnvironment& environment) {
  Merged merged;
  if (!choice.kubeconfig.empty()) {
    TRY_ASSIGN(std::string text, ReadFile(choice.kubeconfig));
    TRY(Add({std::filesystem::absolute(choice.kubeconfig), std::move(text)}, &merged));
    return ChooseAndRead(merged, choice);
  }
  std::string tried;
  for (const std::filesystem::path& path : Candidates(environment)) {
    tried += (tried.empty() ? "" : ", ") + path.string();
    auto text = ReadFile(path);
    if (!text && text.error().code == ErrorCode::kNotFound) continue;
    if (!text) return tl::unexpected(std::move(text).error());
    TRY(Add({std::filesystem::absolute(path), *std::move(text)}, &merged));
  }
  if (!merged.empty()) return ChooseAndRead(merged, choice);
  if (choice.context.empty()) {
    if (auto access = InCluster(choice, environment)) return *std::move(access);
  }
  return Fail(ErrorCode::kNotFound,
              "no cluster: no kubeconfig with a cluster at {}, and this is no pod with a "
              "ServiceAccount; name one with --kubeconfig",
              tried.empty() ? "$KUBECONFIG or ~/.kube/config" : tried);
}

Result<OidcProvider> ReadOidcAgain(const OidcProvider& provider) {
  TRY_ASSIGN(std::string text, ReadFile(provider.file));
  Merged merged;
  TRY(Add({provider.file, std::move(text)}, &merged));
  ClusterAccess access;
  if (const NamedEntry* user = Find(merged.users, provider.user)) TRY(ReadUser(*user, &access));
  if (access.oidc) return *std::move(access.oidc);
  return Fail(ErrorCode::kNotFound, "{}: the user {} has no auth-provider oidc any more",
              provider.file.string(), provider.user);
}

}  // namespace rudderfish::kube
