// SPDX-License-Identifier: Apache-2.0
#include "run/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <system_error>

#include "base/files.h"
#include "base/units.h"
#include "cluster/task_kind.h"
#include "control/sqlite_database.h"
#include "net/listen_address.h"
#include "policy/registry.h"
#include "scenario/application_file.h"

namespace rudderfish {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFormat = "config/v1";
constexpr double kDayMs = 86'400'000;
constexpr double kLongestDurationMs = 3650 * kDayMs;
constexpr size_t kLongestSocketPath = 107;  // Of sockaddr_un.
constexpr int kMostApplications = 100;
constexpr int kMostMoves = 100'000;
constexpr double kMoveTimeoutMsMin = 10'000;
constexpr double kShortestWindowMs = 60'000;
constexpr int kMovesAtOnceMax = 100;
constexpr double kLiveStalenessMsMin = 2000;  // Watches prove themselves once a second at most.
constexpr double kLeaseMsMin = 2000;
constexpr double kLeaseMsMax = 600'000;

// As ParseDurationMs, and days.
Result<double> DurationMs(std::string_view text) {
  if (text.ends_with('d')) {
    TRY_ASSIGN(const double hours,
               ParseDurationMs(fmt::format("{}h", text.substr(0, text.size() - 1))));
    return hours * 24;
  }
  return ParseDurationMs(text);
}

// From `low` to ten years.
Result<std::chrono::nanoseconds> DurationOf(const YamlNode& node, double low_ms) {
  TRY_ASSIGN(const std::string text, node.AsString());
  const Result<double> ms = DurationMs(text);
  if (!ms) return node.Refuse(ms.error().message);
  if (*ms < low_ms || *ms > kLongestDurationMs) {
    return node.Expected(fmt::format("from {}ms to 3650d", low_ms));
  }
  return std::chrono::nanoseconds(static_cast<int64_t>(*ms * 1e6));
}

template <class Duration>
Result<void> ReadDuration(YamlMap* map, std::string_view key, double low_ms, Duration* duration) {
  const std::optional<YamlNode> node = map->Optional(key);
  if (!node) return {};
  TRY_ASSIGN(const std::chrono::nanoseconds read, DurationOf(*node, low_ms));
  *duration = std::chrono::duration_cast<Duration>(read);
  return {};
}

Result<std::string> TextOf(const YamlNode& node) {
  TRY_ASSIGN(std::string text, node.AsString());
  if (text.empty() || text.size() > 4096) return node.Expected("1 to 4096 letters");
  return text;
}

class ConfigReader {
 public:
  explicit ConfigReader(const fs::path& path) : folder_(path.parent_path()) {
    config_.path = path;
    config_.journal.path = folder_ / kJournalName;
  }

  Result<Config> Read(const YamlNode& root) {
    if (root.IsNull()) return root.Refuse("expected a configuration, found an empty file");
    TRY_ASSIGN(YamlMap map, root.AsMap());
    TRY_ASSIGN(const YamlNode format, map.Required("rudderfish"));
    TRY_ASSIGN(const std::string written, format.AsString());
    if (written != kFormat)
      return format.Expected(fmt::format("{}, the format of this version", kFormat));
    if (const auto node = map.Optional("cluster")) TRY(ReadCluster(*node));
    if (const auto node = map.Optional("scope")) TRY(ReadScope(*node));
    if (const auto node = map.Optional("decisions")) TRY(ReadDecisions(*node));
    if (const auto node = map.Optional("extender")) TRY(ReadExtender(*node));
    TRY(CheckDecides(&map));
    TRY(RefuseWhatNothingReads(&map));
    TRY(ReadApplications(&map));
    config_.signals = map.Optional("signals").value_or(YamlNode());
    if (const auto node = map.Optional("traces")) TRY(ReadTraces(*node));
    if (const auto node = map.Optional("journal")) TRY(ReadJournal(*node));
    if (const auto node = map.Optional("server")) TRY(ReadServer(*node));
    if (const auto node = map.Optional("control")) TRY(ReadControl(*node));
    if (const auto node = map.Optional("leader_election")) TRY(ReadLeaderElection(*node));
    TRY(map.Finish());
    if (config_.server.socket.empty()) config_.server.socket = SocketBeside(config_.journal.path);
    return std::move(config_);
  }

