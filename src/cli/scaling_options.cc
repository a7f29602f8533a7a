// SPDX-License-Identifier: Apache-2.0
#include "cli/scaling_options.h"

#include <fmt/format.h>

#include <charconv>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/files.h"
#include "base/sha256.h"
#include "base/yaml.h"
#include "evaluation/calibration.h"
#include "policy/neural_scaling.h"

namespace rudderfish {
namespace {

// The spec itself, or what the file that it names thinks best.
Result<std::string> SettingOf(const std::string& spec, const std::filesystem::path& scenario) {
  constexpr std::string_view kHpa = "hpa:";
  if (!spec.starts_with(kHpa) || !spec.ends_with(".yaml")) return spec;
  const std::filesystem::path path = spec.substr(kHpa.size());
  TRY_ASSIGN(const std::string text, ReadFile(path));
  TRY_ASSIGN(const YamlNode root, ParseYaml(text, path.string()));
  TRY_ASSIGN(const Calibration calibration, ParseCalibration(root));
  TRY_ASSIGN(const std::string content, ReadFile(scenario));
  if (calibration.sha256 != Sha256Hex(content)) {
    return Fail(ErrorCode::kFailedPrecondition,
                "{}: was calibrated for the scenario {}, which was not as {} is now; calibrate "
                "again",
                path.string(), calibration.scenario, scenario.string());
  }
  return calibration.finalists[0].policy;
}

}  // namespace

Result<double> ViolationsOf(const Arguments& arguments, double fallback) {
  if (!arguments.Has("violations")) return fallback;
  const std::string text = *arguments.Text("violations");
  const bool percent = text.ends_with('%');
  const char* end = text.data() + text.size() - (percent ? 1 : 0);
  double value = 0;
  const auto [last, error] = std::from_chars(text.data(), end, value);
  if (percent) value /= 100;
  if (error != std::errc{} || last != end || !(value >= 0 && value <= 1)) {
    return Invalid(
        "--violations: expected a share of all requests, such as 1% or 0.001, found "
        "\"{}\"",
        text);
  }
  return value;
}

Result<Scenario> LoadServedScenario(const std::filesystem::path& path) {
  TRY_ASSIGN(Scenario scenario, LoadScenario(path));
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

Result<ScalingPolicies> ScalingPoliciesOf(const Arguments& arguments,
                                          const std::filesystem::path& scenario) {
  TRY_ASSIGN(const std::string text,
             arguments.RequiredText("policy", "what to evaluate, such as hold,hpa"));
  TRY_ASSIGN(const std::vector<std::string> items, OfOption("policy", SplitList(text, ',')));
  ScalingPolicies policies;
  std::set<std::string> names;
  for (const std::string& item : items) {
    const size_t sign = item.find_first_of("=:");
    const bool named = sign != std::string::npos && item[sign] == '=' && sign > 0;
    const std::string name = named ? item.substr(0, sign) : item;
    if (!names.insert(name).second) {
      return Invalid("--policy: two are called {}; NAME=... gives one another name", name);
    }
    TRY_ASSIGN(const std::string setting,
               OfOption("policy", SettingOf(named ? item.substr(sign + 1) : item, scenario)));
    TRY_ASSIGN(std::unique_ptr<ScalingPolicy> policy,
               OfOption("policy", MakeScalingPolicy(setting)));
    policies.list.push_back({name, std::move(policy)});
    if (IsScalingRun(setting)) {
      TRY_ASSIGN(const std::string verdict, VerdictOfRun(setting));
      policies.notes.push_back(fmt::format(
          "{} {}", name, verdict.empty() ? "has not been compared with autoscalers yet" : verdict));
    }
  }
  return policies;
}

}  // namespace rudderfish
