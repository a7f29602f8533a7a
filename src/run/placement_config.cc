// SPDX-License-Identifier: Apache-2.0
#include "run/placement_config.h"

#include <fmt/format.h>

#include <array>

#include "base/suggest.h"
#include "base/units.h"
#include "net/listen_address.h"

namespace rudderfish {
namespace {

constexpr int kMostBindings = 1024;
constexpr double kTimeoutMsMin = 10;
constexpr double kTimeoutMsMax = 5000;
constexpr double kCanaryMin = 0.01;
constexpr double kCanaryMax = 0.99;
constexpr double kSettleMsMin = 1000;
constexpr double kSettleMsMax = 3'600'000;
constexpr size_t kNameMax = 253;
constexpr double kStrangenessLimit = 1e9;
constexpr size_t kLabelMax = 317;  // A prefix, a slash, a name.

// A run folder or a checkpoint, which is beside the file, is read later.
enum class Kept { kInItself, kInAFile };

Kept KeptOf(const PolicySpec& spec) {
  return spec.path().empty() ? Kept::kInItself : Kept::kInAFile;
}

Result<Kept> ReadPolicy(const YamlNode& node, const std::filesystem::path& folder,
                        PolicyChoice* choice) {
  choice->policy_node = node;
  TRY_ASSIGN(const std::string text, node.AsString());
  Result<PolicySpec> parsed = ParsePolicySpec(text);
  if (!parsed) return node.Refuse(parsed.error().message);
  const PolicySpec spec = WithinFolder(*std::move(parsed), folder);
  if (const Result<void> known = CheckLivePolicy(spec); !known)
    return node.Refuse(known.error().message);
  choice->policy = spec.text();
  return KeptOf(spec);
}

// What `choice` holds before counts for what the file does not name.
Result<void> ReadChoice(YamlMap* map, const std::filesystem::path& folder, PolicyChoice* choice) {
  TRY_ASSIGN(const PolicySpec given, ParsePolicySpec(choice->policy));
  Kept kept = KeptOf(given);
  if (const auto policy = map->Optional("policy")) {
    TRY_ASSIGN(kept, ReadPolicy(*policy, folder, choice));
  }
  if (const auto objective = map->Optional("objective")) {
    choice->objective_node = *objective;
    TRY_ASSIGN(choice->objective, ParseObjective(*objective));
  }
  if (const auto label = map->Optional("node_type_label")) {
    TRY_ASSIGN(choice->type_label, label->AsString());
    if (choice->type_label.empty() || choice->type_label.size() > kLabelMax)
      return label->Expected("the key of a label of nodes");
  }
  if (const auto strangeness = map->Optional("strangeness_max")) {
    TRY_ASSIGN(choice->strangeness_max, strangeness->AsDouble(0, kStrangenessLimit));
  }
  if (kept == Kept::kInItself) TRY(LoadPolicy(*choice));
  return {};
}

// `range` is how a message puts the limits.
Result<void> ReadWithin(YamlMap* map, std::string_view key, double low_ms, double high_ms,
                        const char* range, std::chrono::nanoseconds* duration) {
  const std::optional<YamlNode> node = map->Optional(key);
  if (!node) return {};
  TRY_ASSIGN(const std::string text, node->AsString());
  const Result<double> ms = ParseDurationMs(text);
  if (!ms) return node->Refuse(ms.error().message);
  if (*ms < low_ms || *ms > high_ms) return node->Expected(range);
  *duration = std::chrono::nanoseconds(static_cast<int64_t>(*ms * 1e6));
  return {};
}

Result<void> ReadShare(YamlMap* map, std::string_view key, double* share) {
  const std::optional<YamlNode> node = map->Optional(key);
  if (!node) return {};
  TRY_ASSIGN(*share, node->AsDouble(0, 1));
  return {};
}

Result<void> ReadCompared(const YamlNode& node, PlacementConfig* config) {
  TRY_ASSIGN(const std::vector<YamlNode> names, node.AsList());
  config->compare.clear();
  for (const YamlNode& one : names) {
    TRY_ASSIGN(const std::string name, one.AsString());
    if (name.empty() || name.size() > kNameMax)
      return one.Expected("the name of a scheduler, as pods name it");
    if (name == config->scheduler_name)
      return one.Refuse(
          "that is our own name (`scheduler_name`): name schedulers whose choices ours "
          "are held against");
    config->compare.push_back(name);
  }
  if (config->compare.empty())
    return node.Refuse(
        "must not be empty: list at least one scheduler, such as [default-scheduler]");
  return {};
}

Result<std::string> ReadFileName(YamlMap* map, std::string_view key,
                                 const std::filesystem::path& folder) {
  TRY_ASSIGN(const YamlNode node, map->Required(key));
  TRY_ASSIGN(const std::string text, node.AsString());
  if (text.empty()) return node.Expected("a file");
  return (folder / text).string();
}

Result<ServerTlsFiles> ParseTls(const YamlNode& node, const std::filesystem::path& folder) {
  ServerTlsFiles files;
  TRY_ASSIGN(YamlMap map, node.AsMap());
  TRY_ASSIGN(files.certificate, ReadFileName(&map, "certificate", folder));
  TRY_ASSIGN(files.key, ReadFileName(&map, "key", folder));
  TRY_ASSIGN(files.client_ca, ReadFileName(&map, "client_ca", folder));
  TRY(map.Finish());
  return files;
}

}  // namespace

Result<Mode> ReadMode(const YamlNode& node) {
  TRY_ASSIGN(std::string text, node.AsString());
  if (text == "false") text = ModeName(Mode::kOff);
  const Result<Mode> mode = ModeNamed(text);
  return mode ? mode : node.Refuse(mode.error().message);
}

Result<double> ReadCanary(const YamlNode& node) { return node.AsDouble(kCanaryMin, kCanaryMax); }

Result<PlacementConfig> ParsePlacement(const YamlNode& node, const std::filesystem::path& folder) {
  PlacementConfig config;
  TRY_ASSIGN(YamlMap map, node.AsMap());
  if (const auto mode = map.Optional("mode")) {
    TRY_ASSIGN(config.mode, ReadMode(*mode));
  }
  if (const auto name = map.Optional("scheduler_name")) {
    TRY_ASSIGN(config.scheduler_name, name->AsString());
    if (config.scheduler_name.empty() || config.scheduler_name.size() > kNameMax)
      return name->Expected("the name by which pods ask for it (spec.schedulerName)");
    if (config.scheduler_name == "default-scheduler") {
      return name->Refuse(
          "default-scheduler is kube-scheduler's own name: two schedulers that serve one name "
          "would race for every pod");
    }
  }
  TRY(ReadChoice(&map, folder, &config.choice));
  if (const auto canary = map.Optional("canary")) {
    TRY_ASSIGN(config.canary, ReadCanary(*canary));
  }
  TRY(ReadWithin(&map, "settle", kSettleMsMin, kSettleMsMax, "from 1s to 1h", &config.settle));
  if (const auto budgets = map.Optional("budgets")) {
    TRY_ASSIGN(YamlMap limits, budgets->AsMap());
    TRY_ASSIGN(const int64_t bindings,
               limits.OptionalInt("bindings", 1, kMostBindings, config.bindings_max));
    config.bindings_max = static_cast<int>(bindings);
    TRY(limits.Finish());
  }
  if (const auto compare = map.Optional("compare")) TRY(ReadCompared(*compare, &config));
  if (const auto clusters = map.Optional("clusters")) {
    TRY_ASSIGN(config.clusters, ReadNamedClusters(*clusters, folder));
  }
  TRY(map.Finish());
  return config;
}

Result<ExtenderConfig> ParseExtender(const YamlNode& node, const std::filesystem::path& folder,
                                     const PolicyChoice* placement) {
  ExtenderConfig config;
  if (placement != nullptr) config.choice = *placement;
  TRY_ASSIGN(YamlMap map, node.AsMap());
  if (const auto listen = map.Optional("listen")) {
    TRY_ASSIGN(config.listen, listen->AsString());
    const Result<ListenAddress> address = ParseListenAddress(config.listen);
    if (!address || address->is_unix()) return listen->Expected("IP:PORT, such as 127.0.0.1:8888");
  }
  TRY(ReadChoice(&map, folder, &config.choice));
  if (placement != nullptr && !(config.choice == *placement)) {
    return node.Refuse(
        "with `decisions.placement`, the extender uses its policy and objective, because "
        "promotions depend "
        "on that policy's evidence; remove policy, objective, node_type_label and strangeness_max");
  }
  TRY_ASSIGN(const PolicySpec policy, ParsePolicySpec(config.choice.policy));
  if (policy.name == "lookahead") {
    return config.choice.policy_node.Refuse(
        fmt::format("policy `{}`: kube-scheduler asks an extender about one pod at a time, and "
                    "says nothing of those behind it; greedy goes by the same objective",
                    config.choice.policy));
  }
  TRY(ReadWithin(&map, "timeout", kTimeoutMsMin, kTimeoutMsMax, "from 10ms to 5s",
                 &config.timeout));
  if (const auto limits = map.Optional("hard_limits")) {
    TRY_ASSIGN(YamlMap shares, limits->AsMap());
    TRY(ReadShare(&shares, "cpu", &config.limits.cpu));
    TRY(ReadShare(&shares, "memory", &config.limits.memory));
    if (const auto latency = shares.Optional("latency")) {
      TRY_ASSIGN(config.limits.latency, latency->AsBool());
    }
    TRY(shares.Finish());
  }
  if (const auto tls = map.Optional("tls")) {
    TRY_ASSIGN(config.tls, ParseTls(*tls, folder));
  }
  TRY(map.Finish());
  return config;
}

Result<void> CheckTls(const ExtenderConfig& config) {
  if (!config.tls) return {};
  const auto tls = ServerTls::Load(*config.tls);
  if (!tls) return Fail(tls.error().code, "`extender.tls`: {}", tls.error().message);
  return {};
}

Result<LivePolicy> LoadPolicy(const PolicyChoice& choice) {
  Result<LivePolicy> policy = LivePolicy::Load({.policy = choice.policy,
                                                .objective = choice.objective,
                                                .type_label = choice.type_label,
                                                .strangeness_max = choice.strangeness_max});
  if (policy) return policy;
  const Error& error = policy.error();
  const bool is_objectives =
      error.code == ErrorCode::kConflict || error.message.starts_with("the objective");
  const YamlNode& blamed =
      is_objectives && choice.objective ? choice.objective_node : choice.policy_node;
  if (blamed.IsNull()) return policy;
  return blamed.Refuse(error.message);
}

}  // namespace rudderfish