 private:
  Result<fs::path> PathOf(const YamlNode& node) const {
    TRY_ASSIGN(const std::string text, TextOf(node));
    return folder_ / text;
  }

  Result<void> ReadCluster(const YamlNode& node) {
    TRY_ASSIGN(YamlMap map, node.AsMap());
    ClusterConfig& cluster = config_.cluster;
    const std::optional<YamlNode> scenario = map.Optional("scenario");
    if (scenario) {
      TRY_ASSIGN(cluster.scenario, PathOf(*scenario));
      TRY_ASSIGN(const int64_t seed,
                 map.OptionalInt("seed", 0, std::numeric_limits<int64_t>::max(), 1));
      cluster.seed = static_cast<uint64_t>(seed);
      TRY(ReadDuration(&map, "drift", 1, &cluster.drift));
    } else {
      if (const auto file = map.Optional("kubeconfig")) {
        TRY_ASSIGN(cluster.kubeconfig, PathOf(*file));
      }
      if (const auto context = map.Optional("context")) {
        TRY_ASSIGN(cluster.context, TextOf(*context));
      }
    }
    TRY(ReadDuration(&map, "staleness", cluster.is_simulated() ? 10 : kLiveStalenessMsMin,
                     &config_.staleness));
    return map.Finish();
  }

  Result<void> ReadScope(const YamlNode& node) {
    TRY_ASSIGN(YamlMap map, node.AsMap());
    TRY_ASSIGN(const std::vector<YamlNode> namespaces, map.OptionalList("namespaces"));
    for (const YamlNode& one : namespaces) {
      TRY_ASSIGN(std::string name, TextOf(one));
      config_.scope.namespaces.push_back(std::move(name));
    }
    if (const auto pods = map.Optional("pods")) {
      TRY_ASSIGN(config_.scope.pods, ParseLabelSelector(*pods));
    }
    return map.Finish();
  }

  Result<void> ReadDecisions(const YamlNode& node) {
    TRY_ASSIGN(YamlMap kinds, node.AsMap());
    if (const auto placement = kinds.Optional("placement")) {
      TRY(RefusePendingPods(*placement));
      TRY_ASSIGN(config_.placement, ParsePlacement(*placement, folder_));
    }
    if (const auto migration = kinds.Optional("migration")) {
      TRY_ASSIGN(config_.migration, ReadMigration(*migration));
    }
    if (const auto routing = kinds.Optional("routing")) {
      if (config_.cluster.is_simulated())
        return routing->Refuse("a simulated cluster has no routes: remove it");
      TRY_ASSIGN(config_.routing, ParseRouting(*routing, folder_));
    }
    const Result<void> finished = kinds.Finish();
    if (finished) return {};
    return Invalid("{} (the kinds of decision are {})", finished.error().message,
                   fmt::join(kDecisionKinds, ", "));
  }

  Result<void> CheckDecides(YamlMap* map) const {
    if (config_.migration || config_.routing || config_.places()) return {};
    const std::string kinds =
        fmt::format("name at least one kind of decision ({}), or add an `extender`",
                    fmt::join(kDecisionKinds, ", "));
    const Result<YamlNode> named = map->Required("decisions");  // Suggests what is misspelt.
    if (!named) return Invalid("{}; {}", named.error().message, kinds);
    return named->Refuse(kinds);
  }

  Result<void> ReadExtender(const YamlNode& node) {
    TRY(RefusePendingPods(node));
    TRY_ASSIGN(
        config_.extender,
        ParseExtender(node, folder_, config_.placement ? &config_.placement->choice : nullptr));
    return {};
  }

  Result<void> RefusePendingPods(const YamlNode& node) const {
    if (!config_.cluster.is_simulated()) return {};
    return node.Refuse("a simulated cluster has no pending pods: remove it");
  }

  // A section that has no effect would only look as if it had one.
  Result<void> RefuseWhatNothingReads(YamlMap* map) const {
    if (config_.migration) return {};
    for (const char* key : {"scope", "applications", "signals", "traces"}) {
      if (config_.routing && key == std::string_view("signals")) continue;
      if (const auto node = map->Optional(key)) {
        return node->Refuse(fmt::format(
            "only `decisions.migration` reads `{}`: remove it, or add `migration` to `decisions`",
            key));
      }
    }
    return {};
  }

