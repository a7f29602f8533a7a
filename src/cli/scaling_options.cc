// SPDX-License-Identifier: Apache-2.0
#include "cli/scaling_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/files.h"
#include "base/yaml.h"
#include "learn/run_folder.h"
#include "policy/neural.h"
#include "policy/neural_scaling.h"

namespace rudderfish {
namespace {

// hpa:FILE.yaml, mpc:FILE.yaml or static:FILE.yaml: of which kind; kNone for all else.
int CalibratedFileOf(std::string_view spec) {
  for (int kind = 0; kind < static_cast<int>(std::size(kCalibratedKinds)); ++kind) {
    const std::string_view name = kCalibratedKinds[kind];
    if (spec.ends_with(".yaml") && spec.starts_with(name) && spec[name.size()] == ':') return kind;
  }
  return kNone;
}

std::string FileWithin(const std::string& spec) { return spec.substr(spec.find(':') + 1); }

// The spec itself, or what the file that it names, kept among `files`, thinks best.
Result<std::string> SettingOf(const std::string& spec, const std::filesystem::path& scenario,
                              std::vector<CalibratedFile>* files) {
  const int kind = CalibratedFileOf(spec);
  if (kind == kNone) return spec;
  const std::string file = FileWithin(spec);
  TRY_ASSIGN(const Calibration calibration, ReadCalibration(file, scenario));
  const int found = static_cast<int>(calibration.kind());
  if (found != kind) {
    return Invalid("{}: has settings of {}, not of {}: {}:{}", file, kCalibratedKinds[found],
                   kCalibratedKinds[kind], kCalibratedKinds[found], file);
  }
  files->push_back({file, calibration.loads});
  return calibration.finalists[0].policy;
}

// The runs of a group: RUN:RUN, or the seeds of a folder. Others are one.
std::vector<std::string> MembersOf(const std::string& setting) {
  if (!IsScalingRun(setting.substr(0, setting.find(':')))) return {setting};
  std::vector<std::string> members;
  for (size_t at = 0; at <= setting.size();) {
    const size_t end = std::min(setting.find(':', at), setting.size());
    const std::string run = setting.substr(at, end - at);
    const int seeds = SeedFolders(run);
    if (seeds == 0) members.push_back(run);
    for (int number = 1; number <= seeds; ++number)
      members.push_back(RunPaths{run}.seed(number).folder.string());
    at = end + 1;
  }
  return members;
}

}  // namespace

Result<Calibration> ReadCalibration(const std::filesystem::path& path,
                                    const std::filesystem::path& scenario) {
  TRY_ASSIGN(const std::string text, ReadFile(path));
  TRY_ASSIGN(const YamlNode root, ParseYaml(text, path.string()));
  TRY_ASSIGN(Calibration calibration, ParseCalibration(root));
  TRY_ASSIGN(const std::string digest, DigestOfScenario(scenario));
  if (calibration.sha256 != digest) {
    return Fail(ErrorCode::kFailedPrecondition,
                "{}: was calibrated for the scenario {}, which was not as {} and its traces are "
                "now; calibrate again",
                path.string(), calibration.scenario, scenario.string());
  }
  return calibration;
}

Result<double> ViolationsOf(const Arguments& arguments, const Scenario& scenario) {
  if (!arguments.Has("violations")) return LateMaxOf(scenario);
  const std::string text = *arguments.Text("violations");
  const bool percent = text.ends_with('%');
  const char* end = text.data() + text.size() - (percent ? 1 : 0);
  double value = 0;
  const auto [last, error] = std::from_chars(text.data(), end, value);
  if (percent) value /= 100;
  if (error != std::errc{} || last != end || !(value >= kLeastLateMax && value <= kMostLateMax)) {
    return Invalid(
        "--violations: expected a share of all requests from 0.001% to 50%, such as 1% or 0.001, "
        "found \"{}\"",
        text);
  }
  return value;
}

Result<Scenario> LoadServedScenario(const std::filesystem::path& path,
                                    std::span<const YamlChange> changes) {
  TRY_ASSIGN(Scenario scenario, LoadScenario(path, changes));
  if (scenario.load == nullptr) {
    return Invalid("{}: has no `load`: say what requests come, and how pods serve them",
                   path.string());
  }
  return scenario;
}

Result<std::vector<int>> LoadsOf(const Arguments& arguments, const Load& load) {
  std::vector<int> positions;
  if (!arguments.Has("load")) {
    for (size_t i = 0; i < load.loads.size(); ++i) positions.push_back(static_cast<int>(i));
    return positions;
  }
  std::vector<std::string_view> known;
  for (const NamedTraffic& named : load.loads) known.push_back(named.name);
  TRY_ASSIGN(const std::vector<std::string> names, arguments.List("load"));
  for (const std::string& name : names) {
    TRY_ASSIGN(const int position, OfOption("load", ChoiceOf(name, known)));
    positions.push_back(position);
  }
  return positions;
}

ScalingRival RivalOf(std::span<const Calibration> calibrations) {
  const Calibration& first = calibrations[0];
  const bool is_kept = std::any_of(calibrations.begin(), calibrations.end(),
                                   [](const Calibration& one) { return one.keeps_limit(); });
  const double allowed =
      is_kept ? AllowedAgainst(first.finalists[0].violation_share, first.violations_max)
              : first.allowed();
  ScalingRival rival;
  for (const Calibration& calibration : calibrations) {
    CHECK(calibration.episodes == first.episodes && calibration.seed == first.seed);
    for (const CalibratedSetting& one : calibration.finalists) {
      const ScalingRecord record{one.core_hours, one.violation_share};
      if (!rival.policy.empty() && !record.IsBetterThan(rival.record, allowed)) continue;
      rival.policy = one.policy;
      rival.record = record;
    }
  }
  rival.episodes = first.episodes;
  rival.seed = first.seed;
  rival.allowed = allowed;
  return rival;
}

std::string UnkeptLimitText(const ScalingRival& rival, double violations_max) {
  if (rival.allowed <= violations_max) return "";
  return fmt::format(
      "no setting that was calibrated keeps late or failed requests within {:.4g} %; where the "
      "network does not either, {:.4g} % are allowed: what the autoscaler with the fewest has, and "
      "chance may add",
      100 * violations_max, 100 * rival.allowed);
}

std::vector<std::filesystem::path> ScalingFilesOf(const std::vector<std::string>& items) {
  std::vector<std::filesystem::path> files;
  for (const std::string& item : items) {
    const std::string setting = item.substr(item.find('=') + 1);
    if (CalibratedFileOf(setting) != kNone) files.emplace_back(FileWithin(setting));
    for (const std::string& member : MembersOf(setting)) {
      if (!IsScalingRun(member)) continue;
      const Result<std::filesystem::path> checkpoint = CheckpointOf(member);
      if (checkpoint.has_value()) files.push_back(*checkpoint);
    }
  }
  return files;
}

std::vector<std::string> UncalibratedNotes(const ScalingPolicies& policies, const Load& load,
                                           const std::vector<int>& loads) {
  std::vector<std::string> notes;
  for (const auto& [file, known] : policies.calibrated) {
    std::vector<std::string_view> others;
    for (const int position : loads) {
      const std::string& name = load.loads[position].name;
      if (std::find(known.begin(), known.end(), name) == known.end()) others.push_back(name);
    }
    if (others.empty()) continue;
    notes.push_back(fmt::format("{} was calibrated for {}, not for {}", file,
                                fmt::join(known, ", "), fmt::join(others, ", ")));
  }
  return notes;
}

Result<ScalingPolicies> ScalingPoliciesOf(const std::vector<std::string>& items,
                                          const std::filesystem::path& scenario) {
  ScalingPolicies policies;
  std::set<std::string> names;
  std::map<std::string, std::shared_ptr<const ScalingPolicy>> known;  // By setting.
  std::optional<ServedApplication> application;                       // Once a run asks for it.
  for (const std::string& item : items) {
    const size_t sign = item.find_first_of("=:/");
    const bool named = sign != std::string::npos && item[sign] == '=' && sign > 0;
    const std::string name = named ? item.substr(0, sign) : item;
    if (!names.insert(name).second) {
      return Invalid("two are called {}; NAME=... gives one another name", name);
    }
    NamedScalingPolicy policy{.name = name};
    TRY_ASSIGN(const std::string setting,
               SettingOf(named ? item.substr(sign + 1) : item, scenario, &policies.calibrated));
    int back = 0;
    std::set<std::string> rules;
    for (const std::string& member : MembersOf(setting)) {
      std::string decides = member;
      if (IsScalingRun(member)) {
        if (!application) {
          TRY_ASSIGN(const Scenario served, LoadServedScenario(scenario));
          application = ApplicationOf(served, 0);
        }
        TRY_ASSIGN(decides, DecidingSetting(member, *application));
      }
      std::shared_ptr<const ScalingPolicy>& made = known[decides];
      if (made == nullptr) {
        TRY_ASSIGN(made, MakeScalingPolicy(decides));
      }
      policy.members.push_back(made);
      if (decides != member) {
        ++back;
        rules.insert(decides);
      }
      if (!IsScalingRun(member)) continue;
      TRY_ASSIGN(const std::string verdict, VerdictOfRun(member));
      // Of another application than the one it was trained on.
      const bool elsewhere = decides != member && verdict.find(decides) == std::string::npos;
      policies.notes.push_back(
          fmt::format("{} {}{}", policy.members.size() > 1 || member != setting ? member : name,
                      verdict.empty() ? "has not been compared with autoscalers yet" : verdict,
                      elsewhere ? "; here " + decides : ""));
    }
    policies.stepped_back.push_back(back);
    policies.rules.emplace_back(rules.begin(), rules.end());
    policies.list.push_back(std::move(policy));
  }
  return policies;
}

}  // namespace rudderfish
