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
#include "policy/neural_scaling.h"
#include "policy/registry.h"
#include "sim/scaling_evaluation.h"

namespace rudderfish {
namespace {

// The autoscaler that a run steps back to, or the run itself; the application is read once a run
// asks for it.
class Deciders {
 public:
  explicit Deciders(const std::filesystem::path& scenario) : scenario_(scenario) {}

  Result<PolicySpec> Of(const PolicySpec& run) {
    TRY(CheckPolicy(run, TaskKind::kScale));
    if (!application_) {
      TRY_ASSIGN(const Scenario served, LoadServedScenario(scenario_));
      application_ = ApplicationOf(served, 0);
    }
    TRY_ASSIGN(const std::string setting, DecidingSetting(run.bare_path, *application_));
    return ParsePolicySpec(setting);
  }

 private:
  const std::filesystem::path& scenario_;
  std::optional<ServedApplication> application_;
};

// The best setting in a file of `calibrate`, which is kept among `files`.
Result<PolicySpec> BestSettingOf(const std::string& file, const std::filesystem::path& scenario,
                                 std::vector<CalibratedFile>* files) {
  TRY_ASSIGN(const Calibration calibration, ReadCalibration(file, scenario));
  files->push_back({file, calibration.loads});
  return ParsePolicySpec(calibration.finalists[0].policy);
}

// Whether its network decides, for people; `setting` is what does.
Result<std::string> NoteOn(const std::string& name, const PolicySpec& run,
                           const PolicySpec& setting) {
  TRY_ASSIGN(const std::string verdict, VerdictOfRun(run.bare_path));
  // Of another application than the one it was trained on.
  const bool elsewhere = setting != run && verdict.find(setting.text()) == std::string::npos;
  return fmt::format("{} {}{}", name,
                     verdict.empty() ? "has not been compared with autoscalers yet" : verdict,
                     elsewhere ? "; here " + setting.text() : "");
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

Result<void> CheckIsServed(const Scenario& scenario, const std::filesystem::path& path) {
  if (scenario.load != nullptr) return {};
  return Invalid("{}: has no `load`: say what requests come, and how pods serve them",
                 path.string());
}

Result<Scenario> LoadServedScenario(const std::filesystem::path& path,
                                    std::span<const YamlChange> changes) {
  TRY_ASSIGN(Scenario scenario, LoadScenario(path, changes));
  TRY(CheckIsServed(scenario, path));
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

bool IsCalibrated(const PolicySpec& policy) { return policy.bare_path.ends_with(".yaml"); }

Result<ScalingPolicies> ScalingPoliciesOf(const std::vector<ListedPolicy>& listed,
                                          const std::filesystem::path& scenario) {
  ScalingPolicies policies;
  std::map<std::string, std::shared_ptr<const ScalingPolicy>> known;  // By what decides.
  Deciders deciders(scenario);
  for (const ListedPolicy& one : listed) {
    NamedScalingPolicy policy{.name = one.name, .shares_network = one.shares_network};
    int back = 0;
    std::set<std::string> rules;
    for (const PolicySpec& member : one.members) {
      PolicySpec decides = member;
      const bool is_run = member.name.empty() && !IsCalibrated(member);
      if (IsCalibrated(member)) {
        TRY_ASSIGN(decides, BestSettingOf(member.bare_path, scenario, &policies.calibrated));
      } else if (is_run) {
        TRY_ASSIGN(decides, deciders.Of(member));
      }
      std::shared_ptr<const ScalingPolicy>& made = known[decides.text()];
      if (made == nullptr) {
        TRY_ASSIGN(made, MakeScalingPolicy(decides));
      }
      policy.members.push_back(made);
      if (!is_run) continue;
      if (decides != member) {
        ++back;
        rules.insert(decides.text());
      }
      TRY_ASSIGN(std::string note,
                 NoteOn(one.members.size() > 1 ? member.text() : one.name, member, decides));
      policies.notes.push_back(std::move(note));
    }
    policies.stepped_back.push_back(back);
    policies.rules.emplace_back(rules.begin(), rules.end());
    policies.list.push_back(std::move(policy));
  }
  return policies;
}

}  // namespace rudderfish