  Result<void> ReadTraces(const YamlNode& node) {
    if (config_.cluster.is_simulated())
      return node.Refuse("a simulated cluster has no traces: remove it");
    TRY_ASSIGN(config_.traces, ParseTraces(node));
    return {};
  }

  Result<void> ReadApplications(YamlMap* map) {
    if (!config_.migration) return {};
    TRY_ASSIGN(const std::vector<YamlNode> files, map->OptionalList("applications"));
    if (config_.cluster.is_simulated()) {
      if (files.empty()) return {};
      return files[0].Refuse("a scenario is its own application: remove `applications`");
    }
    const std::string expected =
        fmt::format("1 to {} files that say what the API server does not know", kMostApplications);
    const Result<YamlNode> named = map->Required("applications");  // Suggests what is misspelt.
    if (!named) {
      return Invalid("{} ({}; `decisions.migration` reads them)", named.error().message, expected);
    }
    if (files.empty() || files.size() > kMostApplications) return named->Expected(expected);
    for (const YamlNode& file : files) {
      TRY_ASSIGN(fs::path path, PathOf(file));
      config_.applications.push_back(std::move(path));
    }
    return {};
  }

  Result<MigrationConfig> ReadMigration(const YamlNode& node) const {
    MigrationConfig migration;
    TRY_ASSIGN(YamlMap map, node.AsMap());
    if (const auto mode = map.Optional("mode")) {
      TRY_ASSIGN(migration.mode, ReadMode(*mode));
    }
    if (const auto policy = map.Optional("policy")) {
      TRY_ASSIGN(migration.policy, PolicyOf(*policy));
      migration.policy_node = *policy;
    }
    if (const auto baseline = map.Optional("baseline")) {
      TRY_ASSIGN(migration.baseline, PolicyOf(*baseline));
      migration.baseline_node = *baseline;
    }
    if (const auto objective = map.Optional("objective")) {
      TRY_ASSIGN(migration.objective, ParseMigrationOptions(*objective));
      migration.budgets.moves_per_plan = migration.objective->max_steps;
    }
    if (const auto budgets = map.Optional("budgets")) {
      TRY(ReadBudgets(*budgets, &migration));
    }
    if (const auto canary = map.Optional("canary")) {
      TRY_ASSIGN(migration.canary, ReadCanary(*canary));
    }
    if (const auto moves = map.Optional("moves")) {
      TRY(ReadMoves(*moves, &migration.moves));
    }
    if (const auto correction = map.Optional("correction")) {
      TRY_ASSIGN(migration.correction, ReadCorrection(*correction));
    }
    if (const auto evacuate = map.Optional("evacuate")) {
      TRY_ASSIGN(migration.evacuate, ReadEvacuate(*evacuate));
    }
    TRY(ReadDuration(&map, "interval", 10, &migration.interval));
    TRY(ReadDuration(&map, "rest", 10, &migration.rest));
    TRY(map.Finish());
    return migration;
  }

  Result<Correction> ReadCorrection(const YamlNode& node) const {
    constexpr std::string_view kExpected = "show or apply";
    TRY_ASSIGN(const std::string text, TextOf(node));
    if (text == "show") return Correction::kShow;
    if (text == "apply") return Correction::kApply;
    return node.Expected(kExpected);
  }

  static Result<Evacuate> ReadEvacuate(const YamlNode& node) {
    TRY_ASSIGN(const std::string text, TextOf(node));
    if (text == "none") return Evacuate::kNone;
    if (text == "draining") return Evacuate::kDraining;
    if (text == "cordoned") return Evacuate::kCordoned;
    return node.Expected("none, draining or cordoned");
  }

  // A run folder or a checkpoint is beside the file.
  Result<std::string> PolicyOf(const YamlNode& node) const {
    TRY_ASSIGN(const std::string text, TextOf(node));
    Result<PolicySpec> named = ParsePolicySpec(text);
    if (!named) return node.Refuse(named.error().message);
    const PolicySpec spec = WithinFolder(*std::move(named), folder_);
    if (const Result<void> known = CheckPolicy(spec, TaskKind::kMove); !known)
      return node.Refuse(known.error().message);
    return spec.text();
  }

  static Result<void> ReadMoves(const YamlNode& node, MoveDriver::Options* moves) {
    TRY_ASSIGN(YamlMap map, node.AsMap());
    TRY(ReadDuration(&map, "settle", 0, &moves->move.settle));
    TRY(ReadDuration(&map, "timeout", kMoveTimeoutMsMin, &moves->limit));
    TRY_ASSIGN(const int64_t at_once,
               map.OptionalInt("at_once", 1, kMovesAtOnceMax, moves->at_once));
    moves->at_once = static_cast<int>(at_once);
    return map.Finish();
  }

  static Result<void> ReadHourlyMoves(const YamlNode& node, HourlyMoves* read) {
    TRY_ASSIGN(YamlMap map, node.AsMap());
    const std::pair<std::string_view, std::optional<int>*> limits[] = {
        {"application", &read->application},
        {"workload", &read->workload},
        {"namespace", &read->name_space},
        {"node", &read->node},
        {"cluster", &read->cluster}};
    for (const auto& [key, limit] : limits) {
      const auto value = map.Optional(key);
      if (!value) continue;
      TRY_ASSIGN(const int64_t moves, value->AsInt(0, kMostMoves));
      *limit = static_cast<int>(moves);
    }
    return map.Finish();
  }

  static Result<TimeWindow> WindowOf(const YamlNode& node) {
    TRY_ASSIGN(YamlMap map, node.AsMap());
    TRY_ASSIGN(const YamlNode schedule, map.Required("schedule"));
    TRY_ASSIGN(const std::string text, TextOf(schedule));
    Result<CronSchedule> read = CronSchedule::Parse(text);
    if (!read) return schedule.Refuse(read.error().message);
    TimeWindow window{.schedule = *read};
    TRY_ASSIGN(const YamlNode duration, map.Required("duration"));
    TRY_ASSIGN(const std::chrono::nanoseconds length, DurationOf(duration, kShortestWindowMs));
    window.duration = std::chrono::floor<std::chrono::minutes>(length);
    if (length > kLongestTimeWindow) return duration.Expected("at most 168h");
    TRY(map.Finish());
    return window;
  }

  static Result<void> ReadBudgets(const YamlNode& node, MigrationConfig* migration) {
    TRY_ASSIGN(YamlMap map, node.AsMap());
    GuardOptions& budgets = migration->budgets;
    TRY_ASSIGN(const int64_t moves,
               map.OptionalInt("moves_per_plan", 0, kMostMoves, budgets.moves_per_plan));
    budgets.moves_per_plan = static_cast<int>(moves);
    if (const auto hourly = map.Optional("moves_per_hour")) {
      TRY(ReadHourlyMoves(*hourly, &budgets.moves_per_hour));
    }
    TRY_ASSIGN(const std::vector<YamlNode> windows, map.OptionalList("windows"));
    for (const YamlNode& one : windows) {
      TRY_ASSIGN(TimeWindow window, WindowOf(one));
      migration->windows.push_back(window);
    }
    TRY(ReadDuration(&map, "horizon", 0, &budgets.horizon));
    TRY(ReadDuration(&map, "pod_cooldown", 0, &budgets.pod_cooldown));
    TRY(ReadDuration(&map, "return_cooldown", 0, &budgets.return_cooldown));
    if (const auto factor = map.Optional("benefit_factor")) {
      TRY_ASSIGN(const std::string text, factor->AsString());
      if (text == "none") {
        budgets.benefit_factor = std::nullopt;
      } else {
        TRY_ASSIGN(budgets.benefit_factor, factor->AsDouble(0, 1e6));
      }
    }
    return map.Finish();
  }

  Result<void> ReadJournal(const YamlNode& node) {
    TRY_ASSIGN(YamlMap map, node.AsMap());
    if (const auto path = map.Optional("path")) {
      TRY_ASSIGN(config_.journal.path, PathOf(*path));
    }
    TRY(ReadDuration(&map, "retention", 1000, &config_.journal.retention));
    if (const auto size = map.Optional("size")) {
      TRY_ASSIGN(const std::string text, size->AsString());
      const Result<int64_t> bytes = ParseMemoryBytes(text);
      if (!bytes) return size->Refuse(bytes.error().message);
      if (*bytes < kJournalSizeMin) return size->Expected("at least 1Mi");
      config_.journal.size_bytes = *bytes;
    }
    return map.Finish();
  }

  Result<void> ReadServer(const YamlNode& node) {
    TRY_ASSIGN(YamlMap map, node.AsMap());
    if (const auto listen = map.Optional("listen")) {
      TRY_ASSIGN(config_.server.listen, TextOf(*listen));
      if (!ParseListenAddress(config_.server.listen))
        return listen->Expected("IP:PORT, such as 127.0.0.1:9090");
    }
    if (const auto socket = map.Optional("socket")) {
      TRY_ASSIGN(config_.server.socket, PathOf(*socket));
      if (config_.server.socket.native().size() > kLongestSocketPath) {
        return socket->Expected(fmt::format("a path of at most {} letters", kLongestSocketPath));
      }
    }
    return map.Finish();
  }

  static Result<void> ReadObjectName(const YamlNode& node, std::string* name_space,
                                     std::string* name) {
    TRY_ASSIGN(const std::string text, TextOf(node));
    const size_t slash = text.find('/');
    const auto is_plain = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
    };
    const auto strange =
        std::count_if(text.begin(), text.end(), [&](char c) { return !is_plain(c); });
    if (slash == std::string::npos || strange != 1 || slash == 0 || slash + 1 == text.size()) {
      return node.Expected("NAMESPACE/NAME");
    }
    *name_space = text.substr(0, slash);
    *name = text.substr(slash + 1);
    return {};
  }

  Result<void> ReadControl(const YamlNode& node) {
    TRY_ASSIGN(YamlMap map, node.AsMap());
    if (const auto config_map = map.Optional("configmap")) {
      TRY(ReadObjectName(*config_map, &config_.control_namespace, &config_.control_name));
    }
    return map.Finish();
  }

  Result<void> ReadLeaderElection(const YamlNode& node) {
    if (config_.cluster.is_simulated()) {
      return node.Refuse("a simulated cluster has no Lease: remove it");
    }
    TRY_ASSIGN(YamlMap map, node.AsMap());
    LeaderElectionConfig& election = config_.leader_election;
    TRY_ASSIGN(const YamlNode lease, map.Required("lease"));
    TRY(ReadObjectName(lease, &election.lease_namespace, &election.lease_name));
    if (const auto duration = map.Optional("duration")) {
      TRY_ASSIGN(election.duration, DurationOf(*duration, kLeaseMsMin));
      if (election.duration > std::chrono::milliseconds(static_cast<int64_t>(kLeaseMsMax))) {
        return duration->Expected("from 2s to 10min");
      }
    }
    return map.Finish();
  }

  fs::path folder_;
  Config config_;
};

}  // namespace

Result<Config> ParseConfig(std::string_view text, const fs::path& path) {
  TRY_ASSIGN(const YamlNode root, ParseYaml(text, path.string()));
  return ConfigReader(path).Read(root);
}

fs::path SocketBeside(fs::path journal) { return journal.replace_extension(".sock"); }

Result<std::string> ReadConfigText(const fs::path& path) {
  Result<std::string> text = ReadFile(path);
  if (text || text.error().code != ErrorCode::kNotFound) return text;
  return Fail(ErrorCode::kNotFound,
              "{}: not found; name the configuration with -c FILE, or create one with `rudderfish "
              "init`",
              path.string());
}

Result<Config> LoadConfig(const fs::path& path) {
  TRY_ASSIGN(const std::string text, ReadConfigText(path));
  return ParseConfig(text, path);
}

std::string WhatNeedsARestart(const Config& before, const Config& after) {
  std::vector<std::string_view> parts;
  if (!(before.cluster == after.cluster)) parts.push_back("cluster");
  if (before.control_namespace != after.control_namespace ||
      before.control_name != after.control_name) {
    parts.push_back("control");
  }
  if (before.migration.has_value() != after.migration.has_value())
    parts.push_back("decisions.migration");
  if (before.routing.has_value() != after.routing.has_value() ||
      before.has_cluster() != after.has_cluster()) {
    parts.push_back("decisions.routing");
  }
  if (!(before.leader_election == after.leader_election)) parts.push_back("leader_election");
  // Of placement the mode can change.
  std::optional<PlacementConfig> placement = after.placement;
  if (placement && before.placement) placement->mode = before.placement->mode;
  if (before.placement != placement) {
    parts.push_back(before.placement && placement ? "decisions.placement (all but `mode`)"
                                                  : "decisions.placement");
  }
  if (before.extender != after.extender) parts.push_back("extender");
  if (!(before.journal == after.journal)) parts.push_back("journal");
  if (!(before.server == after.server)) parts.push_back("server");
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace rudderfish
